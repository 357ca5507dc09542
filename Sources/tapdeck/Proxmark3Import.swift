// SPDX-License-Identifier: MIT

import TraceFile

/// `import proxmark3`.
enum Proxmark3Import {
    static func run(_ input: String, to output: String, _ arguments: Arguments, _ terminal: Terminal) throws -> ExitStatus {
        var kind: RFProtocol?
        if let name = arguments.value("--protocol") {
            kind = RFProtocol(rawValue: name)
            guard kind != nil else {
                let known = RFProtocol.allCases.map(\.rawValue)
                throw Failure.usage("unknown protocol \(name)\(Nearest.suggestion(for: name, among: known)); known: \(known.joined(separator: ", "))")
            }
        }
        let imported: ImportedTrace
        do throws(TraceFileError) {
            imported = try Proxmark3Importer.importFile(input, protocol: kind, to: output, replacing: arguments.has("--force"))
        } catch {
            throw TraceAccess.failure(error)
        }
        for line in imported.summary { terminal.result(line) }
        terminal.result("wrote      \(output)   show: yes   replay: no, it holds frames and no call")
        guard let damage = imported.damage else { return .fine }
        // A damaged capture of another program is no killed recorder of ours, wherever it breaks off.
        terminal.error([
            "\(input) is damaged in record \(grouped(damage.block)), at byte \(grouped(damage.offset))", "trace: \(damage.detail)",
            "the \(grouped(damage.rows)) records before it are written",
        ])
        return .outside
    }
}
