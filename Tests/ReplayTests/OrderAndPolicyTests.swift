// SPDX-License-Identifier: MIT

import Foundation
import SessionSupport
import TagTransport
import Testing
import TraceFile

@testable import Replay

/// Commands in another order, and commands that were never recorded.
@Suite struct OrderAndPolicyTests {
    private static func select(_ file: UInt16) -> CommandAPDU {
        CommandAPDU(
            cla: 0, ins: 0xA4, p1: 0, p2: 0x0C,
            data: Data([UInt8(truncatingIfNeeded: file >> 8), UInt8(truncatingIfNeeded: file)]))
    }
    private static func read(_ length: UInt8, at offset: UInt8 = 0) -> CommandAPDU {
        CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: offset, le: length)
    }

    private static func file(_ number: UInt16, _ card: any NFCTagTransport) async throws -> Data {
        _ = try await card.sendAPDU(select(number))
        return try await card.sendAPDU(read(16)).data
    }

    /// Two files read with the same octets, and what is in them.
    private func twoFiles() async throws -> (trace: Trace, secrets: SecretStore, one: Data, two: Data) {
        let kept = Kept()
        let (trace, secrets) = try await recorded { card in
            kept.values = [try await Self.file(1, card), try await Self.file(2, card)]
        }
        return (trace, secrets, kept.values[0], kept.values[1])
    }

    private final class Kept: @unchecked Sendable { var values: [Data] = [] }

    private func replay(
        _ recording: (trace: Trace, secrets: SecretStore), _ change: (inout ReplayOptions) -> Void = { _ in }
    ) -> Replay {
        Replay(of: recording.trace, secrets: recording.secrets, options: options(change))
    }

    // MARK: - Order

    @Test func filesReadInAnotherOrderAreTheSameInLooseOrderAloneAndHoldWhatIsTheirs() async throws {
        let (trace, secrets, one, two) = try await twoFiles()
        #expect(one != two)
        let strict = await #expect(throws: Divergence.self) {
            try await replay((trace, secrets)).run { card in
                _ = try await Self.file(2, card)
                _ = try await Self.file(1, card)
            }
        }
        #expect(strict?.sameBefore == 0)
        let read = try await replay((trace, secrets)) { $0.order = .loose }.run { card in
            [try await Self.file(2, card), try await Self.file(1, card)]
        }
        #expect(read == [two, one])
    }

    @Test func whatMovedIsTold() async throws {
        let session = try await Session.script("00A4000C020001\n00B0000010\n00A4000C020002\n00B0000010")
        let other = options {
            $0.order = .loose
            $0.arguments = ["script": "00A4000C020002\n00B0000010\n00A4000C020001\n00B0000010"]
        }
        let report = await Replay(of: session.trace, secrets: session.secrets, options: other).run()
        #expect(report.moved.count == 1)
        #expect(report.moved.first?.exchanges.count == 2)
        #expect(report.moved.first?.before == report.moved.first.map { $0.exchanges.lowerBound - 2 })
        // The script's result has its lines in the order of the script.
        #expect(report.divergence?.kind == .result)
    }

    @Test func anEqualCommandOfAnotherFileIsNeverAnsweredInItsPlace() async throws {
        let (trace, secrets, _, two) = try await twoFiles()
        let found = await #expect(throws: Divergence.self) {
            try await replay((trace, secrets)) { $0.order = .loose }.run { card in
                _ = try await Self.file(1, card)
                // The free step with these octets is that of the second file.
                let answer = try? await card.sendAPDU(Self.read(16))
                #expect(answer == nil || answer?.data != two)
            }
        }
        #expect(found?.kind != .result)
    }

    @Test func inAnyOrderWhatNeverCameIsStillMissing() async throws {
        let (trace, secrets, _, _) = try await twoFiles()
        let found = await #expect(throws: Divergence.self) {
            try await replay((trace, secrets)) { $0.order = .loose }.run { _ = try await Self.file(2, $0) }
        }
        #expect(found?.kind == .missing(count: 2))
    }

    @Test func rightsAreOfAContextToo() async throws {
        // The third file of the application is readable after VERIFY alone.
        let lines = [
            "00A4040C09F05441504445434B01", "00A4000C020103", "00B0000008", "0020000104 31323334", "00B0000008",
        ]
        let session = try await Session.script(lines.joined(separator: "\n"))
        let steps = Replay(of: session.trace, secrets: session.secrets).session.transports[0].steps
        let refused = try #require(steps.first { $0.answer?.status == 0x6982 }?.command?.octets)
        let card = RecordedCard(
            Replay(of: session.trace, secrets: session.secrets).session.transports[0], policy: .init(order: .loose))
        for line in lines.prefix(2) { _ = try card.apdu(hex(line)) }
        _ = try card.apdu(hex(lines[3]))
        // The nearest equal command in the recording was refused; this one comes after the PIN.
        #expect(try card.apdu(refused).suffix(2) == [0x90, 0x00])
    }

    // MARK: - Policies

    private static let extra = CommandAPDU(cla: 0, ins: 0xCA, p1: 0x5F, p2: 0x51, le: 0)

    private func answer(_ policy: UnrecordedPolicy, to command: CommandAPDU, last: Bool = false) async throws -> (
        ResponseAPDU, ReplayReport
    ) {
        let session = try await Session.script("00A4000C020001\n00B0000010\n00B0001010")
        let transport = Replay(of: session.trace, secrets: session.secrets).session.transports[0]
        let stage = try Replay(
            of: session.trace, secrets: session.secrets, options: options { $0.unrecorded = policy }
        ).prepare(nil, .bytes).get()
        let card = RecordedCard(transport, matching: stage.matching, policy: stage.policy)
        for step in transport.steps.prefix(last ? 3 : 1) { _ = try card.apdu(step.command?.octets ?? []) }
        let response = try ResponseAPDU(bytes: try card.apdu(command.octets))
        var report = ReplayReport(verdict: .same)
        report.unrecorded = card.guesses.map { .init(after: $0.after, command: $0.command, answer: $0.answer, policy: $0.policy) }
        return (response, report)
    }

    @Test func toStopIsTheFirstPolicy() async throws {
        await #expect(throws: TransportError(.tagConnectionLost)) { try await answer(.stop, to: Self.extra) }
        await #expect(throws: TransportError(.tagConnectionLost)) { try await answer(.stop, to: Self.extra, last: true) }
    }

    @Test(arguments: [false, true]) func aStatusWordIsGivenAsItWasAskedFor(_ last: Bool) async throws {
        let (response, report) = try await answer(.status(0x6A88), to: Self.extra, last: last)
        #expect(response.statusWord == 0x6A88)
        #expect(report.unrecorded.first?.policy == "6A88")
        #expect(report.unrecorded.first?.command.hasPrefix("GET DATA") == true)
    }

    @Test func theNextAnswerIsThatOfThisPlaceUntilTheRecordingIsUsedUp() async throws {
        let (response, report) = try await answer(.next, to: Self.extra)
        #expect(response.data.count == 16)
        #expect(report.unrecorded.count == 1)
        await #expect(throws: TransportError(.tagConnectionLost)) { try await answer(.next, to: Self.extra, last: true) }
    }

    @Test(arguments: [false, true]) func theNearestAnswerIsThatOfTheMostSimilarCommand(_ last: Bool) async throws {
        let (response, report) = try await answer(.nearest, to: Self.read(16, at: 0x11), last: last)
        let (same, _) = try await answer(.stop, to: Self.read(16))
        #expect(response.data.count == 16)
        #expect(report.unrecorded.first?.answer.hasPrefix("as exchange ") == true)
        let select = try await answer(.nearest, to: Self.select(2), last: last).0
        #expect(select.statusWord == 0x9000)
        #expect(select.data.isEmpty)
        #expect(same.statusWord == 0x9000)
    }

    @Test(arguments: [false, true]) func aModelReadsTheFilesThatTheTraceShowsAndSaysWhatIsGuessed(_ last: Bool) async throws {
        // Octets 8 to 24 were read in two pieces; nobody asked for them so.
        let (response, report) = try await answer(.model, to: Self.read(16, at: 8), last: last)
        let (first, _) = try await answer(.stop, to: Self.read(16))
        #expect(response.statusWord == 0x9000)
        #expect(response.data.prefix(8) == first.data.suffix(8))
        #expect(report.unrecorded.first?.answer.hasSuffix("guessed") == true)
        #expect(try await answer(.model, to: Self.select(0x7777)).0.statusWord == 0x6A82)
        #expect(try await answer(.model, to: CommandAPDU(cla: 0, ins: 0xF7, p1: 0, p2: 0)).0.statusWord == 0x6D00)
    }

    @Test func aRunThatLeavesTheRecordingComesBackToIt() async throws {
        let session = try await Session.script("00A4000C020001\n00B0000010\n00B0001010")
        let other = options {
            $0.unrecorded = .status(0x6A88)
            $0.arguments = ["script": "00A4000C020001\n00CA5F5100\n00B0001010"]
        }
        let report = await Replay(of: session.trace, secrets: session.secrets, options: other).run()
        #expect(report.unrecorded.count == 1)
        #expect(report.skipped == 1)
        // The result has other lines.
        #expect(report.divergence?.kind == .result)
    }

    @Test func aResetThatWasNotRecordedIsGivenWhereARunMayLeaveTheRecording() async throws {
        let session = try await Session.script("00A4000C020001\n00B0000010")
        let transport = Replay(of: session.trace, secrets: session.secrets).session.transports[0]
        let strict = RecordedCard(transport)
        #expect(throws: TransportError(.tagConnectionLost)) { try strict.reset() }
        let card = RecordedCard(transport, policy: .init(unrecorded: .nearest))
        #expect(try card.reset() == transport.row.atr)
        #expect(card.guesses.map(\.command) == ["a reset"])
        #expect(try card.apdu(hex("00A4000C020001")) == [0x90, 0x00])
    }

    @Test func policiesHaveNames() {
        for text in ["stop", "next", "nearest", "model", "6A82"] { #expect(UnrecordedPolicy(text)?.name == text) }
        for text in ["", "6A8", "6A822", "stopp", "GGGG"] { #expect(UnrecordedPolicy(text) == nil) }
    }
}
