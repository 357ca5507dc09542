// SPDX-License-Identifier: MIT

import TraceFile

/// `import`: other tools' captures as traces.
enum ImportVerb: Verb {
    static let name = "import"
    static let summary = "another tool's capture as a trace"
    static let synopsis = [
        "import proxmark3 FILE -o FILE [--protocol 14a|14b|15|iclass|felica|lf]",
        "import gsmtap FILE -o FILE                       exchanges with a SIM in a pcap or pcapng",
        "import apdu4j FILE -o FILE                       a dump of apdu4j",
    ]
    static let options = [
        OptionSpec("-o", .required("FILE"), "the trace to write"),
        OptionSpec("--force", .none, "replace an existing file"),
        OptionSpec("--protocol", .required("NAME"), "what the frames are; by their content without it"),
    ]
    static let details = ["Status 0 when all could be read; 3 for a damaged file, of which everything before the damage is written."]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        guard let format = arguments.operands.first else { throw Failure.usage("import needs a format: tapdeck import proxmark3 FILE -o FILE") }
        guard let importer = importers.first(where: { $0.format == format }) else {
            let known = importers.map(\.format)
            throw Failure.usage("unknown format \(format)\(Nearest.suggestion(for: format, among: known)); known: \(known.joined(separator: ", "))")
        }
        guard arguments.operands.count == 2 else { throw Failure.usage("import \(format) takes one file") }
        guard let output = arguments.value("-o") else { throw Failure.usage("import needs -o FILE") }
        return try importer.run(arguments.operands[1], output, arguments, terminal)
    }

    private typealias Importer = @Sendable (String, String, Arguments, Terminal) throws -> ExitStatus

    private static let importers: [(format: String, run: Importer)] = [
        ("proxmark3", { try Proxmark3Import.run($0, to: $1, $2, $3) }),
        ("gsmtap", { try GSMTAPImport.run($0, to: $1, $2, $3) }),
        ("apdu4j", { try APDU4JImport.run($0, to: $1, $2, $3) }),
    ]
}
