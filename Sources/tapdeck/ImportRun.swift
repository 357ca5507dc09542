// SPDX-License-Identifier: MIT

import TraceFile
import Tracing

/// What every import does once its input is read: writing, sealing, and what is said of it.
enum ImportRun {
    /// - Parameter imported: the trace of `input`.
    static func finish(
        _ imported: ImportedTrace, of input: String, to output: String, _ arguments: Arguments, _ terminal: Terminal
    ) throws -> ExitStatus {
        let sealed: Int
        do throws(TraceFileError) {
            sealed = try imported.write(to: output, replacing: arguments.has("--force"))
        } catch {
            throw TraceAccess.failure(error)
        }
        for line in imported.summary { terminal.result(line) }
        if sealed > 0 {
            let rows = sealed == 1 ? "1 row holds a PIN, password or key" : "\(grouped(sealed)) rows hold PINs, passwords or keys"
            terminal.result("sealed     \(rows), kept in \(SecretStore.sidePath(forTrace: output))")
        }
        terminal.result("wrote      \(output)   show: yes   replay: no, it holds no call")
        return report(imported.damage, of: input, terminal)
    }

    /// Says where the input stops making sense. A capture that ends inside its last record is what a stopped program leaves,
    /// and fine.
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
