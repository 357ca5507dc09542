// SPDX-License-Identifier: MIT

import CardCrypto

/// The ways to authenticate.
public enum DESFireAuthentication: String, Sendable, Hashable, Codable, CaseIterable {
    /// `0A`: the D40 channel, DES or two-key triple DES.
    case legacy
    /// `1A`: the EV1 channel with DES or triple DES.
    case iso
    /// `AA`: the EV1 channel with AES.
    case aes
    /// `71`: the EV2 channel, a new transaction.
    case ev2First
    /// `77`: the EV2 channel, going on with the transaction.
    case ev2NonFirst
    /// `71` with the leakage resilient primitive.
    case lrpFirst
    /// `77` with the leakage resilient primitive.
    case lrpNonFirst

    /// The way that fits a key where the caller does not say: the newest channel that every card with such a key has.
    public init(for cipher: DESFireCipher) { self = cipher == .aes ? .aes : .iso }

    var code: DESFireCommandCode {
        switch self {
        case .legacy: .authenticateLegacy
        case .iso: .authenticateISO
        case .aes: .authenticateAES
        case .ev2First, .lrpFirst: .authenticateEV2First
        case .ev2NonFirst, .lrpNonFirst: .authenticateEV2NonFirst
        }
    }

    var isEV2: Bool { code == .authenticateEV2First || code == .authenticateEV2NonFirst }
    var isLRP: Bool { self == .lrpFirst || self == .lrpNonFirst }
}

/// The three passes of an authentication as the reader has them: the card's challenge in, the reader's cryptogram out, the card's
/// proof in, a channel out.
struct DESFireHandshake: Sendable {
    let method: DESFireAuthentication
    let key: DESFireKey
    /// ``randomLength`` octets.
    let rndA: [UInt8]
    /// The transaction that `77` goes on with.
    var continued: EV2Channel?

    private var rndB: [UInt8] = []
    /// The last block that travelled, which the chain of `1A` and `AA` goes on with.
    private var vector: [UInt8] = []
    /// PDcap2 and PCDcap2 of the card's answer to `71`.
    private(set) var capabilities: [UInt8] = []

    init(method: DESFireAuthentication, key: DESFireKey, rndA: [UInt8], continued: EV2Channel? = nil) {
        self.method = method
        self.key = key
        self.rndA = rndA
        self.continued = continued
    }

    /// Octets of RndA.
    static func randomLength(_ method: DESFireAuthentication, _ key: DESFireKey) -> Int {
        method == .legacy ? 8 : key.effectiveCipher.randomLength
    }

    /// The answer to the card's challenge.
    mutating func respond(to challenge: [UInt8]) throws(DESFireChannelError) -> [UInt8] {
        let length = rndA.count
        let key = key
        if method.isLRP {
            guard challenge.count == 17, challenge[0] == 0x01 else {
                throw DESFireChannelError(.handshakeLength, "the card's challenge has \(challenge.count) bytes and is not of LRP")
            }
            rndB = Array(challenge.dropFirst())
            return rndA + (try lrpSession().authenticate(rndA + rndB))
        }
        guard challenge.count == length else {
            throw DESFireChannelError(.handshakeLength, "the card's challenge has \(challenge.count) bytes, not \(length)")
        }
        rndB = try crypto { () throws(CryptoError) in
            try key.effectiveCipher.blockCipher.decrypt(challenge, key: key.effectiveOctets)
        }
        let both = rndA + rotated(rndB)
        let block = key.effectiveCipher.blockLength
        let chain = Array(challenge.suffix(block))
        let sent = try crypto { () throws(CryptoError) in
            switch method {
            case .legacy: try DecipheringCBC.seal(both, key: key.effectiveOctets)
            case .iso, .aes: try key.effectiveCipher.blockCipher.encrypt(both, key: key.effectiveOctets, iv: chain)
            default: try BlockCipher.aes.encrypt(both, key: key.octets)
            }
        }
        vector = Array(sent.suffix(block))
        return sent
    }

    /// The channel, when the card proved that it knows the key.
    mutating func finish(_ proof: [UInt8]) throws(DESFireChannelError) -> DESFireChannel {
        switch method {
        case .legacy, .iso, .aes: return try finishEV1(proof)
        case .ev2First, .ev2NonFirst: return .ev2(try finishEV2(proof))
        case .lrpFirst, .lrpNonFirst: return .ev2(try finishLRP(proof))
        }
    }

    /// What the key log gets: names and octets.
    private(set) var sessionKeys: [(name: String, octets: [UInt8])] = []

    private mutating func finishEV1(_ proof: [UInt8]) throws(DESFireChannelError) -> DESFireChannel {
        let (method, vector) = (method, vector)
        let plain = try decrypted(proof, length: rndA.count, iv: method == .legacy ? nil : vector)
        try require(plain == rotated(rndA))
        let (cipher, rndA, rndB) = (key.effectiveCipher, rndA, rndB)
        let session = try crypto { () throws(CryptoError) in
            try DESFireSessionKeys.ev1(cipher, rndA: rndA, rndB: rndB)
        }
        sessionKeys = [("desfire.sessionKey", session)]
        return method == .legacy ? .d40(D40Channel(key: session)) : .ev1(EV1Channel(cipher: cipher.blockCipher, key: session))
    }

    private mutating func finishEV2(_ proof: [UInt8]) throws(DESFireChannelError) -> EV2Channel {
        let isFirst = method == .ev2First
        let plain = try decrypted(proof, length: isFirst ? 32 : 16, iv: nil)
        try require(Array(isFirst ? plain[4..<20] : plain[...]) == rotated(rndA))
        let (key, rndA, rndB) = (key.octets, rndA, rndB)
        let session = try crypto { () throws(CryptoError) in
            try DESFireSessionKeys.ev2(key: key, rndA: rndA, rndB: rndB)
        }
        sessionKeys = [("desfire.sessionENC", session.encryption), ("desfire.sessionMAC", session.authentication)]
        if isFirst { capabilities = Array(plain[20...]) }
        return EV2Channel(
            cipher: .aes(encryption: session.encryption, authentication: session.authentication),
            transaction: isFirst ? Array(plain[..<4]) : continued?.transaction ?? [], counter: continued?.counter ?? 0)
    }

    private mutating func finishLRP(_ proof: [UInt8]) throws(DESFireChannelError) -> EV2Channel {
        let isFirst = method == .lrpFirst
        guard proof.count == (isFirst ? 32 : 16) else {
            throw DESFireChannelError(.handshakeLength, "the card's proof has \(proof.count) bytes")
        }
        let authentication = try lrpSession()
        let sealed = Array(proof.dropLast(16))
        try require(equalInConstantTime(Array(proof.suffix(16)), authentication.authenticate(rndB + rndA + sealed)))
        let key = try sessionKey()
        var count = [UInt8](repeating: 0, count: 4)
        do {
            let encryption = try LRP(key: key, updateNumber: 1)
            let plain = try encryption.decrypt(sealed, counter: &count)
            if isFirst { capabilities = Array(plain[4...]) }
            sessionKeys = [("desfire.sessionKey", key)]
            return EV2Channel(
                cipher: .lrp(encryption: encryption, authentication: authentication, counter: count),
                transaction: isFirst ? Array(plain[..<4]) : continued?.transaction ?? [], counter: continued?.counter ?? 0)
        } catch {
            throw DESFireChannelError(.cryptography, error.detail)
        }
    }

    private func sessionKey() throws(DESFireChannelError) -> [UInt8] {
        try crypto { () throws(CryptoError) in try DESFireSessionKeys.lrp(key: key.octets, rndA: rndA, rndB: rndB) }
    }

    private func lrpSession() throws(DESFireChannelError) -> LRP {
        let session = try sessionKey()
        return try crypto { () throws(CryptoError) in try LRP(key: session) }
    }

    private func decrypted(_ proof: [UInt8], length: Int, iv: [UInt8]?) throws(DESFireChannelError) -> [UInt8] {
        guard proof.count == length else {
            throw DESFireChannelError(.handshakeLength, "the card's proof has \(proof.count) bytes, not \(length)")
        }
        return try crypto { () throws(CryptoError) in
            try key.effectiveCipher.blockCipher.decrypt(proof, key: key.effectiveOctets, iv: iv)
        }
    }

    private func require(_ isProof: Bool) throws(DESFireChannelError) {
        guard isProof else { throw DESFireChannelError(.proofWrong, "the card did not prove that it knows the key") }
    }

    private func rotated(_ octets: [UInt8]) -> [UInt8] { Array(octets.dropFirst()) + octets.prefix(1) }
}
