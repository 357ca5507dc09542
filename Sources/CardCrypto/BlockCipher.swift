// SPDX-License-Identifier: MIT

import CLibCrypto
public import Octets

/// A block cipher in CBC mode without padding, over libcrypto.
public enum BlockCipher: Sendable, Hashable {
    /// Triple DES with keys of 8 (single DES, which is K|K|K), 16 (K1|K2|K1) or 24 octets.
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

    private func run(_ data: [UInt8], key: [UInt8], iv: [UInt8]?, encrypting: Bool) throws(CryptoError) -> [UInt8] {
        guard data.count % blockLength == 0, data.count <= Int(Int32.max) else {
            throw CryptoError(code: .dataLength, detail: "\(data.count) bytes are not whole blocks of \(blockLength)")
        }
        let vector = iv ?? [UInt8](repeating: 0, count: blockLength)
        guard vector.count == blockLength else {
            throw CryptoError(code: .dataLength, detail: "an initial vector of \(vector.count) bytes; a block has \(blockLength)")
        }
        if data.isEmpty { return [] }
        switch self {
        case .tripleDES:
            guard [8, 16, 24].contains(key.count) else {
                throw CryptoError(code: .keyLength, detail: "\(key.count) bytes are no DES key")
            }
            return DES.cbc(data, key: key, iv: vector, encrypting: encrypting)
        case .aes:
            let cipher = try AES(key: key, encrypting: encrypting)
            if iv != nil { try cipher.start(vector) }
            return try cipher.run(data)
        }
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
public struct CryptoError: DetailedError {
    public enum Code: String, Sendable {
        case keyLength
        case dataLength
        case signature
        /// Octets that are no public key, or one of another kind than is needed.
        case publicKey
        /// Domain parameters that are no elliptic curve, or an unknown name of one.
        case curve
        /// An algorithm that this library does not have.
        case algorithm
        case certificate
        case encoding
        /// A group that no key can be agreed on in.
        case domainParameters
        /// libcrypto refused.
        case library
    }

    public let code: Code
    public let detail: String

    public init(code: Code, detail: String) {
        self.code = code
        self.detail = detail
    }

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
