// SPDX-License-Identifier: MIT

import CardSockets
import Foundation
import GlobalPlatform
import Octets
import PCSC
import Synchronization
import TagTransport
import TestSupport
import Testing
import VirtualCards

@testable import SecureElementCredential

/// Where the GlobalPlatform element of a row is.
enum ElementPlace: String, CaseIterable, Sendable {
    /// In this process, with a contactless interface of its own.
    case process
    /// In the virtual reader of a real pcscd, reached through one connection.
    case reader

    static var available: [ElementPlace] { PrivatePCSCD.isAvailable ? allCases : [.process] }
}

/// A transport whose next commands fail.
final class FailingTransport: ISO7816TagTransporting {
    let inner: any NFCTagTransport
    private let state = Mutex<(failure: TransportError?, after: Int, commands: [String])>((nil, 0, []))

    init(_ inner: any NFCTagTransport) { self.inner = inner }

    /// - Parameter after: so many commands pass before.
    func fails(_ error: TransportError?, after: Int = 0) { state.withLock { ($0.failure, $0.after) = (error, after) } }
    /// What passed since the last time this was asked.
    func takeCommands() -> [String] {
        state.withLock { state in
            defer { state.commands = [] }
            return state.commands
        }
    }

    var initialAID: String { "" }
    var identifier: Data { inner.identifier }
    func send(_ data: Data) async throws -> Data { try await inner.send(data) }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let failure = state.withLock { state -> TransportError? in
            state.commands.append(Hex.encode(apdu.octets))
            guard state.failure != nil, state.after == 0 else {
                state.after = max(0, state.after - 1)
                return nil
            }
            return state.failure
        }
        if let failure { throw failure }
        return try await inner.sendAPDU(apdu)
    }
}

/// A device over a GlobalPlatform element, which has what is installed on it and nothing else.
struct ElementBench {
    /// A group of two loyalty applets, the second for the app alone.
    static let group = ProductConfiguration(
        identifier: TestElement.configuration, name: "group", packageAID: SpecimenPackage.loyalty.aid,
        loadFile: SpecimenPackage.loyalty.loadFileDataBlock,
        instances: [
            .init(
                aid: head, moduleAID: SpecimenPackage.loyalty.moduleAID, role: .head,
                personalization: [[0xDF, 0x03, 0x04, 0x00, 0x00, 0x00, 0x64]], transactionInstructions: [0x20]),
            .init(aid: member, moduleAID: SpecimenPackage.loyalty.moduleAID, role: .member, isContactless: false),
        ])
    /// A payment applet in a security domain of its own.
    static let payment = ProductConfiguration(
        identifier: UUID(uuidString: "22222222-2222-4333-8444-555555555555") ?? UUID(), name: "payment",
        packageAID: SpecimenPackage.payment.aid, loadFile: SpecimenPackage.payment.loadFileDataBlock,
        instances: [
            .init(
                aid: SpecimenPackage.payment.instanceAID, moduleAID: SpecimenPackage.payment.moduleAID,
                personalization: [
                    [0x5A, 0x08, 0x99, 0x99, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01], [0xDF, 0x01, 0x10] + key,
                ])
        ], domain: .init(aid: domain))
    static let head = SpecimenPackage.loyalty.moduleAID + [0x11]
    static let member = SpecimenPackage.loyalty.moduleAID + [0x91]
    static let domain: [UInt8] = [0xF0, 0x54, 0x44, 0x53, 0x44, 0x01]
    static let key = SecureElementConfiguration.testKey(16)

    let card: SimulatedSecureElement
    let transport: FailingTransport
    let registry = CredentialRegistry()
    let device: CredentialDevice
    let clock = SteppedClock()
    let reader = TestReader()
    let person = TestPerson()
    let scene = ProgramScene()

    init(
        _ card: SimulatedSecureElement, over inner: any NFCTagTransport, hasInterface: Bool, rules: CredentialRules = .ios27_1
    ) throws {
        self.card = card
        transport = FailingTransport(inner)
        let contactless = ContactlessInterface(
            card: { card.contactlessCard(instances: $0) }, listen: { hear in card.onEvent { hear($0.instanceAID, $0.data) } })
        let element = GlobalPlatformElement(
            transport: transport, keys: try GlobalPlatformKeys(single: Self.key), configurations: [Self.group, Self.payment],
            registry: registry, broker: Broker(card: card), contactless: hasInterface ? contactless : nil)
        device = CredentialDevice(
            element: element, authorizer: person, rules: rules, policy: CredentialPolicy { _ in }, host: reader, clock: clock,
            installationDelay: .seconds(1))
    }

    private struct Broker: AuthorizationBroker {
        let card: SimulatedSecureElement

        func deliverAuthorization(to instances: [[UInt8]]) async {
            for instance in instances { card.deliver(authorization: [0x01], to: instance) }
        }
    }

    /// Runs `body` with an element at `place`.
    static func at(
        _ place: ElementPlace, channel: SecureElementConfiguration.Channel = .scp03(option: 0x70), memory: Int = 262_144,
        rules: CredentialRules = .ios27_1, _ body: @Sendable (ElementBench) async throws -> Void
    ) async throws {
        var configuration = SecureElementConfiguration()
        configuration.channel = channel
        configuration.nonVolatileMemory = memory
        let card = try SimulatedSecureElement(configuration)
        switch place {
        case .process:
            try await body(
                ElementBench(card, over: VirtualCardTransport(card.wiredCard()), hasInterface: true, rules: rules))
        case .reader:
            try await PrivatePCSCD.use { service in
                let context = try await PCSCContext.open()
                let link = VPCDLink(card: card.wiredCard(), host: "127.0.0.1", port: service.ports[0])
                try await wait(context, service.readers[0], hasCard: false)
                try link.start()
                defer { link.stop() }
                try await wait(context, service.readers[0], hasCard: true)
                let transport = try await PCSCTransport.connect(context, to: service.readers[0])
                try await body(ElementBench(card, over: transport, hasInterface: false, rules: rules))
                try await transport.card.disconnect()
            }
        }
    }

    private static func wait(_ context: PCSCContext, _ reader: String, hasCard: Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(20)
        while try await context.readerStatuses().first(where: { $0.reader == reader })?.hasCard != hasCard {
            guard ContinuousClock.now < deadline else { throw TransportError(.tagConnectionLost) }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    func session() async throws -> Session { try await device.run { try await Session.startSession() } }

    /// A session with one installed credential.
    func withCredential(_ product: ProductConfiguration = group) async throws -> (Session, Session.Credential) {
        let session = try await session()
        let pending = try await session.provisionCredential(configurationUUID: product.identifier, name: "points")
        await clock.advance(by: .seconds(2))
        let listed = try await session.listCredentials().first { $0.identifier == pending.identifier }
        let credential = try #require(listed)
        #expect(credential.isInstalled)
        return (session, credential)
    }

    func session(in state: String, _ product: ProductConfiguration = group) async throws -> (Session, Session.Credential) {
        let (session, credential) = try await withCredential(product)
        switch state {
        case "wired": try await session.enterWiredMode(using: credential)
        case "cardEmulation": try await session.performTransaction(using: credential, over: scene)
        default: break
        }
        return (session, credential)
    }

    /// A credential that this app has no access to, and one that it has and that is not installed.
    static let unknown = Session.Credential(identifier: UUID(), name: "gone", state: .installed(instances: []))

    func pending(_ session: Session) async throws -> Session.Credential {
        try await session.provisionCredential(configurationUUID: Self.group.identifier, name: "later")
    }
}

func select(_ aid: [UInt8]) -> [UInt8] { [0x00, 0xA4, 0x04, 0x00, UInt8(aid.count)] + aid }
