// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension CredentialSession {
    /// A credential on the secure element, as it was when the session told of it. A value that is held never changes.
    public struct Credential: Equatable, Sendable {
        /// The same in every session.
        public let identifier: UUID
        /// What people know it by.
        public let name: String
        /// As it was when this value was made.
        public let state: State

        /// Whether and how the credential is on the secure element.
        public enum State: Equatable, Sendable {
            /// Being installed.
            case installationPending
            case installed(instances: [InstanceInfo])
            /// The installation failed; the credential can only be deleted.
            case installationFailed
        }

        package init(identifier: UUID, name: String, state: State) {
            self.identifier = identifier
            self.name = name
            self.state = state
        }

        /// Hashes the identifier alone, so that two states of one credential meet in a table.
        public func hash(into hasher: inout Hasher) { hasher.combine(identifier) }

        /// The instances of an installed credential; empty for another.
        package var instances: [InstanceInfo] {
            if case .installed(let instances) = state { instances } else { [] }
        }

        /// The names of those instances that contactless readers may meet.
        var contactlessNames: [[UInt8]] { instances.filter(\.isContactless).map { Array($0.instanceAID) } }

        package var isInstalled: Bool { if case .installed = state { true } else { false } }
    }
}

extension CredentialSession.Credential {
    /// One applet instance of a credential.
    public struct InstanceInfo: Equatable, Sendable {
        /// The application identifier to select, 5 to 16 octets (ISO/IEC 7816-4).
        public let instanceAID: Data
        /// The load file; it bears the applet's version.
        public let packageAID: Data
        /// The module in the load file. With the package it names the kind of applet.
        public let moduleAID: Data
        /// The security domain to select for a secure channel.
        public let securityDomainAID: Data
        /// What an owner needs for that channel. Here it is the key information template `E0` of the security domain
        /// (GlobalPlatform Card Specification 2.3.1 table 11-30), which stands in for an unpublished layout.
        public let securityDomainKeyInfo: Data
        /// Coded as in GlobalPlatform Card Specification 2.3.1 table 11-4; two octets, the second the contactless state, where
        /// the element has a contactless registry.
        public let lifeCycleState: Data
        /// What the instance may be used for.
        public let instanceType: InstanceType

        /// What an instance may be used for.
        public enum InstanceType: Equatable, Hashable, Sendable {
            case standalone
            /// The head of a group: what it is authorised for holds for all members.
            case headApplication
            /// A member of a group. It is not named in an authorisation.
            case groupApplication
        }

        /// Whether a contactless reader can meet it.
        package let isContactless: Bool
        /// Who is asked for the counter.
        private let device: CredentialDevice?

        init(_ instance: StoredInstance, device: CredentialDevice?) {
            instanceAID = Data(instance.instanceAID)
            packageAID = Data(instance.packageAID)
            moduleAID = Data(instance.moduleAID)
            securityDomainAID = Data(instance.securityDomainAID)
            securityDomainKeyInfo = Data(instance.securityDomainKeyInfo)
            lifeCycleState = Data(instance.lifeCycleState)
            instanceType =
                switch instance.role {
                case .standalone: .standalone
                case .head: .headApplication
                case .member: .groupApplication
                }
            isContactless = instance.isContactless
            self.device = device
        }

        /// The secure channel sequence counter of the security domain, read from the secure element now (GET DATA `C1`).
        ///
        /// - Throws: ``CredentialSession/ErrorCode``: `featureUnavailable` where the element tells none, `invalidSessionState`
        ///   while a session is in wired mode or card emulation, since reading selects the security domain.
        public var securityDomainCounter: Int {
            get async throws {
                guard let device else { throw CredentialSession.ErrorCode.featureUnavailable }
                return try await device.counter(ofSecurityDomain: Array(securityDomainAID))
            }
        }

        public static func == (left: Self, right: Self) -> Bool {
            left.instanceAID == right.instanceAID && left.packageAID == right.packageAID && left.moduleAID == right.moduleAID
                && left.securityDomainAID == right.securityDomainAID
                && left.securityDomainKeyInfo == right.securityDomainKeyInfo
                && left.lifeCycleState == right.lifeCycleState && left.instanceType == right.instanceType
        }
    }
}
