// SPDX-License-Identifier: MIT

import CardCrypto

/// A secure channel as the card has it: SCP02 (GPC appendix E) or SCP03 (Amendment D), from INITIALIZE UPDATE on.
struct ElementChannel: Sendable {
    enum Stage: Sendable { case challenged, open, aborted }

    var stage = Stage.challenged
    /// P1 of EXTERNAL AUTHENTICATE.
    private(set) var level: UInt8 = 0
    let isAES: Bool
    /// Octets of a MAC.
    let macLength: Int
    /// The option `i`.
    let option: UInt8
    /// The key set that it rests on: security domain and version.
    let keyHolder: [UInt8]
    let keyVersion: UInt8

    private let encryptionKey: [UInt8]
    private let macKey: [UInt8]
    private let responseKey: [UInt8]
    private let dataKey: [UInt8]
    private let hostCryptogram: [UInt8]
    let cardCryptogram: [UInt8]
    let cardChallenge: [UInt8]
    /// SCP03: the MAC chaining value. SCP02: the last MAC.
    private var chain: [UInt8]
    private var counter: UInt64 = 0

    /// - Parameters:
    ///   - random: as many octets as the challenge has, for an option that wants it random.
    ///   - aid: the security domain's, for an option that wants the challenge computed.
    init(
        keys: ElementKeySet, option: UInt8, holder: [UInt8], aid: [UInt8], hostChallenge: [UInt8], random: [UInt8]
    ) throws(CryptoError) {
        isAES = keys.isAES
        self.option = option
        keyHolder = holder
        keyVersion = keys.version
        let counter = keys.counter
        let low = [UInt8(truncatingIfNeeded: counter >> 8), UInt8(truncatingIfNeeded: counter)]
        if keys.isAES {
            macLength = option & 0x01 == 0 ? 8 : 16
            let bits = UInt16(truncatingIfNeeded: macLength * 8)
            let keyBits = UInt16(truncatingIfNeeded: keys.keys[0].count * 8)
            if option & 0x10 != 0 {
                // Amendment D 6.2.2.1: computed from the counter and the name.
                let context = [UInt8(truncatingIfNeeded: counter >> 16)] + low + aid
                cardChallenge = try Self.kdf(keys.keys[0], 0x02, context, bits: bits)
            } else {
                cardChallenge = random
            }
            let context = hostChallenge + cardChallenge
            encryptionKey = try Self.kdf(keys.keys[0], 0x04, context, bits: keyBits)
            macKey = try Self.kdf(keys.keys[1], 0x06, context, bits: keyBits)
            responseKey = try Self.kdf(keys.keys[1], 0x07, context, bits: keyBits)
            dataKey = keys.keys[2]
            cardCryptogram = try Self.kdf(macKey, 0x00, context, bits: bits)
            hostCryptogram = try Self.kdf(macKey, 0x01, context, bits: bits)
            chain = [UInt8](repeating: 0, count: 16)
        } else {
            macLength = 8
            func session(_ constant: [UInt8], _ key: [UInt8]) throws(CryptoError) -> [UInt8] {
                try BlockCipher.tripleDES.encrypt(constant + low + [UInt8](repeating: 0, count: 12), key: key)
            }
            let encryption = try session([0x01, 0x82], keys.keys[0])
            encryptionKey = encryption
            macKey = try session([0x01, 0x01], keys.keys[1])
            responseKey = []
            dataKey = try session([0x01, 0x81], keys.keys[2])
            // GPC E.4.2.3: with i=55, the first six octets of a MAC over the name.
            cardChallenge = option & 0x40 != 0 ? Array(try RetailMAC.authenticate(aid, key: macKey).prefix(6)) : random
            func cryptogram(_ data: [UInt8]) throws(CryptoError) -> [UInt8] {
                Array(try BlockCipher.tripleDES.encrypt(Padding.pad(data, to: 8), key: encryption).suffix(8))
            }
            cardCryptogram = try cryptogram(hostChallenge + low + cardChallenge)
            hostCryptogram = try cryptogram(low + cardChallenge + hostChallenge)
            chain = []
        }
    }

    /// EXTERNAL AUTHENTICATE.
    ///
    /// - Throws: `6300` for a wrong cryptogram, `6982` for a wrong MAC, `6A86` for a level that cannot be.
    mutating func authenticate(_ command: CardCommand) throws(StatusWord) {
        do throws(StatusWord) {
            guard stage == .challenged else { throw .conditionsNotSatisfied }
            guard command.data.count == 2 * macLength else { throw .wrongLength }
            let supported: Set<UInt8> =
                !isAES || option & 0x20 == 0
                ? [0x00, 0x01, 0x03]
                : option & 0x40 == 0 ? [0x00, 0x01, 0x03, 0x11, 0x13] : [0x00, 0x01, 0x03, 0x11, 0x13, 0x33]
            guard command.p2 == 0, supported.contains(command.p1) else { throw .wrongParameters }
            let clear = try check(command)
            guard equalInConstantTime(clear, hostCryptogram) else { throw .authenticationFailed }
            level = command.p1
            stage = .open
        } catch {
            stage = .aborted
            throw error
        }
    }

    /// The command without what protects it. A command that should be protected and is not, or whose MAC is wrong, ends the session.
    mutating func open(_ command: CardCommand) throws(StatusWord) -> CardCommand {
        guard stage == .open else { throw .securityNotSatisfied }
        do throws(StatusWord) {
            guard level & 0x01 != 0 else {
                guard command.cla & 0x04 == 0 else { throw .secureMessagingNotSupported }
                return command
            }
            guard command.cla & 0x04 != 0 else { throw .securityNotSatisfied }
            var clear = command
            clear.cla &= 0xFB
            if isAES {
                counter &+= 1
                clear.data = try check(command)
                if level & 0x02 != 0, !clear.data.isEmpty { clear.data = try decrypt(clear.data) }
            } else if level & 0x02 != 0, command.data.count > macLength {
                // The MAC is over the clear data.
                guard (command.data.count - macLength) % 8 == 0 else { throw .securityNotSatisfied }
                let data = try decrypt(Array(command.data.dropLast(macLength)))
                var inner = command
                inner.data = data + command.data.suffix(macLength)
                clear.data = try check(inner)
            } else {
                clear.data = try check(command)
            }
            return clear
        } catch {
            stage = .aborted
            throw error
        }
    }

    /// The reply as it leaves.
    func close(_ reply: CardReply) -> CardReply {
        let kind = reply.status.rawValue >> 8
        guard stage == .open, level & 0x10 != 0, reply.status == .success || kind == 0x62 || kind == 0x63 else { return reply }
        do throws(CryptoError) {
            var data = reply.data
            if level & 0x20 != 0, !data.isEmpty {
                let iv = try BlockCipher.aes.encrypt(counterBlock(first: 0x80), key: encryptionKey)
                data = try BlockCipher.aes.encrypt(Padding.pad(data, to: 16), key: encryptionKey, iv: iv)
            }
            let mac = try CMAC.authenticate(chain + data + reply.status.octets, key: responseKey)
            return CardReply(data + mac.prefix(macLength), reply.status)
        } catch {
            return CardReply([], .conditionsNotSatisfied)
        }
    }

    /// How much of an answer's 256 octets is left for data.
    var longestReply: Int {
        guard level & 0x10 != 0 else { return 256 }
        let room = 256 - macLength
        return level & 0x20 == 0 ? room : room / 16 * 16 - 1
    }

    /// What PUT KEY and STORE DATA carry encrypted (GPC E.4.7, Amendment D 6.2.8).
    func openSensitive(_ data: [UInt8]) throws(StatusWord) -> [UInt8] {
        do throws(CryptoError) {
            if isAES { return try BlockCipher.aes.decrypt(data, key: dataKey) }
            var clear: [UInt8] = []
            guard data.count % 8 == 0 else { throw CryptoError(code: .dataLength, detail: "") }
            for start in stride(from: 0, to: data.count, by: 8) {
                clear += try BlockCipher.tripleDES.decrypt(Array(data[start..<start + 8]), key: dataKey)
            }
            return clear
        } catch {
            throw .wrongData
        }
    }

    // MARK: - Cryptography

    /// Checks the MAC at the end of the data and moves the chain on.
    private mutating func check(_ command: CardCommand) throws(StatusWord) -> [UInt8] {
        guard command.data.count >= macLength else { throw .securityNotSatisfied }
        let data = Array(command.data.dropLast(macLength))
        let header = [
            (command.cla & 0xFC) | 0x04, command.ins, command.p1, command.p2, UInt8(truncatingIfNeeded: data.count + macLength),
        ]
        guard let full = try? mac(header + data),
            equalInConstantTime(Array(full.prefix(macLength)), Array(command.data.suffix(macLength)))
        else { throw .securityNotSatisfied }
        chain = full
        return data
    }

    private func mac(_ input: [UInt8]) throws(CryptoError) -> [UInt8] {
        if isAES { return try CMAC.authenticate(chain + input, key: macKey) }
        guard !chain.isEmpty else { return try RetailMAC.authenticate(input, key: macKey) }
        // MAC algorithm 3 with a vector: single DES in CBC up to the last block, that one by both halves.
        let single = Array(macKey.prefix(8))
        let vector = try BlockCipher.tripleDES.encrypt(chain, key: single)
        let padded = Padding.pad(input, to: 8)
        let first = Array(padded.dropLast(8))
        let state = first.isEmpty ? vector : Array(try BlockCipher.tripleDES.encrypt(first, key: single, iv: vector).suffix(8))
        return try BlockCipher.tripleDES.encrypt(Array(padded.suffix(8)), key: macKey, iv: state)
    }

    private func decrypt(_ data: [UInt8]) throws(StatusWord) -> [UInt8] {
        let padded: [UInt8]?
        if isAES {
            padded = try? BlockCipher.aes.decrypt(
                data, key: encryptionKey, iv: try BlockCipher.aes.encrypt(counterBlock(first: 0), key: encryptionKey))
        } else {
            padded = try? BlockCipher.tripleDES.decrypt(data, key: encryptionKey)
        }
        guard let padded, let clear = Padding.unpad(padded) else { throw .securityNotSatisfied }
        return clear
    }

    private func counterBlock(first: UInt8) -> [UInt8] {
        [first] + [UInt8](repeating: 0, count: 7)
            + (0..<8).reversed().map { UInt8(truncatingIfNeeded: counter >> UInt64(8 * $0)) }
    }

    /// Amendment D 4.1.5.
    private static func kdf(_ key: [UInt8], _ constant: UInt8, _ context: [UInt8], bits: UInt16) throws(CryptoError) -> [UInt8] {
        try CounterModeKDF.derive(key, constant: constant, context: context, bits: Int(bits))
    }
}
