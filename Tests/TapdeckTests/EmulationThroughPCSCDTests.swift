// SPDX-License-Identifier: MIT

import Foundation
import TestSupport
import Testing

/// A credential that is emulated in a virtual reader, met by a program that knows nothing of it.
@Suite(.enabled(if: PrivatePCSCD.isAvailable, Comment(rawValue: PrivatePCSCD.reason)))
struct EmulationThroughPCSCDTests {
    private static let steps = """
        startSession
        provisionCredential loyalty "points" -> C1
        wait 2 s
        listCredentials -> 2
        enterWiredMode C1
        transceive 8010000000 -> 0000 0064 9000
        performCardEmulationTransactionWithCurrentCredential
        reader 30 s
        wait 61 s
        state -> management
        deleteCredential C1
        listCredentials -> 1
        """

    @Test(.enabled(if: access("/usr/bin/opensc-tool", X_OK) == 0, "opensc-tool is not installed"))
    func openSCMeetsTheEmulatedCardAndTheReplayIsTheSame() async throws {
        let service = try PrivatePCSCD()
        defer { service.stop() }
        let folder = try TemporaryFolder()
        let steps = Self.steps.replacingOccurrences(of: "0000 0064 9000", with: "000000649000")
        try Data(steps.utf8).write(to: URL(fileURLWithPath: folder("steps.txt")))
        let port = service.ports[0]
        async let recording = ProcessRunner.run(
            Binary.path, ["record", "-o", "c.pcapng", "--vpcd", "127.0.0.1:\(port)", "credential", "steps.txt"],
            environment: service.environment, directory: folder.path)
        // The card is there when opensc-tool finds it.
        let read = try await ProcessRunner.run(
            "opensc-tool",
            ["-w", "-r", "0", "-s", "00A4040009F054444C4F59010101", "-s", "80200000020005"],
            environment: service.environment, directory: folder.path)
        let recorded = try await recording
        #expect(read.outputText.contains("00 00 00 69"), "\(read.outputText) \(read.errorText)")
        #expect(recorded.end == .status(0), "\(recorded.outputText) \(recorded.errorText)")
        let shown = try await Binary.run("show", "c.pcapng", in: folder)
        let lines = shown.outputText.split(separator: "\n").map { $0.split(separator: " ").suffix(3).joined(separator: " ") }
        let wanted = [
            "enterWiredMode C1 wired C1", "performCardEmulationTransactionWithCurrentCredential cardEmulation C1",
            "fieldPresent cardEmulation C1", "emulation: cardEmulationTimeout management", "deleteCredential C1 management",
        ]
        for step in wanted { #expect(lines.contains { step.hasSuffix($0) }, "\(step) in \(shown.outputText)") }
        #expect(shown.outputText.contains("connectivityEvent 01000500000069"))
        #expect(shown.errorText.contains("rules ios27.1; 0 illegal transitions, 0 refused calls, 0 contested"))
        let replayed = try await Binary.run("replay", "c.pcapng", in: folder)
        #expect(replayed.end == .status(0), "\(replayed.outputText) \(replayed.errorText)")
        #expect(replayed.outputText.hasPrefix("same "))
        #expect(replayed.outputText.contains(" ms"), "under a second: \(replayed.outputText)")
    }
}
