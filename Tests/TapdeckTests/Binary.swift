// SPDX-License-Identifier: MIT

import Foundation
import TestSupport

/// The command line tool that was built with these tests.
enum Binary {
    static let path = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("tapdeck")
        .path

    static func run(_ words: String..., in folder: TemporaryFolder) async throws -> ProcessRunner.Outcome {
        try await run(words, in: folder)
    }

    static func run(_ words: [String], in folder: TemporaryFolder) async throws -> ProcessRunner.Outcome {
        try await ProcessRunner.run(path, words, environment: environment(folder), directory: folder.path)
    }

    /// No reader service answers here, whatever the machine has.
    static func environment(_ folder: TemporaryFolder) -> [String: String] { ["PCSCLITE_CSOCK_NAME": folder("no-such-socket")] }

    /// A recorded virtual passport, `demo.pcapng`, with its secrets beside it.
    static func recordPassport(in folder: TemporaryFolder, _ more: String...) async throws -> ProcessRunner.Outcome {
        try await run(
            ["record", "-o", "demo.pcapng", "--card", "virtual:passport", "passport", "--mrz-key", "L898902C<369080619406236"]
                + more, in: folder)
    }

    /// Runs a command that records `trace` and kills it (SIGKILL) at a moment of its work, however slow the machine is: once the
    /// trace has `size` octets, and `microseconds` later.
    static func runAndKill(
        _ words: [String], in folder: TemporaryFolder, onceLongerThan size: Int, trace: String, after microseconds: UInt32
    ) throws {
        let child = try ChildProcess(path, words, environment: environment(folder), directory: folder.path)
        child.closeInput()
        let deadline = ContinuousClock.now + .seconds(20)
        while ContinuousClock.now < deadline, child.poll() == nil {
            let present = try? FileManager.default.attributesOfItem(atPath: folder(trace))[.size] as? Int
            if (present ?? 0) >= size { break }
            usleep(300)
        }
        usleep(microseconds)
        child.signal(SIGKILL)
        _ = child.waitForEnd(timeout: .seconds(10))
    }
}
