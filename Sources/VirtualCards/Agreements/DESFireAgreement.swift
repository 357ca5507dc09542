// SPDX-License-Identifier: MIT

import CardCrypto

/// The card's end of an authentication of DESFire or NTAG 424 DNA, without files and rights around it: for a card that is played
/// from a recording.
package struct DESFireAgreement: Sendable {
    /// What an authentication within a transaction goes on with.
    package struct Transaction: Sendable {
        package var identifier: [UInt8]
        package var counter: UInt16

        package init(identifier: [UInt8], counter: UInt16) {
            self.identifier = identifier
            self.counter = counter
        }
    }

    private var handshake: DESFireCardHandshake

    /// - Parameters:
    ///   - code: `0A`, `1A`, `AA`, `71` or `77`.
    ///   - parameters: what follows it: the key's number, and PCDcap2 with its length for `71`.
    ///   - isLRP: whether the card is in LRP mode.
    ///   - cardCapabilities: PDcap2, six octets.
    ///   - transaction: for `77`.
    ///   - draw: gives that many random octets.
    /// - Throws: `917E` for a wrong length, `91AE` for a key that does not fit.
    package init(
        code: UInt8, parameters: [UInt8], key: [UInt8], isLRP: Bool, cardCapabilities: [UInt8], transaction: Transaction?,
        draw: (Int) -> [UInt8]
    ) throws(AgreementRefusal) {
        guard let number = parameters.first else { throw AgreementRefusal(DESFireRefusal.length) }
        let isAES = code != 0x0A && code != 0x1A
        let cipher: DESFireCipher =
            isAES ? .aes : key.count == 24 ? .threeKeyTripleDES : key.count == 8 ? .des : .twoKeyTripleDES
        guard key.count == cipher.keyLength, code != 0x0A || cipher != .threeKeyTripleDES else {
            throw AgreementRefusal(DESFireRefusal.authentication)
        }
        let inUse = DESFireCardKey(cipher, key).inUse
        handshake = DESFireCardHandshake(
            code: code, keyNumber: number, cipher: inUse.cipher, key: inUse.octets, rndB: [], challenge: [])
        handshake.isLRP = isLRP
        if cardCapabilities.count == 6 { handshake.cardCapabilities = cardCapabilities }
        if code == 0x71 {
            let capabilities = parameters.dropFirst(2)
            guard parameters.count >= 2, capabilities.count == Int(parameters[1]), capabilities.count <= 6 else {
                throw AgreementRefusal(DESFireRefusal.length)
            }
            handshake.capabilities = capabilities + [UInt8](repeating: 0, count: 6 - capabilities.count)
        }
        if let transaction {
            handshake.transaction = transaction.identifier
            handshake.counter = transaction.counter
        }
        handshake.challenge(with: draw(code == 0x0A ? 8 : inUse.cipher.randomLength))
    }

    /// The answer to the first command.
    package var challenge: [UInt8] { handshake.challenge }

    /// The answer to the second.
    ///
    /// - Throws: `91AE` when the reader does not know the key, `917E` for a wrong length.
    package func finish(_ token: [UInt8], draw: (Int) -> [UInt8]) throws(AgreementRefusal) -> [UInt8] {
        do throws(DESFireRefusal) {
            return try handshake.finish(token) { draw(4) }.proof
        } catch {
            throw AgreementRefusal(error)
        }
    }
}

/// An answer of DESFire as its channel sends it.
package struct DESFireSealing: Sendable {
    /// How an answer is protected.
    package enum Form: Sendable { case plain, maced, enciphered }

    /// The channel after the command, as far as an answer depends on it.
    package enum Channel: Sendable {
        case d40(key: [UInt8])
        case ev1(key: [UInt8], vector: [UInt8])
        /// `counter` is the command's own.
        case ev2(encryption: [UInt8], authentication: [UInt8], transaction: [UInt8], counter: UInt16)
        /// `key` is the one session key; `blocks` counts what was enciphered.
        case lrp(key: [UInt8], transaction: [UInt8], counter: UInt16, blocks: [UInt8])
    }

    /// The data of an answer, protected; frames of it are cut by whoever sends it.
    ///
    /// - Parameters:
    ///   - data: the plain data.
    ///   - command: the plain command: its code and parameters, which say how an enciphered answer is padded.
    ///   - status: SW2 of the whole answer.
    /// - Returns: nil when the keys cannot be used.
    package static func seal(
        _ data: [UInt8], to command: [UInt8], status: UInt8, form: Form, in channel: Channel
    ) -> [UInt8]? {
        guard let code = command.first else { return nil }
        let protection: DESFireProtection =
            switch form {
            case .plain: .plainFile
            case .maced: .macedFile
            case .enciphered: .encipheredFile
            }
        var parsed = DESFireCardCommand(
            code: code, header: Array(command.dropFirst()), body: [], protection: protection, dataLength: 0)
        parsed.answers = true
        var open: DESFireCardChannel
        switch channel {
        case .d40(let key): open = .d40(key)
        case .ev1(let key, let vector):
            // Without a MAC only the chain moves on.
            if form == .plain { return data }
            open = .ev1(vector.count == 16 ? .aes : .tripleDES, key: key, vector: vector)
        case .ev2(let encryption, let authentication, let transaction, let counter):
            open = .ev2(
                encryption: encryption, authentication: authentication, transaction: transaction, counter: counter)
        case .lrp(let key, let transaction, let counter, let blocks):
            guard let authentication = try? LRP(key: key), let encryption = try? LRP(key: key, updateNumber: 1) else {
                return nil
            }
            open = .lrp(
                encryption: encryption, authentication: authentication, transaction: transaction, counter: counter,
                blocks: blocks)
        }
        return open.seal(data, to: parsed, status: status)
    }
}
