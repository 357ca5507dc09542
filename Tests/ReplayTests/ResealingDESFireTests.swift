// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import CardCrypto
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
        Channel(generation: "d40", cipher: .des, method: .legacy), Channel(generation: "d40", cipher: .twoKeyTripleDES, method: .legacy),
        Channel(generation: "ev1", cipher: .des, method: .iso), Channel(generation: "ev1", cipher: .twoKeyTripleDES, method: .iso),
        Channel(generation: "ev1", cipher: .threeKeyTripleDES, method: .iso), Channel(generation: "ev1", cipher: .aes, method: .aes),
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
}
