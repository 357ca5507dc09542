// SPDX-License-Identifier: MIT

import Octets
import SessionSupport
import TagTransport
import Testing

@testable import TraceDecoding

/// Commands and answers that public reports say were read or sent wrongly, one test a report.
@Suite struct FieldReportsACommands {
    private func decode(_ lines: String...) -> [DecodedRow] {
        var rows = ReportedRows()
        for line in lines { rows.push(line) }
        return rows.rows
    }

    // A1, google/OpenSK#565.
    @Test func anExtendedLeHasThreeBytesAloneAndTwoAfterData() throws {
        let alone = decode("> 00B00000 001234")[0]
        #expect(alone.value("iso7816.command.le") == "1234")
        #expect(alone.value("iso7816.command.lc") == nil)
        #expect(alone.annotations.isEmpty)
        let after = decode("> 00A40000 000003 010203 1234")[0]
        #expect(after.value("iso7816.command.data") == "010203")
        #expect(after.value("iso7816.command.le") == "1234")
        #expect(after.annotations.isEmpty)
        let long = decode("> 00A40000 000003 010203 001234")[0]
        #expect(long.remarks == ["error: Le has three bytes: after data an extended Le has two"])
        #expect(long.value("iso7816.command.le") == nil)
    }

    // A3, google/u2f-ref-code PR 180.
    @Test func anExtendedLeWithoutDataIsWrittenWithItsLeadingZero() throws {
        let command = try CommandAPDU(cla: 0, ins: 0x03, p1: 0, p2: 0, ne: 65_536)
        #expect(Hex.encode(command.octets) == "00030000000000")
        #expect(try CommandAPDU(bytes: command.octets) == command)
        #expect(try CommandAPDU(cla: 0, ins: 0x03, p1: 0, p2: 0, ne: 0x1234).octets == hex("00030000 001234"))
    }

    // A5, martinpaljak/apdu4j#21.
    @Test func anExtendedCommandIsShownWithItsOwnLengthsAndData() {
        let data = "0102030405060708090A0B0C0D0E0F10"
        let update = decode("> 00D60000 00 0010 \(data)")[0]
        #expect(update.summary == "UPDATE BINARY 16 at 0")
        #expect(update.value("iso7816.command.lc") == "10")
        #expect(update.value("iso7816.command.data") == data)
        #expect(update.fields.first { $0.path == "iso7816.command.data" }?.start == 7 * 8)
        let rows = decode("> 00B00000 00 0000", "< \(String(repeating: "5A", count: 2_048))9000")
        #expect(rows[0].summary == "READ BINARY 65,536 at 0")
        #expect(rows[1].summary == "2,048 bytes")
    }

    // A7, martinpaljak/GlobalPlatformPro#223 and #180. The encoder's own test is `an256thExpectedByteDoesNotMakeABodyExtended`.
    @Test func aLeOf256AfterDataIsTheShortZero() throws {
        let command = try CommandAPDU(cla: 0, ins: 0xA4, p1: 4, p2: 0, data: .init([0xA0]), ne: 256)
        let row = decode("> \(Hex.encode(command.octets))")[0]
        #expect(row.value("iso7816.command.le") == "0")
        #expect(row.value("iso7816.command.lc") == "1")
        #expect(row.value("iso7816.command.extended") == nil)
    }

    /// What may follow the header 00 A4 00 00, by ISO/IEC 7816-3 12.1.3: the case, or nil where there is none.
    static let bodies: [(String, String?)] = [
        ("", "1"), ("00", "2S"), ("01", "2S"), ("0000", nil), ("0100", "3S"), ("010000", "4S"), ("000000", "2E"),
        ("000001", "2E"),
        ("001234", "2E"), ("00000000", nil), ("00000100", "3E"), ("0000010000", nil), ("000001000000", "4E"),
        ("00000100000000", nil), ("0000000000", nil), ("02AA", nil), ("02AABB", "3S"), ("02AABB00", "4S"), ("02AABB0000", nil),
    ]

    // A9, licel/jcardsim#189.
    @Test(arguments: bodies) func aFirstLengthByteOfZeroBeginsAnExtendedLengthAndIsNeverLc(_ body: String, _ expected: String?)
        throws
    {
        let octets = hex("00A40000" + body)
        let parsed = try? CommandAPDU(bytes: octets)
        #expect(parsed?.caseName == expected)
        // The grammar and the parser of the library read the same.
        let row = decode("> \(Hex.encode(octets))")[0]
        #expect(row.annotations.contains { $0.severity == .error } == (expected == nil))
        let names = Set(row.fields.map(\.path))
        #expect(names.contains("iso7816.command.data") == (parsed?.data != nil))
        #expect(names.contains("iso7816.command.le") == (parsed?.ne != nil))
        #expect(names.contains("iso7816.command.extended") == (parsed?.form == .extended))
    }

    // A11, RfidResearchGroup/proxmark3#171.
    @Test func anEmptyLcBeforeLeIsNamedAndTheCommandWithoutItIsRead() {
        let rows = decode("> 00B2011400 00", "< 6F00", "> 00B2011400", "< 7081A3 9000")
        #expect(rows[0].remarks == ["error: Lc 00 before Le: without data there is no Lc"])
        #expect(rows[0].value("iso7816.command.raw") == "0000")
        #expect(rows[1].summary == "6F00 no diagnosis")
        #expect(rows[2].summary == "READ RECORD 1")
        #expect(rows[2].value("iso7816.command.le") == "0")
        #expect(rows[2].annotations.isEmpty)
        #expect(rows[3].isSuccess)
    }

    // A13, Yubico/yubikit-swift PR 113.
    @Test func getResponseWithoutLeIsWarnedOfAndOneWithLeIsNot() {
        let rows = decode("> 00CA006E00", "< 6110", "> 00C00000", "< 6700", "> 00C0000000", "< 9000", "> 01C00000")
        let text = "warn: GET RESPONSE without Le asks for nothing: 00 asks for all there is"
        #expect(rows[2].remarks == [text])
        #expect(rows[4].remarks.isEmpty)
        #expect(rows[6].remarks == [text])
        // Another command of case 1 is one that nothing is wanted of.
        #expect(decode("> 00A40000")[0].annotations.isEmpty)
    }

    // A13: to whoever compares, the two commands are not the same.
    @Test func commandsThatDifferInLeAloneDiffer() throws {
        #expect(try CommandAPDU(bytes: hex("00C00000")) != CommandAPDU(bytes: hex("00C0000000")))
        #expect(try CommandAPDU(bytes: hex("00C00000")).ne == nil)
        #expect(try CommandAPDU(bytes: hex("00C0000000")).ne == 256)
    }

    // A15, bettse/passy#3.
    @Test func aRefusedAuthenticationWithAnotherLeThan28HasItsLikelyCauseNamed() {
        let cryptogram = String(repeating: "5A", count: 40)
        func answer(_ le: String, _ status: String) -> [String] {
            decode("> 0084000008", "< 0102030405060708 9000", "> 0082000028 \(cryptogram) \(le)", "< \(status)")[3].remarks
        }
        let likely = "warn: the card refused; Le is not 28, which newer documents answer with 6A88"
        #expect(answer("00", "6A88").contains(likely))
        #expect(answer("", "6A88").contains(likely))
        #expect(answer("28", "6300").contains { $0.hasPrefix("warn: the card refused: another key") })
        #expect(!answer("28", "6300").contains(likely))
    }

    // A17, mwalle/neopgp#3. That a transport's error is a row, and that none is made up, `aCardThatGoesAwayIsARowOfItsOwn...` shows.
    @Test func anAnswerThatDidNotComeIsAnErrorAndNoEmptyAnswer() {
        let rows = decode(
            "> 00CA006E00", "! transmitFailed 80100016", "> 00CA006E00", "< \(String(repeating: "5A", count: 256))9000")
        #expect(rows[1].kind == .error)
        #expect(rows[1].annotations.map(\.severity) == [.error])
        #expect(rows[1].annotations.first?.see == 1)
        #expect(rows[3].summary == "256 bytes")
        // A row without bytes is none that a card can send.
        let empty = decode("> 00CA006E00", "< ")[1]
        #expect(empty.summary == "malformed answer, 0 bytes")
        #expect(!empty.isSuccess)
        #expect(empty.annotations.contains { $0.severity == .error })
    }
}
