// SPDX-License-Identifier: MIT

import CardSockets
import FoundationEssentials
import Octets
import Synchronization
import TestSupport
import Testing
import TraceFile

@testable import Replay

/// A recorded card as a program meets it.
@Suite struct ServedRecordingTests {
    private func served(_ name: String, _ afterwards: ServedCard.Afterwards = .stays) throws -> ServedCard {
        let replay = try Replay(of: PackageFiles.root.path + "/Traces/\(name).pcapng")
        return try #require(try replay.servedCards(afterwards).first)
    }

    private static let reads = ["00A4000C020001", "00B0000040", "00B0004040", "00B0008040"]

    private func ask(_ card: ServedCard, _ command: String) throws -> ReaderAnswer { card.transmit(try Hex.decode(command)) }

    private func play(_ card: ServedCard) throws {
        for command in Self.reads {
            guard case .octets(let answer) = try ask(card, command) else {
                Issue.record("\(command) was not answered")
                return
            }
            #expect(answer.suffix(2) == [0x90, 0x00])
        }
    }

    @Test func aRecordedRemovalComesWithItsCodeAndIsForGoodAtTheEnd() throws {
        let card = try served("removal-mid-read")
        #expect(card.atr == [0x3B, 0x85, 0x81, 0x31, 0xFE, 0x45, 0x80, 0x73, 0xF6, 0x01, 0x40, 0xCA])
        try play(card)
        #expect(card.departure() == nil)
        #expect(try ask(card, "00B000C040") == .removed(ServiceCode.removedCard))
        #expect(card.departure() == Departure(returnsAfter: nil))
        #expect(card.report().isSame)
        #expect(card.report().exchanges == 5)
    }

    @Test func whatAProgramDoesToTheReaderIsNotCompared() throws {
        let card = try served("removal-mid-read")
        #expect(card.reset() == .octets(card.atr))
        #expect(try ask(card, Self.reads[0]) == .octets([0x90, 0x00]))
        card.powerOff()
        card.powerOn()
        #expect(card.control(code: 0x4200_0D48, input: []) == .failed(ServiceCode.unsupportedFeature))
        #expect(card.eject() == .octets([]))
        // The reader itself knows that a card with contacts has no UID.
        #expect(try ask(card, "FFCA000000") == .octets([0x6A, 0x81]))
        guard case .octets(let answer) = try ask(card, Self.reads[1]) else {
            Issue.record("the recording does not go on")
            return
        }
        #expect(answer.count == 66)
        #expect(!card.hasDiverged)
    }

    @Test func theReaderKnowsTheUIDOfARecordedContactlessCard() throws {
        let card = try served("passport-bac")
        guard case .octets(let answer) = try ask(card, "FFCA000000") else {
            Issue.record("no UID")
            return
        }
        #expect(answer.count == 6)
        #expect(answer.suffix(2) == [0x90, 0x00])
        #expect(!card.hasDiverged)
    }

    @Test func afterTheFirstDifferenceNothingIsAnswered() throws {
        let card = try served("removal-mid-read")
        _ = try ask(card, Self.reads[0])
        #expect(try ask(card, "00B0000041") == .removed(ServiceCode.removedCard))
        #expect(try ask(card, Self.reads[1]) == .removed(ServiceCode.removedCard))
        #expect(card.departure() == nil)
        guard case .differs(let divergence) = card.report().verdict else {
            Issue.record("no difference was seen")
            return
        }
        #expect(divergence.field?.path == "iso7816.command.le")
        #expect(divergence.sameBefore == 1)
    }

    @Test func exchangesThatNeverCameAreMissing() throws {
        let card = try served("removal-mid-read")
        _ = try ask(card, Self.reads[0])
        guard case .differs(let divergence) = card.report().verdict else {
            Issue.record("no difference was seen")
            return
        }
        #expect(divergence.kind == .missing(count: 4))
    }

    @Test func aRecordingBeginsAgainWhenTheLastProgramHasGone() throws {
        let told = Mutex<[Bool]>([])
        let card = try served("removal-mid-read", .beginsAgain { report in told.withLock { $0.append(report.isSame) } })
        // Nothing was asked for: nothing to tell.
        #expect(!card.programsLeft())
        try play(card)
        _ = try ask(card, "00B000C040")
        #expect(card.programsLeft())
        _ = try ask(card, "00B0000041")
        #expect(card.programsLeft())
        try play(card)
        #expect(told.withLock { $0 } == [true, false])
        let other = try served("removal-mid-read")
        _ = try ask(other, Self.reads[0])
        #expect(!other.programsLeft())
        #expect(try ask(other, Self.reads[0]) == .removed(ServiceCode.removedCard))
    }

    @Test func aSealedAnswerWithoutItsSecretIsNotServed() throws {
        func blocked(_ comments: [String]) -> Blocked? {
            let rows = [
                TraceRow(time: 1, interface: 0, direction: .sent, packetID: 7, dissector: "iso7816", body: [0x1B, 1, 2, 3, 4]),
                TraceRow(
                    time: 2, interface: 0, direction: .received, packetID: 7, dissector: "iso7816", body: [0, 0],
                    comments: comments
                ),
            ]
            let trace = Trace(
                header: TraceHeader(session: nil), interfaces: [TraceInterface(.apdu(0), description: "r")], rows: rows,
                secrets: [])
            do { _ = try Replay(of: trace, secrets: SecretStore()).servedCards() } catch { return error }
            return nil
        }
        #expect(blocked([]) == nil)
        #expect(blocked(["tapdeck sealed 0+2"])?.text == "the sealed answer of exchange 7 is not here")
    }
}
