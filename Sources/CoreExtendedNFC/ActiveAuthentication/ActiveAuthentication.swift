// SPDX-License-Identifier: MIT

public import CardCrypto
import FoundationEssentials
public import TagTransport

/// The terminal's side of Active Authentication (ICAO 9303-11 6.1): a state machine that does no input or output.
///
/// Begin with ``begin()``, carry out each action and hand its outcome back, until `finished`. What the chip proves is that it has the
/// private key of DG15; that DG15 is the issuer's, Passive Authentication tells.
public struct ActiveAuthentication: Sendable {
    /// What is to be done next.
    public enum Action: Sendable {
        /// Draw eight random octets (`aa.rndIFD`).
        case drawRandom
        /// Send it inside the channel. Its Le asks for the whole signature, in the extended form where that is longer than a short
        /// answer holds.
        case send(CommandAPDU)
        case finished(Outcome)
    }

    /// How it ended.
    public struct Outcome: Sendable, Equatable {
        public let status: ActiveAuthenticationStatus
        /// For people: the algorithm of a proof, the reason of a failure.
        public let detail: String
    }

    private enum State: Sendable {
        case new
        case awaitingRandom
        case awaitingSignature(challenge: [UInt8])
        case over
    }

    private var state = State.new
    private let key: SubjectPublicKeyInfo
    private let algorithm: String?
    private let longestShortAnswer: Int

    /// - Parameters:
    ///   - key: of DG15.
    ///   - algorithm: the signature algorithm of DG14's ActiveAuthenticationInfo, in dotted decimal; nil without one.
    ///   - longestShortAnswer: octets of plain data that a short protected answer holds: 231 with triple DES, 223 with AES, 256 without
    ///     secure messaging.
    public init(key: SubjectPublicKeyInfo, algorithm: String?, longestShortAnswer: Int) {
        self.key = key
        self.algorithm = algorithm
        self.longestShortAnswer = longestShortAnswer
    }

    /// The first action.
    public mutating func begin() -> Action {
        guard case .new = state else { return finish(.failed, "Active Authentication began before") }
        guard key.signatureKey != nil else {
            return finish(.unsupportedKeyType, "a key of algorithm \(key.algorithm) in DG15")
        }
        state = .awaitingRandom
        return .drawRandom
    }

    /// The eight octets that were to be drawn.
    public mutating func drew(_ challenge: [UInt8]) -> Action {
        guard case .awaitingRandom = state, challenge.count == 8, let key = key.signatureKey else {
            return finish(.failed, "random bytes that Active Authentication does not wait for")
        }
        state = .awaitingSignature(challenge: challenge)
        let expected =
            switch key {
            case .rsa(let modulus, _): modulus.count
            case .elliptic(let curve, _): 2 * curve.orderLength
            }
        let isLong = expected > longestShortAnswer
        guard
            let command = try? CommandAPDU(
                cla: 0, ins: 0x88, p1: 0, p2: 0, data: Data(challenge), ne: isLong ? 65_536 : 256,
                form: isLong ? .extended : .short)
        else { return finish(.failed, "no command for a challenge of \(challenge.count) bytes") }
        return .send(command)
    }

    /// The answer to INTERNAL AUTHENTICATE.
    public mutating func received(_ response: ResponseAPDU) -> Action {
        guard case .awaitingSignature(let challenge) = state else {
            return finish(.failed, "an answer that Active Authentication does not wait for")
        }
        guard response.isSuccess else {
            return finish(
                .commandFailed, "\(hexText(response.statusWord)) \(statusText(response.statusWord)) to INTERNAL AUTHENTICATE")
        }
        let outcome = Self.verify(Array(response.data), challenge: challenge, key: key, algorithm: algorithm)
        state = .over
        return .finished(outcome)
    }

    private mutating func finish(_ status: ActiveAuthenticationStatus, _ detail: String) -> Action {
        state = .over
        return .finished(Outcome(status: status, detail: detail))
    }

    /// Whether `signature` proves that the chip has the private key of `key`.
    ///
    /// - Parameters:
    ///   - signature: what INTERNAL AUTHENTICATE gave.
    ///   - challenge: the eight octets that were sent.
    ///   - algorithm: of DG14's ActiveAuthenticationInfo; needed for keys on a curve only. Without it the hash functions that the key's
    ///     length suggests are tried, and the outcome says which fitted.
    public static func verify(
        _ signature: [UInt8], challenge: [UInt8], key: SubjectPublicKeyInfo, algorithm: String?
    ) -> Outcome {
        do {
            switch key.signatureKey {
            case .rsa?: return try verifyRSA(signature, challenge, key)
            case .elliptic(let curve, let point)?:
                return try verifyECDSA(signature, challenge, .elliptic(curve, point: point), curve, algorithm)
            case nil: return Outcome(status: .unsupportedKeyType, detail: "a key of algorithm \(key.algorithm) in DG15")
            }
        } catch {
            return Outcome(status: error.code == .publicKey ? .unsupportedKeyType : .failed, detail: error.detail)
        }
    }

    private static func verifyRSA(
        _ signature: [UInt8], _ challenge: [UInt8], _ info: SubjectPublicKeyInfo
    ) throws(CryptoError) -> Outcome {
        guard let key = info.signatureKey else { return Outcome(status: .unsupportedKeyType, detail: "no key") }
        // A shorter number than the modulus may come without its leading zeros.
        var padded = signature
        if case .rsa(let modulus, _) = key, signature.count < modulus.count, signature.count + 2 >= modulus.count {
            padded = [UInt8](repeating: 0, count: modulus.count - signature.count) + signature
        }
        guard let opened = try MessageRecovery.open(padded, with: key) else {
            return Outcome(
                status: .failed, detail: "\(signature.count) bytes that are no signature of the key in DG15 (\(key.name))")
        }
        let trailer = opened.trailer.count == 1 ? "trailer BC" : "trailer \(opened.trailer.map(hexByte).joined())"
        let holds = equalInConstantTime(try opened.digest.hash(opened.recovered + challenge), opened.hash)
        return Outcome(
            status: holds ? .verified : .failed,
            detail: holds
                ? "\(key.name), ISO 9796-2 with \(opened.digest.rawValue)"
                : "the signature is not over the challenge (\(opened.digest.rawValue), \(trailer))")
    }

    private static func verifyECDSA(
        _ signature: [UInt8], _ challenge: [UInt8], _ key: PublicKey, _ curve: EllipticCurve, _ algorithm: String?
    ) throws(CryptoError) -> Outcome {
        // Some chips send the SEQUENCE where the standard wants r and s alone.
        var plain = signature
        var note = ""
        if signature.count != 2 * curve.orderLength {
            guard let unwrapped = ECDSASignature.plain(fromDER: signature, curve) else {
                return Outcome(
                    status: .failed, detail: "\(signature.count) bytes are no signature of a key of \(key.name)")
            }
            plain = unwrapped
            note = ", sent as a SEQUENCE"
        }
        let digests: [Digest]
        if let algorithm {
            guard let digest = Self.digest(of: algorithm) else {
                return Outcome(status: .notImplemented, detail: "signature algorithm \(algorithm) in DG14")
            }
            digests = [digest]
        } else {
            let fitting: [Digest] =
                switch curve.orderLength {
                case ...28: [.sha256, .sha224]
                case ...32: [.sha256]
                case ...48: [.sha256, .sha384]
                default: [.sha256, .sha512]
                }
            digests = fitting + [.sha1]
            note += ", DG14 names no algorithm"
        }
        for digest in digests where try key.verifies(plain, over: challenge, by: .ecdsaPlain(digest)) {
            return Outcome(status: .verified, detail: "\(key.name), ECDSA with \(digest.rawValue)\(note)")
        }
        let tried = digests.map(\.rawValue).joined(separator: ", ")
        return Outcome(status: .failed, detail: "the signature is not over the challenge (ECDSA with \(tried))")
    }

    /// Of the plain and of the DER form's identifiers.
    private static func digest(of algorithm: String) -> Digest? {
        guard let identifier = try? DER.objectIdentifier(algorithm), let object = try? DataObject(DER.sequence(identifier)) else {
            return nil
        }
        switch try? SignatureScheme(algorithm: object) {
        case .ecdsa(let digest)?, .ecdsaPlain(let digest)?: return digest
        default: return nil
        }
    }
}

private func hexByte(_ octet: UInt8) -> String {
    let text = String(octet, radix: 16, uppercase: true)
    return text.count == 1 ? "0" + text : text
}
