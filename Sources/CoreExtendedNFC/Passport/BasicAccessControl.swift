// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
public import Octets
public import TagTransport

/// The terminal's side of Basic Access Control (ICAO 9303-11 4.3): a state machine that does no input or output.
///
/// Begin with ``begin()``, carry out each action and hand its outcome back, until `agreed`.
public struct BasicAccessControl: Sendable {
    /// What is to be done next.
    public enum Action: Sendable {
        case send(CommandAPDU)
        /// Draw eight random octets (RND.IFD) and sixteen (K.IFD).
        case drawRandom
        case agreed(SessionKeys)
    }

    /// What BAC gives: keys and counter for secure messaging with triple DES.
    public struct SessionKeys: Sendable, Equatable {
        public let encryption: [UInt8]
        public let authentication: [UInt8]
        public let sendSequenceCounter: [UInt8]
    }

    private enum State: Sendable {
        case new
        case awaitingChallenge
        case awaitingRandom(challenge: [UInt8])
        case awaitingCryptogram(challenge: [UInt8], random: [UInt8], keyingMaterial: [UInt8])
        case over
    }

    private var state = State.new
    /// Kseed: the first 16 octets of the SHA-1 of the MRZ information (ICAO 9303-11 9.7.2).
    public let seed: [UInt8]
    private let encryptionKey: [UInt8]
    private let authenticationKey: [UInt8]

    /// - Parameter mrzKey: number, birth and expiry with their check digits, in ASCII.
    /// - Throws: `CryptoError` when libcrypto refuses.
    public init(mrzKey: String) throws {
        seed = Array(try Digest.sha1.hash(Array(mrzKey.utf8))[..<16])
        encryptionKey = try KeyDerivation.key(from: seed, counter: KeyDerivation.encryption, for: .tripleDES)
        authenticationKey = try KeyDerivation.key(from: seed, counter: KeyDerivation.authentication, for: .tripleDES)
    }

    /// The first action: GET CHALLENGE.
    public mutating func begin() throws(BasicAccessControlError) -> Action {
        guard case .new = state else { throw fail(.outOfOrder, "BAC began before") }
        state = .awaitingChallenge
        return .send(CommandAPDU(cla: 0x00, ins: 0x84, p1: 0, p2: 0, le: 8))
    }

    /// The answer to the command that was to be sent.
    public mutating func received(_ response: ResponseAPDU) throws(BasicAccessControlError) -> Action {
        switch state {
        case .awaitingChallenge:
            guard response.isSuccess else {
                throw fail(
                    .challengeRefused(response.statusWord),
                    "the card refused BAC: \(hexText(response.statusWord)) to GET CHALLENGE")
            }
            guard response.data.count == 8 else {
                throw fail(.challengeLength, "a challenge of \(response.data.count) bytes, 8 were asked for")
            }
            state = .awaitingRandom(challenge: Array(response.data))
            return .drawRandom
        case .awaitingCryptogram(let challenge, let random, let keyingMaterial):
            return try open(response, challenge: challenge, random: random, keyingMaterial: keyingMaterial)
        case .new, .awaitingRandom, .over: throw fail(.outOfOrder, "an answer that BAC does not wait for")
        }
    }

    /// The random octets that were to be drawn.
    public mutating func drew(random: [UInt8], keyingMaterial: [UInt8]) throws(BasicAccessControlError) -> Action {
        guard case .awaitingRandom(let challenge) = state, random.count == 8, keyingMaterial.count == 16 else {
            throw fail(.outOfOrder, "\(random.count) and \(keyingMaterial.count) random bytes that BAC does not wait for")
        }
        do {
            let cryptogram = try BlockCipher.tripleDES.encrypt(random + challenge + keyingMaterial, key: encryptionKey)
            let mac = try RetailMAC.authenticate(cryptogram, key: authenticationKey)
            state = .awaitingCryptogram(challenge: challenge, random: random, keyingMaterial: keyingMaterial)
            // Le is exactly 28: some chips answer 6A88 to 00.
            let le: UInt8 = DeliberateMistake.made == .otherLe ? 0x00 : 0x28
            return .send(CommandAPDU(cla: 0x00, ins: 0x82, p1: 0, p2: 0, data: Data(cryptogram + mac), le: le))
        } catch {
            throw fail(.cryptography, error.description)
        }
    }

    private mutating func open(
        _ response: ResponseAPDU, challenge: [UInt8], random: [UInt8], keyingMaterial: [UInt8]
    ) throws(BasicAccessControlError) -> Action {
        let word = response.statusWord
        guard response.isSuccess else {
            throw fail(.authenticationRefused(word), "the card refused the key: \(hexText(word)) to EXTERNAL AUTHENTICATE")
        }
        guard response.data.count == 40 else {
            throw fail(.cryptogramLength, "\(response.data.count) bytes to EXTERNAL AUTHENTICATE, 40 were asked for")
        }
        let cryptogram = Array(response.data.prefix(32))
        do {
            guard
                equalInConstantTime(
                    try RetailMAC.authenticate(cryptogram, key: authenticationKey), Array(response.data.suffix(8)))
            else {
                throw fail(.macWrong, "the MAC of the card's answer to EXTERNAL AUTHENTICATE is wrong")
            }
            let plain = try BlockCipher.tripleDES.decrypt(cryptogram, key: encryptionKey)
            guard equalInConstantTime(Array(plain[..<8]), challenge), equalInConstantTime(Array(plain[8..<16]), random) else {
                throw fail(.nonceMismatch, "the card did not send back the random bytes of this session")
            }
            let shared = zip(keyingMaterial, plain[16...]).map { $0 ^ $1 }
            let keys = SessionKeys(
                encryption: try KeyDerivation.key(from: shared, counter: KeyDerivation.encryption, for: .tripleDES),
                authentication: try KeyDerivation.key(from: shared, counter: KeyDerivation.authentication, for: .tripleDES),
                // 9303-11 9.8.6.3: the last four octets of either random number.
                sendSequenceCounter: Array(challenge[4...] + random[4...])
            )
            state = .over
            return .agreed(keys)
        } catch let error as BasicAccessControlError {
            throw error
        } catch {
            throw fail(.cryptography, "\(error)")
        }
    }

    private mutating func fail(_ code: BasicAccessControlError.Code, _ detail: String) -> BasicAccessControlError {
        state = .over
        return BasicAccessControlError(code: code, detail: detail)
    }
}

extension BasicAccessControl: CustomStringConvertible, CustomReflectable {
    public var description: String { "Basic Access Control" }
    /// Keys stay out of every rendering.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension BasicAccessControl.SessionKeys: CustomStringConvertible, CustomReflectable {
    public var description: String { "BAC session keys" }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Why Basic Access Control did not come to its end. Equality is on the code.
public struct BasicAccessControlError: DetailedError {
    public enum Code: Sendable, Equatable {
        // MARK: The card's side
        case challengeRefused(UInt16)
        case challengeLength
        /// The card does not know this key: `6300`, with some chips `63Cx`, `6985`, `6988` or `6A88`.
        case authenticationRefused(UInt16)
        case cryptogramLength
        case macWrong
        case nonceMismatch

        // MARK: The program's side
        case outOfOrder
        case cryptography
    }

    public let code: Code
    public let detail: String
}
