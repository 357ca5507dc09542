// SPDX-License-Identifier: MIT

import Foundation
import PCSC
import TagTransport
import TestSupport
import Testing

/// A credential session on the element in a reader of a real pcscd, while other programs and people meddle.
@Suite(.enabled(if: PrivatePCSCD.isAvailable, Comment(rawValue: PrivatePCSCD.reason)))
struct CredentialReaderTests {
    private static let steps = """
        startSession throws resourceUnavailable
        # another program had the card for itself, and lets it go
        wait 10 s
        startSession
        provisionCredential loyalty "points" -> C1
        wait 1.2 s
        listCredentials -> 1
        enterWiredMode C1
        transceive 8010000000 -> 000000649000
        # another program resets the card
        wait 10 s
        transceive 8010000000 throws acquiredResourceRelinquished
        state -> management
        enterWiredMode C1
        transceive 8010000000 -> 000000649000
        # the card is taken out
        wait 10 s
        transceive 8010000000 throws acquiredResourceRelinquished
        state -> management
        enterWiredMode C1 throws resourceUnavailable
        invalidate
        """

    @Test func aTakenCardAResetAndARemovalGiveTheMappedErrorsAndReplay() async throws {
        // The script waits ten seconds for what the test does.
        try await withTaskExecutorPreference(SeparateThreads()) { try await meddle() }
    }

    private func meddle() async throws {
        try await PrivatePCSCD.use { service in
            let folder = try TemporaryFolder()
            try folder.write(Self.steps, "steps.txt")
            let card = try ChildProcess(
                Binary.path, ["virtual", "secure-element", "--vpcd", "127.0.0.1:\(service.ports[1])"],
                environment: service.environment, directory: folder.path)
            defer { card.signal(SIGKILL) }
            let context = try await PCSCContext.open()
            try await until("a card in the reader") {
                try await context.readerStatuses().contains { $0.reader == service.readers[1] && $0.hasCard }
            }
            let other = try await context.connect(to: service.readers[1], sharing: .exclusive)
            let record =
                "exec \(Binary.path) record -o r.pcapng --element reader --reader '\(service.readers[1])' --real-time --key 404142434445464748494A4B4C4D4E4F credential steps.txt > out.txt 2> err.txt"
            let child = try ChildProcess(
                "sh", ["-c", record], environment: service.environment, directory: folder.path)
            defer { child.signal(SIGKILL) }
            child.closeInput()

            func reached(_ line: Int) async throws {
                try await until("line \(line) of \(text("out.txt", in: folder)) \(text("err.txt", in: folder))") {
                    child.poll() != nil || ("\n" + text("out.txt", in: folder)).contains("\n  \(line < 10 ? " " : "")\(line)  ")
                }
            }
            try await reached(1)
            try await other.disconnect()
            try await reached(9)
            try await context.connect(to: service.readers[1]).disconnect(.reset)
            try await reached(15)
            card.signal(SIGTERM)
            let end = child.waitForEnd(timeout: .seconds(120))
            #expect(end == .status(0), "\(text("out.txt", in: folder)) \(text("err.txt", in: folder))")

            let shown = try await Binary.run("show", "r.pcapng", in: folder)
            for text in ["card reset by another program", "80100068", "8010000B"] {
                #expect((shown.outputText + shown.errorText).contains(text), "\(text): \(shown.outputText) \(shown.errorText)")
            }
            #expect(shown.errorText.contains("rules ios27.1; 0 illegal transitions, 4 refused calls, 0 contested"))
            let replayed = try await Binary.run("replay", "r.pcapng", in: folder)
            #expect(replayed.end == .status(0), "\(replayed.outputText) \(replayed.errorText)")
        }
    }

    @Test(.enabled(if: access("/usr/bin/opensc-tool", X_OK) == 0, "opensc-tool is not installed"))
    func aCardInOneReaderIsEmulatedInAnother() async throws {
        try await withTaskExecutorPreference(SeparateThreads()) { try await PrivatePCSCD.useSeparate(emulate) }
    }

    private func emulate(_ service: PrivatePCSCD) async throws {
        let folder = try TemporaryFolder()
        try folder.write(
            """
            startSession
            provisionCredential loyalty "points" -> C1
            wait 2 s
            listCredentials -> 1
            enterWiredMode C1
            transceive 8010000000 -> 000000649000
            performCardEmulationTransactionWithCurrentCredential
            reader 100 s
            endCardEmulation
            enterWiredMode C1
            transceive 8010000000 -> 000000699000
            endWiredMode
            deleteCredential C1
            listCredentials -> 0
            """, "steps.txt")
        let card = try ChildProcess(
            Binary.path, ["virtual", "secure-element", "--vpcd", "127.0.0.1:\(service.ports[1])"],
            environment: service.environment, directory: folder.path)
        defer { card.signal(SIGKILL) }
        let record =
            "exec \(Binary.path) record -o c.pcapng --wait 60 --element reader --reader '\(service.readers[1])' --vpcd 127.0.0.1:\(service.ports[0]) --key 404142434445464748494A4B4C4D4E4F credential steps.txt > out.txt 2> err.txt"
        let recorder = try ChildProcess("sh", ["-c", record], environment: service.environment, directory: folder.path)
        defer { recorder.signal(SIGKILL) }
        recorder.closeInput()
        // It cannot wait for one reader: the card in the other is there already.
        var read = ""
        try await until("opensc-tool meets the card: \(text("out.txt", in: folder)) \(text("err.txt", in: folder))") {
            guard recorder.poll() == nil, text("out.txt", in: folder).contains("performCardEmulation") else {
                return recorder.poll() != nil
            }
            read = try await ProcessRunner.run(
                "opensc-tool", ["-r", "0", "-s", "00A4040009F054444C4F59010101", "-s", "80200000020005"],
                environment: service.environment, directory: folder.path
            ).outputText
            return read.contains("Received")
        }
        let end = recorder.waitForEnd(timeout: .seconds(120))
        #expect(read.contains("00 00 00 69"), "\(read)")
        #expect(end == .status(0), "\(text("out.txt", in: folder)) \(text("err.txt", in: folder))")
        let replayed = try await Binary.run("replay", "c.pcapng", in: folder)
        #expect(replayed.end == .status(0), "\(replayed.outputText) \(replayed.errorText)")
    }

    private func text(_ name: String, in folder: TemporaryFolder) -> String {
        (try? folder.octets(name)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    private func until(_ what: @autoclosure () -> String, _ condition: () async throws -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(120)
        while try await !condition() {
            guard ContinuousClock.now < deadline else {
                throw ProcessRunner.Failure(description: "not in two minutes: \(what())")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }
}
