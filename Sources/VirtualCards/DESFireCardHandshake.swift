// SPDX-License-Identifier: MIT

import CardCrypto

/// An authentication between the card's challenge and the reader's answer.
struct DESFireCardHandshake: Sendable {
    var code: UInt8
    var keyNumber: UInt8
    var cipher: DESFireCipher
    var key: [UInt8]
    var rndB: [UInt8]
    var challenge: [UInt8]
    var isLRP = false
    /// What `77` goes on with.
    var transaction: [UInt8] = []
    var counter: UInt16 = 0
    /// PCDcap2, as the reader gave it.
    var capabilities: [UInt8] = []
    /// PDcap2.
    var cardCapabilities = [UInt8](repeating: 0, count: 6)
}

extension DESFireCardMachine {
    /// The challenge for an authentication; nil when the command is none.
    mutating func begin(_ code: UInt8, _ parameters: [UInt8]) throws(DESFireRefusal) -> DESFireCardHandshake? {
        let isEV2 = code == 0x71 || code == 0x77
        switch code {
        case 0x0A where memory.model != .ntag424: break
        case 0x1A, 0xAA: if !memory.model.hasEV1Channel { throw .illegalCommand }
        case 0x71, 0x77: if !memory.model.hasEV2Channel { throw .illegalCommand }
        default: return nil
        }
        if memory.delayed > 0 {
            memory.delayed -= 1
            throw .authenticationDelay
        }
        let before = channel
        endSession()
        guard let keyNumber = parameters.first else { throw .length }
        var capabilities: [UInt8] = []
        if code == 0x71 {
            guard parameters.count >= 2, parameters.count == 2 + Int(parameters[1]), parameters[1] <= 6 else { throw .length }
            capabilities = Array(parameters.dropFirst(2))
        } else {
            guard parameters.count == 1 else { throw .length }
        }
        guard application.keys.indices.contains(Int(keyNumber)) else { throw .noSuchKey }
        let key = application.keys[Int(keyNumber)]
        let (cipher, octets) = key.inUse
        guard (code == 0xAA || isEV2) == (cipher == .aes), code != 0x0A || cipher != .threeKeyTripleDES else {
            throw .authentication
        }
        var handshake = DESFireCardHandshake(
            code: code, keyNumber: keyNumber, cipher: cipher, key: octets, rndB: [], challenge: [])
        if isEV2 {
            handshake.isLRP = memory.usesLRP
            // A card in LRP mode refuses the AES form for good, and the other way round (NT4H2421Gx 9.2.5).
            if code == 0x71, ((capabilities.first ?? 0) & 0x02 != 0) != memory.usesLRP { throw .permissionDenied }
            handshake.capabilities = capabilities + [UInt8](repeating: 0, count: 6 - capabilities.count)
            if code == 0x77 {
                switch before {
                case .ev2(_, _, let transaction, let counter), .lrp(_, _, let transaction, let counter, _):
                    handshake.transaction = transaction
                    handshake.counter = counter
                default: throw .permissionDenied
                }
            }
        }
        handshake.challenge(with: random.octets(code == 0x0A ? 8 : cipher.randomLength))
        return handshake
    }

    /// The card's proof; the channel is open when it goes out.
    mutating func finish(_ handshake: DESFireCardHandshake, _ sent: [UInt8]) throws(DESFireRefusal) -> [UInt8] {
        do {
            let (proof, opened) = try handshake.finish(sent) { random.octets(4) }
            channel = opened
            keyInUse = handshake.keyNumber
            memory.failures = 0
            return proof
        } catch {
            memory.failures += 1
            if memory.model != .d40, memory.model != .ev1, memory.failures >= 3 { memory.delayed = delay }
            throw error
        }
    }
}

extension DESFireCardHandshake {
    /// A handshake whose challenge is RndB under the key, or in clear with LRP.
    mutating func challenge(with rndB: [UInt8]) {
        self.rndB = rndB
        challenge = isLRP ? [0x01] + rndB : (try? cipher.blockCipher.encrypt(rndB, key: key)) ?? []
    }

    /// The card's proof, and the channel that is open when it goes out.
    ///
    /// - Parameter transactionIdentifier: draws TI, for the first authentication of a transaction.
    /// - Throws: `AE` when the reader does not know the key, `7E` for a wrong length.
    func finish(
        _ sent: [UInt8], transactionIdentifier: () -> [UInt8]
    ) throws(DESFireRefusal) -> (proof: [UInt8], channel: DESFireCardChannel) {
        try isLRP ? finishLRP(sent, transactionIdentifier) : finishCipher(sent, transactionIdentifier)
    }

    private func finishCipher(
        _ sent: [UInt8], _ transactionIdentifier: () -> [UInt8]
    ) throws(DESFireRefusal) -> (proof: [UInt8], channel: DESFireCardChannel) {
        let length = rndB.count
        guard sent.count == 2 * length else { throw .length }
        let isChained = code == 0x1A || code == 0xAA
        let block = cipher.blockLength
        let plain =
            code == 0x0A
            ? try? DecipheringCBC.open(sent, key: key)
            : try? cipher.blockCipher.decrypt(sent, key: key, iv: isChained ? Array(challenge.suffix(block)) : nil)
        guard let plain, Array(plain[length...]) == rotated(rndB) else { throw .authentication }
        let rndA = Array(plain[..<length])
        var proof = rotated(rndA)
        let channel: DESFireCardChannel
        switch code {
        case 0x0A, 0x1A, 0xAA:
            guard let session = try? DESFireSessionKeys.ev1(cipher, rndA: rndA, rndB: rndB) else { throw .authentication }
            channel =
                isChained
                ? .ev1(cipher.blockCipher, key: session, vector: [UInt8](repeating: 0, count: block)) : .d40(session)
        default:
            guard let session = try? DESFireSessionKeys.ev2(key: key, rndA: rndA, rndB: rndB) else { throw .authentication }
            let isFirst = code == 0x71
            let transaction = isFirst ? transactionIdentifier() : transaction
            if isFirst { proof = transaction + proof + cardCapabilities + capabilities }
            channel = .ev2(
                encryption: session.encryption, authentication: session.authentication, transaction: transaction,
                counter: isFirst ? 0 : counter)
        }
        let iv = isChained ? Array(sent.suffix(block)) : nil
        return ((try? cipher.blockCipher.encrypt(proof, key: key, iv: iv)) ?? [], channel)
    }

    private func finishLRP(
        _ sent: [UInt8], _ transactionIdentifier: () -> [UInt8]
    ) throws(DESFireRefusal) -> (proof: [UInt8], channel: DESFireCardChannel) {
        guard sent.count == 32 else { throw .length }
        let rndA = Array(sent[..<16])
        guard let session = try? DESFireSessionKeys.lrp(key: key, rndA: rndA, rndB: rndB),
            let authentication = try? LRP(key: session), let encryption = try? LRP(key: session, updateNumber: 1),
            sent[16...].elementsEqual(authentication.authenticate(rndA + rndB))
        else { throw .authentication }
        let isFirst = code == 0x71
        let transaction = isFirst ? transactionIdentifier() : transaction
        var blocks = [UInt8](repeating: 0, count: 4)
        var sealed: [UInt8] = []
        if isFirst {
            let plain = transaction + [0x02] + cardCapabilities.dropFirst() + capabilities
            sealed = (try? encryption.encrypt(plain, counter: &blocks)) ?? []
        }
        let channel = DESFireCardChannel.lrp(
            encryption: encryption, authentication: authentication, transaction: transaction,
            counter: isFirst ? 0 : counter, blocks: blocks)
        return (sealed + authentication.authenticate(rndB + rndA + sealed), channel)
    }

    private func rotated(_ octets: [UInt8]) -> [UInt8] { Array(octets.dropFirst()) + octets.prefix(1) }
}
