// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// The chip's end of the key agreements of travel documents (ICAO 9303-11), without files and rights around it: for a card that is
/// played from a recording.
package enum PassportAgreement {
    /// The keys of secure messaging.
    package struct Keys: Sendable {
        package let encryption: [UInt8]
        package let authentication: [UInt8]

        init(_ channel: SecureChannel) {
            encryption = channel.encryptionKey
            authentication = channel.authenticationKey
        }
    }

    /// Basic Access Control (4.3.3): the answer to EXTERNAL AUTHENTICATE.
    ///
    /// - Parameters:
    ///   - token: its data field.
    ///   - seed: K_seed, sixteen octets.
    ///   - challenge: RND.IC.
    ///   - chipKey: K.IC, sixteen octets drawn for this run.
    /// - Throws: `6300` when the reader does not know the key.
    package static func basicAccess(
        _ token: [UInt8], seed: [UInt8], challenge: [UInt8], chipKey: [UInt8]
    ) throws(AgreementRefusal) -> [UInt8] {
        do {
            let access = try BasicAccessControl(seed: seed)
            return try access.authenticate(token, challenge: challenge) { chipKey }.answer
        } catch let error as StatusWord {
            throw AgreementRefusal(error)
        } catch {
            throw AgreementRefusal(.authenticationFailed)
        }
    }

    /// Chip Authentication (6.2): the keys that begin with the next command.
    ///
    /// - Parameters:
    ///   - pair: the chip's static key.
    ///   - cipher: the last arc of the protocol's identifier (9.2.5): 1 triple DES, 2 to 4 AES.
    /// - Throws: `6300` for a public key that must not be used, `6A80` for a cipher that is none.
    package static func chipAuthentication(
        with publicKey: [UInt8], pair: KeyAgreementKeyPair, cipher: UInt8
    ) throws(AgreementRefusal) -> Keys {
        guard let algorithm = KeyDerivation.Algorithm(arc: cipher) else { throw AgreementRefusal(.wrongData) }
        do {
            return Keys(try SecureChannel(algorithm, sharedSecret: try pair.sharedSecret(with: publicKey)))
        } catch {
            throw AgreementRefusal(.authenticationFailed)
        }
    }

    /// An answer under secure messaging (9.8.6), whole.
    ///
    /// - Parameters:
    ///   - counter: the send sequence counter after the command, as many octets as a block of the cipher.
    ///   - isOdd: whether the command's instruction is odd, whose data comes under `85`.
    ///   - isPadded: whether the data stands in whole blocks already, with what the card took for padding.
    /// - Returns: nil when the keys do not fit the counter.
    package static func seal(
        _ data: [UInt8], status: [UInt8], isOdd: Bool, encryption: [UInt8], authentication: [UInt8], counter: [UInt8],
        isPadded: Bool = false
    ) -> [UInt8]? {
        guard counter.count == 8 || counter.count == 16, status.count == 2 else { return nil }
        var channel = SecureChannel(
            counter.count == 8 ? .tripleDES : .aes, encryptionKey: encryption, authenticationKey: authentication,
            counter: counter)
        let word = StatusWord(rawValue: UInt16(status[0]) << 8 | UInt16(status[1]))
        return (try? channel.seal(CardReply(data, word), isOdd: isOdd, isPadded: isPadded))?.octets
    }

    /// The blocks of a cryptogram, with their padding.
    ///
    /// - Parameter counter: the send sequence counter of its message.
    /// - Returns: nil when they are no whole blocks, or the key does not fit the counter.
    package static func deciphered(_ sealed: [UInt8], encryption: [UInt8], counter: [UInt8]) -> [UInt8]? {
        guard counter.count == 8 || counter.count == 16 else { return nil }
        let channel = SecureChannel(
            counter.count == 8 ? .tripleDES : .aes, encryptionKey: encryption, authenticationKey: [], counter: counter)
        return channel.blocks(of: sealed)
    }
}

/// One run of PACE (4.4) at the chip's end.
package struct PACEAgreement: Sendable {
    private var run: CardPACE

    /// - Parameters:
    ///   - password: its number in MSE:Set AT (4.4.4.1).
    ///   - identifier: the value octets of the protocol's object identifier.
    ///   - secret: what the password's key is derived from: the whole SHA-1 of the MRZ information, the characters of the others.
    ///   - staticKey: the chip's static key, for chip authentication mapping.
    ///   - authorities: names of certificate authorities that the chip tells with its token, the newest last.
    ///   - hasLongNonce: whether the nonce of generic mapping has two blocks.
    ///   - padsKeys: whether DH public values are as long as p.
    /// - Throws: `6A80` for a protocol that is none.
    package init(
        identifier: [UInt8], parameters: DomainParameters, password: UInt8, secret: [UInt8], staticKey: KeyAgreementKeyPair?,
        authorities: [[UInt8]], hasLongNonce: Bool, padsKeys: Bool
    ) throws(AgreementRefusal) {
        guard let profile = PACEProfile(identifier: identifier, parameters: parameters),
            let password = PassportPassword(rawValue: password)
        else {
            throw AgreementRefusal(.wrongData)
        }
        var quirks: Set<PassportQuirk> = []
        if hasLongNonce { quirks.insert(.longNonce) }
        if padsKeys { quirks.insert(.paddedKeys) }
        do {
            run = try CardPACE(
                profile, password, secret: secret, staticKey: staticKey, authorityReferences: authorities, quirks: quirks)
        } catch {
            throw AgreementRefusal(.conditionsNotSatisfied)
        }
    }

    /// The answer to a GENERAL AUTHENTICATE, and the keys with the last one.
    ///
    /// - Parameters:
    ///   - data: the command's data field.
    ///   - draw: gives that many random octets.
    /// - Throws: `6A80` for data that is none, `6300` for a key or a token that is wrong; `63C2` for that of a PIN, whose tries are
    ///   counted.
    package mutating func answer(
        _ data: [UInt8], draw: (Int) -> [UInt8]
    ) throws(AgreementRefusal) -> (data: [UInt8], keys: PassportAgreement.Keys?) {
        let isAtPIN = run.password == .pin && run.isAtToken
        do throws(StatusWord) {
            let (octets, outcome) = try run.answer(data, draw: draw)
            return (TLV.encode(0x7C, octets), outcome.map { PassportAgreement.Keys($0.channel) })
        } catch {
            let isCounted = isAtPIN && error == .authenticationFailed
            throw AgreementRefusal(isCounted ? .triesLeft(PassportConfiguration.pinTries - 1) : error)
        }
    }
}

extension PACEProfile {
    /// The profile of an object identifier 0.4.0.127.0.7.2.2.4.m.c (9.2.3); nil when there is none, or not with these parameters.
    init?(identifier: [UInt8], parameters: DomainParameters) {
        let isElliptic = parameters.kind == .elliptic
        guard identifier.count == 10, identifier.starts(with: [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x04]),
            let algorithm = KeyDerivation.Algorithm(arc: identifier[9])
        else { return nil }
        switch (identifier[8], isElliptic) {
        case (1, false), (2, true): mapping = .generic
        case (3, false), (4, true): mapping = .integrated
        case (6, true) where algorithm != .tripleDES: mapping = .chipAuthentication
        default: return nil
        }
        guard mapping != .integrated || parameters.supportsIntegratedMapping else { return nil }
        self.algorithm = algorithm
        self.parameters = parameters
        parameterId = 0
        isExplicit = false
    }
}

extension KeyDerivation.Algorithm {
    /// By the last arc of an identifier that names a cipher.
    init?(arc: UInt8) {
        guard let found = [Self.tripleDES, .aes128, .aes192, .aes256].first(where: { $0.arc == arc }) else { return nil }
        self = found
    }
}
