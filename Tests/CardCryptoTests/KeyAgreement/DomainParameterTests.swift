// SPDX-License-Identifier: MIT

import Octets
import Testing

@testable import CardCrypto

@Suite struct DomainParameterTests {
    private func standard(_ identifier: Int) throws -> DomainParameters {
        try #require(DomainParameters.standardized(identifier))
    }

    private func random(_ parameters: DomainParameters, _ value: UInt8) -> [UInt8] {
        [UInt8](repeating: value, count: parameters.randomLength)
    }

    @Test(arguments: StandardGroups.curves)
    func explicitParametersOfAStandardCurveAreThatCurve(curve: StandardGroups.Curve) throws {
        let p = try Hex.decode(curve.p)
        let algorithm = DER.sequence(
            try DER.objectIdentifier("1.2.840.10045.2.1"),
            DER.sequence(
                DER.integer([1]), DER.sequence(try DER.objectIdentifier("1.2.840.10045.1.1"), DER.integer(p)),
                DER.sequence(DER.octetString(try Hex.decode(curve.a)), DER.octetString(try Hex.decode(curve.b))),
                DER.octetString(try Hex.decode(curve.base)), DER.integer(try Hex.decode(curve.order)), DER.integer([1])))
        let parameters = try DomainParameters(algorithmIdentifier: algorithm)
        #expect(parameters.standardizedIdentifier == curve.identifier)
        #expect(parameters == (try standard(curve.identifier)))
        #expect(parameters.fieldLength == p.count)
        #expect(Hex.encode(try parameters.generator()) == curve.base)
        #expect(try parameters.algorithmIdentifier(standardized: false) == algorithm)
    }

    @Test(arguments: StandardGroups.modular)
    func explicitParametersOfAStandardGroupAreThatGroup(group: StandardGroups.Modular) throws {
        let numbers = try [group.p, group.g, group.q].map { DER.integer(try Hex.decode($0)) }
        let x942 = DER.sequence(try DER.objectIdentifier("1.2.840.10046.2.1"), DER.sequence(numbers.flatMap { $0 }))
        let pkcs3 = DER.sequence(
            try DER.objectIdentifier("1.2.840.113549.1.3.1"), DER.sequence(numbers[0], numbers[1]))
        for algorithm in [x942, pkcs3] {
            let parameters = try DomainParameters(algorithmIdentifier: algorithm)
            #expect(parameters.standardizedIdentifier == group.identifier)
            #expect(try parameters == standard(group.identifier))
        }
        #expect(Hex.encode(try standard(group.identifier).generator()) == group.g)
        #expect(try standard(group.identifier).orderLength == group.q.count / 2)
    }

    @Test func reservedNumbersAreNoGroups() {
        for identifier in [-1, 3, 7, 19, 31, 255] { #expect(DomainParameters.standardized(identifier) == nil) }
        #expect(DomainParameters.standardizedIdentifiers.allSatisfy { DomainParameters.standardized($0) != nil })
    }

    @Test func aNumberIsReadFromAnAlgorithmIdentifier() throws {
        for identifier in DomainParameters.standardizedIdentifiers {
            let algorithm = try standard(identifier).algorithmIdentifier(standardized: true)
            #expect(try DomainParameters(algorithmIdentifier: algorithm).standardizedIdentifier == identifier)
        }
        // Number 3 is reserved.
        #expect(throws: CryptoError(code: .domainParameters, detail: "")) {
            try DomainParameters(algorithmIdentifier: try Hex.decode("300C060704007F00070102020103"))
        }
    }

    @Test func onlyP224HasNoIntegratedMapping() throws {
        for identifier in DomainParameters.standardizedIdentifiers {
            #expect(try standard(identifier).supportsIntegratedMapping == (identifier != 10))
        }
        #expect(throws: CryptoError(code: .domainParameters, detail: "")) {
            try standard(10).integratedMapping(
                nonce: [UInt8](repeating: 1, count: 16), terminalNonce: [UInt8](repeating: 2, count: 16), algorithm: .aes128)
        }
    }

    @Test(arguments: [8, 10, 12, 13, 17, 18])
    func pointsThatMustNotBeUsedAreRefused(identifier: Int) throws {
        let parameters = try standard(identifier)
        let pair = try KeyAgreementKeyPair(parameters, random: random(parameters, 7))
        var off = pair.publicKey
        off[off.count - 1] ^= 1
        let compressed = [0x02] + pair.publicKey[1...parameters.fieldLength]
        var hybrid = pair.publicKey
        hybrid[0] = 0x06 | hybrid[hybrid.count - 1] & 1
        let outside = [0x04] + [UInt8](repeating: 0xFF, count: 2 * parameters.fieldLength)
        for key in [[], [0x00], off, compressed, hybrid, outside, Array(pair.publicKey.dropLast()), pair.publicKey + [0]] {
            #expect(throws: CryptoError(code: .publicKey, detail: "")) { try pair.sharedSecret(with: key) }
            #expect(throws: CryptoError(code: .publicKey, detail: "")) { try parameters.validate(publicKey: key) }
        }
    }

    /// The standard curves have a cofactor of one, so none has a small subgroup: a foreign point is off the curve. The nearest there is is
    /// a point of the other curve over a field of as many bits.
    @Test(arguments: [(8, 9), (9, 8), (12, 13), (13, 12), (15, 16), (16, 15)])
    func aPointOfAnotherCurveIsRefused(identifier: Int, other: Int) throws {
        let parameters = try standard(identifier)
        let foreign = try standard(other)
        #expect(foreign.fieldLength == parameters.fieldLength)
        let pair = try KeyAgreementKeyPair(parameters, random: random(parameters, 7))
        let key = try KeyAgreementKeyPair(foreign, random: random(foreign, 9)).publicKey
        #expect(throws: CryptoError(code: .publicKey, detail: "")) { try pair.sharedSecret(with: key) }
        #expect(throws: CryptoError(code: .publicKey, detail: "")) { try parameters.validate(publicKey: key) }
        #expect(throws: CryptoError(code: .publicKey, detail: "")) {
            try parameters.genericMapping(nonce: [UInt8](repeating: 1, count: 16), keyPair: pair, publicKey: key)
        }
    }

    /// An explicit curve can have small subgroups: Curve25519 in the form of Weierstrass, with a cofactor of eight
    /// (draft-ietf-lwig-curve-representations, appendix E; the points of small order worked out for this test).
    @Test func pointsOfASmallSubgroupAreRefused() throws {
        func number(_ text: String) throws -> [UInt8] { try Hex.decode(text) }
        let base = try number(
            "042AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD245A"
                + "20AE19A1B8A086B4E01EDD2C7748D14C923D4D7E6D7C61B229E9C5A27ECED3D9")
        let curve = try CurveGroup(
            p: try number("7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFED"),
            a: try number("2AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA984914A144"),
            b: try number("7B425ED097B425ED097B425ED097B425ED097B425ED097B4260B5E9C7710C864"), base: base,
            order: try number("1000000000000000000000000000000014DEF9DEA2F79CD65812631A5CF5D3ED"), cofactor: [8])
        #expect(curve.hasCofactor)
        let parameters = DomainParameters(.elliptic(curve), standardizedIdentifier: nil)
        try parameters.validate(publicKey: base)
        let pair = try KeyAgreementKeyPair(parameters, random: random(parameters, 7))
        let other = try KeyAgreementKeyPair(parameters, random: random(parameters, 9))
        #expect(try pair.sharedSecret(with: other.publicKey) == other.sharedSecret(with: pair.publicKey))
        for (name, point) in [
            (
                "of order 2",
                "042AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD2451" + String(repeating: "0", count: 64)
            ),
            (
                "of order 8",
                "042B62F409C0B00D31A85BDD479637B485156F4A9CA58E00C15962EBE627281031"
                    + "46CE3ED6A9617C5AD6B7D3EB19D74BA86CC403D6127FE4B29778EB7C6DAF84D3"
            ),
            (
                "the base point and one of order 8 together",
                "045DD02A7128BE38494CAF4364D19486CA469906A2BE0E2E2519C0931ACBDE970C"
                    + "4BF03C5DD6B933BB30636F07ACB14F14274C91A86C84ECA8EE44AF95E5AD24D4"
            ),
        ] {
            let key = try number(point)
            let error = #expect(throws: CryptoError.self, "\(name)") { try pair.sharedSecret(with: key) }
            #expect(error?.code == .publicKey)
            #expect(error?.detail == "the point is in a small subgroup", "\(name)")
        }
    }

    @Test(arguments: [0, 1, 2])
    func valuesOutsideTheSubgroupAreRefused(identifier: Int) throws {
        let parameters = try standard(identifier)
        let pair = try KeyAgreementKeyPair(parameters, random: random(parameters, 7))
        let p = try Hex.decode(StandardGroups.modular[identifier].p)
        var last = p
        last[last.count - 1] -= 1
        // 2 generates more than the subgroup in each of the three groups.
        for key in [[], [0x00], [0x01], [0x02], last, p, [0x01] + p] {
            #expect(throws: CryptoError(code: .publicKey, detail: "")) { try pair.sharedSecret(with: key) }
        }
        let other = try KeyAgreementKeyPair(parameters, random: random(parameters, 9))
        #expect(
            try pair.sharedSecret(with: [0x00] + other.publicKey) == pair.sharedSecret(with: other.publicKey))
    }

    @Test func explicitParametersThatAreNoGroupAreRefused() throws {
        let curve = StandardGroups.curves[5]
        func make(
            p: String? = nil, a: String? = nil, b: String? = nil, base: String? = nil, order: String? = nil
        ) throws -> CurveGroup {
            try CurveGroup(
                p: try Hex.decode(p ?? curve.p), a: try Hex.decode(a ?? curve.a), b: try Hex.decode(b ?? curve.b),
                base: try Hex.decode(base ?? curve.base), order: try Hex.decode(order ?? curve.order), cofactor: [1])
        }
        #expect(try make().orderLength == 32)
        let refused = CryptoError(code: .domainParameters, detail: "")
        #expect(throws: refused) { try make(p: String(curve.p.dropLast(2)) + "79") }
        #expect(throws: refused) { try make(b: curve.a) }
        #expect(throws: refused) { try make(base: StandardGroups.curves[4].base) }
        #expect(throws: refused) { try make(order: StandardGroups.curves[4].order) }
        // An order equal to the field (an anomalous curve) gives the secret away.
        #expect(throws: refused) { try make(order: curve.p) }
        // 13 is prime; y² = x³ + x + 1 over it is a curve of 18 points.
        #expect(throws: refused) {
            try CurveGroup(p: [13], a: [1], b: [1], base: [0x04, 0, 1], order: [3], cofactor: [6])
        }
        let group = StandardGroups.modular[0]
        let (p, g, q) = (try Hex.decode(group.p), try Hex.decode(group.g), try Hex.decode(group.q))
        #expect(throws: refused) { try ModularGroup(p: p, g: [1], q: q) }
        #expect(throws: refused) { try ModularGroup(p: p, g: [2], q: q) }
        #expect(throws: refused) { try ModularGroup(p: Array(p.dropLast()) + [0x73], g: g, q: q) }
        #expect(throws: refused) { try ModularGroup(p: [UInt8](repeating: 0xFF, count: 4_096), g: g, q: q) }
    }

    @Test func everyTruncationOfAnAlgorithmIdentifierIsAnError() throws {
        for identifier in [0, 13] {
            let whole = try standard(identifier).algorithmIdentifier(standardized: false)
            for count in 0..<whole.count {
                #expect(throws: CryptoError.self) { try DomainParameters(algorithmIdentifier: Array(whole.prefix(count))) }
            }
        }
    }
}
