// SPDX-License-Identifier: MIT

import CardSockets
import CoreExtendedNFC
import Foundation
import SessionSupport
import Synchronization
import TagTransport
import Testing
import TraceFile

@testable import Replay

/// A live card made from what a trace shows.
@Suite struct TraceCardTests {
    private final class Guesses: Sendable {
        let list = Mutex<[TraceCard.Guess]>([])
        var count: Int { list.withLock { $0.count } }
    }

    private func card(_ script: String, _ guesses: Guesses = Guesses()) async throws -> TraceCard {
        let session = try await Session.script(script)
        let card = try TraceCard(session.trace, secrets: session.secrets) { guess in guesses.list.withLock { $0.append(guess) } }
        card.powerOn()
        return card
    }

    private func ask(_ card: TraceCard, _ command: String) -> [UInt8] {
        if case .response(let octets) = card.exchange(hex(command)) { octets } else { [] }
    }

    private static let script = """
        00A4040C09F05441504445434B01
        00A4000C020103
        00B0000008
        0020000104 34373131
        0020000104 31323334
        00B0000008
        00A4000C020102
        00B0000080
        00B0008080
        00B0010010
        """

    @Test func whatTheTraceShowsIsAnsweredAsItStandsThere() async throws {
        let guesses = Guesses()
        let card = try await card(Self.script, guesses)
        let session = try await Session.script(Self.script)
        let steps = Replay(of: session.trace, secrets: session.secrets).session.transports[0].steps
        for step in steps {
            guard case .apdu(_, let command, .response(let answer)) = step else { continue }
            #expect(card.exchange(command.octets) == .response(answer.octets))
        }
        #expect(guesses.count == 0)
        #expect(!card.atr.isEmpty)
    }

    @Test func aFileIsReadInOtherPiecesThanItWas() async throws {
        let guesses = Guesses()
        let card = try await card(Self.script, guesses)
        let whole = ["00A4040C09F05441504445434B01", "00A4000C020102"]
        for line in whole { #expect(ask(card, line) == [0x90, 0x00]) }
        let first = ask(card, "00B0000080").dropLast(2)
        let second = ask(card, "00B0008080").dropLast(2)
        #expect(first.count == 128 && second.count == 128)
        #expect(ask(card, "00B0004080").dropLast(2) == Array((first + second)[64..<192]))
        #expect(ask(card, "00B0000000").dropLast(2) == first + second)
        // Past the end, as the trace shows where it is.
        #expect(ask(card, "00B0020001") == [0x6B, 0x00])
        #expect(guesses.count >= 3)
        guesses.list.withLock { list in
            #expect(list.allSatisfy { $0.command.hasPrefix("READ BINARY") || $0.command.hasPrefix("SELECT") })
        }
    }

    @Test func rightsAreAsTheTraceShowsThem() async throws {
        let card = try await card(Self.script)
        _ = ask(card, "00A4040C09F05441504445434B01")
        _ = ask(card, "00A4000C020103")
        #expect(ask(card, "00B0000004") == [0x69, 0x82])
        #expect(ask(card, "002000010439393939") == [0x63, 0x00])
        #expect(ask(card, "00B0000004") == [0x69, 0x82])
        #expect(ask(card, "002000010431323334") == [0x90, 0x00])
        #expect(ask(card, "00B0000004").count == 6)
        // Power off and on: what was proven is gone.
        card.powerOff()
        #expect(card.exchange(hex("00B0000004")) == .silence)
        card.powerOn()
        _ = ask(card, "00A4040C09F05441504445434B01")
        _ = ask(card, "00A4000C020103")
        #expect(ask(card, "00B0000004") == [0x69, 0x82])
    }

    @Test func beyondTheTraceTheStandardsAnswersAreGuessed() async throws {
        let guesses = Guesses()
        let card = try await card(Self.script, guesses)
        for (command, status) in [
            ("00A4000C027777", "6A82"), ("00F7000000", "6D00"), ("80F7000000", "6E00"), ("0CB0000000", "6882"), ("00", "6700"),
            ("00CA010100", "6A88"), ("00B2010400", "6A83"),
        ] {
            #expect(ask(card, command) == hex(status), "\(command)")
        }
        #expect(guesses.count == 7)
    }

    /// The card of a trace as a transport, for the library.
    private final class TraceCardTransport: ISO7816TagTransporting {
        let card: TraceCard
        init(_ card: TraceCard) {
            self.card = card
            card.powerOn()
        }
        var identifier: Data { Data(card.identifier) }
        var initialAID: String { "" }
        func send(_ data: Data) async throws -> Data { throw TransportError.unsupported("frames") }
        func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
            guard case .response(let octets) = card.exchange(apdu.octets) else { throw TransportError(.timeout) }
            return try ResponseAPDU(bytes: octets)
        }
    }

    @Test(arguments: ["virtual:passport", "virtual:passport?pace=ecdh-gm-aes128:13", "virtual:passport?pace=dh-im-3des:0"])
    func aDocumentsChipIsOpenedAfreshAndHoldsTheFilesThatWereRead(_ reference: String) async throws {
        let session = try await Session.passport(reference)
        let guesses = Guesses()
        let card = try TraceCard(session.trace, secrets: session.secrets, seed: 99) { guess in
            guesses.list.withLock { $0.append(guess) }
        }
        #expect(card.opensAfresh)
        let transport = TraceCardTransport(card)
        let model = try await CoreExtendedNFC.readPassport(
            transport: transport, mrzKey: specimenKey, dataGroups: [.com, .sod, .dg1, .dg2], performActiveAuth: false)
        #expect(model.mrz != nil)
        #expect(model.dataGroupReadStatus[.dg1] == .read)
        // DG2 was never read: that it is not there is a guess, and the only one.
        #expect(model.dataGroupReadStatus[.dg2] != .read)
        #expect(guesses.list.withLock { $0.map { $0.response } } == [[0x6A, 0x82]])
    }

    @Test func aChipsHabitsComeAlong() async throws {
        let session = try await Session.passport("virtual:passport?quirk=refuse-le&chunk=60")
        let card = try TraceCard(session.trace, secrets: session.secrets)
        let model = try await CoreExtendedNFC.readPassport(
            transport: TraceCardTransport(card), mrzKey: specimenKey, dataGroups: [.com, .sod, .dg1], performActiveAuth: false)
        #expect(model.mrz != nil)
    }

    @Test func aTraceWithoutCommandsMakesNoCard() {
        let trace = Trace(header: TraceHeader(session: nil))
        #expect(throws: Blocked.self) { try TraceCard(trace, secrets: SecretStore()) }
    }

    @Test func anyOctetsGetAnAnswer() async throws {
        let card = try await card(Self.script)
        for length in 0..<300 {
            let octets = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ length) }
            guard case .response(let answer) = card.exchange(octets) else {
                Issue.record("no answer to \(length) bytes")
                continue
            }
            #expect(answer.count >= 2)
        }
    }
}
