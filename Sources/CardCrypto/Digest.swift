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

    var library: OpaquePointer? {
        switch self {
        case .sha1: EVP_sha1()
        case .sha224: EVP_sha224()
        case .sha256: EVP_sha256()
        case .sha384: EVP_sha384()
        case .sha512: EVP_sha512()
        }
    }

    /// The hash value of `data`.
    public func hash(_ data: [UInt8]) throws(CryptoError) -> [UInt8] {
        var value = [UInt8](repeating: 0, count: length)
        var written: UInt32 = 0
        guard EVP_Digest(data, data.count, &value, &written, library, nil) == 1, Int(written) == length else {
            throw CryptoError.fromLibrary(rawValue)
        }
        return value
    }
}
