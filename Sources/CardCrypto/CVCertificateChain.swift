// SPDX-License-Identifier: MIT

public import Octets

/// What a card holds to verify terminals' certificates, and how it does so (BSI TR-03110 part 3, 2.5 and B.3).
///
/// Hand it the certificates in order: links of the authority, the document verifier's, the terminal's.
public struct CVCertificateVerifier: Sendable {
    /// A key that certificates may be signed with.
    public struct TrustPoint: Sendable, Hashable {
        public let reference: [UInt8]
        public let publicKey: CVPublicKey
        public let authorization: CVCertificate.Authorization
        public let expiration: CalendarDay?

        /// - Parameter certificate: one of an authority, with its curve spelled out.
        /// - Throws: ``CryptoError`` with the code `certificate` for one of another role.
        public init(_ certificate: CVCertificate) throws(CryptoError) {
            guard let authorization = certificate.authorization, authorization.role == .authority,
                certificate.publicKey.key != nil
            else {
                throw CryptoError(code: .certificate, detail: "a CV certificate that is no authority's with its whole key")
            }
            self.init(certificate, authorization, certificate.publicKey)
        }

        init(_ certificate: CVCertificate, _ authorization: CVCertificate.Authorization, _ publicKey: CVPublicKey) {
            reference = certificate.holderReference
            self.publicKey = publicKey
            self.authorization = authorization
            expiration = certificate.expiration
        }
    }

    /// The authorities that the card trusts; a link certificate that was verified adds one.
    public private(set) var trustPoints: [TrustPoint]
    /// The card's idea of today: it has no clock, and learns from the effective dates of certificates.
    public private(set) var today: CalendarDay
    /// The key whose certificate was verified last.
    public private(set) var current: TrustPoint?

    public init(trustPoints: [TrustPoint], today: CalendarDay) {
        self.trustPoints = trustPoints
        self.today = today
    }

    /// The key of this reference: a trust point's, or that of the certificate verified last.
    public func key(of reference: [UInt8]) -> TrustPoint? {
        if let current, current.reference == reference { return current }
        return trustPoints.first { $0.reference == reference }
    }

    /// Verifies the next certificate under the key that it refers to, and takes over what it says.
    ///
    /// - Throws: ``CVCertificateRefusal``; nothing changed then.
    public mutating func verify(_ certificate: CVCertificate) throws(CVCertificateRefusal) {
        guard let reference = certificate.authorityReference, let issuer = key(of: reference) else {
            throw CVCertificateRefusal(.unknownAuthority, certificate)
        }
        guard let authorization = certificate.authorization, let effective = certificate.effective,
            let expiration = certificate.expiration, effective <= expiration
        else { throw CVCertificateRefusal(.incomplete, certificate) }
        guard authorization.terminalType == issuer.authorization.terminalType,
            Self.may(issuer.authorization.role, issue: authorization.role)
        else { throw CVCertificateRefusal(.role, certificate) }
        guard let key = issuer.publicKey.key, let scheme = issuer.publicKey.scheme,
            (try? certificate.isSigned(by: key, scheme)) == true
        else { throw CVCertificateRefusal(.signature, certificate) }
        // An expired link of the authority must still be taken, or a card long unused could never be opened (2.5).
        guard authorization.role == .authority || expiration >= today else { throw CVCertificateRefusal(.expired, certificate) }

        let completed = certificate.publicKey.completed(by: key)
        guard completed.key != nil else { throw CVCertificateRefusal(.incomplete, certificate) }
        if authorization.role == .authority {
            let point = TrustPoint(certificate, authorization, completed)
            if !trustPoints.contains(where: { $0.reference == point.reference }) { trustPoints.append(point) }
            current = point
        } else {
            current = TrustPoint(certificate, Self.narrowed(authorization, by: issuer.authorization), completed)
        }
        if authorization.role == .authority || authorization.role == .officialDocumentVerifier { today = max(today, effective) }
    }

    /// What the holder of the certificate verified last may do: what each certificate of the chain grants.
    public var effectiveAuthorization: CVCertificate.Authorization? { current?.authorization }

    private static func may(_ issuer: CVCertificate.Role, issue subject: CVCertificate.Role) -> Bool {
        switch issuer {
        case .authority: subject != .terminal
        case .officialDocumentVerifier, .foreignDocumentVerifier: subject == .terminal
        case .terminal: false
        }
    }

    /// The rights of both, the role of the subject.
    private static func narrowed(
        _ subject: CVCertificate.Authorization, by issuer: CVCertificate.Authorization
    ) -> CVCertificate.Authorization {
        let count = min(subject.bits.count, issuer.bits.count)
        var bits = zip(subject.bits.suffix(count), issuer.bits.suffix(count)).map { $0 & $1 }
        if let first = subject.bits.suffix(count).first { bits[0] = first & 0xC0 | bits[0] & 0x3F }
        return CVCertificate.Authorization(terminalType: subject.terminalType, bits: bits)
    }
}

/// Why a card does not take a terminal's certificate.
public struct CVCertificateRefusal: CodedError {
    public enum Code: String, Sendable {
        /// No key of the authority's reference is at hand.
        case unknownAuthority
        /// Dates, authorization or key are missing.
        case incomplete
        /// The issuer may not issue certificates of this role or terminal type.
        case role
        case signature
        case expired
    }

    public let code: Code
    /// The holder reference of the certificate.
    public let holder: String

    init(_ code: Code, _ certificate: CVCertificate) {
        self.code = code
        holder = String(decoding: certificate.holderReference, as: UTF8.self)
    }

    public var description: String {
        switch code {
        case .unknownAuthority: "the certificate of \(holder) refers to an authority whose key is not at hand"
        case .incomplete: "the certificate of \(holder) lacks its dates, authorization or key"
        case .role: "the certificate of \(holder) is of a role that its issuer may not give"
        case .signature: "the signature of the certificate of \(holder) is wrong"
        case .expired: "the certificate of \(holder) has expired"
        }
    }
}
