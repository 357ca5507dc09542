// SPDX-License-Identifier: MIT

import Foundation
import Octets
import TestSupport
import Testing

@testable import TraceFile

@Suite struct APDU4JTests {
    private func imported(_ text: String) throws(TraceFileError) -> ImportedTrace {
        try APDU4JImporter.importTrace([UInt8](text.utf8), name: "x.dump")
    }

    private static let old = """
        # Generated on Sun, 25 Jan 2015 19:11:03 +0200 by apdu4j
        # Using SCM Microsystems Inc. SCR 355 00 00
        # ATR: 3BF91300008131FE454A434F503234325232A3
        # PROTOCOL: T=1
        #
        # Sent
        00A4040000
        # Received in 40ms
        6F009000
        # Sent
        80CA9F7F00
        # Received in 1s5ms
        6A88

        """

    @Test func aDumpOfTheOldFormIsATraceWithItsTimes() throws {
        let found = try imported(Self.old)
        #expect(
            found.summary == [
                "imported from apdu4j dump x.dump: 2 exchanges, 1 ATR, T=1",
                "lost: the time between an answer and the next command",
            ])
        #expect(found.damage == nil)
        #expect(exchanges(found.trace) == [">3BF91300008131FE454A434F503234325232A3", "00A4040000>6F009000", "80CA9F7F00>6A88"])
        #expect(found.trace.interfaces[0].description == "SCM Microsystems Inc. SCR 355 00 00, from apdu4j dump x.dump, T=1")
        // date -u -d 'Sun, 25 Jan 2015 19:11:03 +0200' +%s gives 1422205863.
        let start: UInt64 = 1_422_205_863_000_000_000
        let rows = found.trace.rows.filter { $0.interface == 0 }
        #expect(rows.map { $0.time - start } == [0, 0, 40_000_000, 40_000_000, 1_045_000_000])
        let event = found.trace.rows.first { $0.interface == 1 && $0.dissector == "json" }.flatMap { MetaRow(body: $0.body) }
        #expect(event == .reader(MetaRow.Reader(name: "connect", atr: rows[0].body)))
    }

    @Test func aDumpOfTheNewFormHasTimesAndFailures() throws {
        let found = try imported(
            "# ATR: 3B00\n00a4040000\n# 12ms\n9000\n00B0000000\n# 7ms SCARD_W_REMOVED_CARD\n00B0000001\n# 1ms odd thing\n")
        #expect(exchanges(found.trace) == [">3B00", "00A4040000>9000", "00B0000000>", "00B0000001>"])
        let errors = found.trace.rows.filter { $0.interface == 1 && $0.dissector == "json" }.compactMap { MetaRow(body: $0.body) }
        var other = MetaRow.Failure(after: 9, domain: "apdu4j", case: "noAnswer")
        other.extra["text"] = .string("odd thing")
        // Four marks and the ATR stand before the exchanges.
        #expect(
            errors.dropFirst() == [
                .error(MetaRow.Failure(after: 7, domain: "PCSC", case: "tagConnectionLost", code: "80100069")), .error(other),
            ])
        #expect(found.summary.contains("2 commands have no answer"))
        #expect(found.summary.contains("it has no date: times begin at 1970-01-01"))
    }

    @Test func linesTakeTurnsAndWordsAreMarks() throws {
        let found = try imported("\u{FEFF}# hello\r\n00 A4 04 00 00\r\n\r\n  6F:00 90:00 \r\n# UID: 04112233\n00B0000000\n9000")
        #expect(exchanges(found.trace) == ["00A4040000>6F009000", "00B0000000>9000"])
        let marks = found.trace.rows.filter { $0.interface == 2 }.compactMap { MetaRow(body: $0.body) }
        #expect(marks == (found.summary + ["hello", "UID 04112233"]).map { .mark(MetaRow.Mark(text: $0)) })
        #expect(found.summary.last == "no answer has a time: times tell the order only")
    }

    @Test func sentBeforeAnAnswerLeavesTheCommandWithoutOne() throws {
        let found = try imported("# Sent\n00A4040000\n# Sent\n00B0000000\n# Received\n9000\n")
        #expect(exchanges(found.trace) == ["00A4040000>", "00B0000000>9000"])
    }

    /// Text, the line and column at fault, what is wrong, the exchanges before it.
    static let faults: [(text: String, line: Int, column: Int, detail: String, exchanges: Int)] = [
        ("00A4040000\n9000\n00B0\(" ")000G00\n9000\n", 3, 9, "not a hexadecimal digit", 1),
        ("00A4040000\n9000\n00B000000\n9000\n", 3, 9, "an odd number of hexadecimal digits", 1),
        ("00A4040000\n9000\n9000\n", 3, 1, "a status word where a command should stand", 1),
        ("00A4040000\n9000\n0011\n", 3, 1, "a command has at least 4 bytes, this is 2", 1),
        ("00A4040000\n90\n", 2, 1, "an answer has at least 2 bytes, this is 1", 1),
        ("# ATR: 3B00\n# Received\n9000\n", 3, 1, "an answer to no command", 0),
        ("00A4040000\n9000\n  # ATR: 3BX0\n", 3, 12, "not a hexadecimal digit", 1),
        ("00A4040000\n9000\nA>> T=1 (4+0000) 00A40400\n", 3, 2, "not a hexadecimal digit", 1),
    ]

    @Test(arguments: faults) func aFaultIsSaidWithLineAndColumnAndWhatStoodBeforeIsKept(
        _ text: String, _ line: Int, _ column: Int, _ detail: String, _ count: Int
    ) throws {
        let found = try imported(text)
        let damage = try #require(found.damage)
        #expect(damage.detail == "line \(line), column \(column): \(detail)")
        #expect(damage.block == line && damage.unit == "line" && damage.kind == .damaged)
        #expect(exchanges(found.trace).filter { !$0.hasPrefix(">") }.count == count)
        let place = text.split(separator: "\n", omittingEmptySubsequences: false).prefix(line - 1).reduce(0) {
            $0 + $1.utf8.count + 1
        }
        #expect(damage.offset == UInt64(place + column - 1))
        #expect(found.summary.last == "x.dump is damaged in line \(line), at byte \(damage.offset): \(damage.detail)")
    }

    @Test func textThatIsCutOffInsideAnOctetIsCutShort() throws {
        let damage = try #require(try imported("00A4040000\n9000\n00B00").damage)
        #expect(damage.kind == .cutShort && damage.offset == 20)
    }

    @Test(arguments: ["hello\n", "# only words\n", "\n\n"]) func textWithoutAnAPDUIsRefused(_ text: String) {
        #expect(throws: TraceFileError(.nothingToImport, path: "")) { try imported(text) }
    }

    @Test func anEmptyFileIsRefused() { #expect(throws: TraceFileError(.empty, path: "")) { try imported("") } }

    /// Field report G9: an exchange of any length. Field report A5: extended lengths stay as they are.
    @Test func theLongestAnswerIsOneRow() throws {
        let answer = String(repeating: "5A", count: 65_536) + "9000"
        let found = try imported("00B00000000000\n\(answer)\n00D60000000010\(String(repeating: "01", count: 16))\n9000\n")
        #expect(
            exchanges(found.trace) == ["00B00000000000>\(answer)", "00D60000000010\(String(repeating: "01", count: 16))>9000"])
        let tooLong = try imported("00A4040000\n9000\n\(String(repeating: "00", count: 100_000))\n")
        #expect(tooLong.damage?.detail == "line 3, column 1: 200,000 characters are no APDU")
    }

    @Test(
        arguments: [
            ("Sun, 25 Jan 2015 19:11:03 +0200", 1_422_205_863), ("Thu, 29 Feb 2024 23:59:60 -0330", 1_709_263_800),
            ("Thu, 01 Jan 1970 00:00:00 +0000", 0), ("Thu, 01 Jan 1970 00:00:00 +0100", nil),
            ("so, 25 jaan 2015 19:11:03 +0200", nil),
            ("Sun, 25 Jan 2015 19:11 +0200", nil), ("Sun, 25 Jan 99999 19:11:03 +0200", nil), ("", nil),
            ("Sun, 25 Jan 2015 24:11:03 +0200", nil),
        ] as [(String, UInt64?)]) func aDateIsReadOrLeft(_ text: String, _ seconds: UInt64?)
    {
        #expect(APDU4JDump.date(text) == seconds.map { $0 * 1_000_000_000 })
    }

    @Test(
        arguments: [
            ("40ms", 40), ("1s5ms", 1_005), ("0ms", 0), ("ms", nil), ("1s", nil), ("s5ms", nil), ("-4ms", nil), ("40msx", nil),
            ("1s2s3ms", nil),
            ("99999999999ms", nil), ("999999999s999999999ms", 1_000_999_998_999),
        ] as [(String, UInt64?)]) func aDurationIsReadOrLeft(_ text: String, _ milliseconds: UInt64?)
    {
        #expect(APDU4JDump.duration(text) == milliseconds.map { $0 * 1_000_000 })
    }

    @Test func theSameInputGivesTheSameTrace() throws {
        #expect(try imported(Self.old).trace == (try imported(Self.old).trace))
        #expect(try imported(Self.old).trace.header.session != (try imported(Self.old + "#")).trace.header.session)
    }

    @Test func mutatedDumpsEndInRowsOrInDamage() throws {
        let seeds = [Self.old, "# ATR: 3B00\n00a4040000\n# 12ms\n9000\n00B0000000\n# 7ms SCARD_W_REMOVED_CARD\n# UID: 0411\n"].map
        { [UInt8]($0.utf8) }
        var random = SplitMix(state: 0xA4)
        for count in 0..<HostileInputTests.mutations {
            let octets = random.mutate(seeds[count % seeds.count])
            guard let found = try? APDU4JImporter.importTrace(octets, name: "x") else { continue }
            let body = found.trace.rows.filter { $0.interface == 0 }.reduce(0) { $0 + $1.body.count }
            #expect(body * 2 <= octets.count)
            #expect(zip(found.trace.rows, 1...).allSatisfy { $0.frame == $1 })
            if let damage = found.damage { #expect(damage.offset <= UInt64(octets.count)) }
        }
    }
}

/// The two dumps of apdu4j's own tests.
@Suite(.enabled(if: SharedData.isPresent, Comment(rawValue: SharedData.absence)))
struct APDU4JCaptureTests {
    private func imported(_ name: String) throws -> ImportedTrace {
        let folder = try #require(SharedData.folder)
        let path = folder.appendingPathComponent("data/martinpaljak__apdu4j/pcsc/src/test/resources/apdu4j/pcsc/\(name)").path
        return try APDU4JImporter.importFile(path)
    }

    @Test func aSessionOfGlobalPlatformIsImportedWhole() throws {
        let found = try imported("test.dump")
        #expect(found.summary[0] == "imported from apdu4j dump test.dump: 9 exchanges, 1 ATR, T=1")
        #expect(found.damage == nil && found.summary.count == 2)
        let lines = exchanges(found.trace)
        #expect(lines.count == 10)
        #expect(lines[2] == "80500000088D767EAB341C1E1A>00002334008824964662010200008BA2FFCEA96CCB3C8081E13DCBC49000")
        #expect(lines[9].hasSuffix(">01FE6B633FBF686274D79000"))
        let rows = found.trace.rows.filter { $0.interface == 0 }
        #expect(rows.map { ($0.time - rows[0].time) / 1_000_000 }.last == 487)
    }

    @Test func aScriptForTestsIsImportedWhole() throws {
        let found = try imported("t0.dump")
        #expect(found.summary[0] == "imported from apdu4j dump t0.dump: 1 exchange, 1 ATR, T=0")
        #expect(exchanges(found.trace) == [">3BF91300008131FE454A434F503234325232A3", "00A4040000>9000"])
    }
}
