// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// The chip's side of Active Authentication (ICAO 9303-11 6.1): the key of DG15 and how it signs.
public struct PassportActiveAuthentication: Sendable {
    public enum Algorithm: Sendable, Hashable {
        /// ISO 9796-2 scheme 1; the short trailer `BC` goes with SHA-1 only.
        case rsa(Digest, shortTrailer: Bool)
        /// r and s in as many octets as the order has each.
        case ecdsa(Digest)
        /// A SEQUENCE of r and s, as some chips send it against the standard.
        case ecdsaSequence(Digest)
    }

    let key: SigningKey
    let algorithm: Algorithm
    private let spellsCurve: Bool

    /// - Throws: `CryptoError` with the code `algorithm` when the key is of another kind.
    public init(key: SigningKey, algorithm: Algorithm, spellsCurve: Bool = false) throws(CryptoError) {
        switch (key.publicKey, algorithm) {
        case (.rsa, .rsa), (.elliptic, .ecdsa), (.elliptic, .ecdsaSequence): break
        default:
            throw CryptoError(
                code: .algorithm, detail: "Active Authentication of another kind than the key of \(key.publicKey.name)")
        }
        self.key = key
        self.algorithm = algorithm
        self.spellsCurve = spellsCurve
    }

    /// DG15 (9303-10 4.7.15).
    public func dataGroup15() throws(CryptoError) -> [UInt8] {
        TLV.encode(0x6F, try key.publicKey.subjectPublicKeyInfo(explicitParameters: spellsCurve))
    }

    /// ActiveAuthenticationInfo for DG14 (9303-11 9.2.4); nil for RSA, which needs none.
    public func securityInfo() throws(CryptoError) -> [UInt8]? {
        guard let digest = ecdsaDigest else { return nil }
        let arc = [Digest.sha1, .sha224, .sha256, .sha384, .sha512].firstIndex(of: digest) ?? 0
        return DER.sequence(
            try DER.objectIdentifier("2.23.136.1.1.5"), DER.integer([1]),
            try DER.objectIdentifier("0.4.0.127.0.7.1.1.4.1.\(arc + 1)"))
    }

    /// The answer to INTERNAL AUTHENTICATE.
    ///
    /// - Parameter draw: gives that many random octets.
    /// - Throws: `6700` when the challenge has not eight octets, `6F00` when libcrypto fails.
    func sign(_ challenge: [UInt8], draw: (Int) -> [UInt8]) throws(StatusWord) -> [UInt8] {
        guard challenge.count == 8 else { throw .wrongLength }
        do throws(CryptoError) {
            switch (key.publicKey, algorithm) {
            case (.rsa(let modulus, _), .rsa(let digest, let shortTrailer)):
                let length = MessageRecovery.recoverableLength(
                    modulusLength: modulus.count, digest: digest, shortTrailer: shortTrailer)
                return try MessageRecovery.sign(
                    recovered: draw(length), rest: challenge, digest: digest, shortTrailer: shortTrailer, with: key)
            case (.elliptic, .ecdsa(let digest)):
                let scheme = SignatureScheme.ecdsaPlain(digest)
                return try key.sign(challenge, by: scheme, random: draw(scheme.randomLength(for: key.publicKey)))
            case (.elliptic, .ecdsaSequence(let digest)):
                let scheme = SignatureScheme.ecdsa(digest)
                return try key.sign(challenge, by: scheme, random: draw(scheme.randomLength(for: key.publicKey)))
            default: throw CryptoError(code: .algorithm, detail: "a key of another kind")
            }
        } catch { throw StatusWord(rawValue: 0x6F00) }
    }

    private var ecdsaDigest: Digest? {
        switch algorithm {
        case .rsa: nil
        case .ecdsa(let digest), .ecdsaSequence(let digest): digest
        }
    }
}
