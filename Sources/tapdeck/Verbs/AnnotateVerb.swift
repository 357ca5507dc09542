// SPDX-License-Identifier: MIT

import GrammarLibrary
import TraceDecoding
import TraceFile

/// `annotate`: a copy for Wireshark, with what is known as comments and the opened messages as rows of their own.
enum AnnotateVerb: Verb {
    static let name = "annotate"
    static let summary = "a copy with comments and plain rows for Wireshark"
    static let synopsis = ["annotate FILE -o FILE [--force] [--secrets FILE|env:NAME] [--grammar DIR]"]
    static let options =
        traceOptions + grammarOptions + [
            OptionSpec("-o", .required("FILE"), "where the copy goes"),
            OptionSpec("--force", .none, "replace a file that is there"),
        ]
    static let details = [
        "Raw rows and exchange numbers stay as they are; each plain row stands behind its raw pair.",
        "The copy shows what was opened: it is as private as the secrets.",
    ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        guard let path = arguments.operands.first, arguments.operands.count == 1, let output = arguments.value("-o") else {
            throw Failure.usage("annotate needs a trace and a place: tapdeck annotate FILE -o FILE")
        }
        let trace: Trace
        do { trace = try Trace.load(path: path) } catch { throw TraceAccess.failure(error) }
        let secrets = try TraceAccess.secrets(for: path, session: trace.header.session, embedded: trace.secrets, arguments).store
        var rows = AnnotatedRows(secrets: secrets, grammars: try TraceAccess.grammars(arguments))
        let interfaces = AnnotatedRows.interfaces(for: trace.interfaces)
        for (index, interface) in interfaces.enumerated() { rows.add(interface, index: index) }
        do throws(TraceFileError) {
            var writer = try TraceWriter(
                creating: output, header: trace.header, interfaces: interfaces, replacing: arguments.has("--force"))
            if !trace.secrets.isEmpty { try writer.write(secrets: trace.secrets) }
            for row in trace.rows { for copy in rows.push(row) { try writer.write(copy) } }
            try writer.close()
        } catch {
            throw TraceAccess.failure(error)
        }
        if arguments.wantsJSON {
            terminal.result(
                JSONValue.object([
                    "file": .string(output), "comments": .integer(Int64(rows.comments)),
                    "plainRows": .integer(Int64(rows.plains)),
                ]).text)
        } else {
            terminal.result(
                "wrote      \(output)   \(grouped(rows.comments)) rows with comments, \(grouped(rows.plains)) plain rows")
        }
        return TraceAccess.report(trace.damage, of: path, terminal)
    }
}
