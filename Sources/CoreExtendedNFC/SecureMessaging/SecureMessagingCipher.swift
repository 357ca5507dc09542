// SPDX-License-Identifier: MIT

import CardCrypto

/// The two sets of algorithms of ICAO 9303-11 9.8.6 and 9.8.7.
public enum SecureMessagingCipher: String, Sendable, Hashable, Codable {
    /// Two-key triple DES in CBC mode with a zero initial vector; retail MAC; a counter of eight octets.
    case tripleDES
    /// AES in CBC mode, the initial vector being the encrypted counter; CMAC cut to eight octets; a counter of sixteen octets.
    case aes

    /// Octets in a block, and in the send sequence counter.
    public var blockLength: Int { self == .aes ? 16 : 8 }

    /// The name for people: `3DES`, `AES`.
    public var displayName: String { self == .aes ? "AES" : "3DES" }

    func acceptsKey(ofLength length: Int) -> Bool { self == .aes ? [16, 24, 32].contains(length) : length == 16 }

    func encrypt(_ plain: [UInt8], key: [UInt8], counter: [UInt8]) throws(CryptoError) -> [UInt8] {
        let padded = Padding.pad(plain, to: blockLength)
        switch self {
        case .tripleDES: return try BlockCipher.tripleDES.encrypt(padded, key: key)
        case .aes: return try BlockCipher.aes.encrypt(padded, key: key, iv: try initialVector(key: key, counter: counter))
        }
    }

    func decrypt(_ cryptogram: [UInt8], key: [UInt8], counter: [UInt8]) throws(CryptoError) -> [UInt8] {
        switch self {
        case .tripleDES: return try BlockCipher.tripleDES.decrypt(cryptogram, key: key)
        case .aes: return try BlockCipher.aes.decrypt(cryptogram, key: key, iv: try initialVector(key: key, counter: counter))
        }
    }

    /// The MAC of eight octets over counter and message; the padding is added here.
    func authenticate(_ message: [UInt8], key: [UInt8], counter: [UInt8]) throws(CryptoError) -> [UInt8] {
        switch self {
        case .tripleDES: return try RetailMAC.authenticate(counter + message, key: key)
        case .aes:
            let whole = try CMAC.authenticate(Padding.pad(counter + message, to: blockLength), key: key)
            return Array(whole[..<8])
        }
    }

    private func initialVector(key: [UInt8], counter: [UInt8]) throws(CryptoError) -> [UInt8] {
        try BlockCipher.aes.encrypt(counter, key: key)
    }
}
