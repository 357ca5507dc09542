// SPDX-License-Identifier: MIT

import CLibCrypto

/// A key pair for Diffie-Hellman key agreement, on a curve or modulo a prime (BSI TR-03111 4.3, PKCS #3).
///
/// Whoever makes one gives the random octets: nothing is drawn inside. Keys stay out of every rendering.
public struct KeyAgreementKeyPair: Sendable {
    public let parameters: DomainParameters
    /// Most significant octet first, as long as the order.
    package let privateKey: [UInt8]
    /// `04`, x, y with coordinates as long as the field; or an unsigned integer without leading zeros.
    public let publicKey: [UInt8]

    /// The key pair that these octets make: the same octets, the same keys.
    ///
    /// - Parameter random: ``DomainParameters/randomLength`` octets that nobody else knows.
    /// - Throws: ``CryptoError``.
    public init(_ parameters: DomainParameters, random: [UInt8]) throws(CryptoError) {
        guard random.count >= parameters.randomLength else {
            throw CryptoError(
                code: .keyLength, detail: "\(random.count) random bytes for a key pair; \(parameters.randomLength) are needed")
        }
        let numbers = try NumberScratch()
        // FIPS 186-4 B.4.1: c mod (n - 1) + 1.
        let limit = try Self.limit(of: parameters, in: numbers)
        let secret = try numbers.number(random)
        try require(BN_div(nil, secret, secret, limit, numbers.context), "private key")
        try require(BN_add_word(secret, 1), "private key")
        try self.init(parameters, secret: secret, in: numbers)
    }

    /// A key pair whose private key is known.
    ///
    /// - Parameter privateKey: most significant octet first.
    /// - Throws: ``CryptoError`` with the code `keyLength` when it is 0 or not below the order.
    public init(_ parameters: DomainParameters, privateKey: [UInt8]) throws(CryptoError) {
        let numbers = try NumberScratch()
        let secret = try numbers.number(privateKey)
        guard BN_is_zero(secret) != 1, BN_cmp(secret, try Self.limit(of: parameters, in: numbers)) <= 0 else {
            throw CryptoError(code: .keyLength, detail: "a private key that is 0 or not below the order")
        }
        try self.init(parameters, secret: secret, in: numbers)
    }

    private init(_ parameters: DomainParameters, secret: OpaquePointer, in numbers: NumberScratch) throws(CryptoError) {
        self.parameters = parameters
        privateKey = try NumberScratch.octets(secret, length: parameters.orderLength)
        switch parameters.group {
        case .elliptic(let curve):
            let base = try parameters.mappedGenerator.map { octets throws(CryptoError) in try curve.point(octets, in: numbers) }
            publicKey = try curve.octets(try curve.multiply(secret, base, in: numbers), in: numbers)
        case .multiplicative(let group):
            let base = try parameters.mappedGenerator.map { octets throws(CryptoError) in try numbers.number(octets) } ?? group.g
            let value = try numbers.number()
            try group.raise(base, to: secret, into: value, in: numbers)
            publicKey = try NumberScratch.octets(value)
        }
    }

    /// The secret shared with whoever has the private key of `publicKey`, which is checked first.
    ///
    /// - Returns: the x coordinate as long as the field, or the number as long as p; leading zeros kept.
    /// - Throws: ``CryptoError`` with the code `publicKey` when the other key must not be used.
    public func sharedSecret(with publicKey: [UInt8]) throws(CryptoError) -> [UInt8] {
        let numbers = try NumberScratch()
        switch parameters.group {
        case .elliptic(let curve):
            let octets = try curve.octets(try sharedPoint(with: publicKey, on: curve, in: numbers), in: numbers)
            return Array(octets[1...curve.fieldLength])
        case .multiplicative(let group):
            return try NumberScratch.octets(try sharedValue(with: publicKey, in: group, numbers), length: group.fieldLength)
        }
    }

    func sharedPoint(
        with publicKey: [UInt8], on curve: CurveGroup, in numbers: NumberScratch
    ) throws(CryptoError) -> OpaquePointer {
        let point = try curve.point(publicKey, in: numbers)
        return try curve.multiply(try numbers.number(privateKey), point, in: numbers)
    }

    func sharedValue(
        with publicKey: [UInt8], in group: ModularGroup, _ numbers: NumberScratch
    ) throws(CryptoError) -> OpaquePointer {
        let value = try group.value(publicKey, in: numbers)
        let shared = try numbers.number()
        try group.raise(value, to: try numbers.number(privateKey), into: shared, in: numbers)
        guard group.isInside(shared) else {
            throw CryptoError(code: .publicKey, detail: "the shared value is the neutral element or of order 2")
        }
        return shared
    }

    /// The largest private key: n - 1; (p - 1) / 2 where the order is not told.
    private static func limit(
        of parameters: DomainParameters, in numbers: NumberScratch
    ) throws(CryptoError) -> OpaquePointer {
        let limit = try numbers.number()
        switch parameters.group {
        case .elliptic(let curve):
            guard BN_copy(limit, EC_GROUP_get0_order(curve.group)) != nil else { throw CryptoError.fromLibrary("order") }
        case .multiplicative(let group):
            if let q = group.q {
                guard BN_copy(limit, q) != nil else { throw CryptoError.fromLibrary("order") }
            } else {
                try require(BN_rshift1(limit, group.p), "order")
            }
        }
        try require(BN_sub_word(limit, 1), "order")
        return limit
    }
}

extension KeyAgreementKeyPair: CustomStringConvertible, CustomReflectable {
    public var description: String { "a key pair in \(parameters.name)" }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
