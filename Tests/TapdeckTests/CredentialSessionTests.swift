// SPDX-License-Identifier: MIT

import Foundation
import TestSupport
import Testing
import TraceFile

/// Credential sessions as `record`, `show` and `replay` have them.
@Suite struct CredentialSessionTests {
    /// Records a script.
    private func record(
        _ script: String, _ options: [String] = [], in folder: TemporaryFolder, to name: String = "c.pcapng"
    ) async throws -> ProcessRunner.Outcome {
        try folder.write(script, "steps.txt")
        return try await Binary.run(["record", "-o", name] + options + ["credential", "steps.txt"], in: folder)
    }

    /// `show`'s lines without their numbers and times: mark, what, answer and state.
    private func shown(_ name: String, in folder: TemporaryFolder) async throws -> (lines: [String], notes: String) {
        let outcome = try await Binary.run("show", name, in: folder)
        let lines = outcome.outputText.split(separator: "\n").map { line in
            line.dropFirst(19).split(separator: " ").joined(separator: " ")
        }
        return (lines, outcome.errorText)
    }

    /// Seconds of the line that has this text.
    private func time(_ text: String, _ name: String, in folder: TemporaryFolder) async throws -> Double? {
        let outcome = try await Binary.run("show", name, in: folder)
        let line = outcome.outputText.split(separator: "\n").first { $0.contains(text) }
        return line.flatMap { $0.split(separator: " ").dropFirst().first }.flatMap { Double($0) }
    }

    @Test func showHasACallALineAndTheStateBesideIt() async throws {
        let folder = try TemporaryFolder()
        let recorded = try await record(
            """
            startSession
            listCredentials                       -> 1
            enterWiredMode C1
            transceive 00A4040005F000000001       -> 9000
            wait 16 s
            transceive 00B0000004                 throws sessionInvalidated
            """, ["--rules", "ios27.1"], in: folder)
        #expect(recorded.end == .status(0), "\(recorded.errorText)")
        let (lines, notes) = try await shown("c.pcapng", in: folder)
        #expect(
            lines.dropFirst() == [
                "> startSession management", "> listCredentials -> 1 management", "> enterWiredMode C1 wired C1",
                "SELECT F000000001 23 bytes wired C1", "* 15 s without transceive invalid",
                "! > transceive threw sessionInvalidated invalid",
            ])
        #expect(notes.hasPrefix(" No.     time    ms    what                                      state\n"))
        #expect(notes.contains("program: transceive is not allowed in invalid; allowed: startSession"))
        #expect(notes.hasSuffix("rules ios27.1; 0 illegal transitions, 1 refused call, 0 contested\n"))
        #expect(notes.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(notes)")
        // Fifteen seconds after the exchange.
        let idle = try #require(try await time("15 s without transceive", "c.pcapng", in: folder))
        // The test clock passed; what the machine took comes on top.
        #expect((15.0..<31.0).contains(idle))
    }

    @Test func aSecondSessionIsRefusedWhileAnEmulationRuns() async throws {
        let folder = try TemporaryFolder()
        let recorded = try await record(
            """
            startSession
            listCredentials -> 1
            performTransaction C1
            startSession throws resourceUnavailable
            state -> cardEmulation
            wait 60 s
            state -> management
            """, in: folder)
        #expect(recorded.end == .status(0), "\(recorded.errorText)")
        let (lines, notes) = try await shown("c.pcapng", in: folder)
        #expect(lines.contains("! > startSession threw resourceUnavailable cardEmulation C1"), "\(lines)")
        #expect(lines.contains("* cardEmulationTimeout after 60 s management"), "\(lines)")
        #expect(notes.contains("0 illegal transitions, 1 refused call, 0 contested"))
        let start = try #require(try await time("> performTransaction", "c.pcapng", in: folder))
        let end = try #require(try await time("cardEmulationTimeout", "c.pcapng", in: folder))
        #expect((59.9...60.5).contains(end - start))
    }

    @Test func twoAssertionsInEightySecondsPassAndTheThirdFails() async throws {
        let folder = try TemporaryFolder()
        let recorded = try await record(
            """
            startSession
            acquirePresentmentAssertion -> A1
            relinquish A1
            wait 16 s
            acquirePresentmentAssertion -> A2
            relinquish A2
            wait 16 s
            acquirePresentmentAssertion throws resourceUnavailable
            wait 48 s
            acquirePresentmentAssertion -> A3
            wait 61 s
            relinquish A3 throws presentmentIntentAssertionTimeout
            """, in: folder)
        #expect(recorded.end == .status(0), "\(recorded.errorText)")
        let outcome = try await Binary.run("show", "c.pcapng", in: folder)
        var times: [Int] = []
        for line in outcome.outputText.split(separator: "\n") where line.contains("acquirePresentmentAssertion") {
            let words = line.split(separator: " ")
            if words.count > 1, let time = Double(words[1]) { times.append(Int(time)) }
        }
        #expect(times == [0, 16, 32, 80])
        #expect(outcome.outputText.contains("* 60 s of an assertion: it timed out"))
        #expect(try await Binary.run("replay", "c.pcapng", in: folder).end == .status(0))
    }

    @Test(arguments: [
        ("listCredentials -> 1\nenterWiredMode C1\nlistCredentials throws invalidSessionState", "listCredentials", "illegal"),
        ("transceive 00B0000004 throws invalidSessionState", "transceive", "illegal"),
        (
            "listCredentials -> 1\nperformTransaction C1\ntransceive 00B0000004 throws invalidSessionState", "transceive",
            "illegal"
        ),
        ("endCardEmulation throws invalidSessionState", "endCardEmulation", "illegal"),
        ("listCredentials -> 1\nenterWiredMode C1\nperformTransaction C1", "performTransaction", "contested"),
    ])
    func aWrongOrderHasItsErrorAndItsNote(_ steps: String, _ call: String, _ code: String) async throws {
        let folder = try TemporaryFolder()
        let recorded = try await record("startSession\n\(steps)\n", in: folder)
        #expect(recorded.end == .status(0), "\(recorded.errorText)")
        let json = try await Binary.run("show", "--json", "c.pcapng", in: folder)
        let noted = json.outputText.split(separator: "\n").compactMap { try? JSONValue.parse(String($0)) }.filter { row in
            row["annotations"]?.arrayValue?.contains { $0["code"]?.stringValue == code } == true
        }
        #expect(noted.count == 1)
        let (_, notes) = try await shown("c.pcapng", in: folder)
        let counts = code == "illegal" ? "0 illegal transitions, 1 refused call, 0" : "0 illegal transitions, 0 refused calls, 1"
        #expect(notes.contains("\(counts) contested"), "\(notes)")
        #expect(code == "contested" || notes.contains("\(call) is not allowed in"), "\(notes)")
        #expect(try await Binary.run("replay", "c.pcapng", in: folder).end == .status(0))
    }

    @Test func theRulesOfAReleaseAreSetTogether() async throws {
        let folder = try TemporaryFolder()
        let script = """
            startSession
            listCredentials -> 1
            enterWiredMode C1
            person timeOut
            performWiredTransaction C1 throws userAuthorizationTimedOut
            person decline
            enterWiredMode C1
            performCardEmulationTransactionWithCurrentCredential throws accessDenied
            state -> management
            acquirePresentmentAssertion -> A1
            wait 15 s
            relinquish throws presentmentIntentAssertionTimeout
            provisionCredential 11111111-2222-4333-8444-555555555555 "none" throws invalidInput
            """
        let old = try await record(script, ["--rules", "ios26.1"], in: folder)
        #expect(old.end == .status(0), "\(old.errorText)")
        let new = try await record(
            script.replacingOccurrences(of: "userAuthorizationTimedOut", with: "userCanceledAuthorization")
                .replacingOccurrences(of: "state -> management", with: "state -> wired")
                .replacingOccurrences(of: "acquirePresentmentAssertion", with: "endWiredMode\nacquirePresentmentAssertion")
                .replacingOccurrences(of: "wait 15 s", with: "wait 60 s")
                .replacingOccurrences(of: "throws invalidInput", with: "throws invalidProductConfigID"),
            in: folder, to: "new.pcapng")
        #expect(new.end == .status(0), "\(new.errorText)")
        for name in ["c.pcapng", "new.pcapng"] {
            #expect(try await Binary.run("replay", name, in: folder).end == .status(0))
        }
    }
}
