// SPDX-License-Identifier: MIT

import FoundationEssentials
import GlobalPlatform
import TagTransport
import Testing
import VirtualCards

@testable import SecureElementCredential

/// Rows T1 to T16 and the credential's states on a GlobalPlatform element, in this process and through pcscd.
@Suite(.serialized) struct ElementManagementRowsTests {
    @Test(arguments: ElementPlace.available) func t1StartsWithTheIssuersDomainSelected(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            let session = try await bench.session()
            #expect(await session.state == .management)
            #expect(bench.transport.takeCommands() == ["00A4040000"])
        }
    }

    @Test(arguments: ElementPlace.available) func t2ToT5AndT7AskNothingOfTheElement(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            bench.device.policy.isEligible = false
            await #expect(throws: ErrorCode.ineligible) { try await bench.session() }
            bench.device.policy.isEligible = true
            bench.device.policy.hasEntitlement = false
            await #expect(throws: ErrorCode.ineligible) { try await bench.session() }
            bench.device.policy.hasEntitlement = true
            bench.device.policy.meetsConditions = false
            await #expect(throws: ErrorCode.conditionsNotSatisfied) { try await bench.session() }
            bench.device.policy.meetsConditions = true
            bench.device.policy.mayUseSecureElement = false
            await #expect(throws: ErrorCode.accessDenied) { try await bench.session() }
            bench.device.policy.mayUseSecureElement = true
            await bench.device.enterBackground()
            await #expect(throws: ErrorCode.clientNotInForeground) { try await bench.session() }
            #expect(bench.transport.takeCommands().isEmpty)
        }
    }

    @Test(arguments: ElementPlace.available) func t6RefusesASecondSessionAndATakenCard(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            bench.transport.fails(TransportError(.sharingViolation, code: 0x8010_000B))
            await #expect(throws: ErrorCode.resourceUnavailable) { try await bench.session() }
            bench.transport.fails(nil)
            let session = try await bench.session()
            await #expect(throws: ErrorCode.resourceUnavailable) { try await bench.session() }
            try await session.invalidate()
            #expect(try await bench.session().state == .management)
        }
    }

    @Test(arguments: ElementPlace.available) func t8ListsWhatIsOnTheElement(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.withCredential()
            #expect(try await session.listCredentials().map(\.identifier) == [credential.identifier])
            #expect(credential.instances.map { Array($0.instanceAID) } == [ElementBench.head, ElementBench.member])
            #expect(credential.instances.map(\.instanceType) == [.headApplication, .groupApplication])
            #expect(credential.instances.allSatisfy { $0.lifeCycleState.first == 0x07 })
        }
    }

    @Test(arguments: ElementPlace.available, ["wired", "cardEmulation"])
    func t9T12AndT14RefuseManagementInOtherStates(_ place: ElementPlace, _ state: String) async throws {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.session(in: state)
            let before = await session.state
            _ = bench.transport.takeCommands()
            await #expect(throws: ErrorCode.invalidSessionState) { try await session.listCredentials() }
            await #expect(throws: ErrorCode.invalidSessionState) { try await bench.pending(session) }
            await #expect(throws: ErrorCode.invalidSessionState) { try await session.deleteCredential(credential) }
            #expect(await session.state == before)
            #expect(bench.transport.takeCommands().isEmpty)
        }
    }

    @Test(arguments: ElementPlace.available, [SecureElementConfiguration.Channel.scp03(option: 0x70), .scp02(option: 0x15)])
    func t10InstallsAndTells(_ place: ElementPlace, _ channel: SecureElementConfiguration.Channel) async throws {
        try await ElementBench.at(place, channel: channel) { bench in
            let session = try await bench.session()
            let pending = try await bench.pending(session)
            #expect(pending.state == .installationPending)
            #expect(bench.card.contents().isEmpty)
            await bench.clock.advance(by: .seconds(2))
            #expect(bench.card.contents().count == 3)
            #expect(try await session.eventsToTheEnd() == ["installed(later)", "sessionInvalidated(sessionInvalidated)"])
        }
    }

    @Test(arguments: ElementPlace.available) func t11RefusesWhatCannotBeProvisioned(_ place: ElementPlace) async throws {
        try await ElementBench.at(place, memory: 1_024) { bench in
            let session = try await bench.session()
            await #expect(throws: ErrorCode.insufficientSpace) { try await bench.pending(session) }
            await #expect(throws: ErrorCode.invalidInput) {
                try await session.provisionCredential(configurationUUID: ElementBench.group.identifier, name: "")
            }
            await #expect(throws: ErrorCode.invalidProductConfigID) {
                try await session.provisionCredential(configurationUUID: UUID(), name: "points")
            }
            bench.device.policy.isOnline = false
            await #expect(throws: ErrorCode.network) { try await bench.pending(session) }
            bench.device.policy.meetsConditions = false
            await #expect(throws: ErrorCode.conditionsNotSatisfied) { try await bench.pending(session) }
            #expect(await session.state == .management)
        }
    }

    @Test(arguments: ElementPlace.available) func t13DeletesWithTheLoadFileOfTheLastCredential(_ place: ElementPlace) async throws
    {
        try await ElementBench.at(place) { bench in
            let (session, first) = try await bench.withCredential()
            _ = try await bench.pending(session)
            await bench.clock.advance(by: .seconds(2))
            let second = try #require(try await session.listCredentials().first { $0.name == "later" })
            #expect(second.instances.first?.instanceAID != first.instances.first?.instanceAID)
            try await session.deleteCredential(first)
            #expect(bench.card.contents().contains { $0.isLoadFile })
            try await session.deleteCredential(second)
            #expect(bench.card.contents().isEmpty)
        }
    }

    @Test(arguments: ElementPlace.available) func t15DeletesNothingUnknownOrOfOthers(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.withCredential()
            await #expect(throws: ErrorCode.credentialDoesNotExist) {
                try await session.deleteCredential(ElementBench.unknown)
            }
            var stored = try #require(bench.registry.credentials.first)
            (stored.owner, stored.users) = ("other", ["app"])
            bench.registry.put(stored)
            await #expect(throws: ErrorCode.userNotAuthorized) { try await session.deleteCredential(credential) }
            #expect(bench.card.contents().count == 3)
        }
    }

    @Test(arguments: ElementPlace.available) func t16DeletingAPendingCredentialInstallsNothing(_ place: ElementPlace) async throws
    {
        try await ElementBench.at(place) { bench in
            let session = try await bench.session()
            try await session.deleteCredential(try await bench.pending(session))
            await bench.clock.advance(by: .seconds(5))
            #expect(bench.card.contents().isEmpty)
            #expect(try await session.listCredentials().isEmpty)
        }
    }

    // MARK: - Credential states

    @Test(arguments: ElementPlace.available) func aFailedInstallationLeavesNothingAndShowsInTheNextList(_ place: ElementPlace)
        async throws
    {
        try await ElementBench.at(place) { bench in
            let session = try await bench.session()
            let pending = try await bench.pending(session)
            // The reader fails in the middle of the load, once.
            bench.transport.fails(TransportError(.readerFailure), after: 6)
            await bench.clock.advance(by: .seconds(2))
            bench.transport.fails(nil)
            let listed = try #require(try await session.listCredentials().first { $0.identifier == pending.identifier })
            #expect(listed.state == .installationFailed)
            #expect(bench.registry.credentials.first?.installation == .failed)
            try await session.deleteCredential(listed)
            #expect(bench.card.contents().isEmpty)
            #expect(bench.registry.credentials.isEmpty)
            #expect(try await session.eventsToTheEnd() == ["sessionInvalidated(sessionInvalidated)"])
        }
    }

    @Test(arguments: ElementPlace.available, [0, 1, 5, 8, 11, 13])
    func anInstallationThatLosesTheCardGoesOnInTheNextSession(_ place: ElementPlace, _ commands: Int) async throws {
        try await ElementBench.at(place) { bench in
            let session = try await bench.session()
            let pending = try await bench.pending(session)
            bench.transport.fails(TransportError(.tagConnectionLost), after: commands)
            await bench.clock.advance(by: .seconds(2))
            bench.transport.fails(nil)
            #expect(bench.registry.credentials.first?.installation == .pending)
            try await session.invalidate()

            let next = try await bench.session()
            await bench.clock.advance(by: .seconds(2))
            let listed = try #require(try await next.listCredentials().first { $0.identifier == pending.identifier })
            #expect(listed.isInstalled)
            #expect(bench.card.contents().map(\.state) == [.installed, .installed, .installed])
        }
    }

    @Test(arguments: ElementPlace.available) func aCredentialThatIsGoneFromTheElementIsDropped(_ place: ElementPlace) async throws
    {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.withCredential()
            let host = GlobalPlatformHost(transport: bench.transport, keys: try GlobalPlatformKeys(single: ElementBench.key))
            try await host.select()
            try await host.openChannel(level: .mac)
            try await host.delete(ElementBench.member)
            // A part of it is gone: it has failed, and is not lost.
            #expect(try await session.listCredentials().map(\.state) == [.installationFailed])
            var whole = try #require(bench.registry.credentials.first)
            whole.installation = .installed
            bench.registry.put(whole)
            try await host.select()
            try await host.openChannel(level: .mac)
            try await host.delete(ElementBench.head)
            #expect(try await session.listCredentials().isEmpty)
            // So is what it left behind.
            #expect(bench.card.contents().isEmpty)
            await #expect(throws: ErrorCode.credentialDoesNotExist) { try await session.deleteCredential(credential) }
        }
    }

    // MARK: - A security domain of one's own

    @Test(arguments: ElementPlace.available, [SecureElementConfiguration.Channel.scp03(option: 0x70), .scp02(option: 0x55)])
    func aCredentialsOwnSecurityDomainHasKeysOfItsOwn(_ place: ElementPlace, _ channel: SecureElementConfiguration.Channel)
        async throws
    {
        try await ElementBench.at(place, channel: channel) { bench in
            let (session, credential) = try await bench.withCredential(ElementBench.payment)
            let instance = try #require(credential.instances.first)
            #expect(Array(instance.securityDomainAID) == ElementBench.domain)
            #expect(!instance.securityDomainKeyInfo.isEmpty)
            let counter = try await instance.securityDomainCounter
            try await session.enterWiredMode(using: credential)
            // The owner opens a channel to it in wired mode, through the session.
            let parent = try GlobalPlatformKeys(single: ElementBench.key)
            let isAES = if case .scp03 = channel { true } else { false }
            let owner = GlobalPlatformHost(
                transport: SessionTransport(session: session),
                keys: try ProductConfiguration.domainKeys(
                    of: ElementBench.domain, parent: parent, version: isAES ? 0x31 : 0x21))
            try await owner.select(ElementBench.domain)
            try await owner.openChannel(level: .mac)
            #expect(try await owner.sequenceCounter() == counter + 1)
            // The issuer's keys do not open it any more.
            let issuer = GlobalPlatformHost(transport: SessionTransport(session: session), keys: parent)
            try await issuer.select(ElementBench.domain)
            await #expect(throws: GlobalPlatformError(.cardCryptogramWrong)) { try await issuer.openChannel(level: .mac) }
            try await session.endWiredMode()
            try await session.deleteCredential(credential)
            #expect(bench.card.contents().isEmpty)
        }
    }
}

/// Wired mode as a transport.
struct SessionTransport: NFCTagTransport {
    let session: Session
    var identifier: Data { Data() }

    func send(_ data: Data) async throws -> Data { try await session.transceive(data) }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        try ResponseAPDU(bytes: Array(try await session.transceive(Data(apdu.octets))))
    }
}
