// SPDX-License-Identifier: MIT

import Octets

extension Certificate {
    /// What a new certificate says.
    public struct Content: Sendable {
        /// Most significant octet first; 1 to 20 octets, not all zero.
        public var serialNumber: [UInt8]
        /// Attributes by short name in order, for instance `("C", "UT")`.
        public var issuer: [(String, String)]
        public var subject: [(String, String)]
        /// `YYYYMMDDHHMMSSZ`.
        public var notBefore: String
        public var notAfter: String
        public var extensions: [Extension]

        public init(
            serialNumber: [UInt8], issuer: [(String, String)], subject: [(String, String)], notBefore: String, notAfter: String,
            extensions: [Extension]
        ) {
            self.serialNumber = serialNumber
            self.issuer = issuer
            self.subject = subject
            self.notBefore = notBefore
            self.notAfter = notAfter
            self.extensions = extensions
        }
    }

    public struct Extension: Sendable {
        /// Dotted decimal.
        public var identifier: String
        public var isCritical: Bool
        /// The DER of the extension's own type.
        public var value: [UInt8]

        public init(_ identifier: String, isCritical: Bool = false, value: [UInt8]) {
            self.identifier = identifier
            self.isCritical = isCritical
            self.value = value
        }
    }

    /// Writes a certificate and signs it with `issuerKey`. The same arguments give the same octets.
    ///
    /// - Parameters:
    ///   - publicKeyInfo: the subject's SubjectPublicKeyInfo in DER.
    ///   - random: see ``SigningKey/sign(_:by:random:)``.
    /// - Throws: ``CryptoError``.
    public init(
        _ content: Content, for publicKeyInfo: [UInt8], signedBy issuerKey: SigningKey, _ scheme: SignatureScheme,
        random: [UInt8] = []
    ) throws(CryptoError) {
        guard (1...20).contains(content.serialNumber.count), content.serialNumber.contains(where: { $0 != 0 }) else {
            throw CryptoError(
                code: .certificate, detail: "a serial number of \(content.serialNumber.count) bytes; 1 to 20, not all zero")
        }
        let algorithm = try scheme.algorithmIdentifier()
        let validity = DER.sequence(
            try CertificateTime(content.notBefore).der, try CertificateTime(content.notAfter).der)
        var extensions: [UInt8] = []
        for item in content.extensions {
            let critical: [UInt8] = item.isCritical ? [0x01, 0x01, 0xFF] : []
            extensions += DER.sequence(try DER.objectIdentifier(item.identifier), critical, DER.octetString(item.value))
        }
        let body = DER.sequence(
            TLV.encode(0xA0, DER.integer([2])), DER.integer(content.serialNumber), algorithm,
            try DistinguishedName.encode(content.issuer), validity, try DistinguishedName.encode(content.subject), publicKeyInfo,
            extensions.isEmpty ? [] : TLV.encode(0xA3, DER.sequence(extensions)))
        let signature = try issuerKey.sign(body, by: scheme, random: random)
        do { self = try Certificate(der: DER.sequence(body, algorithm, DER.bitString(signature))) } catch {
            throw CryptoError(code: .certificate, detail: "the certificate: \(error)")
        }
    }
}
