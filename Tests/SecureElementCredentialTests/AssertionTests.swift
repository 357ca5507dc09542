// SPDX-License-Identifier: MIT

import FoundationEssentials
import Testing

@testable import SecureElementCredential

/// Presentment intent assertions: section 2.5 of the rules and limits L5 to L7.
@Suite struct AssertionTests {
    @Test func anAssertionIsActiveUntilItIsRelinquished() async throws {
        let bench = Bench()
        let session = try await bench.session()
        let assertion = try await session.acquirePresentmentAssertion()
        #expect(await assertion.state == .active)
        try await assertion.relinquish()
        #expect(await assertion.state == .invalid)
        // On one that has ended nothing happens.
        try await assertion.relinquish()
    }

    @Test func aThirdAssertionIsRefusedWhileSomebodyPresents() async throws {
        let bench = Bench()
        let session = try await bench.session()
        bench.device.isOtherPresenting = true
        await #expect(throws: ErrorCode.resourceUnavailable) { try await session.acquirePresentmentAssertion() }
        bench.device.isOtherPresenting = false
        let assertion = try await session.acquirePresentmentAssertion()
        await #expect(throws: ErrorCode.resourceUnavailable) { try await session.acquirePresentmentAssertion() }
        #expect(await assertion.state == .active)
    }

    @Test func theLastReferenceEndsAnAssertion() async throws {
        let bench = Bench()
        let session = try await bench.session()
        var assertion: Session.PresentmentIntentAssertion? = try await session.acquirePresentmentAssertion()
        #expect(await assertion?.state == .active)
        assertion = nil
        await bench.clock.advance(by: .seconds(15))
        let next = try await session.acquirePresentmentAssertion()
        #expect(await next.state == .active)
    }

    @Test(arguments: [("ios26.1", 15), ("ios27.1", 60)]) func l5AnAssertionEndsByItself(_ rules: String, _ seconds: Int)
        async throws
    {
        let bench = Bench(rules: try #require(CredentialRules(named: rules)))
        let session = try await bench.session()
        let assertion = try await session.acquirePresentmentAssertion()
        await bench.clock.advance(by: .seconds(seconds) - .milliseconds(1))
        #expect(await assertion.state == .active)
        await bench.clock.advance(by: .milliseconds(1))
        #expect(await assertion.state == .invalid)
        await #expect(throws: ErrorCode.presentmentIntentAssertionTimeout) { try await assertion.relinquish() }
        #expect(
            try await session.eventsToTheEnd()
                == ["presentmentIntentAssertionTimeout", "sessionInvalidated(sessionInvalidated)"])
    }

    @Test func l6FifteenSecondsLieBetweenTwoAssertions() async throws {
        let bench = Bench()
        let session = try await bench.session()
        try await session.acquirePresentmentAssertion().relinquish()
        await bench.clock.advance(by: .milliseconds(14_999))
        await #expect(throws: ErrorCode.resourceUnavailable) { try await session.acquirePresentmentAssertion() }
        await bench.clock.advance(by: .milliseconds(1))
        let second = try await session.acquirePresentmentAssertion()
        #expect(await second.state == .active)
    }

    @Test func l7OfThreeAssertionsInEightySecondsTheThirdFails() async throws {
        let bench = Bench()
        let session = try await bench.session()
        try await session.acquirePresentmentAssertion().relinquish()
        await bench.clock.advance(by: .seconds(20))
        try await session.acquirePresentmentAssertion().relinquish()
        await bench.clock.advance(by: .milliseconds(59_999))
        await #expect(throws: ErrorCode.resourceUnavailable) { try await session.acquirePresentmentAssertion() }
        await bench.clock.advance(by: .milliseconds(1))
        let third = try await session.acquirePresentmentAssertion()
        #expect(await third.state == .active)
    }

    @Test func l7CountsForTheAppNotForTheSession() async throws {
        let bench = Bench()
        let first = try await bench.session()
        try await first.acquirePresentmentAssertion().relinquish()
        await bench.clock.advance(by: .seconds(16))
        try await first.acquirePresentmentAssertion().relinquish()
        try await first.invalidate()
        await bench.clock.advance(by: .seconds(16))
        let second = try await bench.session()
        await #expect(throws: ErrorCode.resourceUnavailable) { try await second.acquirePresentmentAssertion() }
    }

    @Test func theDocumentedOrderIsAcquireRelinquishPerform() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.withCredential()
        let assertion = try await session.acquirePresentmentAssertion()
        try await assertion.relinquish()
        // A transaction's own assertion obeys neither L6 nor L7.
        for _ in 0..<4 {
            try await session.performTransaction(using: credential, over: bench.scene)
            try await session.endCardEmulation()
        }
        #expect(await session.state == .management)
    }

    @Test func aTransactionTakesOverFromAnAssertionThatIsHeld() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.withCredential()
        let assertion = try await session.acquirePresentmentAssertion()
        try await session.performTransaction(using: credential, over: bench.scene)
        #expect(await assertion.state == .invalid)
        await #expect(throws: ErrorCode.resourceUnavailable) { try await session.acquirePresentmentAssertion() }
    }

    @Test func aHeldAssertionRefusesTheTransactionUnderStrictRules() async throws {
        let bench = Bench { $0.heldAssertionRefusesTransaction = true }
        let (session, credential) = try await bench.withCredential()
        let assertion = try await session.acquirePresentmentAssertion()
        await #expect(throws: ErrorCode.resourceUnavailable) {
            try await session.performTransaction(using: credential, over: bench.scene)
        }
        #expect(await assertion.state == .active)
    }

    @Test func aSessionsEndEndsItsAssertion() async throws {
        let bench = Bench()
        let session = try await bench.session()
        let assertion = try await session.acquirePresentmentAssertion()
        try await session.invalidate()
        #expect(await assertion.state == .invalid)
        try await assertion.relinquish()
    }

    @Test func anAssertionIsForAnAppInFront() async throws {
        let bench = Bench()
        let session = try await bench.session()
        await bench.device.enterBackground()
        await #expect(throws: ErrorCode.clientNotInForeground) { try await session.acquirePresentmentAssertion() }
    }

    // MARK: - Scene events (section 2.6)

    private final class Delegate: CredentialSessionWindowSceneDelegate {
        let seen = TrapLog()
        func windowScene(
            _ windowScene: any PresentationContext,
            didReceiveCredentialSessionWindowSceneEvent event: CredentialSessionWindowSceneEvent
        ) { seen.add(event.description) }
    }

    @Test func theDefaultAppIsToldOfReadersAndGesturesWhileNobodyPresents() async throws {
        let bench = Bench()
        let delegate = Delegate()
        bench.device.becomeDefaultContactlessApp(scene: bench.scene, delegate: delegate)
        await bench.device.readerField(isPresent: true)
        await bench.device.presentationGesture()
        #expect(delegate.seen.reasons == ["readerDetected", "presentation"])
        bench.device.isOtherPresenting = true
        await bench.device.presentationGesture()
        bench.device.isOtherPresenting = false
        bench.device.policy.hasDefaultContactlessAppEntitlement = false
        await bench.device.presentationGesture()
        #expect(delegate.seen.reasons.count == 2)
    }

    @Test @MainActor func theEventThatConnectsASceneStandsInItsOptions() async throws {
        let bench = Bench()
        let delegate = Delegate()
        let options = TrapLog()
        bench.device.becomeDefaultContactlessApp { given in
            options.add(await given.credentialSessionEvent?.description ?? "none")
            return (ProgramScene(), delegate)
        }
        await bench.device.presentationGesture()
        #expect(options.reasons == ["presentation"])
        #expect(delegate.seen.reasons.isEmpty)
        await bench.device.readerField(isPresent: true)
        #expect(options.reasons.count == 1)
        #expect(delegate.seen.reasons == ["readerDetected"])
        #expect(ProgramScene.ConnectionOptions(nil).credentialSessionEvent == nil)
    }

    @Test func theRulesOfBothReleasesDifferInWhatTheirPagesSay() throws {
        let old = try #require(CredentialRules(named: "ios26.1"))
        let new = try #require(CredentialRules(named: "ios27.1"))
        #expect((old.limits.assertion, new.limits.assertion) == (.seconds(15), .seconds(60)))
        #expect(old.anyErrorLeadsToManagement && !new.anyErrorLeadsToManagement)
        #expect(old.sheetTimeoutHasItsOwnError && !new.sheetTimeoutHasItsOwnError)
        #expect(!old.hasInvalidProductConfigID && new.hasInvalidProductConfigID)
        #expect(CredentialRules(named: "ios1") == nil)
        #expect(ErrorCode.allCases.count == 23)
        #expect(ErrorCode.invalidView.failureReason == "invalidView")
    }
}
