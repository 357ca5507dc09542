// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// The chip's end of one run of PACE (ICAO 9303-11 4.4): from the nonce to the channel.
struct CardPACE: Sendable {
    /// What a run came to.
    struct Outcome: Sendable {
        let channel: SecureChannel
        let password: PassportPassword
        /// Comp(PK_IC), by which Terminal Authentication names the chip.
        let chipIdentity: [UInt8]
    }

    private enum Step: Sendable {
        case nonce
        case mapping(nonce: [UInt8])
        case agreement(DomainParameters, mapping: KeyAgreementKeyPair?)
        case token(KeyAgreementKeyPair, peer: [UInt8], mapping: KeyAgreementKeyPair?)
    }

    let profile: PACEProfile
    let password: PassportPassword
    private let passwordKey: [UInt8]
    /// The chip's static key, for chip authentication mapping.
    private let staticKey: KeyAgreementKeyPair?
    private let authorityReferences: [[UInt8]]
    private let quirks: Set<PassportQuirk>
    private var step = Step.nonce

    /// - Parameter secret: the octets of the password that the key is derived from (9303-11 4.4.4, 9.7.2).
    init(
        _ profile: PACEProfile, _ password: PassportPassword, secret: [UInt8], staticKey: KeyAgreementKeyPair?,
        authorityReferences: [[UInt8]], quirks: Set<PassportQuirk>
    ) throws(CryptoError) {
        self.profile = profile
        self.password = password
        self.staticKey = staticKey
        self.authorityReferences = authorityReferences
        self.quirks = quirks
        passwordKey = try KeyDerivation.key(from: secret, counter: KeyDerivation.password, for: profile.algorithm)
    }

    /// Whether the next command is the last one, which is not marked as one of a chain.
    var isAtToken: Bool { if case .token = step { true } else { false } }

    /// Answers a GENERAL AUTHENTICATE.
    ///
    /// - Parameters:
    ///   - data: its dynamic authentication data, `7C`.
    ///   - draw: the chip's random source.
    /// - Returns: what goes into the answer's `7C`, and the outcome of the last step.
    /// - Throws: `6A80` for data that is none, `6300` for a key or a token that is wrong.
    mutating func answer(_ data: [UInt8], draw: (Int) -> [UInt8]) throws(StatusWord) -> (octets: [UInt8], outcome: Outcome?) {
        guard let outer = try? TLV.first(in: data[...]), outer.tag == 0x7C, outer.headerLength + outer.value.count == data.count,
            let objects = try? outer.children(TLVRules(allowsFiller: false)), objects.count <= 1
        else { throw .wrongData }
        do {
            switch step {
            case .nonce:
                guard objects.isEmpty else { throw StatusWord.wrongData }
                return (try nonce(draw), nil)
            case .mapping(let nonce): return (try map(try Self.value(objects, 0x81), nonce, draw), nil)
            case .agreement(let parameters, let mapping):
                return (try agree(try Self.value(objects, 0x83), in: parameters, mapping, draw), nil)
            case .token(let pair, let peer, let mapping):
                return try finish(try Self.value(objects, 0x85), pair, peer, mapping)
            }
        } catch let error as StatusWord {
            throw error
        } catch {
            // A public key that must not be used, or libcrypto failed.
            throw .authenticationFailed
        }
    }

    private mutating func nonce(_ draw: (Int) -> [UInt8]) throws -> [UInt8] {
        let isLong = profile.mapping == .integrated ? profile.algorithm.keyLength > 16 : quirks.contains(.longNonce)
        let nonce = draw(isLong ? 32 : 16)
        step = .mapping(nonce: nonce)
        return TLV.encode(0x80, try profile.algorithm.blockCipher.encrypt(nonce, key: passwordKey))
    }

    private mutating func map(_ value: [UInt8], _ nonce: [UInt8], _ draw: (Int) -> [UInt8]) throws -> [UInt8] {
        let parameters = profile.parameters
        guard profile.mapping != .integrated else {
            guard value.count == profile.algorithm.keyLength else { throw StatusWord.wrongData }
            step = .agreement(
                try parameters.integratedMapping(nonce: nonce, terminalNonce: value, algorithm: profile.algorithm), mapping: nil)
            return TLV.encode(0x82, [])
        }
        let pair = try KeyAgreementKeyPair(parameters, random: draw(parameters.randomLength))
        guard parameters.minimalForm(of: value) != pair.publicKey else { throw StatusWord.authenticationFailed }
        let mapped = try parameters.genericMapping(nonce: nonce, keyPair: pair, publicKey: value)
        step = .agreement(mapped, mapping: pair)
        return TLV.encode(0x82, sent(pair.publicKey))
    }

    private mutating func agree(
        _ peer: [UInt8], in parameters: DomainParameters, _ mapping: KeyAgreementKeyPair?, _ draw: (Int) -> [UInt8]
    ) throws -> [UInt8] {
        let pair = try KeyAgreementKeyPair(parameters, random: draw(parameters.randomLength))
        try parameters.validate(publicKey: peer)
        guard parameters.minimalForm(of: peer) != pair.publicKey else { throw StatusWord.authenticationFailed }
        step = .token(pair, peer: peer, mapping: mapping)
        return TLV.encode(0x84, sent(pair.publicKey))
    }

    private func finish(
        _ token: [UInt8], _ pair: KeyAgreementKeyPair, _ peer: [UInt8], _ mapping: KeyAgreementKeyPair?
    ) throws -> ([UInt8], Outcome?) {
        let channel = try SecureChannel(profile.algorithm, sharedSecret: try pair.sharedSecret(with: peer))
        guard equalInConstantTime(try self.token(over: pair.publicKey, channel), token), !quirks.contains(.neverPACE) else {
            throw StatusWord.authenticationFailed
        }
        var answer = TLV.encode(0x86, try self.token(over: profile.parameters.minimalForm(of: peer), channel))
        // The newest authority that the chip knows, and the one before it (BSI TR-03110 part 3, B.1).
        for (tag, reference) in zip([UInt32(0x87), 0x88], authorityReferences.suffix(2).reversed()) {
            answer += TLV.encode(tag, reference)
        }
        if profile.mapping == .chipAuthentication, let staticKey, let mapping {
            let data = try staticKey.chipAuthenticationData(for: mapping)
            // 9303-11 4.4.3.5.2: under KS_Enc, the initial vector being the encryption of -1.
            let vector = try BlockCipher.aes.encrypt([UInt8](repeating: 0xFF, count: 16), key: channel.encryptionKey)
            let sealed = try BlockCipher.aes.encrypt(Padding.pad(data, to: 16), key: channel.encryptionKey, iv: vector)
            answer += TLV.encode(0x8A, sealed)
        }
        let identity = try profile.parameters.compressed(publicKey: pair.publicKey)
        return (answer, Outcome(channel: channel, password: password, chipIdentity: identity))
    }

    /// The token over a public key: `7F49` with the protocol and the key (9303-11 4.4.3.4, 9.4.5).
    private func token(over publicKey: [UInt8], _ channel: SecureChannel) throws(CryptoError) -> [UInt8] {
        let tag: UInt32 = profile.parameters.kind == .elliptic ? 0x86 : 0x84
        let data = TLV.encode(0x7F49, TLV.encode(0x06, profile.objectIdentifier) + TLV.encode(tag, publicKey))
        return try profile.algorithm.authenticationToken(data, key: channel.authenticationKey)
    }

    private func sent(_ publicKey: [UInt8]) -> [UInt8] {
        guard quirks.contains(.paddedKeys), publicKey.count < profile.parameters.fieldLength else { return publicKey }
        return [UInt8](repeating: 0, count: profile.parameters.fieldLength - publicKey.count) + publicKey
    }

    private static func value(_ objects: [TLV], _ tag: UInt32) throws(StatusWord) -> [UInt8] {
        guard let object = objects.first, object.tag == tag else { throw .wrongData }
        return Array(object.value)
    }
}

/// What opens a chip by PACE; the raw values are those of MSE:Set AT (9303-11 4.4.4.1).
enum PassportPassword: UInt8, Sendable, Hashable, CaseIterable {
    case mrz = 1
    case can = 2
    case pin = 3
    case puk = 4
}
