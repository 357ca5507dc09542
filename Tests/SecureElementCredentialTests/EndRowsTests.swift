// SPDX-License-Identifier: MIT

import FoundationEssentials
import Testing

@testable import SecureElementCredential

/// Rows T54 to T57: how sessions end, and what is left of them.
@Suite struct EndRowsTests {
    static let all = ["management", "wired", "cardEmulation"]
    private let read = Data([0x00, 0xB0, 0x00, 0x00, 0x04])

    @Test(arguments: all) func t54InvalidatesFromAnyState(_ state: String) async throws {
        let bench = Bench()
        let (session, _) = try await bench.session(in: state)
        try await session.invalidate()
        #expect(await session.state == .invalid)
        #expect(await names(of: session.eventStream).last == "sessionInvalidated(sessionInvalidated)")
        #expect(await !bench.element.isOpen)
        #expect(bench.reader.card == nil)
        // G3: a second time is no error and no event.
        try await session.invalidate()
    }

    @Test(arguments: all) func t55EndsInTheBackgroundAfterADelay(_ state: String) async throws {
        let bench = Bench()
        let (session, _) = try await bench.session(in: state)
        await bench.device.enterBackground()
        await bench.clock.advance(by: .milliseconds(1_999))
        #expect(await session.state.name == state)
        await bench.clock.advance(by: .milliseconds(1))
        #expect(await session.state == .invalid)
        #expect(await names(of: session.eventStream).last == "sessionInvalidated(clientNotInForeground)")
    }

    @Test func t55LivesOnWhenTheAppComesBackInTime() async throws {
        let bench = Bench()
        let session = try await bench.session()
        await bench.device.enterBackground()
        await bench.clock.advance(by: .seconds(1))
        await bench.device.enterForeground()
        await bench.clock.advance(by: .seconds(60))
        #expect(await session.state == .management)
    }

    @Test func t55AnExchangeHoldsTheEndOffForFifteenSeconds() async throws {
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
        #expect(await names(of: session.eventStream) == ["sessionInvalidated(clientNotInForeground)"])
        #expect(await !bench.element.isOpen)
    }

    @Test func t55EndsWhenTheExchangeThatHeldItOffIsDone() async throws {
        let bench = Bench()
        let (session, _) = try await bench.wired()
        let gate = TestGate()
        await bench.element.waits("transceive", at: gate)
        let exchange = Task { [read] in try await session.transceive(read) }
        await gate.someoneWaits()
        await bench.device.enterBackground()
        await bench.clock.advance(by: .seconds(5))
        await gate.open()
        #expect(try await exchange.value == Data([0x6A, 0x82]))
        #expect(await session.state == .invalid)
    }

    @Test(arguments: all) func t56AFaultOutsideACallEndsTheSession(_ state: String) async throws {
        let bench = Bench()
        let (session, _) = try await bench.session(in: state)
        await bench.device.elementFailed(.internalError)
        #expect(await session.state == .invalid)
        #expect(await names(of: session.eventStream).last == "sessionInvalidated(internalError)")
    }

    @Test func t57EverythingIsRefusedAfterTheEnd() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.withCredential()
        let configuration = try await session.configuration()
        try await session.invalidate()
        let calls: [(String, () async throws -> Void)] = [
            ("list", { _ = try await session.listCredentials() }),
            ("provision", { _ = try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "") }),
            ("delete", { try await session.deleteCredential(credential) }),
            ("info", { _ = try await session.secureElementInfo }),
            ("wired", { try await session.enterWiredMode(using: credential) }),
            ("transceive", { _ = try await session.transceive(Data()) }),
            ("endWired", { try await session.endWiredMode() }),
            ("acquire", { _ = try await session.acquirePresentmentAssertion() }),
            ("transaction", { try await session.performTransaction(using: credential, over: bench.scene) }),
            (
                "current", { try await session.performCardEmulationTransactionWithCurrentCredential(over: bench.scene) }
            ),
            (
                "wiredTransaction",
                { try await session.performWiredTransaction(using: credential, over: bench.scene, instanceAID: Data()) }
            ), ("endEmulation", { try await session.endCardEmulation() }),
            ("configuration", { _ = try await session.configuration() }),
            ("invalidate", { try await configuration.invalidate() }),
        ]
        for (name, call) in calls {
            await #expect(throws: ErrorCode.sessionInvalidated, "\(name)") { try await call() }
        }
        #expect(await session.state == .invalid)
        #expect(await bench.element.log == ["open", "credentials", "close"])
    }

    @Test func g11CallsRunOneAfterAnother() async throws {
        let bench = Bench()
        let (session, _) = try await bench.wired()
        let gate = TestGate()
        await bench.element.waits("transceive", at: gate)
        let first = Task { [read] in try await session.transceive(read) }
        await gate.someoneWaits()
        let second = Task { try await session.endWiredMode() }
        // However long it may have: the second call is not let in.
        for _ in 0..<100 { await Task.yield() }
        #expect(await bench.element.log.last == "transceive 00B0000004")
        await gate.open()
        _ = try await first.value
        try await second.value
        #expect(await session.state == .management)
    }
}
