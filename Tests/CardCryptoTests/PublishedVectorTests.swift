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

    /// RFC 4493 4.
    @Test(arguments: [
        (0, "BB1D6929E95937287FA37D129B756746"), (16, "070A16B46B4D4144F79BDD9DD04A287C"),
        (40, "DFA66747DE9AE63030CA32611497C827"),
        (64, "51F0BEBF7E3B9D92FC49741779363CFE"),
    ])
    func cmacIsThatOfTheStandard(count: Int, mac: String) throws {
        let key = try Hex.decode("2B7E151628AED2A6ABF7158809CF4F3C")
        let message = try Hex.decode(
            "6BC1BEE22E409F96E93D7E117393172AAE2D8A571E03AC9C9EB76FAC45AF8E51"
                + "30C81C46A35CE411E5FBC1191A0A52EFF69F2445DF4F9B17AD2B417BE66C3710")
        #expect(Hex.encode(try CMAC.authenticate(Array(message[..<count]), key: key)) == mac)
    }

    @Test func keysAndBlocksOfOtherLengthsAreRefused() {
        #expect(throws: CryptoError(code: .keyLength, detail: "")) { try CMAC.authenticate([], key: [1]) }
        #expect(throws: CryptoError(code: .keyLength, detail: "")) {
            try RetailMAC.authenticate([], key: [UInt8](repeating: 0, count: 24))
        }
        #expect(throws: CryptoError(code: .keyLength, detail: "")) {
            try BlockCipher.aes.encrypt([UInt8](repeating: 0, count: 16), key: [1])
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
