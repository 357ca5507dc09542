// SPDX-License-Identifier: MIT

import Octets
import SessionSupport
import Testing
import TraceDecoding
import TraceFile

/// A trace made of plain exchanges, and its summary.
private func summary(_ exchanges: [(command: String, answer: String?)], folds: Bool = true, step: UInt64 = 1_000_000) -> [String]
{
    var decoder = TraceDecoder(interfaces: [TraceInterface(.apdu(0))])
    var summary = TraceSummary(folds: folds)
    var lines: [SummaryLine] = []
    var time: UInt64 = 0
    for (index, exchange) in exchanges.enumerated() {
        let rows = [(RowDirection.sent, exchange.command)] + (exchange.answer.map { [(RowDirection.received, $0)] } ?? [])
        for (direction, octets) in rows {
            let row = TraceRow(
                frame: lines.count + 1, time: time, interface: 0, direction: direction, packetID: UInt64(index + 1),
                dissector: "iso7816",
                body: hex(octets))
            lines += summary.push(decoder.push(row))
            time &+= step
        }
    }
    lines += summary.end()
    return lines.map { "\($0.numbers.lowerBound)-\($0.numbers.upperBound) \($0.what) | \($0.answer)" }
}

private func read(_ length: UInt8, at offset: Int, _ answer: Int? = nil) -> (String, String?) {
    let header = [0x00, 0xB0, UInt8(offset >> 8), UInt8(truncatingIfNeeded: offset), length]
    return (Hex.encode(header), Hex.encode([UInt8](repeating: 0xAA, count: answer ?? Int(length)) + [0x90, 0x00]))
}

/// Runs of reads on one line.
@Suite struct FoldingTests {
    @Test func readsOfOneLengthThatFollowEachOtherAreOneLine() {
        #expect(
            summary([read(16, at: 0), read(16, at: 16), read(16, at: 32)]) == ["1-3 READ BINARY 48 at 0, 3 times | 16 bytes"])
    }

    @Test func aRunEndsWithAShorterRead() {
        let lines = summary([read(16, at: 0), read(8, at: 16), read(8, at: 24), read(8, at: 32)])
        #expect(lines == ["1-2 READ BINARY 24 at 0, 2 times | 8 bytes", "3-4 READ BINARY 16 at 24, 2 times | 8 bytes"])
    }

    @Test func aLongerReadBeginsARunOfItsOwn() {
        let lines = summary([read(4, at: 0), read(16, at: 4), read(16, at: 20)])
        #expect(lines == ["1-1 READ BINARY 4 at 0 | AAAAAAAA", "2-3 READ BINARY 32 at 4, 2 times | 16 bytes"])
    }

    @Test func readsWithAGapAreNotFolded() {
        #expect(summary([read(16, at: 0), read(16, at: 32)]).count == 2)
        #expect(summary([read(16, at: 0), read(16, at: 0)]).count == 2)
    }

    @Test func aReadThatWasRefusedStandsAlone() {
        let lines = summary([read(16, at: 0), (Hex.encode([0x00, 0xB0, 0, 16, 16]), "6B00"), read(16, at: 32)])
        #expect(lines.count == 3)
        #expect(lines[1] == "2-2 READ BINARY 16 at 16 | 6B00 past the end")
    }

    @Test func anotherCommandBetweenEndsARun() {
        #expect(summary([read(16, at: 0), ("0084000008", "01020304050607089000"), read(16, at: 16)]).count == 3)
    }

    @Test func withoutFoldingEveryExchangeHasItsLine() {
        #expect(summary([read(16, at: 0), read(16, at: 16), read(16, at: 32)], folds: false).count == 3)
    }

    @Test func aCommandWithoutAnAnswerHasALineToo() {
        #expect(summary([("00A4000C", nil)]) == ["1-1 SELECT MF | "])
    }

    @Test func timesThatStepBackOrRunToTheEndTrapNothing() {
        let all: [(String, String?)] = (0..<50).map { read(16, at: $0 * 16) }
        for step in [UInt64.max, UInt64.max / 2, UInt64.max - 1, 1 << 63, 0] {
            #expect(!summary(all, step: step).isEmpty)
            #expect(!summary(all, folds: false, step: step).isEmpty)
        }
    }

    @Test func timesAreRoundedToHundredthsOfAMillisecond() {
        #expect(SummaryLine.span(1_849_999) == "1.8 ms")
        #expect(SummaryLine.span(1_850_000) == "1.9 ms")
        #expect(SummaryLine.span(4_200_000_000) == "4.2 s")
        #expect(SummaryLine.span(.max) == "18446744073.7 s")
        #expect(SummaryLine.decimal(5, places: 2) == "0.05")
    }

    @Test func aLineFitsEightyColumns() async throws {
        let session = try await Session.passport()
        var decoder = TraceDecoder(interfaces: session.trace.interfaces, secrets: session.secrets)
        var summary = TraceSummary()
        let lines = session.trace.rows.flatMap { summary.push(decoder.push($0)) } + summary.end()
        #expect(lines.count == 18)
        for line in lines { #expect(line.text().count <= 80, "\(line.text())") }
        #expect(TraceSummary().closing(authentication: (34, 34)).count <= 80)
        #expect(SummaryLine.legend.count <= 80)
    }
}
