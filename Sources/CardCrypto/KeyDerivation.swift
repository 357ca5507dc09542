// SPDX-License-Identifier: MIT

/// The key derivation function of ICAO 9303-11 9.7.1.
public enum KeyDerivation {
    /// The algorithm that a derived key is for.
    public enum Algorithm: Sendable, Hashable {
        /// Two-key triple DES, 16 octets with odd parity.
        case tripleDES
        case aes128
        case aes192
        case aes256

        /// Octets of the key.
        public var keyLength: Int {
            switch self {
            case .tripleDES, .aes128: 16
            case .aes192: 24
            case .aes256: 32
            }
        }

        /// The cipher that the key is for.
        public var blockCipher: BlockCipher { self == .tripleDES ? .tripleDES : .aes }

        /// The authentication token of PACE over `data` (ICAO 9303-11 4.4.3.4): the retail MAC, or the CMAC cut to eight octets.
        public func authenticationToken(_ data: [UInt8], key: [UInt8]) throws(CryptoError) -> [UInt8] {
            self == .tripleDES
                ? try RetailMAC.authenticate(data, key: key) : Array(try CMAC.authenticate(data, key: key).prefix(8))
        }
    }

    /// The counter that says what a key is for.
    public static let encryption: UInt32 = 1
    public static let authentication: UInt32 = 2
    public static let password: UInt32 = 3

    /// KDF(K, c): the hash of `secret` and the 32-bit counter, cut to the key's length.
    public static func key(
        from secret: [UInt8], counter: UInt32, for algorithm: Algorithm
    ) throws(CryptoError) -> [UInt8] {
        let counterOctets = (0..<4).map { UInt8(truncatingIfNeeded: counter >> (24 - 8 * UInt32($0))) }
        let input = secret + counterOctets
        switch algorithm {
        case .tripleDES: return withOddParity(Array(try Digest.sha1.hash(input)[..<16]))
        case .aes128: return Array(try Digest.sha1.hash(input)[..<16])
        case .aes192: return Array(try Digest.sha256.hash(input)[..<24])
        case .aes256: return try Digest.sha256.hash(input)
        }
    }

    /// DES key octets with bit 1 set so that each has an odd number of ones.
    public static func withOddParity(_ key: [UInt8]) -> [UInt8] {
        key.map { octet in (octet & 0xFE).nonzeroBitCount % 2 == 0 ? octet | 0x01 : octet & 0xFE }
    }
}
