// SPDX-License-Identifier: MIT

import FoundationEssentials
import GrammarLanguage
import GrammarLibrary
import GrammarRuntime

/// `grammar`: check, lay out, explain and export grammars.
enum GrammarVerb: Verb {
    static let name = "grammar"
    static let summary = "check, explain and export the grammars"
    static let synopsis = [
        "grammar check [FILE...]                 every mistake, with its place",
        "grammar format [FILE...] [--check]      the one layout, in place",
        "grammar explain FIELD                   where a field's value comes from",
        "grammar docs DIR                        a page a grammar, in Markdown",
        "grammar lua                             the plug-in for Wireshark",
        "grammar json                            everything resolved, with places",
        "grammar coverage [FILE...]              what examples and traces exercise",
    ]
    static let options = [
        OptionSpec("--grammar", .required("DIR"), "the grammars of a folder in place of those built in"),
        OptionSpec("--check", .none, "format: change nothing, name the files that would change"),
        OptionSpec("--mutations", .required("N"), "check: read N changed frames, and say the first that breaks a law"),
        OptionSpec("--missing", .none, "coverage: name what was not met"),
        OptionSpec("--secrets", .required("FILE|env:NAME"), "coverage: secrets of the traces"),
    ]
    static let details = [
        "Files given to check may use the grammars built in; a file takes the place of the one of its name.",
        "The laws: every octet belongs to one field, and what was read is written again as it was.",
        "Status 0 when all is well, 1 when a grammar has a mistake or is not in the layout.",
    ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        let actions: [(name: String, run: (Arguments, Terminal) async throws -> ExitStatus)] = [
            ("check", check), ("format", format), ("explain", explain), ("docs", docs), ("lua", lua), ("json", json),
            ("coverage", coverage),
        ]
        guard let first = arguments.operands.first else {
            throw Failure.usage("grammar needs to know what to do: \(actions.map(\.name).joined(separator: ", "))")
        }
        guard let action = actions.first(where: { $0.name == first }) else {
            throw Failure.usage(
                "unknown word \(first)\(Nearest.suggestion(for: first, among: actions.map(\.name)))",
                "known: \(actions.map(\.name).joined(separator: ", "))")
        }
        return try await action.run(arguments, terminal)
    }

    /// What stands after the action's name.
    static func operands(_ arguments: Arguments) -> [String] { Array(arguments.operands.dropFirst()) }

    // MARK: Check and format

    private static func check(_ arguments: Arguments, _ terminal: Terminal) throws -> ExitStatus {
        let files = operands(arguments)
        let given = try files.map(source)
        var sources = given
        if !files.isEmpty || arguments.value("--grammar") == nil {
            let names = Set(given.map { lastName($0.name) })
            sources += GrammarLibrary.standard.sources.filter { !names.contains(lastName($0.name)) }
        }
        if let folder = arguments.value("--grammar") { sources = given + (try folderSources(folder)) }
        let set = GrammarSet.compile(sources)
        // Of grammars that are only used, nobody asked.
        let asked = Set(given.map(\.name))
        let list = set.diagnostics.filter { asked.isEmpty || asked.contains($0.file) || $0.severity == .error }
        for diagnostic in list {
            if arguments.wantsJSON {
                terminal.result(diagnostic.json)
            } else {
                terminal.result(String(diagnostic.description.dropLast()))
            }
        }
        let errors = list.filter { $0.severity == .error }.count
        let checked = asked.isEmpty ? sources.count : asked.count
        terminal.note(
            "\(checked) grammars checked, \(set.program.exampleFrames.count) frames of examples read: \(errors) errors, \(list.count - errors) warnings"
        )
        guard errors == 0, let text = arguments.value("--mutations") else { return errors == 0 ? .fine : .notSo }
        guard let count = Int(text), count > 0 else { throw Failure.usage("\(text) is no number of frames") }
        if let breach = GrammarLaws(set.program).firstBreach(among: count) {
            terminal.result(breach.description)
            return .notSo
        }
        terminal.note("\(grouped(count)) changed frames read, each octet in one field, each written again as it was")
        return .fine
    }

    private static func format(_ arguments: Arguments, _ terminal: Terminal) throws -> ExitStatus {
        var files = operands(arguments)
        if files.isEmpty, let folder = arguments.value("--grammar") { files = try grammarFiles(in: folder) }
        guard !files.isEmpty else { throw Failure.usage("format needs files, or --grammar DIR") }
        var status = ExitStatus.fine
        for file in files {
            let source = try source(file)
            guard let text = GrammarFormatter().format(source) else {
                terminal.error(["\(file) has a mistake in its words; tapdeck grammar check \(file) shows it"])
                status = max(status, .notSo)
                continue
            }
            if text == source.text { continue }
            if arguments.has("--check") {
                terminal.result(file)
                status = max(status, .notSo)
            } else {
                try write(text, to: file)
                terminal.note("formatted \(file)")
            }
        }
        return status
    }

    private static func lua(_ arguments: Arguments, _ terminal: Terminal) throws -> ExitStatus {
        Terminal.write(WiresharkPlugin(try library(arguments).program).text, to: 1)
        return .fine
    }

    private static func json(_ arguments: Arguments, _ terminal: Terminal) throws -> ExitStatus {
        Terminal.write(GrammarJSON(try library(arguments).program).text, to: 1)
        return .fine
    }

    // MARK: Explanations and pages

    private static func explain(_ arguments: Arguments, _ terminal: Terminal) throws -> ExitStatus {
        guard operands(arguments).count == 1, let field = operands(arguments).first else {
            throw Failure.usage("explain takes one field: tapdeck grammar explain iso7816.command.lc")
        }
        let program = try library(arguments).program
        let list = FieldExplanation.of(field, in: program)
        guard !list.isEmpty else {
            let paths = FieldExplanation.paths(in: program)
            let known = field.contains(".") ? paths : Array(Set(paths.map { lastPart($0) })).sorted()
            throw Failure(.notSo, "no field is called \(field)\(Nearest.suggestion(for: field, among: known))")
        }
        for item in list {
            if arguments.wantsJSON {
                terminal.result(item.json)
            } else {
                terminal.result("\(item.path): \(([item.sentence] + item.remarks).joined(separator: "; "))")
                terminal.result("    \(item.file):\(item.line):\(item.column)")
            }
        }
        return .fine
    }

    private static func docs(_ arguments: Arguments, _ terminal: Terminal) throws -> ExitStatus {
        guard operands(arguments).count == 1, let folder = operands(arguments).first else {
            throw Failure.usage("docs takes a folder: tapdeck grammar docs DIR")
        }
        do { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) } catch {
            throw Failure(.outside, "\(folder) cannot be made")
        }
        for page in GrammarPage.pages(try library(arguments).sources) {
            let path = "\(folder)/\(page.name).md"
            try write(page.text, to: path)
            terminal.result("wrote \(path)")
        }
        return .fine
    }

    // MARK: Files

    static func library(_ arguments: Arguments) throws -> GrammarLibrary {
        guard let folder = arguments.value("--grammar") else { return .standard }
        do { return try GrammarLibrary(folder: folder) } catch {
            throw Failure(error.code == .mistakes ? .notSo : .outside, lines: error.detail)
        }
    }

    static func source(_ file: String) throws -> GrammarSource {
        guard let octets = FileManager.default.contents(atPath: file) else { throw Failure(.outside, "\(file) cannot be read") }
        guard octets.count <= 1 << 20 else { throw Failure(.outside, "\(file) is too large for a grammar: over 1 MiB") }
        return GrammarSource(name: file, text: String(decoding: octets, as: UTF8.self))
    }

    private static func folderSources(_ folder: String) throws -> [GrammarSource] { try grammarFiles(in: folder).map(source) }

    private static func grammarFiles(in folder: String) throws -> [String] {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder) else {
            throw Failure(.outside, "\(folder) is no folder that can be read")
        }
        return names.sorted().filter { $0.hasSuffix(".grammar") }.map { "\(folder)/\($0)" }
    }

    static func write(_ text: String, to file: String) throws {
        do { try Data(text.utf8).write(to: URL(filePath: file), options: .atomic) } catch {
            throw Failure(.outside, "\(file) cannot be written")
        }
    }

    private static func lastPart(_ path: String) -> String { String(path.split(separator: ".").last ?? "") }

    static func lastName(_ path: String) -> String { String(path.split(separator: "/").last ?? "") }
}

extension FieldExplanation {
    var json: String {
        "{\"path\":\(JSONText.quoted(path)),\"origin\":\(JSONText.quoted(sentence)),\"file\":\(JSONText.quoted(file)),\"line\":\(line),"
            + "\"column\":\(column),\"remarks\":[\(remarks.map(JSONText.quoted).joined(separator: ","))]}"
    }
}

extension GrammarDiagnostic {
    /// One object for an editor: place, code, severity, message and second places.
    var json: String {
        let others = related.map {
            "{\"file\":\(JSONText.quoted($0.file)),\"line\":\($0.line),\"column\":\($0.column),\"message\":\(JSONText.quoted($0.message))}"
        }
        return
            "{\"file\":\(JSONText.quoted(file)),\"line\":\(line),\"column\":\(column),\"length\":\(length),\"severity\":\"\(severity.name)\","
            + "\"code\":\"\(code.rawValue)\",\"message\":\(JSONText.quoted(message)),\"related\":[\(others.joined(separator: ","))]}"
    }
}
