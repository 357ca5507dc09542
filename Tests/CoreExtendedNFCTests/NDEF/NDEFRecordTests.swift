// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Foundation
import Testing

@Suite struct NDEFRecordTests {
    // NFC Forum URI RTD, appendix A: http://www.nfc.com; the message of a real NTAG 424 DNA in NXP's TagInfo begins D1 01 57 55.
    @Test func aURIIsAbbreviated() throws {
        #expect(NDEFMessage.uri("http://www.nfc.com").data == data("D1010855016E66632E636F6D"))
        #expect(NDEFMessage.uri("https://www.a.b").data == data("D1010455" + "02612E62"))
        #expect(NDEFMessage.uri("x-thing:1").data == data("D1010A5500") + Data("x-thing:1".utf8))
        for uri in ["http://a", "https://a", "tel:+1", "mailto:a@b", "urn:epc:id:1", "urn:nfc:sn", "ftp://ftp.a", "", "geo:1,2"] {
            #expect(try NDEFMessage(data: NDEFMessage.uri(uri).data).records.map(\.parsedPayload) == [.uri(uri)])
        }
    }

    // NFC Forum Text RTD 3.4.
    @Test func aTextHasItsLanguage() throws {
        #expect(NDEFMessage.text("Hello, world!").data == data("D101105402656E") + Data("Hello, world!".utf8))
        let german = NDEFMessage.text("Grüße", languageCode: "de-AT")
        #expect(
            try NDEFMessage(data: german.data).records[0].parsedPayload == .text(languageCode: "de-AT", text: "Grüße"))
        for (octets, text) in [
            ("82656E00480069", "Hi"), ("82656EFFFE48006900", "Hi"), ("82656EFEFF00480069", "Hi"), ("82656E", ""),
        ] {
            let record = NDEFRecord(typeNameFormat: .wellKnown, type: Data("T".utf8), payload: data(octets))
            #expect(record.parsedPayload == .text(languageCode: "en", text: text))
        }
        let torn = NDEFRecord(typeNameFormat: .wellKnown, type: Data("T".utf8), payload: data("0565"))
        #expect(torn.parsedPayload == .unknown(data("0565")))
    }

    @Test func everyKindOfRecordComesBack() throws {
        let records: [NDEFRecord] = [
            .text("a"), .uri("https://example.com/1"), .smartPoster(uri: "tel:1", title: "one"),
            .mime("text/plain", Data([1, 2])), .external("example.com:x", Data(repeating: 3, count: 300)), .empty,
            NDEFRecord(typeNameFormat: .unknown, identifier: Data("id".utf8), payload: Data([9])),
            NDEFRecord(typeNameFormat: .absoluteURI, type: Data("https://x".utf8)),
        ]
        let message = try NDEFMessage(data: NDEFMessage(records: records).data)
        #expect(message.records == records)
        #expect(
            message.records.map(\.parsedPayload) == [
                .text(languageCode: "en", text: "a"), .uri("https://example.com/1"), .smartPoster(uri: "tel:1", title: "one"),
                .mime(type: "text/plain", data: Data([1, 2])),
                .external(type: "example.com:x", data: Data(repeating: 3, count: 300)), .empty, .unknown(Data([9])),
                .uri("https://x"),
            ])
        #expect(message.records[2].displayType == "Smart poster" && message.records[2].displayValue == "one tel:1")
        #expect(NDEFMessage(records: []).data == data("D00000"))
    }

    // NDEF 1.0, 2.3.3: the middle and last chunks have neither type nor identifier.
    @Test func chunksAreJoined() throws {
        let message = try NDEFMessage(
            data: octets("B5 01 02 54 02 65 36 00 02 6E 41 56 00 01 42".replacingOccurrences(of: "B5", with: "B1")))
        #expect(message.records.count == 1)
        #expect(message.records[0].parsedPayload == .text(languageCode: "en", text: "AB"))
    }

    @Test(arguments: [
        "", "D1", "D101", "51010155" + "00", "9101015500", "D1010255", "D6000100", "C10100000001FF", "B10101546536000165",
        "B1010154" + "65" + "51010155" + "00", "F1010154" + "65", "C1FFFFFFFFFF5500",
    ]) func whatIsNoMessageIsRefused(hex: String) {
        #expect(throws: NFCError.invalidResponse(data(hex))) { try NDEFMessage(data: octets(hex)) }
    }

    @Test func aPosterInAPosterIsNotOpened() {
        var record = NDEFRecord.uri("tel:1")
        for _ in 0..<50 {
            record = NDEFRecord(typeNameFormat: .wellKnown, type: Data("Sp".utf8), payload: NDEFMessage(records: [record]).data)
        }
        #expect(record.parsedPayload == .smartPoster(uri: nil, title: nil))
    }
}
