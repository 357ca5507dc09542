// SPDX-License-Identifier: MIT

import Octets
import SessionSupport
import Testing

@testable import TraceDecoding

/// Contactless frames that public reports say were read wrongly, one test a report. Others are beside the grammars: C5 is
/// `aWaitingTimeExtensionStandsBetweenACommandAndItsAnswer`, C7 `nativeAndWrappedCommandsOfDESFireHaveOneName`, C11
/// `aDurationThatOverflowedIsSaid`, C19 `anATRIsAConnectAndALaterOneAReset`.
@Suite struct FieldReportsCFrames {
    private func decode(_ lines: String...) -> [DecodedRow] {
        var rows = ReportedRows("iso14443")
        for line in lines { rows.push(line) }
        return rows.rows
    }

    // C1, RfidResearchGroup/ChameleonUltra#495 and PR 485. The whole chain is in `aChainWithoutItsLastBlockIsNoAnswer`.
    @Test func aChainThatANewCommandBreaksOffIsWarnedOfAndItsPartsAreNotTheNextAnswer() {
        let rows = decode(
            "> 0200B00000045D18", "< 126014C9A6", "> \(withChecksum("0300B0000004"))", "< \(withChecksum("035F019000"))")
        // Bit 5 says that the block goes on, not bit 6.
        #expect(rows[1].value("iso14443.response.body.pcb.chaining") == "1")
        #expect(rows[1].value("iso7816.response.data") == nil)
        #expect(rows[3].remarks == ["warn: the rest of an answer did not come, 2 bytes of it are there"])
        #expect(rows[3].value("iso7816.response.data") == "5F01")
        #expect(rows[3].answer == "5F01")
    }

    // C1: the number that an R(ACK) of the reader carries.
    @Test func aReadersAcknowledgementIsShownWithTheNumberOfTheBlockThatItWants() {
        let rows = decode("> 0200B00000045D18", "< 126014C9A6", "> A36FC6", "< 035F019000F439")
        #expect(rows[1].value("iso14443.response.body.pcb.number") == "0")
        #expect(rows[2].value("iso14443.command.body.pcb.number") == "1")
        #expect(rows[2].text("iso14443.command.body.pcb.nak") == "R(ACK)")
        #expect(rows[3].answer == "60145F01")
        #expect(rows.allSatisfy { $0.remarks.isEmpty })
    }

    // C3, GameTec-live/ChameleonUltraGUI#1004.
    @Test(arguments: ["02", "0A01", "0640", "0E0140"]) func theCommandBeginsBehindTheBlocksOwnBytes(_ head: String) {
        let row = decode("> \(withChecksum("\(head) 00A4040007A000000003101000"))")[0]
        #expect(row.summary == "SELECT A0000000031010")
        #expect(row.value("iso7816.command.data") == "A0000000031010")
        #expect(row.fields.first { $0.path == "iso7816.command.ins" }?.start == (4 + head.count / 2 + 1) * 8)
        #expect(row.held == 1)
        #expect(row.remarks.isEmpty)
    }

    // C9, RfidResearchGroup/proxmark3 PR 1922.
    @Test(arguments: ["iso14443", "mifare", "data"]) func aFrameWithoutBytesIsCalledEmptyAndNotAsTheOneBefore(
        _ dissector: String
    ) {
        var rows = ReportedRows(dissector)
        rows.push("> 0B00AA0288E7", "> ", "< ")
        for row in rows.rows[1...] {
            #expect(row.summary == "\(dissector), empty frame")
            #expect(!row.fields.contains { $0.path.hasPrefix("desfire") || $0.path.hasPrefix("iso7816") })
        }
    }

    // C15, RfidResearchGroup/proxmark3 PR 3299.
    @Test(arguments: [("09CB", "crcA", "crcB"), ("350B", "crcB", "crcA")]) func theChecksumThatFitsIsNamedByItsType(
        _ checksum: String, _ kind: String, _ other: String
    ) {
        let row = decode("> 0300B2011400 \(checksum)")[0]
        #expect(row.value("iso14443.command.\(kind)") == checksum)
        #expect(row.value("iso14443.command.\(other)") == nil)
        #expect(row.held == 1)
        #expect(row.remarks.isEmpty)
        #expect(row.summary == "READ RECORD 1")
    }

    // C15: once the type is known, the other checksum is a wrong one.
    @Test func theChecksumOfTheOtherTypeIsWrongOnceTheTypeIsKnown() {
        let rows = decode("> E0803173", "< 06757781028002F0", "> 0300B2011400 350B")
        #expect(rows[2].remarks == ["error: CRC_A is wrong: expected 09CB, found 350B"])
    }
}
