// SPDX-License-Identifier: MIT

import CardSockets
import Foundation
import Testing

@testable import SecureElementCredential

/// Rows T39 to T53: card emulation.
@Suite struct EmulationRowsTests {
    private let select: [UInt8] = [0x00, 0xA4, 0x04, 0x00, 0x05] + TestElement.head
    private let read: [UInt8] = [0x00, 0xB2, 0x01, 0x0C, 0x00]

    @Test(arguments: ["management", "wired"]) func t39AndT40PresentTheCredential(_ state: String) async throws {
        let bench = Bench()
        let (session, credential) = try await bench.session(in: state)
        await bench.element.forgetLog()
        try await session.performTransaction(using: credential, over: bench.scene)
        #expect(await session.state == .cardEmulation(credential: credential))
        let steps = ["authorize F000000001,F000000002", "activate"]
        #expect(await bench.element.log == (state == "wired" ? ["deselect"] + steps : steps))
        #expect(bench.reader.card != nil)
        #expect(bench.device.billableEvents == 1)
        #expect(try await session.eventsToTheEnd() == ["fieldAbsent", "sessionInvalidated(sessionInvalidated)"])
        #expect(bench.reader.card == nil)
    }

    @Test func t40IsRefusedWhereTheRulesWantManagement() async throws {
        let bench = Bench { $0.performTransactionStartsFromWired = false }
        let (session, credential) = try await bench.wired()
        await #expect(throws: ErrorCode.invalidSessionState) {
            try await session.performTransaction(using: credential, over: bench.scene)
        }
        #expect(await session.state == .wired(credential: credential))
    }

    @Test func t41RefusesASecondPresentation() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.emulating()
        await #expect(throws: ErrorCode.invalidSessionState) {
            try await session.performTransaction(using: credential, over: bench.scene)
        }
        #expect(await session.state == .cardEmulation(credential: credential))
    }

    static let refusals: [(AuthorizationAnswer, ErrorCode, Bool)] = [
        (.dismiss, .userCanceledAuthorization, true), (.decline, .accessDenied, false),
        (.timeOut, .userCanceledAuthorization, true),
    ]

    @Test(arguments: ["management", "wired"], refusals.indices) func t42LeavesWhereThePersonSaysSo(
        _ state: String, _ index: Int
    ) async throws {
        let (answer, error, leads) = Self.refusals[index]
        let bench = Bench()
        let (session, credential) = try await bench.session(in: state)
        bench.person.will(answer)
        await #expect(throws: error) { try await session.performTransaction(using: credential, over: bench.scene) }
        #expect(await session.state.name == (leads ? "management" : state))
        #expect(bench.device.billableEvents == 0)
    }

    @Test(arguments: ["management", "wired"]) func t42StaysForABadViewAndLeavesForABusyElement(_ state: String) async throws {
        let bench = Bench()
        let (session, credential) = try await bench.session(in: state)
        await #expect(throws: ErrorCode.invalidView) {
            try await session.performTransaction(using: credential, over: ProgramScene(isValid: false))
        }
        #expect(await session.state.name == state)
        await bench.element.fails("activate", .busy)
        await #expect(throws: ErrorCode.resourceUnavailable) {
            try await session.performTransaction(using: credential, over: bench.scene)
        }
        #expect(await session.state == .management)
    }

    @Test func t42StaysForACredentialThatIsNotInstalled() async throws {
        let bench = Bench()
        let session = try await bench.session()
        let pending = try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "new")
        await #expect(throws: ErrorCode.invalidCredentialState) {
            try await session.performTransaction(using: pending, over: bench.scene)
        }
        #expect(await session.state == .management)
    }

    @Test func t43ContinuesFromWiredModeWithoutAReset() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.wired()
        _ = try await session.transceive(Data([0x00, 0xD0, 0x00, 0x00, 0x02, 0xBE, 0xEF]))
        await bench.element.forgetLog()
        try await session.performCardEmulationTransactionWithCurrentCredential(over: bench.scene)
        #expect(await session.state == .cardEmulation(credential: credential))
        #expect(await bench.element.log == ["deselect", "authorize F000000001,F000000002", "activate"])
        let card = try #require(bench.reader.card)
        await card.field(isPresent: true)
        _ = await card.command(select)
        #expect(await card.command(read) == .response([0xBE, 0xEF, 0x90, 0x00]))
        #expect(try await session.eventsToTheEnd().prefix(2) == ["fieldAbsent", "fieldPresent"])
    }

    @Test(arguments: ["management", "cardEmulation"]) func t44IsForWiredModeAlone(_ state: String) async throws {
        let bench = Bench()
        let (session, _) = try await bench.session(in: state)
        await #expect(throws: ErrorCode.invalidSessionState) {
            try await session.performCardEmulationTransactionWithCurrentCredential(over: bench.scene)
        }
        #expect(await session.state.name == state)
    }

    @Test func t45LeavesWiredModeForSomeErrorsAlone() async throws {
        for (answer, error, state) in [
            (AuthorizationAnswer.dismiss, ErrorCode.userCanceledAuthorization, "management"), (.decline, .accessDenied, "wired"),
        ] {
            let bench = Bench()
            let (session, _) = try await bench.wired()
            bench.person.will(answer)
            await #expect(throws: error) {
                try await session.performCardEmulationTransactionWithCurrentCredential(over: bench.scene)
            }
            #expect(await session.state.name == state)
        }
        let bench = Bench()
        let (session, _) = try await bench.wired()
        bench.device.isOtherPresenting = true
        await #expect(throws: ErrorCode.resourceUnavailable) {
            try await session.performCardEmulationTransactionWithCurrentCredential(over: bench.scene)
        }
        #expect(await session.state == .management)
    }

    @Test func t46EndsCardEmulation() async throws {
        let bench = Bench()
        let (session, _) = try await bench.emulating()
        let card = try #require(bench.reader.card)
        try await session.endCardEmulation()
        #expect(await session.state == .management)
        #expect(await bench.element.log.last == "deactivate")
        #expect(bench.reader.card == nil)
        await card.field(isPresent: true)
        #expect(await card.command(select) == .removed)
    }

    @Test(arguments: ["management", "wired"]) func t47RefusesToEndWhatIsNotEmulated(_ state: String) async throws {
        let bench = Bench()
        let (session, _) = try await bench.session(in: state)
        await #expect(throws: ErrorCode.invalidSessionState) { try await session.endCardEmulation() }
        #expect(await session.state.name == state)
    }

    @Test(arguments: [false, true]) func t48EndWiredModeEndsAnEmulationWhereTheRulesSaySo(_ isLenient: Bool) async throws {
        let bench = Bench { $0.endWiredModeEndsEmulation = isLenient }
        let (session, credential) = try await bench.wired()
        try await session.performCardEmulationTransactionWithCurrentCredential(over: bench.scene)
        if isLenient {
            try await session.endWiredMode()
            #expect(await session.state == .management)
            #expect(bench.reader.card == nil)
        } else {
            await #expect(throws: ErrorCode.invalidSessionState) { try await session.endWiredMode() }
            #expect(await session.state == .cardEmulation(credential: credential))
        }
    }

    @Test func t49EndsEmulationAfterAMinute() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.emulating()
        await bench.clock.advance(by: .milliseconds(59_999))
        #expect(await session.state == .cardEmulation(credential: credential))
        await bench.clock.advance(by: .milliseconds(1))
        #expect(await session.state == .management)
        #expect(bench.reader.card == nil)
        #expect(
            try await session.eventsToTheEnd() == [
                "fieldAbsent", "cardEmulationTimeout", "sessionInvalidated(sessionInvalidated)",
            ]
        )
    }

    @Test func l4aTheMinuteBeginsWhenTheStateDoes() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.withCredential()
        let gate = TestGate()
        bench.person.waits(at: gate)
        let call = Task { try await session.performTransaction(using: credential, over: bench.scene) }
        await gate.someoneWaits()
        await bench.clock.advance(by: .seconds(50))
        await gate.open()
        try await call.value
        await bench.clock.advance(by: .milliseconds(59_999))
        #expect(await session.state == .cardEmulation(credential: credential))
    }

    @Test func t50TellsOfTheFieldWhenItChanges() async throws {
        let bench = Bench()
        let (session, _) = try await bench.emulating()
        let card = try #require(bench.reader.card)
        await card.field(isPresent: true)
        // A reset is no change of the field.
        await card.field(isPresent: true)
        await card.field(isPresent: false)
        #expect(
            try await session.eventsToTheEnd()
                == ["fieldAbsent", "fieldPresent", "fieldAbsent", "sessionInvalidated(sessionInvalidated)"])
    }

    @Test func t51TellsOfATransaction() async throws {
        let bench = Bench()
        let (session, _) = try await bench.emulating()
        let card = try #require(bench.reader.card)
        await card.field(isPresent: true)
        await bench.element.raises([0x12, 0x34])
        #expect(await card.command(select) == .response([0x90, 0x00]))
        #expect(
            try await session.eventsToTheEnd()
                == ["fieldAbsent", "fieldPresent", "connectivity(1234)", "sessionInvalidated(sessionInvalidated)"])
    }

    @Test(arguments: ["management", "wired", "cardEmulation"]) func t52AConfigurationGoesToManagement(_ state: String)
        async throws
    {
        let bench = Bench()
        let (session, _) = try await bench.session(in: state)
        try await session.configuration().invalidate()
        #expect(await session.state == .management)
    }

    @Test func t53TheEndOfATransactionTaskGoesToManagement() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.withCredential()
        await bench.scene.transactionTask(try await session.configuration()) { transaction in
            await #expect(throws: Never.self) { try await transaction.performTransaction(using: credential) }
            #expect(await session.state == .cardEmulation(credential: credential))
        }
        #expect(await session.state == .management)
        // Without a configuration nothing is run.
        await bench.scene.transactionTask(nil) { _ in Issue.record("it ran") }
    }

    // MARK: - The card

    @Test func aReaderReachesTheCredentialsInstancesAlone() async throws {
        let bench = Bench()
        let (session, _) = try await bench.emulating()
        let card = try #require(bench.reader.card)
        #expect(await card.command(select) == .silence)
        await card.field(isPresent: true)
        #expect(await card.command(read) == .response([0x69, 0x85]))
        #expect(await card.command([0x00, 0xA4, 0x04, 0x00, 0x05, 0xA0, 0x00, 0x00, 0x00, 0x04]) == .response([0x6A, 0x82]))
        #expect(await card.command([0x00, 0x70, 0x00, 0x00, 0x01]) == .response([0x68, 0x81]))
        #expect(await card.command([0x00]) == .response([0x67, 0x00]))
        #expect(await !bench.element.log.contains { $0.hasPrefix("contactless") })
        #expect(await card.command(select) == .response([0x90, 0x00]))
        // A reset deselects.
        await card.field(isPresent: true)
        #expect(await card.command(read) == .response([0x69, 0x85]))
        try await session.invalidate()
    }

    @Test func theCardEndAnswersAThreadThatWaits() async throws {
        let bench = Bench()
        let (session, _) = try await bench.emulating()
        let card = try #require(bench.reader.card)
        let answer = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                card.powerOn()
                continuation.resume(returning: card.exchange([0x00, 0xA4, 0x04, 0x00, 0x05, 0xF0, 0x00, 0x00, 0x00, 0x01]))
            }
        }
        #expect(answer == .response([0x90, 0x00]))
        #expect(card.atr == [0x3B, 0x80, 0x80, 0x01, 0x01])
        try await session.invalidate()
    }

    @Test func anElementThatIsTakenBackUnderTheReaderEndsTheSession() async throws {
        let bench = Bench()
        let (session, _) = try await bench.emulating()
        let card = try #require(bench.reader.card)
        await card.field(isPresent: true)
        await bench.element.fails("contactless", .takenBack)
        #expect(await card.command(select) == .removed)
        #expect(await session.state == .invalid)
        #expect(await names(of: session.eventStream).last == "sessionInvalidated(acquiredResourceRelinquished)")
    }
}
