// SPDX-License-Identifier: MIT

import FoundationEssentials
import Testing

@testable import SecureElementCredential

/// Rules G1 to G13, but for G11 and G12, which stand with the rows that they rule; and the credential's states.
@Suite struct RuleRowsTests {
    private let read = Data([0x00, 0xB0, 0x00, 0x00, 0x04])
    static let all = ["management", "wired", "cardEmulation"]

    @Test func g1AnEndedSessionStaysEndedAndANewOneIsStarted() async throws {
        let bench = Bench()
        let first = try await bench.session()
        try await first.invalidate()
        let second = try await bench.session()
        #expect(await first.state == .invalid)
        #expect(await second.state == .management)
        #expect(first != second)
    }

    @Test func g2ACallOnAnEndedSessionSaysSoWhateverElseIsWrong() async throws {
        let bench = Bench()
        let (session, _) = try await bench.withCredential()
        await bench.device.enterBackground()
        await bench.clock.advance(by: .seconds(3))
        await #expect(throws: ErrorCode.sessionInvalidated) {
            try await session.performTransaction(using: ElementBench.unknown, over: ProgramScene(isValid: false))
        }
        await #expect(throws: ErrorCode.sessionInvalidated) { try await session.secureElementInfo }
    }

    @Test func g3InvalidatingTwiceIsNoError() async throws {
        let bench = Bench()
        let session = try await bench.session()
        try await session.invalidate()
        try await session.invalidate()
        #expect(await names(of: session.eventStream) == ["sessionInvalidated(sessionInvalidated)"])
    }

    @Test func g4TheEndsEventIsTheLastAndTheStreamEnds() async throws {
        let bench = Bench()
        let (session, _) = try await bench.emulating()
        try await session.invalidate()
        await bench.device.readerField(isPresent: true)
        #expect(await names(of: session.eventStream) == ["fieldAbsent", "sessionInvalidated(sessionInvalidated)"])
    }

    @Test(arguments: ["call", "background", "idle", "fault"]) func g5TheReasonIsTheCause(_ cause: String) async throws {
        let bench = Bench()
        let (session, _) = try await bench.wired()
        let reason: ErrorCode
        switch cause {
        case "call":
            reason = .sessionInvalidated
            try await session.invalidate()
        case "background":
            reason = .clientNotInForeground
            await bench.device.enterBackground()
            await bench.clock.advance(by: .seconds(2))
        case "idle":
            reason = .acquiredResourceRelinquished
            await bench.clock.advance(by: .seconds(15))
        default:
            reason = .resourceUnavailable
            await bench.device.elementFailed(.resourceUnavailable)
        }
        #expect(await names(of: session.eventStream) == ["sessionInvalidated(\(reason))"])
    }

    @Test func g6TheLastReferencesEndIsTheSessionsToo() async throws {
        let bench = Bench()
        var session: Session? = try await bench.session()
        let stream = try #require(await session?.eventStream)
        session = nil
        #expect(await names(of: stream) == ["sessionInvalidated(sessionInvalidated)"])
    }

    static let endings: [(SecureElementError.Code, ErrorCode, Bool)] = [
        (.busy, .resourceUnavailable, true), (.takenBack, .acquiredResourceRelinquished, true),
        (.fault, .internalError, false), (.conditions, .conditionsNotSatisfied, false),
        (.unsupported, .featureUnavailable, false),
    ]

    @Test(arguments: endings.indices) func g7TwoErrorsOfTheElementLeadToManagementAndOthersDoNot(_ index: Int) async throws {
        let (failure, error, isLeft) = Self.endings[index]
        let bench = Bench()
        let (session, credential) = try await bench.wired()
        await bench.element.fails("transceive", failure)
        await #expect(throws: error) { try await session.transceive(read) }
        #expect(await session.state == (isLeft ? .management : .wired(credential: credential)))
    }

    @Test(arguments: ["ios26.1", "ios27.1"]) func g8AnyErrorOfTwoCallsLeadsToManagementBefore27(_ rules: String) async throws {
        let bench = Bench(rules: try #require(CredentialRules(named: rules)))
        let (session, credential) = try await bench.wired()
        bench.person.will(.decline)
        let expected: Session.State = rules == "ios26.1" ? .management : .wired(credential: credential)
        await #expect(throws: ErrorCode.accessDenied) {
            try await session.performCardEmulationTransactionWithCurrentCredential(over: bench.scene)
        }
        #expect(await session.state == expected)
        try await session.enterWiredMode(using: credential)
        await #expect(throws: ErrorCode.accessDenied) {
            try await session.performWiredTransaction(
                using: credential, over: bench.scene, instanceAID: Data(TestElement.head))
        }
        #expect(await session.state == expected)
    }

    /// Each call has one thing more in order than the one before.
    @Test func g9GuardsComeInTheirOrder() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.withCredential()
        let pending = try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "later")
        let bad = ProgramScene(isValid: false)
        func perform(_ credential: Session.Credential, _ aid: [UInt8], over scene: ProgramScene) async throws {
            try await session.performWiredTransaction(using: credential, over: scene, instanceAID: Data(aid))
        }
        bench.device.isOtherPresenting = true
        bench.person.will(.decline)
        await bench.device.enterBackground()
        await #expect(throws: ErrorCode.credentialDoesNotExist) { try await perform(ElementBench.unknown, [], over: bad) }
        await #expect(throws: ErrorCode.invalidCredentialState) { try await perform(pending, [], over: bad) }
        await #expect(throws: ErrorCode.instanceDoesNotExist) { try await perform(credential, [], over: bad) }
        await #expect(throws: ErrorCode.invalidView) { try await perform(credential, TestElement.head, over: bad) }
        let good = ProgramScene()
        await #expect(throws: ErrorCode.clientNotInForeground) { try await perform(credential, TestElement.head, over: good) }
        await bench.device.enterForeground()
        await #expect(throws: ErrorCode.resourceUnavailable) { try await perform(credential, TestElement.head, over: good) }
        bench.device.isOtherPresenting = false
        #expect(bench.person.asked == 0)
        await #expect(throws: ErrorCode.accessDenied) { try await perform(credential, TestElement.head, over: good) }
        #expect(bench.person.asked == 1)
        // A wrong state comes before a wrong argument.
        try await session.enterWiredMode(using: credential)
        await #expect(throws: ErrorCode.invalidSessionState) {
            try await session.provisionCredential(configurationUUID: UUID(), name: "")
        }
    }

    @Test func g10NothingIsDrawnOverTheAppBetweenAPerformAndItsEnd() async throws {
        let bench = Bench()
        let (session, _) = try await bench.emulating()
        #expect(bench.person.asked == 1)
        let card = try #require(bench.reader.card)
        await card.field(isPresent: true)
        _ = await card.command([0x00, 0xA4, 0x04, 0x00, 0x05] + TestElement.head)
        try await session.endCardEmulation()
        #expect(bench.person.asked == 1)
    }

    @Test func g13EventsWaitUntilTheyAreReadOnTheSameStream() async throws {
        let bench = Bench()
        let session = try await bench.session()
        _ = try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "later")
        await bench.clock.advance(by: .seconds(4))
        var first = await session.eventStream.makeAsyncIterator()
        guard case .credentialFinishedInstalling(let credential)? = await first.next() else {
            Issue.record("the event that happened before anybody looked is not there")
            return
        }
        #expect(credential.isInstalled)
        try await session.invalidate()
        // A second look at the stream has what the first did not read.
        #expect(await names(of: session.eventStream) == ["sessionInvalidated(sessionInvalidated)"])
    }

    // MARK: - Credential states (section 2.4)

    @Test func anAcceptedCredentialIsPendingThenInstalledWithAnEvent() async throws {
        let bench = Bench()
        let session = try await bench.session()
        let pending = try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "later")
        #expect(pending.state == .installationPending)
        await bench.clock.advance(by: .seconds(3))
        #expect(try await session.eventsToTheEnd() == ["installed(later)", "sessionInvalidated(sessionInvalidated)"])
    }

    @Test func aCredentialThatIsHeldNeverChanges() async throws {
        let bench = Bench()
        let session = try await bench.session()
        let held = try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "later")
        await bench.clock.advance(by: .seconds(3))
        #expect(held.state == .installationPending)
        let fresh = try #require(try await session.listCredentials().first { $0.identifier == held.identifier })
        #expect(fresh.isInstalled)
        #expect(fresh != held)
        // Held or fresh, it names the same credential.
        try await session.enterWiredMode(using: held)
        #expect(await session.state == .wired(credential: fresh))
    }

    @Test func aFailedCredentialTellsNothingAndCanBeDeleted() async throws {
        let bench = Bench()
        let session = try await bench.session()
        await bench.element.installationFails()
        let pending = try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "later")
        await bench.clock.advance(by: .seconds(3))
        let failed = try #require(try await session.listCredentials().first { $0.identifier == pending.identifier })
        #expect(failed.state == .installationFailed)
        await #expect(throws: ErrorCode.invalidCredentialState) { try await session.enterWiredMode(using: failed) }
        try await session.deleteCredential(failed)
        #expect(try await session.listCredentials().allSatisfy { $0.identifier != pending.identifier })
        #expect(try await session.eventsToTheEnd() == ["sessionInvalidated(sessionInvalidated)"])
    }

    @Test func theEmulationsTimeoutLeavesNoAssertion() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.withCredential()
        let assertion = try await session.acquirePresentmentAssertion()
        try await session.performTransaction(using: credential, over: bench.scene)
        await bench.clock.advance(by: .seconds(60))
        #expect(await session.state == .management)
        #expect(await assertion.state == .invalid)
        // It ended when the transaction took over, not by its own time.
        try await assertion.relinquish()
    }
}
