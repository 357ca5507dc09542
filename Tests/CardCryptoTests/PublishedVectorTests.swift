// SPDX-License-Identifier: MIT

import Octets
import Testing

@testable import CardCrypto

@Suite struct PublishedVectorTests {
    /// ICAO 9303-11 9.7.1 over SHA-1 of `T22000129364081251010318`, the MRZ information of appendix G; recomputed for this project.
    @Test(arguments: [
        (UInt32(1), KeyDerivation.Algorithm.aes128, "3CC5F8872F8B1471B47EEFDDFFC43F46"),
        (2, .aes128, "BD651C6B2FA9B4704553332007771E84"),
        (3, .aes128, "89DED1B26624EC1E634C1989302849DD"),
        (3, .tripleDES, "89DFD0B36725EC1F624C1989312949DC"),
        (1, .aes192, "11504483F04A10A66A8FCD6D348C75A961809C54EDAA2117"),
        (2, .aes192, "1F35D576CE54BA775A391F9749E388C48215B7D544D62D96"),
        (3, .aes192, "D79A23C126202AC9051FEBFBC0E8A03B1C6645D85752B4B7"),
        (1, .aes256, "11504483F04A10A66A8FCD6D348C75A961809C54EDAA21174726A97FB37DEF52"),
        (2, .aes256, "1F35D576CE54BA775A391F9749E388C48215B7D544D62D96470ABA7B19F051A3"),
        (3, .aes256, "D79A23C126202AC9051FEBFBC0E8A03B1C6645D85752B4B71408FA229AB6D56B"),
    ])
    func keysAreDerivedForEveryAlgorithm(counter: UInt32, algorithm: KeyDerivation.Algorithm, key: String) throws {
        let secret = try Digest.sha1.hash(Array("T22000129364081251010318".utf8))
        #expect(Hex.encode(secret) == "7E2D2A41C74EA0B38CD36F863939BFA8E9032AAD")
        #expect(Hex.encode(try KeyDerivation.key(from: secret, counter: counter, for: algorithm)) == key)
    }

    @Test func aCardAccessNumberIsDerivedAsItsCharacters() throws {
        let key = try KeyDerivation.key(from: Array("123456".utf8), counter: KeyDerivation.password, for: .aes128)
        #expect(Hex.encode(key) == "591468CDA83D65219CCCB8560233600F")
    }

    /// RFC 4493 4 for keys of 16 octets, NIST SP 800-38B D.2 and D.3 for the longer ones.
    @Test(arguments: [
        (
            "2B7E151628AED2A6ABF7158809CF4F3C",
            [
                "BB1D6929E95937287FA37D129B756746", "070A16B46B4D4144F79BDD9DD04A287C", "DFA66747DE9AE63030CA32611497C827",
                "51F0BEBF7E3B9D92FC49741779363CFE",
            ]
        ),
        (
            "8E73B0F7DA0E6452C810F32B809079E562F8EAD2522C6B7B",
            [
                "D17DDF46ADAACDE531CAC483DE7A9367", "9E99A7BF31E710900662F65E617C5184", "8A1DE5BE2EB31AAD089A82E6EE908B0E",
                "A1D5DF0EED790F794D77589659F39A11",
            ]
        ),
        (
            "603DEB1015CA71BE2B73AEF0857D77811F352C073B6108D72D9810A30914DFF4",
            [
                "028962F61B7BF89EFC6B551F4667D983", "28A7023F452E8F82BD4BF28D8C37C35C", "AAF3D8F1DE5640C232F5B169B9C911E6",
                "E1992190549F6ED5696A2C056C315410",
            ]
        ),
    ])
    func cmacIsThatOfTheStandard(key: String, macs: [String]) throws {
        let message = try Hex.decode(
            "6BC1BEE22E409F96E93D7E117393172AAE2D8A571E03AC9C9EB76FAC45AF8E51"
                + "30C81C46A35CE411E5FBC1191A0A52EFF69F2445DF4F9B17AD2B417BE66C3710")
        for (count, mac) in zip([0, 16, 40, 64], macs) {
            #expect(Hex.encode(try CMAC.authenticate(Array(message[..<count]), key: try Hex.decode(key))) == mac)
        }
    }

    /// The hash of `abc`: FIPS 180-4, its examples.
    @Test(arguments: [
        (Digest.sha1, "A9993E364706816ABA3E25717850C26C9CD0D89D"),
        (.sha224, "23097D223405D8228642A477BDA255B32AADBCE4BDA0B3F7E36C9DA7"),
        (.sha256, "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"),
        (
            .sha384, "CB00753F45A35E8BB5A03D699AC65007272C32AB0EDED1631A8B605A43FF5BED8086072BA1E7CC2358BAECA134C825A7"
        ),
        (
            .sha512,
            "DDAF35A193617ABACC417349AE20413112E6FA4E89A97EA20A9EEEE64B55D39A"
                + "2192992A274FC1A836BA3C23A3FEEBBD454D4423643CE80E2A9AC94FA54CA49F"
        ),
    ])
    func hashesAreThoseOfTheStandard(digest: Digest, value: String) throws {
        #expect(Hex.encode(try digest.hash(Array("abc".utf8))) == value)
        #expect(try digest.hash([]).count == digest.length)
    }

    /// NIST SP 800-67 B.1: three keys, each block by itself.
    @Test func tripleDESIsThatOfTheStandard() throws {
        let key = try Hex.decode("0123456789ABCDEF23456789ABCDEF01456789ABCDEF0123")
        let text = Array("The qufck brown fox jump".utf8)
        let blocks = try [0, 8, 16].flatMap { try BlockCipher.tripleDES.encrypt(Array(text[$0..<$0 + 8]), key: key) }
        #expect(Hex.encode(blocks) == "A826FD8CE53B855FCCE21C8112256FE668D5C05DD9B6B900")
        let vector = [UInt8](1...8)
        #expect(
            try BlockCipher.tripleDES.decrypt(BlockCipher.tripleDES.encrypt(text, key: key, iv: vector), key: key, iv: vector)
                == text)
    }

    /// FIPS 46-3: encryption under K|K|K is DES under K.
    @Test func aKeyOfEightOctetsIsThatKeyThreeTimes() throws {
        let key = try Hex.decode("133457799BBCDFF1")
        #expect(Hex.encode(try BlockCipher.tripleDES.encrypt(try Hex.decode("0123456789ABCDEF"), key: key)) == "85E813540F0AB405")
        let data = [UInt8](0..<64)
        #expect(try BlockCipher.tripleDES.encrypt(data, key: key) == BlockCipher.tripleDES.encrypt(data, key: key + key + key))
        #expect(try BlockCipher.tripleDES.decrypt(data, key: key) == BlockCipher.tripleDES.decrypt(data, key: key + key + key))
    }

    /// ISO/IEC 9797-1, MAC algorithm 3, put together from its parts.
    @Test func aRetailMACIsAChainUnderTheFirstKeyAndAStepUnderBoth() throws {
        let first = try Hex.decode("133457799BBCDFF1")
        let second = try Hex.decode("0123456789ABCDEF")
        for count in 0...40 {
            let data = [UInt8](0..<UInt8(count))
            let chain = try BlockCipher.tripleDES.encrypt(Padding.pad(data, to: 8), key: first)
            let step = try BlockCipher.tripleDES.decrypt(Array(chain.suffix(8)), key: second)
            #expect(try RetailMAC.authenticate(data, key: first + second) == BlockCipher.tripleDES.encrypt(step, key: first))
        }
    }

    @Test func keysAndBlocksOfOtherLengthsAreRefused() {
        #expect(throws: CryptoError(code: .keyLength, detail: "")) { try CMAC.authenticate([], key: [1]) }
        #expect(throws: CryptoError(code: .keyLength, detail: "")) {
            try RetailMAC.authenticate([], key: [UInt8](repeating: 0, count: 24))
        }
        #expect(throws: CryptoError(code: .keyLength, detail: "")) {
            try BlockCipher.aes.encrypt([UInt8](repeating: 0, count: 16), key: [1])
        }
        #expect(throws: CryptoError(code: .keyLength, detail: "")) {
            try BlockCipher.tripleDES.encrypt([UInt8](repeating: 0, count: 8), key: [UInt8](repeating: 0, count: 15))
        }
        #expect(throws: CryptoError(code: .dataLength, detail: "")) {
            try BlockCipher.aes.decrypt([1], key: [UInt8](repeating: 0, count: 16))
        }
    }

    @Test func paddingIsTakenOffOnlyWhereItIs() {
        for count in 0...40 {
            let data = [UInt8](repeating: 0x80, count: count)
            let padded = Padding.pad(data, to: 8)
            #expect(padded.count % 8 == 0 && padded.count > count && padded.count <= count + 8)
            #expect(Padding.unpad(padded) == data)
        }
        #expect(Padding.unpad([]) == nil)
        #expect(Padding.unpad([0, 0, 0]) == nil)
        #expect(Padding.unpad([0x80, 0, 1]) == nil)
    }
}
