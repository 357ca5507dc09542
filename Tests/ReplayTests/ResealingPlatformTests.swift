// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import GlobalPlatform
import Octets
import SessionSupport
import TagTransport
import Testing
import TraceFile
import VirtualCards

@testable import Replay

/// SCP02 and SCP03, at every level that a host can ask for.
@Suite struct ResealingPlatformTests {
    struct Channel: Sendable, CustomTestStringConvertible {
        var option: String
        var length = 16
        var level: SecurityLevel
        var testDescription: String { "\(option), \(length * 8) bits, level \(Hex.encode([level.rawValue]))" }
    }

    static let channels = [
        Channel(option: "02-15", level: .mac), Channel(option: "02-55", level: .macAndEncryption),
        Channel(option: "03-00", level: .mac), Channel(option: "03-10", length: 24, level: .macAndEncryption),
        Channel(option: "03-30", length: 32, level: [.commandMAC, .responseMAC]),
        Channel(option: "03-70", level: [.commandMAC, .commandEncryption, .responseMAC]),
        Channel(option: "03-60", length: 24, level: .all), Channel(option: "03-70", length: 32, level: .all),
    ]

    static func work(
        _ transport: any NFCTagTransport, _ channel: Channel, key: [UInt8]? = nil, scope: RegistryScope = .applications
    ) async throws -> String? {
        let keys = try GlobalPlatformKeys(single: key ?? SecureElementConfiguration.testKey(channel.length))
        let host = GlobalPlatformHost(transport: transport, keys: keys)
        try await host.select()
        try await host.openChannel(level: channel.level)
        var text = "\(try await host.getStatus(scope))"
        text += "\(try await host.freeResources()) \(try await host.keyInformation())"
        // A second session draws anew.
        try await host.select()
        try await host.openChannel(level: channel.level)
        text += "\(try await host.getStatus(.issuerSecurityDomain))"
        return text
    }

    static func record(_ channel: Channel) async throws -> RecordedOperation {
        let key = SecureElementConfiguration.testKey(channel.length)
        let bits = channel.option.hasPrefix("03") ? "&key-bits=\(channel.length * 8)" : ""
        return try await RecordedOperation(
            "virtual:secure-element?scp=\(channel.option)\(bits)",
            keys: ["globalPlatform.enc": key, "globalPlatform.mac": key]
        ) { try await work($0, channel) }
    }

    @Test(arguments: channels) func aFreshSessionGivesTheSame(_ channel: Channel) async throws {
        let recorded = try await Self.record(channel)
        let before = recorded.replay.recorded
        for seed in 1...20 as ClosedRange<UInt64> {
            let passed = Answers()
            let report = await recorded.run(seed: seed) {
                try await Self.work(try WatchedTransport($0, answers: passed), channel)
            }
            #expect(report.isSame, "\(channel), seed \(seed): \(report.text)")
            guard report.isSame else { break }
            for (now, then) in zip(passed.all, before) where now.command[0] == 0x84 { #expect(now.command != then.command) }
            #expect(passed.all.count == before.count)
        }
    }

    @Test(arguments: channels) func anotherCommandIsNamedAtThePlainField(_ channel: Channel) async throws {
        let recorded = try await Self.record(channel)
        let report = await recorded.run(seed: 3) { try await Self.work($0, channel, scope: .loadFiles) }
        let divergence = try #require(report.divergence)
        #expect(divergence.kind == .command)
        #expect(divergence.field?.path == "iso7816.command.p1", "\(divergence.field?.path ?? "")")
    }

    @Test(arguments: channels) func anotherKeyFailsAsAtARealCard(_ channel: Channel) async throws {
        let recorded = try await Self.record(channel)
        let other = [UInt8](repeating: 0x5A, count: channel.length)
        let report = await recorded.run(seed: 3) { try await Self.work($0, channel, key: other) }
        // The host finds the card's cryptogram wrong, and stops before the card could count.
        let divergence = try #require(report.divergence)
        #expect(divergence.thrown?.contains("ryptogram") == true, "\(divergence.thrown ?? "")")
    }

    @Test func theMissingKeysAreNamed() async throws {
        let recorded = try await Self.record(Self.channels[5])
        let without = SecretStore(
            recorded.replay.secrets.records.filter { !["globalPlatform.enc", "globalPlatform.mac"].contains($0.name) })
        let report = await Replay(of: recorded.replay.trace, secrets: without).runResealed(seed: 1) {
            try await Self.work($0, Self.channels[5])
        }
        #expect(report.blocked?.reason == .key("globalPlatform.enc"))
    }

    /// Challenges and MACs of sixteen octets are not what the grammar reads: that is said, and nothing is sent.
    @Test func whatIsNotUnderstoodIsBlocked() async throws {
        let key = SecureElementConfiguration.testKey(16)
        let recorded = try await RecordedOperation(
            "virtual:secure-element?scp=03-71", keys: ["globalPlatform.enc": key, "globalPlatform.mac": key]
        ) { transport in
            let host = GlobalPlatformHost(transport: transport, keys: try GlobalPlatformKeys(single: key))
            try await host.select()
            try await host.openChannel(level: .all, wantsLongMAC: true)
            return "\(try await host.getStatus(.applications))"
        }
        let report = await recorded.run(seed: 1) { _ in
            Issue.record("the run was begun")
            return nil
        }
        #expect(report.blocked != nil, "\(report.text)")
    }

    @Test func aCredentialSessionGivesTheSame() async throws {
        let session = try await Session(
            "credential",
            [
                "script": "startSession\nlistCredentials\n",
                "key": .string(Hex.encode(SecureElementConfiguration.testKey(16))), "configurations": .array([]),
                "credentials": .array([]),
            ],
            card: "virtual:secure-element")
        #expect(session.result != nil)
        let replay = Replay(of: session.trace, secrets: session.secrets)
        for seed in 1...20 as ClosedRange<UInt64> {
            let run = await ResealedRun(replay, seed: seed)
            #expect(run.report.isSame, "seed \(seed): \(run.text)")
            if !run.report.isSame { break }
        }
    }
}
