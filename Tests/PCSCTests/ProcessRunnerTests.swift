// SPDX-License-Identifier: MIT

import Foundation
import TestSupport
import Testing

@Suite struct ProcessRunnerTests {
    @Test func outputErrorOutputAndStatusAreGathered() async throws {
        let outcome = try await ProcessRunner.run(
            "sh", ["-c", "cat; echo \"$GIVEN\" >&2; exit 7"], environment: ["GIVEN": "value"], input: Data("in".utf8)
        )
        #expect(outcome.outputText == "in")
        #expect(outcome.errorText == "value\n")
        #expect(outcome.end == .status(7))
    }

    @Test func muchInputAndOutputDoNotBlockEachOther() async throws {
        let octets = Data(repeating: 0x41, count: 1 << 20)
        let outcome = try await ProcessRunner.run("cat", input: octets)
        #expect(outcome.output == octets)
        #expect(outcome.end == .status(0))
    }

    @Test func aSignalIsNotAStatus() async throws {
        #expect(try await ProcessRunner.run("sh", ["-c", "kill -9 $$"]).end == .signal(SIGKILL))
    }

    @Test func whatRunsTooLongIsKilledWithWhatItStarted() async throws {
        let outcome = try await ProcessRunner.run("sh", ["-c", "echo begun; sleep 600 & sleep 600"], timeout: .milliseconds(200))
        #expect(outcome.end == .timedOut)
        #expect(outcome.outputText == "begun\n")
    }

    @Test func aProgramThatIsNotThereIsAnError() async {
        await #expect(throws: ProcessRunner.Failure.self) { try await ProcessRunner.run("/no/such/program") }
    }
}
