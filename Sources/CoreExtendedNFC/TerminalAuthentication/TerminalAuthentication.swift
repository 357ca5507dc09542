// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
public import Octets
public import TagTransport

/// The terminal's side of Terminal Authentication version 1 (ICAO 9303-11 7.1, BSI TR-03110 part 1 3.5): a state machine that does no
/// input or output.
///
/// It follows Chip Authentication, inside the channel that that opened. Begin with ``begin()``, carry out each action and hand its
/// outcome back, until `finished`; what is thrown tells why the chip did not take the terminal.
public struct TerminalAuthentication: Sendable {
    /// What is to be done next.
    public enum Action: Sendable {
        /// Certificates may be too long for a short command: send it in the extended form, or as a chain.
        case send(CommandAPDU)
        /// Draw that many octets (`ta.signature`) for the signature; none for RSA v1.5, for which this action does not come.
        case drawRandom(Int)
        /// The chip took the terminal.
        case finished
    }

    private enum State: Sendable {
        case new
        case awaitingReference(at: Int)
        case awaitingVerification(at: Int)
        case awaitingTerminal
        case awaitingChallenge
        case awaitingRandom(challenge: [UInt8])
        case awaitingVerdict
        case over
    }

    private var state = State.new
    private let credentials: TerminalCredentials
    private let chain: [CVCertificate]
    private let chipIdentity: [UInt8]
    private let compressedKey: [UInt8]

    /// - Parameters:
    ///   - references: of the authorities whose keys the chip has: from EF.CVCA (``references(inCVCA:)``) or the last step of PACE.
    ///   - chipIdentity: ID_PICC: the document number with its check digit as BAC has it, or the compressed ephemeral key of the chip
    ///     in PACE (``compressPoint(_:)``).
    ///   - compressedKey: the terminal's ephemeral key of Chip Authentication, compressed.
    /// - Throws: ``TerminalAuthenticationError`` with the code `noChain`.
    public init(
        credentials: TerminalCredentials, references: [[UInt8]], chipIdentity: [UInt8], compressedKey: [UInt8]
    ) throws(TerminalAuthenticationError) {
        guard let chain = credentials.chain(from: references) else {
            let known = references.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ", ")
            throw TerminalAuthenticationError(
                .noChain, "no certificate given was issued by an authority that the chip knows: \(known)")
        }
        self.credentials = credentials
        self.chain = chain
        self.chipIdentity = chipIdentity
        self.compressedKey = compressedKey
    }

    /// The first action: MSE:Set DST for the first certificate.
    public mutating func begin() throws(TerminalAuthenticationError) -> Action {
        guard case .new = state else { throw outOfOrder() }
        return try nameAuthority(at: 0)
    }

    /// The answer to the command that was to be sent.
    public mutating func received(_ response: ResponseAPDU) throws(TerminalAuthenticationError) -> Action {
        let word = response.statusWord
        switch state {
        case .awaitingReference(let index):
            guard response.isSuccess else {
                throw fail(
                    .referenceRefused(word), "\(shown(word)) to the authority reference \(text(chain[index].authorityReference))")
            }
            state = .awaitingVerification(at: index)
            return .send(
                CommandAPDU(cla: 0, ins: 0x2A, p1: 0x00, p2: 0xBE, data: Data(chain[index].bodyAndSignature)))
        case .awaitingVerification(let index):
            guard response.isSuccess else {
                throw fail(
                    .certificateRefused(word), "\(shown(word)) to the certificate of \(text(chain[index].holderReference))")
            }
            if index + 1 < chain.count { return try nameAuthority(at: index + 1) }
            state = .awaitingTerminal
            let reference = TLV.encode(0x83, credentials.holderReference)
            return .send(CommandAPDU(cla: 0, ins: 0x22, p1: 0x81, p2: 0xA4, data: Data(reference)))
        case .awaitingTerminal:
            guard response.isSuccess else {
                throw fail(
                    .referenceRefused(word), "\(shown(word)) to the terminal's reference \(text(credentials.holderReference))")
            }
            state = .awaitingChallenge
            return .send(CommandAPDU(cla: 0, ins: 0x84, p1: 0, p2: 0, le: 8))
        case .awaitingChallenge:
            guard response.isSuccess, response.data.count == 8 else {
                throw fail(
                    .challengeRefused(word), "\(shown(word)) and \(response.data.count) bytes to GET CHALLENGE, 8 were asked for")
            }
            let challenge = Array(response.data)
            let length = credentials.scheme.randomLength(for: credentials.key.publicKey)
            state = .awaitingRandom(challenge: challenge)
            return length == 0 ? try drew([]) : .drawRandom(length)
        case .awaitingVerdict:
            guard response.isSuccess else {
                throw fail(.signatureRefused(word), "\(shown(word)) to the terminal's signature")
            }
            state = .over
            return .finished
        case .new, .awaitingRandom, .over: throw outOfOrder()
        }
    }

    /// The octets that were to be drawn.
    public mutating func drew(_ random: [UInt8]) throws(TerminalAuthenticationError) -> Action {
        guard case .awaitingRandom(let challenge) = state else { throw outOfOrder() }
        do {
            let signature = try credentials.key.sign(
                chipIdentity + challenge + compressedKey, by: credentials.scheme, random: random)
            state = .awaitingVerdict
            return .send(CommandAPDU(cla: 0, ins: 0x82, p1: 0, p2: 0, data: Data(signature)))
        } catch { throw fail(.cryptography, error.detail) }
    }

    private mutating func nameAuthority(at index: Int) throws(TerminalAuthenticationError) -> Action {
        guard index < chain.count, let reference = chain[index].authorityReference else { throw outOfOrder() }
        state = .awaitingReference(at: index)
        return .send(CommandAPDU(cla: 0, ins: 0x22, p1: 0x81, p2: 0xB6, data: Data(TLV.encode(0x83, reference))))
    }

    private mutating func fail(_ code: TerminalAuthenticationError.Code, _ detail: String) -> TerminalAuthenticationError {
        state = .over
        return TerminalAuthenticationError(code, detail)
    }

    private mutating func outOfOrder() -> TerminalAuthenticationError {
        fail(.outOfOrder, "a step that Terminal Authentication does not wait for")
    }

    private func text(_ reference: [UInt8]?) -> String { String(decoding: reference ?? [], as: UTF8.self) }
    private func shown(_ word: UInt16) -> String { "\(hexText(word)) \(statusText(word))" }
}

extension TerminalAuthentication {
    /// The authority references of EF.CVCA: `42 L ..` once or twice, then zeros (ICAO 9303-11 7.1.5). The first is the newest.
    ///
    /// - Throws: ``LDSError``.
    public static func references(inCVCA file: [UInt8]) throws(LDSError) -> [[UInt8]] {
        try understanding("EF.CVCA") { () throws(DataObjectError) in
            var references: [[UInt8]] = []
            var rest = file[...]
            while references.count < 2, rest.first == 0x42 {
                let object = try DataObject(inFile: rest, tag: 0x42)
                references.append(Array(object.value))
                rest = rest[object.value.endIndex...]
            }
            guard !references.isEmpty else {
                throw DataObjectError(.missing, path: [], offset: 0, "no authority reference (42)")
            }
            return references
        }
    }

    /// Comp of a key on a curve (BSI TR-03110 part 3, A.2.2.3): the x coordinate of a point `04 x y`.
    public static func compressPoint(_ point: [UInt8]) -> [UInt8] { Array(point.dropFirst().prefix((point.count - 1) / 2)) }

    /// Comp of a public value of Diffie-Hellman: its SHA-1 hash.
    ///
    /// - Parameter value: unsigned, most significant octet first, without leading zeros.
    /// - Throws: `CryptoError` when libcrypto fails.
    public static func compressPublicValue(_ value: [UInt8]) throws -> [UInt8] { try Digest.sha1.hash(value) }
}

/// Why Terminal Authentication failed. Equality is on the code.
public struct TerminalAuthenticationError: DetailedError {
    public enum Code: Sendable, Equatable {
        /// No certificate at hand was issued by an authority that the chip knows.
        case noChain
        /// The card does not know the key that was named.
        case referenceRefused(UInt16)
        case certificateRefused(UInt16)
        case challengeRefused(UInt16)
        case signatureRefused(UInt16)
        case cryptography
        /// The caller handed in what was not asked for.
        case outOfOrder
    }

    public let code: Code
    public let detail: String

    init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}
