// SPDX-License-Identifier: MIT

import Octets

/// A SubjectPublicKeyInfo (RFC 5280 4.1.2.7) as it stands in certificates, DG14, DG15 and EF.CardSecurity.
public struct SubjectPublicKeyInfo: Sendable, Hashable {
    public enum Parameters: Sendable, Hashable {
        case none
        case curve(EllipticCurve)
        /// The number of standardized domain parameters (ICAO 9303-11 9.5.1): 0 to 2 are groups, 8 to 18 curves.
        case standardized(Int)
        /// Unsigned, most significant octet first; the order is in X9.42 only.
        case diffieHellman(prime: [UInt8], generator: [UInt8], order: [UInt8]?)
        /// Octets of parameters that this library does not know.
        case other([UInt8])
    }

    /// Dotted decimal.
    public let algorithm: String
    public let parameters: Parameters
    /// The octets of the BIT STRING: a point, or the DER of numbers.
    public let key: [UInt8]
    /// The whole SEQUENCE.
    public let der: [UInt8]

    public init(_ object: DataObject) throws(DataObjectError) {
        let parts = try object.elements(of: 0x30)
        let identifier = try parts.element(0, of: object, tag: 0x30)
        algorithm = try identifier.children().element(0, of: identifier).objectIdentifier()
        parameters = try Parameters(algorithm: identifier)
        key = Array(try parts.element(1, of: object).bitStringOctets())
        der = Array(object.octets)
    }

    /// - Throws: ``DataObjectError``.
    public init(der: [UInt8]) throws(DataObjectError) { try self.init(try DataObject(der)) }

    /// The key for signatures; nil for keys of other algorithms and numbers that are no key.
    public var signatureKey: PublicKey? {
        switch (algorithm, parameters) {
        case (Self.rsa, _), (Self.rsaPSS, _):
            guard let object = try? DataObject(key), let parts = try? object.elements(of: 0x30), parts.count >= 2,
                parts[0].tag == 0x02, parts[1].tag == 0x02
            else { return nil }
            // Some issuers leave out the zero before a modulus whose first bit is set.
            return .rsa(modulus: parts[0].value.drop { $0 == 0 }.map { $0 }, exponent: parts[1].value.drop { $0 == 0 }.map { $0 })
        case (_, .curve(let curve)): return .elliptic(curve, point: key)
        default: return nil
        }
    }

    /// The public value of Diffie-Hellman, unsigned without leading zeros; nil for other keys.
    public var publicValue: [UInt8]? {
        switch parameters {
        case .diffieHellman, .standardized(0...2): (try? DataObject(key))?.unsigned
        default: nil
        }
    }

    static let rsa = "1.2.840.113549.1.1.1"
    private static let rsaPSS = "1.2.840.113549.1.1.10"
}

extension SubjectPublicKeyInfo.Parameters {
    /// The parameters of an AlgorithmIdentifier: a SEQUENCE of object identifier and what that asks for.
    public init(algorithm identifier: DataObject) throws(DataObjectError) {
        let fields = try identifier.elements(of: 0x30)
        self = try Self.parameters(
            of: try fields.element(0, of: identifier).objectIdentifier(), fields.count > 1 ? fields[1] : nil)
    }

    private static func parameters(of algorithm: String, _ object: DataObject?) throws(DataObjectError) -> Self {
        guard let object, object.tag != 0x05 else { return .none }
        switch algorithm {
        case "1.2.840.10045.2.1", "1.3.132.1.12":
            if object.tag == 0x30 { return .curve(try EllipticCurve(ecParameters: object)) }
            let identifier = try object.objectIdentifier()
            do { return .curve(try EllipticCurve(named: identifier)) } catch { throw object.fault(.value, error.detail) }
        case "0.4.0.127.0.7.1.2": return .standardized(try object.smallInteger())
        case "1.2.840.10046.2.1":
            let parts = try object.elements(of: 0x30)
            return .diffieHellman(
                prime: try parts.element(0, of: object).unsignedInteger(),
                generator: try parts.element(1, of: object).unsignedInteger(),
                order: try parts.element(2, of: object).unsignedInteger())
        case "1.2.840.113549.1.3.1":
            let parts = try object.elements(of: 0x30)
            return .diffieHellman(
                prime: try parts.element(0, of: object).unsignedInteger(),
                generator: try parts.element(1, of: object).unsignedInteger(), order: nil)
        default: return .other(Array(object.octets))
        }
    }
}

extension PublicKey {
    /// The SubjectPublicKeyInfo in DER.
    ///
    /// - Parameter explicitParameters: spells a curve's numbers out instead of naming it, as country signing certificates do.
    public func subjectPublicKeyInfo(explicitParameters: Bool = false) throws(CryptoError) -> [UInt8] {
        switch self {
        case .rsa(let modulus, let exponent):
            let key = DER.sequence(DER.integer(modulus), DER.integer(exponent))
            return DER.sequence(
                DER.sequence(try DER.objectIdentifier(SubjectPublicKeyInfo.rsa), DER.null), DER.bitString(key))
        case .elliptic(let curve, let point):
            let parameters =
                if let name = curve.objectIdentifier, !explicitParameters { try DER.objectIdentifier(name) } else {
                    try curve.ecParameters()
                }
            return DER.sequence(
                DER.sequence(try DER.objectIdentifier("1.2.840.10045.2.1"), parameters), DER.bitString(point))
        }
    }

    /// The SHA-1 hash of the public key's bits: the key identifier of RFC 5280 4.2.1.2, method 1.
    public func keyIdentifier() throws(CryptoError) -> [UInt8] {
        switch self {
        case .rsa(let modulus, let exponent):
            try Digest.sha1.hash(DER.sequence(DER.integer(modulus), DER.integer(exponent)))
        case .elliptic(_, let point): try Digest.sha1.hash(point)
        }
    }
}

extension DataObject {
    fileprivate var unsigned: [UInt8]? { try? unsignedInteger() }
}
