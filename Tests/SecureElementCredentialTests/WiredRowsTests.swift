// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets
import Testing

@testable import SecureElementCredential

/// Rows T17 to T38: wired mode and how it is entered.
@Suite struct WiredRowsTests {
    static let all = ["management", "wired", "cardEmulation"]
    private let select = Data([0x00, 0xA4, 0x04, 0x00, 0x05] + TestElement.head)
    private let read = Data([0x00, 0xB0, 0x00, 0x00, 0x04])

    @Test(arguments: all) func t17EntersWiredModeFromAnyState(_ state: String) async throws {
        let bench = Bench()
        let (session, credential) = try await bench.session(in: state)
        try await session.enterWiredMode(using: credential)
        #expect(await session.state == .wired(credential: credential))
    }

    @Test(arguments: all) func t18StaysWhenTheCredentialIsNotInstalled(_ state: String) async throws {
        let bench = Bench()
        let session = try await bench.session()
        let pending = try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "new")
        let wallet = try #require(try await session.listCredentials().first { $0.name == "wallet" })
        if state == "wired" { try await session.enterWiredMode(using: wallet) }
        if state == "cardEmulation" { try await session.performTransaction(using: wallet, over: bench.scene) }
        await #expect(throws: ErrorCode.invalidCredentialState) { try await session.enterWiredMode(using: pending) }
        #expect(await session.state.name == state)
    }

    @Test(arguments: all) func t19GoesToManagementWhenTheElementIsBusy(_ state: String) async throws {
        let bench = Bench()
        let (session, credential) = try await bench.session(in: state)
        await bench.element.fails("select", .busy)
        await #expect(throws: ErrorCode.resourceUnavailable) { try await session.enterWiredMode(using: credential) }
        #expect(await session.state == .management)
    }

    @Test func t20LeavesCardEmulationWithoutATimeout() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.emulating()
        try await session.enterWiredMode(using: credential)
        #expect(bench.reader.card == nil)
        await bench.device.readerField(isPresent: true)
        await bench.clock.advance(by: .seconds(14))
        #expect(await session.state == .wired(credential: credential))
        #expect(try await session.eventsToTheEnd() == ["fieldAbsent", "sessionInvalidated(sessionInvalidated)"])
    }

    @Test func t21SelectsTheFirstInstanceOnEntry() async throws {
        let bench = Bench()
        _ = try await bench.wired()
        #expect(await bench.element.log.last == "select F000000001")
    }

    @Test func t22ExchangesAPDUs() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.wired()
        #expect(try await session.transceive(select) == Data([0xCA, 0xFE, 0x90, 0x00]))
        #expect(await session.state == .wired(credential: credential))
    }

    @Test(arguments: ["management", "cardEmulation"]) func t23RefusesExchangesInOtherStates(_ state: String) async throws {
        let bench = Bench()
        let (session, _) = try await bench.session(in: state)
        await #expect(throws: ErrorCode.invalidSessionState) { try await session.transceive(read) }
        #expect(await session.state.name == state)
    }

    @Test func t24RefusesToSelectOutsideTheCredential() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.wired()
        await bench.element.forgetLog()
        for name in [[0xA0, 0x00, 0x00, 0x00, 0x04], [], [0xF0, 0x00], [0xF0, 0x00, 0x00, 0x00, 0x01, 0x00]] as [[UInt8]] {
            let command = Data([0x00, 0xA4, 0x04, 0x00] + (name.isEmpty ? [0x00] : [UInt8(name.count)] + name))
            await #expect(throws: ErrorCode.commandNotSupported) { try await session.transceive(command) }
        }
        #expect(await bench.element.log.isEmpty)
        // The security domain of an instance may be selected.
        _ = try await session.transceive(Data([0x00, 0xA4, 0x04, 0x00, 0x08] + TestElement.domain))
        #expect(await session.state == .wired(credential: credential))
    }

    @Test(arguments: ["0070000001", "00708001", "01B0000004", "40B0000004", "03A4040005F000000001"])
    func t25RefusesChannelsBesideTheBasicOne(_ command: String) async throws {
        let bench = Bench()
        let (session, credential) = try await bench.wired()
        let octets = Data(try Hex.decode(command))
        await #expect(throws: ErrorCode.commandNotSupported) { try await session.transceive(octets) }
        #expect(await session.state == .wired(credential: credential))
    }

    @Test func t26GoesToManagementWhenTheElementIsGone() async throws {
        let bench = Bench()
        let (session, _) = try await bench.wired()
        await bench.element.fails("transceive", .busy)
        await #expect(throws: ErrorCode.resourceUnavailable) { try await session.transceive(read) }
        #expect(await session.state == .management)
    }

    @Test func t27GoesToManagementWhenTheElementIsTakenBack() async throws {
        let bench = Bench()
        let (session, _) = try await bench.wired()
        await bench.element.fails("transceive", .takenBack)
        await #expect(throws: ErrorCode.acquiredResourceRelinquished) { try await session.transceive(read) }
        #expect(await session.state == .management)
    }

    @Test(arguments: ["", "00B000", "00A4040005F0", "00A4040002F000000001"])
    func t28RefusesOctetsThatAreNoCommand(_ command: String) async throws {
        let bench = Bench()
        let (session, credential) = try await bench.wired()
        let octets = Data(try Hex.decode(command))
        await #expect(throws: ErrorCode.invalidInput) { try await session.transceive(octets) }
        #expect(await session.state == .wired(credential: credential))
    }

    @Test func t29HandsOutAStatusWordThatMeansAnError() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.wired()
        #expect(try await session.transceive(read) == Data([0x6A, 0x82]))
        #expect(await session.state == .wired(credential: credential))
    }

    @Test func t30EndsWiredMode() async throws {
        let bench = Bench()
        let (session, _) = try await bench.wired()
        try await session.endWiredMode()
        #expect(await session.state == .management)
        #expect(await bench.element.log.last == "deselect")
    }

    @Test(arguments: ["management", "cardEmulation"]) func t31RefusesToEndWhatIsNotWired(_ state: String) async throws {
        let bench = Bench()
        let (session, _) = try await bench.session(in: state)
        await #expect(throws: ErrorCode.invalidSessionState) { try await session.endWiredMode() }
        #expect(await session.state.name == state)
    }

    @Test func t32EndsTheSessionAfterFifteenIdleSeconds() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.wired()
        await bench.clock.advance(by: .milliseconds(14_999))
        #expect(await session.state == .wired(credential: credential))
        await bench.clock.advance(by: .milliseconds(1))
        #expect(await session.state == .invalid)
        #expect(await names(of: session.eventStream) == ["sessionInvalidated(acquiredResourceRelinquished)"])
        #expect(await !bench.element.isOpen)
    }

    @Test func l1aTheIdleClockBeginsAgainWhenAnExchangeEndsAndStandsDuringIt() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.wired()
        await bench.clock.advance(by: .seconds(14))
        let gate = TestGate()
        await bench.element.waits("transceive", at: gate)
        let exchange = Task { [read] in try await session.transceive(read) }
        await gate.someoneWaits()
        await bench.clock.advance(by: .seconds(100))
        await gate.open()
        _ = try await exchange.value
        await bench.clock.advance(by: .milliseconds(14_999))
        #expect(await session.state == .wired(credential: credential))
        await bench.clock.advance(by: .milliseconds(1))
        #expect(await session.state == .invalid)
    }

    // MARK: - With the person's authorisation

    @Test(arguments: all) func t33EntersWiredModeForATransaction(_ state: String) async throws {
        let bench = Bench()
        let (session, credential) = try await bench.session(in: state)
        try await session.performWiredTransaction(using: credential, over: bench.scene, instanceAID: Data(TestElement.head))
        #expect(await session.state == .wired(credential: credential))
        // The head's authorisation goes to the members of its group.
        #expect(await bench.element.log.contains("authorize F000000001,F000000002"))
        #expect(await bench.element.log.last == "select F000000001")
    }

    @Test func t33EntersWiredModeForATransactionOfAScene() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.withCredential()
        let configuration = try await session.configuration()
        await bench.scene.transactionTask(configuration) { transaction in
            await #expect(throws: Never.self) {
                try await transaction.performTransactionInWiredMode(
                    using: credential, instanceAID: Data(TestElement.head))
            }
            #expect(await session.state == .wired(credential: credential))
        }
    }

    @Test(arguments: all) func t34GoesToManagementWhenTheSheetIsDismissed(_ state: String) async throws {
        let bench = Bench()
        let (session, credential) = try await bench.session(in: state)
        bench.person.will(.dismiss)
        await #expect(throws: ErrorCode.userCanceledAuthorization) {
            try await session.performWiredTransaction(using: credential, over: bench.scene, instanceAID: Data(TestElement.head))
        }
        #expect(await session.state == .management)
    }

    @Test(arguments: all) func t35StaysWhenThePersonDeclines(_ state: String) async throws {
        let bench = Bench()
        let (session, credential) = try await bench.session(in: state)
        bench.person.will(.decline)
        await #expect(throws: ErrorCode.accessDenied) {
            try await session.performWiredTransaction(using: credential, over: bench.scene, instanceAID: Data(TestElement.head))
        }
        #expect(await session.state.name == state)
    }

    @Test(arguments: all) func t36StaysForWhatCannotBeAuthorized(_ state: String) async throws {
        let bench = Bench()
        let (session, credential) = try await bench.session(in: state)
        let asked = bench.person.asked
        let unknown = Session.Credential(identifier: UUID(), name: "x", state: credential.state)
        let head = Data(TestElement.head)
        await #expect(throws: ErrorCode.credentialDoesNotExist) {
            try await session.performWiredTransaction(using: unknown, over: bench.scene, instanceAID: head)
        }
        await #expect(throws: ErrorCode.instanceDoesNotExist) {
            try await session.performWiredTransaction(using: credential, over: bench.scene, instanceAID: Data([1, 2, 3, 4, 5]))
        }
        await #expect(throws: ErrorCode.invalidView) {
            try await session.performWiredTransaction(using: credential, over: ProgramScene(isValid: false), instanceAID: head)
        }
        #expect(bench.person.asked == asked)
        #expect(await session.state.name == state)
    }

    @Test func t36StaysForACredentialThatIsNotInstalled() async throws {
        let bench = Bench()
        let session = try await bench.session()
        let pending = try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "new")
        await #expect(throws: ErrorCode.invalidCredentialState) {
            try await session.performWiredTransaction(using: pending, over: bench.scene, instanceAID: Data(TestElement.head))
        }
        #expect(await session.state == .management)
    }

    @Test(arguments: all) func t37StaysForAMemberOfAGroup(_ state: String) async throws {
        let bench = Bench()
        let (session, credential) = try await bench.session(in: state)
        await #expect(throws: ErrorCode.instanceDoesNotExist) {
            try await session.performWiredTransaction(using: credential, over: bench.scene, instanceAID: Data(TestElement.member))
        }
        #expect(await session.state.name == state)
    }

    @Test(arguments: all) func t38GoesToManagementWhenTheElementIsBusy(_ state: String) async throws {
        let bench = Bench()
        let (session, credential) = try await bench.session(in: state)
        await bench.element.fails("authorize", .busy)
        await #expect(throws: ErrorCode.resourceUnavailable) {
            try await session.performWiredTransaction(using: credential, over: bench.scene, instanceAID: Data(TestElement.head))
        }
        #expect(await session.state == .management)
    }

    // MARK: - Contested

    @Test(arguments: [("ios26.1", "management"), ("ios27.1", "wired")])
    func g8AnyErrorLedToManagementUnder26(_ rules: String, _ state: String) async throws {
        let bench = Bench(rules: try #require(CredentialRules(named: rules)))
        let (session, credential) = try await bench.wired()
        bench.person.will(.decline)
        await #expect(throws: ErrorCode.accessDenied) {
            try await session.performWiredTransaction(using: credential, over: bench.scene, instanceAID: Data(TestElement.head))
        }
        #expect(await session.state.name == state)
    }

    @Test(arguments: [("ios26.1", ErrorCode.userAuthorizationTimedOut), ("ios27.1", .userCanceledAuthorization)])
    func aSheetThatTimesOutHasTheErrorOfItsRelease(_ rules: String, _ error: ErrorCode) async throws {
        let bench = Bench(rules: try #require(CredentialRules(named: rules)))
        let (session, credential) = try await bench.wired()
        bench.person.will(.timeOut)
        await #expect(throws: error) { try await session.performTransaction(using: credential, over: bench.scene) }
        #expect(await session.state == .management)
    }

    @Test func g12AMereUserMayPresentAndNotMaintain() async throws {
        let bench = Bench()
        let session = try await bench.session()
        let licence = try #require(try await session.listCredentials().first { $0.name == "licence" })
        await #expect(throws: ErrorCode.userNotAuthorized) { try await session.enterWiredMode(using: licence) }
        try await session.performTransaction(using: licence, over: bench.scene)
        #expect(await session.state == .cardEmulation(credential: licence))
    }
}
