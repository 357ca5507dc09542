// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import SessionSupport
import TagTransport
import Testing
import TraceFile

@testable import Replay

/// DESFire and NTAG 424 DNA: every channel, writes in several frames, values, and what is not the same.
@Suite struct ResealingDESFireTests {
    struct Channel: Sendable, CustomTestStringConvertible {
        var generation: String
        var cipher: DESFireCipher
        var method: DESFireAuthentication
        var testDescription: String { "\(generation) \(cipher.rawValue) \(method.rawValue)" }
    }

    static let channels = [
        Channel(generation: "d40", cipher: .des, method: .legacy),
        Channel(generation: "d40", cipher: .twoKeyTripleDES, method: .legacy),
        Channel(generation: "ev1", cipher: .des, method: .iso),
        Channel(generation: "ev1", cipher: .twoKeyTripleDES, method: .iso),
        Channel(generation: "ev1", cipher: .threeKeyTripleDES, method: .iso),
        Channel(generation: "ev1", cipher: .aes, method: .aes),
        Channel(generation: "ev2", cipher: .aes, method: .ev2First),
    ]

    static func key(_ cipher: DESFireCipher) throws -> DESFireKey {
        try DESFireKey(cipher, (0..<cipher.keyLength).map { UInt8($0 * 2 + 16) })
    }

    /// What is done with the card; `length` is that of one read.
    static func work(
        _ transport: any NFCTagTransport, _ channel: Channel, length: Int = 20, key: DESFireKey? = nil, second: Bool = true
    ) async throws -> String? {
        var card = DESFireCard(transport: transport)
        try await card.selectApplication(Data([0xF0, 0x00, 0x01]))
        try await card.authenticate(keyNumber: 1, key: try key ?? Self.key(channel.cipher), method: channel.method)
        var octets: [UInt8] = []
        try await card.write(1, offset: 5, Data((0..<150).map { UInt8($0) }), mode: .enciphered)
        try await card.write(2, Data((0..<70).map { UInt8(255 - $0) }), mode: .maced)
        octets += try await card.read(1, offset: 3, length: length, mode: .enciphered)
        octets += try await card.read(1, mode: .enciphered)
        octets += try await card.read(2, length: 90, mode: .maced)
        octets += try await card.read(6, mode: .plain)
        try await card.credit(3, 25, mode: .enciphered)
        try await card.commitTransaction()
        octets += "\(try await card.value(3, mode: .enciphered))".utf8
        if second, channel.method == .ev2First {
            try await card.authenticate(keyNumber: 1, key: try key ?? Self.key(channel.cipher), method: .ev2NonFirst)
            octets += try await card.read(1, offset: 0, length: 40, mode: .enciphered)
        }
        return Hex.encode(octets)
    }

    static func card(_ channel: Channel) throws -> String {
        let key = Hex.encode(try key(channel.cipher).octets)
        let layout =
            "app F00001 \(channel.cipher.rawValue) keys 4; key 1 \(key); file 1 std 200 full 1110; file 2 std 100 mac 1110; "
            + "file 3 value 0..10000 100 full 1110; file 6 std 16 plain 1110 = 66726565"
        let text = layout.replacing(" ", with: "%20").replacing(";", with: "%3B").replacing("=", with: "%3D")
        return "virtual:desfire?generation=\(channel.generation)&layout=\(text)"
    }

    @Test(arguments: channels) func aFreshSessionGivesTheSame(_ channel: Channel) async throws {
        let recorded = try await RecordedOperation(try Self.card(channel)) { try await Self.work($0, channel) }
        for seed in 1...20 as ClosedRange<UInt64> {
            let report = await recorded.run(seed: seed) { try await Self.work($0, channel) }
            #expect(report.isSame, "\(channel), seed \(seed): \(report.text)")
            if !report.isSame { break }
        }
    }

    @Test(arguments: channels) func anotherLengthIsNamedAtThePlainField(_ channel: Channel) async throws {
        let recorded = try await RecordedOperation(try Self.card(channel)) { try await Self.work($0, channel) }
        let report = await recorded.run(seed: 3) { try await Self.work($0, channel, length: 21) }
        let divergence = try #require(report.divergence)
        #expect(divergence.kind == .command)
        #expect(divergence.field?.path == "desfire.place.length", "\(divergence.field?.path ?? "")")
    }

    @Test(arguments: channels) func anotherKeyFailsAsAtARealCard(_ channel: Channel) async throws {
        let recorded = try await RecordedOperation(try Self.card(channel)) { try await Self.work($0, channel) }
        let other = try DESFireKey(channel.cipher, [UInt8](repeating: 0x5A, count: channel.cipher.keyLength))
        let answers = Answers()
        let report = await recorded.run(seed: 3) { transport in
            try await Self.work(try WatchedTransport(transport, answers: answers), channel, key: other)
        }
        #expect(!report.isSame)
        #expect(answers.last == [0x91, 0xAE])
    }

    /// A backup of the key is not enough: the trace without it says what is missing.
    @Test func theMissingKeyIsNamed() async throws {
        let channel = Self.channels[5]
        let recorded = try await RecordedOperation(try Self.card(channel)) { try await Self.work($0, channel) }
        let without = SecretStore(recorded.replay.secrets.records.filter { $0.name != "desfire.key" })
        let report = await Replay(of: recorded.replay.trace, secrets: without).runResealed(seed: 1) {
            try await Self.work($0, channel)
        }
        #expect(report.blocked?.reason == .key("desfire.key"))
    }

    // MARK: - NTAG 424 DNA

    /// What is done with a tag; `file` is the one whose settings are asked for last.
    private static func tag(_ transport: any NFCTagTransport, _ method: DESFireAuthentication, file: UInt8 = 3) async throws
        -> String?
    {
        let select = try CommandAPDU(
            cla: 0, ins: 0xA4, p1: 4, p2: 0x0C, data: Data([0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x01]), ne: nil)
        _ = try await transport.sendAPDU(select)
        var card = DESFireCard(transport: transport, chaining: .iso)
        let key = try DESFireKey(.aes, [UInt8](repeating: 0, count: 16))
        try await card.authenticate(keyNumber: 0, key: key, method: method)
        var octets = [UInt8](try await card.cardUID())
        try await card.write(2, offset: 0, Data([1, 2, 3, 4]), mode: .plain)
        octets += try await card.read(2, length: 40, mode: .plain)
        try await card.authenticate(keyNumber: 0, key: key, method: method == .lrpFirst ? .lrpNonFirst : .ev2NonFirst)
        octets += try await card.cardUID()
        octets += "\(try await card.fileSettings(file))".utf8
        return Hex.encode(octets)
    }

    @Test(arguments: [DESFireAuthentication.ev2First, .lrpFirst]) func aTagGivesTheSame(_ method: DESFireAuthentication)
        async throws
    {
        let card = method == .lrpFirst ? "virtual:ntag424?lrp" : "virtual:ntag424"
        let recorded = try await RecordedOperation(card) { try await Self.tag($0, method) }
        for seed in 1...20 as ClosedRange<UInt64> {
            let report = await recorded.run(seed: seed) { try await Self.tag($0, method) }
            #expect(report.isSame, "seed \(seed): \(report.text)")
            if !report.isSame { break }
        }
        let other = await recorded.run(seed: 1) { try await Self.tag($0, method, file: 1) }
        #expect(other.divergence?.kind == .command)
        #expect(other.divergence?.field?.path.hasPrefix("desfire.") == true, "\(other.text)")
    }

    @Test(arguments: ["ntag424-ev2", "ntag424-lrp"]) func anotherKeyOfATagFails(_ name: String) async throws {
        let key: [String: JSONValue] = [
            "number": .integer(0), "type": "aes", "key": .string(String(repeating: "5A", count: 16)),
        ]
        let run = await ResealedRun(try ResealingTests.replay(name), seed: 1, changed: ["key": .object(key)])
        #expect(!run.report.isSame)
        #expect(run.passed.contains { $0.answer == [0x91, 0xAE] })
    }
}
