// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
public import TagTransport

/// Secure Channel Protocol 02 with the options i=15 and i=55 (GPC appendix E), the host's side: explicit initiation, C-MAC over
/// the modified command, ICV encrypted by single DES, three keys; levels 00, 01 and 03.
public struct SCP02: SecureChannel {
    /// What the session protects.
    public let level: SecurityLevel
    /// `SCP02`.
    public var name: String { "SCP02" }
    /// S-ENC, C-MAC and data encryption session keys, 16 octets each.
    public let encryptionKey: [UInt8]
    /// The session's C-MAC key.
    public let macKey: [UInt8]
    let dataKey: [UInt8]
    let hostCryptogram: [UInt8]

    /// The last C-MAC; empty before the first command, whose ICV is zero and not encrypted.
    private var lastMAC: [UInt8] = []

    /// Derives the session keys and checks the card's cryptogram.
    ///
    /// - Throws: ``GlobalPlatformError``: `cardCryptogramWrong`, `levelNotSupported`, `keysUnsuitable`.
    public init(
        keys: GlobalPlatformKeys, level: SecurityLevel, hostChallenge: [UInt8], offer: ChannelOffer
    ) throws(GlobalPlatformError) {
        guard offer.protocolNumber == 2 else { throw GlobalPlatformError(.protocolNotSupported, detail: "not an offer of SCP02") }
        guard keys.enc.count == 16 else {
            throw GlobalPlatformError(.keysUnsuitable, detail: "SCP02 has keys of 16 bytes, not \(keys.enc.count)")
        }
        guard hostChallenge.count == 8 else {
            throw GlobalPlatformError(
                .invalidArgument, detail: "SCP02 has host challenges of 8 bytes, not \(hostChallenge.count)")
        }
        guard level.isSubset(of: .macAndEncryption) else {
            throw GlobalPlatformError(.levelNotSupported, detail: "SCP02 with i=15 or 55 does not protect responses")
        }
        self.level = level
        encryptionKey = try Self.derive(keys.enc, 0x0182, offer.sequenceCounter)
        macKey = try Self.derive(keys.mac, 0x0101, offer.sequenceCounter)
        dataKey = try Self.derive(keys.dek, 0x0181, offer.sequenceCounter)
        let card = offer.sequenceCounter + offer.cardChallenge
        hostCryptogram = try Self.cryptogram(card + hostChallenge, encryptionKey)
        let expected = try Self.cryptogram(hostChallenge + card, encryptionKey)
        guard equalInConstantTime(expected, offer.cardCryptogram) else {
            throw GlobalPlatformError(
                .cardCryptogramWrong, command: "INITIALIZE UPDATE", detail: "the card's cryptogram is not what these keys make")
        }
    }

    /// EXTERNAL AUTHENTICATE with the host's cryptogram and a C-MAC (GPC E.5.2).
    public mutating func externalAuthenticate() throws(GlobalPlatformError) -> CommandAPDU {
        let mac = try nextMAC(cla: 0x80, ins: 0x82, p1: level.rawValue, p2: 0x00, data: hostCryptogram)
        return CommandAPDU(cla: 0x84, ins: 0x82, p1: level.rawValue, p2: 0x00, data: Data(hostCryptogram + mac), expected: nil)
    }

    /// The command with what the level asks for; the next C-MAC goes on from this one (GPC E.4.4).
    public mutating func wrap(_ command: CommandAPDU) throws(GlobalPlatformError) -> CommandAPDU {
        guard level.contains(.commandMAC) else { return command }
        var data = command.data.map { [UInt8]($0) } ?? []
        let isEncrypted = level.contains(.commandEncryption) && !data.isEmpty
        guard (isEncrypted ? data.count / 8 * 8 + 8 : data.count) + 8 <= 255 else {
            throw GlobalPlatformError(.invalidArgument, detail: "\(data.count) bytes and a MAC; a command carries 255")
        }
        // GPC E.4.6: the MAC is over the data in clear, which is encrypted afterwards.
        let mac = try nextMAC(cla: command.cla, ins: command.ins, p1: command.p1, p2: command.p2, data: data)
        if isEncrypted {
            data = try crypt { () throws(CryptoError) in
                try BlockCipher.tripleDES.encrypt(Padding.pad(data, to: 8), key: encryptionKey)
            }
        }
        return CommandAPDU(
            cla: command.cla | 0x04, ins: command.ins, p1: command.p1, p2: command.p2, data: Data(data + mac),
            expected: command.ne)
    }

    /// Responses are as they come: these options have no R-MAC.
    public mutating func unwrap(_ response: ResponseAPDU) throws(GlobalPlatformError) -> ResponseAPDU { response }

    /// ECB under the data encryption session key (GPC E.4.7).
    public func sealKey(_ key: [UInt8]) throws(GlobalPlatformError) -> [UInt8] {
        guard key.count % 8 == 0 else {
            throw GlobalPlatformError(.invalidArgument, detail: "\(key.count) bytes are not whole blocks of triple DES")
        }
        return try crypt { () throws(CryptoError) in
            var sealed: [UInt8] = []
            for start in stride(from: 0, to: key.count, by: 8) {
                sealed += try BlockCipher.tripleDES.encrypt(Array(key[start..<start + 8]), key: dataKey)
            }
            return sealed
        }
    }

    /// A session key: constant, counter and twelve zeros under the base key (GPC E.4.1).
    public static func derive(
        _ key: [UInt8], _ constant: UInt16, _ counter: [UInt8]
    ) throws(GlobalPlatformError) -> [UInt8] {
        let start = [UInt8(truncatingIfNeeded: constant >> 8), UInt8(truncatingIfNeeded: constant)]
        let input = start + counter + [UInt8](repeating: 0, count: 12)
        return try crypt { () throws(CryptoError) in try BlockCipher.tripleDES.encrypt(input, key: key) }
    }

    /// The full triple DES MAC (GPC B.1.2.1) over padded data.
    private static func cryptogram(_ data: [UInt8], _ key: [UInt8]) throws(GlobalPlatformError) -> [UInt8] {
        try crypt { () throws(CryptoError) in
            Array(try BlockCipher.tripleDES.encrypt(Padding.pad(data, to: 8), key: key).suffix(8))
        }
    }

    private mutating func nextMAC(
        cla: UInt8, ins: UInt8, p1: UInt8, p2: UInt8, data: [UInt8]
    ) throws(GlobalPlatformError) -> [UInt8] {
        let header = [(cla & 0xFC) | 0x04, ins, p1, p2, UInt8(truncatingIfNeeded: data.count + 8)]
        let mac = try crypt { () throws(CryptoError) in
            let input = header + data
            if lastMAC.isEmpty { return try RetailMAC.authenticate(input, key: macKey) }
            let vector = try BlockCipher.tripleDES.encrypt(lastMAC, key: Array(macKey.prefix(8)))
            // A first block that is the vector itself, under zero, is the MAC with that vector.
            return try Self.retailMAC(input, key: macKey, vector: vector)
        }
        lastMAC = mac
        return mac
    }

    private static func retailMAC(_ data: [UInt8], key: [UInt8], vector: [UInt8]) throws(CryptoError) -> [UInt8] {
        var input = data
        for index in input.indices.prefix(8) { input[index] ^= vector[index] }
        // A command's header has five octets, so that its padding may reach into the first block.
        guard input.count < 8 else { return try RetailMAC.authenticate(input, key: key) }
        var block = Padding.pad(data, to: 8)
        for index in block.indices { block[index] ^= vector[index] }
        return try BlockCipher.tripleDES.encrypt(block, key: key)
    }
}
