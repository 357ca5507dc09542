// SPDX-License-Identifier: MIT

import CLibCrypto

/// What Chip Authentication Mapping adds to Generic Mapping (ICAO 9303-11 4.4.3.3.3, 4.4.3.5): the chip shows that it has its static
/// private key by telling its quotient with the private key of the mapping.
extension KeyAgreementKeyPair {
    /// CA_IC = SK_map / SK_IC modulo the order, as long as the order. On curves only.
    ///
    /// - Parameter mapping: the chip's key pair of the mapping; `self` is its static one.
    /// - Throws: ``CryptoError``.
    public func chipAuthenticationData(for mapping: KeyAgreementKeyPair) throws(CryptoError) -> [UInt8] {
        guard case .elliptic(let curve) = parameters.group, case .elliptic(let other) = mapping.parameters.group,
            curve.isSame(as: other), let order = EC_GROUP_get0_order(curve.group)
        else { throw CryptoError(code: .domainParameters, detail: "Chip Authentication Mapping with keys on two curves") }
        let numbers = try NumberScratch()
        let result = try numbers.number()
        guard BN_mod_inverse(result, try numbers.number(privateKey), order, numbers.context) != nil else {
            throw CryptoError.fromLibrary("chip authentication data")
        }
        try require(
            BN_mod_mul(result, result, try numbers.number(mapping.privateKey), order, numbers.context),
            "chip authentication data")
        return try NumberScratch.octets(result, length: parameters.orderLength)
    }
}

extension DomainParameters {
    /// Whether CA_IC × PK_IC is the chip's public key of the mapping.
    ///
    /// - Throws: ``CryptoError`` when a key must not be used, or these are no parameters of a curve.
    public func verifiesChipAuthentication(
        data: [UInt8], staticKey: [UInt8], mappingKey: [UInt8]
    ) throws(CryptoError) -> Bool {
        guard case .elliptic(let curve) = group else {
            throw CryptoError(code: .domainParameters, detail: "Chip Authentication Mapping is for curves")
        }
        let numbers = try NumberScratch()
        let factor = try numbers.number(data)
        guard let order = EC_GROUP_get0_order(curve.group), BN_is_zero(factor) != 1, BN_cmp(factor, order) < 0 else {
            return false
        }
        let product = try curve.multiply(factor, try curve.point(staticKey, in: numbers), in: numbers)
        let answer = EC_POINT_cmp(curve.group, product, try curve.point(mappingKey, in: numbers), numbers.context)
        guard answer >= 0 else { throw CryptoError.fromLibrary("chip authentication data") }
        return answer == 0
    }
}
