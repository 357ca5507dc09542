// SPDX-License-Identifier: MIT

import Octets

/// A card verifiable certificate (BSI TR-03110 part 3, C and D), the kind that Terminal Authentication uses.
public struct CVCertificate: Sendable, Hashable {
    /// The whole certificate: `7F21 { 7F4E body, 5F37 signature }`.
    public let octets: [UInt8]
    /// The body, `7F4E` with its length: what is signed.
    public let body: [UInt8]
    public let signature: [UInt8]
    /// Certification Authority Reference: whose key verifies the signature. Absent in some requests.
    public let authorityReference: [UInt8]?
    public let publicKey: CVPublicKey
    public let holderReference: [UInt8]
    /// What the holder may do; nil in a request.
    public let authorization: Authorization?
    public let effective: CalendarDay?
    public let expiration: CalendarDay?
    /// The discretionary data templates of the extensions, each `73` whole.
    public let extensions: [[UInt8]]

    /// Certificate Holder Authorization Template: the type of terminal and its bits.
    public struct Authorization: Sendable, Hashable {
        /// Dotted decimal: ``inspectionSystem`` in passports.
        public let terminalType: String
        public let bits: [UInt8]

        public init(terminalType: String, bits: [UInt8]) {
            self.terminalType = terminalType
            self.bits = bits
        }

        public static let inspectionSystem = "0.4.0.127.0.7.3.1.2.1"
        public static let authenticationTerminal = "0.4.0.127.0.7.3.1.2.2"
        public static let signatureTerminal = "0.4.0.127.0.7.3.1.2.3"

        public var role: Role { Role(rawValue: (bits.first ?? 0) >> 6) ?? .terminal }
        /// Fingers, where the terminal type is an inspection system.
        public var mayReadDG3: Bool { terminalType == Self.inspectionSystem && (bits.last ?? 0) & 0x01 != 0 }
        /// Irises, where the terminal type is an inspection system.
        public var mayReadDG4: Bool { terminalType == Self.inspectionSystem && (bits.last ?? 0) & 0x02 != 0 }
    }

    public enum Role: UInt8, Sendable, Hashable {
        case terminal = 0
        /// Of another state or without an official mandate.
        case foreignDocumentVerifier = 1
        case officialDocumentVerifier = 2
        /// Country verifying certification authority.
        case authority = 3
    }

    /// Parses a certificate, or a request, which has no authorization and dates. An outer signature of a request (`67`) is not looked at.
    ///
    /// - Throws: ``DataObjectError``.
    public init(_ octets: [UInt8]) throws(DataObjectError) {
        var object = try DataObject(octets)
        if object.tag == 0x67 {
            guard let inner = try object.children().first(0x7F21) else { throw object.fault(.missing, "no certificate (7F21)") }
            object = inner
        }
        try object.require(0x7F21)
        let parts = try object.children()
        let body = try parts.element(0, of: object, tag: 0x7F4E)
        self.octets = Array(object.octets)
        self.body = Array(body.octets)
        signature = Array(try parts.element(1, of: object, tag: 0x5F37).value)

        let fields = try body.children()
        func field(_ tag: UInt32, _ name: String) throws(DataObjectError) -> DataObject {
            guard let object = fields.first(tag) else {
                throw body.fault(.missing, "no \(name) (\(DataObject.hex(tag)))")
            }
            return object
        }
        let profile = try field(0x5F29, "profile identifier")
        guard Array(profile.value) == [0] else { throw profile.fault(.value, "a profile other than 1") }
        authorityReference = try fields.first(0x42).map(Self.reference)
        publicKey = try CVPublicKey(try field(0x7F49, "public key"))
        holderReference = try Self.reference(try field(0x5F20, "holder reference"))
        if let template = fields.first(0x7F4C) {
            let parts = try template.children()
            let bits = try parts.element(1, of: template, tag: 0x53)
            guard (1...8).contains(bits.value.count) else {
                throw bits.fault(.value, "\(bits.value.count) octets of authorization")
            }
            authorization = Authorization(
                terminalType: try parts.element(0, of: template).objectIdentifier(), bits: Array(bits.value))
        } else {
            authorization = nil
        }
        effective = try fields.first(0x5F25).map(Self.day)
        expiration = try fields.first(0x5F24).map(Self.day)
        extensions = try fields.first(0x65).map(Self.templates) ?? []
    }

    private static func reference(_ object: DataObject) throws(DataObjectError) -> [UInt8] {
        // Country of 2 letters, mnemonic of up to 9, sequence number of 5 (part 3, A.6.1).
        guard (1...16).contains(object.value.count) else {
            throw object.fault(.value, "a reference of \(object.value.count) octets")
        }
        return Array(object.value)
    }

    private static func day(_ object: DataObject) throws(DataObjectError) -> CalendarDay {
        guard object.value.count == 6, object.value.allSatisfy({ $0 <= 9 }) else {
            throw object.fault(.value, "a date that is not six digits of one octet each")
        }
        let digits = object.value.map(Int.init)
        guard
            let day = CalendarDay(
                year: 2_000 + digits[0] * 10 + digits[1], month: digits[2] * 10 + digits[3], day: digits[4] * 10 + digits[5])
        else { throw object.fault(.value, "a date that is in no calendar") }
        return day
    }

    private static func templates(_ object: DataObject) throws(DataObjectError) -> [[UInt8]] {
        try object.children().map { Array($0.octets) }
    }
}

extension CVCertificate {
    /// What a new certificate says.
    public struct Content: Sendable {
        public var authorityReference: [UInt8]
        public var holderReference: [UInt8]
        public var authorization: Authorization
        public var effective: CalendarDay
        public var expiration: CalendarDay

        public init(
            authorityReference: String, holderReference: String, authorization: Authorization, effective: CalendarDay,
            expiration: CalendarDay
        ) {
            self.authorityReference = Array(authorityReference.utf8)
            self.holderReference = Array(holderReference.utf8)
            self.authorization = authorization
            self.effective = effective
            self.expiration = expiration
        }
    }

    /// Writes a certificate for `holderKey` and signs it with `authorityKey`.
    ///
    /// - Parameters:
    ///   - scheme: what the holder's key signs with; it stands in the certificate.
    ///   - authorityScheme: what this certificate is signed with.
    ///   - spellsCurve: whether the curve's numbers stand in it, as in certificates of an authority.
    ///   - random: see ``SigningKey/sign(_:by:random:)``.
    /// - Throws: ``CryptoError``.
    public init(
        _ content: Content, for holderKey: PublicKey, scheme: SignatureScheme, spellsCurve: Bool,
        signedBy authorityKey: SigningKey,
        authorityScheme: SignatureScheme, random: [UInt8]
    ) throws(CryptoError) {
        let template =
            try DER.objectIdentifier(content.authorization.terminalType) + TLV.encode(0x53, content.authorization.bits)
        let key = try CVPublicKey.encode(holderKey, scheme, spellsCurve: spellsCurve)
        let fields =
            TLV.encode(0x5F29, [0]) + TLV.encode(0x42, content.authorityReference) + key
            + TLV.encode(0x5F20, content.holderReference) + TLV.encode(0x7F4C, template)
            + TLV.encode(0x5F25, content.effective.digits) + TLV.encode(0x5F24, content.expiration.digits)
        let body = TLV.encode(0x7F4E, fields)
        let signature = try authorityKey.sign(body, by: authorityScheme, random: random)
        do { self = try CVCertificate(TLV.encode(0x7F21, body + TLV.encode(0x5F37, signature))) } catch {
            throw CryptoError(code: .encoding, detail: "CV certificate: \(error)")
        }
    }

    /// Body and signature, as PSO:VERIFY CERTIFICATE carries them.
    public var bodyAndSignature: [UInt8] { body + TLV.encode(0x5F37, signature) }

    /// Whether `key` made the signature.
    public func isSigned(by key: PublicKey, _ scheme: SignatureScheme) throws(CryptoError) -> Bool {
        try key.verifies(signature, over: body, by: scheme)
    }
}

/// The public key of a CV certificate (BSI TR-03110 part 3, D.3).
public struct CVPublicKey: Sendable, Hashable {
    /// Object identifier of the Terminal Authentication that the key is for, in dotted decimal.
    public let algorithm: String
    /// The scheme that the identifier names; nil when it is not known.
    public let scheme: SignatureScheme?
    /// Nil for a key on a curve whose numbers stand in the authority's certificate only: see ``completed(by:)``.
    public let key: PublicKey?
    /// The point of a key on a curve.
    let point: [UInt8]?

    init(_ object: DataObject) throws(DataObjectError) {
        let parts = try object.children()
        algorithm = try parts.element(0, of: object).objectIdentifier()
        scheme = SignatureScheme(terminalAuthentication: algorithm)
        if let point = parts.first(0x86) {
            self.point = Array(point.value)
            guard let prime = parts.first(0x81) else {
                key = nil
                return
            }
            func number(_ tag: UInt32) throws(DataObjectError) -> [UInt8] {
                guard let part = parts.first(tag) else {
                    throw object.fault(.missing, "a curve without \(DataObject.hex(tag))")
                }
                return Array(part.value)
            }
            let curve: EllipticCurve
            let a = try number(0x82)
            let b = try number(0x83)
            let generator = try number(0x84)
            let order = try number(0x85)
            do {
                curve = try EllipticCurve(
                    prime: Array(prime.value), a: a, b: b, generator: generator, order: order,
                    cofactor: parts.first(0x87).map { Array($0.value) } ?? [])
            } catch { throw object.fault(.value, error.detail) }
            key = .elliptic(curve, point: Array(point.value))
        } else {
            guard let modulus = parts.first(0x81), let exponent = parts.first(0x82) else {
                throw object.fault(.missing, "neither a point (86) nor modulus and exponent (81, 82)")
            }
            point = nil
            key = .rsa(modulus: Array(modulus.value.drop { $0 == 0 }), exponent: Array(exponent.value.drop { $0 == 0 }))
        }
    }

    private init(algorithm: String, key: PublicKey, point: [UInt8]?) {
        self.algorithm = algorithm
        scheme = SignatureScheme(terminalAuthentication: algorithm)
        self.key = key
        self.point = point
    }

    /// The key with the curve of `authority` where it has none of its own (part 3, D.3.3).
    public func completed(by authority: PublicKey?) -> CVPublicKey {
        guard key == nil, let point, case .elliptic(let curve, _)? = authority else { return self }
        return CVPublicKey(algorithm: algorithm, key: .elliptic(curve, point: point), point: point)
    }

    /// Whether `key` has this key's point, where the curve does not stand here.
    public func hasPoint(of key: PublicKey) -> Bool {
        if case .elliptic(_, let other) = key { return other == point }
        return false
    }

    /// `7F49`.
    static func encode(_ key: PublicKey, _ scheme: SignatureScheme, spellsCurve: Bool) throws(CryptoError) -> [UInt8] {
        guard let identifier = scheme.terminalAuthenticationIdentifier else {
            throw CryptoError(code: .algorithm, detail: "\(scheme.name) is none of Terminal Authentication's")
        }
        let name = try DER.objectIdentifier(identifier)
        switch key {
        case .rsa(let modulus, let exponent):
            return TLV.encode(0x7F49, name + TLV.encode(0x81, modulus) + TLV.encode(0x82, exponent))
        case .elliptic(let curve, let point):
            guard spellsCurve else { return TLV.encode(0x7F49, name + TLV.encode(0x86, point)) }
            let numbers =
                TLV.encode(0x81, curve.prime) + TLV.encode(0x82, curve.a) + TLV.encode(0x83, curve.b)
                + TLV.encode(0x84, curve.generator) + TLV.encode(0x85, curve.order)
            return TLV.encode(0x7F49, name + numbers + TLV.encode(0x86, point) + TLV.encode(0x87, curve.cofactor))
        }
    }
}

extension SignatureScheme {
    /// The scheme of an object identifier of Terminal Authentication (BSI TR-03110 part 3, A.1.1.3), or nil.
    public init?(terminalAuthentication identifier: String) {
        guard let known = Self.terminalAuthentication.first(where: { $0.identifier == identifier }) else { return nil }
        self = known.scheme
    }

    public var terminalAuthenticationIdentifier: String? {
        Self.terminalAuthentication.first { $0.scheme == self }?.identifier
    }

    private static let terminalAuthentication: [(identifier: String, scheme: SignatureScheme)] = [
        ("0.4.0.127.0.7.2.2.2.1.1", .rsaPKCS1(.sha1)), ("0.4.0.127.0.7.2.2.2.1.2", .rsaPKCS1(.sha256)),
        ("0.4.0.127.0.7.2.2.2.1.3", .rsaPSS(.sha1, mask: .sha1, saltLength: 20)),
        ("0.4.0.127.0.7.2.2.2.1.4", .rsaPSS(.sha256, mask: .sha256, saltLength: 32)),
        ("0.4.0.127.0.7.2.2.2.1.5", .rsaPKCS1(.sha512)),
        ("0.4.0.127.0.7.2.2.2.1.6", .rsaPSS(.sha512, mask: .sha512, saltLength: 64)),
        ("0.4.0.127.0.7.2.2.2.2.1", .ecdsaPlain(.sha1)), ("0.4.0.127.0.7.2.2.2.2.2", .ecdsaPlain(.sha224)),
        ("0.4.0.127.0.7.2.2.2.2.3", .ecdsaPlain(.sha256)), ("0.4.0.127.0.7.2.2.2.2.4", .ecdsaPlain(.sha384)),
        ("0.4.0.127.0.7.2.2.2.2.5", .ecdsaPlain(.sha512)),
    ]
}
