// SPDX-License-Identifier: MIT

import CLibCrypto
import Synchronization

/// The group that a key agreement is done in: an elliptic curve, or a subgroup of the integers modulo a prime; with its generator.
///
/// PACE and Chip Authentication name most of them by numbers (ICAO 9303-11 9.5.1); others come as an `AlgorithmIdentifier`
/// (9303-11 9.5.2). Making one from outside checks it, so that keys can be agreed on in it without further care.
public struct DomainParameters: Sendable {
    public enum Kind: String, Sendable, Hashable {
        /// An elliptic curve over a prime field: ECDH.
        case elliptic
        /// Integers modulo a prime: DH.
        case multiplicative
    }

    enum Group: Sendable {
        case elliptic(CurveGroup)
        case multiplicative(ModularGroup)
    }

    let group: Group
    /// What a mapping put in the generator's place, encoded as a public key.
    let mappedGenerator: [UInt8]?
    /// The number of ICAO 9303-11 9.5.1, where there is one; explicit parameters that are the same have it too.
    public let standardizedIdentifier: Int?

    init(_ group: Group, standardizedIdentifier: Int?, mappedGenerator: [UInt8]? = nil) {
        self.group = group
        self.standardizedIdentifier = standardizedIdentifier
        self.mappedGenerator = mappedGenerator
    }

    /// The numbers that stand for a group.
    public static let standardizedIdentifiers: [Int] = [0, 1, 2] + Array(8...18)

    /// The group of this number of ICAO 9303-11 9.5.1; nil for the numbers that are reserved.
    public static func standardized(_ identifier: Int) -> DomainParameters? {
        guard standardizedIdentifiers.contains(identifier) else { return nil }
        if let known = made.withLock({ $0[identifier] }) { return known }
        let group: Group?
        if identifier <= 2 {
            group = (try? ModularGroup(rfc5114: identifier)).flatMap { $0 }.map { .multiplicative($0) }
        } else {
            group = CurveGroup(nid: curves[identifier - 8].nid).map { .elliptic($0) }
        }
        guard let group else { return nil }
        let parameters = DomainParameters(group, standardizedIdentifier: identifier)
        made.withLock { $0[identifier] = parameters }
        return parameters
    }

    public var kind: Kind {
        switch group {
        case .elliptic: .elliptic
        case .multiplicative: .multiplicative
        }
    }

    /// `brainpoolP256r1`, `DH 2048/224`; `explicit curve, 256 bits` for one without a number.
    public var name: String {
        switch (group, standardizedIdentifier) {
        case (.multiplicative, .some(let identifier)): ["DH 1024/160", "DH 2048/224", "DH 2048/256"][min(max(identifier, 0), 2)]
        case (.elliptic, .some(let identifier)): Self.curves[min(max(identifier - 8, 0), 10)].name
        case (.elliptic(let curve), nil): "explicit curve, \(curve.orderBits) bits"
        case (.multiplicative(let group), nil): "explicit DH group, \(BN_num_bits(group.p)) bits"
        }
    }

    /// Octets of a coordinate, or of a number modulo p: the length of a shared secret.
    public var fieldLength: Int {
        switch group {
        case .elliptic(let curve): curve.fieldLength
        case .multiplicative(let group): group.fieldLength
        }
    }

    /// Octets of a private key: those of the generator's order.
    public var orderLength: Int {
        switch group {
        case .elliptic(let curve): curve.orderLength
        case .multiplicative(let group): group.q.map { Int(td_bn_num_bytes($0)) } ?? group.fieldLength
        }
    }

    /// Random octets that a key pair is made from: eight more than a private key has, so that what is left over by the order does not
    /// show (FIPS 186-4 B.4.1).
    public var randomLength: Int { orderLength + 8 }

    /// Whether a nonce can be mapped by Integrated Mapping: on a curve when p = 3 mod 4 (not P-224), in a DH group when its
    /// order is known.
    public var supportsIntegratedMapping: Bool {
        switch group {
        case .elliptic(let curve): curve.hasSimpleRoots
        case .multiplicative(let group): group.q != nil
        }
    }

    /// The generator, encoded as a public key.
    ///
    /// - Throws: ``CryptoError`` when libcrypto fails.
    public func generator() throws(CryptoError) -> [UInt8] {
        if let mappedGenerator { return mappedGenerator }
        switch group {
        case .elliptic(let curve):
            guard let point = EC_GROUP_get0_generator(curve.group) else { throw CryptoError.fromLibrary("generator") }
            return try curve.octets(point, in: try NumberScratch())
        case .multiplicative(let group): return try NumberScratch.octets(group.g)
        }
    }

    /// Checks a public key from outside: not the neutral element, in the group, in the subgroup of the generator.
    ///
    /// - Parameter publicKey: `04`, x, y, coordinates as long as the field; or an unsigned integer, leading zeros put up with.
    /// - Throws: ``CryptoError`` with the code `publicKey`.
    public func validate(publicKey: [UInt8]) throws(CryptoError) {
        let numbers = try NumberScratch()
        switch group {
        case .elliptic(let curve): _ = try curve.point(publicKey, in: numbers)
        case .multiplicative(let group): _ = try group.value(publicKey, in: numbers)
        }
    }

    /// The public key as it is to be sent and put under tokens (ICAO 9303-11 9.4.3): a DH value without leading zeros, a point as it is.
    public func minimalForm(of publicKey: [UInt8]) -> [UInt8] {
        kind == .elliptic ? publicKey : Array(publicKey.drop { $0 == 0 })
    }

    /// Comp(publicKey) of ICAO 9303-11 and BSI TR-03110: a point's x coordinate; the SHA-1 of a DH value.
    ///
    /// - Throws: ``CryptoError`` with the code `publicKey` when the length is wrong.
    public func compressed(publicKey: [UInt8]) throws(CryptoError) -> [UInt8] {
        switch group {
        case .elliptic(let curve):
            guard publicKey.count == 1 + 2 * curve.fieldLength else {
                throw CryptoError(code: .publicKey, detail: "a point of \(publicKey.count) bytes")
            }
            return Array(publicKey[1...curve.fieldLength])
        case .multiplicative: return try Digest.sha1.hash(minimalForm(of: publicKey))
        }
    }

    /// A curve by its object identifier's octets; nil when libcrypto knows none.
    static func namedCurve(_ nid: Int32) -> DomainParameters? {
        if let index = curves.firstIndex(where: { $0.nid == nid }) { return standardized(8 + index) }
        return CurveGroup(nid: nid).map { DomainParameters(.elliptic($0), standardizedIdentifier: nil) }
    }

    /// The same parameters with their standard number, when they are those of a standard group.
    var recognized: DomainParameters {
        guard standardizedIdentifier == nil, mappedGenerator == nil else { return self }
        let same = Self.standardizedIdentifiers.lazy.compactMap { Self.standardized($0) }.first { $0 == self }
        return same ?? self
    }

    private static let made = Mutex<[Int: DomainParameters]>([:])

    /// From 8 on.
    static let curves: [(name: String, nid: Int32)] = [
        ("P-192", NID_X9_62_prime192v1), ("brainpoolP192r1", NID_brainpoolP192r1), ("P-224", NID_secp224r1),
        ("brainpoolP224r1", NID_brainpoolP224r1), ("P-256", NID_X9_62_prime256v1), ("brainpoolP256r1", NID_brainpoolP256r1),
        ("brainpoolP320r1", NID_brainpoolP320r1), ("P-384", NID_secp384r1), ("brainpoolP384r1", NID_brainpoolP384r1),
        ("brainpoolP512r1", NID_brainpoolP512r1), ("P-521", NID_secp521r1),
    ]
}

extension DomainParameters: Equatable {
    /// The same group with the same generator, however it was named.
    public static func == (left: Self, right: Self) -> Bool {
        guard left.mappedGenerator == right.mappedGenerator else { return false }
        return switch (left.group, right.group) {
        case (.elliptic(let mine), .elliptic(let other)): mine.isSame(as: other)
        case (.multiplicative(let mine), .multiplicative(let other)): mine.isSame(as: other)
        default: false
        }
    }
}
