// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import Octets
import TagTransport

/// The terminal's side of PACE (ICAO 9303-11 4.4, BSI TR-03110): a state machine that does no input or output.
///
/// Begin with ``begin()``, carry out each action and hand its outcome back, until `agreed`.
struct PACE: Sendable {
    /// What is to be done next.
    enum Action: Sendable {
        case send(CommandAPDU)
        /// Draw so many random octets for the use that the label names.
        case draw(label: String, count: Int)
        case agreed(Outcome)
    }

    /// Keys for secure messaging, whose counter begins at zero, and what later protocols need to know.
    struct Outcome: Sendable {
        let encryptionKey: [UInt8]
        let authenticationKey: [UInt8]
        /// Comp(PK_IC), by which Terminal Authentication names the chip.
        let chipIdentity: [UInt8]
        /// The authorities that the chip trusts, objects 87 and 88.
        let authorityReferences: [[UInt8]]
        /// What chip authentication mapping has to prove.
        let chipProof: ChipProof?
    }

    /// CA_IC and the chip's public key of the mapping (9303-11 4.4.3.5).
    struct ChipProof: Sendable {
        let data: [UInt8]
        let mappingKey: [UInt8]
    }

    private enum State: Sendable {
        case new
        case awaitingSelection(withId: Bool, isSecond: Bool)
        case awaitingNonce
        case awaitingMappingRandom(nonce: [UInt8])
        case awaitingMappingKey(nonce: [UInt8], KeyAgreementKeyPair)
        case awaitingMappingAnswer(DomainParameters)
        case awaitingKeyRandom(DomainParameters, mappingKey: [UInt8]?)
        case awaitingKey(KeyAgreementKeyPair, mappingKey: [UInt8]?)
        case awaitingToken(Agreement)
        case over
    }

    private struct Agreement: Sendable {
        let pair: KeyAgreementKeyPair
        let chipKey: [UInt8]
        let encryptionKey: [UInt8]
        let authenticationKey: [UInt8]
        let mappingKey: [UInt8]?
    }

    let offer: PACEOffer
    private let access: PassportAccess
    private let takesReceivedForm: Bool
    private let passwordKey: [UInt8]
    private var state = State.new
    /// What the card said on the way that did not end the run, for the report.
    private(set) var remarks: [String] = []
    /// Whether the chip's key came with leading zeros, so that its token may be over either form (DH).
    private(set) var chipPadsItsKey = false

    /// - Parameter takesReceivedForm: whether the token is over the chip's DH key as it came, leading zeros included, in place of the minimal
    ///   form of 9303-11 9.4.3.
    /// - Throws: `CryptoError`.
    init(_ offer: PACEOffer, access: PassportAccess, takesReceivedForm: Bool = false) throws(CryptoError) {
        self.offer = offer
        self.access = access
        self.takesReceivedForm = takesReceivedForm
        passwordKey = try KeyDerivation.key(
            from: try access.secret(), counter: KeyDerivation.password, for: offer.algorithm)
    }

    /// The first action: MSE:Set AT.
    mutating func begin() throws(PACEError) -> Action {
        guard case .new = state else { throw fail(.outOfOrder, "PACE began before") }
        return select(withId: offer.needsParameterId, isSecond: false)
    }

    /// The answer to the command that was to be sent.
    mutating func received(_ response: ResponseAPDU) throws(PACEError) -> Action {
        do {
            switch state {
            case .awaitingSelection(let withId, let isSecond): return try selected(response, withId, isSecond)
            case .awaitingNonce:
                let nonce = try decrypted(try value(0x80, of: response, step: 1))
                state = .awaitingMappingRandom(nonce: nonce)
                return offer.mapping == .integrated
                    ? .draw(label: "pace.nonceIFD", count: offer.algorithm.keyLength)
                    : .draw(label: "pace.mapIFD", count: offer.parameters.randomLength)
            case .awaitingMappingKey(let nonce, let pair):
                let key = try value(0x82, of: response, step: 2)
                try checkForeign(key, pair)
                return drawKey(
                    in: try offer.parameters.genericMapping(nonce: nonce, keyPair: pair, publicKey: key), mappingKey: key)
            case .awaitingMappingAnswer(let parameters):
                // DO 82 has nothing in it; some chips leave it out.
                _ = try objects(of: response, step: 2)
                return drawKey(in: parameters, mappingKey: nil)
            case .awaitingKey(let pair, let mappingKey):
                return try agree(try value(0x84, of: response, step: 3), pair, mappingKey)
            case .awaitingToken(let agreement): return try finish(response, agreement)
            case .new, .awaitingMappingRandom, .awaitingKeyRandom, .over:
                throw PACEError(.outOfOrder, "an answer that PACE does not wait for")
            }
        } catch {
            throw failure(of: error)
        }
    }

    /// The random octets that were to be drawn.
    mutating func drew(_ octets: [UInt8]) throws(PACEError) -> Action {
        do {
            switch state {
            case .awaitingMappingRandom(let nonce) where offer.mapping == .integrated:
                state = .awaitingMappingAnswer(
                    try offer.parameters.integratedMapping(nonce: nonce, terminalNonce: octets, algorithm: offer.algorithm))
                return try general(TLV.encode(0x81, octets))
            case .awaitingMappingRandom(let nonce):
                let pair = try KeyAgreementKeyPair(offer.parameters, random: octets)
                state = .awaitingMappingKey(nonce: nonce, pair)
                return try general(TLV.encode(0x81, pair.publicKey))
            case .awaitingKeyRandom(let parameters, let mappingKey):
                let pair = try KeyAgreementKeyPair(parameters, random: octets)
                state = .awaitingKey(pair, mappingKey: mappingKey)
                return try general(TLV.encode(0x83, pair.publicKey))
            default: throw PACEError(.outOfOrder, "random bytes that PACE does not wait for")
            }
        } catch {
            throw failure(of: error)
        }
    }

    // MARK: Steps

    private mutating func select(withId: Bool, isSecond: Bool) -> Action {
        var data = TLV.encode(0x80, offer.identifierOctets) + TLV.encode(0x83, [access.reference])
        if withId, let number = offer.parameterId { data += TLV.encode(0x84, [UInt8(truncatingIfNeeded: number)]) }
        state = .awaitingSelection(withId: withId, isSecond: isSecond)
        return .send(CommandAPDU(cla: 0x00, ins: 0x22, p1: 0xC1, p2: 0xA4, data: Data(data)))
    }

    private mutating func selected(_ response: ResponseAPDU, _ withId: Bool, _ isSecond: Bool) throws -> Action {
        let word = response.statusWord
        switch word {
        case 0x9000: break
        case 0x63C0, 0x6983:
            throw PACEError(.passwordBlocked(word), "the \(access.name) is blocked: \(hexText(word)) to MSE:Set AT")
        case 0x63C1...0x63CF: remarks.append("\(word & 0x0F) tries are left for the \(access.name)")
        // Chips differ in whether they want the parameters named; 9303-11 wants it only where they are not clear.
        case 0x6A80, 0x6A88, 0x6985:
            guard !isSecond, offer.parameterId != nil else { fallthrough }
            remarks.append(
                "MSE:Set AT \(withId ? "with" : "without") parameters: \(hexText(word)); tried \(withId ? "without" : "with")")
            return select(withId: !withId, isSecond: true)
        default: throw PACEError(.selectionRefused(word), "\(hexText(word)) \(statusText(word)) to MSE:Set AT")
        }
        state = .awaitingNonce
        return try general([])
    }

    private func decrypted(_ cryptogram: [UInt8]) throws -> [UInt8] {
        let block = offer.algorithm.blockCipher.blockLength
        guard !cryptogram.isEmpty, cryptogram.count <= 64, cryptogram.count % block == 0 else {
            throw PACEError(.answer(step: 1), "a nonce of \(cryptogram.count) bytes is not whole blocks of \(block)")
        }
        return try offer.algorithm.blockCipher.decrypt(cryptogram, key: passwordKey)
    }

    private mutating func drawKey(in parameters: DomainParameters, mappingKey: [UInt8]?) -> Action {
        state = .awaitingKeyRandom(parameters, mappingKey: mappingKey)
        return .draw(label: "pace.skIFD", count: parameters.randomLength)
    }

    private mutating func agree(_ key: [UInt8], _ pair: KeyAgreementKeyPair, _ mappingKey: [UInt8]?) throws -> Action {
        try checkForeign(key, pair)
        let secret = try pair.sharedSecret(with: key)
        chipPadsItsKey = pair.parameters.minimalForm(of: key) != key
        let agreement = Agreement(
            pair: pair, chipKey: key,
            encryptionKey: try KeyDerivation.key(from: secret, counter: KeyDerivation.encryption, for: offer.algorithm),
            authenticationKey: try KeyDerivation.key(from: secret, counter: KeyDerivation.authentication, for: offer.algorithm),
            mappingKey: mappingKey)
        let signed = takesReceivedForm ? key : pair.parameters.minimalForm(of: key)
        let token = try token(over: signed, key: agreement.authenticationKey)
        state = .awaitingToken(agreement)
        return try general(TLV.encode(0x85, token), isLast: true)
    }

    private mutating func finish(_ response: ResponseAPDU, _ agreement: Agreement) throws -> Action {
        let objects = try objects(of: response, step: 4)
        let expected = try token(over: agreement.pair.publicKey, key: agreement.authenticationKey)
        guard let token = objects.first(where: { $0.tag == 0x86 }) else {
            throw PACEError(.answer(step: 4), "the card's answer to step 4 has no token")
        }
        guard equalInConstantTime(Array(token.value), expected) else {
            throw PACEError(.tokenWrong, "the card's token is wrong: it does not know the \(access.name)")
        }
        var proof: ChipProof?
        if offer.mapping == .chipAuthentication, let mappingKey = agreement.mappingKey {
            guard let sealed = objects.first(where: { $0.tag == 0x8A }) else {
                throw PACEError(.chipData, "chip authentication mapping without its proof, object 8A")
            }
            proof = ChipProof(data: try chipData(Array(sealed.value), key: agreement.encryptionKey), mappingKey: mappingKey)
        }
        state = .over
        return .agreed(
            Outcome(
                encryptionKey: agreement.encryptionKey, authenticationKey: agreement.authenticationKey,
                chipIdentity: try offer.parameters.compressed(publicKey: agreement.chipKey),
                authorityReferences: objects.filter { $0.tag == 0x87 || $0.tag == 0x88 }.map { Array($0.value) },
                chipProof: proof))
    }

    /// CA_IC: AES in CBC mode under KS_Enc, the initial vector being the encryption of -1 (9303-11 4.4.3.5.2).
    private func chipData(_ sealed: [UInt8], key: [UInt8]) throws -> [UInt8] {
        let vector = try BlockCipher.aes.encrypt([UInt8](repeating: 0xFF, count: 16), key: key)
        guard !sealed.isEmpty, sealed.count <= 128, sealed.count % 16 == 0,
            let data = Padding.unpad(try BlockCipher.aes.decrypt(sealed, key: key, iv: vector))
        else { throw PACEError(.chipData, "the proof of \(sealed.count) bytes in object 8A cannot be decrypted") }
        return data
    }

    // MARK: Pieces

    /// GENERAL AUTHENTICATE; all but the last are marked as one of a chain.
    private func general(_ object: [UInt8], isLast: Bool = false) throws -> Action {
        let data = TLV.encode(0x7C, object)
        return .send(
            try CommandAPDU(
                cla: isLast ? 0x00 : 0x10, ins: 0x86, p1: 0, p2: 0, data: Data(data), ne: data.count > 255 ? 65_536 : 256))
    }

    private func objects(of response: ResponseAPDU, step: Int) throws -> [TLV] {
        let word = response.statusWord
        guard response.isSuccess else {
            let text = "at step \(step): the card answered \(hexText(word))"
            switch word {
            case 0x63C0, 0x6983: throw PACEError(.passwordBlocked(word), "\(text), the \(access.name) is blocked")
            case 0x6300 where step == 4, 0x63C1...0x63CF:
                let left = word == 0x6300 ? "" : ", \(word & 0x0F) tries are left"
                throw PACEError(.passwordRefused(word), "\(text), it does not accept the \(access.name)\(left)")
            default: throw PACEError(.stepRefused(step: step, word), "\(text) \(statusText(word))")
            }
        }
        let octets = Array(response.data)
        guard let outer = try? TLV.first(in: octets[...]), outer.tag == 0x7C,
            let objects = try? outer.children(TLVRules(allowsFiller: false))
        else { throw PACEError(.answer(step: step), "the answer to step \(step) is no dynamic authentication data (7C)") }
        return objects
    }

    private func value(_ tag: UInt32, of response: ResponseAPDU, step: Int) throws -> [UInt8] {
        guard let object = try objects(of: response, step: step).first(where: { $0.tag == tag }) else {
            throw PACEError(
                .answer(step: step), "the answer to step \(step) has no object \(String(tag, radix: 16, uppercase: true))")
        }
        return Array(object.value)
    }

    private func checkForeign(_ key: [UInt8], _ pair: KeyAgreementKeyPair) throws {
        guard pair.parameters.minimalForm(of: key) != pair.publicKey else {
            throw PACEError(.publicKey, "the card sent the program's own public key back")
        }
    }

    /// The token over a public key: `7F49` with the protocol and the key (9303-11 4.4.3.4, 9.4.5).
    private func token(over key: [UInt8], key mac: [UInt8]) throws(CryptoError) -> [UInt8] {
        let object = TLV.encode(offer.parameters.kind == .elliptic ? 0x86 : 0x84, key)
        return try offer.algorithm.authenticationToken(
            TLV.encode(0x7F49, TLV.encode(0x06, offer.identifierOctets) + object), key: mac)
    }

    private mutating func failure(of error: any Error) -> PACEError {
        state = .over
        switch error {
        case let error as PACEError: return error
        case let error as CryptoError where error.code == .publicKey:
            return PACEError(.publicKey, "the card's public key must not be used: \(error.detail)")
        default: return PACEError(.cryptography, "\(error)")
        }
    }

    private mutating func fail(_ code: PACEError.Code, _ detail: String) -> PACEError {
        state = .over
        return PACEError(code, detail)
    }
}

extension PACE: CustomStringConvertible, CustomReflectable {
    var description: String { offer.name }
    /// Keys stay out of every rendering.
    var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension PACE.Outcome: CustomStringConvertible, CustomReflectable {
    var description: String { "PACE session keys" }
    var customMirror: Mirror { Mirror(self, children: [:]) }
}
