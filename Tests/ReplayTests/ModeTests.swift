// SPDX-License-Identifier: MIT

import Flows
import Foundation
import SessionSupport
import TagTransport
import TestSupport
import Testing
import TraceFile
import Tracing

@testable import Replay

/// A recording of what a closure does to a card of files.
func recorded(
    card: String = "virtual:filesystem", _ body: (any NFCTagTransport) async throws -> Void
) async throws -> (trace: Trace, secrets: SecretStore) {
    let folder = try TemporaryFolder()
    let recording = try Recording(to: folder("a.pcapng"))
    let transport = recording.wrap(try virtualCard(card))
    try await recording.run { try await body(transport) }
    try recording.close()
    let trace = try Trace.load(path: folder("a.pcapng"))
    return (trace, try SecretStore.load(forTrace: folder("a.pcapng")).store)
}

func options(_ change: (inout ReplayOptions) -> Void) -> ReplayOptions {
    var options = ReplayOptions()
    change(&options)
    return options
}

/// Which modes there are, which is taken, and what each compares.
@Suite struct ModeTests {
    /// INTERNAL AUTHENTICATE, whose data the grammar marks as drawn; the card of files does not know it.
    private static func internalAuthenticate(_ challenge: String) -> CommandAPDU {
        CommandAPDU(cla: 0, ins: 0x88, p1: 0, p2: 0, data: Data(hex(challenge)))
    }

    @Test func inFieldsWhatIsDrawnMayDifferAndInBytesNot() async throws {
        let (trace, secrets) = try await recorded { _ = try await $0.sendAPDU(Self.internalAuthenticate("0011223344556677")) }
        let other = Self.internalAuthenticate("8899AABBCCDDEEFF")
        let bytes = Replay(of: trace, secrets: secrets)
        let found = await #expect(throws: Divergence.self) { try await bytes.run { _ = try await $0.sendAPDU(other) } }
        #expect(found?.field?.path.hasPrefix("iso7816.command.data") == true)
        let fields = Replay(of: trace, secrets: secrets, options: options { $0.mode = .fields })
        let status = try await fields.run { card in try await card.sendAPDU(other).statusWord }
        #expect(status == 0x6D00)
    }

    @Test func inFieldsAnythingElseIsNamedByItsPath() async throws {
        let (trace, secrets) = try await recorded { _ = try await $0.sendAPDU(Self.internalAuthenticate("0011223344556677")) }
        let fields = Replay(of: trace, secrets: secrets, options: options { $0.mode = .fields })
        let longer = Self.internalAuthenticate("8899AABBCCDDEEFF00")
        let found = await #expect(throws: Divergence.self) { try await fields.run { _ = try await $0.sendAPDU(longer) } }
        #expect(found?.field?.path == "iso7816.command.lc")
        let other = CommandAPDU(cla: 0, ins: 0x88, p1: 0, p2: 7, data: Data(hex("8899AABBCCDDEEFF")))
        let second = await #expect(throws: Divergence.self) { try await fields.run { _ = try await $0.sendAPDU(other) } }
        #expect(
            second?.field
                == Divergence.Field(path: "iso7816.command.p2", place: "byte 4 of 13", recorded: "00", now: "07"))
    }

    @Test func aDrawnValueBindsAtFirstSightAndMustRecur() async throws {
        let (trace, secrets) = try await recorded { card in
            for _ in 0..<2 { _ = try await card.sendAPDU(Self.internalAuthenticate("0011223344556677")) }
        }
        let fields = Replay(of: trace, secrets: secrets, options: options { $0.mode = .fields })
        try await fields.run { card in
            for _ in 0..<2 { _ = try await card.sendAPDU(Self.internalAuthenticate("8899AABBCCDDEEFF")) }
        }
        let found = await #expect(throws: Divergence.self) {
            try await fields.run { card in
                _ = try await card.sendAPDU(Self.internalAuthenticate("8899AABBCCDDEEFF"))
                _ = try await card.sendAPDU(Self.internalAuthenticate("8899AABBCCDDEE00"))
            }
        }
        #expect(found?.sameBefore == 1)
        #expect(found?.kind == .command)
    }

    @Test(arguments: ["virtual:passport", "virtual:passport?pace=ecdh-gm-aes128:13"])
    func answersThatAreBoundToTheCallersRandomBytesAreNoMatterForFields(_ card: String) async throws {
        let session = try await Session.passport(card)
        let replay = Replay(of: session.trace, secrets: session.secrets, options: options { $0.mode = .fields })
        guard case .boundAnswers(let packet)? = replay.readiness?.reason else {
            Issue.record("\(String(describing: replay.readiness))")
            return
        }
        // The first answer that is bound is that of the key agreement, long before the first file.
        #expect(packet < 12)
        #expect(await replay.run().blocked?.reason == .boundAnswers(packet))
    }

    @Test func withoutAModeTheStrictestIsTakenThatTheSecretsAllow() async throws {
        let session = try await Session.passport()
        #expect(Replay(of: session.trace, secrets: session.secrets).chosenMode == .bytes)
        let fresh = options { $0.entropy = .fresh }
        #expect(Replay(of: session.trace, secrets: session.secrets, options: fresh).chosenMode == .resealed)
        // Files in another order meet other counters: their messages have to be sealed afresh.
        let loose = options { $0.order = .loose }
        #expect(Replay(of: session.trace, secrets: session.secrets, options: loose).chosenMode == .resealed)
        // Without the random bytes, but with the password, the session is sealed afresh; without both it cannot be.
        let bare = SecretStore(session.secrets.records.filter { $0.kind != .entropy })
        #expect(Replay(of: session.trace, secrets: bare).chosenMode == .resealed)
        let blocked = try #require(Replay(of: session.trace, secrets: SecretStore()).readiness)
        #expect(blocked.reason == .entropy("bac.rndIFD"))
        #expect(blocked.helps == ["mrzKey"])
        let given = options { $0.arguments = ["mrzKey": .string(specimenKey)] }
        #expect(Replay(of: session.trace, secrets: SecretStore(), options: given).chosenMode == .resealed)
        let script = try await Session.script("00A40000023F00")
        #expect(Replay(of: script.trace, secrets: script.secrets, options: fresh).chosenMode == .bytes)
    }

    @Test func onePasswordGivenAgainTakesThePlaceOfAnother() async throws {
        let session = try await Session.passport("virtual:passport?pace=ecdh-gm-aes128:13")
        let given = options { $0.arguments = ["can": "123456"] }
        let report = await Replay(of: session.trace, secrets: session.secrets, options: given).run()
        // Another password is another reference in MSE:Set AT.
        #expect(report.divergence?.subject == "MSE:Set AT, PACE")
        let same = options { $0.arguments = ["mrzKey": .string(specimenKey)] }
        #expect(await Replay(of: session.trace, secrets: session.secrets, options: same).run().isSame)
    }

    @Test func aSeedGivesTheSameRandomBytesInEveryRun() async throws {
        let session = try await Session.passport()
        func cryptogram(_ seed: UInt64) async throws -> String? {
            let seeded = options {
                $0.mode = .bytes
                $0.entropy = .seed(seed)
            }
            return await Replay(of: session.trace, secrets: session.secrets, options: seeded).run().divergence?.field?.now
        }
        let first = try await cryptogram(7)
        #expect(first != nil)
        #expect(try await cryptogram(7) == first)
        #expect(try await cryptogram(8) != first)
    }

    @Test func answersTakeTheirTimeOnlyWhereItIsAskedFor() async throws {
        let session = try await Session.script("00A40000023F00\n00B0810010")
        /// How long a replay takes where every answer, and all after it, comes so much later.
        func seconds(_ scale: Double, late milliseconds: UInt64 = 150) async -> Double {
            var trace = session.trace
            var late: UInt64 = 0
            for index in trace.rows.indices {
                if trace.rows[index].direction == .received, trace.rows[index].body.first != 0x3B {
                    late += milliseconds * 1_000_000
                }
                trace.rows[index].time += late
            }
            let report = await Replay(of: trace, secrets: session.secrets, options: options { $0.timeScale = scale }).run()
            #expect(report.isSame)
            return report.seconds
        }
        #expect(await seconds(1) >= 0.3)
        #expect(await seconds(0.5) >= 0.15)
        // Two hours late.
        #expect(await seconds(0, late: 3_600_000) < 60)
    }

    @Test func oneImportAndThreeLinesReplayAUsersOwnTest() async throws {
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        let transport = recording.wrap(try virtualCard("virtual:filesystem"))
        let label = try await recording.run { try await transport.sendAPDU(Self.internalAuthenticate("00")).statusWord }
        try recording.close()

        let replayed = try await Replay(of: folder("a.pcapng")).run { card in
            try await card.sendAPDU(Self.internalAuthenticate("00")).statusWord
        }
        #expect(replayed == label)
    }
}
