// SPDX-License-Identifier: MIT

import Foundation
import TestSupport
import Testing

/// Show 7: whatever a file holds, the tool ends by itself.
@Suite struct RobustnessTests {
    static let verbs = ["show", "info", "replay"]

    @Test(arguments: verbs) func noMutatedFileEndsTheToolByASignal(_ verb: String) async throws {
        let folder = try TemporaryFolder()
        #expect(try await Binary.recordPassport(in: folder, "--embed-secrets").end == .status(0))
        let octets = try folder.octets("demo.pcapng")
        var generator = SeededGenerator(seed: UInt64(verb.count))
        var ends: Set<Int32> = []
        for _ in 0..<200 / Self.verbs.count + 1 {
            var copy = octets
            for _ in 0..<Int.random(in: 1...12, using: &generator) {
                let place = Int.random(in: copy.indices, using: &generator)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: copy[place] = UInt8.random(in: 0...255, using: &generator)
                case 1: copy[place] ^= 1 << UInt8.random(in: 0...7, using: &generator)
                case 2: copy.removeSubrange(place..<min(place + Int.random(in: 1...64, using: &generator), copy.count))
                default: copy.insert(contentsOf: copy[place..<min(place + 32, copy.count)], at: place)
                }
                if copy.count < 100 { copy = octets }
            }
            try folder.write(copy, "a.pcapng")
            let outcome = try await Binary.run(verb, "a.pcapng", in: folder)
            guard case .status(let status) = outcome.end, [0, 1, 3].contains(status) else {
                Issue.record("\(verb): \(outcome.end): \(outcome.errorText)")
                return
            }
            ends.insert(status)
        }
        #expect(ends.contains(3))
    }

    @Test(arguments: ["record", "info", "show", "replay", "import", "serve", "virtual", "demo", "bench", "readers", "doctor"])
    func theHelpOfEveryVerbFitsEightyColumnsAndListsWhatIsBuilt(_ verb: String) async throws {
        let folder = try TemporaryFolder()
        let outcome = try await Binary.run(verb, "--help", in: folder)
        #expect(outcome.end == .status(0))
        let lines = outcome.outputText.split(separator: "\n")
        #expect(lines.first?.hasPrefix("tapdeck \(verb)") == true)
        for line in lines { #expect(line.count <= 80, "\(line)") }
        #expect(lines.contains { $0.contains("--help") })
        // Options of issues that are not built are absent.
        for option in ["--until", "--proxy", "--rotate"] {
            #expect(!outcome.outputText.contains(option), "\(option)")
        }
        #expect(outcome.outputText.contains("--socket") == ["serve", "virtual"].contains(verb))
        #expect(outcome.outputText.contains("--lines") == ["serve", "virtual"].contains(verb))
    }

    @Test func theListOfCommandsFitsEightyColumnsAndNamesEachOnce() async throws {
        let folder = try TemporaryFolder()
        let outcome = try await Binary.run("--help", in: folder)
        #expect(outcome.end == .status(0))
        for line in outcome.outputText.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
        for verb in ["record", "info", "show", "replay", "import", "virtual", "demo", "bench", "readers", "doctor"] {
            #expect(outcome.outputText.components(separatedBy: "tapdeck \(verb) ").count == 2, "\(verb)")
        }
        for verb in ["fuzz", "redact", "export"] { #expect(!outcome.outputText.contains("tapdeck \(verb)")) }
    }

    @Test func withoutACommandItSaysWhatThereIsAndEndsWithTwo() async throws {
        let folder = try TemporaryFolder()
        let outcome = try await Binary.run([], in: folder)
        #expect(outcome.end == .status(2))
        #expect(outcome.output.isEmpty)
        #expect(outcome.errorText.contains("tapdeck record"))
    }

    /// A recording that nobody can be at a terminal for is not kept waiting.
    @Test func aSecretWithoutAValueAndWithoutATerminalIsWrongUsage() async throws {
        let folder = try TemporaryFolder()
        let outcome = try await Binary.run("record", "-o", "a.pcapng", "--card", "virtual:passport", "passport", in: folder)
        #expect(outcome.end == .status(2))
        #expect(!FileManager.default.fileExists(atPath: folder("a.pcapng")))
    }

    @Test func anInterruptedRecordingClosesItsFilesAndEndsWith130() async throws {
        let folder = try TemporaryFolder()
        try folder.write("00A40000023F00\n!wait 3600000\n00A40000023F00", "script.txt")
        let child = try ChildProcess(
            Binary.path, ["record", "-o", "a.pcapng", "--card", "virtual:filesystem", "apdu", "script.txt"],
            environment: Binary.environment(folder), directory: folder.path)
        child.closeInput()
        let deadline = ContinuousClock.now + .seconds(30)
        var isWaiting = false
        while !isWaiting, ContinuousClock.now < deadline {
            let shown = try await Binary.run("show", "a.pcapng", in: folder)
            isWaiting = shown.outputText.contains("SELECT MF")
        }
        child.signal(SIGINT)
        let outcome = child.collect(timeout: .seconds(20))
        #expect(outcome.end == .status(130))
        let info = try await Binary.run("info", "a.pcapng", in: folder)
        #expect(info.end == .status(0))
        #expect(info.outputText.contains("whole      yes"))
    }
}
