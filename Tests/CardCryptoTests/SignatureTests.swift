// SPDX-License-Identifier: MIT

import Octets
import Testing

@testable import CardCrypto

@Suite struct SignatureTests {
    /// RFC 6979 A.2: the secret number k of each, given here as what is drawn. `random` is k - 1, for the number is drawn from 1 on.
    private struct Example {
        let curve: String, scalar: String, k: String, digest: Digest, r: String, s: String
    }

    private static let examples = [
        // A.2.5, P-256.
        Example(
            curve: "1.2.840.10045.3.1.7", scalar: "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721",
            k: "A6E3C57DD01ABE90086538398355DD4C3B17AA873382B0F24D6129493D8AAD60", digest: .sha256,
            r: "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
            s: "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8"),
        Example(
            curve: "1.2.840.10045.3.1.7", scalar: "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721",
            k: "882905F1227FD620FBF2ABF21244F0BA83D0DC3A9103DBBEE43A1FB858109DB4", digest: .sha1,
            r: "61340C88C3AAEBEB4F6D667F672CA9759A6CCAA9FA8811313039EE4A35471D32",
            s: "6D7F147DAC089441BB2E2FE8F7A3FA264B9C475098FDCF6E00D7C996E1B8B7EB"),
    ]

    private func random(_ k: String, _ length: Int) throws -> [UInt8] {
        var octets = try Hex.decode(k)
        var index = octets.count - 1
        while octets[index] == 0 {
            octets[index] = 0xFF
            index -= 1
        }
        octets[index] -= 1
        return [UInt8](repeating: 0, count: length - octets.count) + octets
    }

    @Test func ecdsaGivesTheSignaturesOfRFC6979() throws {
        for example in Self.examples {
            let curve = try EllipticCurve(named: example.curve)
            let key = try SigningKey(curve: curve, scalar: try Hex.decode(example.scalar))
            let scheme = SignatureScheme.ecdsaPlain(example.digest)
            let random = try random(example.k, scheme.randomLength(for: key.publicKey))
            let signature = try key.sign(Array("sample".utf8), by: scheme, random: random)
            #expect(Hex.encode(signature) == example.r + example.s)
            #expect(try key.publicKey.verifies(signature, over: Array("sample".utf8), by: scheme))
            #expect(try !key.publicKey.verifies(signature, over: Array("simple".utf8), by: scheme))
            let spelled = try #require(ECDSASignature.der(fromPlain: signature, curve))
            #expect(try key.publicKey.verifies(spelled, over: Array("sample".utf8), by: .ecdsa(example.digest)))
            #expect(ECDSASignature.plain(fromDER: spelled, curve) == signature)
        }
    }

    /// RFC 6979 A.2.5 gives the public key of its scalar.
    @Test func aPublicKeyFollowsFromItsScalar() throws {
        let key = try SigningKey(curve: try EllipticCurve(standardized: 12), scalar: try Hex.decode(Self.examples[0].scalar))
        guard case .elliptic(_, let point) = key.publicKey else { return }
        #expect(
            Hex.encode(point) == "0460FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6"
                + "7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299")
    }

    @Test func signaturesOfAnotherFormAreWrongAndNoTrap() throws {
        let key = try SigningKey(curve: try EllipticCurve(standardized: 13), scalar: [1, 2, 3])
        for length in [0, 1, 63, 65, 200] {
            let signature = [UInt8](repeating: 0x30, count: length)
            #expect(try !key.publicKey.verifies(signature, over: [1], by: .ecdsaPlain(.sha256)))
            #expect(try !key.publicKey.verifies(signature, over: [1], by: .ecdsa(.sha256)))
        }
        #expect(throws: CryptoError(code: .algorithm, detail: "")) {
            try key.publicKey.verifies([1], over: [1], by: .rsaPKCS1(.sha256))
        }
        #expect(throws: CryptoError(code: .dataLength, detail: "")) { try key.sign([1], by: .ecdsa(.sha256), random: [1]) }
        #expect(throws: CryptoError(code: .keyLength, detail: "")) {
            try SigningKey(curve: try EllipticCurve(standardized: 13), scalar: [0])
        }
        let curve = try EllipticCurve(standardized: 13)
        #expect(throws: CryptoError(code: .keyLength, detail: "")) { try SigningKey(curve: curve, scalar: curve.order) }
    }

    @Test func aPointThatIsNotOnTheCurveIsNoKey() throws {
        let curve = try EllipticCurve(standardized: 12)
        var point = curve.generator
        point[64] ^= 1
        for octets in [point, [], [0x00], [UInt8](repeating: 4, count: 65)] {
            let key = PublicKey.elliptic(curve, point: octets)
            #expect(throws: CryptoError(code: .publicKey, detail: "")) {
                try key.verifies([UInt8](repeating: 1, count: 64), over: [1], by: .ecdsaPlain(.sha256))
            }
        }
    }

    @Test func numbersThatAreNoRSAKeyAreRefused() throws {
        for (modulus, exponent) in [
            ([], [3]), ([UInt8](repeating: 0xFE, count: 128), [3]), ([UInt8](repeating: 0xFF, count: 4096), [3]),
            ([UInt8](repeating: 0xFF, count: 128), []), ([UInt8](repeating: 0xFF, count: 128), [1]),
            ([UInt8](repeating: 0xFF, count: 128), [UInt8](repeating: 0xFF, count: 9)),
        ] as [([UInt8], [UInt8])] {
            let key = PublicKey.rsa(modulus: modulus, exponent: exponent)
            #expect(throws: CryptoError(code: .publicKey, detail: "")) {
                try key.verifies(modulus, over: [1], by: .rsaPKCS1(.sha256))
            }
        }
    }

    @Test(arguments: Digest.allCases) func pssTakesItsSaltFromOutside(digest: Digest) throws {
        let key = try Self.rsa()
        let scheme = SignatureScheme.rsaPSS(digest, mask: .sha1, saltLength: 11)
        let salt = [UInt8](1...11)
        let signature = try key.sign([1, 2, 3], by: scheme, random: salt)
        #expect(try key.sign([1, 2, 3], by: scheme, random: salt) == signature)
        #expect(try key.sign([1, 2, 3], by: scheme, random: salt.reversed()) != signature)
        #expect(try key.publicKey.verifies(signature, over: [1, 2, 3], by: scheme))
        #expect(try !key.publicKey.verifies(signature, over: [1, 2, 4], by: scheme))
        // Parameters are read, not assumed.
        #expect(try !key.publicKey.verifies(signature, over: [1, 2, 3], by: .rsaPSS(digest, mask: .sha1, saltLength: 12)))
        #expect(try !key.publicKey.verifies(signature, over: [1, 2, 3], by: .rsaPSS(digest, mask: .sha256, saltLength: 11)))
    }

    static func rsa() throws -> SigningKey {
        var number: UInt8 = 1
        return try SigningKey(
            try RSAKeyPair(bits: 2_048) { count throws(CryptoError) in
                var octets: [UInt8] = []
                while octets.count < count {
                    octets += try Digest.sha256.hash([number])
                    number &+= 1
                }
                return Array(octets.prefix(count))
            })
    }

    @Test func algorithmIdentifiersAreReadAsTheyAreWritten() throws {
        let schemes: [SignatureScheme] = Digest.allCases.flatMap { digest -> [SignatureScheme] in
            [
                .rsaPKCS1(digest), .ecdsa(digest), .ecdsaPlain(digest), .rsaPSS(digest, mask: digest, saltLength: digest.length),
                .rsaPSS(digest, mask: .sha1, saltLength: 0),
            ]
        }
        for scheme in schemes {
            #expect(try SignatureScheme(algorithm: DataObject(try scheme.algorithmIdentifier())) == scheme)
        }
        // RFC 4055 3.1: the parameters of RSA-PSS left out are SHA-1, MGF1 with SHA-1, 20.
        let bare = DER.sequence(try DER.objectIdentifier("1.2.840.113549.1.1.10"), DER.sequence())
        #expect(try SignatureScheme(algorithm: DataObject(bare)) == .rsaPSS(.sha1, mask: .sha1, saltLength: 20))
        // A kind of key stands for the algorithm where the digest is known beside it (RFC 3370 3.2).
        for (identifier, scheme) in [
            ("1.2.840.113549.1.1.1", SignatureScheme.rsaPKCS1(.sha384)), ("1.2.840.10045.2.1", .ecdsa(.sha384)),
        ] {
            let object = try DataObject(DER.sequence(try DER.objectIdentifier(identifier)))
            #expect(try SignatureScheme(algorithm: object, digest: .sha384) == scheme)
            #expect(throws: DataObjectError(.value, path: [], offset: 0, "")) { try SignatureScheme(algorithm: object) }
        }
    }

    @Test func aPrivateKeyIsInNoRendering() throws {
        let scalar = [UInt8](repeating: 0xA7, count: 32)
        let key = try SigningKey(curve: try EllipticCurve(standardized: 13), scalar: scalar)
        var dumped = ""
        dump(key, to: &dumped)
        for text in ["\(key)", String(reflecting: key), dumped] {
            #expect(!text.contains("167, 167") && !text.uppercased().contains("A7A7") && !text.contains("- 167\n        - 167"))
        }
        #expect("\(key)" == "private key, EC 256")
    }

    @Test func privateKeysAreReadAsTheyAreWritten() throws {
        let curve = try EllipticCurve(standardized: 17)
        for key in [try Self.rsa(), try SigningKey(curve: curve, random: [UInt8](repeating: 7, count: curve.orderLength + 8))] {
            #expect(try SigningKey(der: try key.pkcs8()).publicKey == key.publicKey)
        }
        for octets in [[], [0x30, 0x00], [0x30, 0x03, 0x02, 0x01, 0x00], [UInt8](repeating: 0x30, count: 40)] as [[UInt8]] {
            #expect(throws: CryptoError(code: .encoding, detail: "")) { try SigningKey(der: octets) }
        }
    }
}

@Suite struct EllipticCurveTests {
    /// ICAO 9303-11 9.5.1 with the bits of each prime.
    @Test func standardizedCurvesHaveTheirSizes() throws {
        let bits = [8: 192, 9: 192, 10: 224, 11: 224, 12: 256, 13: 256, 14: 320, 15: 384, 16: 384, 17: 512, 18: 521]
        for number in 0...31 {
            guard let size = bits[number] else {
                #expect(throws: CryptoError(code: .curve, detail: "")) { try EllipticCurve(standardized: number) }
                continue
            }
            let curve = try EllipticCurve(standardized: number)
            #expect(curve.fieldLength == (size + 7) / 8 && curve.generator.count == 1 + 2 * curve.fieldLength)
        }
    }

    @Test func explicitParametersAreTheNamedCurveWhereTheyAreTheSame() throws {
        for number in 8...18 {
            let curve = try EllipticCurve(standardized: number)
            #expect(try EllipticCurve(ecParameters: DataObject(try curve.ecParameters())) == curve)
            // The cofactor may be left out.
            let without = try EllipticCurve(
                prime: curve.prime, a: curve.a, b: curve.b, generator: curve.generator, order: curve.order, cofactor: [])
            #expect(without == curve)
        }
    }

    @Test func parametersThatAreNoCurveAreRefused() throws {
        let curve = try EllipticCurve(standardized: 12)
        var generator = curve.generator
        generator[64] ^= 1
        for (prime, generator) in [
            ([0x0F], curve.generator), (curve.prime, generator), (curve.prime, []),
            ([UInt8](repeating: 0xFF, count: 67), curve.generator),
            (Array(curve.prime.dropLast()) + [0xFE], curve.generator), ([], []),
        ] {
            #expect(throws: CryptoError(code: .curve, detail: "")) {
                try EllipticCurve(
                    prime: prime, a: curve.a, b: curve.b, generator: generator, order: curve.order, cofactor: curve.cofactor)
            }
        }
        // sect233k1 is over a binary field, 1.2.3 is no curve.
        for identifier in ["1.3.132.0.26", "1.2.3", "2.5.4.3"] {
            #expect(throws: CryptoError(code: .curve, detail: "")) { try EllipticCurve(named: identifier) }
        }
    }
}

@Suite struct CertificateFormTests {
    @Test func daysAreThoseOfTheGregorianCalendar() throws {
        for (text, year, month, day, count) in [
            ("1970-01-01", 1970, 1, 1, 0), ("2000-02-29", 2000, 2, 29, 11_016), ("2100-03-01", 2100, 3, 1, 47_541),
            ("1969-12-31", 1969, 12, 31, -1), ("2026-11-30", 2026, 11, 30, 20_787),
        ] {
            let found = try #require(CalendarDay(year: year, month: month, day: day))
            #expect(found.daysSince1970 == count && found.description == text)
            #expect(CalendarDay(seconds: Int64(count) * 86_400) == found)
            #expect(CalendarDay(seconds: Int64(count) * 86_400 + 86_399) == found)
        }
        #expect(CalendarDay(year: 2100, month: 2, day: 29) == nil)
        #expect(CalendarDay(year: 2026, month: 13, day: 1) == nil && CalendarDay(year: 2026, month: 4, day: 31) == nil)
        #expect(CalendarDay(year: 2009, month: 5, day: 18)?.digits == [0, 9, 0, 5, 1, 8])
        for count in stride(from: -800_000, to: 2_900_000, by: 997) {
            let day = CalendarDay(seconds: Int64(count) * 86_400)
            #expect(day.daysSince1970 == count)
        }
    }

    @Test func timesOfBothFormsAreRead() throws {
        func time(_ tag: UInt32, _ text: String) throws -> Int64 {
            try CertificateTime(DataObject(TLV.encode(tag, Array(text.utf8)))).seconds
        }
        #expect(try time(0x17, "700101000000Z") == 0)
        #expect(try time(0x17, "491231235959Z") == 2_524_607_999)
        #expect(try time(0x17, "500101000000Z") == -631_152_000)
        #expect(try time(0x18, "20500101000000Z") == 2_524_608_000)
        #expect(try time(0x17, "7001010100+0100") == 0)
        #expect(try time(0x18, "19700101000000.123Z") == 0)
        for text in ["", "700101000000", "701301000000Z", "700230000000Z", "7001012400Z", "7O0101000000Z", "700101000000ZZ"] {
            #expect(throws: DataObjectError(.value, path: [], offset: 0, "")) { try time(0x17, text) }
        }
        #expect(Hex.encode(try CertificateTime("20491231235959Z").der) == "170D" + Hex.encode(Array("491231235959Z".utf8)))
        #expect(Hex.encode(try CertificateTime("20500101000000Z").der) == "180F" + Hex.encode(Array("20500101000000Z".utf8)))
    }

    @Test func namesAreEqualWhateverTheirStringTypeCaseAndSpaces() throws {
        func name(_ tag: UInt32, _ octets: [UInt8]) throws -> DistinguishedName {
            try DistinguishedName(
                DataObject(DER.sequence(DER.set([DER.sequence(try DER.objectIdentifier("2.5.4.3"), TLV.encode(tag, octets))]))))
        }
        let utf8 = try name(0x0C, Array("Country  Signer Ü".utf8))
        #expect(utf8.description == "CN=Country  Signer Ü")
        #expect(try name(0x14, Array("COUNTRY SIGNER ".utf8) + [0xDC]) == utf8)
        #expect(try name(0x1E, "Country Signer Ü".utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }) == utf8)
        #expect(try name(0x13, Array("Country Signer".utf8)) != utf8)
        #expect(try name(0x1E, [0x00]).description == "CN=")
    }

    @Test func indefiniteLengthsBecomeDefinite() throws {
        #expect(Hex.encode(try DER.definite(try Hex.decode("30800401AA24800401BB00000000"))) == "300804" + "01AA2403" + "0401BB")
        #expect(try DER.definite([0x30, 0x00]) == [0x30, 0x00])
        for hex in ["3080", "308004", "30800401AA", "30800401AA00", "3080" + String(repeating: "3080", count: 40)] {
            #expect(throws: DataObjectError(.encoding, path: [], offset: 0, "")) { try DER.definite(try Hex.decode(hex)) }
        }
    }

    @Test func aFaultNamesItsPathAndOctet() throws {
        let object = try DataObject(try Hex.decode("3009" + "3007" + "0201FF" + "04020500"))
        let inner = try object.children()[0]
        let error = #expect(throws: DataObjectError.self) { try inner.children()[0].unsignedInteger() }
        #expect(error?.description == "a negative number, at octet 4 in 30/30/02")
        #expect(try inner.children()[1].inner().path == [0x30, 0x30, 0x04, 0x05])
        #expect(try inner.children()[1].inner().offset == 9)
        let missing = #expect(throws: DataObjectError.self) { try inner.children().element(2, of: inner) }
        #expect(missing?.description == "element 3 is not there, of 2, at octet 2 in 30/30")
    }

    /// Depth, not only length, is bounded.
    @Test func objectsInsideEachOtherEndAtADepth() {
        var octets: [UInt8] = []
        for _ in 0..<40 { octets = TLV.encode(0x30, octets) }
        func depth(_ object: DataObject) throws -> Int { try object.children().first.map { try depth($0) + 1 } ?? 0 }
        #expect(throws: DataObjectError(.encoding, path: [], offset: 0, "")) { try depth(try DataObject(octets)) }
    }
}

@Suite struct MessageRecoveryTests {
    @Test func blocksThatAreNotFilledAreRefused() throws {
        let key = try SignatureTests.rsa()
        let length = MessageRecovery.recoverableLength(modulusLength: 256, digest: .sha256)
        #expect(length == 256 - 1 - 32 - 2)
        #expect(throws: CryptoError(code: .dataLength, detail: "")) {
            try MessageRecovery.sign(recovered: [1], rest: [], digest: .sha256, with: key)
        }
        // The short trailer names no hash function, so it stands for SHA-1.
        let short = MessageRecovery.recoverableLength(modulusLength: 256, digest: .sha256, shortTrailer: true)
        #expect(throws: CryptoError(code: .dataLength, detail: "")) {
            try MessageRecovery.sign(
                recovered: [UInt8](repeating: 1, count: short), rest: [], digest: .sha256, shortTrailer: true, with: key)
        }
    }

    @Test func aSignatureOfAnotherKindIsNone() throws {
        let key = try SignatureTests.rsa()
        let signature = try key.sign([1, 2, 3], by: .rsaPKCS1(.sha256), random: [])
        #expect(try MessageRecovery.open(signature, with: key.publicKey) == nil)
        #expect(try MessageRecovery.verifies([UInt8](repeating: 0xFF, count: 256), rest: [], with: key.publicKey) == nil)
    }
}
