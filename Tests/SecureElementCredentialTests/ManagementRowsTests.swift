// SPDX-License-Identifier: MIT

import FoundationEssentials
import Testing

@testable import SecureElementCredential

/// Rows T8 to T16, and the credential's states (section 2.4).
@Suite struct ManagementRowsTests {
    @Test func t8ListsWhatTheAppHasAccessTo() async throws {
        let bench = Bench()
        let session = try await bench.session()
        let names = try await session.listCredentials().map(\.name)
        #expect(Set(names) == ["wallet", "licence"])
        #expect(await session.state == .management)
    }

    @Test(arguments: ["wired", "cardEmulation"]) func t9RefusesToListInOtherStates(_ state: String) async throws {
        let bench = Bench()
        let (session, _) = try await bench.session(in: state)
        await #expect(throws: ErrorCode.invalidSessionState) { try await session.listCredentials() }
        #expect(await session.state.name == state)
    }

    @Test func t10ProvisionsAndTellsWhenItIsInstalled() async throws {
        let bench = Bench()
        let session = try await bench.session()
        let pending = try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "new")
        #expect(pending.state == .installationPending)
        #expect(pending.name == "new")
        let listed = try await session.listCredentials().first { $0.identifier == pending.identifier }
        #expect(listed?.state == .installationPending)
        await bench.clock.advance(by: .seconds(4))
        let after = try await session.listCredentials().first { $0.identifier == pending.identifier }
        #expect(after?.isInstalled == true)
        // A held value is a snapshot.
        #expect(pending.state == .installationPending)
        #expect(try await session.eventsToTheEnd() == ["installed(new)", "sessionInvalidated(sessionInvalidated)"])
    }

    @Test func t11RefusesWhatCannotBeProvisioned() async throws {
        let bench = Bench()
        let session = try await bench.session()
        let known = TestElement.configuration
        await #expect(throws: ErrorCode.invalidInput) {
            try await session.provisionCredential(configurationUUID: known, name: "")
        }
        await #expect(throws: ErrorCode.invalidProductConfigID) {
            try await session.provisionCredential(configurationUUID: UUID(), name: "x")
        }
        bench.device.policy.isOnline = false
        await #expect(throws: ErrorCode.network) { try await session.provisionCredential(configurationUUID: known, name: "x") }
        bench.device.policy.isOnline = true
        bench.device.policy.meetsConditions = false
        await #expect(throws: ErrorCode.conditionsNotSatisfied) {
            try await session.provisionCredential(configurationUUID: known, name: "x")
        }
        bench.device.policy.meetsConditions = true
        await bench.element.fails("provision", .noRoom)
        await #expect(throws: ErrorCode.insufficientSpace) {
            try await session.provisionCredential(configurationUUID: known, name: "x")
        }
        #expect(await session.state == .management)
        #expect(try await session.listCredentials().count == 2)
    }

    @Test func t11AnUnknownConfigurationWasInvalidInputBefore27() async throws {
        let bench = Bench(rules: .ios26_1)
        let session = try await bench.session()
        await #expect(throws: ErrorCode.invalidInput) {
            try await session.provisionCredential(configurationUUID: UUID(), name: "x")
        }
    }

    @Test(arguments: ["wired", "cardEmulation"]) func t12RefusesToProvisionInOtherStates(_ state: String) async throws {
        let bench = Bench()
        let (session, _) = try await bench.session(in: state)
        await #expect(throws: ErrorCode.invalidSessionState) {
            try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "x")
        }
        #expect(await session.state.name == state)
    }

    @Test func t13DeletesWhatTheAppOwns() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.withCredential()
        try await session.deleteCredential(credential)
        #expect(try await session.listCredentials().map(\.name) == ["licence"])
        #expect(await session.state == .management)
    }

    @Test(arguments: ["wired", "cardEmulation"]) func t14RefusesToDeleteInOtherStates(_ state: String) async throws {
        let bench = Bench()
        let (session, credential) = try await bench.session(in: state)
        await #expect(throws: ErrorCode.invalidSessionState) { try await session.deleteCredential(credential) }
        #expect(await session.state.name == state)
    }

    @Test func t15DeletesNothingUnknownOrOwnedByAnother() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.withCredential()
        let licence = try #require(try await session.listCredentials().first { $0.name == "licence" })
        await #expect(throws: ErrorCode.userNotAuthorized) { try await session.deleteCredential(licence) }
        try await session.deleteCredential(credential)
        await #expect(throws: ErrorCode.credentialDoesNotExist) { try await session.deleteCredential(credential) }
        #expect(await session.state == .management)
    }

    @Test func t16DeletingAPendingCredentialGivesItsInstallationUp() async throws {
        let bench = Bench()
        let session = try await bench.session()
        let pending = try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "new")
        try await session.deleteCredential(pending)
        await bench.clock.advance(by: .seconds(60))
        #expect(await !bench.element.log.contains("install"))
        #expect(try await session.eventsToTheEnd() == ["sessionInvalidated(sessionInvalidated)"])
    }

    // MARK: - Credential states

    @Test func aFailedInstallationShowsInTheNextListAlone() async throws {
        let bench = Bench()
        let session = try await bench.session()
        await bench.element.installationFails()
        let pending = try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "new")
        await bench.clock.advance(by: .seconds(4))
        #expect(pending.state == .installationPending)
        let listed = try #require(try await session.listCredentials().first { $0.identifier == pending.identifier })
        #expect(listed.state == .installationFailed)
        await #expect(throws: ErrorCode.invalidCredentialState) { try await session.enterWiredMode(using: listed) }
        try await session.deleteCredential(listed)
        #expect(try await session.listCredentials().count == 2)
        #expect(try await session.eventsToTheEnd() == ["sessionInvalidated(sessionInvalidated)"])
    }

    @Test func anInstallationGoesOnWhenItsSessionEnds() async throws {
        let bench = Bench()
        let session = try await bench.session()
        let pending = try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "new")
        try await session.invalidate()
        await bench.clock.advance(by: .seconds(4))
        let next = try await bench.session()
        let listed = try await next.listCredentials().first { $0.identifier == pending.identifier }
        #expect(listed?.isInstalled == true)
    }

    @Test func anInstallationWaitsUntilNobodyTalksToACredential() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.withCredential()
        _ = try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "new")
        try await session.enterWiredMode(using: credential)
        await bench.clock.advance(by: .seconds(5))
        #expect(await !bench.element.log.contains("install"))
        try await session.endWiredMode()
        #expect(await bench.element.log.suffix(2) == ["deselect", "install"])
    }

    @Test func credentialsAreEqualByAllTheyAreAndHashByIdentifier() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.withCredential()
        let again = try #require(try await session.listCredentials().first { $0.name == "wallet" })
        #expect(again == credential)
        let renamed = Session.Credential(identifier: credential.identifier, name: "other", state: credential.state)
        #expect(renamed != credential)
        var (one, other) = (Hasher(), Hasher())
        credential.hash(into: &one)
        renamed.hash(into: &other)
        #expect(one.finalize() == other.finalize())
    }

    @Test func theCounterIsReadFromTheElementInManagementAlone() async throws {
        let bench = Bench()
        let (session, credential) = try await bench.withCredential()
        let instance = try #require(credential.instances.first)
        #expect(try await instance.securityDomainCounter == 7)
        try await session.enterWiredMode(using: credential)
        await #expect(throws: ErrorCode.invalidSessionState) { try await instance.securityDomainCounter }
    }

    @Test func theElementTellsWhatItIs() async throws {
        let bench = Bench()
        let session = try await bench.session()
        #expect(try await session.secureElementInfo.hardwareReleaseVersionInfo == "JCOP 8.0")
    }

    @Test func anExtensionThatProvidesIdentitiesSeesGovernmentCredentialsAlone() async throws {
        let bench = Bench()
        bench.device.policy.isAppExtension = true
        bench.device.policy.isIdentityProvider = true
        let session = try await bench.session()
        #expect(try await session.listCredentials().map(\.name) == ["licence"])
        await #expect(throws: ErrorCode.ineligible) {
            try await session.provisionCredential(configurationUUID: TestElement.configuration, name: "x")
        }
        #expect(bench.trapped.reasons == ["provisionCredential(configurationUUID:name:) may not be called from an app extension"])
    }
}
