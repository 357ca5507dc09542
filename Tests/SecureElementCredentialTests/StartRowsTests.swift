// SPDX-License-Identifier: MIT

import FoundationEssentials
import Testing

@testable import SecureElementCredential

/// Rows T1 to T7 of the transition table: how a session starts.
@Suite struct StartRowsTests {
    @Test func t1StartsInManagement() async throws {
        let bench = Bench()
        let session = try await bench.session()
        #expect(await session.state == .management)
        #expect(await bench.element.isOpen)
        try await session.invalidate()
    }

    @Test func t2TrapsWithoutTheEntitlement() async throws {
        let bench = Bench()
        bench.device.policy.hasEntitlement = false
        await #expect(throws: ErrorCode.ineligible) { try await bench.session() }
        #expect(bench.trapped.reasons.count == 1)
        #expect(bench.trapped.reasons.first?.contains("com.apple.developer.secure-element-credential") == true)
    }

    @Test func t3RefusesAnIneligibleDevice() async throws {
        let bench = Bench()
        bench.device.policy.isEligible = false
        await #expect(throws: ErrorCode.ineligible) { try await bench.session() }
        let isEligible = try await bench.device.run { try await Session.isEligible }
        #expect(!isEligible)
    }

    @Test func t3RefusesWhereThereIsNoDevice() async throws {
        await #expect(throws: ErrorCode.ineligible) { try await Session.startSession() }
        #expect(try await Session.isEligible == false)
    }

    @Test func t4RefusesWithoutAccountOrPasscode() async throws {
        let bench = Bench()
        bench.device.policy.meetsConditions = false
        await #expect(throws: ErrorCode.conditionsNotSatisfied) { try await bench.session() }
    }

    @Test func t5RefusesAtOnceUntilThePersonAllowsItInSettings() async throws {
        let bench = Bench()
        bench.person.refusesTheAlert()
        await #expect(throws: ErrorCode.accessDenied) { try await bench.session() }
        #expect(bench.device.policy.mayUseSecureElement == false)
        await #expect(throws: ErrorCode.accessDenied) { try await bench.session() }
        bench.device.policy.mayUseSecureElement = true
        let session = try await bench.session()
        #expect(await session.state == .management)
    }

    @Test func t6RefusesASecondSessionAndAllowsItAfterTheFirst() async throws {
        let bench = Bench()
        let first = try await bench.session()
        await #expect(throws: ErrorCode.resourceUnavailable) { try await bench.session() }
        try await first.invalidate()
        let second = try await bench.session()
        #expect(await second.state == .management)
        #expect(await first.state == .invalid)
        #expect(first != second)
    }

    @Test func t6RefusesWhileTheElementIsTaken() async throws {
        let bench = Bench()
        await bench.element.fails("open", .busy)
        await #expect(throws: ErrorCode.resourceUnavailable) { try await bench.session() }
        await bench.element.fails("open", nil)
        #expect(try await bench.session().state == .management)
    }

    @Test func t7RefusesInTheBackground() async throws {
        let bench = Bench()
        await bench.device.enterBackground()
        await #expect(throws: ErrorCode.clientNotInForeground) { try await bench.session() }
        await bench.device.enterForeground()
        #expect(try await bench.session().state == .management)
    }

    @Test func theLastReferenceEndsTheSession() async throws {
        let bench = Bench()
        var session: Session? = try await bench.session()
        let stream = try #require(await session?.eventStream)
        session = nil
        #expect(await names(of: stream) == ["sessionInvalidated(sessionInvalidated)"])
        // The element is let go by a task of its own.
        for _ in 0..<2_000 where await bench.element.isOpen { try await Task.sleep(for: .milliseconds(1)) }
        #expect(await !bench.element.isOpen)
    }

    @Test func t58TheEmptyObjectIsInvalidAndItsStreamHasEnded() async throws {
        let session = CredentialSession()
        #expect(await session.state == .invalid)
        #expect(await names(of: session.eventStream).isEmpty)
        await #expect(throws: ErrorCode.sessionInvalidated) { try await session.listCredentials() }
        try await session.invalidate()
    }
}
