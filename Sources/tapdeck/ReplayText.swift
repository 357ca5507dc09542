// SPDX-License-Identifier: MIT

import Replay
import TraceDecoding
import TraceFile

/// The text of a replay's report.
enum ReplayText {
    /// How a replay was typed, for the lines that say what to type next.
    struct Typed: Sendable {
        var before = "tapdeck replay"
        var after = ""
        /// The library is asked, not a program: the run can be recorded anew.
        var isOfLibrary: Bool { before == "tapdeck replay" && after.isEmpty }

        func with(_ path: String, _ options: String) -> String { "\(before) \(path) \(options)\(after)" }
    }

    /// `same     demo.pcapng   bytes   21 exchanges   0.6 ms`.
    static func same(_ report: ReplayReport, path: String) -> String {
        let count = "\(grouped(report.exchanges)) exchange\(report.exchanges == 1 ? "" : "s")"
        var text = "same     \(path)   \(report.mode.rawValue)   \(count)   \(SummaryLine.span(UInt64(report.seconds * 1e9)))"
        if report.notCompared > 0 { text += "   \(report.notCompared) with sealed bytes not compared" }
        if report.endsEarly { text += "   up to its last whole exchange: the recording ends before its call returned" }
        if report.skipped > 0 { text += "   \(report.skipped) never came" }
        if !report.unrecorded.isEmpty { text += "   \(report.unrecorded.count) not in the trace" }
        return text
    }

    /// What moved, and what was answered that was never recorded.
    static func notes(_ report: ReplayReport) -> [String] {
        report.moved.map { run in
            let (first, last) = (run.exchanges.lowerBound, run.exchanges.upperBound)
            return "moved    (loose) exchange\(first == last ? " \(first)" : "s \(first)-\(last)") before \(run.before)"
        }
            + report.unrecorded.map { one in
                let place = one.after.map { "after exchange \($0)" } ?? "before the first exchange"
                return "extra    \(place), not in the trace: \(one.command); answered \(one.answer) (\(one.policy))"
            }
    }

    static func lines(
        _ divergence: Divergence, _ report: ReplayReport, path: String, name: String? = nil, typed: Typed = Typed()
    ) -> [String] {
        let place = divergence.packet.map { "at \($0) of \(lastNumber(divergence))" } ?? "after \(divergence.exchanges) exchanges"
        var lines = ["DIFFERS  \(name ?? path)   \(report.mode.rawValue)   \(place)", ""]
        if let before = divergence.before { lines.append(row(before, said: before.answer)) }
        let subject = Divergence.Line(number: divergence.packet ?? 0, what: divergence.subject, answer: "")
        switch divergence.kind {
        case .result:
            let never = report.skipped > 0 ? "; \(report.skipped) never came" : ""
            lines.append(
                report.unrecorded.isEmpty
                    ? "result   same \(divergence.exchanges) exchanges, another result"
                    : "result   another result; \(report.unrecorded.count) not in the trace\(never)")
        case .missing(let count):
            lines.append(row(subject, said: "never came"))
            let end = divergence.before.map { "after exchange \($0.number)" } ?? "before its first exchange"
            lines.append(
                "missing  the run ended \(end); \(grouped(count)) recorded exchange\(count == 1 ? "" : "s") never came"
            )
        case .extra:
            lines.append("extra    exchange \(divergence.lastPacket &+ 1) is not in the trace: \(divergence.subject)")
        case .again(let times):
            let (recorded, asked) = times == 1 ? ("once", "twice") : ("\(times) times", "\(times + 1) times")
            lines.append("again    \(divergence.subject) was recorded \(recorded) and asked \(asked)")
        case .draw:
            lines.append("draw     the library took from its environment what was not recorded")
        case .unanswered:
            lines.append(row(subject, said: ""))
            lines.append("ends     the recording ends before this answer")
        case .command, .kind:
            lines.append(row(subject, said: ""))
        }
        if let field = divergence.field {
            lines.append("         \(pad(field.path, 21)) \(field.place)".trimmed)
            lines.append("       - \(value(field.recorded, field.recordedMeaning)) recorded")
            lines.append("       + \(value(field.now, field.nowMeaning)) now")
        }
        lines += divergence.notes.filter { $0.hasPrefix("the ") && $0.hasSuffix("are the same") }.map { "         \($0)" }
        if case .command = divergence.kind, let after = divergence.after { lines.append(row(after, said: "not reached")) }
        lines.append("")
        if case .command = divergence.kind, let field = divergence.field {
            lines.append("  program: sends another \(label(field.path)) than when this was recorded")
        }
        if let thrown = divergence.thrown { lines.append("  the library threw \(thrown)") }
        lines += divergence.notes.filter { !$0.hasSuffix("are the same") }.map { "  note: \($0)" }
        lines += divergence.causes.map { "  trace: \($0)" }
        if !divergence.causes.isEmpty { lines.append("  trace: a row whose own check fails was changed after it was recorded") }
        lines += notes(report).map { "  note: \($0)" }
        if let packet = divergence.packet { lines.append("  look     tapdeck show \(path) \(packet) --tree") }
        if divergence.causes.isEmpty, typed.isOfLibrary { lines.append("  keep     tapdeck replay --update \(path)") }
        return lines
    }

    /// What people call a field: the last word of its path.
    private static func label(_ path: String) -> String {
        let last = path.split(separator: ".").last.map(String.init) ?? path
        return ["le": "Le", "lc": "Lc", "p1": "P1", "p2": "P2", "cla": "class", "ins": "instruction"][last] ?? last
    }

    /// What is missing, where it was looked for, what to type.
    static func lines(_ blocked: Blocked, path: String, isOneOfMany: Bool = false, typed: Typed = Typed()) -> [String] {
        let first = "blocked: \(isOneOfMany ? "\(path): " : "")\(blocked.text)"
        switch blocked.reason {
        case .entropy, .argument, .key:
            var lines = [first, "looked   inside the file, and for \(SecretStore.sidePath(forTrace: path))"]
            let help = blocked.helps.lazy.compactMap { option($0) }.first
            guard let help else { return lines + [typed.with(path, "--secrets FILE")] }
            if case .entropy = blocked.reason {
                lines.append("with \(help.what) it can be replayed with fresh random bytes:")
            } else {
                lines.append("it can be given again:")
            }
            return lines + [typed.with(path, help.option)]
        case .callFromCode:
            return [
                first,
                "replay it from code: try await Replay(of: \"\(path)\").run { transport in ... }",
            ]
        case .noCall where typed.isOfLibrary:
            return ["blocked: \(path) was recorded from a program, not from the library", "tapdeck replay \(path) -- PROGRAM"]
        case .boundAnswers: return [first, typed.with(path, "--mode resealed")]
        case .noCall, .unknownFlow, .notResealed, .empty, .laterFormat: return [first]
        }
    }

    /// The option that gives an argument again.
    private static func option(_ argument: String) -> (what: String, option: String)? {
        switch argument {
        case "mrzKey": ("the MRZ", "--mrz-key ask")
        case "can": ("the CAN", "--can ask")
        case "pin": ("the PIN", "--pin ask")
        case "puk": ("the PUK", "--puk ask")
        case "keys": ("its keys", "--key N=ask")
        case "key": ("its key", "--key 0=ask")
        default: nil
        }
    }

    static func json(_ report: ReplayReport, path: String, outcome: ReplaySuite.Result? = nil) -> String {
        var members: [String: JSONValue] = [
            "file": .string(path), "mode": .string(report.mode.rawValue), "exchanges": .integer(Int64(report.exchanges)),
            "seconds": .number(report.seconds),
        ]
        switch report.verdict {
        case .same: members["verdict"] = "same"
        case .blocked(let blocked):
            members["verdict"] = "blocked"
            members["reason"] = .string(blocked.text)
        case .differs(let divergence):
            members["verdict"] = "differs"
            if let packet = divergence.packet { members["packet"] = .integer(Int64(clamping: packet)) }
            if let frame = divergence.frame { members["n"] = .integer(Int64(frame)) }
            if let field = divergence.field {
                members["path"] = .string(field.path)
                members["recorded"] = .string(field.recorded)
                members["now"] = .string(field.now)
            }
            if let thrown = divergence.thrown { members["thrown"] = .string(thrown) }
            members["causes"] = .array(divergence.causes.map { .string($0) })
            members["notes"] = .array(divergence.notes.map { .string($0) })
        }
        if report.endsEarly { members["endsEarly"] = true }
        if report.notCompared > 0 { members["notCompared"] = .integer(Int64(report.notCompared)) }
        if report.skipped > 0 { members["skipped"] = .integer(Int64(report.skipped)) }
        let extra = notes(report)
        if !extra.isEmpty { members["unrecorded"] = .array(extra.map { .string($0) }) }
        if let outcome, outcome.outcome.rawValue != members["verdict"]?.stringValue {
            members["outcome"] = .string(outcome.outcome.rawValue)
        }
        return JSONValue.object(members).text
    }

    private static func value(_ text: String, _ meaning: String) -> String {
        meaning.isEmpty ? pad(text, 54) : "\(pad(text, 21)) \(pad(meaning, 32))"
    }

    private static func lastNumber(_ divergence: Divergence) -> String { "\(max(divergence.lastPacket, divergence.packet ?? 0))" }

    private static func row(_ line: Divergence.Line, said: String) -> String {
        var text = "\(padLeft("\(line.number)", 5))    \(pad(line.what, 51))\(said)"
        while text.hasSuffix(" ") { text.removeLast() }
        return text
    }
}
