// SPDX-License-Identifier: MIT

import CLibCrypto

/// The mappings of PACE: from a nonce that only holders of the password know to a fresh generator (ICAO 9303-11 4.4.3.3).
extension DomainParameters {
    /// Generic Mapping: s × G + H on a curve, g^s × h modulo a prime, H or h being shared by an anonymous key agreement.
    ///
    /// Chip Authentication Mapping maps the same way.
    ///
    /// - Parameters:
    ///   - nonce: s, decrypted.
    ///   - keyPair: one's own key pair of the mapping, in these parameters.
    ///   - publicKey: the other side's; it is checked.
    /// - Throws: ``CryptoError`` with the code `publicKey` for a key that must not be used, or when the generator comes out neutral.
    public func genericMapping(
        nonce: [UInt8], keyPair: KeyAgreementKeyPair, publicKey: [UInt8]
    ) throws(CryptoError) -> DomainParameters {
        let numbers = try NumberScratch()
        let s = try numbers.number(nonce)
        switch group {
        case .elliptic(let curve):
            let shared = try keyPair.sharedPoint(with: publicKey, on: curve, in: numbers)
            guard let order = EC_GROUP_get0_order(curve.group) else { throw CryptoError.fromLibrary("order") }
            try require(BN_nnmod(s, s, order, numbers.context), "nonce")
            let mapped = try curve.multiply(s, nil, in: numbers)
            try require(EC_POINT_add(curve.group, mapped, mapped, shared, numbers.context), "mapping")
            return with(generator: try curve.octets(mapped, in: numbers))
        case .multiplicative(let group):
            let shared = try keyPair.sharedValue(with: publicKey, in: group, numbers)
            let mapped = try numbers.number()
            try group.raise(group.g, to: s, into: mapped, in: numbers)
            try require(BN_mod_mul(mapped, mapped, shared, group.p, numbers.context), "mapping")
            return try with(generator: mapped, in: group)
        }
    }

    /// Integrated Mapping: a pseudorandom number made from both nonces, encoded as an element of the group.
    ///
    /// - Parameters:
    ///   - nonce: s of the chip, decrypted: whole blocks, at least as long as the key of `algorithm`.
    ///   - terminalNonce: t, as long as the key of `algorithm`.
    /// - Throws: ``CryptoError``: `domainParameters` when ``supportsIntegratedMapping`` is false, `dataLength` for nonces of another length.
    public func integratedMapping(
        nonce: [UInt8], terminalNonce: [UInt8], algorithm: KeyDerivation.Algorithm
    ) throws(CryptoError) -> DomainParameters {
        guard supportsIntegratedMapping else {
            throw CryptoError(code: .domainParameters, detail: "\(name) cannot be used with Integrated Mapping")
        }
        let numbers = try NumberScratch()
        let number = try numbers.number(try pseudorandomNumber(nonce: nonce, terminalNonce: terminalNonce, algorithm: algorithm))
        switch group {
        case .elliptic(let curve):
            var point = try curve.encode(number, in: numbers)
            if curve.hasCofactor, let cofactor = EC_GROUP_get0_cofactor(curve.group) {
                point = try curve.multiply(cofactor, point, in: numbers)
            }
            return with(generator: try curve.octets(point, in: numbers))
        case .multiplicative(let group):
            // x^((p-1)/q): an element of the subgroup.
            let exponent = try numbers.number()
            guard let q = group.q, BN_copy(exponent, group.p) != nil else { throw CryptoError.fromLibrary("mapping") }
            try require(BN_sub_word(exponent, 1), "mapping")
            try require(BN_div(exponent, nil, exponent, q, numbers.context), "mapping")
            let mapped = try numbers.number()
            try group.raise(number, to: exponent, into: mapped, in: numbers)
            return try with(generator: mapped, in: group)
        }
    }

    /// R_p(s, t) of ICAO 9303-11 4.4.3.3.2, as long as the field.
    public func pseudorandomNumber(
        nonce: [UInt8], terminalNonce: [UInt8], algorithm: KeyDerivation.Algorithm
    ) throws(CryptoError) -> [UInt8] {
        let numbers = try NumberScratch()
        guard let prime = fieldPrime else { throw CryptoError.fromLibrary("field") }
        let octets = try PseudorandomFunction.octets(
            nonce: nonce, terminalNonce: terminalNonce, algorithm: algorithm, bits: Int(BN_num_bits(prime)) + 64)
        let number = try numbers.number(octets)
        try require(BN_nnmod(number, number, prime, numbers.context), "pseudorandom number")
        return try NumberScratch.octets(number, length: fieldLength)
    }

    private var fieldPrime: OpaquePointer? {
        switch group {
        case .elliptic(let curve): EC_GROUP_get0_field(curve.group)
        case .multiplicative(let group): group.p
        }
    }

    private func with(generator: [UInt8]) -> DomainParameters {
        DomainParameters(group, standardizedIdentifier: standardizedIdentifier, mappedGenerator: generator)
    }

    private func with(generator: OpaquePointer, in group: ModularGroup) throws(CryptoError) -> DomainParameters {
        guard group.isInside(generator) else {
            throw CryptoError(code: .publicKey, detail: "the nonce maps to the neutral element")
        }
        return with(generator: try NumberScratch.octets(generator))
    }
}

/// R(s, t) of ICAO 9303-11 4.4.3.3.2: a block cipher in CBC mode, run over constants under keys that follow from the nonces.
enum PseudorandomFunction {
    /// - Parameter bits: the least number of bits wanted; whole pieces come.
    static func octets(
        nonce: [UInt8], terminalNonce: [UInt8], algorithm: KeyDerivation.Algorithm, bits: Int
    ) throws(CryptoError) -> [UInt8] {
        let cipher = algorithm.blockCipher
        let long = algorithm == .aes192 || algorithm == .aes256
        guard nonce.count == (long ? 32 : 16), terminalNonce.count == algorithm.keyLength else {
            throw CryptoError(
                code: .dataLength,
                detail: "nonces of \(nonce.count) and \(terminalNonce.count) bytes do not fit Integrated Mapping;"
                    + " \(long ? 32 : 16) and \(algorithm.keyLength) do")
        }
        var key = try cipher.encrypt(nonce, key: terminalNonce)
        var output: [UInt8] = []
        while output.count * 8 < bits {
            // AES-192 takes the first 24 octets of 32.
            let used = Array(key.prefix(algorithm.keyLength))
            output += try cipher.encrypt(long ? longC1 : shortC1, key: used)
            key = try cipher.encrypt(long ? longC0 : shortC0, key: used)
        }
        return output
    }

    // Keys and texts of 128 bits for triple DES and AES-128, of 256 bits for AES-192 and AES-256.
    private static let shortC0: [UInt8] = [
        0xA6, 0x68, 0x89, 0x2A, 0x7C, 0x41, 0xE3, 0xCA, 0x73, 0x9F, 0x40, 0xB0, 0x57, 0xD8, 0x59, 0x04,
    ]
    private static let shortC1: [UInt8] = [
        0xA4, 0xE1, 0x36, 0xAC, 0x72, 0x5F, 0x73, 0x8B, 0x01, 0xC1, 0xF6, 0x02, 0x17, 0xC1, 0x88, 0xAD,
    ]
    private static let longC0: [UInt8] = [
        0xD4, 0x63, 0xD6, 0x52, 0x34, 0x12, 0x4E, 0xF7, 0x89, 0x70, 0x54, 0x98, 0x6D, 0xCA, 0x0A, 0x17,
        0x4E, 0x28, 0xDF, 0x75, 0x8C, 0xBA, 0xA0, 0x3F, 0x24, 0x06, 0x16, 0x41, 0x4D, 0x5A, 0x16, 0x76,
    ]
    private static let longC1: [UInt8] = [
        0x54, 0xBD, 0x72, 0x55, 0xF0, 0xAA, 0xF8, 0x31, 0xBE, 0xC3, 0x42, 0x3F, 0xCF, 0x39, 0xD6, 0x9B,
        0x6C, 0xBF, 0x06, 0x66, 0x77, 0xD0, 0xFA, 0xAE, 0x5A, 0xAD, 0xD9, 0x9D, 0xF8, 0xE5, 0x35, 0x17,
    ]
}

extension CurveGroup {
    /// The point encoding of ICAO 9303-11 4.4.3.3.3 (appendix B.2) for a number t of the field.
    ///
    /// - Throws: ``CryptoError`` when t has no encoding, for instance 0.
    func encode(_ t: OpaquePointer, in numbers: NumberScratch) throws(CryptoError) -> OpaquePointer {
        let field = FieldArithmetic(numbers: numbers, p: try fieldPrime())
        let (a, b) = (try numbers.number(), try numbers.number())
        try require(EC_GROUP_get_curve(group, nil, a, b, numbers.context), "curve")
        let tSquared = try field.product(t, t)
        let alpha = try field.difference(try numbers.number(), tSquared)
        let sum = try field.sum(alpha, try field.product(alpha, alpha))
        // X2 = -b/a (1 + 1/(α + α²)).
        let ratio = try field.difference(try numbers.number(), try field.product(b, try field.inverse(a)))
        let x2 = try field.product(ratio, try field.sum(try numbers.number([1]), try field.inverse(sum)))
        let h2 = try field.sum(
            try field.sum(try field.product(try field.product(x2, x2), x2), try field.product(a, x2)), b)
        // A = h2^(p - 1 - (p + 1)/4).
        let quarter = try numbers.number()
        let exponent = try numbers.number()
        guard BN_copy(quarter, field.p) != nil, BN_copy(exponent, field.p) != nil else {
            throw CryptoError.fromLibrary("mapping")
        }
        try require(BN_add_word(quarter, 1), "mapping")
        try require(BN_rshift(quarter, quarter, 2), "mapping")
        try require(BN_sub_word(exponent, 1), "mapping")
        try require(BN_sub(exponent, exponent, quarter), "mapping")
        let root = try numbers.number()
        try require(BN_mod_exp(root, h2, exponent, field.p, numbers.context), "mapping")
        let point = try numbers.point(on: group)
        let (x, y): (OpaquePointer, OpaquePointer)
        if BN_is_one(try field.product(try field.product(root, root), h2)) == 1 {
            (x, y) = (x2, try field.product(root, h2))
        } else {
            let u = try field.product(try field.product(tSquared, t), h2)
            (x, y) = (try field.product(alpha, x2), try field.product(root, u))
        }
        // libcrypto refuses a point that is not on the curve.
        try require(EC_POINT_set_affine_coordinates(group, point, x, y, numbers.context), "mapping")
        return point
    }

    private func fieldPrime() throws(CryptoError) -> OpaquePointer {
        guard let p = EC_GROUP_get0_field(group) else { throw CryptoError.fromLibrary("field") }
        return p
    }
}

/// Arithmetic modulo p by libcrypto, each result a new number.
private struct FieldArithmetic {
    let numbers: NumberScratch
    let p: OpaquePointer

    func product(_ left: OpaquePointer, _ right: OpaquePointer) throws(CryptoError) -> OpaquePointer {
        let result = try numbers.number()
        try require(BN_mod_mul(result, left, right, p, numbers.context), "field")
        return result
    }

    func sum(_ left: OpaquePointer, _ right: OpaquePointer) throws(CryptoError) -> OpaquePointer {
        let result = try numbers.number()
        try require(BN_mod_add(result, left, right, p, numbers.context), "field")
        return result
    }

    func difference(_ left: OpaquePointer, _ right: OpaquePointer) throws(CryptoError) -> OpaquePointer {
        let result = try numbers.number()
        try require(BN_mod_sub(result, left, right, p, numbers.context), "field")
        return result
    }

    func inverse(_ number: OpaquePointer) throws(CryptoError) -> OpaquePointer {
        let result = try numbers.number()
        guard BN_mod_inverse(result, number, p, numbers.context) != nil else { throw CryptoError.fromLibrary("field") }
        return result
    }
}
