// SPDX-License-Identifier: MIT

import Octets

/// An X.509 certificate (RFC 5280) as the public key infrastructure of travel documents uses it (ICAO 9303-12 7.1).
public struct Certificate: Sendable, Hashable {
    public let der: [UInt8]
    /// The octets of the INTEGER as they stand.
    public let serialNumber: [UInt8]
    public let issuer: DistinguishedName
    public let subject: DistinguishedName
    public let notBefore: CertificateTime
    public let notAfter: CertificateTime
    public let publicKeyInfo: SubjectPublicKeyInfo
    /// What it is signed with; nil for an algorithm that ICAO 9303-12 does not allow.
    public let signatureScheme: SignatureScheme?
    public let extensions: CertificateExtensions
    /// The part that is signed.
    private let signed: [UInt8]
    private let signature: [UInt8]

    /// - Throws: ``DataObjectError``.
    public init(_ object: DataObject) throws(DataObjectError) {
        let parts = try object.elements(of: 0x30)
        let body = try parts.element(0, of: object, tag: 0x30)
        der = Array(object.octets)
        signed = Array(body.octets)
        signature = Array(try parts.element(2, of: object).bitStringOctets())
        signatureScheme = try? SignatureScheme(algorithm: try parts.element(1, of: object, tag: 0x30))
        var fields = try body.children()
        if fields.first?.tag == 0xA0 { fields.removeFirst() }
        serialNumber = Array(try fields.element(0, of: body, tag: 0x02).value)
        issuer = try DistinguishedName(try fields.element(2, of: body))
        let validity = try fields.element(3, of: body, tag: 0x30)
        let times = try validity.children()
        notBefore = try CertificateTime(try times.element(0, of: validity))
        notAfter = try CertificateTime(try times.element(1, of: validity))
        subject = try DistinguishedName(try fields.element(4, of: body))
        publicKeyInfo = try SubjectPublicKeyInfo(try fields.element(5, of: body))
        extensions =
            try fields.first(0xA3).map { object throws(DataObjectError) in try CertificateExtensions(object) }
            ?? CertificateExtensions()
    }

    /// - Throws: ``DataObjectError``.
    public init(der: [UInt8]) throws(DataObjectError) { try self.init(try DataObject(der)) }

    /// Nil for a key that no signature can be verified with.
    public var publicKey: PublicKey? { publicKeyInfo.signatureKey }

    public var isSelfIssued: Bool { issuer == subject }

    /// Whether `issuer`'s key made this certificate's signature.
    ///
    /// - Throws: ``CryptoError``: `algorithm` or `publicKey` when that cannot be told.
    public func isSigned(by issuer: Certificate) throws(CryptoError) -> Bool {
        guard let signatureScheme else { throw CryptoError(code: .algorithm, detail: "the signature algorithm is not known") }
        guard let key = issuer.publicKey else { throw CryptoError(code: .publicKey, detail: "the issuer's key is not known") }
        return try key.verifies(signature, over: signed, by: signatureScheme)
    }

    /// Whether `issuer` has the name and, where both tell, the key identifier that this certificate's issuer has.
    public func names(_ issuer: Certificate) -> Bool {
        guard self.issuer == issuer.subject else { return false }
        guard let wanted = extensions.authorityKeyIdentifier, let present = issuer.extensions.subjectKeyIdentifier else {
            return true
        }
        return wanted == present
    }
}

/// The extensions that matter for travel documents; others are passed over.
public struct CertificateExtensions: Sendable, Hashable {
    public var subjectKeyIdentifier: [UInt8]?
    public var authorityKeyIdentifier: [UInt8]?
    /// BasicConstraints: nil when the extension is not there.
    public var isAuthority: Bool?
    /// KeyUsage: the bits as they stand, digitalSignature first; nil when the extension is not there.
    public var keyUsage: [UInt8]?
    public var privateKeyNotBefore: CertificateTime?
    public var privateKeyNotAfter: CertificateTime?
    /// The kinds of document that the holder signs: `P` (9303-12 7.1.1.6).
    public var documentTypes: [String] = []
    /// Dotted decimal, of those marked critical and not known here.
    public var unknownCritical: [String] = []

    public init() {}

    /// Whether the key may sign certificates, as far as the certificate tells.
    public var maySignCertificates: Bool {
        if let bits = keyUsage?.first { return bits & 0x04 != 0 && isAuthority != false }
        return isAuthority != false
    }

    /// - Parameter object: `[3]` of a certificate's body.
    init(_ object: DataObject) throws(DataObjectError) {
        for item in try object.inner().elements(of: 0x30) {
            let parts = try item.elements(of: 0x30)
            let identifier = try parts.element(0, of: item).objectIdentifier()
            let isCritical = parts.count > 2 && parts[1].value.first == 0xFF
            let value = try parts.element(parts.count - 1, of: item, tag: 0x04)
            switch identifier {
            case "2.5.29.14":
                // Some issuers leave out the OCTET STRING inside.
                let inner = try? value.inner(tag: 0x04)
                subjectKeyIdentifier = Array(
                    inner.map { $0.octets.count == value.value.count ? $0.value : value.value } ?? value.value)
            case "2.5.29.35": authorityKeyIdentifier = try value.inner(tag: 0x30).children().first(0x80).map { Array($0.value) }
            case "2.5.29.19": isAuthority = try value.inner(tag: 0x30).children().first(0x01)?.value.first == 0xFF
            case "2.5.29.15": keyUsage = Array(try value.inner(tag: 0x03).value.dropFirst())
            case "2.5.29.16":
                for time in try value.inner(tag: 0x30).children() {
                    // Implicitly tagged GeneralizedTime.
                    let text = String(decoding: time.value, as: UTF8.self)
                    if time.tag == 0x80 { privateKeyNotBefore = try? CertificateTime(text) }
                    if time.tag == 0x81 { privateKeyNotAfter = try? CertificateTime(text) }
                }
            case "2.23.136.1.1.6.2":
                let list = try value.inner(tag: 0x30)
                let types = try list.children().element(1, of: list, tag: 0x31)
                documentTypes = try types.children().map { String(decoding: $0.value, as: UTF8.self) }
            default: if isCritical { unknownCritical.append(identifier) }
            }
        }
    }
}
