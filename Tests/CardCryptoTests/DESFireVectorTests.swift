// SPDX-License-Identifier: MIT

import CardCrypto
import Octets
import Testing

private func octets(_ hex: String) throws -> [UInt8] { try Hex.decode(hex) }

/// Published values for what DESFire and NTAG 424 DNA need.
@Suite struct DESFireVectorTests {
    // NIST SP 800-38B, examples of AES and TDES; the row of single DES is from proxmark3's own test.
    @Test(arguments: [
        ("2B7E151628AED2A6ABF7158809CF4F3C", BlockCipher.aes, 0, "BB1D6929E95937287FA37D129B756746"),
        ("2B7E151628AED2A6ABF7158809CF4F3C", .aes, 16, "070A16B46B4D4144F79BDD9DD04A287C"),
        ("2B7E151628AED2A6ABF7158809CF4F3C", .aes, 40, "DFA66747DE9AE63030CA32611497C827"),
        ("2B7E151628AED2A6ABF7158809CF4F3C", .aes, 64, "51F0BEBF7E3B9D92FC49741779363CFE"),
        ("0123456789ABCDEF23456789ABCDEF01456789ABCDEF0123", .tripleDES, 0, "7DB0D37DF936C550"),
        ("0123456789ABCDEF23456789ABCDEF01456789ABCDEF0123", .tripleDES, 16, "30239CF1F52E6609"),
        ("0123456789ABCDEF23456789ABCDEF01456789ABCDEF0123", .tripleDES, 20, "6C9F3EE4923F6BE2"),
        ("0123456789ABCDEF23456789ABCDEF01456789ABCDEF0123", .tripleDES, 32, "99429BD0BF7904E5"),
        ("0123456789ABCDEF23456789ABCDEF01", .tripleDES, 0, "79CE52A7F786A960"),
        ("0123456789ABCDEF23456789ABCDEF01", .tripleDES, 16, "CC18A0B79AF2413B"),
        ("0123456789ABCDEF23456789ABCDEF01", .tripleDES, 20, "C06D377ECD101969"),
        ("0123456789ABCDEF23456789ABCDEF01", .tripleDES, 32, "9CD33580F9B64DFB"),
        ("0123456789ABCDEF", .tripleDES, 0, "86F79C13FD306E67"), ("0123456789ABCDEF", .tripleDES, 16, "BEA4212292462A85"),
        ("0123456789ABCDEF", .tripleDES, 20, "3E2F8310C569275E"), ("0123456789ABCDEF", .tripleDES, 32, "9D1FC4D4C0259132"),
    ]) func aMACOverAnyCipherIsThePublishedOne(key: String, cipher: BlockCipher, length: Int, mac: String) throws {
        let message = try octets(
            "6BC1BEE22E409F96E93D7E117393172AAE2D8A571E03AC9C9EB76FAC45AF8E5130C81C46A35CE411E5FBC1191A0A52EF"
                + "F69F2445DF4F9B17AD2B417BE66C3710")
        #expect(
            Hex.encode(try ChainedCMAC.authenticate(Array(message.prefix(length)), key: octets(key), cipher: cipher)) == mac)
    }

    // NXP AN10922 2.2.1, 2.4.1, 2.5.1; AN10957, where the input is one UID.
    @Test(arguments: [
        (
            DESFireCipher.aes, "00112233445566778899AABBCCDDEEFF", "04782E21801D803042F54E585020416275",
            "A8DD63A3B89D54B37CA802473FDA9175"
        ),
        (
            .twoKeyTripleDES, "00112233445566778899AABBCCDDEEFF", "04782E21801D803042F54E58502041",
            "16F8597C9E8910C86B9648D006107DD7"
        ),
        (
            .threeKeyTripleDES, "00112233445566778899AABBCCDDEEFF0102030405060708", "04782E21801D803042F54E5850",
            "2F0DD03675D3FB9A5705AB0BDA91CA0B55B8E07FCDBF10EC"
        ),
        (.aes, "F3F9377698707B688EAF84ABE39E3791", "04DEADBEEFFEED", "0BB408BAFF98B6EE9F2E1585777F6A51"),
    ]) func aDiversifiedKeyIsThePublishedOne(cipher: DESFireCipher, master: String, input: String, key: String) throws {
        #expect(Hex.encode(try DESFireDiversification.key(cipher, master: octets(master), input: octets(input))) == key)
    }

    @Test func whatCannotBeDiversifiedIsRefused() throws {
        let key = [UInt8](repeating: 0, count: 16)
        #expect(throws: CryptoError(code: .keyLength, detail: "")) {
            try DESFireDiversification.key(.des, master: Array(key.prefix(8)), input: [1])
        }
        for length in [0, 32] {
            #expect(throws: CryptoError(code: .dataLength, detail: "")) {
                try DESFireDiversification.key(.aes, master: key, input: [UInt8](repeating: 1, count: length))
            }
        }
    }

    // The diversified keys above with version 55, as libfreefare writes it.
    @Test(arguments: [
        ("16F8597C9E8910C86B9648D006107DD7", "16F9587D9E8910C96B9649D007107DD6"),
        (
            "2F0DD03675D3FB9A5705AB0BDA91CA0B55B8E07FCDBF10EC",
            "2E0DD03774D3FA9B5705AB0BDA91CA0B55B8E07FCDBF10EC"
        ),
    ]) func aVersionStandsInTheParityBits(key: String, versioned: String) throws {
        let result = DESFireKeyVersion.set(0x55, in: try octets(key))
        #expect(Hex.encode(result) == versioned)
        #expect(DESFireKeyVersion.of(result) == 0x55)
    }

    // Frames of real captures; the data and CRC of a DESFire D40 read; the CRC of an EV1 read over data and status 00.
    @Test func checksumsAreThoseOfRealFrames() throws {
        for (frame, crc) in [
            ("E080", "3173"), ("067577810280", "02F0"), ("5000", "57CD"), ("0A0000A4040009A00000039742544659", "E70B"),
        ] {
            #expect(Hex.encode(DESFireChecksum.crc16(try octets(frame))) == crc)
        }
        let read = "000000000000000000000000000000000000000000000000666C61677B643363727970745F6672306D5F74723463337D"
        #expect(Hex.encode(DESFireChecksum.crc32(try octets(read + "00"))) == "9B26B947")
    }

    // A real DESFire EV1 with DES, 2K3DES and AES keys, from the log of a PN532 reader.
    @Test(arguments: [
        (DESFireCipher.des, "849B36C5F8BF4A09", "4FD1B75942A8B8E1", "849A36C44ED0B658"),
        (.twoKeyTripleDES, "530E3D90F7A201C4", "BCD8299747332DAF", "520E3C90BCD82896F6A200C446322CAE"),
        (
            .aes, "F44B26F5686F3A391CD38EBD10772281", "C05DDD714FD788A6B7B754F3C4D066E8", "F44B26F5C05DDD7110772281C4D066E8"
        ),
        (
            .aes, "40E7D27174CBA675E8EFBAB99C530E3D", "626FFBD45CAF334ACCA45599304F5B17", "40E7D271626FFBD49C530E3D304F5B17"
        ),
    ]) func aSessionKeyIsPartsOfBothRandomNumbers(cipher: DESFireCipher, a: String, b: String, key: String) throws {
        let session = try DESFireSessionKeys.ev1(cipher, rndA: octets(a), rndB: octets(b))
        // That log shows DES keys without their parity bits, which no cipher looks at.
        let mask: UInt8 = cipher == .aes ? 0xFF : 0xFE
        #expect(session.map { $0 & mask } == (try octets(key)).map { $0 & mask })
    }

    // NXP AN12196 table 14.
    @Test func theKeysOfEV2AreThoseOfTheApplicationNote() throws {
        let keys = try DESFireSessionKeys.ev2(
            key: [UInt8](repeating: 0, count: 16), rndA: octets("13C5DB8A5930439FC3DEF9A4C675360F"),
            rndB: octets("B9E2FC789B64BF237CCCAA20EC7E6E48"))
        #expect(Hex.encode(keys.encryption) == "1309C877509E5A215007FF0ED19CA564")
        #expect(Hex.encode(keys.authentication) == "4C6626F5E72EA694202139295C7A7FC7")
        // Table 17: the vector of the first command.
        let vector = try DESFireSessionKeys.ev2Vector(
            key: keys.encryption, isAnswer: false, transaction: octets("9D00C4DF"), counter: 0)
        #expect(Hex.encode(vector) == "D2CB7277A17841A06654A48188C1F8F5")
    }

    // NXP AN12196 3.3 table 1.
    @Test func theKeysOfDynamicMessagingAreThoseOfTheApplicationNote() throws {
        let keys = try DESFireSessionKeys.dynamicMessaging(
            key: octets("5ACE7E50AB65D5D51FD5BF5A16B8205B"), uid: octets("04C767F2066180"), counter: octets("010000"))
        #expect(Hex.encode(keys.encryption) == "66DA61797E23DECA5D8ECA13BBADF7A9")
        #expect(Hex.encode(keys.authentication) == "3A3E8110E05311F7A3FCF0D969BF2B48")
    }

    @Test func whatAReaderDeciphersACardEnciphers() throws {
        let key = try octets("1926D4D11E831E3A")
        let plain = try octets("000102030405060708090A0B0C0D0E0F")
        let sent = try DecipheringCBC.seal(plain, key: key)
        #expect(try DecipheringCBC.open(sent, key: key) == plain)
        #expect(throws: CryptoError(code: .dataLength, detail: "")) { try DecipheringCBC.seal([1], key: key) }
    }

    // A real D40 card's authentication (desfire-workshop, challenge 2, key 0000000000000001): what the reader sent.
    @Test func aRealReadersCryptogramIsMadeAgain() throws {
        let sent = try DecipheringCBC.seal(
            octets("1926D4D1CFB36F49") + octets("831E3A8521B58A1E"), key: octets("0000000000000001"))
        #expect(Hex.encode(sent) == "B097593B2D88F0859BE89DC396824F6C")
    }

    // Signatures of real chips that proxmark3's tools carry; the keys are NXP's (AN12196, AN12343).
    @Test(arguments: [
        (
            "0463474AA26A80",
            "27E9A50E6CA4BA9037C02F7D20A80D0284D0C1D83C67F5A5AC1D8A4EF86C9508417E4E9C6F85AA7920F0ABDED984CAF20467D66EA54BBF08",
            "048A9B380AF2EE1B98DC417FECC263F8449C7625CECE82D9B916C992DA209D68422B81EC20B65A66B5102A61596AF3379200599316A00A1410"
        ),
        (
            "042A41CAE45380",
            "B2769F8DDB575AEA2A680ADCA8FFED4FAB81A1E9908E2B82FE0FABB697BBD9B23835C416970E75768F12902ACA491349E94E6589EAF4F508",
            "04B304DC4C615F5326FE9383DDEC9AA892DF3A57FA7FFB3276192BC0EAA252ED45A865E3B093A3D0DCE5BE29E92F1392CE7DE321E3E5C52B3A"
        ),
    ]) func aRealSignatureIsRightForItsUIDAlone(uid: String, signature: String, key: String) throws {
        let (uid, signature, key) = (try octets(uid), try octets(signature), try octets(key))
        #expect(try DESFireOriginality.verify(signature: signature, uid: uid, publicKey: key))
        var other = uid
        other[6] ^= 1
        #expect(try !DESFireOriginality.verify(signature: signature, uid: other, publicKey: key))
        var torn = signature
        torn[0] ^= 1
        #expect(try !DESFireOriginality.verify(signature: torn, uid: uid, publicKey: key))
        #expect(throws: CryptoError(code: .signature, detail: "")) {
            try DESFireOriginality.verify(signature: Array(signature.dropLast()), uid: uid, publicKey: key)
        }
        #expect(throws: CryptoError(code: .library, detail: "")) {
            try DESFireOriginality.verify(signature: signature, uid: uid, publicKey: Array(key.dropLast()))
        }
        #expect(try !DESFireOriginality.verify(signature: [UInt8](repeating: 0, count: 56), uid: uid, publicKey: key))
    }
}

/// NXP AN12304 (primitive) and AN12321 (its use in NTAG 424 DNA).
@Suite struct LRPVectorTests {
    @Test func plaintextsAndUpdatedKeysAreThePublishedOnes() throws {
        let key = try octets("567826B8DA8E768432A9548DBE4AA3A0")
        let table = try LRP(key: key).plaintextTable.map { Hex.encode($0) }
        #expect(table[0] == "AC20D39F5341FE98DFCA21DA86BA7914" && table[1] == "907DA03D672449166915E4563E089D6D")
        #expect(table[14] == "37D734A51C076EB803BD530E17EB87DC" && table[15] == "71B444AF257A93215311D758DD333247")
        let updated = try (0..<3).map { Hex.encode(try LRP(key: key, updateNumber: $0).updatedKey) }
        #expect(
            updated == [
                "163D14ED24ED935373568EC521E96CF4", "1C519C000208B95A39A65DB058327188", "FE30AB50467E61783BFE6B5E0560160E",
            ])
    }

    @Test(arguments: [
        ("567826B8DA8E768432A9548DBE4AA3A0", 2, "1359", true, "1BA2C0C578996BC497DD181C6885A9DD"),
        ("B65557CE0E9B4C5886F232200113562B", 1, "BB4FCF27C94076F756AB030D", false, "6FDFA8D2A6AA8476BF94E71F25637F96"),
        ("88B95581002057A93E421EFE4076338B", 2, "77299D", true, "E9C04556A214AC3297B83E4BDF46F142"),
        ("C48A8E8B16571645A1557825AA66AC91", 3, "1F0B7C0DB12889CA436CABB78BE42F9", true, "51296B5E6D3B8DB8A1A7399760A19189"),
        ("99B1647A76CD170EA07997043E1E7919", 1, "F", true, "BA5F895E8B57F7753EE5C7276E60B37F"),
        ("549C67ECD60E848F773990990CAC681E", 3, "475BB41878EB17468F7A68847DDD3BAC", true, "C3B5EE74A722E784887C4C9FDB497855"),
        ("806A50530D7735B40AC4EF1638E8AD6A", 3, "D4137764716DBC8C579BEAB7E76754E", false, "CF991392F0369350A7E21BE52F748821"),
    ]) func anEvaluationIsThePublishedOne(key: String, update: Int, input: String, isFinal: Bool, result: String) throws {
        let nibbles = input.utf8.compactMap(Hex.value)
        #expect(
            Hex.encode(try LRP(key: octets(key), updateNumber: update).evaluate(nibbles: nibbles, isFinal: isFinal)) == result)
    }

    @Test(arguments: [
        ("63A0169B4D9FE42C72B2784C806EAC21", "", "0E07C601970814A4176FDA633C6FC3DE"),
        ("8195088CE6C393708EBBE6C7914ECB0B", "BBD5B85772C7", "AD8595E0B49C5C0DB18E77355F5AAFF6"),
        ("C960E0C80D89728D1FF952EFF5B83FEE", "21", "4EBEE65E5DD0C30F89C8ED49A3D2BF32"),
        ("57A2DD3D6DAB16AFC1D07B277664ED82", "D2D728DE057B3E", "DBDEC069CF2B46450CEFB34FFD80D840"),
    ]) func aMACIsThePublishedOne(key: String, message: String, mac: String) throws {
        #expect(Hex.encode(try LRP(key: octets(key)).authenticate(octets(message))) == mac)
    }

    @Test(arguments: [
        (
            "E0C4935FF0C254CD2CEF8FDDC32460CF", "C3315DBF",
            "012D7F1653CAF6503C6AB0C1010E8CB080000000000000000000000000000000",
            "FCBBACAA4F29182464F99DE41085266F480E863E487BAAF687B43ED1ECE0D623"
        ),
        (
            "EFA5B7429CD153BF0086DEF900C0F235", "9036FFFF", "E7F61E012F4F3255312BA68B1D2FDABF",
            "EA6E09AC2FB97E102D8CA64C1CBC0C0C"
        ),
        (
            "3CEEB70C13578D714860EEE19DBC8B01", "104988FF", "3E1537842F53FFD5AD788DC6C0A14D25",
            "0EFEEAE6249011EF6CD2D28980B93766"
        ),
    ]) func aCiphertextIsThePublishedOne(key: String, counter: String, plain: String, cipher: String) throws {
        let primitive = try LRP(key: octets(key))
        var count = try octets(counter)
        #expect(Hex.encode(try primitive.encrypt(octets(plain), counter: &count)) == cipher)
        count = try octets(counter)
        #expect(Hex.encode(try primitive.decrypt(octets(cipher), counter: &count)) == plain)
    }

    @Test func theCounterWrapsAtItsWidth() throws {
        var count: [UInt8] = [0xFF, 0xFF]
        _ = try LRP(key: [UInt8](repeating: 0, count: 16)).encrypt([UInt8](repeating: 0, count: 16), counter: &count)
        #expect(count == [0, 0])
    }

    // AN12321: AuthenticateLRPFirst with key 0, and the MAC of GetCardUID after it.
    @Test func theKeyOfASessionIsThatOfTheApplicationNote() throws {
        let session = try DESFireSessionKeys.lrp(
            key: [UInt8](repeating: 0, count: 16), rndA: octets("F537066D24FF8FF149D9012A47A36E5A"),
            rndB: octets("66721F1E4830BAE9E449CFBF42D07E78"))
        #expect(Hex.encode(session) == "2A5181848C630158FC56DF551BD81A6C")
        var count: [UInt8] = [0, 0, 0, 0]
        let first = try LRP(key: session, updateNumber: 1).decrypt(octets("FAE19D278238CA841E37ECEBF75B0E72"), counter: &count)
        #expect(Hex.encode(first) == "2F0CF791020000000000020000000000")
        #expect(count == [0, 0, 0, 1])
        #expect(Hex.encode(oddOctets(try LRP(key: session).authenticate(octets("5100002F0CF791")))) == "790003E69F330EAC")
    }
}
