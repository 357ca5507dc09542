// SPDX-License-Identifier: MIT

import Octets
import SessionSupport
import Testing
import TraceFile

@testable import TraceDecoding

/// What commands and answers are called.
@Suite struct WordsTests {
    // Meanings of ISO/IEC 7816-4 5.6, in our words.
    static let statusWords: [(UInt16, String)] = [
        (0x9000, "9000"), (0x6A82, "6A82 not found"), (0x6982, "6982 access denied"), (0x6983, "6983 blocked"),
        (0x6700, "6700 wrong length"),
        (0x63C2, "63C2 2 tries left"), (0x6300, "6300 not verified"), (0x6C12, "6C12 Le is 18"), (0x6C00, "6C00 Le is 256"),
        (0x6110, "6110 16 more bytes"), (0x6100, "6100 256 more bytes"), (0x6282, "6282 end of file"),
        (0x6987, "6987 SM object missing"),
        (0x6988, "6988 SM object wrong"), (0x6D00, "6D00 no such command"), (0x91AE, "91AE not authentic"),
        (0x62F1, "62F1 warning"),
        (0x6F12, "6F12 no precise diagnosis"), (0x1234, "1234"),
    ]

    @Test(arguments: statusWords) func aStatusWordStandsWithItsMeaning(_ word: UInt16, _ text: String) {
        #expect(APDUFields.standard.status(word) == text)
    }

    static let names: [(String, String)] = [
        ("00A4000C", "SELECT MF"), ("00A4000C023F00", "SELECT MF"), ("00A4020C02011C", "SELECT EF.CardAccess"),
        // What is called DG1 in the eMRTD application is any file in another.
        ("00A4020C02011E", "SELECT file 011E"), ("00A4020C020101", "SELECT file 0101"), ("00A4020C022F00", "SELECT EF.DIR"),
        ("00A4020C021234", "SELECT file 1234"), ("00A4040C07A0000002471001", "SELECT eMRTD application"),
        ("00A4040007A000000003101000", "SELECT A0000000031010"), ("0084000008", "GET CHALLENGE"),
        ("00B0000004", "READ BINARY 4 at 0"),
        ("00B0000000", "READ BINARY 256 at 0"), ("00B00000000000", "READ BINARY 65,536 at 0"),
        ("00B0810010", "READ BINARY 16 at 0 of SFI 01"),
        ("00B10000045402800000", "READ BINARY at 32768"), ("0CB000040D9701128E082EA28A70F3C7B53500", "READ BINARY at 4"),
        ("0020000104FFFFFFFF", "VERIFY 01"), ("00200081", "VERIFY, tries of 81"), ("00C0000010", "GET RESPONSE 16"),
        ("00B2010400", "READ RECORD 1"), ("FF820000060102030405FF", "reader: LOAD KEYS"),
        ("90BD000007010000003000 0000", "ReadData"),
        ("80CA9F7F00", "GET DATA 9F7F"), ("00", "1 bytes that are no command"), ("", "0 bytes that are no command"),
    ]

    @Test(arguments: names) func aCommandIsNamedAsItsStandardNamesIt(_ octets: String, _ name: String) {
        #expect(APDUFields.standard.name(of: hex(octets)) == name)
    }

    static let fields: [(String, Int, String, Range<Int>)] = [
        ("00A4020C02011E", 0, "iso7816.command.cla", 0..<1), ("00A4020C02011E", 1, "iso7816.command.ins", 1..<2),
        ("00A4020C02011E", 2, "iso7816.command.p1", 2..<3), ("00A4020C02011E", 3, "iso7816.command.p2", 3..<4),
        ("00A4020C02011E", 4, "iso7816.command.lc", 4..<5), ("00A4020C02011E", 6, "iso7816.command.data", 5..<7),
        ("00A4020C02011E00", 7, "iso7816.command.le", 7..<8), ("00B00000000100", 5, "iso7816.command.le", 5..<7),
        ("00D6000000000201020000", 6, "iso7816.command.lc", 5..<7),
        ("00D6000000000201020000", 4, "iso7816.command.extended", 4..<5),
        ("00D6000000000201020000", 7, "iso7816.command.data", 7..<9),
        ("00D6000000000201020000", 10, "iso7816.command.le", 9..<11), ("00A4", 1, "iso7816.command", 0..<2),
    ]

    @Test(arguments: fields) func anOctetOfACommandBelongsToAField(
        _ octets: String, _ place: Int, _ path: String, _ range: Range<Int>
    ) {
        let found = APDUFields.standard.field(at: place, of: hex(octets))
        #expect(found.path == path)
        #expect(found.range == range)
    }

    private func decode(
        _ octets: [UInt8], comments: [String] = [], secrets: SecretStore = SecretStore(), showsSecrets: Bool = false
    ) -> DecodedRow {
        var decoder = TraceDecoder(interfaces: [TraceInterface(.apdu(0))], secrets: secrets, showsSecrets: showsSecrets)
        return decoder.push(
            TraceRow(time: 0, interface: 0, direction: .sent, packetID: 1, dissector: "iso7816", body: octets, comments: comments)
        )
    }

    @Test(arguments: names.map(\.0)) func theLeavesOfACommandCoverItWithoutOverlap(_ octets: String) throws {
        let octets = hex(octets)
        let fields = decode(octets).fields.filter { $0.buffer == 0 }
        let leaves = fields.filter { leaf in
            leaf.bits > 0
                && !fields.contains {
                    $0 != leaf && $0.depth > leaf.depth && $0.start >= leaf.start && $0.start + $0.bits <= leaf.start + leaf.bits
                }
        }
        var place = 0
        for field in leaves {
            #expect(field.start == place, "\(field.path)")
            place += field.bits
        }
        #expect(place == octets.count * 8)
    }

    @Test func theValueOfASealedFieldIsLeftOut() throws {
        let row = decode(hex("0020000104 00000000"), comments: ["tapdeck sealed 5+4"])
        let fields = row.fields.filter { $0.start <= 40 && $0.start + $0.bits > 40 }
        #expect(fields.map(\.path) == ["iso7816.command.data", "iso7816.command.data.pin"])
        for field in fields {
            #expect(field.value == .octets([]))
            #expect(field.text == "sealed, 4 bytes")
        }
    }

    @Test func aSecretOfAGrammarIsLeftOutThoughNobodySealedIt() throws {
        let octets = hex("002000010431323334")
        #expect(decode(octets).fields.allSatisfy { $0.value != .octets(hex("31323334")) && !$0.text.contains("31323334") })
        let shown = decode(octets, showsSecrets: true).fields
        #expect(shown.contains { $0.path == "iso7816.command.data.pin" && $0.value == .octets(hex("31323334")) })
    }

    @Test func aSealedPlaceOutsideTheRowIsPassedOver() {
        func places(_ comment: String) -> SealedPlaces {
            let row = TraceRow(
                time: 0, interface: 0, direction: .sent, packetID: 1, dissector: "iso7816", body: hex("0020000104000000 00"),
                comments: [comment])
            let secrets = SecretStore([SecretRecord(kind: .sealed, packetID: 1, offset: 5, octets: hex("31323334"))])
            return SealedPlaces(row: row, secrets: secrets)
        }
        #expect(places("tapdeck sealed 5+4").places == [5..<9])
        #expect(places("tapdeck sealed 5+4").octets == hex("002000010431323334"))
        #expect(places("tapdeck sealed 5+4").unknown.isEmpty)
        #expect(places("tapdeck sealed 6+2").unknown == [6..<8])
        for comment in [
            "tapdeck sealed 5+5", "tapdeck sealed 9+1", "tapdeck sealed -1+2", "tapdeck sealed 0+0",
            "tapdeck sealed 9223372036854775807+1",
            "tapdeck sealed 1+9223372036854775807", "tapdeck sealed ", "tapdeck sealed +", "another comment",
        ] { #expect(places(comment).places.isEmpty, "\(comment)") }
    }
}
