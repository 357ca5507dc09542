// SPDX-License-Identifier: MIT

public import FoundationEssentials
import Synchronization

/// What a credential is made of: the load file, and the instances that are installed from it.
public struct ProductConfiguration: Sendable, Equatable, Codable {
    /// One instance of the credential.
    public struct Instance: Sendable, Equatable, Codable {
        /// The name of the first credential's instance; the last octet is raised for each further one.
        public var aid: Data
        public var moduleAID: Data
        public var role: StoredInstance.Role
        public var isContactless: Bool
        /// Object `C9` of INSTALL [for install].
        public var parameters: Data
        /// Data fields of STORE DATA, in order; none when it is not personalised.
        public var personalization: [Data]
        /// Instructions whose success, over the contactless interface, counts as a transaction event: its data is the
        /// instruction, then the response's data field.
        public var transactionInstructions: [UInt8]

        public init(
            aid: [UInt8], moduleAID: [UInt8], role: StoredInstance.Role = .standalone, isContactless: Bool = true,
            parameters: [UInt8] = [], personalization: [[UInt8]] = [], transactionInstructions: [UInt8] = []
        ) {
            self.aid = Data(aid)
            self.moduleAID = Data(moduleAID)
            self.role = role
            self.isContactless = isContactless
            self.parameters = Data(parameters)
            self.personalization = personalization.map { Data($0) }
            self.transactionInstructions = transactionInstructions
        }
    }

    public var identifier: UUID
    /// A short name for people and scripts: `loyalty`.
    public var name: String
    public var packageAID: Data
    /// The load file data block (GlobalPlatform Card Specification 2.3.1 11.6.2).
    public var loadFile: Data
    public var instances: [Instance]
    public var isGovernmentID: Bool

    public init(
        identifier: UUID, name: String, packageAID: [UInt8], loadFile: [UInt8], instances: [Instance],
        isGovernmentID: Bool = false
    ) {
        self.identifier = identifier
        self.name = name
        self.packageAID = Data(packageAID)
        self.loadFile = Data(loadFile)
        self.instances = instances
        self.isGovernmentID = isGovernmentID
    }
}

/// What a host knows of the credentials on an element: names, configurations and owners, which no card keeps.
public final class CredentialRegistry: Sendable {
    private let list: Mutex<[StoredCredential]>
    private let save: @Sendable ([StoredCredential]) -> Void

    /// - Parameter save: told the whole list after each change, before the call that made it goes on.
    public init(_ list: [StoredCredential] = [], save: @escaping @Sendable ([StoredCredential]) -> Void = { _ in }) {
        self.list = Mutex(list)
        self.save = save
    }

    public var credentials: [StoredCredential] { list.withLock { $0 } }

    func credential(_ identifier: UUID) -> StoredCredential? {
        list.withLock { list in list.first { $0.identifier == identifier } }
    }

    func put(_ credential: StoredCredential) {
        list.withLock { list in
            if let index = list.firstIndex(where: { $0.identifier == credential.identifier }) {
                list[index] = credential
            } else {
                list.append(credential)
            }
            save(list)
        }
    }

    func remove(_ identifier: UUID) {
        list.withLock { list in
            list.removeAll { $0.identifier == identifier }
            save(list)
        }
    }
}
