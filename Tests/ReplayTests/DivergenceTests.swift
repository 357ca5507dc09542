// SPDX-License-Identifier: MIT

import Flows
import Foundation
import Octets
import Replay
import SessionSupport
import TagTransport
import TestSupport
import Testing
import TraceFile
import Tracing

/// Where two runs part, and what is said about it.
@Suite struct DivergenceTests {
    /// The trace with one octet of one answer changed.
    private func changed(_ trace: Trace, answer: Int, at place: Int, to mask: UInt8 = 0x01) -> (
        trace: Trace, packet: UInt64, frame: Int
    ) {
        var trace = trace
        let answers = trace.rows.indices.filter { index in
            let row = trace.rows[index]
            return row.direction == .received && row.packetID != 1
        }
        let index = answers[answer]
        trace.rows[index].body[place < 0 ? trace.rows[index].body.count + place : place] ^= mask
        return (trace, trace.rows[index].packetID ?? 0, trace.rows[index].frame)
    }

    // MARK: - Answers that were changed

    /// The answers of a passport session in order: 0-3 in plain (SELECT MF, EF.CardAccess, the application, GET CHALLENGE), 4
    /// BAC, 5-7 EF.COM, 8-17 EF.SOD, 18-20 DG1.
    struct Change: Sendable, CustomTestStringConvertible {
        var answer: Int
        var place: Int
        /// Whether the changed row's own check tells of the change.
        var isChecked: Bool
        var kind: String
        var testDescription: String { "answer \(answer), byte \(place)" }

        init(_ answer: Int, _ place: Int, _ isChecked: Bool, _ kind: String) {
            (self.answer, self.place, self.isChecked, self.kind) = (answer, place, isChecked, kind)
        }
    }

    static let changes = [
        // 6A83 for 6A82: the library goes on as before and reports another status.
        Change(1, -1, false, "result"),
        // 9001 for 9000: another way of selecting the master file is tried.
        Change(0, -1, false, "command"),
        Change(2, -1, false, "missing"), Change(2, -2, false, "missing"),
        // Another challenge gives another cryptogram.
        Change(3, 0, false, "command"), Change(3, 7, false, "command"),
        Change(3, -1, false, "missing"),
        Change(4, 0, true, "missing"), Change(4, 16, true, "missing"), Change(4, 31, true, "missing"),
        Change(4, 39, true, "missing"),
        Change(5, 2, true, "missing"), Change(5, 6, true, "missing"),
        Change(6, 3, true, "missing"), Change(7, 5, true, "missing"),
        Change(8, -3, true, "missing"), Change(9, 4, true, "missing"), Change(12, 100, true, "missing"),
        Change(17, 10, true, "missing"),
        Change(19, 4, true, "missing"), Change(20, 40, true, "result"), Change(20, -3, true, "result"),
    ]

    @Test(arguments: changes) func aChangedByteOfAnAnswerIsFoundByWhatTheLibraryThenDoes(_ change: Change) async throws {
        let session = try await Session.passport()
        let (trace, packet, frame) = changed(session.trace, answer: change.answer, at: change.place)
        let report = await Replay(of: trace, secrets: session.secrets).run()
        let divergence = try #require(report.divergence)
        switch divergence.kind {
        case .command:
            #expect(change.kind == "command")
            #expect(divergence.packet != nil)
            #expect(divergence.frame != nil)
            #expect(divergence.field?.path.hasPrefix("iso7816.command") == true)
            #expect(divergence.field?.recorded != divergence.field?.now)
        case .missing(let count):
            #expect(change.kind == "missing")
            #expect(count > 0)
            #expect(divergence.thrown != nil || change.answer > 5)
            // The run ends where the change was seen: right behind it, or with the file that it stands in.
            #expect(divergence.packet == packet + 1 || divergence.thrown != nil)
        case .result:
            #expect(change.kind == "result")
            #expect(divergence.field?.path.hasPrefix("result") == true)
            #expect(divergence.field?.recorded != divergence.field?.now)
        default: Issue.record("\(divergence.kind)")
        }
        #expect(
            divergence.causes.contains { $0.contains("exchange \(packet),") && $0.contains("\(frame)") } == change.isChecked,
            "\(divergence.causes)")
    }

    @Test func aChangeThatTheLibraryDoesNotLookAtIsTheSame() async throws {
        // An answer between 61 and 62 in EF.CardAccess's place is still no file; the ATR is not compared with anything.
        let session = try await Session.passport()
        var trace = session.trace
        let index = try #require(trace.rows.firstIndex { $0.direction == .received })
        trace.rows[index].body[5] ^= 0x01
        #expect(await Replay(of: trace, secrets: session.secrets).run().isSame)
    }

    // MARK: - Kinds

    private func recorded(_ body: (any NFCTagTransport) async throws -> Void) async throws -> Replay {
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        let transport = recording.wrap(try virtualCard("virtual:filesystem"))
        try await recording.run { try await body(transport) }
        try recording.close()
        let trace = try Trace.load(path: folder("a.pcapng"))
        return Replay(of: trace, secrets: try SecretStore.load(forTrace: folder("a.pcapng")).store)
    }

    private func divergence(
        _ replay: Replay, _ body: @escaping @Sendable (any NFCTagTransport) async throws -> Void
    ) async throws -> Divergence {
        try #require(await #expect(throws: Divergence.self) { try await replay.run(body) })
    }

    private static let select = CommandAPDU(cla: 0, ins: 0xA4, p1: 0, p2: 0, data: Data([0x3F, 0x00]))
    private static func read(_ length: UInt8) -> CommandAPDU { CommandAPDU(cla: 0, ins: 0xB0, p1: 0x81, p2: 0, le: length) }
    private static func verify(_ pin: String) -> CommandAPDU {
        CommandAPDU(cla: 0, ins: 0x20, p1: 0, p2: 1, data: Data(pin.utf8))
    }

    @Test func anotherCommandNamesTheFieldAndBothValues() async throws {
        let replay = try await recorded { card in
            _ = try await card.sendAPDU(Self.select)
            _ = try await card.sendAPDU(Self.read(16))
            _ = try await card.sendAPDU(Self.select)
        }
        let found = try await divergence(replay) { card in
            _ = try await card.sendAPDU(Self.select)
            _ = try await card.sendAPDU(Self.read(32))
        }
        #expect(found.kind == .command)
        #expect(found.packet == 4)
        #expect(found.sameBefore == 1)
        #expect(found.exchanges == 3)
        #expect(
            found.field
                == Divergence.Field(
                    path: "iso7816.command.le", place: "byte 5 of 5", recorded: "10", now: "20", recordedMeaning: "16 bytes",
                    nowMeaning: "32 bytes"))
        #expect(found.before?.number == 3)
        #expect(found.before?.what == "SELECT MF")
        #expect(found.after?.number == 5)
        #expect(found.notes.contains("the 4 bytes before it are the same"))
    }

    @Test func aCommandThatWasNotRecordedIsExtraAndIsNamedWithoutItsData() async throws {
        let replay = try await recorded { _ = try await $0.sendAPDU(Self.select) }
        let found = try await divergence(replay) { card in
            _ = try await card.sendAPDU(Self.select)
            _ = try await card.sendAPDU(Self.verify("8642"))
        }
        #expect(found.kind == .extra)
        #expect(found.packet == nil)
        #expect(found.subject == "VERIFY 01, 00200001 and 5 bytes")
    }

    @Test func aCommandThatIsAskedOnceMoreIsSaidToBeSo() async throws {
        let replay = try await recorded { _ = try await $0.sendAPDU(Self.select) }
        let found = try await divergence(replay) { card in
            _ = try await card.sendAPDU(Self.select)
            _ = try await card.sendAPDU(Self.select)
        }
        #expect(found.kind == .again(recordedTimes: 1))
    }

    @Test func exchangesThatNeverCameAreCounted() async throws {
        let replay = try await recorded { card in
            for _ in 0..<3 { _ = try await card.sendAPDU(Self.select) }
        }
        let found = try await divergence(replay) { _ = try await $0.sendAPDU(Self.select) }
        #expect(found.kind == .missing(count: 2))
        #expect(found.packet == 4)
    }

    @Test func aResetWhereACommandWasIsOfAnotherKind() async throws {
        let replay = try await recorded { _ = try await $0.sendAPDU(Self.select) }
        let found = try await divergence(replay) { _ = try await ($0 as? any CardConnection)?.resetCard() }
        #expect(found.kind == .kind)
        #expect(found.field == Divergence.Field(path: "step", place: "", recorded: "SELECT MF", now: "a reset"))
    }

    @Test func anotherResultIsNamedByItsPath() async throws {
        struct Outcome: Codable, Sendable { var count: Int; var names: [String] }
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        _ = recording.wrap(ScriptedTransport([]))
        _ = try await recording.run { Outcome(count: 1, names: ["a", "b"]) }
        try recording.close()
        let replay = try Replay(of: folder("a.pcapng"))
        #expect(try await replay.run { _ in Outcome(count: 1, names: ["a", "b"]) }.count == 1)
        let found = await #expect(throws: Divergence.self) { try await replay.run { _ in Outcome(count: 1, names: ["a", "c"]) } }
        #expect(found?.kind == .result)
        #expect(found?.field == Divergence.Field(path: "result.names.1", place: "", recorded: "\"b\"", now: "\"c\""))
    }

    @Test func aThrownErrorWhereAResultWasIsAnotherResult() async throws {
        struct Odd: Error {}
        let replay = try await recorded { _ = try await $0.sendAPDU(Self.select) }
        let found = try await divergence(replay) { card in
            _ = try await card.sendAPDU(Self.select)
            throw Odd()
        }
        #expect(found.kind == .result)
        #expect(found.field?.recorded == "returned")
        #expect(found.field?.now == "threw Odd")
    }

    @Test func aRecordingThatEndsBeforeTheAnswerIsTheSameAsFarAsItGoes() async throws {
        let session = try await Session.script("00A40000023F00\n00B0810010")
        var trace = session.trace
        let last = try #require(trace.rows.lastIndex { $0.direction == .received })
        trace.rows.removeSubrange(last...)
        let report = await Replay(of: trace, secrets: session.secrets).run()
        #expect(report.isSame)
        #expect(report.endsEarly)
    }

    @Test func anAnswerThatIsMissingInTheMiddleIsSaidToBe() async throws {
        let session = try await Session.script("00A40000023F00\n00B0810010")
        var trace = session.trace
        let last = try #require(trace.rows.lastIndex { $0.direction == .received })
        trace.rows.remove(at: last)
        let report = await Replay(of: trace, secrets: session.secrets).run()
        #expect(report.divergence?.kind == .unanswered)
        #expect(report.divergence?.packet == 4)
    }

    @Test func afterTheFirstDifferenceNothingIsAnswered() async throws {
        let replay = try await recorded { card in
            _ = try await card.sendAPDU(Self.select)
            _ = try await card.sendAPDU(Self.select)
        }
        let found = try await divergence(replay) { card in
            await #expect(throws: TransportError(.tagConnectionLost)) { try await card.sendAPDU(Self.read(1)) }
            await #expect(throws: TransportError(.tagConnectionLost)) { try await card.sendAPDU(Self.select) }
        }
        #expect(found.sameBefore == 0)
    }

    // MARK: - Secrets in reports

    @Test(arguments: ["4711", "47110815"]) func noPINStandsInAReport(_ pin: String) async throws {
        let replay = try await recorded { card in
            _ = try await card.sendAPDU(Self.verify("1234"))
            _ = try await card.sendAPDU(Self.select)
        }
        var reports: [Divergence] = []
        // In the place of a sealed command, in the place of an open one, and after all.
        reports.append(try await divergence(replay) { _ = try await $0.sendAPDU(Self.verify(pin)) })
        reports.append(
            try await divergence(replay) { card in
                _ = try await card.sendAPDU(Self.verify("1234"))
                _ = try await card.sendAPDU(Self.verify(pin))
            })
        reports.append(
            try await divergence(replay) { card in
                _ = try await card.sendAPDU(Self.verify("1234"))
                _ = try await card.sendAPDU(Self.select)
                _ = try await card.sendAPDU(Self.verify(pin))
            })
        for report in reports {
            let text = "\(report) \(String(reflecting: report))"
            for secret in [pin, "1234"] {
                #expect(!text.contains(Hex.encode(Array(secret.utf8))), "\(text)")
                #expect(!text.contains("\"\(secret)\""), "\(text)")
            }
        }
        if pin.count == 4 { #expect(reports[0].field?.now == "<sealed 4 bytes>") }
    }
}
