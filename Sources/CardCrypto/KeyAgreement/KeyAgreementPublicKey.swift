// SPDX-License-Identifier: MIT

import CLibCrypto
import Octets

/// A public key for key agreement as it stands in a SubjectPublicKeyInfo: that of Chip Authentication (ICAO 9303-11 9.2.6).
public struct KeyAgreementPublicKey: Sendable, Equatable {
    public let parameters: DomainParameters
    /// `04`, x, y; or an unsigned integer without leading zeros.
    public let octets: [UInt8]

    public init(_ parameters: DomainParameters, _ octets: [UInt8]) {
        self.parameters = parameters
        self.octets = octets
    }

    /// Reads a SubjectPublicKeyInfo (RFC 5280 4.1.2.7) and checks parameters and key.
    ///
    /// - Throws: ``CryptoError``: `encoding`, `domainParameters` or `publicKey`.
    public init(subjectPublicKeyInfo der: [UInt8]) throws(CryptoError) {
        let parts = try DERReader.sequence(der, "SubjectPublicKeyInfo")
        guard parts.count == 2, parts[1].tag == 0x03, parts[1].value.first == 0 else {
            throw CryptoError(code: .encoding, detail: "no SubjectPublicKeyInfo")
        }
        parameters = try DomainParameters(algorithmIdentifier: TLV.encode(parts[0].tag, parts[0].value))
        let key = Array(parts[1].value.dropFirst())
        switch parameters.kind {
        case .elliptic: octets = key
        case .multiplicative:
            guard let integer = try? TLV.first(in: key[...]), integer.tag == 0x02 else {
                throw CryptoError(code: .encoding, detail: "a DH public key that is no INTEGER")
            }
            octets = Array(integer.value.drop { $0 == 0 })
        }
        try parameters.validate(publicKey: octets)
    }

    /// The SubjectPublicKeyInfo.
    ///
    /// - Parameter standardized: whether parameters that have a number are named by it (9303-11 9.5.1), or written out.
    /// - Throws: ``CryptoError``.
    public func subjectPublicKeyInfo(standardized: Bool) throws(CryptoError) -> [UInt8] {
        let key = parameters.kind == .elliptic ? octets : DER.integer(octets)
        return DER.sequence(
            try parameters.algorithmIdentifier(standardized: standardized), TLV.encode(0x03, [0x00] + key))
    }
}

extension DomainParameters {
    /// Reads an `AlgorithmIdentifier` (ICAO 9303-11 9.5): a standard number, a named curve, explicit parameters of a curve (RFC 3279,
    /// TR-03111), or of a DH group (X9.42, PKCS #3). Explicit ones that are those of a standard group become that group.
    ///
    /// - Throws: ``CryptoError``: `encoding` when it cannot be read, `domainParameters` when it is no group to agree on keys in.
    public init(algorithmIdentifier der: [UInt8]) throws(CryptoError) {
        let parts = try DERReader.sequence(der, "AlgorithmIdentifier")
        guard let identifier = parts.first, identifier.tag == 0x06, parts.count == 2 else {
            throw CryptoError(code: .encoding, detail: "an AlgorithmIdentifier without identifier or parameters")
        }
        let value = parts[1]
        switch Array(identifier.value) {
        case ParameterIdentifier.standardized:
            guard value.tag == 0x02, value.value.count == 1, let number = value.value.first,
                let known = DomainParameters.standardized(Int(number))
            else {
                throw CryptoError(
                    code: .domainParameters, detail: "no standard domain parameters \(Hex.encode(Array(value.value)))")
            }
            self = known
        case ParameterIdentifier.ecPublicKey where value.tag == 0x06:
            self = try Self.named(TLV.encode(0x06, value.value))
        case ParameterIdentifier.ecPublicKey: self = try Self.explicitCurve(value).recognized
        case ParameterIdentifier.x942:
            let numbers = try DERReader.integers(value, atLeast: 3, "X9.42 parameters")
            self =
                DomainParameters(
                    .multiplicative(try ModularGroup(p: numbers[0], g: numbers[1], q: numbers[2])), standardizedIdentifier: nil
                ).recognized
        case ParameterIdentifier.pkcs3:
            let numbers = try DERReader.integers(value, atLeast: 2, "PKCS #3 parameters")
            self = try Self.withKnownOrder(p: numbers[0], g: numbers[1])
        default:
            throw CryptoError(
                code: .domainParameters, detail: "no key agreement with algorithm \(Hex.encode(Array(identifier.value)))")
        }
    }

    /// The `AlgorithmIdentifier` of these parameters.
    ///
    /// - Parameter standardized: whether parameters that have a number are named by it, or written out.
    /// - Throws: ``CryptoError``.
    public func algorithmIdentifier(standardized: Bool) throws(CryptoError) -> [UInt8] {
        if standardized, let standardizedIdentifier {
            return DER.sequence(
                TLV.encode(0x06, ParameterIdentifier.standardized),
                DER.integer([UInt8(truncatingIfNeeded: standardizedIdentifier)]))
        }
        switch group {
        case .elliptic(let curve):
            return DER.sequence(TLV.encode(0x06, ParameterIdentifier.ecPublicKey), try Self.explicitParameters(of: curve))
        case .multiplicative(let group):
            let p = DER.integer(try NumberScratch.octets(group.p))
            let g = DER.integer(try NumberScratch.octets(group.g))
            guard let q = group.q else {
                return DER.sequence(TLV.encode(0x06, ParameterIdentifier.pkcs3), DER.sequence(p, g))
            }
            return DER.sequence(
                TLV.encode(0x06, ParameterIdentifier.x942), DER.sequence(p, g, DER.integer(try NumberScratch.octets(q))))
        }
    }

    private static func named(_ identifier: [UInt8]) throws(CryptoError) -> DomainParameters {
        let object = identifier.withUnsafeBufferPointer { buffer in
            var place = buffer.baseAddress
            return d2i_ASN1_OBJECT(nil, &place, buffer.count)
        }
        guard let object else { throw CryptoError.fromLibrary("curve name") }
        defer { ASN1_OBJECT_free(object) }
        guard let known = namedCurve(OBJ_obj2nid(object)) else {
            throw CryptoError(code: .domainParameters, detail: "an unknown curve, \(Hex.encode(identifier))")
        }
        return known
    }

    /// ECParameters of RFC 3279 2.3.5: version, field, curve, base, order, cofactor.
    private static func explicitCurve(_ parameters: TLV) throws(CryptoError) -> DomainParameters {
        let parts = try DERReader.children(parameters, "ECParameters")
        guard parts.count >= 5, parts[0].tag == 0x02, parts[1].tag == 0x30, parts[2].tag == 0x30, parts[3].tag == 0x04,
            parts[4].tag == 0x02
        else { throw CryptoError(code: .encoding, detail: "no explicit parameters of a curve") }
        let field = try DERReader.children(parts[1], "field")
        let coefficients = try DERReader.children(parts[2], "curve")
        guard field.count == 2, field[0].tag == 0x06, Array(field[0].value) == ParameterIdentifier.primeField,
            field[1].tag == 0x02,
            coefficients.count >= 2, coefficients[0].tag == 0x04, coefficients[1].tag == 0x04
        else { throw CryptoError(code: .domainParameters, detail: "a curve that is not over a prime field") }
        let cofactor = parts.dropFirst(5).first { $0.tag == 0x02 }
        let curve = try CurveGroup(
            p: try DERReader.magnitude(field[1]), a: Array(coefficients[0].value), b: Array(coefficients[1].value),
            base: Array(parts[3].value), order: try DERReader.magnitude(parts[4]),
            cofactor: try cofactor.map { object throws(CryptoError) in try DERReader.magnitude(object) })
        return DomainParameters(.elliptic(curve), standardizedIdentifier: nil)
    }

    private static func explicitParameters(of curve: CurveGroup) throws(CryptoError) -> [UInt8] {
        let numbers = try curve.coefficients()
        guard let order = EC_GROUP_get0_order(curve.group), let cofactor = EC_GROUP_get0_cofactor(curve.group) else {
            throw CryptoError.fromLibrary("curve")
        }
        return DER.sequence(
            DER.integer([1]),
            DER.sequence(TLV.encode(0x06, ParameterIdentifier.primeField), DER.integer(numbers[0])),
            DER.sequence(DER.octetString(numbers[1]), DER.octetString(numbers[2])), DER.octetString(numbers[3]),
            DER.integer(try NumberScratch.octets(order)), DER.integer(try NumberScratch.octets(cofactor)))
    }

    /// PKCS #3 does not tell the order; a standard group's is known.
    private static func withKnownOrder(p: [UInt8], g: [UInt8]) throws(CryptoError) -> DomainParameters {
        let group = try ModularGroup(p: p, g: g, q: nil)
        for identifier in 0...2 {
            guard let known = standardized(identifier), case .multiplicative(let standard) = known.group else { continue }
            if BN_cmp(standard.p, group.p) == 0, BN_cmp(standard.g, group.g) == 0 { return known }
        }
        return DomainParameters(.multiplicative(group), standardizedIdentifier: nil)
    }
}

/// The object identifiers of key agreement parameters, as their octets.
private enum ParameterIdentifier {
    /// 0.4.0.127.0.7.1.2
    static let standardized: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x01, 0x02]
    /// 1.2.840.10045.2.1
    static let ecPublicKey: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
    /// 1.2.840.10045.1.1
    static let primeField: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x01, 0x01]
    /// 1.2.840.10046.2.1
    static let x942: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3E, 0x02, 0x01]
    /// 1.2.840.113549.1.3.1
    static let pkcs3: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x03, 0x01]
}

/// The few pieces of DER that keys and parameters are taken apart with.
private enum DERReader {
    static func sequence(_ der: [UInt8], _ name: String) throws(CryptoError) -> [TLV] {
        guard let outer = try? TLV.first(in: der[...]), outer.tag == 0x30 else {
            throw CryptoError(code: .encoding, detail: "\(name): no SEQUENCE")
        }
        return try children(outer, name)
    }

    static func children(_ object: TLV, _ name: String) throws(CryptoError) -> [TLV] {
        guard object.tag == 0x30, let parts = try? object.children(TLVRules(allowsFiller: false)) else {
            throw CryptoError(code: .encoding, detail: "\(name): no SEQUENCE, or a broken one")
        }
        return parts
    }

    static func integers(_ object: TLV, atLeast count: Int, _ name: String) throws(CryptoError) -> [[UInt8]] {
        let parts = try children(object, name)
        guard parts.count >= count else { throw CryptoError(code: .encoding, detail: "\(name): \(parts.count) numbers") }
        var numbers: [[UInt8]] = []
        for part in parts.prefix(count) { numbers.append(try magnitude(part)) }
        return numbers
    }

    /// The octets of an INTEGER that is not negative.
    static func magnitude(_ object: TLV) throws(CryptoError) -> [UInt8] {
        guard object.tag == 0x02, let first = object.value.first, first & 0x80 == 0, object.value.count <= 1025 else {
            throw CryptoError(code: .encoding, detail: "no INTEGER, or a negative one")
        }
        return Array(object.value.drop { $0 == 0 })
    }
}
