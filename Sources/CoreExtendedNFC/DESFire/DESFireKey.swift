// SPDX-License-Identifier: MIT

public import CardCrypto

/// A key of a DESFire card.
public struct DESFireKey: Sendable, Hashable {
    public let cipher: DESFireCipher
    /// ``DESFireCipher/keyLength`` octets.
    public let octets: [UInt8]
    /// AES keys have a version of their own; that of a DES key stands in its parity bits.
    public let version: UInt8

    /// - Parameters:
    ///   - octets: ``DESFireCipher/keyLength`` octets; single DES may also be 16 with equal halves.
    ///   - version: put into the parity bits of a DES key; nil leaves them as they are, and means 0 for AES.
    /// - Throws: ``NFCError/cryptoError(_:)`` when the length does not fit.
    public init(_ cipher: DESFireCipher, _ octets: [UInt8], version: UInt8? = nil) throws {
        var key = octets
        if cipher == .des, key.count == 16 {
            guard key.prefix(8).map({ $0 & 0xFE }) == key.suffix(8).map({ $0 & 0xFE }) else {
                throw NFCError.cryptoError("a DES key of 16 bytes has equal halves")
            }
            key = Array(key.prefix(8))
        }
        guard key.count == cipher.keyLength else {
            throw NFCError.cryptoError("a \(cipher.rawValue) key has \(cipher.keyLength) bytes, not \(octets.count)")
        }
        if cipher != .aes, let version { key = DESFireKeyVersion.set(version, in: key) }
        self.cipher = cipher
        self.octets = key
        self.version = cipher == .aes ? version ?? 0 : DESFireKeyVersion.of(key)
    }

    /// The key of zeros that cards are delivered with.
    public static func zero(_ cipher: DESFireCipher) -> DESFireKey {
        DESFireKey(unchecked: cipher, [UInt8](repeating: 0, count: cipher.keyLength))
    }

    private init(unchecked cipher: DESFireCipher, _ octets: [UInt8]) {
        self.cipher = cipher
        self.octets = octets
        version = 0
    }

    /// The card's own key under a master key (NXP AN10922).
    ///
    /// - Parameter input: what tells the card from others, beginning with its UID.
    public func diversified(by input: [UInt8], version: UInt8? = nil) throws -> DESFireKey {
        do {
            return try DESFireKey(
                cipher, try DESFireDiversification.key(cipher, master: octets, input: input), version: version ?? self.version)
        } catch let error as CryptoError {
            throw NFCError.cryptoError(error.detail)
        }
    }

    /// The cipher in fact: triple DES under equal halves is DES.
    var effectiveCipher: DESFireCipher {
        guard cipher == .twoKeyTripleDES else { return cipher }
        return octets.prefix(8).map { $0 & 0xFE } == octets.suffix(8).map { $0 & 0xFE } ? .des : cipher
    }

    /// The octets for a block cipher.
    var effectiveOctets: [UInt8] { effectiveCipher == .des ? Array(octets.prefix(8)) : octets }

    /// The octets as ChangeKey carries them: DES is doubled to 16.
    var transportOctets: [UInt8] { cipher == .des ? octets + octets : octets }

    /// Bits 7 and 6 of the key number when the master key of the card is changed to this cipher.
    var typeBits: UInt8 {
        switch cipher {
        case .des, .twoKeyTripleDES: 0x00
        case .threeKeyTripleDES: 0x40
        case .aes: 0x80
        }
    }
}

extension DESFireKey: CustomStringConvertible, CustomDebugStringConvertible {
    /// Never the key itself.
    public var description: String { "\(cipher.rawValue) key" }
    public var debugDescription: String { description }
}
