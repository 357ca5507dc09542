// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import Octets
import SessionSupport
import TagTransport
import Testing
import TraceFile
import VirtualCards

@testable import Replay

/// Travel documents, run afresh: every mapping and cipher, and what real chips do.
@Suite struct ResealingPassportTests {
    static let cards = [
        "virtual:passport?pace=ecdh-gm-3des:12", "virtual:passport?pace=ecdh-gm-aes192:15",
        "virtual:passport?pace=ecdh-gm-aes256:18",
        "virtual:passport?pace=ecdh-im-aes128:13", "virtual:passport?pace=ecdh-im-aes256:11",
        "virtual:passport?pace=dh-gm-aes128:0",
        "virtual:passport?pace=dh-gm-3des:2", "virtual:passport?pace=dh-im-aes256:1", "virtual:passport?pace=ecdh-cam-aes128:12",
        "virtual:passport?pace=ecdh-cam-aes192:17", "virtual:passport?pace=ecdh-gm-aes128:explicit-13",
        "virtual:passport?pace=dh-gm-aes128:explicit-1", "virtual:passport?pace=ecdh-gm-aes128:13&quirk=nonce-32",
        "virtual:passport?pace=dh-gm-aes128:0&quirk=pad-dh", "virtual:passport?pace=ecdh-gm-aes128:13&quirk=no-84",
        "virtual:passport?pace=ecdh-gm-aes128:13&quirk=drop", "virtual:passport?pace=ecdh-gm-aes128:13&fault=61%408,61%4020",
        "virtual:passport?ca=ecdh-aes128:13", "virtual:passport?ca=ecdh-3des:12", "virtual:passport?ca=dh-aes256:2",
        "virtual:passport?ca=dh-3des:0", "virtual:passport?ca=ecdh-aes128:explicit-13,dh-aes128:1",
        "virtual:passport?ca=ecdh-aes192:13&quirk=no-ca",
        "virtual:passport?aa=rsa", "virtual:passport?aa=ecdsa:17", "virtual:passport?chunk=50&strict",
        "virtual:passport?fault=6C%4010",
        "virtual:passport?fault=61%4012", "virtual:passport?quirk=exact-le", "virtual:passport?quirk=6C&chunk=80",
        "virtual:passport?pace=ecdh-gm-aes128:13&ca=ecdh-aes256:13&aa=rsa",
    ]

    static func session(_ card: String, _ arguments: [String: JSONValue] = [:]) async throws -> Session {
        let usual: [String: JSONValue] = [
            "mrzKey": .string(specimenKey), "dataGroups": .array(["com", "sod", "dg1"]), "performActiveAuth": .bool(true),
        ]
        return try await Session("passport", usual.merging(arguments) { $1 }, card: card)
    }

    @Test(arguments: cards) func aFreshRunGivesTheSame(_ card: String) async throws {
        let session = try await Self.session(card)
        #expect(session.result != nil)
        let replay = Replay(of: session.trace, secrets: session.secrets)
        for seed in 1...2 as ClosedRange<UInt64> {
            let run = await ResealedRun(replay, seed: seed)
            #expect(run.report.isSame, "\(card), seed \(seed): \(run.text)")
            if !run.report.isSame { break }
        }
    }

    @Test func aTerminalProvesItselfAnew() async throws {
        let terminals = try SpecimenTerminals()
        let session = try await Self.session(
            "virtual:passport?dg=1,3,4&ta&ca=ecdh-aes128:13&pace=ecdh-gm-aes128:13",
            [
                "dataGroups": .array(["com", "sod", "dg1", "dg3", "dg4"]),
                "terminalKey": .string(Hex.encode(terminals.terminalKeyDER)),
                "terminalCertificates": .array(terminals.chain.map { .string(Hex.encode($0.octets)) }),
            ])
        let result = try #require(session.result)
        #expect(result.contains("terminalAuthentication"))
        let replay = Replay(of: session.trace, secrets: session.secrets)
        for seed in 1...5 as ClosedRange<UInt64> {
            let run = await ResealedRun(replay, seed: seed)
            #expect(run.report.isSame, "seed \(seed): \(run.text)")
        }
    }

    /// A removal, and a card that falls silent, come at their place.
    @Test(arguments: [4, 6, 9, 12, 20]) func faultsComeAtTheirPlace(_ place: Int) async throws {
        let session = try await Session.passport("virtual:passport?fault=remove%40\(place)")
        let run = await ResealedRun(Replay(of: session.trace, secrets: session.secrets), seed: 5)
        #expect(run.report.isSame, "\(run.text)")
    }

    // MARK: - What is not the same

    @Test(arguments: ["passport-bac", "passport-pace-ecdh-gm-aes128", "passport-chip-authentication"])
    func anotherFileIsNamedAtThePlainField(_ name: String) async throws {
        let run = await ResealedRun(
            try ResealingTests.replay(name), seed: 2, changed: ["dataGroups": .array(["com", "dg1"])])
        let divergence = try #require(run.report.divergence)
        #expect(divergence.kind == .command)
        let field = try #require(divergence.field)
        #expect(field.path.hasPrefix("iso7816.") && !field.path.contains("mac"), "\(field.path)")
        // EF.SOD was recorded, EF.DG1 is asked for (9303-10 4.6, 4.7).
        #expect(field.recorded.hasSuffix("011D") && field.now.hasSuffix("0101"), "\(field)")
    }

    @Test(arguments: [("passport-bac", 9), ("passport-pace-ecdh-gm-aes128", 14), ("passport-pace-dh-im-3des", 12)])
    func aWrongMACIsSaidToBeOne(_ name: String, _ place: Int) async throws {
        let run = await ResealedRun(try ResealingTests.replay(name), seed: 2) { number, command in
            guard number == place, var data = command.data, !data.isEmpty else { return command }
            data[data.endIndex - 1] ^= 0x40
            return CommandAPDU(cla: command.cla, ins: command.ins, p1: command.p1, p2: command.p2, data: data, le: command.le)
        }
        let divergence = try #require(run.report.divergence)
        #expect(divergence.kind == .command)
        #expect(divergence.sameBefore == place)
        #expect(divergence.field?.path == "secureMessaging.obj.mac", "\(divergence.field?.path ?? "")")
    }

    @Test func anotherPasswordFailsAsAtARealCard() async throws {
        let other: [String: JSONValue] = ["mrzKey": "L898902C<369080619406237"]
        let basic = await ResealedRun(try ResealingTests.replay("passport-bac"), seed: 1, changed: other)
        // 9303-11 4.3.3: the chip does not know the reader.
        #expect(basic.passed.last?.command[1] == 0x82)
        #expect(basic.passed.last?.answer == [0x63, 0x00])
        #expect(!basic.report.isSame)
        let pace = await ResealedRun(
            try ResealingTests.replay("passport-pace-dh-im-3des"), seed: 1, changed: ["can": "123457"])
        let token = try #require(pace.passed.first { $0.command[0] == 0x00 && $0.command[1] == 0x86 })
        #expect(token.answer == [0x63, 0x00])
        #expect(!pace.report.isSame)
    }

    @Test func aPINIsCounted() async throws {
        let session = try await Session(
            "passport", ["pin": "1234", "dataGroups": .array(["com", "dg1"]), "performActiveAuth": .bool(false)],
            card: "virtual:passport?pace=ecdh-gm-aes128:13&pin=1234")
        #expect(session.result != nil)
        let replay = Replay(of: session.trace, secrets: session.secrets)
        let right = await ResealedRun(replay, seed: 1)
        #expect(right.report.isSame, "\(right.text)")
        let wrong = await ResealedRun(replay, seed: 1, changed: ["pin": "1235"])
        #expect(wrong.passed.contains { $0.answer == [0x63, 0xC2] })
    }

    @Test func whatIsMissingIsNamedBeforeTheRun() async throws {
        let session = try await Self.session("virtual:passport?ca=ecdh-aes128:13&pace=ecdh-cam-aes128:13")
        let without = SecretStore(session.secrets.records.filter { $0.name != CardKnowledge.chipKey })
        let run = await ResealedRun(Replay(of: session.trace, secrets: without), seed: 1)
        #expect(run.report.blocked?.reason == .key(CardKnowledge.chipKey))
        #expect(run.passed.isEmpty)
        let basic = try await Session.passport()
        let nothing = await ResealedRun(Replay(of: basic.trace, secrets: SecretStore()), seed: 1)
        #expect(nothing.report.blocked != nil)
        #expect(nothing.passed.isEmpty)
    }

    /// A signature over a fresh challenge needs the chip's key: without it the recorded one is given, and it is said.
    @Test func aSignatureThatCannotBeMadeAnewIsSaidBeforeTheRun() async throws {
        let session = try await Self.session("virtual:passport?aa=ecdsa:13")
        let without = SecretStore(session.secrets.records.filter { $0.name != CardKnowledge.signingKey })
        let replay = Replay(of: session.trace, secrets: without)
        let call = try #require(replay.session.flowCall)
        let transport = replay.session.transport(replay.session.transports[0], during: call)
        let matching = try ResealedMatching(
            replay.session, transport: transport, trace: session.trace, secrets: without, arguments: call.arguments, seed: 1)
        #expect(matching.notes.count == 1)
        let run = await ResealedRun(replay, seed: 1)
        let divergence = try #require(run.report.divergence)
        #expect(divergence.kind == .result)
        #expect(divergence.field?.path.contains("ctive") == true)
    }
}
