// SPDX-License-Identifier: MIT

/// One command of the tool.
protocol Verb: Sendable {
    static var name: String { get }
    /// One line for the list of commands.
    static var summary: String { get }
    /// The forms in which it is typed, without `tapdeck`.
    static var synopsis: [String] { get }
    static var options: [OptionSpec] { get }
    /// More for `--help`: what it reads, what its statuses mean.
    static var details: [String] { get }

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus

    /// Runs with the words after the verb's name, for verbs whose options depend on an operand.
    static func run(words: [String], _ terminal: Terminal) async throws -> ExitStatus
}

extension Verb {
    static func run(words: [String], _ terminal: Terminal) async throws -> ExitStatus {
        try await run(try Arguments(words, options: allOptions), terminal)
    }

    static var details: [String] { [] }
    static var allOptions: [OptionSpec] { options + commonOptions }
}

/// Options of every command.
let commonOptions = [
    OptionSpec("--json", .none, "results as one JSON object a line"),
    OptionSpec("--quiet", .none, "results and errors only"),
    OptionSpec("--help", .none, "this text"),
]

/// Options of every command that reads a trace.
let traceOptions = [
    OptionSpec("--secrets", .required("FILE|env:NAME"), "secrets from a file or, as text, from a variable")
]

extension Arguments {
    var wantsJSON: Bool { has("--json") }
}

enum HelpText {
    static let verbs: [any Verb.Type] = [
        DemoVerb.self, RecordVerb.self, InfoVerb.self, ShowVerb.self, ReplayVerb.self, ImportVerb.self, VirtualVerb.self,
        GrammarVerb.self, WiresharkVerb.self, ReadersVerb.self, DoctorVerb.self, BenchVerb.self,
    ]

    static func overview() -> [String] {
        var lines = ["tapdeck - record, read and replay smart card and NFC sessions", ""]
        lines += verbs.map { "  tapdeck \(pad($0.name, 9)) \($0.summary)" }
        lines += ["", "tapdeck COMMAND --help tells more; tapdeck --version"]
        return lines
    }

    static func text(for verb: any Verb.Type) -> [String] {
        var lines = verb.synopsis.map { "tapdeck \($0)" }
        lines += ["", verb.summary]
        if !verb.details.isEmpty { lines += [""] + verb.details }
        lines.append("")
        for option in verb.allOptions {
            if option.usage.count <= 22 {
                lines.append("  \(pad(option.usage, 23))\(option.help)")
            } else {
                lines += ["  \(option.usage)", "  \(pad("", 23))\(option.help)"]
            }
        }
        return lines
    }
}

/// `text` with spaces after it up to `width` columns.
func pad(_ text: String, _ width: Int) -> String {
    text.count >= width ? text : text + String(repeating: " ", count: width - text.count)
}

/// `text` with spaces before it up to `width` columns.
func padLeft(_ text: String, _ width: Int) -> String {
    text.count >= width ? text : String(repeating: " ", count: width - text.count) + text
}
