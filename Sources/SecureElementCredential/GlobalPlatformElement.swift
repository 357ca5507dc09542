// SPDX-License-Identifier: MIT

import CardCrypto
import CardSockets
public import FoundationEssentials
public import GlobalPlatform
import Octets
public import TagTransport

/// Hands the person's authorisation to applets: what GlobalPlatform's broker interface (GPC_SPE_157) does on an element
/// that has one.
public protocol AuthorizationBroker: Sendable {
    func deliverAuthorization(to instances: [[UInt8]]) async
}

/// Keeps other programs from a secure element for as long as an operation lasts: a transaction of PC/SC.
public protocol ElementHolding: Sendable {
    /// Waits until nobody else has the element, then keeps it. An element that is not there is no error: the next command says so.
    func hold() async
    /// Lets it go.
    func letGo() async
}

/// A GlobalPlatform secure element behind any transport: a card in a reader, or the simulated element in this process.
///
/// One connection carries the wired and, without a ``ContactlessInterface``, the contactless interface too; it is never reset
/// between them. Where the element has a contactless registry (GlobalPlatform Amendment C), what is emulated is activated in it
/// for as long as the emulation lasts.
public actor GlobalPlatformElement: SecureElement {
    let transport: any NFCTagTransport
    let host: GlobalPlatformHost
    let registry: CredentialRegistry
    let configurations: [ProductConfiguration]
    private let broker: (any AuthorizationBroker)?
    private let interface: ContactlessInterface?
    private let holding: (any ElementHolding)?
    /// Nil until it was asked for.
    private var hasContactlessRegistry: Bool?
    /// What a reader has selected, and which instance that is.
    private var contactlessInstance: ProductConfiguration.Instance?
    private var contactlessAID: [UInt8] = []

    /// - Parameters:
    ///   - keys: of the issuer security domain; without them credentials can be used and not managed.
    ///   - configurations: what can be provisioned.
    ///   - registry: what the host knows of the credentials.
    ///   - broker: hands on the person's authorisation; nobody does when nil.
    ///   - contactless: the element's contactless interface; the connection serves for it when nil.
    ///   - holding: keeps other programs away while something is managed; nil where there are none.
    public init(
        transport: any NFCTagTransport, keys: GlobalPlatformKeys?, configurations: [ProductConfiguration],
        registry: CredentialRegistry, broker: (any AuthorizationBroker)? = nil, contactless: ContactlessInterface? = nil,
        holding: (any ElementHolding)? = nil
    ) {
        self.holding = holding
        self.transport = transport
        host = GlobalPlatformHost(transport: PlainChaining(transport: transport), keys: keys)
        self.configurations = configurations
        self.registry = registry
        self.broker = broker
        interface = contactless
    }

    public nonisolated var routesContactless: Bool { interface != nil }

    public func open() async throws(SecureElementError) {
        hasContactlessRegistry = nil
        try await managing(isBefore: true) { _ = try await host.select() }
    }

    public func close() async { await host.forgetChannel() }

    /// Nothing, unless the card's production data (`9F7F`) and a certificate (`7F21`) can be read.
    public func information() async throws(SecureElementError) -> CredentialSession.SecureElementInfo? {
        try await managing {
            do {
                try await host.select()
                let production = try await host.getData(0x9F7F)
                let certificate = try await host.getData(0x7F21)
                guard let object = try? TLV.first(in: production[...]), object.value.count >= 10 else { return nil }
                // Operating system release level: octets 9 and 10 of the production data.
                let release = Array(object.value)[8..<10]
                return CredentialSession.SecureElementInfo(
                    hardwareReleaseVersionInfo: "JCOP \(release.first ?? 0).\(release.last ?? 0)",
                    secureElementPlatformSigningCertificate: Data(certificate))
            } catch is GlobalPlatformError {
                return nil
            }
        }
    }

    public func knownCredential(_ identifier: UUID) async -> StoredCredential? { registry.credential(identifier) }

    public func pendingCredentials() async -> [UUID] {
        registry.credentials.filter { $0.installation == .pending }.map(\.identifier)
    }

    // MARK: - Wired

    public func select(instance aid: [UInt8]) async throws(SecureElementError) {
        try await mapping { _ = try await host.select(aid) }
    }

    public func transceive(_ command: [UInt8]) async throws(SecureElementError) -> [UInt8] {
        try await mapping { try await transport.sendAPDU(try CommandAPDU(bytes: command)).octets }
    }

    public func deselect() async throws(SecureElementError) {
        try await mapping { _ = try await host.select() }
    }

    // MARK: - Contactless

    public func authorize(instances: [[UInt8]]) async throws(SecureElementError) {
        await broker?.deliverAuthorization(to: instances)
    }

    public func activateContactless(instances: [[UInt8]]) async throws(SecureElementError) {
        contactlessInstance = nil
        contactlessAID = []
        try await managing { try await setAvailability(true, of: instances) }
        interface?.expose(instances)
    }

    public func deactivateContactless(instances: [[UInt8]]) async throws(SecureElementError) {
        contactlessInstance = nil
        interface?.withdraw()
        try await managing {
            try await setAvailability(false, of: instances)
            _ = try await host.select()
        }
    }

    /// Through the card's contactless registry, when it has one.
    private func setAvailability(_ isActive: Bool, of instances: [[UInt8]]) async throws {
        guard !instances.isEmpty, hasContactlessRegistry != false else { return }
        do {
            try await host.select(GlobalPlatformHost.contactlessRegistryAID)
            hasContactlessRegistry = true
        } catch is GlobalPlatformError {
            hasContactlessRegistry = false
            return
        }
        let refused = try await host.setContactlessAvailability(isActive, of: instances)
        guard refused.isEmpty || !isActive else {
            let names = refused.map { Hex.encode($0) }.joined(separator: ", ")
            throw SecureElementError(.conditions, "the contactless registry does not activate \(names)")
        }
    }

    public func contactlessPower(_ isOn: Bool) async { interface?.power(isOn) }

    public func contactless(_ command: [UInt8]) async throws(SecureElementError) -> ContactlessAnswer {
        guard let interface else { return try await relayed(command) }
        let (answer, transactions) = interface.answer(command)
        switch answer {
        case .response(let response): return ContactlessAnswer(response: response, transactions: transactions)
        case .silence: throw SecureElementError(.fault, "the contactless interface does not answer")
        case .removed: throw SecureElementError(.takenBack, "the contactless interface is gone")
        }
    }

    /// Over the one connection that there is.
    private func relayed(_ command: [UInt8]) async throws(SecureElementError) -> ContactlessAnswer {
        let response = try await transceive(command)
        guard response.suffix(2) == [0x90, 0x00], command.count >= 4 else { return ContactlessAnswer(response: response) }
        if command[1] == 0xA4, command[2] == 0x04, let parsed = try? CommandAPDU(bytes: command) {
            noteSelection(Array(parsed.data ?? Data()))
            return ContactlessAnswer(response: response)
        }
        guard let instance = contactlessInstance, instance.transactionInstructions.contains(command[1]) else {
            return ContactlessAnswer(response: response)
        }
        let event = ContactlessAnswer.Transaction(instanceAID: contactlessAID, data: [command[1]] + response.dropLast(2))
        return ContactlessAnswer(response: response, transactions: [event])
    }

    private func noteSelection(_ name: [UInt8]) {
        contactlessInstance = nil
        for credential in registry.credentials {
            guard let place = credential.instances.firstIndex(where: { $0.instanceAID.starts(with: name) }) else { continue }
            let known = configurations.first { $0.identifier == credential.configuration }?.instances
            contactlessInstance = known.flatMap { $0.indices.contains(place) ? $0[place] : nil }
            contactlessAID = credential.instances[place].instanceAID
            return
        }
    }

    public func counter(ofSecurityDomain aid: [UInt8]) async throws(SecureElementError) -> Int? {
        try await managing {
            do {
                try await host.select(aid)
                return try await host.sequenceCounter()
            } catch let error as GlobalPlatformError where error.code == .notFound || error.code == .malformedResponse {
                return nil
            }
        }
    }

    // MARK: - Errors

    /// - Parameter isBefore: nothing had been taken yet, so that a card that is not there is not one that was taken back.
    func mapping<Value: Sendable>(
        isBefore: Bool = false, _ body: () async throws -> Value
    ) async throws(SecureElementError) -> Value {
        do { return try await body() } catch let error as SecureElementError {
            throw error
        } catch let error as TransportError {
            throw Self.map(error, isBefore: isBefore)
        } catch let error as GlobalPlatformError {
            throw Self.map(error)
        } catch {
            throw SecureElementError(.fault, "\(error)")
        }
    }

    /// The same for steps that no other program may come between.
    func managing<Value: Sendable>(
        isBefore: Bool = false, _ body: () async throws -> Value
    ) async throws(SecureElementError) -> Value {
        await holding?.hold()
        let result: Result<Value, SecureElementError>
        do throws(SecureElementError) { result = .success(try await mapping(isBefore: isBefore, body)) } catch {
            result = .failure(error)
        }
        await holding?.letGo()
        return try result.get()
    }

    private static func map(_ error: TransportError, isBefore: Bool) -> SecureElementError {
        switch error.case {
        case .sharingViolation, .readerUnavailable, .serviceUnavailable: SecureElementError(.busy, error.description)
        // SCARD_E_NO_SMARTCARD: there was no connection that could be lost.
        case .tagConnectionLost where error.code == 0x8010_000C: SecureElementError(.busy, error.description)
        case .tagConnectionLost, .tagReset, .timeout, .cancelled:
            SecureElementError(isBefore ? .busy : .takenBack, error.description)
        default: SecureElementError(.fault, error.description)
        }
    }

    /// The table of status words (section 3.4 of the rules).
    private static func map(_ error: GlobalPlatformError) -> SecureElementError {
        switch error.code {
        case .outOfMemory: SecureElementError(.noRoom, error.description)
        case .applicationNotFound, .notFound: SecureElementError(.noSuchCredential, error.description)
        case .locked: SecureElementError(.conditions, error.description)
        default: SecureElementError(.fault, error.description)
        }
    }
}

/// Chains over the transport's own ``sendAPDU(_:)``, as every transport does that says nothing else.
private struct PlainChaining: ISO7816TagTransporting {
    let transport: any NFCTagTransport
    var initialAID: String { "" }
    var identifier: Data { transport.identifier }
    func send(_ data: Data) async throws -> Data { try await transport.send(data) }
    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU { try await transport.sendAPDU(apdu) }
}
