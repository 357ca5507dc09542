// SPDX-License-Identifier: MIT

import CLibCrypto

/// A curve over a prime field with its base point (SEC 1 3.1.1). Constant once it is made, so that all threads may share it.
final class CurveGroup: @unchecked Sendable {
    // Unchecked: libcrypto only reads a group that nobody sets anything in.
    let group: OpaquePointer
    /// Octets of a coordinate.
    let fieldLength: Int
    /// Octets of the base point's order n.
    let orderLength: Int
    let orderBits: Int
    /// Whether the base point does not generate the whole curve.
    let hasCofactor: Bool
    /// Whether p = 3 mod 4, which the point encoding of Integrated Mapping needs.
    let hasSimpleRoots: Bool

    /// A curve that libcrypto knows by this number; nil when it knows none, or none over a prime field.
    convenience init?(nid: Int32) {
        guard let group = EC_GROUP_new_by_curve_name(nid) else {
            ERR_clear_error()
            return nil
        }
        guard EC_GROUP_get_field_type(group) == NID_X9_62_prime_field else {
            EC_GROUP_free(group)
            return nil
        }
        self.init(owning: group)
    }

    /// A curve with parameters from outside. They are checked: p and n prime, G on the curve and of order n, the curve not singular.
    ///
    /// - Parameters:
    ///   - base: G as SEC 1 2.3.3 encodes it.
    ///   - cofactor: worked out when nil.
    /// - Throws: ``CryptoError`` with the code `domainParameters`.
    convenience init(
        p: [UInt8], a: [UInt8], b: [UInt8], base: [UInt8], order: [UInt8], cofactor: [UInt8]?
    ) throws(CryptoError) {
        let numbers = try NumberScratch()
        let prime = try numbers.number(p)
        let n = try numbers.number(order)
        guard (Self.fewestBits...Self.mostBits).contains(Int(BN_num_bits(prime))),
            (Self.fewestBits...Self.mostBits + 1).contains(Int(BN_num_bits(n))), (cofactor?.count ?? 0) <= 2, a.count <= p.count,
            b.count <= p.count
        else { throw Self.bad("a field of \(BN_num_bits(prime)) bits with an order of \(BN_num_bits(n))") }
        guard BN_check_prime(prime, numbers.context, nil) == 1, BN_check_prime(n, numbers.context, nil) == 1,
            BN_cmp(prime, n) != 0
        else { throw Self.bad("field and order are not two primes") }
        guard
            let group = EC_GROUP_new_curve_GFp(prime, try numbers.number(a), try numbers.number(b), numbers.context)
        else { throw Self.bad("no curve") }
        do throws(CryptoError) {
            let generator = try numbers.point(on: group)
            let h = try cofactor.map { value throws(CryptoError) in try numbers.number(value) }
            guard EC_POINT_oct2point(group, generator, base, base.count, numbers.context) == 1,
                EC_POINT_is_at_infinity(group, generator) == 0, EC_GROUP_set_generator(group, generator, n, h) == 1,
                EC_GROUP_check(group, numbers.context) == 1
            else { throw Self.bad("base point, order and curve do not belong together") }
        } catch {
            EC_GROUP_free(group)
            throw error
        }
        self.init(owning: group)
    }

    private init(owning group: OpaquePointer) {
        self.group = group
        fieldLength = (Int(EC_GROUP_get_degree(group)) + 7) / 8
        let order = EC_GROUP_get0_order(group)
        orderBits = Int(BN_num_bits(order))
        orderLength = (orderBits + 7) / 8
        hasCofactor = EC_GROUP_get0_cofactor(group).map { BN_is_one($0) != 1 } ?? true
        hasSimpleRoots = EC_GROUP_get0_field(group).map { BN_is_bit_set($0, 0) == 1 && BN_is_bit_set($0, 1) == 1 } ?? false
    }

    deinit { EC_GROUP_free(group) }

    /// Whether both have the same field, coefficients, base point and order. `EC_GROUP_cmp` does not say so of two groups that compute in
    /// different ways, such as P-256 by name and by numbers.
    func isSame(as other: CurveGroup) -> Bool {
        if self === other { return true }
        guard BN_cmp(EC_GROUP_get0_order(group), EC_GROUP_get0_order(other.group)) == 0 else { return false }
        guard let mine = try? coefficients(), let others = try? other.coefficients() else { return false }
        return mine == others
    }

    /// p, a, b and G, each as long as the field needs.
    func coefficients() throws(CryptoError) -> [[UInt8]] {
        let numbers = try NumberScratch()
        let (p, a, b) = (try numbers.number(), try numbers.number(), try numbers.number())
        try require(EC_GROUP_get_curve(group, p, a, b, numbers.context), "curve")
        guard let base = EC_GROUP_get0_generator(group) else { throw CryptoError.fromLibrary("curve") }
        return [
            try NumberScratch.octets(p), try NumberScratch.octets(a, length: fieldLength),
            try NumberScratch.octets(b, length: fieldLength), try octets(base, in: numbers),
        ]
    }

    /// The point that `octets` encode without compression: `04`, x, y, both as long as the field.
    ///
    /// - Throws: ``CryptoError`` with the code `publicKey` for infinity, a point that is not on the curve or not in the subgroup of
    ///   the base point, and any other form or length.
    func point(_ octets: [UInt8], in numbers: NumberScratch) throws(CryptoError) -> OpaquePointer {
        guard octets.count == 1 + 2 * fieldLength, octets.first == 0x04 else {
            throw CryptoError(
                code: .publicKey,
                detail: octets == [0]
                    ? "the point at infinity is no public key"
                    : "a point of \(octets.count) bytes; 04 and two coordinates of \(fieldLength) were expected")
        }
        let point = try numbers.point(on: group)
        // libcrypto refuses coordinates outside the field and points off the curve.
        guard EC_POINT_oct2point(group, point, octets, octets.count, numbers.context) == 1 else {
            ERR_clear_error()
            throw CryptoError(code: .publicKey, detail: "the point is not on the curve")
        }
        if hasCofactor {
            let product = try numbers.point(on: group)
            try require(EC_POINT_mul(group, product, nil, point, EC_GROUP_get0_order(group), numbers.context), "point")
            guard EC_POINT_is_at_infinity(group, product) == 1 else {
                throw CryptoError(code: .publicKey, detail: "the point is in a small subgroup")
            }
        }
        return point
    }

    /// `04`, x, y.
    ///
    /// - Throws: ``CryptoError`` with the code `publicKey` for the point at infinity.
    func octets(_ point: OpaquePointer, in numbers: NumberScratch) throws(CryptoError) -> [UInt8] {
        guard EC_POINT_is_at_infinity(group, point) == 0 else {
            throw CryptoError(code: .publicKey, detail: "the result is the point at infinity")
        }
        let count = 1 + 2 * fieldLength
        var written = 0
        let octets = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            written = EC_POINT_point2oct(
                group, point, POINT_CONVERSION_UNCOMPRESSED, buffer.baseAddress, count, numbers.context)
            initialized = written == count ? count : 0
        }
        guard written == count else { throw CryptoError.fromLibrary("point") }
        return octets
    }

    /// `scalar` times `base`, or times the curve's own base point when nil.
    func multiply(
        _ scalar: OpaquePointer, _ base: OpaquePointer?, in numbers: NumberScratch
    ) throws(CryptoError) -> OpaquePointer {
        let product = try numbers.point(on: group)
        let answer =
            base.map { EC_POINT_mul(group, product, nil, $0, scalar, numbers.context) }
            ?? EC_POINT_mul(group, product, scalar, nil, nil, numbers.context)
        try require(answer, "point multiplication")
        return product
    }

    private static func bad(_ detail: String) -> CryptoError {
        ERR_clear_error()
        return CryptoError(code: .domainParameters, detail: "elliptic curve: \(detail)")
    }

    private static let fewestBits = 160
    private static let mostBits = 640
}
