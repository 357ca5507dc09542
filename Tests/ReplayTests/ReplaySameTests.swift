// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Flows
import Foundation
import PCSC
import Replay
import SessionSupport
import TagTransport
import TestSupport
import Testing
import TraceFile
import Tracing
import VirtualCards

extension ReplayReport {
    var divergence: Divergence? { if case .differs(let divergence) = verdict { divergence } else { nil } }
    var blocked: Blocked? { if case .blocked(let blocked) = verdict { blocked } else { nil } }
}

/// What was recorded, played back unchanged.
@Suite struct ReplaySameTests {
    static let scripts: [(String, String, String)] = [
        ("files and a reset", "virtual:filesystem", "00A40000023F00\n!reset\n00B0810010\n= 9000\n00A4000002FFFF\n= 6A82"),
        ("a wrong PIN", "virtual:filesystem", "00200001 04 39393939\n= 63C2\n00200001 04 31323334\n= 9000"),
        ("an extended read of 40,000 bytes", "virtual:filesystem", "00A40000020003\n00B00000009C40\n= 9000"),
        ("a removal asked for", "virtual:filesystem", "00A40000023F00\n!remove\n00A40000023F00"),
        ("a card pulled in the second command", "virtual:filesystem?fault=remove%402", "00A40000023F00\n00B0810010"),
        ("a card that falls silent", "virtual:filesystem?fault=mute%402", "00A40000023F00\n00B0810010"),
        ("an answer that is not what the script wants", "virtual:filesystem", "00A4000002FFFF\n= 9000"),
        ("waiting, which takes no time in a replay", "virtual:filesystem", "00A40000023F00\n!wait 2000\n00A40000023F00"),
    ]

    @Test(arguments: scripts.indices) func aScriptReplaysTheSame(_ index: Int) async throws {
        let (name, card, text) = Self.scripts[index]
        let session = try await Session.script(text, card)
        let report = await Replay(of: session.trace, secrets: session.secrets).run()
        #expect(report.isSame, "\(name): \(report.divergence?.description ?? report.blocked?.text ?? "")")
        #expect(report.exchanges == session.trace.exchanges.count { $0.hasPrefix(">") })
        #expect(report.notCompared == 0)
        if text.contains("!wait") { #expect(report.seconds < 2) }
    }

    static let passports = [
        "virtual:passport", "virtual:passport?seed=7", "virtual:passport?chunk=100", "virtual:passport?fault=6C%4010",
        "virtual:passport?fault=61%4010", "virtual:passport?strict",
    ]

    @Test(arguments: passports) func aPassportReplaysTheSame(_ card: String) async throws {
        let session = try await Session.passport(card)
        #expect(session.result != nil)
        let report = await Replay(of: session.trace, secrets: session.secrets).run()
        #expect(report.isSame, "\(report.divergence?.description ?? report.blocked?.text ?? "")")
        #expect(report.mode == .bytes)
    }

    /// Every place at which a card may be pulled: before BAC, in it, in EF.COM, in the last file, and after all of it.
    @Test(arguments: 1...22) func aRemovalReplaysToTheSameErrorAtTheSamePlace(_ place: Int) async throws {
        let session = try await Session.passport("virtual:passport?fault=remove%40\(place)")
        let report = await Replay(of: session.trace, secrets: session.secrets).run()
        #expect(report.isSame, "\(report.divergence?.description ?? "")")
        #expect(session.trace.failures.count == (place <= 21 ? 1 : 0))
        if place <= 9 { #expect(session.trace.returns.last?.case == "tagConnectionLost") }
    }

    @Test func itWorksFromTheFileAndItsSideFileAlone() async throws {
        let session = try await Session.passport()
        #expect(await (try Replay(of: session.path)).run().isSame)
        let embedded = try await Session.passport(secrets: .embedded)
        #expect(await (try Replay(of: embedded.path)).run().isSame)
    }

    @Test func aReplayOfAReplaysRecordingIsTheSame() async throws {
        let session = try await Session.passport()
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("b.pcapng"))
        let model = try await Replay(of: session.path).run { transport in
            try await CoreExtendedNFC.readPassport(
                transport: recording.wrap(transport), mrzKey: specimenKey, dataGroups: [.com, .sod, .dg1],
                performActiveAuth: false)
        }
        try recording.close()
        #expect(model.mrz?.documentNumber == "L898902C")
        #expect(try Trace.load(path: folder("b.pcapng")).exchanges == session.trace.exchanges)
    }

    // MARK: - From code

    private func readNumber(_ transport: any NFCTagTransport) async throws -> [UInt8] {
        let number = try CardEnvironment.current.randomOctets(8, label: "test.number")
        let time = try CardEnvironment.current.calendarNanoseconds()
        let answer = try await transport.sendAPDU(CommandAPDU(cla: 0, ins: 0xA4, p1: 0, p2: 0, data: Data([0x3F, 0x00])))
        return number + "\(time)".utf8 + answer.octets
    }

    @Test func aCallFromCodeGetsTheSameRandomBytesAndTheSameTime() async throws {
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        let transport = recording.wrap(try virtualCard("virtual:filesystem"))
        let recorded = try await recording.run { try await readNumber(transport) }
        try recording.close()
        let replayed = try await Replay(of: folder("a.pcapng")).run { try await readNumber($0) }
        #expect(replayed == recorded)
    }

    @Test func aCallFromCodeIsBlockedWithoutItsCode() async throws {
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        let transport = recording.wrap(try virtualCard("virtual:filesystem"))
        _ = try await recording.run("mine()") { try await readNumber(transport) }
        try recording.close()
        let report = await (try Replay(of: folder("a.pcapng"))).run()
        #expect(report.blocked?.reason == .callFromCode("mine()"))
    }

    @Test func ofTwoCallsTheFirstIsPlayedWithItsOwnExchangesAlone() async throws {
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        let transport = recording.wrap(try virtualCard("virtual:filesystem"))
        let first = try await recording.run { try await readNumber(transport) }
        _ = try await recording.run { try await readNumber(transport) }
        try recording.close()
        let replayed = try await Replay(of: folder("a.pcapng")).run { try await readNumber($0) }
        #expect(replayed == first)
    }

    @Test func anErrorThatWasRecordedIsThrownAgain() async throws {
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        let transport = recording.wrap(try virtualCard("virtual:filesystem?fault=remove%401"))
        let lost = TransportError(.tagConnectionLost, code: 0x8010_0069)
        await #expect(throws: lost) { try await recording.run { try await readNumber(transport) } }
        try recording.close()
        await #expect(throws: lost) { try await Replay(of: folder("a.pcapng")).run { try await readNumber($0) } }
    }

    @Test func theCardTellsOfItselfWhatTheRecordedOneDid() async throws {
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        let card = try virtualCard("virtual:passport")
        let transport = recording.wrap(card)
        try await recording.run { _ = transport.identifier }
        try recording.close()
        try await Replay(of: folder("a.pcapng")).run { replayed in
            #expect(replayed.identifier == card.identifier)
            #expect(replayed is any ISO7816TagTransporting)
            #expect((replayed as? any CardConnection)?.atr == card.atr)
            #expect(
                (replayed as? any CardConnection)?.readerName == "virtual:passport (T=CL)"
                    || (replayed as? any CardConnection)?.readerName == "virtual:passport")
        }
    }

    // MARK: - The environment

    @Test func noReaderCanBeReachedInAReplay() async throws {
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        _ = recording.wrap(ScriptedTransport([]))
        try await recording.run {}
        try recording.close()
        try await Replay(of: folder("a.pcapng")).run { _ -> Void in
            await #expect(throws: TransportError(.readersForbidden)) { _ = try await PCSCContext.open() }
        }
    }

    @Test func aDrawThatWasNotRecordedStopsTheReplayAndIsNamed() async throws {
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        let transport = recording.wrap(try virtualCard("virtual:filesystem"))
        _ = try await recording.run { try await readNumber(transport) }
        try recording.close()
        let replay = try Replay(of: folder("a.pcapng"))
        let divergence = await #expect(throws: Divergence.self) {
            try await replay.run { transport in
                _ = try await readNumber(transport)
                // A library that swallows the error is found out all the same.
                _ = try? CardEnvironment.current.randomOctets(16, label: "test.another")
            }
        }
        #expect(divergence?.kind == .draw)
        #expect(divergence?.notes.contains { $0.contains("test.another, draw 1: 16 random bytes") } == true)
        let longer = await #expect(throws: Divergence.self) {
            try await replay.run { _ in _ = try CardEnvironment.current.randomOctets(9, label: "test.number") }
        }
        #expect(longer?.kind == .draw)
        #expect(longer?.notes.contains { $0.contains("8 bytes were recorded, 9 are wanted") } == true)
        let time = await #expect(throws: Divergence.self) {
            try await replay.run { _ in _ = try CardEnvironment.current.monotonicNanoseconds() }
        }
        #expect(time?.kind == .draw)
    }

    // MARK: - What is missing

    @Test func withoutItsSecretsAPassportIsBlockedAndTheReplayNamesWhatIsMissing() async throws {
        let session = try await Session.passport()
        try FileManager.default.removeItem(atPath: session.folder("a.secrets"))
        let replay = try Replay(of: session.path)
        #expect(replay.readiness?.reason == .entropy("bac.rndIFD"))
        let report = await replay.run()
        #expect(report.blocked?.reason == .entropy("bac.rndIFD"))
        #expect(report.blocked?.text == "the random bytes of this session are not here")
    }

    @Test func withoutItsSecretsASealedScriptIsBlocked() async throws {
        let session = try await Session.script("00200001 04 31323334", secrets: .none)
        #expect(await (try Replay(of: session.path)).run().blocked?.reason == .argument("script"))
    }

    @Test func withoutSecretsAScriptThatHasNoneReplays() async throws {
        let session = try await Session.script("00A40000023F00\n00B0810010", secrets: .none)
        #expect(await (try Replay(of: session.path)).run().isSame)
    }

    @Test func anotherSessionsSecretsAreRefusedWithBothIds() async throws {
        let one = try await Session.passport()
        let other = try await Session.passport()
        try one.folder.write(try other.folder.octets("a.secrets"), "a.secrets")
        let wanted = try #require(one.trace.header.session)
        let found = try #require(other.trace.header.session)
        #expect(throws: TraceFileError(.otherSession(wanted: wanted, found: found), path: "")) { try Replay(of: one.path) }
    }

    @Test func sealedBytesWithoutTheirSecretMatchAnythingAndAreCounted() async throws {
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"), secrets: .none)
        let transport = recording.wrap(try virtualCard("virtual:filesystem"))
        try await recording.run { _ = try await transport.sendAPDU(Self.verify("31323334")) }
        try recording.close()
        let trace = try Trace.load(path: folder("a.pcapng"))
        let replay = Replay(of: trace, secrets: SecretStore())
        try await replay.run { _ = try await $0.sendAPDU(Self.verify("39393939")) }
        // Another length is another command, with or without the secret.
        let divergence = await #expect(throws: Divergence.self) {
            try await replay.run { _ = try await $0.sendAPDU(Self.verify("3939393939")) }
        }
        #expect(divergence?.field?.path == "iso7816.command.lc")
    }

    private static func verify(_ pin: String) -> CommandAPDU {
        CommandAPDU(cla: 0, ins: 0x20, p1: 0, p2: 1, data: Data(hex(pin)))
    }

    @Test func aLongRecordingIsReadInTimeThatGrowsWithItsLength() throws {
        let interfaces = [
            TraceInterface(.apdu(0), description: "r"), TraceInterface(.reader(0), description: "r, events"),
            TraceInterface(.meta),
        ]
        var rows: [TraceRow] = []
        for packet in UInt64(1)...60_000 {
            rows.append(
                TraceRow(
                    time: packet, interface: 0, direction: .sent, packetID: packet, dissector: "iso7816", body: hex("00B0000000"))
            )
            rows.append(
                TraceRow(
                    time: packet, interface: 0, direction: .received, packetID: packet, dissector: "iso7816", body: hex("9000")))
        }
        let start = ContinuousClock.now
        _ = Replay(
            of: Trace(header: TraceHeader(session: nil), interfaces: interfaces, rows: rows, secrets: []), secrets: SecretStore())
        #expect(ContinuousClock.now - start < .seconds(60))
    }
}
