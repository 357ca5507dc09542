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
        transceive 8010000000 -> 000000649000
        performCardEmulationTransactionWithCurrentCredential
        reader 100 s
        wait 61 s
        state -> management
        deleteCredential C1
        listCredentials -> 1
        """

    @Test(.enabled(if: access("/usr/bin/opensc-tool", X_OK) == 0, "opensc-tool is not installed"))
    func openSCMeetsTheEmulatedCardAndTheReplayIsTheSame() async throws {
        try await withTaskExecutorPreference(SeparateThreads()) { try await PrivatePCSCD.useSeparate(meet) }
    }

    private func meet(_ service: PrivatePCSCD) async throws {
        let folder = try TemporaryFolder()
        try Data(Self.steps.utf8).write(to: URL(fileURLWithPath: folder("steps.txt")))
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
        // A call that is too long for its line has its state below it.
        let words = shown.outputText.split { $0 == " " || $0 == "\n" }.joined(separator: " ")
        let wanted = [
            "enterWiredMode C1 wired C1", "performCardEmulationTransactionWithCurrentCredential cardEmulation C1",
            "fieldPresent cardEmulation C1", "cardEmulationTimeout after 60 s management", "deleteCredential C1 management",
        ]
        for step in wanted {
            #expect(words.contains("> " + step) || words.contains("* " + step), "\(step) in \(shown.outputText)")
        }
        #expect(shown.outputText.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(shown.outputText)")
        #expect(shown.outputText.contains("connectivityEvent 01000500000069"))
        #expect(shown.errorText.contains("rules ios27.1; 0 illegal transitions, 0 refused calls, 0 contested"))
        let replayed = try await Binary.run("replay", "c.pcapng", in: folder)
        #expect(replayed.end == .status(0), "\(replayed.outputText) \(replayed.errorText)")
        #expect(replayed.outputText.hasPrefix("same "))
        #expect(replayed.outputText.contains(" ms"), "under a second: \(replayed.outputText)")
    }
}
