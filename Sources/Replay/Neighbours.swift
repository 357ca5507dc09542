// SPDX-License-Identifier: MIT

import GrammarLibrary
import TraceDecoding
import TraceFile

/// The recorded trace's lines, to show what stands around a divergence.
struct Neighbours {
    private let lines: [SummaryLine]

    init(trace: Trace, secrets: SecretStore, grammars: GrammarLibrary?) {
        var decoder = TraceDecoder(interfaces: trace.interfaces, secrets: secrets, grammars: grammars)
        var summary = TraceSummary(folds: false)
        var lines: [SummaryLine] = []
        for row in trace.rows { lines += summary.push(decoder.push(row)) }
        self.lines = lines + summary.end()
    }

    var last: Divergence.Line? { lines.last { $0.mark != .returned }.map(text) }

    var lastNumber: UInt64 { lines.last?.number ?? 0 }

    func line(_ packet: UInt64) -> String? { index(packet).map { lines[$0].what } }

    func before(_ packet: UInt64) -> Divergence.Line? {
        guard let index = index(packet), index > 0 else { return nil }
        return text(lines[index - 1])
    }

    func after(_ packet: UInt64) -> Divergence.Line? {
        guard let index = index(packet), index + 1 < lines.count else { return nil }
        return text(lines[index + 1])
    }

    func frame(_ packet: UInt64) -> Int? { index(packet).map { lines[$0].frames.lowerBound } }

    /// Rows whose own checks fail, up to and including an exchange; all of them for nil.
    func failures(upTo packet: UInt64?) -> [String] {
        lines.filter { line in packet.map { line.number <= $0 } ?? true }.flatMap { line in
            line.annotations.filter { $0.code == "failed" }.map { annotation in
                "exchange \(line.number), frames \(line.frames.lowerBound) and \(line.frames.upperBound): \(annotation.text)"
            }
        }
    }

    private func index(_ packet: UInt64) -> Int? { lines.firstIndex { $0.number == packet } }

    private func text(_ line: SummaryLine) -> Divergence.Line {
        // What was drawn when it was recorded is handed out again.
        Divergence.Line(number: line.number, what: line.what, answer: line.mark == .drawn ? "given" : line.answer)
    }
}
