// SPDX-License-Identifier: MIT

import GrammarLibrary
import TraceDecoding
import TraceFile

/// `diff`: two traces, exchange by exchange.
enum DiffVerb: Verb {
    static let name = "diff"
    static let summary = "two traces compared, exchange by exchange"
    static let synopsis = ["diff A B [--json] [--secrets FILE|env:NAME] [--grammar DIR]"]
    static let options = traceOptions + grammarOptions
    static let details = [
        "Compared is what the messages say; what was drawn at random must recur, and time is not compared.",
        "Status 0 when nothing differs, 1 otherwise, 3 when a file cannot be read.",
    ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        guard arguments.operands.count == 2 else { throw Failure.usage("diff needs two traces: tapdeck diff A B") }
        let (left, right) = (arguments.operands[0], arguments.operands[1])
        let first = try load(left, arguments)
        let second = try load(right, arguments)
        let diff = TraceDiff(first, second, grammars: try TraceAccess.grammars(arguments))
        if arguments.wantsJSON {
            for difference in diff.differences { terminal.result(DiffText.json(difference)) }
        } else {
            for line in DiffText.lines(diff, left, right) { terminal.result(line) }
        }
        let damage = max(
            TraceAccess.report(first.trace.damage, of: left, terminal),
            TraceAccess.report(second.trace.damage, of: right, terminal))
        return max(damage, diff.isSame ? .fine : .notSo)
    }

    private static func load(_ path: String, _ arguments: Arguments) throws -> (trace: Trace, secrets: SecretStore) {
        let trace: Trace
        do { trace = try Trace.load(path: path) } catch { throw TraceAccess.failure(error) }
        return (
            trace, try TraceAccess.secrets(for: path, session: trace.header.session, embedded: trace.secrets, arguments).store
        )
    }
}
