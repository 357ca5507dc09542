// SPDX-License-Identifier: MIT

import CardSockets
import FoundationEssentials
import GlobalPlatform
import Octets
import Synchronization
import TagTransport
import Testing
import VirtualCards

@testable import SecureElementCredential

/// A GlobalPlatform element behind a transport, with the rows that need no clock.
@Suite struct GlobalPlatformElementTests {
    /// The loyalty applet tells 100 points after its personalisation, and counts.
    private static let product = ProductConfiguration(
        identifier: TestElement.configuration, name: "loyalty", packageAID: SpecimenPackage.loyalty.aid,
        loadFile: SpecimenPackage.loyalty.loadFileDataBlock,
        instances: [
            .init(
                aid: SpecimenPackage.loyalty.instanceAID, moduleAID: SpecimenPackage.loyalty.moduleAID,
                personalization: [[0xDF, 0x03, 0x04, 0x00, 0x00, 0x00, 0x64]], transactionInstructions: [0x20])
        ])

    /// A transport whose next commands fail.
    private final class Failing: ISO7816TagTransporting {
        let inner: VirtualCardTransport
        private let failure = Mutex<TransportError?>(nil)

        init(_ inner: VirtualCardTransport) { self.inner = inner }

        func fails(_ error: TransportError?) { failure.withLock { $0 = error } }
        var initialAID: String { "" }
        var identifier: Data { inner.identifier }
        func send(_ data: Data) async throws -> Data { try await inner.send(data) }

        func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
            if let error = failure.withLock({ $0 }) { throw error }
            return try await inner.sendAPDU(apdu)
        }
    }

    private struct CardBench {
        let card: SimulatedSecureElement
        let transport: Failing
        let registry: CredentialRegistry
        let device: CredentialDevice
        let clock = SteppedClock()
        let reader = TestReader()

        init(memory: Int = 262_144, channel: SecureElementConfiguration.Channel = .scp03(option: 0x70)) throws {
            var configuration = SecureElementConfiguration()
            configuration.nonVolatileMemory = memory
            configuration.channel = channel
            card = try SimulatedSecureElement(configuration)
            transport = Failing(VirtualCardTransport(card.wiredCard()))
            registry = CredentialRegistry()
            let element = GlobalPlatformElement(
                transport: transport, keys: try GlobalPlatformKeys(single: SecureElementConfiguration.testKey(16)),
                configurations: [product], registry: registry)
            device = CredentialDevice(
                element: element, authorizer: FixedAuthorizer(), rules: .ios27_1, policy: CredentialPolicy(), host: reader,
                clock: clock, installationDelay: .seconds(1))
        }

        /// A session with one installed credential.
        func withCredential() async throws -> (Session, Session.Credential) {
            let session = try await device.run { try await Session.startSession() }
            let pending = try await session.provisionCredential(configurationUUID: product.identifier, name: "points")
            await clock.advance(by: .seconds(2))
            let listed = try await session.listCredentials().first { $0.identifier == pending.identifier }
            return (session, try #require(listed))
        }
    }

    @Test(arguments: [SecureElementConfiguration.Channel.scp03(option: 0x70), .scp02(option: 0x15)])
    func t10InstallsACredentialOnTheCard(_ channel: SecureElementConfiguration.Channel) async throws {
        let bench = try CardBench(channel: channel)
        let (session, credential) = try await bench.withCredential()
        #expect(credential.isInstalled)
        let instance = try #require(credential.instances.first)
        #expect(Array(instance.instanceAID) == SpecimenPackage.loyalty.instanceAID)
        #expect(Array(instance.securityDomainAID) == [0xA0, 0x00, 0x00, 0x01, 0x51, 0x00, 0x00, 0x00])
        #expect(bench.card.contents().contains { $0.aid == SpecimenPackage.loyalty.instanceAID && $0.isPersonalized })
        try await session.invalidate()
    }

    @Test func t11TellsOfACardWithoutRoom() async throws {
        let bench = try CardBench(memory: 1_024)
        let session = try await bench.device.run { try await Session.startSession() }
        await #expect(throws: ErrorCode.insufficientSpace) {
            try await session.provisionCredential(configurationUUID: Self.product.identifier, name: "points")
        }
        #expect(try await session.listCredentials().isEmpty)
    }

    @Test func t13DeletesInstancesAndTheLoadFileWithTheLastCredential() async throws {
        let bench = try CardBench()
        let (session, first) = try await bench.withCredential()
        _ = try await session.provisionCredential(configurationUUID: Self.product.identifier, name: "more")
        await bench.clock.advance(by: .seconds(2))
        let second = try #require(try await session.listCredentials().first { $0.name == "more" })
        // Two credentials of one configuration have instances with names of their own.
        #expect(second.instances.first?.instanceAID != first.instances.first?.instanceAID)
        try await session.deleteCredential(first)
        #expect(bench.card.contents().contains { $0.isLoadFile })
        try await session.deleteCredential(second)
        #expect(bench.card.contents().isEmpty)
        #expect(try await session.listCredentials().isEmpty)
    }

    @Test func t22ExchangesWithTheAppletThatWasSelectedOnEntry() async throws {
        let bench = try CardBench()
        let (session, credential) = try await bench.withCredential()
        try await session.enterWiredMode(using: credential)
        let points = Data([0x80, 0x10, 0x00, 0x00, 0x00])
        #expect(try await session.transceive(points) == Data([0x00, 0x00, 0x00, 0x64, 0x90, 0x00]))
        await #expect(throws: ErrorCode.commandNotSupported) {
            try await session.transceive(Data([0x00, 0xA4, 0x04, 0x00, 0x05, 0xA0, 0x00, 0x00, 0x00, 0x04]))
        }
        #expect(try await session.transceive(Data([0x80, 0x99, 0x00, 0x00])) == Data([0x6D, 0x00]))
        try await session.endWiredMode()
        // The issuer security domain is selected again.
        #expect(try await bench.transport.sendAPDU(CommandAPDU(bytes: [0x80, 0x10, 0x00, 0x00, 0x00])).isSuccess == false)
    }

    static let faults: [(TransportError.Case, ErrorCode)] = [
        (.sharingViolation, .resourceUnavailable), (.readerUnavailable, .resourceUnavailable),
        (.serviceUnavailable, .resourceUnavailable), (.tagReset, .acquiredResourceRelinquished),
        (.tagConnectionLost, .acquiredResourceRelinquished),
    ]

    @Test(arguments: faults.indices) func t26AndT27TheReadersFaultsLeadToManagement(_ index: Int) async throws {
        let (fault, error) = Self.faults[index]
        let bench = try CardBench()
        let (session, credential) = try await bench.withCredential()
        try await session.enterWiredMode(using: credential)
        bench.transport.fails(TransportError(fault))
        await #expect(throws: error) { try await session.transceive(Data([0x80, 0x10, 0x00, 0x00, 0x00])) }
        #expect(await session.state == .management)
    }

    @Test func t6ACardThatIsNotThereRefusesTheStart() async throws {
        let bench = try CardBench()
        bench.transport.fails(TransportError(.tagConnectionLost))
        await #expect(throws: ErrorCode.resourceUnavailable) { try await bench.device.run { try await Session.startSession() } }
        bench.transport.fails(nil)
        #expect(try await bench.device.run { try await Session.startSession() }.state == .management)
    }

    @Test func aFailedInstallationLeavesNothingOnTheCard() async throws {
        let bench = try CardBench()
        let session = try await bench.device.run { try await Session.startSession() }
        let pending = try await session.provisionCredential(configurationUUID: Self.product.identifier, name: "points")
        bench.transport.fails(TransportError(.timeout))
        await bench.clock.advance(by: .seconds(2))
        bench.transport.fails(nil)
        let listed = try #require(try await session.listCredentials().first { $0.identifier == pending.identifier })
        #expect(listed.state == .installationFailed)
        #expect(bench.card.contents().allSatisfy { $0.aid != SpecimenPackage.loyalty.instanceAID })
        try await session.deleteCredential(listed)
        #expect(bench.registry.credentials.isEmpty)
    }

    @Test func t51TheAppletsCountIsATransactionEvent() async throws {
        let bench = try CardBench()
        let (session, credential) = try await bench.withCredential()
        try await session.performTransaction(using: credential, over: ProgramScene())
        let card = try #require(bench.reader.card)
        await card.field(isPresent: true)
        _ = await card.command([0x00, 0xA4, 0x04, 0x00, 0x09] + SpecimenPackage.loyalty.instanceAID)
        #expect(
            await card.command([0x80, 0x20, 0x00, 0x00, 0x02, 0x00, 0x05])
                == .response([0x00, 0x00, 0x00, 0x69, 0x90, 0x00]))
        let events = try await session.eventsToTheEnd()
        #expect(
            events == [
                "installed(points)", "fieldAbsent", "fieldPresent", "connectivity(2000000069)",
                "sessionInvalidated(sessionInvalidated)",
            ])
    }
}
