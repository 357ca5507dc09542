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
    static let details = [
        "Status 0 when all could be read; 3 for a damaged file, of which everything before the damage is written."
    ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        guard let format = arguments.operands.first else {
            throw Failure.usage("import needs a format: tapdeck import proxmark3 FILE -o FILE")
        }
        guard let importer = importers.first(where: { $0.format == format }) else {
            let known = importers.map(\.format)
            let hint = Nearest.suggestion(for: format, among: known)
            throw Failure.usage("unknown format \(format)\(hint)", "known: \(known.joined(separator: ", "))")
        }
        guard arguments.operands.count == 2 else { throw Failure.usage("import \(format) takes one file") }
        guard let output = arguments.value("-o") else { throw Failure.usage("import needs -o FILE") }
        let kind = try airInterface(arguments.value("--protocol"), format)
        let input = arguments.operands[1]
        let imported: ImportedTrace
        do throws(TraceFileError) { imported = try importer.read(input, kind) } catch { throw TraceAccess.failure(error) }
        return try ImportRun.finish(imported, of: input, to: output, arguments, terminal)
    }

    private static func airInterface(_ name: String?, _ format: String) throws -> RFProtocol? {
        guard let name else { return nil }
        guard format == "proxmark3" else {
            throw Failure.usage("--protocol is for frames: import proxmark3; \(format) holds APDUs")
        }
        if let kind = RFProtocol(rawValue: name) { return kind }
        let known = RFProtocol.allCases.map(\.rawValue)
        let hint = Nearest.suggestion(for: name, among: known)
        throw Failure.usage("unknown protocol \(name)\(hint)", "known: \(known.joined(separator: ", "))")
    }

    private typealias Reading = @Sendable (String, RFProtocol?) throws(TraceFileError) -> ImportedTrace

    private static let importers: [(format: String, read: Reading)] = [
        ("proxmark3", { (path, kind) throws(TraceFileError) in try Proxmark3Importer.importFile(path, protocol: kind) }),
        ("gsmtap", { (path, _) throws(TraceFileError) in try GSMTAPImporter.importFile(path) }),
        ("apdu4j", { (path, _) throws(TraceFileError) in try APDU4JImporter.importFile(path) }),
    ]
}
