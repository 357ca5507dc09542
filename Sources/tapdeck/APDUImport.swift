// SPDX-License-Identifier: MIT

import TraceFile
import Tracing

/// What the imports of APDUs have in common: writing, sealing, and what is said of it.
enum APDUImport {
    /// `read` gives the trace of the input, or throws a ``TraceFileError``.
    static func run(
        _ input: String, to output: String, _ arguments: Arguments, _ terminal: Terminal,
        reading read: (String) throws(TraceFileError) -> ImportedTrace
    ) throws -> ExitStatus {
        guard arguments.value("--protocol") == nil else {
            throw Failure.usage("--protocol is for frames: import proxmark3; this format holds APDUs")
        }
        let imported: ImportedTrace
        let sealed: Int
        do throws(TraceFileError) {
            imported = try read(input)
            sealed = try imported.write(to: output, replacing: arguments.has("--force"))
        } catch {
            throw TraceAccess.failure(error)
        }
        for line in imported.summary { terminal.result(line) }
        if sealed > 0 {
            let rows = sealed == 1 ? "1 row holds a PIN or key" : "\(grouped(sealed)) rows hold PINs or keys"
            terminal.result("sealed     \(rows), kept in \(SecretStore.sidePath(forTrace: output))")
        }
        terminal.result("wrote      \(output)   show: yes   replay: no, it holds no call")
        return report(imported.damage, of: input, terminal)
    }

    /// Says where the input stops making sense. A capture that ends inside its last record is what a stopped program
    /// leaves, and fine.
    private static func report(_ damage: TraceDamage?, of input: String, _ terminal: Terminal) -> ExitStatus {
        guard let damage else { return .fine }
        let isCut = damage.kind == .cutShort
        terminal.error([
            "\(input) is \(isCut ? "cut short" : "damaged") in \(damage.unit) \(grouped(damage.block)), at byte \(grouped(damage.offset))",
            isCut ? damage.detail : "trace: \(damage.detail)", "what stands before it is written",
        ])
        return isCut ? .fine : .outside
    }
}
