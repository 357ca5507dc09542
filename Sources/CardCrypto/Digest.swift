// SPDX-License-Identifier: MIT

import CLibCrypto

/// A hash function of FIPS 180-4.
public enum Digest: String, Sendable, Hashable, CaseIterable {
    case sha1 = "SHA-1"
    case sha224 = "SHA-224"
    case sha256 = "SHA-256"
    case sha384 = "SHA-384"
    case sha512 = "SHA-512"

    /// Octets of a hash value.
    public var length: Int {
        switch self {
        case .sha1: 20
        case .sha224: 28
        case .sha256: 32
        case .sha384: 48
        case .sha512: 64
        }
    }

    /// The hash value of `data`.
    ///
    /// libcrypto's own hash functions, deprecated since OpenSSL 3.0, instead of its EVP layer, for the reasons that ``DES`` gives:
    /// they run the same code, without the milliseconds of EVP's first use.
    public func hash(_ data: [UInt8]) throws(CryptoError) -> [UInt8] {
        var isDone = false
        let value = [UInt8](unsafeUninitializedCapacity: length) { output, initialized in
            isDone = hash(data, into: output.baseAddress)
            initialized = isDone ? length : 0
        }
        guard isDone else { throw CryptoError.fromLibrary(rawValue) }
        return value
    }

    private func hash(_ data: [UInt8], into output: UnsafeMutablePointer<UInt8>?) -> Bool {
        switch self {
        case .sha1:
            var context = SHA_CTX()
            return SHA1_Init(&context) == 1 && SHA1_Update(&context, data, data.count) == 1 && SHA1_Final(output, &context) == 1
        case .sha224:
            var context = SHA256_CTX()
            return SHA224_Init(&context) == 1 && SHA224_Update(&context, data, data.count) == 1
                && SHA224_Final(output, &context) == 1
        case .sha256:
            var context = SHA256_CTX()
            return SHA256_Init(&context) == 1 && SHA256_Update(&context, data, data.count) == 1
                && SHA256_Final(output, &context) == 1
        case .sha384:
            var context = SHA512_CTX()
            return SHA384_Init(&context) == 1 && SHA384_Update(&context, data, data.count) == 1
                && SHA384_Final(output, &context) == 1
        case .sha512:
            var context = SHA512_CTX()
            return SHA512_Init(&context) == 1 && SHA512_Update(&context, data, data.count) == 1
                && SHA512_Final(output, &context) == 1
        }
    }
}
