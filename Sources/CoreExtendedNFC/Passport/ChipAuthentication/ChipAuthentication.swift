// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import Octets
import TagTransport

/// One way of Chip Authentication that DG14 offers: a protocol and the chip's static key (ICAO 9303-11 6.2, 9.2.5, 9.2.6).
struct ChipAuthenticationOffer: Sendable {
    /// The octets of the protocol's object identifier.
    let identifierOctets: [UInt8]
    let algorithm: KeyDerivation.Algorithm
    let publicKey: KeyAgreementPublicKey
    /// The key's number where it has to be named: the chip has several.
    let keyId: Int?

    /// `ECDH, AES-128, brainpoolP256r1`.
    var name: String {
        "\(publicKey.parameters.kind == .elliptic ? "ECDH" : "DH"), \(algorithm.name), \(publicKey.parameters.name)"
    }

    /// What DG14 offers, AES before triple DES; and why the others cannot be used.
    static func offers(in infos: [SecurityInfo]) -> (usable: [ChipAuthenticationOffer], unusable: [String]) {
        var usable: [ChipAuthenticationOffer] = []
        var unusable: [String] = []
        let keys = infos.compactMap { info -> (ChipAuthenticationPublicKeyInfo, SecurityInfo)? in
            if case .chipAuthenticationPublicKey(let content) = info.content { (content, info) } else { nil }
        }
        for (key, info) in keys {
            let publicKey: KeyAgreementPublicKey
            do { publicKey = try KeyAgreementPublicKey(info) } catch {
                unusable.append("Chip Authentication key: \(error.detail)")
                continue
            }
            var ciphers: [KeyDerivation.Algorithm] = infos.compactMap { info in
                guard case .chipAuthentication(let content) = info.content, content.keyAgreement == key.keyAgreement,
                    content.keyId == nil || key.keyId == nil || content.keyId == key.keyId
                else { return nil }
                return content.cipher
            }
            // Chips of the first years leave the info out: triple DES (9303-11 6.2.3).
            if ciphers.isEmpty { ciphers = [.tripleDES] }
            for cipher in ciphers {
                let arc = [.tripleDES: 1, .aes128: 2, .aes192: 3, .aes256: 4][cipher] ?? 1
                let agreement: UInt8 = publicKey.parameters.kind == .elliptic ? 2 : 1
                usable.append(
                    ChipAuthenticationOffer(
                        identifierOctets: [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x03, agreement, UInt8(arc)],
                        algorithm: cipher,
                        publicKey: publicKey, keyId: keys.count > 1 ? key.keyId : nil))
            }
        }
        let order = usable.enumerated().sorted { left, right in
            (left.element.algorithm == .tripleDES ? 1 : 0, left.offset) < (
                right.element.algorithm == .tripleDES ? 1 : 0, right.offset
            )
        }
        return (order.map(\.element), unusable)
    }
}

extension KeyAgreementPublicKey {
    /// The key of a ChipAuthenticationPublicKeyInfo.
    init(_ info: SecurityInfo) throws(CryptoError) {
        guard let sequence = try? TLV.first(in: Array(info.raw)[...]), let fields = try? sequence.children(), fields.count >= 2
        else {
            throw CryptoError(code: .encoding, detail: "no SubjectPublicKeyInfo")
        }
        try self.init(subjectPublicKeyInfo: TLV.encode(fields[1].tag, fields[1].value))
    }
}

/// The terminal's side of Chip Authentication version 1 (ICAO 9303-11 6.2): a state machine that does no input or output. Its
/// commands go through secure messaging; the new keys hold from the next command after `agreed` on.
struct ChipAuthentication: Sendable {
    enum Action: Sendable {
        case send(CommandAPDU)
        case draw(label: String, count: Int)
        case agreed(encryptionKey: [UInt8], authenticationKey: [UInt8])
    }

    private enum State: Sendable {
        case new
        case awaitingRandom
        /// MSE:Set KAT, the one command of triple DES.
        case awaitingKeyCommand(KeyAgreementKeyPair)
        case awaitingSelection(KeyAgreementKeyPair)
        case awaitingAgreement(KeyAgreementKeyPair)
        case over
    }

    let offer: ChipAuthenticationOffer
    private var state = State.new
    /// The terminal's ephemeral public key, compressed: what Terminal Authentication signs.
    private(set) var terminalIdentity: [UInt8] = []
    private(set) var remarks: [String] = []

    init(_ offer: ChipAuthenticationOffer) { self.offer = offer }

    mutating func begin() throws(ChipAuthenticationError) -> Action {
        guard case .new = state else { throw fail(.outOfOrder, "Chip Authentication began before") }
        state = .awaitingRandom
        return .draw(label: "ca.skIFD", count: offer.publicKey.parameters.randomLength)
    }

    mutating func drew(_ octets: [UInt8]) throws(ChipAuthenticationError) -> Action {
        guard case .awaitingRandom = state else {
            throw fail(.outOfOrder, "random bytes that Chip Authentication does not wait for")
        }
        do {
            let pair = try KeyAgreementKeyPair(offer.publicKey.parameters, random: octets)
            terminalIdentity = try offer.publicKey.parameters.compressed(publicKey: pair.publicKey)
            guard offer.algorithm == .tripleDES else { return select(pair) }
            state = .awaitingKeyCommand(pair)
            return try command(0x22, 0x41, 0xA6, TLV.encode(0x91, pair.publicKey) + keyReference)
        } catch {
            throw fail(.cryptography, "\(error)")
        }
    }

    /// The plain answer to the command that was to be sent.
    mutating func received(_ response: ResponseAPDU) throws(ChipAuthenticationError) -> Action {
        let word = response.statusWord
        do {
            switch state {
            case .awaitingKeyCommand(let pair):
                if response.isSuccess { return try agree(pair) }
                // Some chips take the two commands of AES for triple DES too.
                remarks.append("MSE:Set KAT: \(hexText(word)); tried MSE:Set AT and GENERAL AUTHENTICATE")
                return select(pair)
            case .awaitingSelection(let pair):
                guard response.isSuccess else {
                    throw ChipAuthenticationError(.refused(word), "\(hexText(word)) \(statusText(word)) to MSE:Set AT")
                }
                state = .awaitingAgreement(pair)
                return try command(0x86, 0, 0, TLV.encode(0x7C, TLV.encode(0x80, pair.publicKey)), ne: 256)
            case .awaitingAgreement(let pair):
                guard response.isSuccess else {
                    throw ChipAuthenticationError(.refused(word), "\(hexText(word)) \(statusText(word)) to GENERAL AUTHENTICATE")
                }
                return try agree(pair)
            case .new, .awaitingRandom, .over:
                throw ChipAuthenticationError(.outOfOrder, "an answer that Chip Authentication does not wait for")
            }
        } catch let error as ChipAuthenticationError {
            state = .over
            throw error
        } catch {
            throw fail(.cryptography, "\(error)")
        }
    }

    private mutating func select(_ pair: KeyAgreementKeyPair) -> Action {
        state = .awaitingSelection(pair)
        let data = TLV.encode(0x80, offer.identifierOctets) + keyReference
        return .send(CommandAPDU(cla: 0, ins: 0x22, p1: 0x41, p2: 0xA4, data: Data(data)))
    }

    private mutating func agree(_ pair: KeyAgreementKeyPair) throws -> Action {
        let secret = try pair.sharedSecret(with: offer.publicKey.octets)
        state = .over
        return .agreed(
            encryptionKey: try KeyDerivation.key(from: secret, counter: KeyDerivation.encryption, for: offer.algorithm),
            authenticationKey: try KeyDerivation.key(from: secret, counter: KeyDerivation.authentication, for: offer.algorithm))
    }

    private func command(_ ins: UInt8, _ p1: UInt8, _ p2: UInt8, _ data: [UInt8], ne: Int? = nil) throws(APDUError) -> Action {
        .send(try CommandAPDU(cla: 0, ins: ins, p1: p1, p2: p2, data: Data(data), ne: ne))
    }

    private var keyReference: [UInt8] {
        offer.keyId.map { TLV.encode(0x84, DER.integer([UInt8(truncatingIfNeeded: $0)]).dropFirst(2)) } ?? []
    }

    private mutating func fail(_ code: ChipAuthenticationError.Code, _ detail: String) -> ChipAuthenticationError {
        state = .over
        return ChipAuthenticationError(code, detail)
    }
}

extension ChipAuthentication: CustomStringConvertible, CustomReflectable {
    var description: String { "Chip Authentication, \(offer.name)" }
    /// Keys stay out of every rendering.
    var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Why Chip Authentication did not come to its end. Equality is on the code.
struct ChipAuthenticationError: DetailedError {
    enum Code: Sendable, Hashable {
        /// The card's side.
        case refused(UInt16)
        /// The program's side.
        case outOfOrder
        case cryptography
    }

    let code: Code
    let detail: String

    init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}
