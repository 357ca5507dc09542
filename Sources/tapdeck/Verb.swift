// SPDX-License-Identifier: MIT

import Octets

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

/// For commands that say what rows mean.
let grammarOptions = [OptionSpec("--grammar", .required("DIR"), "the grammars of a folder, not those built in")]

extension Arguments {
    var wantsJSON: Bool { has("--json") }
}

enum HelpText {
    static let verbs: [any Verb.Type] = [
        DemoVerb.self, RecordVerb.self, InfoVerb.self, ShowVerb.self, AnnotateVerb.self, DiffVerb.self, ReplayVerb.self,
        ImportVerb.self, ServeVerb.self, VirtualVerb.self, GrammarVerb.self, WiresharkVerb.self, ReadersVerb.self,
        DoctorVerb.self,
        NDEFVerb.self, SUNVerb.self, BenchVerb.self,
    ]

    static func overview() -> [String] {
        var lines = ["tapdeck - record, read and replay smart card and NFC sessions", ""]
        lines += verbs.flatMap { TextWrap.lines("  tapdeck \(pad($0.name, 9)) \($0.summary)", indent: 20) }
        lines += ["", "tapdeck COMMAND --help tells more; tapdeck --version"]
        return lines
    }

    static func text(for verb: any Verb.Type) -> [String] {
        var lines = verb.synopsis.flatMap { TextWrap.lines("tapdeck \($0)", indent: 8) }
        lines += [""] + TextWrap.lines(verb.summary)
        if !verb.details.isEmpty { lines += [""] + verb.details.flatMap { TextWrap.lines($0) } }
        lines.append("")
        for option in verb.allOptions {
            if option.usage.count <= 22 {
                lines += TextWrap.lines("  \(pad(option.usage, 23))\(option.help)", indent: 25)
            } else {
                lines += ["  \(option.usage)"] + TextWrap.lines("  \(pad("", 23))\(option.help)", indent: 25)
            }
        }
        return lines
    }
}

/// Text in lines of at most 80 columns.
enum TextWrap {
    /// Breaks a line at its spaces, at none inside brackets. Spaces at its beginning stay.
    ///
    /// - Parameter indent: spaces before every line but the first; as many as before the first when nil.
    static func lines(_ text: String, indent: Int? = nil, width: Int = 80) -> [String] {
        guard text.count > width else { return [text] }
        let leading = text.prefix { $0 == " " }.count
        let indent = indent ?? leading
        var lines: [String] = []
        var line = ""
        for word in words(text.dropFirst(leading)) {
            if line.isEmpty {
                line = String(repeating: " ", count: lines.isEmpty ? leading : indent) + word
            } else if line.count + 1 + word.count <= width {
                line += " " + word
            } else {
                lines.append(line)
                line = String(repeating: " ", count: indent) + word
            }
        }
        return lines + [line]
    }

    /// An error's text for people: what is not so on the first line, what helps on the next when they do not fit one.
    static func sentence(_ text: String) -> [String] {
        guard text.count > 70, let semicolon = text.firstIndex(of: ";") else { return [text] }
        return [String(text[..<semicolon])] + lines(String(text[semicolon...].dropFirst(2)), width: 78)
    }

    /// What stands between spaces; the columns of a table keep theirs, and so does what stands in brackets.
    private static func words(_ text: Substring) -> [String] {
        var words: [String] = []
        var word = ""
        var depth = 0
        var isGap = false
        for character in text {
            if character == "[" { depth += 1 }
            if character == "]" { depth = max(0, depth - 1) }
            if character == " ", depth == 0 {
                // Of several spaces all but the last belong to the word before them.
                if isGap { word.append(" ") }
                isGap = true
                continue
            }
            if isGap, !word.isEmpty {
                words.append(word)
                word = ""
            }
            isGap = false
            word.append(character)
        }
        return words + (word.isEmpty ? [] : [word])
    }
}

/// `text` with spaces after it up to `width` columns.
func pad(_ text: String, _ width: Int) -> String {
    let columns = text.columns
    return columns >= width ? text : text + String(repeating: " ", count: width - columns)
}

/// `text` with spaces before it up to `width` columns.
func padLeft(_ text: String, _ width: Int) -> String {
    let columns = text.columns
    return columns >= width ? text : String(repeating: " ", count: width - columns) + text
}
