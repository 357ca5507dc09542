// SPDX-License-Identifier: MIT

import TraceFile

/// `import`: other tools' captures as traces.
enum ImportVerb: Verb {
    static let name = "import"
    static let summary = "another tool's capture as a trace"
    static let synopsis = ["import proxmark3 FILE -o FILE [--protocol 14a|14b|15|iclass|felica|lf]"]
    static let options = [
        OptionSpec("-o", .required("FILE"), "the trace to write"),
        OptionSpec("--force", .none, "replace an existing file"),
        OptionSpec("--protocol", .required("NAME"), "what the frames are; by their content without it"),
    ]
    static let details = ["Status 0 when all could be read; 3 for a damaged file, of which everything before the damage is written."]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        guard let format = arguments.operands.first else { throw Failure.usage("import needs a format: tapdeck import proxmark3 FILE -o FILE") }
        guard format == "proxmark3" else {
            throw Failure.usage("unknown format \(format)\(Nearest.suggestion(for: format, among: ["proxmark3"])); proxmark3 is the one there is")
        }
        guard arguments.operands.count == 2 else { throw Failure.usage("import \(format) takes one file") }
        guard let output = arguments.value("-o") else { throw Failure.usage("import needs -o FILE") }
        return try Proxmark3Import.run(arguments.operands[1], to: output, arguments, terminal)
    }
}
