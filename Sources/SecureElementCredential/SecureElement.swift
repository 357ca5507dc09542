// SPDX-License-Identifier: MIT

public import FoundationEssentials
public import Octets

/// The secure element below a session.
///
/// Calls come one at a time. An element keeps what it selected between calls: memory that is cleared on reset lives through
/// the way from wired mode to card emulation.
public protocol SecureElement: Sendable {
    /// Whether the element has a contactless interface of its own, and decides itself what a reader reaches through it. Else the
    /// host lets a reader reach the emulated instances alone.
    var routesContactless: Bool { get }

    /// Takes the element for a session.
    func open() async throws(SecureElementError)

    /// Lets it go.
    func close() async

    /// - Returns: nil where the element does not tell.
    func information() async throws(SecureElementError) -> CredentialSession.SecureElementInfo?

    /// Every credential, read from the element.
    func credentials() async throws(SecureElementError) -> [StoredCredential]

    /// A credential as it is known without asking the element.
    func knownCredential(_ identifier: UUID) async -> StoredCredential?

    /// Credentials whose installation was begun, in an earlier process perhaps, and not ended.
    func pendingCredentials() async -> [UUID]

    /// Begins an installation: what comes back is pending, and nothing is on the element yet.
    func provision(_ request: ProvisioningRequest) async throws(SecureElementError) -> StoredCredential

    /// Carries out the installation of a pending credential.
    ///
    /// - Returns: the credential, installed or failed.
    func install(_ identifier: UUID) async throws(SecureElementError) -> StoredCredential

    /// Deletes a credential with its instances, and its load file when no other credential uses it. What is gone already is no error.
    func delete(_ identifier: UUID) async throws(SecureElementError)

    /// Selects an instance on the wired interface.
    func select(instance aid: [UInt8]) async throws(SecureElementError)

    /// Sends a command APDU on the wired interface.
    ///
    /// - Returns: the response APDU, whatever its status word is.
    func transceive(_ command: [UInt8]) async throws(SecureElementError) -> [UInt8]

    /// Deselects the selected instance, without a reset.
    func deselect() async throws(SecureElementError)

    /// Hands the person's authorisation to instances through the broker interface, where the element has one.
    func authorize(instances: [[UInt8]]) async throws(SecureElementError)

    /// Makes the instances available to the contactless interface.
    func activateContactless(instances: [[UInt8]]) async throws(SecureElementError)

    /// Takes them off it.
    func deactivateContactless(instances: [[UInt8]]) async throws(SecureElementError)

    /// The contactless interface got power, anew perhaps, or lost it: nothing is selected on it then. The wired interface and
    /// memory that only a reset clears are as before.
    func contactlessPower(_ isOn: Bool) async

    /// A command that came over the contactless interface.
    ///
    /// - Returns: the answer, and what the applet said of a transaction.
    func contactless(_ command: [UInt8]) async throws(SecureElementError) -> ContactlessAnswer

    /// The secure channel sequence counter of a security domain (GET DATA `C1`); nil where it tells none.
    func counter(ofSecurityDomain aid: [UInt8]) async throws(SecureElementError) -> Int?
}

extension SecureElement {
    /// No interface of its own.
    public var routesContactless: Bool { false }
    /// Nothing.
    public func contactlessPower(_ isOn: Bool) async {}
}

/// What is asked for with `provisionCredential`.
public struct ProvisioningRequest: Sendable, Equatable {
    /// The credential's, drawn by the session.
    public var identifier: UUID
    /// The product configuration.
    public var configuration: UUID
    /// For people.
    public var name: String
    /// The app that asks.
    public var owner: String

    /// A request.
    public init(identifier: UUID, configuration: UUID, name: String, owner: String) {
        self.identifier = identifier
        self.configuration = configuration
        self.name = name
        self.owner = owner
    }
}

/// An answer to a contactless reader.
public struct ContactlessAnswer: Sendable, Equatable {
    /// Response APDU, status word included.
    public var response: [UInt8]
    /// What applets said of transactions while they made it.
    public var transactions: [Transaction]

    /// An applet's word on a transaction.
    public struct Transaction: Sendable, Equatable {
        /// The instance that says it.
        public var instanceAID: [UInt8]
        /// Data of its own.
        public var data: [UInt8]

        /// An event of one instance.
        public init(instanceAID: [UInt8], data: [UInt8]) {
            self.instanceAID = instanceAID
            self.data = data
        }
    }

    /// An answer; nothing was said of a transaction unless given.
    public init(response: [UInt8], transactions: [Transaction] = []) {
        self.response = response
        self.transactions = transactions
    }
}

/// A credential as the element and its registry know it.
public struct StoredCredential: Sendable, Equatable, Codable {
    /// How far it is.
    public enum Installation: String, Sendable, Codable { case pending, installed, failed }

    /// The same for as long as it is there.
    public var identifier: UUID
    /// For people.
    public var name: String
    /// What it was made from.
    public var configuration: UUID
    /// How far it is.
    public var installation: Installation
    /// Those that are installed; while it is pending or when it has failed, those that were planned.
    public var instances: [StoredInstance]
    /// The app that provisioned it: it may do everything.
    public var owner: String
    /// Apps that may present it and no more.
    public var users: [String]
    /// Whether it is a government's document.
    public var isGovernmentID: Bool

    /// A credential.
    public init(
        identifier: UUID, name: String, configuration: UUID, installation: Installation, instances: [StoredInstance] = [],
        owner: String, users: [String] = [], isGovernmentID: Bool = false
    ) {
        self.identifier = identifier
        self.name = name
        self.configuration = configuration
        self.installation = installation
        self.instances = instances
        self.owner = owner
        self.users = users
        self.isGovernmentID = isGovernmentID
    }

    /// The credential as an app gets it.
    func snapshot(device: CredentialDevice?) -> CredentialSession.Credential {
        let state: CredentialSession.Credential.State =
            switch installation {
            case .pending: .installationPending
            case .failed: .installationFailed
            case .installed:
                .installed(instances: instances.map { CredentialSession.Credential.InstanceInfo($0, device: device) })
            }
        return CredentialSession.Credential(identifier: identifier, name: name, state: state)
    }

    func isAccessible(to application: String) -> Bool { owner == application || users.contains(application) }
}

/// One applet instance of a stored credential.
public struct StoredInstance: Sendable, Equatable, Codable {
    /// Its place in a group.
    public enum Role: String, Sendable, Codable {
        case standalone
        /// The head of an application group.
        case head
        /// A member of the group.
        case member
    }

    /// The instance's name, 5 to 16 octets.
    public var instanceAID: [UInt8]
    /// The load file's.
    public var packageAID: [UInt8]
    /// The module's.
    public var moduleAID: [UInt8]
    /// The security domain's; empty before it is known.
    public var securityDomainAID: [UInt8]
    /// The template `E0` of that domain.
    public var securityDomainKeyInfo: [UInt8]
    /// As the registry tells it.
    public var lifeCycleState: [UInt8]
    /// Its place in a group.
    public var role: Role
    /// Whether a contactless reader can meet it.
    public var isContactless: Bool

    /// An instance.
    public init(
        instanceAID: [UInt8], packageAID: [UInt8], moduleAID: [UInt8], securityDomainAID: [UInt8],
        securityDomainKeyInfo: [UInt8] = [], lifeCycleState: [UInt8] = [0x07], role: Role = .standalone,
        isContactless: Bool = true
    ) {
        self.instanceAID = instanceAID
        self.packageAID = packageAID
        self.moduleAID = moduleAID
        self.securityDomainAID = securityDomainAID
        self.securityDomainKeyInfo = securityDomainKeyInfo
        self.lifeCycleState = lifeCycleState
        self.role = role
        self.isContactless = isContactless
    }

    private enum CodingKeys: String, CodingKey {
        case instanceAID, packageAID, moduleAID, securityDomainAID, securityDomainKeyInfo, lifeCycleState, role, isContactless
    }

    /// Octets are coded as `Data`, so that a coder may write them in hexadecimal.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        func octets(_ key: CodingKeys) throws -> [UInt8] { Array(try container.decode(Data.self, forKey: key)) }
        self.init(
            instanceAID: try octets(.instanceAID), packageAID: try octets(.packageAID), moduleAID: try octets(.moduleAID),
            securityDomainAID: try octets(.securityDomainAID), securityDomainKeyInfo: try octets(.securityDomainKeyInfo),
            lifeCycleState: try octets(.lifeCycleState), role: try container.decode(Role.self, forKey: .role),
            isContactless: try container.decode(Bool.self, forKey: .isContactless))
    }

    /// Octets are coded as `Data`; see ``init(from:)``.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        for (key, octets) in [
            (CodingKeys.instanceAID, instanceAID), (.packageAID, packageAID), (.moduleAID, moduleAID),
            (.securityDomainAID, securityDomainAID), (.securityDomainKeyInfo, securityDomainKeyInfo),
            (.lifeCycleState, lifeCycleState),
        ] { try container.encode(Data(octets), forKey: key) }
        try container.encode(role, forKey: .role)
        try container.encode(isContactless, forKey: .isContactless)
    }
}

/// Why an element did not do what it was asked. Equality is on the code.
public struct SecureElementError: CodedError {
    /// What kind of failure it is.
    public enum Code: String, Sendable, CaseIterable {
        /// Somebody else has the element, or it is not there. Before a call.
        case busy
        /// It was taken away, or reset, during a call.
        case takenBack
        case noRoom
        case unknownConfiguration
        case noSuchCredential
        case noSuchInstance
        /// The card is locked or at its end.
        case conditions
        /// It cannot do that.
        case unsupported
        /// The service that installs cannot be reached.
        case offline
        /// Anything else.
        case fault
    }

    /// What two errors are equal by.
    public let code: Code
    /// What was being done and what came, for people.
    public let detail: String

    /// An error.
    public init(_ code: Code, _ detail: String = "") {
        self.code = code
        self.detail = detail
    }

    public var description: String { detail.isEmpty ? code.rawValue : "\(code.rawValue): \(detail)" }

    func errorCode(_ rules: CredentialRules) -> CredentialSession.ErrorCode {
        switch code {
        case .busy: .resourceUnavailable
        case .takenBack: .acquiredResourceRelinquished
        case .noRoom: .insufficientSpace
        case .unknownConfiguration: rules.hasInvalidProductConfigID ? .invalidProductConfigID : .invalidInput
        case .noSuchCredential: .credentialDoesNotExist
        case .noSuchInstance: .instanceDoesNotExist
        case .conditions: .conditionsNotSatisfied
        case .unsupported: .featureUnavailable
        case .offline: .network
        case .fault: .internalError
        }
    }
}
