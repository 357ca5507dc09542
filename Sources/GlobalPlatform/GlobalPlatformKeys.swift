// SPDX-License-Identifier: MIT

/// The three static keys of a security domain's key set (GPC 7.5.3, Amendment D 4.1.1).
public struct GlobalPlatformKeys: Sendable, Hashable {
    /// Key version number, 01...7F; 0 asks for the card's first key set.
    public let version: UInt8
    /// Key-ENC, Key-MAC and Key-DEK: 16 octets each for triple DES, 16, 24 or 32 for AES.
    public let enc: [UInt8]
    /// Key-MAC, as long as ``enc``.
    public let mac: [UInt8]
    /// Key-DEK, as long as ``enc``.
    public let dek: [UInt8]

    /// - Throws: ``GlobalPlatformError`` with the code `keysUnsuitable` when the lengths are not alike, or not those of a key.
    public init(version: UInt8 = 0, enc: [UInt8], mac: [UInt8], dek: [UInt8]) throws(GlobalPlatformError) {
        guard [16, 24, 32].contains(enc.count), mac.count == enc.count, dek.count == enc.count else {
            throw GlobalPlatformError(
                .keysUnsuitable, detail: "keys of \(enc.count), \(mac.count) and \(dek.count) bytes; all three have 16, 24 or 32")
        }
        self.version = version
        self.enc = enc
        self.mac = mac
        self.dek = dek
    }

    /// One key in all three places, as test cards have it.
    public init(version: UInt8 = 0, single key: [UInt8]) throws(GlobalPlatformError) {
        try self.init(version: version, enc: key, mac: key, dek: key)
    }
}

/// What a secure channel protects (GPC 10.6 and table E-11, Amendment D table 7-6): P1 of EXTERNAL AUTHENTICATE.
public struct SecurityLevel: OptionSet, Sendable, Hashable {
    /// The octet P1.
    public let rawValue: UInt8
    /// A level from its octet, which need not be a defined one; see ``isDefined``.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Commands have a MAC: bit 1.
    public static let commandMAC = SecurityLevel(rawValue: 0x01)
    /// Command data is enciphered: bit 2.
    public static let commandEncryption = SecurityLevel(rawValue: 0x02)
    /// Responses have a MAC: bit 5.
    public static let responseMAC = SecurityLevel(rawValue: 0x10)
    /// Response data is enciphered: bit 6.
    public static let responseEncryption = SecurityLevel(rawValue: 0x20)

    /// Authenticated, and nothing protected after that.
    public static let none: SecurityLevel = []
    /// `01`
    public static let mac: SecurityLevel = [.commandMAC]
    /// `03`
    public static let macAndEncryption: SecurityLevel = [.commandMAC, .commandEncryption]
    /// `33`, SCP03 alone
    public static let all: SecurityLevel = [.commandMAC, .commandEncryption, .responseMAC, .responseEncryption]

    /// 00, 01, 03, 11, 13 and 33: encryption goes with a MAC, and a response is not protected better than its command.
    public var isDefined: Bool { [0x00, 0x01, 0x03, 0x11, 0x13, 0x33].contains(rawValue) }
}
