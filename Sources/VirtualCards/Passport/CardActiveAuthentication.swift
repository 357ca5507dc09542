// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// The chip's key of Active Authentication and what it does with it (ICAO 9303-11 6.1).
struct CardActiveAuthentication: Sendable {
    private let key: SigningKey
    private let digest: Digest

    /// Reads `rsa`, a key of 1024 bits, or `ecdsa:13`, a curve by its number.
    ///
    /// - Throws: ``VirtualCardError`` with the code `badValue`, `CryptoError`.
    init(parsing text: String, random: inout CardRandom) throws {
        let halves = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        switch (halves[0], halves.count == 2 ? Int(halves[1]) : 13) {
        case ("rsa", _) where halves.count == 1:
            key = try SigningKey(try RSAKeyPair(bits: 1024) { random.octets($0) })
            digest = .sha1
        case ("ecdsa", .some(let number)) where (8...18).contains(number):
            let curve = try EllipticCurve(standardized: number)
            key = try SigningKey(curve: curve, random: random.octets(curve.orderLength + 8))
            digest = curve.orderLength > 48 ? .sha512 : curve.orderLength > 32 ? .sha384 : curve.orderLength > 28 ? .sha256 : .sha224
        default:
            throw VirtualCardError(.badValue, "--aa takes rsa, or ecdsa with the number of a curve: ecdsa:13", option: "aa")
        }
    }

    /// DG15: the SubjectPublicKeyInfo.
    func file() throws(CryptoError) -> [UInt8] { TLV.encode(SpecimenGroups.tag(15), try key.publicKeyInfo()) }

    /// ActiveAuthenticationInfo of DG14, for curves alone (9303-11 9.2.4).
    func info() throws(CryptoError) -> [UInt8]? {
        guard case .elliptic = key.publicKey else { return nil }
        let arcs: [Digest: Int] = [.sha1: 1, .sha224: 2, .sha256: 3, .sha384: 4, .sha512: 5]
        return DER.sequence(
            try DER.objectIdentifier("2.23.136.1.1.5"), DER.integer([0x01]),
            try DER.objectIdentifier("0.4.0.127.0.7.1.1.4.1.\(arcs[digest] ?? 3)"))
    }

    /// The signature over the challenge: ISO/IEC 9796-2 scheme 1 with a message of the chip's own in front, or plain ECDSA.
    func sign(_ challenge: [UInt8], draw: (Int) -> [UInt8]) throws(CryptoError) -> [UInt8] {
        switch key.publicKey {
        case .rsa:
            let length = MessageRecovery.recoverableLength(modulusLength: 128, digest: digest, shortTrailer: true)
            return try MessageRecovery.sign(
                recovered: draw(length), rest: challenge, digest: digest, shortTrailer: true, with: key)
        case .elliptic:
            let scheme = SignatureScheme.ecdsaPlain(digest)
            return try key.sign(challenge, by: scheme, random: draw(scheme.randomLength(for: key.publicKey)))
        }
    }
}

extension PassportCard {
    /// INTERNAL AUTHENTICATE in a session.
    mutating func internalAuthenticate(_ command: CardCommand, isSecured: Bool) throws(StatusWord) -> CardReply {
        guard let key = configuration.activeAuthentication else { throw .instructionNotSupported }
        guard isInApplication, isSecured else { throw .securityNotSatisfied }
        guard command.parameters == 0 else { throw .wrongParameters }
        guard command.data.count == 8, command.ne != nil else { throw .wrongLength }
        do { return CardReply(try key.sign(command.data) { random.octets($0) }) } catch { throw .conditionsNotSatisfied }
    }
}
