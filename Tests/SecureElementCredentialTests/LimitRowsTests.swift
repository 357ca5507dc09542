// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets
import TagTransport
import Testing
import VirtualCards

@testable import SecureElementCredential

/// Limits L1 to L12; L5 to L7 stand with the assertions.
@Suite struct LimitRowsTests {
    private let read = Data([0x00, 0xB0, 0x00, 0x00, 0x04])

    @Test func l1WiredModeEndsTheSessionAfterFifteenSecondsWithoutAnExchange() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.wired()
        await bench.clock.advance(by: .milliseconds(14_999))
        #expect(await session.state == .wired(credential: credential))
        await bench.clock.advance(by: .milliseconds(1))
        #expect(await session.state == .invalid)
    }

    @Test func l2AnExchangeHoldsOffTheBackgroundsEndForFifteenSeconds() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.wired()
        let gate = TestGate()
        await bench.element.waits("transceive", at: gate)
        let exchange = Task { [read] in try await session.transceive(read) }
        await gate.someoneWaits()
        await bench.device.enterBackground()
        await bench.clock.advance(by: .milliseconds(14_999))
        #expect(await session.state == .wired(credential: credential))
        await bench.clock.advance(by: .milliseconds(1))
        #expect(await session.state == .invalid)
        await gate.open()
        await #expect(throws: ErrorCode.acquiredResourceRelinquished) { try await exchange.value }
    }

    @Test func l3TheBackgroundEndsTheSessionAfterItsDelay() async throws {
        let bench = Bench { $0.limits.backgroundDelay = .seconds(5) }
        let session = try await bench.session()
        await bench.device.enterBackground()
        await bench.clock.advance(by: .milliseconds(4_999))
        #expect(await session.state == .management)
        await bench.clock.advance(by: .milliseconds(1))
        #expect(await session.state == .invalid)
        #expect(CredentialRules.ios27_1.limits.backgroundDelay == .seconds(2))
    }

    @Test func l4CardEmulationLastsSixtySeconds() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.emulating()
        await bench.clock.advance(by: .milliseconds(59_999))
        #expect(await session.state == .cardEmulation(credential: credential))
        await bench.clock.advance(by: .milliseconds(1))
        #expect(await session.state == .management)
    }

    @Test func l8TheCooldownIsThatOfL6AndL7() async throws {
        let bench = Bench()
        let session = try await bench.session()
        // However often: once fifteen seconds and the span of eighty are kept, the next is granted.
        for _ in 0..<6 {
            try await session.acquirePresentmentAssertion().relinquish()
            await bench.clock.advance(by: .seconds(40))
        }
        #expect(await session.state == .management)
    }

    @Test func l9OneSessionIsActive() async throws {
        let bench = Bench()
        let first = try await bench.session()
        await #expect(throws: ErrorCode.resourceUnavailable) { try await bench.session() }
        #expect(await first.state == .management)
        try await first.invalidate()
        #expect(try await bench.session().state == .management)
    }

    @Test func l10AnAssertionOutlivesAShortBackgroundUnlikeThatOfTheTagFramework() async throws {
        let bench = Bench()
        let session = try await bench.session()
        let assertion = try await session.acquirePresentmentAssertion()
        await bench.device.enterBackground()
        #expect(await assertion.state == .active)
        await bench.device.enterForeground()
        await bench.clock.advance(by: .seconds(16))
        #expect(await assertion.state == .active)
    }

    @Test(arguments: ElementPlace.available) func l11ManagementCommandsAreShort(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.withCredential(ElementBench.payment)
            try await session.deleteCredential(credential)
            let commands = bench.transport.takeCommands().map { Hex.octets($0) }
            #expect(commands.count > 40)
            // Header, Lc, at most 255 octets, Le.
            #expect(commands.allSatisfy { $0.count <= 261 && ($0.count <= 5 || $0[4] != 0) })
        }
    }

    @Test func l12ACommandIsAsLongAsTheReaderAllows() async throws {
        let bench = Bench()
        let (session, _) = try await bench.wired()
        let long = try CommandAPDU(cla: 0x00, ins: 0xD6, p1: 0, p2: 0, data: Data(repeating: 0x5A, count: 4_000), ne: 65_536)
        #expect(try await session.transceive(Data(long.octets)) == Data([0xCA, 0xFE, 0x90, 0x00]))
        #expect(await bench.element.log.last == "transceive \(Hex.encode(long.octets))")
    }
}

extension Hex {
    static func octets(_ text: String) -> [UInt8] { (try? decode(text)) ?? [] }
}
