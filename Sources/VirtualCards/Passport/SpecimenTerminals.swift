// SPDX-License-Identifier: MIT

public import CardCrypto
import Octets

/// Utopia's infrastructure for terminals that may read fingers and irises (BSI TR-03110 part 3, 2.2): a country verifying authority with
/// a link to its next key, an official document verifier, and an inspection system. All of it follows from the seed.
public struct SpecimenTerminals: Sendable {
    /// A certificate in a chain, and the key of its holder.
    public let authority: CVCertificate
    /// Signed by ``authority``'s key for the authority's next key.
    public let link: CVCertificate
    public let documentVerifier: CVCertificate
    public let terminal: CVCertificate
    /// PKCS#8 in DER.
    public let terminalKeyDER: [UInt8]
    let terminalKey: SigningKey

    /// What the certificates say of the terminal.
    public struct Rights: Sendable, Hashable {
        public var readsDG3: Bool
        public var readsDG4: Bool

        public init(readsDG3: Bool = true, readsDG4: Bool = true) {
            self.readsDG3 = readsDG3
            self.readsDG4 = readsDG4
        }
    }

    /// - Parameters:
    ///   - keyKind: of every key of the chain.
    ///   - fromLink: the document verifier is certified by the authority's next key, so that a chip which knows the first needs the link.
    ///   - expiration: of document verifier and terminal.
    /// - Throws: `CryptoError` when libcrypto fails.
    public init(
        seed: UInt64 = 0, keyKind: SpecimenIssuer.KeyKind = .standardized(13), digest: Digest = .sha256, usesPSS: Bool = false,
        rights: Rights = Rights(), fromLink: Bool = false, expiration: CalendarDay = SpecimenTerminals.never
    ) throws(CryptoError) {
        var random = CardRandom(seed: seed, use: "terminals")
        var keys: [SigningKey] = []
        for _ in 0..<4 { keys.append(try SigningKey(keyKind, &random)) }
        let scheme: SignatureScheme =
            switch keys[0].publicKey {
            case .elliptic: .ecdsaPlain(digest)
            case .rsa: usesPSS ? .rsaPSS(digest, mask: digest, saltLength: digest.length) : .rsaPKCS1(digest)
            }
        let bits: UInt8 = (rights.readsDG3 ? 0x01 : 0) | (rights.readsDG4 ? 0x02 : 0)
        func certificate(
            _ holder: String, _ key: SigningKey, by authority: String, _ authorityKey: SigningKey, role: UInt8, until: CalendarDay
        ) throws(CryptoError) -> CVCertificate {
            let isAuthority = role == 0xC0
            let content = CVCertificate.Content(
                authorityReference: authority, holderReference: holder,
                authorization: CVCertificate.Authorization(
                    terminalType: CVCertificate.Authorization.inspectionSystem, bits: [role | (isAuthority ? 0x03 : bits)]),
                effective: Self.beginning, expiration: until)
            let draw = try SpecimenIssuer.random(for: Array((authority + holder).utf8), scheme, authorityKey, seed)
            return try CVCertificate(
                content, for: key.publicKey, scheme: scheme, spellsCurve: isAuthority, signedBy: authorityKey,
                authorityScheme: scheme, random: draw)
        }
        authority = try certificate(Self.first, keys[0], by: Self.first, keys[0], role: 0xC0, until: Self.never)
        link = try certificate(Self.second, keys[1], by: Self.first, keys[0], role: 0xC0, until: Self.never)
        let issuer = fromLink ? (Self.second, keys[1]) : (Self.first, keys[0])
        documentVerifier = try certificate(Self.verifier, keys[2], by: issuer.0, issuer.1, role: 0x80, until: expiration)
        terminal = try certificate(Self.inspection, keys[3], by: Self.verifier, keys[2], role: 0x00, until: expiration)
        terminalKey = keys[3]
        terminalKeyDER = try keys[3].pkcs8()
    }

    /// The certificates in the order in which a chip that knows ``authority`` takes them.
    public var chain: [CVCertificate] {
        documentVerifier.authorityReference == link.holderReference
            ? [link, documentVerifier, terminal] : [documentVerifier, terminal]
    }

    /// What a chip is personalized with: the authority's first key, and the day on which that began.
    func verifier() throws(CryptoError) -> CVCertificateVerifier {
        CVCertificateVerifier(trustPoints: [try CVCertificateVerifier.TrustPoint(authority)], today: Self.beginning)
    }

    private static let first = "UTCVCASPEC00001"
    private static let second = "UTCVCASPEC00002"
    private static let verifier = "UTDVSPECIM00001"
    private static let inspection = "UTISSPECIM00001"

    private static let beginning = day(2020, 1, 1)
    /// The last day that two-digit years reach in certificates here.
    public static let never = day(2099, 12, 31)

    private static func day(_ year: Int, _ month: Int, _ day: Int) -> CalendarDay {
        CalendarDay(year: year, month: month, day: day) ?? CalendarDay(seconds: 0)
    }
}
