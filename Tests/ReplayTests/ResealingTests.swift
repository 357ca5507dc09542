// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import Octets
import Synchronization
import TagTransport
import Testing
import TraceDecoding
import TraceFile

@testable import Replay

/// Mode `resealed` over the traces of `Traces/`: fresh random numbers on both sides, the same meaning.
@Suite struct ResealingTests {
    static let passports = [
        "passport-bac", "passport-pace-ecdh-gm-aes128", "passport-pace-dh-im-3des", "passport-pace-6300-then-bac",
        "passport-bac-bare-6700", "passport-chip-authentication", "passport-pace-cam-active-authentication",
    ]
    static let others = [
        "desfire-d40", "desfire-ev1-2k3des", "desfire-ev1-3k3des", "desfire-ev1-aes", "desfire-ev2", "ntag424-ev2",
        "ntag424-lrp",
    ]
    static let plain = ["filesystem-verify", "ntag424-sun", "removal-mid-read", "wrong-pin"]

    static func replay(_ name: String) throws -> Replay {
        try Replay(of: KeptTracesTests.folder.appendingPathComponent("\(name).pcapng").path)
    }

    @Test(arguments: passports + others + plain) func freshRandomNumbersGiveTheSame(_ name: String) async throws {
        let replay = try Self.replay(name)
        for seed in 1...20 as ClosedRange<UInt64> {
            let run = await ResealedRun(replay, seed: seed)
            #expect(run.report.isSame, "\(name), seed \(seed): \(run.text)")
            #expect(run.report.mode == .resealed)
            if !run.report.isSame { break }
        }
    }

    /// No result may rest on recorded random numbers: what travels under secure messaging is other octets altogether.
    @Test(arguments: passports) func nothingUnderSecureMessagingIsAsRecorded(_ name: String) async throws {
        let replay = try Self.replay(name)
        let run = await ResealedRun(replay, seed: 7)
        let recorded = replay.recorded
        #expect(run.passed.count == recorded.count)
        var secured = 0
        for (now, before) in zip(run.passed, recorded) where now.command[0] == 0x0C {
            secured += 1
            #expect(now.command != before.command)
            #expect(now.command.count == before.command.count)
            if before.answer.count > 2 { #expect(now.answer != before.answer) }
            #expect(now.answer.count == before.answer.count)
        }
        #expect(secured >= 6)
    }

    @Test(arguments: others) func everyAuthenticationIsRunAfresh(_ name: String) async throws {
        let replay = try Self.replay(name)
        let run = await ResealedRun(replay, seed: 7)
        let recorded = replay.recorded
        let begins = recorded.indices.filter { [0x0A, 0x1A, 0xAA, 0x71, 0x77].contains(recorded[$0].command[1]) }
        #expect(!begins.isEmpty)
        for place in begins {
            #expect(run.passed[place].command == recorded[place].command)
            #expect(run.passed[place].answer != recorded[place].answer)
            #expect(run.passed[place + 1].command != recorded[place + 1].command)
            #expect(run.passed[place + 1].answer != recorded[place + 1].answer)
        }
        // What is enciphered or has a MAC is other octets too.
        let after = recorded.indices.filter { $0 > begins[0] + 1 && recorded[$0].answer.count > 10 }
        #expect(after.contains { run.passed[$0].answer != recorded[$0].answer })
    }

    @Test func theSameSeedGivesTheSameOctets() async throws {
        let replay = try Self.replay("passport-pace-ecdh-gm-aes128")
        let (one, same, other) = (
            await ResealedRun(replay, seed: 3), await ResealedRun(replay, seed: 3), await ResealedRun(replay, seed: 4)
        )
        #expect(one.passed.map(\.command) == same.passed.map(\.command))
        #expect(one.passed.map(\.answer) == same.passed.map(\.answer))
        #expect(one.passed.map(\.answer) != other.passed.map(\.answer))
    }

    /// What passes is a session that the grammars open by themselves, with every code right.
    @Test(arguments: passports + others) func everyMACOfARunHoldsByTheGrammars(_ name: String) async throws {
        let replay = try Self.replay(name)
        let keys = ToldKeys()
        let run = await ResealedRun(replay, seed: 11, keySink: keys)
        var trace = replay.trace
        let live = run.passed.flatMap { [$0.command, $0.answer] }
        func isAPDU(_ row: TraceRow) -> Bool {
            guard case .apdu = trace.interfaces[row.interface].kind else { return false }
            return true
        }
        let asked = Set(trace.rows.filter { isAPDU($0) && $0.direction == .sent }.map(\.packetID))
        let places = trace.rows.indices.filter { isAPDU(trace.rows[$0]) && asked.contains(trace.rows[$0].packetID) }
        // Exchanges of the run stand in the rows of those recorded.
        #expect(places.count == live.count)
        for (place, octets) in zip(places, live) { trace.rows[place].body = octets }
        var told = keys.records.withLock { $0 }
        // Session keys hold after the exchange that agreed on them; here those that follow from others are left to the grammars.
        told.removeAll { $0.name.hasPrefix("secureMessaging.") || $0.name.hasPrefix("desfire.session") }
        var decoder = TraceDecoder(interfaces: trace.interfaces, secrets: SecretStore(told))
        for row in trace.rows { _ = decoder.push(row) }
        #expect(decoder.authentication.held == decoder.authentication.checked)
        var recorded = TraceDecoder(interfaces: trace.interfaces, secrets: replay.secrets)
        for row in replay.trace.rows { _ = recorded.push(row) }
        #expect(decoder.authentication.checked == recorded.authentication.checked)
    }
}
