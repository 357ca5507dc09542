// SPDX-License-Identifier: MIT

import Replay
import TraceDecoding
import TraceFile

/// `replay`: the recorded card for the library.
enum ReplayVerb: Verb {
    static let name = "replay"
    static let summary = "play a recorded session back to the library and compare"
    static let synopsis = ["replay FILE ... [--mode bytes] [--secrets FILE|env:NAME] [-x]"]
    static let options =
        traceOptions + [
            OptionSpec("--mode", .required("bytes"), "every command equal, in order, with the recorded random bytes"),
            OptionSpec("-x", .none, "stop at the first trace that differs"),
        ]
    static let details = [
        "Status 0 when all are the same, 1 when one differs, 3 when one cannot be tried. No reader can be reached."
    ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        guard !arguments.operands.isEmpty else { throw Failure.usage("replay needs a trace: tapdeck replay FILE") }
        if let mode = arguments.value("--mode"), mode != "bytes" {
            throw Failure.usage(
                "unknown mode \(mode)\(Nearest.suggestion(for: mode, among: ["bytes"])); bytes is the one there is")
        }
        var worst = ExitStatus.fine
        for path in arguments.operands {
            let status: ExitStatus
            do { status = try await one(path, arguments, terminal) } catch let failure as Failure
                where arguments.operands.count > 1
            {
                terminal.error(failure.lines)
                status = failure.status
            }
            worst = max(worst, status)
            if status != .fine, arguments.has("-x") { break }
        }
        return worst
    }

    static func one(_ path: String, _ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        let trace: Trace
        do { trace = try Trace.load(path: path) } catch { throw TraceAccess.failure(error) }
        let damaged = TraceAccess.report(trace.damage, of: path, terminal)
        let secrets = try TraceAccess.secrets(for: path, session: trace.header.session, embedded: trace.secrets, arguments).store
        let report = await Replay(of: trace, secrets: secrets).run()
        if arguments.wantsJSON {
            terminal.result(ReplayText.json(report, path: path))
        } else {
            switch report.verdict {
            case .same: terminal.result(ReplayText.same(report, path: path))
            case .differs(let divergence): ReplayText.lines(divergence, report, path: path).forEach(terminal.result)
            case .blocked(let blocked): terminal.error(ReplayText.lines(blocked, path: path))
            }
        }
        let status: ExitStatus =
            switch report.verdict {
            case .same: .fine
            case .differs: .notSo
            case .blocked: .outside
            }
        return max(status, damaged)
    }
}

/// The text of a replay's report.
enum ReplayText {
    /// `same     demo.pcapng   bytes   21 exchanges   0.6 ms`.
    static func same(_ report: ReplayReport, path: String) -> String {
        let count = "\(grouped(report.exchanges)) exchange\(report.exchanges == 1 ? "" : "s")"
        let note = report.notCompared > 0 ? "   \(report.notCompared) with sealed bytes not compared" : ""
        return "same     \(path)   \(report.mode)   \(count)   \(SummaryLine.span(UInt64(report.seconds * 1e9)))\(note)"
    }

    static func lines(_ divergence: Divergence, _ report: ReplayReport, path: String) -> [String] {
        let place = divergence.packet.map { "at \($0) of \(lastNumber(divergence))" } ?? "after \(divergence.exchanges) exchanges"
        var lines = ["DIFFERS  \(path)   \(report.mode)   \(place)", ""]
        if let before = divergence.before { lines.append(row(before, said: before.answer)) }
        let subject = Divergence.Line(number: divergence.packet ?? 0, what: divergence.subject, answer: "")
        switch divergence.kind {
        case .result:
            lines.append("result   same \(divergence.exchanges) exchanges, another result")
        case .missing(let count):
            lines.append(row(subject, said: "never came"))
            lines.append(
                "missing  the run ended after \(grouped(divergence.sameBefore)) exchanges; \(grouped(count)) recorded exchange\(count == 1 ? "" : "s") never came"
            )
        case .extra:
            lines.append("extra    not in the trace: \(divergence.subject)")
        case .again(let times):
            lines.append("again    recorded \(times == 1 ? "once" : "\(times) times"), asked once more: \(divergence.subject)")
        case .draw:
            lines.append("draw     the library took from its environment what was not recorded")
        case .unanswered:
            lines.append(row(subject, said: ""))
            lines.append("ends     the recording ends before this answer")
        case .command, .kind:
            lines.append(row(subject, said: divergence.frame.map { "frame \($0)" } ?? ""))
        }
        if let field = divergence.field {
            lines.append("         \(pad(field.path, 30))\(field.place.isEmpty ? "" : " \(field.place)")")
            lines.append("       - \(value(field.recorded, field.recordedMeaning)) recorded")
            lines.append("       + \(value(field.now, field.nowMeaning)) now")
        }
        lines += divergence.notes.filter { $0.hasPrefix("the ") && $0.hasSuffix("are the same") }.map { "         \($0)" }
        if case .command = divergence.kind, let after = divergence.after { lines.append(row(after, said: "not reached")) }
        lines.append("")
        if let thrown = divergence.thrown { lines.append("  the library threw \(thrown)") }
        lines += divergence.notes.filter { !$0.hasSuffix("are the same") }.map { "  note: \($0)" }
        lines += divergence.causes.map { "  trace: \($0)" }
        if !divergence.causes.isEmpty { lines.append("  trace: a row whose own check fails was changed after it was recorded") }
        if let packet = divergence.packet {
            lines.append(
                "  look     tapdeck show \(path) \(packet > 1 ? packet - 1 : packet)-\(packet == .max ? packet : packet + 1)")
        }
        return lines
    }

    /// What is missing, where it was looked for, what to type.
    static func lines(_ blocked: Blocked, path: String) -> [String] {
        switch blocked.reason {
        case .entropy, .argument, .key:
            [
                "blocked: \(path): \(blocked.text)", "looked   inside the file, and for \(SecretStore.sidePath(forTrace: path))",
                "tapdeck replay \(path) --secrets FILE",
            ]
        case .callFromCode:
            [
                "blocked: \(path): \(blocked.text)",
                "replay it from code: try await Replay(of: \"\(path)\").run { transport in ... }",
            ]
        case .noCall, .unknownFlow, .endsEarly:
            ["blocked: \(path): \(blocked.text)"]
        }
    }

    static func json(_ report: ReplayReport, path: String) -> String {
        var members: [String: JSONValue] = [
            "file": .string(path), "mode": .string(report.mode), "exchanges": .integer(Int64(report.exchanges)),
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
