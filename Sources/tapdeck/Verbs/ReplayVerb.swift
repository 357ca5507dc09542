// SPDX-License-Identifier: MIT

import Glibc
import Replay
import Synchronization
import TraceDecoding
import TraceFile

/// `replay`: the recorded card for the library.
enum ReplayVerb: Verb {
    static let name = "replay"
    static let summary = "play a recorded session back to the library and compare"
    static let synopsis = [
        "replay FILE|DIR ... [--mode bytes|fields|resealed|each] [--order strict|loose] [--entropy recorded|fresh|seed:N]"
            + " [--unrecorded stop|SW|next|nearest|model] [--speed recorded|0|X] [-k TEXT] [-x] [--jobs N] [--shard I/N]"
            + " [--junit FILE] [--update] [--mrz-key KEY | --can CAN | --pin PIN | --key N=VALUE] [--dg LIST]",
        "replay FILE [...] -- PROGRAM [ARG ...]",
    ]
    static let options =
        [
            OptionSpec(
                "--mode", .required("MODE"), "what must be equal: bytes, fields or resealed; each tries all three"),
            OptionSpec("--order", .required("ORDER"), "strict, as recorded; loose: files may be read in another order"),
            OptionSpec("--entropy", .required("FROM"), "random bytes: recorded, fresh, or seed:N"),
            OptionSpec("--unrecorded", .required("POLICY"), "what a command gets that is not in the trace; stop without it"),
            OptionSpec("--speed", .required("X"), "0 waits for nothing; recorded answers when the card did; X in X times that"),
            OptionSpec("-k", .required("TEXT"), "only traces whose name has TEXT in it"),
            OptionSpec("-x", .none, "stop at the first trace that is not as expected"),
            OptionSpec("--jobs", .required("N"), "N traces at a time"),
            OptionSpec("--shard", .required("I/N"), "the I-th of N parts of the suite, by the traces' names"),
            OptionSpec("--junit", .required("FILE"), "the results in XML, for build servers"),
            OptionSpec("--update", .none, "record again what differs, after its diff was shown"),
        ] + traceOptions + grammarOptions + ReplayArguments.specs + [CardServing.tableOption]
    static let details =
        [
            "Modes: bytes needs the recorded random bytes; fields compares all but what was drawn at random, for sessions without key"
                + " agreement; resealed compares plain commands, the card agreeing on fresh keys. Without --mode the strictest that the"
                + " secrets allow. each tries all three and says why not.",
            "Policies: stop ends there; SW, a status word as 6A82, answers so; next gives the answer at this place, nearest that of the most"
                + " similar recorded command, model what a card built from the trace says. Each such answer is a note.",
            "A folder is a suite: its traces and those below it. suite.txt in it has the exceptions, a line each:",
            "  fails NAME why       it differs; an error when it is the same", "  skip NAME why", "  mode NAME resealed",
            "Status 0 when all are as expected, 1 when one is not, 3 when one cannot be tried. No reader can be reached.",
        ] + ProgramReplay.details

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        if let program = arguments.program { return try ProgramReplay.run(program, arguments, terminal) }
        guard !arguments.operands.isEmpty else { throw Failure.usage("replay needs a trace: tapdeck replay FILE") }
        let run = try ReplayRun(arguments, terminal)
        return try await run.run()
    }
}

/// One run of `replay`: what was asked for, and the suite that it is asked of.
struct ReplayRun: Sendable {
    let arguments: Arguments
    let terminal: Terminal
    let options: ReplayOptions
    /// Whether every mode is tried.
    let triesEach: Bool
    let suite: ReplaySuite
    let jobs: Int

    init(_ arguments: Arguments, _ terminal: Terminal) throws {
        self.arguments = arguments
        self.terminal = terminal
        triesEach = arguments.value("--mode") == "each"
        options = try ReplayArguments.options(arguments, terminal)
        jobs = try Self.number(arguments, "--jobs", 1...1024) ?? 1
        var suite: ReplaySuite
        do { suite = try ReplaySuite(arguments.operands) } catch {
            throw Failure(error.code == .unreadable ? .outside : .wrongUsage, lines: [error.detail])
        }
        if let text = arguments.value("-k") { suite.keep(containing: text) }
        if let text = arguments.value("--shard") {
            let parts = text.split(separator: "/").map { Int($0) }
            guard parts.count == 2, let part = parts[0], let count = parts[1], count > 0, (1...count).contains(part) else {
                throw Failure.usage("--shard takes I/N with I from 1 to N, not \(text)")
            }
            suite.keep(shard: part, of: count)
        }
        self.suite = suite
    }

    private static func number(_ arguments: Arguments, _ name: String, _ range: ClosedRange<Int>) throws -> Int? {
        guard let text = arguments.value(name) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw Failure.usage("\(name) takes a number from \(range.lowerBound) to \(range.upperBound), not \(text)")
        }
        return number
    }

    func run() async throws -> ExitStatus {
        if triesEach { return await ModeTable(run: self).print() }
        let start = ContinuousClock.now
        let worst = Mutex(ExitStatus.fine)
        let isSuite = !suite.folders.isEmpty
        let dots = Mutex("")
        let results = await suite.run(
            jobs: jobs, stopsAtFirst: arguments.has("-x"),
            { item in
                await attempt(item, options, worst)
            },
            onResult: { result, finished in
                let line = dots.withLock { dots in
                    dots += Self.dot(result)
                    return Self.progress(dots, finished, suite.items.count)
                }
                if !isSuite {
                    show(result)
                } else if finished < suite.items.count {
                    terminal.stage(line, isFinished: false)
                }
            })
        let elapsed = (ContinuousClock.now - start).microseconds / 1e6
        if isSuite {
            let line = dots.withLock { Self.progress($0, results.count, suite.items.count) }
            terminal.stage("\(line)   \(Self.seconds(elapsed))", isFinished: true)
            summary(results, elapsed)
        }
        var status = worst.withLock { $0 }
        for result in results { status = max(status, Self.status(result)) }
        if arguments.has("--update") { status = try await ReplayUpdate(run: self).update(results, status) }
        if let path = arguments.value("--junit") { try writeJUnit(results, path) }
        return status
    }

    /// `....x...F..            34 of 34`, the last traces of a long suite.
    private static func progress(_ dots: String, _ finished: Int, _ all: Int) -> String {
        let count = "\(finished) of \(all)"
        return "\(pad(String(dots.suffix(52)), 64 - count.count)) \(padLeft(count, count.count + 4))"
    }

    /// `1.9 s`.
    static func seconds(_ seconds: Double) -> String { SummaryLine.span(UInt64(max(0, seconds) * 1e9)) }

    private static func dot(_ result: ReplaySuite.Result) -> String {
        switch result.outcome {
        case .same: "."
        case .failsAsExpected: "x"
        case .differs: "F"
        case .passesNow: "P"
        case .blocked: "b"
        case .skipped: "s"
        case .unreadable: "E"
        }
    }

    static func status(_ result: ReplaySuite.Result) -> ExitStatus {
        switch result.outcome {
        case .same, .failsAsExpected, .skipped: .fine
        case .differs, .passesNow: .notSo
        case .blocked, .unreadable: .outside
        }
    }

    // MARK: - One trace

    func replay(_ item: ReplaySuite.Item, _ options: ReplayOptions) throws -> (replay: Replay, trace: Trace) {
        let trace: Trace
        do { trace = try Trace.load(path: item.path) } catch { throw TraceAccess.failure(error) }
        let secrets = try TraceAccess.secrets(
            for: item.path, session: trace.header.session, embedded: trace.secrets, arguments
        ).store
        var options = options
        options.mode = options.mode ?? item.mode
        return (Replay(of: trace, secrets: secrets, options: options), trace)
    }

    private func attempt(
        _ item: ReplaySuite.Item, _ options: ReplayOptions, _ worst: borrowing Mutex<ExitStatus>
    ) async -> ReplaySuite.Attempt {
        do {
            let (replay, trace) = try replay(item, options)
            let damaged = TraceAccess.report(trace.damage, of: item.path, terminal)
            worst.withLock { $0 = max($0, damaged) }
            for caution in replay.cautions { terminal.note("\(item.path): \(caution)") }
            return .report(await replay.run())
        } catch let failure as Failure {
            return .unreadable(failure.lines)
        } catch {
            return .unreadable(["\(error)"])
        }
    }

    // MARK: - Text

    private var hasMany: Bool { suite.items.count > 1 }

    /// The lines of one trace that was given by itself.
    private func show(_ result: ReplaySuite.Result) {
        let path = result.item.path
        guard let report = result.report else {
            terminal.error(result.problem)
            return
        }
        if arguments.wantsJSON { return terminal.result(ReplayText.json(report, path: path, outcome: result)) }
        switch report.verdict {
        case .same:
            terminal.result(ReplayText.same(report, path: path))
            ReplayText.notes(report).forEach(terminal.result)
        case .differs(let divergence): ReplayText.lines(divergence, report, path: path).forEach(terminal.result)
        case .blocked(let blocked): terminal.error(ReplayText.lines(blocked, path: path, isOneOfMany: hasMany))
        }
    }

    /// What is not just the same, then a line that counts.
    private func summary(_ results: [ReplaySuite.Result], _ elapsed: Double) {
        if arguments.wantsJSON {
            for result in results {
                if let report = result.report {
                    terminal.result(ReplayText.json(report, path: result.item.path, outcome: result))
                } else {
                    terminal.result(
                        JSONValue.object([
                            "file": .string(result.item.path), "outcome": .string(result.outcome.rawValue),
                            "reason": .string(
                                result.problem.isEmpty ? Self.reason(result) : result.problem.joined(separator: "; ")),
                        ]).text)
                }
            }
            return
        }
        for result in results {
            let lines = Self.block(result)
            guard !lines.isEmpty else { continue }
            terminal.result("")
            lines.forEach(terminal.result)
        }
        terminal.result("")
        let text = Self.counts(results)
        terminal.result("\(pad(text, 72)) \(Self.seconds(elapsed))")
    }

    /// What `suite.txt` says of a trace.
    private static func reason(_ result: ReplaySuite.Result) -> String {
        switch result.item.expectation {
        case .fails(let why), .skip(let why): why
        case nil: ""
        }
    }

    /// Lines for a trace of a suite; none when it is the same and nothing is to be said of it.
    static func block(_ result: ReplaySuite.Result) -> [String] {
        let (path, name) = (result.item.path, result.item.name)
        let reason = reason(result)
        switch (result.outcome, result.report?.verdict) {
        case (.differs, .differs(let divergence)):
            guard let report = result.report else { return [] }
            return ReplayText.lines(divergence, report, path: path, name: name)
        case (.blocked, .blocked(let blocked)): return ReplayText.lines(blocked, path: path, isOneOfMany: true)
        case (.failsAsExpected, _): return ["FAILS AS EXPECTED  \(name)   \(reason)"]
        case (.passesNow, _): return ["PASSES NOW  \(name)   \(reason)", "         take its line out of suite.txt"]
        case (.skipped, _): return ["SKIPPED  \(name)   \(reason)"]
        case (.unreadable, _): return ["UNREADABLE  \(name)"] + result.problem.map { "         \($0)" }
        case (.same, _):
            guard let report = result.report, report.endsEarly || !report.unrecorded.isEmpty || !report.moved.isEmpty else {
                return []
            }
            return [ReplayText.same(report, path: name)] + ReplayText.notes(report)
        default: return []
        }
    }

    /// `32 same, 1 differs, 1 fails as expected, 0 blocked`; rare words only when there are some.
    private static func counts(_ results: [ReplaySuite.Result]) -> String {
        func count(_ outcome: ReplaySuite.Result.Outcome) -> Int { results.count { $0.outcome == outcome } }
        let differs = count(.differs)
        var parts = ["\(count(.same)) same", "\(differs) differ\(differs == 1 ? "s" : "")"]
        let expected = count(.failsAsExpected)
        if expected > 0 { parts.append("\(expected) fail\(expected == 1 ? "s" : "") as expected") }
        let passing = count(.passesNow)
        if passing > 0 { parts.append("\(passing) pass\(passing == 1 ? "es" : "") now") }
        if count(.skipped) > 0 { parts.append("\(count(.skipped)) skipped") }
        if count(.unreadable) > 0 { parts.append("\(count(.unreadable)) unreadable") }
        parts.append("\(count(.blocked)) blocked")
        return parts.joined(separator: ", ")
    }

    private func writeJUnit(_ results: [ReplaySuite.Result], _ path: String) throws {
        let stamp = UTC.fileStamp(UTC.now())
        let parts = stamp.split(separator: "-")
        let clock = parts.last.map { "\($0.prefix(2)):\($0.dropFirst(2).prefix(2)):\($0.dropFirst(4))" } ?? "00:00:00"
        let timestamp = "\(parts.dropLast().joined(separator: "-"))T\(clock)"
        let text = JUnitReport(results, timestamp: timestamp).xml { Self.block($0).joined(separator: "\n") }
        try FileText.write(text, to: path)
    }
}

/// Every trace in every mode: which hold, and why not the others.
struct ModeTable: Sendable {
    let run: ReplayRun

    func print() async -> ExitStatus {
        let terminal = run.terminal
        let worst = Mutex(ExitStatus.fine)
        let width = run.suite.items.map(\.name.count).max() ?? 0
        if !run.arguments.wantsJSON {
            terminal.note("\(pad("trace", width))   \(ReplayMode.allCases.map { pad($0.rawValue, 10) }.joined())".trimmed)
        }
        _ = await run.suite.run(jobs: run.jobs, stopsAtFirst: run.arguments.has("-x")) { item in
            let (lines, status, last) = await row(item, width)
            lines.forEach(terminal.result)
            worst.withLock { $0 = max($0, status) }
            return last
        }
        return worst.withLock { $0 }
    }

    /// A trace that no mode can replay is an error, and so is one that differs in a mode.
    private func row(_ item: ReplaySuite.Item, _ width: Int) async -> ([String], ExitStatus, ReplaySuite.Attempt) {
        var words: [String] = []
        var reasons: [String] = []
        var members: [String: JSONValue] = ["file": .string(item.path)]
        var status = ExitStatus.fine
        var holds = false
        var last = ReplaySuite.Attempt.unreadable([])
        for mode in ReplayMode.allCases {
            var options = run.options
            options.mode = mode
            let report: ReplayReport
            do { report = await (try run.replay(item, options)).replay.run() } catch {
                let lines = (error as? Failure)?.lines ?? ["\(error)"]
                return (["\(pad(item.name, width))   unreadable: \(lines.first ?? "")"], .outside, .unreadable(lines))
            }
            last = .report(report)
            switch report.verdict {
            case .same:
                holds = true
                words.append("same")
            case .differs(let divergence):
                status = max(status, .notSo)
                words.append("DIFFERS")
                reasons.append("  \(mode.rawValue): \(divergence)")
            case .blocked(let blocked):
                words.append("-")
                reasons.append("  \(mode.rawValue): \(blocked.text)")
            }
            members[mode.rawValue] = .string(words.last == "-" ? "blocked" : words.last?.lowercased() ?? "")
        }
        if !holds {
            status = max(status, .notSo)
            reasons.append("  no mode can replay it")
        }
        if run.arguments.wantsJSON { return ([JSONValue.object(members).text], status, last) }
        let line = "\(pad(item.name, width))   \(words.map { pad($0, 10) }.joined())".trimmed
        return ([line] + reasons, status, last)
    }
}
