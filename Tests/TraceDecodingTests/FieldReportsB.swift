// SPDX-License-Identifier: MIT

import CardCrypto
import Octets
import SessionSupport
import Testing
import TraceFile

@testable import TraceDecoding

/// Transport protocols, waiting answers and cards that go away, as public reports tell of them, one test a report.
@Suite struct FieldReportsBTransport {
    private func decode(_ dissector: String, _ lines: [String]) -> [DecodedRow] {
        var rows = ReportedRows(dissector)
        for line in lines { rows.push(line) }
        return rows.rows
    }

    // B1, OpenSC#1731. What a program should do then, `piecesAreJoinedUntilTheStatusWordIsAnother` shows.
    @Test func sixtyOneZeroZeroMeans256BytesThatGetResponseBrings() {
        let data = String(repeating: "5A", count: 256)
        let rows = decode("iso7816", ["> 00B0000000", "< 6100", "> 00C0000000", "< \(data) 9000"])
        #expect(rows[1].summary == "6100 256 more bytes")
        #expect(rows[2].summary == "GET RESPONSE 256")
        #expect(rows[3].message == "READ_BINARY")
        #expect(rows[3].derived.last?.octets == hex(data + "9000"))
        #expect(rows.allSatisfy { $0.remarks.isEmpty })
    }

    // B1: the loop.
    @Test func theSameReadAgainInPlaceOfGetResponseIsWarnedOfEachTime() {
        let rows = decode("iso7816", ["> 00B0000000", "< 6100", "> 00B0000000", "< 6100", "> 00B0000000", "< 6100"])
        #expect(rows[1].remarks.isEmpty)
        for row in [rows[3], rows[5]] {
            #expect(row.remarks == ["warn: the rest of an answer did not come, 0 bytes of it are there"])
        }
    }

    // B3, martinpaljak/GlobalPlatformPro#15.
    @Test func theClassOfGetResponseIsKeptAsItWasSent() {
        let data = String(repeating: "5A", count: 28)
        let begin = ["> 8050000008 0102030405060708", "< 611C"]
        let plain = decode("iso7816", begin + ["> 00C000001C", "< \(data) 9000"])
        #expect(plain[2].value("iso7816.command.cla.form") == "0")
        #expect(plain[3].derived.last?.octets == hex(data + "9000"))
        let proprietary = decode("iso7816", begin + ["> 80C000001C", "< 6D00"])
        #expect(proprietary[2].value("iso7816.command.cla.form") == "8")
        #expect(proprietary[2].row.body == hex("80C000001C"))
        #expect(proprietary[3].summary == "6D00 no such command")
    }

    // B5, philipWendland/IsoApplet#12.
    @Test func anAnswerBehindGetResponseHasTheSameFieldsAsOneThatCameAtOnce() {
        let control = "6F15 81020100 820101 83024402 8A0105 86050000000000"
        let waiting = decode("iso7816", ["> 00A4080004 50154402", "< 6117", "> 00C0000017", "< \(control) 9000"])
        let direct = decode("iso7816", ["> 00A4080004 50154402 00", "< \(control) 9000"])
        func fields(_ row: DecodedRow) -> [String] {
            row.fields.filter { $0.path.hasPrefix("iso7816.fileControl") && $0.shape == .leaf }.map { "\($0.path) \($0.text)" }
        }
        #expect(fields(waiting[3]) == fields(direct[1]))
        #expect(fields(waiting[3]).count == 5)
        #expect(waiting[3].message == direct[1].message)
        #expect(waiting[3].value("iso7816.fileControl.fci.fciIdentifier") == "4402")
    }

    // B9, LudovicRousseau/CCID#72.
    @Test func blocksOfT1AreShownWithTheirNumbersAndTheLoopIsNamed() {
        let begin = ["> 00400B00A40400061122334455669A", "< 00820082", "> 00920092", "< 0000026D006F"]
        let rows = decode("t1", begin)
        #expect(rows[0].value("t1.command.nad.source") == "0")
        #expect(rows[0].value("t1.command.pcb.number") == "1")
        #expect(rows[1].value("t1.response.pcb.expected") == "0")
        #expect(rows[1].text("t1.response.pcb.complaint") == "other error")
        #expect(rows[2].value("t1.command.pcb.expected") == "1")
        #expect(rows[3].value("t1.response.pcb.number") == "0")
        // The check of each of the four.
        #expect(rows.map(\.held) == [1, 1, 1, 1])
        #expect(rows[0].summary == "SELECT 112233445566")
        #expect(rows[3].answer == "6D00 no such command")
        #expect(rows.allSatisfy { $0.remarks.isEmpty })
        let loop = decode("t1", begin.dropLast() + ["< 00820082", "> 00920092", "< 00820082"])
        #expect(loop[3].remarks.isEmpty)
        #expect(loop[5].remarks == ["warn: both sides ask again: they do not agree on the number of the block"])
    }

    // B11, LudovicRousseau/PCSC#117.
    @Test func severalErrorsInARowStayApartAndInOrderAndTheCardComesBackNew() {
        let rows = decode(
            "iso7816",
            [
                "> 00A4040C07A0000002471001", "< 9000", "> 84AA000030 \(String(repeating: "5A", count: 48))",
                "! parityError", "! unresponsiveCard 80100066", "- connect", "> 00A4020C02011E",
            ])
        #expect(rows.map(\.kind) == [.command, .response, .command, .error, .error, .reader, .command])
        #expect(rows[3].summary == "parityError; exchange 2 has no answer")
        #expect(rows[4].value("pcscReader.code") == "80100066")
        #expect(rows[4].row.packetID != rows[3].row.packetID)
        // The application that was selected is gone with the connection.
        #expect(rows[2].sessions.contains { $0.name == "Document" })
        #expect(rows[6].summary == "SELECT file 011E")
    }

    // B13, santigimeno/node-pcsclite#103. Marks of transactions come with the recorder that sits before the reader service.
    @Test func anotherProgramsCommandWithinAChainOfFramesIsWarnedOf() {
        let rows = decode(
            "iso7816",
            [
                "> 9060000000", "< 04010101001805 91AF", "> 00A4040000", "< 6A82", "> 90AF000000", "< 911C",
            ])
        #expect(rows[1].remarks.isEmpty)
        #expect(rows[3].remarks == ["warn: the rest of an answer did not come, 7 bytes of it are there"])
        #expect(rows[4].summary == "AdditionalFrame")
        #expect(rows[5].text("iso7816.response.sw") == "911C illegal command code")
    }

    // B15, e-Contract/commons-eid#12, pyscard#63, bluetech/pcsc-rust#19. The replayed error is that of
    // `aRemovalReplaysToTheSameErrorAtTheSamePlace` and `anErrorThatWasRecordedIsThrownAgain`.
    @Test func aRemovalAResetAndAnErrorAreThreeThingsAndEachEndsWhatWasSelected() {
        let begin = ["> 00A4040C07A0000002471001", "< 9000", "> 00B0000010", "! notTransacted 80100016"]
        for (event, text) in [("removal", "card taken out"), ("reset", "card reset")] {
            let rows = decode("iso7816", begin + ["- \(event)", "- connect", "> 00A4020C02011E"])
            #expect(rows[3].kind == .error)
            #expect(rows[3].annotations.first?.see == 2)
            #expect(rows[4].kind == .reader)
            #expect(rows[4].summary == text)
            #expect(rows[5].summary == "card in")
            #expect(Set(rows[3...5].map(\.row.packetID)).count == 3)
            #expect(rows[6].summary == "SELECT file 011E")
            #expect(rows[6].sessions.isEmpty)
        }
        // An error alone ends nothing.
        #expect(decode("iso7816", begin + ["> 00A4020C02011E"])[4].summary == "SELECT EF.COM")
    }

    // B17, Yubico/yubikit-swift PR 83, for secure messaging of ISO/IEC 7816-4; SCP has the same rule.
    @Test func theCodeOfAnAnswerCoversTheStatusWordThatCame() throws {
        // Keys and counter of ICAO Doc 9303-11 appendix D.3; the command is the first of D.4.
        let mac = hex("F1CB1F1FB5ADF208806B89DC579DC1F8")
        let keys = [
            ("secureMessaging.enc", hex("979EC13B1CBFE9DCD01AB0FED307EAE5")), ("secureMessaging.mac", mac),
            ("secureMessaging.ssc", hex("887022120C06C226")),
        ].map { SecretRecord(kind: .key, name: $0.0, octets: $0.1) }
        func answer(_ codeOver: String) throws -> DecodedRow {
            let code = try RetailMAC.authenticate(hex("887022120C06C228 \(codeOver)"), key: mac)
            var rows = ReportedRows(secrets: SecretStore(keys))
            rows.push("> 0CA4020C15 8709016375432908C044F6 8E08BF8B92D635FF24F8 00")
            return rows.push("< 99026283 8E08\(Hex.encode(code)) 9000")[1]
        }
        let right = try answer("99026283")
        #expect(right.opening == .opened)
        #expect(right.plain == hex("6283"))
        #expect(right.summary == "6283 deactivated")
        // The code that a program computes over 9000 in its place is not right.
        let wrong = try answer("99029000")
        #expect(wrong.opening == .failed)
        #expect(wrong.annotations.contains { $0.code == "failed" && $0.blame == .card })
    }
}
