// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Testing
import VirtualCards

@Suite struct SUNMessageTests {
    private static let zeros = Data(count: 16)

    // NXP AN12196 3.4.4.2: an enciphered UID and counter, enciphered file data, keys of zeros.
    private static let published =
        "https://ntag.nxp.com/424?e=FD91EC264309878BE6345CBE53BADF40&c=CEE9A53E3E463EF1F459635736738962&cmac=ECC1E7F6C6C73BF6"

    @Test func theMessageOfTheApplicationNoteIsRight() throws {
        let message = try SUNMessage.verify(url: Self.published, SUNConfiguration(fileReadKey: Self.zeros))
        #expect(message.uid == data("04958CAA5C5E80") && message.counter == 8)
        #expect(message.fileData == Data("xxxxxxxxxxxxxxxx".utf8))
        #expect(message.coveredText == "CEE9A53E3E463EF1F459635736738962&cmac=")
    }

    // NXP AN12196 3.4.2.1 and 3.4.4.2.1: nothing but UID and counter is covered.
    @Test func aMACOverNothingCoversUIDAndCounter() throws {
        let url = "https://choose.url.com/ntag424?e=EF963FF7828658A599F3041510671E88&c=94EED9EE65337086"
        var configuration = SUNConfiguration(metaReadKey: Self.zeros, fileReadKey: Self.zeros)
        configuration.macNames = ["c"]
        configuration.encryptedNames = []
        let message = try SUNMessage.verify(url: url, configuration)
        #expect(message.uid == data("04DE5F1EACC040") && message.counter == 61)
        #expect(message.coveredText.isEmpty && message.fileData == nil)
    }

    // A scan of a real chip by NXP's TagInfo, with delivered keys: UID and counter in plain text.
    @Test func aPlainMessageOfARealChipIsRight() throws {
        let url = "https://sdm.nfcdeveloper.com/tagpt?uid=049F50824F1390&ctr=000001&cmac=2446E527C37E073A"
        let message = try SUNMessage.verify(url: url, SUNConfiguration(fileReadKey: Self.zeros))
        #expect(message.uid == data("049F50824F1390") && message.counter == 1)
        for forged in [
            url.replacingOccurrences(of: "1390", with: "1391"), url.replacingOccurrences(of: "000001", with: "000002"),
            url.replacingOccurrences(of: "2446", with: "2447"),
        ] {
            #expect(throws: SUNError(.mac, "")) {
                try SUNMessage.verify(url: forged, SUNConfiguration(fileReadKey: Self.zeros))
            }
        }
    }

    @Test func everyChangeOfTheMessageIsFoundOut() throws {
        let text = Array(Self.published.utf8)
        let start = try #require(text.firstIndex(of: UInt8(ascii: "?"))) + 1
        for index in start..<text.count {
            var changed = text
            changed[index] = changed[index] == UInt8(ascii: "1") ? UInt8(ascii: "2") : UInt8(ascii: "1")
            let url = String(decoding: changed, as: UTF8.self)
            // A change of the name of what is not looked for leaves the message without it.
            #expect(throws: SUNError.self, "\(url)") {
                let message = try SUNMessage.verify(url: url, SUNConfiguration(fileReadKey: Self.zeros))
                if message.fileData == nil { throw SUNError(.parameterMissing, "") }
            }
        }
        #expect(throws: SUNError(.key, "")) {
            try SUNMessage.verify(url: Self.published, SUNConfiguration(fileReadKey: Data()))
        }
        #expect(throws: SUNError(.parameterMissing, "")) {
            try SUNMessage.verify(url: "https://example.com", SUNConfiguration(fileReadKey: Self.zeros))
        }
        #expect(throws: SUNError(.parameterMissing, "")) {
            try SUNMessage.verify(url: "https://example.com?cmac=ECC1E7F6C6C73BF6", SUNConfiguration(fileReadKey: Self.zeros))
        }
        #expect(throws: SUNError(.parameterMalformed, "")) {
            try SUNMessage.verify(
                url: "https://example.com?uid=04&cmac=ECC1E7F6C6C73BF6", SUNConfiguration(fileReadKey: Self.zeros))
        }
        #expect(throws: SUNError(.piccData, "")) {
            try SUNMessage.verify(
                url: Self.published, SUNConfiguration(metaReadKey: Data(repeating: 1, count: 16), fileReadKey: Self.zeros))
        }
    }

    // A real chip in LRP mode with delivered keys, from the tests of nfc-developer's sdm-backend.
    @Test func aMessageOfARealChipInLRPIsRight() throws {
        let url =
            "https://sdm.nfcdeveloper.com/tag?picc_data=07D9CA2545881D4BFDD920BE1603268C0714420DD893A497"
            + "&enc=D6E921C47DB4C17C56F979F81559BB83&cmac=F9481AC7D855BDB6"
        let message = try SUNMessage.verify(url: url, SUNConfiguration(fileReadKey: Self.zeros, usesLRP: true))
        #expect(message.uid == data("049B112A2F7080") && message.counter == 4)
        #expect(message.fileData == Data("NTXXb7dz3PsYYBlU".utf8))
    }

    // The virtual card's mirrors, in AES and LRP.
    @Test(arguments: [false, true]) func theCardsMessageIsRightAndCounts(usesLRP: Bool) async throws {
        let options = usesLRP ? ["--lrp"] : []
        let transport = VirtualCardTransport(
            try VirtualCardCatalog.make(VirtualCardSpecification(kind: "ntag424", arguments: options)))
        let info = CardInfo(type: .ntag424DNA, uid: transport.identifier)
        for count in 1...3 {
            let message = try await CoreExtendedNFC.readNDEF(info: info, transport: transport)
            guard case .uri(let url)? = message.records.first?.parsedPayload else {
                Issue.record("no URI")
                return
            }
            let sun = try SUNMessage.verify(url: url, SUNConfiguration(fileReadKey: Self.zeros, usesLRP: usesLRP))
            #expect(sun.uid == transport.identifier && sun.counter == count)
        }
    }

    @Test func everyMirrorOfACardIsVerified() async throws {
        let transport = VirtualCardTransport(try VirtualCardCatalog.make(kind: "ntag424"))
        var card = NTAG424Card(transport: transport)
        try await card.authenticate(keyNumber: 0, key: .zero(.aes))
        let front = "https://a.b/?"
        let url =
            front + "uid=" + String(repeating: "0", count: 14) + "&ctr=000000&enc=" + String(repeating: "s", count: 16)
            + String(repeating: "0", count: 16) + "&cmac=" + String(repeating: "0", count: 16)
        let message = NDEFMessage.uri(url).data
        // The length field, the record's header of four octets and the abbreviation stand before what follows https://.
        let base = 2 + 5 - "https://".utf8.count + front.utf8.count
        let uid = base + 4
        let counter = uid + 14 + 5
        let sealed = counter + 6 + 5
        let mac = sealed + 32 + 6
        try await card.write(2, Data([0, UInt8(message.count)]) + message)
        try await card.changeFileSettings(
            2, communication: .plain, accessRights: DESFireAccessRights(rawValue: 0xEEE0),
            dynamicMessaging: NTAG424DynamicMessaging(
                options: 0xD1, metaRead: .free, fileRead: .key(1), counterRead: .never, uidOffset: uid,
                readCounterOffset: counter,
                macInputOffset: uid, encryptedOffset: sealed, encryptedLength: 32, macOffset: mac))
        let read = try await CoreExtendedNFC.readNDEF(
            info: CardInfo(type: .ntag424DNA, uid: transport.identifier), transport: transport)
        guard case .uri(let text)? = read.records.first?.parsedPayload else {
            Issue.record("no URI")
            return
        }
        let sun = try SUNMessage.verify(url: text, SUNConfiguration(fileReadKey: Self.zeros))
        #expect(sun.uid == transport.identifier && sun.counter == 1)
        #expect(sun.fileData == Data(String(repeating: "s", count: 16).utf8))
        #expect(sun.coveredText.hasSuffix("&cmac=") && sun.coveredText.contains("&ctr=000001"))
    }
}
