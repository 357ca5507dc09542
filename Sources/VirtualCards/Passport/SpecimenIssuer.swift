// SPDX-License-Identifier: MIT

public import CardCrypto
import Octets
import Synchronization

/// The state of Utopia as an issuer of specimen passports: a country signing authority and one document signer (ICAO 9303-12).
///
/// Keys, certificates and signatures follow from the seed and the options alone: the same seed gives the same octets on every machine.
/// Whoever has this source has the keys; a document that it signed proves nothing to anybody who was not told to trust it.
public struct SpecimenIssuer: Sendable {
    /// A kind of key.
    public enum KeyKind: Sendable, Hashable {
        /// 1024, 2048, 3072 or 4096 bits.
        case rsa(bits: Int)
        /// A curve by its object identifier.
        case elliptic(String)
        /// Standardized domain parameters, 8 to 18.
        case standardized(Int)
    }

    /// What is signed with, and how.
    public struct Options: Sendable, Hashable {
        public var authorityKey = KeyKind.rsa(bits: 2048)
        public var signerKey = KeyKind.rsa(bits: 2048)
        /// Of signatures and of the data groups' hashes.
        public var digest = Digest.sha256
        /// RSASSA-PSS in place of RSASSA-PKCS1-v1_5.
        public var usesPSS = false
        /// Plain ECDSA in the signature of EF.SOD, as some issuers have it.
        public var signsPlainECDSA = false
        /// Curves' numbers are spelled out in the certificates, as those of real authorities do.
        public var spellsCurves = false

        public init() {}
    }

    /// The certificate of the country signing authority (CSCA): what a reader must trust.
    public var cscaCertificateDER: [UInt8] { authority.der }
    /// The certificate that goes along in EF.SOD.
    public var documentSignerCertificateDER: [UInt8] { signer.der }

    let seed: UInt64
    let options: Options
    private let authority: Certificate
    private let signer: Certificate
    private let authorityKey: SigningKey
    private let signerKey: SigningKey

    /// The issuer of `seed`; made once in a process, then remembered.
    ///
    /// - Throws: `CryptoError` when libcrypto fails.
    public static func seeded(_ seed: UInt64 = 0, _ options: Options = Options()) throws(CryptoError) -> SpecimenIssuer {
        let name = Name(seed: seed, options: options)
        if let known = issued.withLock({ $0[name] }) { return known }
        let issuer = try SpecimenIssuer(seed: seed, options)
        issued.withLock { known in
            // A run over many seeds must not grow without end.
            if known.count >= 16 { known.removeAll() }
            known[name] = issuer
        }
        return issuer
    }

    private struct Name: Hashable {
        let seed: UInt64
        let options: Options
    }

    private static let issued = Mutex<[Name: SpecimenIssuer]>([:])

    init(seed: UInt64, _ options: Options = Options()) throws(CryptoError) {
        var random = CardRandom(seed: seed, use: "issuer")
        self.seed = seed
        self.options = options
        authorityKey = try SigningKey(options.authorityKey, &random)
        signerKey = try SigningKey(options.signerKey, &random)
        let authoritySerial = [0x01] + random.octets(7)
        let signerSerial = [0x01] + random.octets(7)
        let scheme = options.scheme(for: authorityKey)
        let spells = options.spellsCurves
        authority = try Self.certificate(
            Self.authorityName, serialNumber: authoritySerial, try Self.authorityExtensions(authorityKey.publicKey),
            for: try authorityKey.publicKey.subjectPublicKeyInfo(explicitParameters: spells), signedBy: authorityKey, scheme, seed
        )
        signer = try Self.certificate(
            Self.signerName, serialNumber: signerSerial,
            try Self.signerExtensions(signerKey.publicKey, issuedBy: authorityKey.publicKey),
            for: try signerKey.publicKey.subjectPublicKeyInfo(explicitParameters: spells), signedBy: authorityKey, scheme, seed)
    }

    /// EF.SOD (9303-10 4.6.2): the hashes of `dataGroups`, by number, signed.
    ///
    /// - Throws: `CryptoError` when libcrypto fails.
    public func documentSecurityObject(_ dataGroups: [Int: [UInt8]]) throws(CryptoError) -> [UInt8] {
        var hashes: [UInt8] = []
        for (number, content) in dataGroups.sorted(by: { $0.key < $1.key }) {
            let hash = try options.digest.hash(content)
            hashes += DER.sequence(DER.integer([UInt8(truncatingIfNeeded: number)]), DER.octetString(hash))
        }
        let object = DER.sequence(DER.integer([]), try options.digest.algorithmIdentifier(), DER.sequence(hashes))
        return TLV.encode(0x77, try signed(object, type: "2.23.136.1.1.1"))
    }

    /// EF.CardSecurity (9303-11 9.2.11): `infos`, a SET of SecurityInfos, signed.
    ///
    /// - Throws: `CryptoError` when libcrypto fails.
    public func cardSecurity(_ infos: [UInt8]) throws(CryptoError) -> [UInt8] {
        try signed(infos, type: "0.4.0.127.0.7.3.2.1")
    }

    /// A master list (9303-12 9) of this authority's certificate and others.
    ///
    /// - Throws: `CryptoError` when libcrypto fails.
    public func masterList(others: [[UInt8]] = []) throws(CryptoError) -> [UInt8] {
        try signed(DER.sequence(DER.integer([]), DER.set([authority.der] + others)), type: "2.23.136.1.1.2")
    }

    private func signed(_ content: [UInt8], type: String) throws(CryptoError) -> [UInt8] {
        var scheme = options.scheme(for: signerKey)
        if options.signsPlainECDSA, case .ecdsa(let digest) = scheme { scheme = .ecdsaPlain(digest) }
        let random = try Self.random(for: content, scheme, signerKey, seed)
        return try SignedData(
            content: content, contentType: type, signer: signer, key: signerKey, scheme: scheme, signingTime: Self.signingTime,
            random: random
        ).der
    }

    /// What a signature over `content` draws: another for each content, so that no number of ECDSA is used twice.
    static func random(
        for content: [UInt8], _ scheme: SignatureScheme, _ key: SigningKey, _ seed: UInt64
    ) throws(CryptoError) -> [UInt8] {
        let use = "signature " + Hex.encode(try Digest.sha256.hash(content + (try key.publicKeyInfo())))
        var random = CardRandom(seed: seed, use: use)
        return random.octets(scheme.randomLength(for: key.publicKey))
    }

    // A reader judges certificates at its own time, so these hold for as long as two-digit years reach.
    private static let notBefore = "20200101000000Z"
    private static let notAfter = "20491231235959Z"
    private static let signingTime = "200624120000Z"

    private static let authorityName = [
        ("C", "UT"), ("O", "Utopia Ministry of the Interior"), ("OU", "Specimens only"), ("CN", "CSCA Utopia Specimen"),
    ]
    private static let signerName = [
        ("C", "UT"), ("O", "Utopia Ministry of the Interior"), ("OU", "Specimens only"),
        ("CN", "Document Signer Utopia Specimen 1"),
    ]

    private static func certificate(
        _ subject: [(String, String)], serialNumber: [UInt8], _ extensions: [Certificate.Extension], for publicKeyInfo: [UInt8],
        signedBy key: SigningKey, _ scheme: SignatureScheme, _ seed: UInt64
    ) throws(CryptoError) -> Certificate {
        let content = Certificate.Content(
            serialNumber: serialNumber, issuer: authorityName, subject: subject, notBefore: notBefore, notAfter: notAfter,
            extensions: extensions)
        let random = try random(for: serialNumber + publicKeyInfo, scheme, key, seed)
        return try Certificate(content, for: publicKeyInfo, signedBy: key, scheme, random: random)
    }

    private static func authorityExtensions(_ key: PublicKey) throws(CryptoError) -> [Certificate.Extension] {
        [
            Certificate.Extension("2.5.29.19", isCritical: true, value: DER.sequence([0x01, 0x01, 0xFF], DER.integer([]))),
            // keyCertSign, cRLSign.
            Certificate.Extension("2.5.29.15", isCritical: true, value: TLV.encode(0x03, [0x01, 0x06])),
            Certificate.Extension("2.5.29.14", value: DER.octetString(try key.keyIdentifier())),
        ]
    }

    private static func signerExtensions(
        _ key: PublicKey, issuedBy authorityKey: PublicKey
    ) throws(CryptoError) -> [Certificate.Extension] {
        [
            Certificate.Extension("2.5.29.35", value: DER.sequence(TLV.encode(0x80, try authorityKey.keyIdentifier()))),
            Certificate.Extension("2.5.29.14", value: DER.octetString(try key.keyIdentifier())),
            // digitalSignature.
            Certificate.Extension("2.5.29.15", isCritical: true, value: TLV.encode(0x03, [0x07, 0x80])),
            // The signer may sign for three months (privateKeyUsagePeriod).
            Certificate.Extension(
                "2.5.29.16",
                value: DER.sequence(
                    TLV.encode(0x80, Array("20200501000000Z".utf8)), TLV.encode(0x81, Array("20200801000000Z".utf8)))),
            // It signs passports (documentTypeList, 9303-12 7.1.1).
            Certificate.Extension(
                "2.23.136.1.1.6.2", value: DER.sequence(DER.integer([]), DER.set([TLV.encode(0x13, Array("P".utf8))]))),
        ]
    }
}

extension SpecimenIssuer.Options {
    /// What a key of these options signs with.
    func scheme(for key: SigningKey) -> SignatureScheme {
        switch key.publicKey {
        case .rsa: usesPSS ? .rsaPSS(digest, mask: digest, saltLength: digest.length) : .rsaPKCS1(digest)
        case .elliptic: .ecdsa(digest)
        }
    }
}

extension SigningKey {
    /// The next key of this kind that `random` gives.
    init(_ kind: SpecimenIssuer.KeyKind, _ random: inout CardRandom) throws(CryptoError) {
        switch kind {
        case .rsa(let bits): try self.init(try RSAKeyPair(bits: bits) { random.octets($0) })
        case .elliptic(let identifier): try self.init(on: try EllipticCurve(named: identifier), &random)
        case .standardized(let number): try self.init(on: try EllipticCurve(standardized: number), &random)
        }
    }

    private init(on curve: EllipticCurve, _ random: inout CardRandom) throws(CryptoError) {
        try self.init(curve: curve, random: random.octets(curve.orderLength + 8))
    }
}
