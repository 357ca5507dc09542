// SPDX-License-Identifier: MIT

import Octets
import TraceDecoding
import TraceFile

/// The text of a comparison of two traces.
enum DiffText {
    static func lines(_ diff: TraceDiff, _ left: String, _ right: String) -> [String] {
        let width = max(left.count, right.count)
        var lines = [
            "- \(pad(left, width))    \(count(diff.exchanges.left))", "+ \(pad(right, width))    \(count(diff.exchanges.right))",
        ]
        var missing: (range: ClosedRange<UInt64>, count: Int, isLeft: Bool, first: TraceDiff.Side)?
        func flush() {
            guard let run = missing else { return }
            let numbers =
                run.range.lowerBound == run.range.upperBound
                ? "\(run.range.lowerBound)" : "\(run.range.lowerBound)-\(run.range.upperBound)"
            let what = run.count == 1 ? run.first.what : "\(run.first.what) and what follows"
            lines += ["", "\(padLeft(numbers, 5))    \(what)"]
            lines.append(
                "       \(run.isLeft ? "-" : "+") \(run.count == 1 ? answer(run.first) : "\(run.count) exchanges")".trimmed)
            lines.append("       \(run.isLeft ? "+" : "-") \(pad("", 22)) not sent")
            missing = nil
        }
        for pair in diff.pairs where !pair.differences.isEmpty {
            if pair.left == nil || pair.right == nil, let side = pair.left ?? pair.right {
                let isLeft = pair.right == nil
                if let run = missing, run.isLeft == isLeft {
                    missing = (run.range.lowerBound...max(run.range.lowerBound, side.packet), run.count + 1, isLeft, run.first)
                } else {
                    flush()
                    missing = (side.packet...side.packet, 1, isLeft, side)
                }
                continue
            }
            flush()
            guard let left = pair.left, let right = pair.right else { continue }
            let what = left.what == right.what ? left.what : "\(left.what) / \(right.what)"
            lines += ["", "\(padLeft("\(left.packet)", 5))    \(what)", "       - \(answer(left))", "       + \(answer(right))"]
            for difference in pair.differences.prefix(8) { lines.append("         \(difference.path)  \(values(difference))") }
            if pair.differences.count > 8 { lines.append("         and \(pair.differences.count - 8) fields more") }
        }
        flush()
        lines.append("")
        let differences = diff.differences
        if let first = differences.first(where: \.effect) ?? differences.first {
            let effect = first.effect ? " with an effect" : ""
            let path = first.path.isEmpty ? "" : ", \(first.path)"
            lines.append("first difference\(effect): exchange \(first.leftPacket ?? first.rightPacket ?? 0)\(path)")
        } else {
            lines.append("same: \(count(diff.exchanges.left))")
        }
        let closed = diff.sealed > 0 ? ", \(diff.sealed) sealed fields" : ""
        lines.append("bound and equal: \(diff.boundNonces) drawn values; not compared: time, reader name\(closed)")
        return lines
    }

    private static func count(_ number: Int) -> String { "\(grouped(number)) exchange\(number == 1 ? "" : "s")" }

    private static func answer(_ side: TraceDiff.Side) -> String {
        let hex = side.octets.count > 20 ? "\(side.octets.count) bytes" : Hex.encode(side.octets)
        return "\(pad(hex, 42))  \(side.answer)".trimmed
    }

    private static func values(_ difference: TraceDiff.Difference) -> String {
        func short(_ text: String?) -> String { text.map { $0.count > 24 ? "\($0.prefix(21))..." : $0 } ?? "nothing" }
        return "\(short(difference.left)) against \(short(difference.right))"
    }

    static func json(_ difference: TraceDiff.Difference) -> String {
        func text(_ value: String?) -> JSONValue { value.map { .string($0) } ?? .null }
        func number(_ value: UInt64?) -> JSONValue { value.map { .integer(Int64(clamping: $0)) } ?? .null }
        return JSONValue.object([
            "code": .string(difference.code.rawValue), "path": .string(difference.path), "left": text(difference.left),
            "right": text(difference.right), "leftPacket": number(difference.leftPacket),
            "rightPacket": number(difference.rightPacket),
            "effect": .bool(difference.effect),
        ]).text
    }
}

extension String {
    /// Without spaces at the end.
    var trimmed: String { String(reversed().drop { $0 == " " }.reversed()) }
}
