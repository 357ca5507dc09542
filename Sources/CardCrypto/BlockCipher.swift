// SPDX-License-Identifier: MIT

import CLibCrypto

/// A block cipher in CBC mode without padding, over libcrypto.
public enum BlockCipher: Sendable, Hashable {
    /// Triple DES with keys of 8 (single DES as K|K|K), 16 (K1|K2|K1) or 24 octets.
    case tripleDES
    /// AES with keys of 16, 24 or 32 octets.
    case aes

    /// Octets in a block.
    public var blockLength: Int { self == .aes ? 16 : 8 }

    /// Encrypts whole blocks in CBC mode; the initial vector is zero when not given.
    public func encrypt(_ data: [UInt8], key: [UInt8], iv: [UInt8]? = nil) throws(CryptoError) -> [UInt8] {
        try run(data, key: key, iv: iv, encrypting: true)
    }

    /// Decrypts whole blocks in CBC mode; the initial vector is zero when not given.
    public func decrypt(_ data: [UInt8], key: [UInt8], iv: [UInt8]? = nil) throws(CryptoError) -> [UInt8] {
        try run(data, key: key, iv: iv, encrypting: false)
    }

    private func cipher(keyLength: Int) throws(CryptoError) -> (OpaquePointer?, Int) {
        switch (self, keyLength) {
        case (.tripleDES, 8), (.tripleDES, 16), (.tripleDES, 24): (EVP_des_ede3_cbc(), 24)
        case (.aes, 16): (EVP_aes_128_cbc(), 16)
        case (.aes, 24): (EVP_aes_192_cbc(), 24)
        case (.aes, 32): (EVP_aes_256_cbc(), 32)
        default: throw CryptoError(code: .keyLength, detail: "\(keyLength) bytes are no \(self == .aes ? "AES" : "DES") key")
        }
    }

    private func run(_ data: [UInt8], key: [UInt8], iv: [UInt8]?, encrypting: Bool) throws(CryptoError) -> [UInt8] {
        guard data.count % blockLength == 0, data.count <= Int(Int32.max) else {
            throw CryptoError(code: .dataLength, detail: "\(data.count) bytes are not whole blocks of \(blockLength)")
        }
        let vector = iv ?? [UInt8](repeating: 0, count: blockLength)
        guard vector.count == blockLength else {
            throw CryptoError(code: .dataLength, detail: "an initial vector of \(vector.count) bytes; a block has \(blockLength)")
        }
        if data.isEmpty { return [] }
        let (cipher, length) = try cipher(keyLength: key.count)
        let fullKey: [UInt8] =
            switch (self, key.count) {
            case (.tripleDES, 8): key + key + key
            case (.tripleDES, 16): key + key[..<8]
            default: key
            }
        guard fullKey.count == length, let context = EVP_CIPHER_CTX_new() else {
            throw CryptoError(code: .library, detail: "no cipher context")
        }
        defer { EVP_CIPHER_CTX_free(context) }
        var output = [UInt8](repeating: 0, count: data.count + blockLength)
        var written: Int32 = 0
        guard EVP_CipherInit_ex(context, cipher, nil, fullKey, vector, encrypting ? 1 : 0) == 1,
            EVP_CIPHER_CTX_set_padding(context, 0) == 1,
            EVP_CipherUpdate(context, &output, &written, data, Int32(data.count)) == 1,
            Int(written) == data.count
        else { throw CryptoError.fromLibrary("cipher") }
        output.removeLast(output.count - data.count)
        return output
    }
}

/// Padding method 2 of ISO/IEC 9797-1 (ISO/IEC 7816-4 10.2.3.1): `80`, then `00` to a whole number of blocks.
public enum Padding {
    public static func pad(_ data: [UInt8], to blockLength: Int) -> [UInt8] {
        var padded = data
        padded.append(0x80)
        while padded.count % blockLength != 0 { padded.append(0) }
        return padded
    }

    /// The data without its padding; nil when there is no padding at the end.
    public static func unpad(_ data: [UInt8]) -> [UInt8]? {
        var end = data.count
        while end > 0, data[end - 1] == 0 { end -= 1 }
        guard end > 0, data[end - 1] == 0x80 else { return nil }
        return Array(data[..<(end - 1)])
    }
}

/// What went wrong in cryptography. Equality is on the code.
public struct CryptoError: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Code: String, Sendable {
        case keyLength
        case dataLength
        case signature
        case certificate
        case encoding
        /// libcrypto refused.
        case library
    }

    public let code: Code
    public let detail: String

    public init(code: Code, detail: String) {
        self.code = code
        self.detail = detail
    }

    public static func == (left: Self, right: Self) -> Bool { left.code == right.code }

    public var description: String { detail }

    /// The last error of libcrypto's queue, which is emptied.
    static func fromLibrary(_ operation: String) -> CryptoError {
        var text = operation
        var code = ERR_get_error()
        while code != 0 {
            if let reason = ERR_reason_error_string(code) { text += ": " + String(cString: reason) }
            code = ERR_get_error()
        }
        return CryptoError(code: .library, detail: text)
    }
}
