// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
public import TagTransport

/// Secure Channel Protocol 03 (GlobalPlatform Amendment D), the host's side.
public struct SCP03: SecureChannel {
    /// What the session protects.
    public let level: SecurityLevel
    /// `SCP03`.
    public var name: String { "SCP03" }
    /// Octets of a MAC and of a challenge: 8, or 16 in S16 mode.
    public let macLength: Int
    /// S-ENC, S-MAC and S-RMAC.
    public let encryptionKey: [UInt8]
    /// S-MAC.
    public let macKey: [UInt8]
    /// S-RMAC.
    public let responseMACKey: [UInt8]
    /// The static Key-DEK.
    let dataKey: [UInt8]
    let hostCryptogram: [UInt8]

    private var chain = [UInt8](repeating: 0, count: 16)
    private var counter = [UInt8](repeating: 0, count: 16)

    /// Derives the session keys and checks the card's cryptogram.
    ///
    /// - Throws: ``GlobalPlatformError``: `cardCryptogramWrong`; `levelNotSupported` when the option `i` says so (Amendment D table 5-1).
    public init(
        keys: GlobalPlatformKeys, level: SecurityLevel, hostChallenge: [UInt8], offer: ChannelOffer
    ) throws(GlobalPlatformError) {
        guard let option = offer.option else { throw GlobalPlatformError(.protocolNotSupported, detail: "not an offer of SCP03") }
        let length = offer.cardChallenge.count
        guard hostChallenge.count == length else {
            throw GlobalPlatformError(
                .levelNotSupported, detail: "the card wants challenges of \(length) bytes, not \(hostChallenge.count)")
        }
        if level.contains(.responseMAC), option & 0x20 == 0 {
            throw GlobalPlatformError(.levelNotSupported, detail: "the card does not protect responses (i \(option))")
        }
        if level.contains(.responseEncryption), option & 0x60 != 0x60 {
            throw GlobalPlatformError(.levelNotSupported, detail: "the card does not encrypt responses (i \(option))")
        }
        self.level = level
        macLength = length
        let context = hostChallenge + offer.cardChallenge
        let keyBits = keys.enc.count * 8
        encryptionKey = try Self.derive(keys.enc, 0x04, context, bits: keyBits)
        macKey = try Self.derive(keys.mac, 0x06, context, bits: keyBits)
        responseMACKey = try Self.derive(keys.mac, 0x07, context, bits: keyBits)
        dataKey = keys.dek
        hostCryptogram = try Self.derive(macKey, 0x01, context, bits: length * 8)
        let expected = try Self.derive(macKey, 0x00, context, bits: length * 8)
        guard equalInConstantTime(expected, offer.cardCryptogram) else {
            throw GlobalPlatformError(
                .cardCryptogramWrong, command: "INITIALIZE UPDATE", detail: "the card's cryptogram is not what these keys make")
        }
    }

    /// EXTERNAL AUTHENTICATE with the host's cryptogram and a C-MAC (Amendment D 7.1.2).
    public mutating func externalAuthenticate() throws(GlobalPlatformError) -> CommandAPDU {
        try addMAC(cla: 0x80, ins: 0x82, p1: level.rawValue, p2: 0x00, data: hostCryptogram, ne: nil)
    }

    /// The command with what the level asks for (Amendment D 6.2.4 and 6.2.6).
    public mutating func wrap(_ command: CommandAPDU) throws(GlobalPlatformError) -> CommandAPDU {
        guard level.contains(.commandMAC) else { return command }
        var data = command.data.map { [UInt8]($0) } ?? []
        // Amendment D 6.2.6: the counter moves for every command, with data or without.
        increment()
        if level.contains(.commandEncryption), !data.isEmpty {
            data = try crypt { () throws(CryptoError) in
                let iv = try BlockCipher.aes.encrypt(counter, key: encryptionKey)
                return try BlockCipher.aes.encrypt(Padding.pad(data, to: 16), key: encryptionKey, iv: iv)
            }
        }
        return try addMAC(cla: command.cla, ins: command.ins, p1: command.p1, p2: command.p2, data: data, ne: command.ne)
    }

    /// The response without its protection (Amendment D 6.2.5 and 6.2.7).
    public mutating func unwrap(_ response: ResponseAPDU) throws(GlobalPlatformError) -> ResponseAPDU {
        guard level.contains(.responseMAC) else { return response }
        var data = [UInt8](response.data)
        // Amendment D 6.2.5: only a success or a warning is protected. An error comes bare, and says nothing that counts.
        guard response.statusWord == 0x9000 || response.sw1 == 0x62 || response.sw1 == 0x63 else {
            guard data.isEmpty else {
                throw GlobalPlatformError(
                    .responseUnprotected, statusWord: response.statusWord, detail: "an error with data, which nothing protects")
            }
            return response
        }
        guard data.count >= macLength else {
            throw GlobalPlatformError(
                .responseUnprotected, statusWord: response.statusWord, detail: "\(data.count) bytes, where a MAC should be")
        }
        let mac = Array(data.suffix(macLength))
        data.removeLast(macLength)
        let input = chain + data + [response.sw1, response.sw2]
        let expected = try crypt { () throws(CryptoError) in try CMAC.authenticate(input, key: responseMACKey) }
        guard equalInConstantTime(Array(expected.prefix(macLength)), mac) else {
            throw GlobalPlatformError(.responseMACWrong, statusWord: response.statusWord, detail: "the response's MAC is wrong")
        }
        if level.contains(.responseEncryption), !data.isEmpty {
            guard data.count % 16 == 0 else {
                throw GlobalPlatformError(.responseEncryptionWrong, detail: "\(data.count) bytes are not whole blocks")
            }
            var block = counter
            block[0] |= 0x80
            let padded = try crypt { () throws(CryptoError) in
                let iv = try BlockCipher.aes.encrypt(block, key: encryptionKey)
                return try BlockCipher.aes.decrypt(data, key: encryptionKey, iv: iv)
            }
            guard let clear = Padding.unpad(padded) else {
                throw GlobalPlatformError(.responseEncryptionWrong, detail: "no padding at the end of the decrypted response")
            }
            data = clear
        }
        return ResponseAPDU(data: Data(data), sw1: response.sw1, sw2: response.sw2)
    }

    /// CBC under the static Key-DEK, filled up to whole blocks (Amendment D 6.2.8).
    public func sealKey(_ key: [UInt8]) throws(GlobalPlatformError) -> [UInt8] {
        let filled = key + [UInt8](repeating: 0, count: (16 - key.count % 16) % 16)
        return try crypt { () throws(CryptoError) in try BlockCipher.aes.encrypt(filled, key: dataKey) }
    }

    /// The KDF in counter mode of NIST SP 800-108 with CMAC (Amendment D 4.1.5).
    ///
    /// - Parameters:
    ///   - constant: 00 card cryptogram, 01 host cryptogram, 02 card challenge, 04 S-ENC, 06 S-MAC, 07 S-RMAC.
    ///   - bits: up to 256.
    public static func derive(
        _ key: [UInt8], _ constant: UInt8, _ context: [UInt8], bits: Int
    ) throws(GlobalPlatformError) -> [UInt8] {
        try crypt { () throws(CryptoError) in try CounterModeKDF.derive(key, constant: constant, context: context, bits: bits) }
    }

    private mutating func addMAC(
        cla: UInt8, ins: UInt8, p1: UInt8, p2: UInt8, data: [UInt8], ne: Int?
    ) throws(GlobalPlatformError) -> CommandAPDU {
        guard data.count + macLength <= 255 else {
            throw GlobalPlatformError(.invalidArgument, detail: "\(data.count) bytes and a MAC; a command carries 255")
        }
        let secured = (cla & 0xFC) | 0x04
        let input = chain + [secured, ins, p1, p2, UInt8(truncatingIfNeeded: data.count + macLength)] + data
        chain = try crypt { () throws(CryptoError) in try CMAC.authenticate(input, key: macKey) }
        return CommandAPDU(cla: cla | 0x04, ins: ins, p1: p1, p2: p2, data: Data(data + chain.prefix(macLength)), expected: ne)
    }

    private mutating func increment() {
        for index in counter.indices.reversed() {
            counter[index] &+= 1
            if counter[index] != 0 { return }
        }
    }
}

/// Runs a call of the cryptographic library, whose failure is none of the card's.
func crypt(_ body: () throws(CryptoError) -> [UInt8]) throws(GlobalPlatformError) -> [UInt8] {
    do { return try body() } catch { throw GlobalPlatformError(.cryptography, detail: error.detail) }
}

extension CommandAPDU {
    /// A short command whose lengths were checked before.
    init(cla: UInt8, ins: UInt8, p1: UInt8, p2: UInt8, data: Data, expected ne: Int?) {
        self.init(cla: cla, ins: ins, p1: p1, p2: p2, data: data, le: ne.map { UInt8(truncatingIfNeeded: $0) })
    }
}
