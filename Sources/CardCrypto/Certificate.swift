// SPDX-License-Identifier: MIT

import CLibCrypto

/// An X.509 certificate (RFC 5280) in DER.
public struct Certificate: Sendable, Equatable {
    public let der: [UInt8]

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

    /// Writes a certificate for `subjectKey` and signs it with `issuerKey`: RSASSA-PKCS1-v1_5 with SHA-256, which has nothing random in it.
    ///
    /// - Throws: ``CryptoError``.
    public init(_ content: Content, for subjectKey: RSAKeyPair, signedBy issuerKey: RSAKeyPair) throws(CryptoError) {
        guard let certificate = X509_new() else { throw CryptoError.fromLibrary("certificate") }
        defer { X509_free(certificate) }
        guard X509_set_version(certificate, 2) == 1 else { throw CryptoError.fromLibrary("certificate") }
        try Self.setSerialNumber(content.serialNumber, of: certificate)
        try Self.set(content.issuer, content.subject, of: certificate)
        guard ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), content.notBefore) == 1,
            ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), content.notAfter) == 1
        else { throw CryptoError.fromLibrary("validity") }
        try subjectKey.withPrivateKey { key throws(CryptoError) in
            guard X509_set_pubkey(certificate, key) == 1 else { throw CryptoError.fromLibrary("public key") }
        }
        for item in content.extensions { try Self.add(item, to: certificate) }
        try issuerKey.withPrivateKey { key throws(CryptoError) in
            guard X509_sign(certificate, key, EVP_sha256()) > 0 else { throw CryptoError.fromLibrary("signature") }
        }
        der = try DER.encoding("certificate") { i2d_X509(certificate, $0) }
    }

    /// Runs `body` with libcrypto's form.
    func withLibraryForm<Result>(_ body: (OpaquePointer) throws(CryptoError) -> Result) throws(CryptoError) -> Result {
        let certificate = der.withUnsafeBufferPointer { buffer in
            var place = buffer.baseAddress
            return d2i_X509(nil, &place, buffer.count)
        }
        guard let certificate else { throw CryptoError.fromLibrary("certificate") }
        defer { X509_free(certificate) }
        return try body(certificate)
    }

    private static func setSerialNumber(_ octets: [UInt8], of certificate: OpaquePointer) throws(CryptoError) {
        guard (1...20).contains(octets.count), octets.contains(where: { $0 != 0 }) else {
            throw CryptoError(code: .certificate, detail: "a serial number of \(octets.count) bytes; 1 to 20, not all zero")
        }
        guard let number = BN_bin2bn(octets, Int32(octets.count), nil) else { throw CryptoError.fromLibrary("serial number") }
        defer { BN_free(number) }
        guard BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nil else {
            throw CryptoError.fromLibrary("serial number")
        }
    }

    private static func set(
        _ issuer: [(String, String)], _ subject: [(String, String)], of certificate: OpaquePointer
    ) throws(CryptoError) {
        for (attributes, name) in [(issuer, X509_get_issuer_name(certificate)), (subject, X509_get_subject_name(certificate))] {
            for (field, text) in attributes {
                let octets = Array(text.utf8)
                guard X509_NAME_add_entry_by_txt(name, field, MBSTRING_FLAG | 0, octets, Int32(octets.count), -1, 0) == 1 else {
                    throw CryptoError.fromLibrary("name \(field)")
                }
            }
        }
    }

    private static func add(_ item: Extension, to certificate: OpaquePointer) throws(CryptoError) {
        guard let object = OBJ_txt2obj(item.identifier, 1) else { throw CryptoError.fromLibrary("extension \(item.identifier)") }
        defer { ASN1_OBJECT_free(object) }
        guard let value = ASN1_OCTET_STRING_new() else { throw CryptoError.fromLibrary("extension") }
        defer { ASN1_OCTET_STRING_free(value) }
        guard ASN1_OCTET_STRING_set(value, item.value, Int32(item.value.count)) == 1,
            let written = X509_EXTENSION_create_by_OBJ(nil, object, item.isCritical ? 1 : 0, value)
        else { throw CryptoError.fromLibrary("extension") }
        defer { X509_EXTENSION_free(written) }
        guard X509_add_ext(certificate, written, -1) == 1 else { throw CryptoError.fromLibrary("extension") }
    }
}
