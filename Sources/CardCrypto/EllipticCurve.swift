// SPDX-License-Identifier: MIT

import CLibCrypto

/// The domain parameters of an elliptic curve over a prime field (SEC 1 3.1.1). All numbers are most significant octet first.
public struct EllipticCurve: Sendable, Hashable {
    /// p, a and b, each as long as the field.
    public let prime: [UInt8]
    public let a: [UInt8]
    public let b: [UInt8]
    /// `04`, x, y.
    public let generator: [UInt8]
    /// Without leading zeros.
    public let order: [UInt8]
    public let cofactor: [UInt8]
    /// The object identifier of the named curve with these parameters, or nil when none that libcrypto knows has them.
    public let objectIdentifier: String?

    /// Octets of a coordinate.
    public var fieldLength: Int { prime.count }
    /// Octets of a scalar, and of each half of a plain signature.
    public var orderLength: Int { order.count }

    /// The named curve of this object identifier, in dotted decimal.
    ///
    /// - Throws: ``CryptoError`` with the code `curve` for one that libcrypto does not know or that is over a binary field.
    public init(named objectIdentifier: String) throws(CryptoError) {
        let nid = OBJ_txt2nid(objectIdentifier)
        guard nid != NID_undef, let group = EC_GROUP_new_by_curve_name(nid) else {
            ERR_clear_error()
            throw CryptoError(code: .curve, detail: "no curve \(objectIdentifier) is known")
        }
        defer { EC_GROUP_free(group) }
        try self.init(group)
    }

    /// The standardized domain parameters of this number, 8 to 18 (ICAO 9303-11 9.5.1).
    ///
    /// - Throws: ``CryptoError`` with the code `curve` for another number.
    public init(standardized number: Int) throws(CryptoError) {
        guard let identifier = Self.standardized[number] else {
            throw CryptoError(code: .curve, detail: "no curve has the parameter id \(number)")
        }
        try self.init(named: identifier)
    }

    /// The curve of explicit parameters, which is the named one where they are the same.
    ///
    /// - Throws: ``CryptoError`` with the code `curve` when they are no curve, or one of more than 521 bits.
    public init(
        prime: [UInt8], a: [UInt8], b: [UInt8], generator: [UInt8], order: [UInt8], cofactor: [UInt8]
    ) throws(CryptoError) {
        let group = try Self.group(prime, a, b, generator, order, cofactor)
        defer { EC_GROUP_free(group) }
        try self.init(group)
    }

    private init(_ group: OpaquePointer) throws(CryptoError) {
        let scratch = try Scratch()
        let p = try scratch.number()
        let a = try scratch.number()
        let b = try scratch.number()
        guard EC_GROUP_get_field_type(group) == NID_X9_62_prime_field,
            EC_GROUP_get_curve(group, p, a, b, scratch.context) == 1,
            let point = EC_GROUP_get0_generator(group), let order = EC_GROUP_get0_order(group),
            let cofactor = EC_GROUP_get0_cofactor(group)
        else {
            ERR_clear_error()
            throw CryptoError(code: .curve, detail: "no curve over a prime field")
        }
        prime = Scratch.octets(p)
        self.a = try Scratch.octets(a, length: prime.count)
        self.b = try Scratch.octets(b, length: prime.count)
        generator = try Self.octets(of: point, on: group, scratch)
        self.order = Scratch.octets(order)
        self.cofactor = Scratch.octets(cofactor)
        let nid = EC_GROUP_get_curve_name(group)
        let known = nid != NID_undef ? nid : EC_GROUP_check_named_curve(group, 0, scratch.context)
        ERR_clear_error()
        objectIdentifier =
            known == NID_undef
            ? nil
            : OBJ_nid2obj(known).flatMap { object in
                (try? DER.encoding("object identifier") { i2d_ASN1_OBJECT(object, $0) })
                    .flatMap { DER.objectIdentifierText($0.dropFirst(2)) }
            }
    }

    /// Runs `body` with libcrypto's form.
    func withGroup<Result>(_ body: (OpaquePointer) throws(CryptoError) -> Result) throws(CryptoError) -> Result {
        let group: OpaquePointer
        if let objectIdentifier, let named = EC_GROUP_new_by_curve_name(OBJ_txt2nid(objectIdentifier)) {
            group = named
        } else {
            group = try Self.group(prime, a, b, generator, order, cofactor)
        }
        defer { EC_GROUP_free(group) }
        return try body(group)
    }

    /// Runs `body` with a point of the curve that is not infinity.
    ///
    /// - Throws: ``CryptoError`` with the code `publicKey` when `octets` are none.
    func withPoint<Result>(
        _ octets: [UInt8], on group: OpaquePointer, _ scratch: Scratch,
        _ body: (OpaquePointer) throws(CryptoError) -> Result
    ) throws(CryptoError) -> Result {
        guard let point = EC_POINT_new(group) else { throw CryptoError.fromLibrary("point") }
        defer { EC_POINT_free(point) }
        guard EC_POINT_oct2point(group, point, octets, octets.count, scratch.context) == 1,
            EC_POINT_is_at_infinity(group, point) == 0, EC_POINT_is_on_curve(group, point, scratch.context) == 1
        else {
            ERR_clear_error()
            throw CryptoError(code: .publicKey, detail: "\(octets.count) bytes that are no point of the curve")
        }
        return try body(point)
    }

    /// `04`, x, y.
    static func octets(of point: OpaquePointer, on group: OpaquePointer, _ scratch: Scratch) throws(CryptoError) -> [UInt8] {
        let form = POINT_CONVERSION_UNCOMPRESSED
        let count = EC_POINT_point2oct(group, point, form, nil, 0, scratch.context)
        var written = 0
        let octets = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            written = EC_POINT_point2oct(group, point, form, buffer.baseAddress, count, scratch.context)
            initialized = written
        }
        guard count > 1, written == count else { throw CryptoError.fromLibrary("point") }
        return octets
    }

    private static func group(
        _ prime: [UInt8], _ a: [UInt8], _ b: [UInt8], _ generator: [UInt8], _ order: [UInt8], _ cofactor: [UInt8]
    ) throws(CryptoError) -> OpaquePointer {
        let refused = CryptoError(code: .curve, detail: "the domain parameters are no elliptic curve")
        let longest = 66
        guard [prime, a, b, order, cofactor].allSatisfy({ $0.drop { $0 == 0 }.count <= longest }),
            generator.count <= 2 * longest + 1,
            (prime.last ?? 0) & 1 == 1, prime.drop(while: { $0 == 0 }).count >= 14
        else { throw refused }
        let scratch = try Scratch()
        let numbers = try [prime, a, b, order].map { octets throws(CryptoError) in try scratch.number(octets) }
        // Without a cofactor libcrypto computes it.
        let cofactor = cofactor.isEmpty ? nil : try scratch.number(cofactor)
        guard let group = EC_GROUP_new_curve_GFp(numbers[0], numbers[1], numbers[2], scratch.context) else {
            ERR_clear_error()
            throw refused
        }
        guard let point = EC_POINT_new(group) else {
            EC_GROUP_free(group)
            throw CryptoError.fromLibrary("point")
        }
        defer { EC_POINT_free(point) }
        guard EC_POINT_oct2point(group, point, generator, generator.count, scratch.context) == 1,
            EC_GROUP_set_generator(group, point, numbers[3], cofactor) == 1
        else {
            EC_GROUP_free(group)
            ERR_clear_error()
            throw refused
        }
        return group
    }

    private static let standardized = [
        8: "1.2.840.10045.3.1.1", 9: "1.3.36.3.3.2.8.1.1.3", 10: "1.3.132.0.33", 11: "1.3.36.3.3.2.8.1.1.5",
        12: "1.2.840.10045.3.1.7", 13: "1.3.36.3.3.2.8.1.1.7", 14: "1.3.36.3.3.2.8.1.1.9", 15: "1.3.132.0.34",
        16: "1.3.36.3.3.2.8.1.1.11", 17: "1.3.36.3.3.2.8.1.1.13", 18: "1.3.132.0.35",
    ]
}

/// Explicit parameters in DER (SEC 1 C.2, RFC 3279 2.3.5).
extension EllipticCurve {
    /// ECParameters: a SEQUENCE of version, field, curve, generator, order and cofactor.
    public init(ecParameters object: DataObject) throws(DataObjectError) {
        let parts = try object.elements(of: 0x30)
        let field = try parts.element(1, of: object).elements(of: 0x30)
        guard try field.element(0, of: parts[1]).objectIdentifier() == "1.2.840.10045.1.1" else {
            throw parts[1].fault(.value, "a curve that is not over a prime field")
        }
        let coefficients = try parts.element(2, of: object).elements(of: 0x30)
        let a = Array(try coefficients.element(0, of: parts[2], tag: 0x04).value)
        let b = Array(try coefficients.element(1, of: parts[2], tag: 0x04).value)
        let prime = try field.element(1, of: parts[1]).unsignedInteger()
        let generator = Array(try parts.element(3, of: object, tag: 0x04).value)
        let order = try parts.element(4, of: object).unsignedInteger()
        let cofactor = parts.count > 5 ? try parts[5].unsignedInteger() : []
        do {
            try self.init(prime: prime, a: a, b: b, generator: generator, order: order, cofactor: cofactor)
        } catch { throw object.fault(.value, error.detail) }
    }

    /// ECParameters with all fields spelled out.
    public func ecParameters() throws(CryptoError) -> [UInt8] {
        DER.sequence(
            DER.integer([1]), DER.sequence(try DER.objectIdentifier("1.2.840.10045.1.1"), DER.integer(prime)),
            DER.sequence(DER.octetString(a), DER.octetString(b)), DER.octetString(generator), DER.integer(order),
            DER.integer(cofactor))
    }
}
