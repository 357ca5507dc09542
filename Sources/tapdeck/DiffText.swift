// SPDX-License-Identifier: MIT

import Octets
import TraceDecoding
import TraceFile

/// The text of a comparison of two traces.
enum DiffText {
    static func lines(_ diff: TraceDiff, _ left: String, _ right: String) -> [String] {
        let width = max(left.count, right.count)
        let counts = (count(diff.exchanges.left), count(diff.exchanges.right))
        let column = max(counts.0.count, counts.1.count) + 3
        var lines = [
            "- \(pad(left, width))    \(pad(counts.0, column))\(diff.digests.left)".trimmed,
            "+ \(pad(right, width))    \(pad(counts.1, column))\(diff.digests.right)".trimmed, "",
        ]
        var run = Run()
        for pair in diff.pairs {
            if pair.differences.isEmpty || pair.left != nil && pair.right != nil || !run.takes(pair) { lines += run.flush() }
            guard !pair.differences.isEmpty else { continue }
            guard let left = pair.left, let right = pair.right else {
                run.add(pair)
                continue
            }
            lines += both(left, right, pair.differences)
        }
        lines += run.flush()
        if lines.last != "" { lines.append("") }
        let differences = diff.differences
        if let first = differences.first(where: \.effect) ?? differences.first {
            let effect = first.effect ? " with an effect" : ""
            let path = first.path.isEmpty ? "" : ", \(first.path)"
            lines.append("first difference\(effect): exchange \(first.leftPacket ?? first.rightPacket ?? 0)\(path)")
        } else {
            lines.append("same: \(count(diff.exchanges.left))")
        }
        let closed = diff.sealed > 0 ? ", \(diff.sealed) sealed field\(diff.sealed == 1 ? "" : "s")" : ""
        lines.append(
            "bound and equal: \(diff.boundNonces) nonce\(diff.boundNonces == 1 ? "" : "s"), \(diff.boundKeys) keys; not compared: time, reader name\(closed)"
        )
        return lines
    }

    /// Exchanges of one side alone, one after the other.
    private struct Run {
        var sides: [TraceDiff.Side] = []
        var isLeft = true

        func takes(_ pair: TraceDiff.Pair) -> Bool { sides.isEmpty || isLeft == (pair.right == nil) }

        mutating func add(_ pair: TraceDiff.Pair) {
            guard let side = pair.left ?? pair.right else { return }
            isLeft = pair.right == nil
            sides.append(side)
        }

        mutating func flush() -> [String] {
            defer { sides = [] }
            guard let first = sides.first, let last = sides.last else { return [] }
            let there: String
            var title: String
            if sides.count == 1 {
                title = first.what
                if let packet = first.retryOf { title += ", asked again after exchange \(packet)" }
                there = columns(first, shows: first.isCommand && first.octets.count > 4)
            } else {
                let digest = TraceDiff.digest(sides)
                title = "\(digest.isEmpty ? "\(first.what) and what follows" : digest), \(sides.count) exchanges"
                there = sides.contains { $0.answer == "keys agreed" } ? "keys agreed" : "\(last.what)  \(last.answer)".trimmed
            }
            let absent = "\(pad("", 22))not sent"
            return [
                head(first.packet, last.packet, title), "       - \(isLeft ? there : absent)".trimmed,
                "       + \(isLeft ? absent : there)".trimmed,
            ]
        }
    }

    /// `    3    SELECT MF`, `    5-11 EF.CardAccess read, PACE, 7 exchanges`.
    private static func head(_ first: UInt64, _ last: UInt64, _ text: String) -> String {
        "    \(pad(first == last ? "\(first)" : "\(first)-\(last)", 4)) \(text)"
    }

    private static func both(_ left: TraceDiff.Side, _ right: TraceDiff.Side, _ differences: [TraceDiff.Difference]) -> [String] {
        let what = left.what == right.what ? left.what : "\(left.what) / \(right.what)"
        let shows = left.le != right.le
        var lines = [
            head(left.packet, left.packet, what), "       - \(columns(left, shows: shows))",
            "       + \(columns(right, shows: shows))",
        ]
        // What the two lines show already.
        let rest = differences.filter { !(shows && $0.path == "iso7816.command.le") && $0.path != "iso7816.response.sw" }
        for difference in rest.prefix(8) { lines.append("         \(difference.path)  \(values(difference))") }
        if rest.count > 8 { lines.append("         and \(rest.count - 8) fields more") }
        return lines
    }

    /// The command, its Le where that says something, and the answer.
    private static func columns(_ side: TraceDiff.Side, shows: Bool) -> String {
        let hex = side.octets.count > 11 ? "\(side.octets.count) bytes" : Hex.encode(side.octets)
        return "\(pad(hex, 22))\(pad(shows ? side.le : "", 33))\(side.answer)".trimmed
    }

    private static func count(_ number: Int) -> String { "\(grouped(number)) exchange\(number == 1 ? "" : "s")" }

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
