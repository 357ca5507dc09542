// SPDX-License-Identifier: MIT

import Octets
import SessionSupport
import Testing

@testable import TraceDecoding

/// Answers to reset and data objects that public reports say were read wrongly, one test a report. The library's own parsers
/// have theirs beside them, in `ATRTests` and `TLVTests`; D7 is there alone, since what does not begin as an ATR is none here.
@Suite struct FieldReportsDObjects {
    private func atr(_ octets: String) -> DecodedRow {
        var rows = ReportedRows()
        return rows.push("< \(octets)")[0]
    }

    private func selected(_ control: String) -> DecodedRow {
        var rows = ReportedRows()
        return rows.push("> 00A4000002 3F00 00", "< \(control) 9000")[1]
    }

    // D1, LudovicRousseau/pyscard-contrib#5.
    @Test func bytesBehindTheCheckCharacterAreLeftOver() {
        let row = atr("3B8480010111200336 9000")
        #expect(row.value("atr.atr.tck") == "36")
        #expect(row.annotations.contains { $0.code == "held" && $0.path == "atr.atr.tck" })
        #expect(row.remarks == ["warn: 2 bytes left over"])
    }

    // D3, LudovicRousseau/pyscard-contrib#2.
    @Test func aBrokenCompactTLVIsReportedWhereItBreaks() {
        let row = atr("3F6A000000640150010C820101A9")
        #expect(row.text("atr.atr.ts") == "inverse convention")
        #expect(row.value("atr.atr.tck") == nil)
        #expect(row.value("atr.atr.historical.category") == "0")
        #expect(row.value("atr.atr.historical.objects.preIssuing") == "0150010C")
        #expect(row.remarks == ["error: status information: 2 bytes wanted, 0 there"])
        #expect(row.value("atr.atr.historical.status") == "1A9")
    }

    // D5, kanidm/webauthn-rs PR 375.
    @Test func theHighHalfOfT0IsAMaskAndNoNumber() {
        let row = atr("3BFD1300008131FE158073C021C057597562694B657940")
        let first = ["ta1", "tb1", "tc1"].map { row.value("atr.atr.\($0)") }
        #expect(first == ["13", "0", "0"])
        #expect(row.text("atr.atr.td1.t1") == "T=1")
        #expect(row.text("atr.atr.td2.t2") == "T=1")
        #expect(row.value("atr.atr.tck") == "40")
        #expect(row.held == 2)
        #expect(row.remarks.isEmpty)
    }

    // D9, Ledger-Donjon/scaffold#30; ISO/IEC 7816-3 8.2.3 and 11.4.4.
    @Test func theCheckOfT1IsSaidByTheFirstTCBehindT1FromTheThirdGroupOn() {
        let third = atr("3BC00181410100")
        #expect(third.value("atr.atr.tc1") == "1")
        #expect(third.value("atr.atr.tc3.crc") == "1")
        let fourth = atr("3B80809F0351FE0132")
        #expect(fourth.value("atr.atr.tc4.crc") == "1")
        #expect(fourth.value("atr.atr.ifsc4") == "FE")
        // The same byte behind T=15 says nothing of blocks.
        let global = atr("3B80804F014E")
        #expect(global.value("atr.atr.tc3.crc") == nil)
        #expect(global.value("atr.atr.otherTc3") == "1")
        #expect([third, fourth, global].allSatisfy { $0.remarks.isEmpty && $0.held == 2 })
    }

    // D11, binaryfoo/emv-bertlv#9.
    @Test func aLengthOf17BytesIsCalledAbsurdWithWhatWasMeantAsAHint() {
        let row = selected("6F91 571347 \(String(repeating: "00", count: 142))")
        #expect(
            row.remarks == ["error: a length of 17 bytes, which is absurd; as a number this byte is 145, and 145 bytes are there"]
        )
        // No hint where 145 bytes are not there.
        #expect(selected("6F91 571347").remarks == ["error: a length of 17 bytes, which is absurd"])
        #expect(selected("6F80 84010000 00").remarks == ["error: an indefinite length, which is not allowed here"])
        #expect(selected("5FFFFFFF7F 00").remarks == ["error: a tag of more than four bytes"])
        #expect(selected("6F8201").remarks == ["error: ends inside a length of 2 bytes"])
    }

    // D13, bitgamma/tlv#1.
    @Test func ffBeforeAnObjectIsFillerWithItsCount() {
        let row = selected("6F0D FFFFFFFFFFFF 8405A000000003")
        #expect(row.value("iso7816.fileControl.fci.dfName") == "A000000003")
        #expect(row.value("iso7816.fileControl.fci.filler") == "FFFFFFFFFFFF")
        #expect(row.remarks == ["note: 6 bytes of filler"])
        // Fewer could be a tag, and are not guessed at.
        #expect(selected("6F0A FFFFFF 8405A000000003").value("iso7816.fileControl.fci.dfName") == nil)
    }

    // D13, kspearrin/BerTlv.NET#1 and PR 3.
    @Test func zerosBehindObjectsAreFillerWithTheirCount() {
        let row = selected("6F0C 8405A000000003 0000000000 00000000")
        #expect(row.value("iso7816.fileControl.fci.dfName") == "A000000003")
        #expect(row.remarks == ["note: 5 bytes of filler", "note: 4 bytes of filler"])
    }

    // D15, martinpaljak/GlobalPlatformPro#152.
    @Test func aTemplateThatHoldsNoObjectsIsBytesAndWhatFollowsIsRead() {
        let row = selected("6F13 650AAACAADDEDFEDACADEEEE 8405A000000003")
        #expect(row.value("iso7816.fileControl.fci.unknown") == "AACAADDEDFEDACADEEEE")
        #expect(row.value("iso7816.fileControl.fci.dfName") == "A000000003")
        #expect(row.annotations.map(\.severity) == [.note])
    }

    // D17, gmrtd/gmrtd PR 485.
    @Test func aLengthOfFourGigabytesIsBoundByWhatIsThere() {
        let row = selected("6F84FFFFFFFF 01020304")
        #expect(row.remarks.contains("error: file control information: 4294967295 bytes wanted, 4 there"))
        #expect(row.fields.allSatisfy { $0.bits <= 12 * 8 })
    }
}
