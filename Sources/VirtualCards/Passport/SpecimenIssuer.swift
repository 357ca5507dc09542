// SPDX-License-Identifier: MIT

import CardCrypto
import Octets
import Synchronization

/// The state of Utopia as an issuer of specimen passports: a country signing authority and one document signer (ICAO 9303-12).
///
/// Keys, certificates and signatures follow from the seed alone: the same seed gives the same octets on every machine. Whoever has
/// this source has the keys; a document that it signed proves nothing to anybody who was not told to trust it.
public struct SpecimenIssuer: Sendable {
    /// The certificate of the country signing authority (CSCA): what a reader must trust.
    public var cscaCertificateDER: [UInt8] { authority.der }
    /// The certificate that goes along in EF.SOD.
    public var documentSignerCertificateDER: [UInt8] { signer.der }

    private let authority: Certificate
    private let signer: Certificate
    private let signerKey: RSAKeyPair

    /// The issuer of `seed`; made once in a process, then remembered.
    ///
    /// - Throws: `CryptoError` when libcrypto fails.
    public static func seeded(_ seed: UInt64 = 0) throws(CryptoError) -> SpecimenIssuer {
        if let known = issued.withLock({ $0[seed] }) { return known }
        let issuer = try SpecimenIssuer(seed: seed)
        issued.withLock { known in
            // A run over many seeds must not grow without end.
            if known.count >= 16 { known.removeAll() }
            known[seed] = issuer
        }
        return issuer
    }

    private static let issued = Mutex<[UInt64: SpecimenIssuer]>([:])

    init(seed: UInt64) throws(CryptoError) {
        var random = CardRandom(seed: seed, use: "issuer")
        let authorityKey = try RSAKeyPair(bits: 2048) { random.octets($0) }
        signerKey = try RSAKeyPair(bits: 2048) { random.octets($0) }
        authority = try Self.authority(authorityKey, serialNumber: [0x01] + random.octets(7))
        signer = try Self.signer(signerKey, issuedBy: authorityKey, serialNumber: [0x01] + random.octets(7))
    }

    /// EF.SOD (9303-10 4.6.2): the hashes of `dataGroups`, by number, signed.
    ///
    /// - Throws: `CryptoError` when libcrypto fails.
    public func documentSecurityObject(_ dataGroups: [Int: [UInt8]]) throws(CryptoError) -> [UInt8] {
        var hashes: [UInt8] = []
        for (number, content) in dataGroups.sorted(by: { $0.key < $1.key }) {
            let hash = try Digest.sha256.hash(content)
            hashes += DER.sequence(DER.integer([UInt8(truncatingIfNeeded: number)]), DER.octetString(hash))
        }
        let algorithm = DER.sequence(try DER.objectIdentifier("2.16.840.1.101.3.4.2.1"))
        let object = DER.sequence(DER.integer([]), algorithm, DER.sequence(hashes))
        let signed = try SignedData(
            content: object, contentType: "2.23.136.1.1.1", signer: signer, key: signerKey, signingTime: Self.signingTime)
        return TLV.encode(0x77, signed.der)
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

    private static func authority(_ key: RSAKeyPair, serialNumber: [UInt8]) throws(CryptoError) -> Certificate {
        let extensions = [
            Certificate.Extension("2.5.29.19", isCritical: true, value: DER.sequence([0x01, 0x01, 0xFF], DER.integer([]))),
            // keyCertSign, cRLSign.
            Certificate.Extension("2.5.29.15", isCritical: true, value: TLV.encode(0x03, [0x01, 0x06])),
            Certificate.Extension("2.5.29.14", value: DER.octetString(try key.keyIdentifier())),
        ]
        let content = Certificate.Content(
            serialNumber: serialNumber, issuer: authorityName, subject: authorityName, notBefore: notBefore, notAfter: notAfter,
            extensions: extensions)
        return try Certificate(content, for: key, signedBy: key)
    }

    private static func signer(
        _ key: RSAKeyPair, issuedBy authorityKey: RSAKeyPair, serialNumber: [UInt8]
    ) throws(CryptoError) -> Certificate {
        let extensions = [
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
        let content = Certificate.Content(
            serialNumber: serialNumber, issuer: authorityName, subject: signerName, notBefore: notBefore, notAfter: notAfter,
            extensions: extensions)
        return try Certificate(content, for: key, signedBy: authorityKey)
    }
}
