// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials
public import GlobalPlatform
import Synchronization

/// What a credential is made of: the load file, and the instances that are installed from it.
public struct ProductConfiguration: Sendable, Equatable, Codable {
    /// One instance of the credential.
    public struct Instance: Sendable, Equatable, Codable {
        /// The name of the first credential's instance; the last octet is raised for each further one.
        public var aid: Data
        /// The module of the load file whose code it runs.
        public var moduleAID: Data
        /// Its place in a group.
        public var role: StoredInstance.Role
        /// Whether contactless readers may meet it; else the app alone does.
        public var isContactless: Bool
        /// Object `C9` of INSTALL [for install].
        public var parameters: Data
        /// Data fields of STORE DATA, in order; none when it is not personalised.
        public var personalization: [Data]
        /// Instructions whose success, over the contactless interface, counts as a transaction event: its data is the
        /// instruction, then the response's data field.
        public var transactionInstructions: [UInt8]

        /// An instance; the octets are copied.
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

    /// A security domain for each credential alone, below the issuer's. The instances are handed over to it (INSTALL [for
    /// extradition]), and it gets keys of its own; see ``domainKeys(of:parent:version:)``.
    public struct Domain: Sendable, Equatable, Codable {
        /// The name of the first credential's domain; the last octet is raised for each further one.
        public var aid: Data
        /// The load file and the module of the card's security domains.
        public var packageAID: Data
        /// The module.
        public var moduleAID: Data

        /// A domain; the names of the card's own module are the usual ones unless given.
        public init(
            aid: [UInt8], packageAID: [UInt8] = [0xA0, 0x00, 0x00, 0x01, 0x51, 0x53, 0x50],
            moduleAID: [UInt8] = [0xA0, 0x00, 0x00, 0x01, 0x51, 0x53, 0x50, 0x41]
        ) {
            self.aid = Data(aid)
            self.packageAID = Data(packageAID)
            self.moduleAID = Data(moduleAID)
        }
    }

    /// What `provisionCredential(configurationUUID:name:)` is given.
    public var identifier: UUID
    /// A short name for people and scripts: `loyalty`.
    public var name: String
    /// The load file's name.
    public var packageAID: Data
    /// The load file data block (GlobalPlatform Card Specification 2.3.1 11.6.2).
    public var loadFile: Data
    /// In the order of installation: the head of a group before its members.
    public var instances: [Instance]
    /// Nil leaves the instances to the issuer security domain.
    public var domain: Domain?
    /// Whether it is a government's document, which apps that provide identities may list.
    public var isGovernmentID: Bool

    /// A configuration; the octets are copied.
    public init(
        identifier: UUID, name: String, packageAID: [UInt8], loadFile: [UInt8], instances: [Instance], domain: Domain? = nil,
        isGovernmentID: Bool = false
    ) {
        self.identifier = identifier
        self.name = name
        self.packageAID = Data(packageAID)
        self.loadFile = Data(loadFile)
        self.instances = instances
        self.domain = domain
        self.isGovernmentID = isGovernmentID
    }
}

extension ProductConfiguration {
    /// The keys that a credential's own security domain has: each of the parent's three keys diversified, the AES-CMAC (NIST SP
    /// 800-38B) of the domain's name under it. This stands in for keys that a chip makes itself and tells its owner alone.
    ///
    /// - Parameter version: 01...7F; AES sets have 31 on the elements that this library provisions, triple DES sets 21.
    /// - Throws: ``GlobalPlatformError``: `keysUnsuitable` when the parent's are no AES keys by their length, `cryptography`.
    public static func domainKeys(
        of domain: [UInt8], parent: GlobalPlatformKeys, version: UInt8 = 0x31
    ) throws(GlobalPlatformError) -> GlobalPlatformKeys {
        func diversified(_ key: [UInt8]) throws(GlobalPlatformError) -> [UInt8] {
            do { return try CMAC.authenticate(domain, key: key) } catch {
                throw GlobalPlatformError(.cryptography, detail: error.detail)
            }
        }
        return try GlobalPlatformKeys(
            version: version, enc: try diversified(parent.enc), mac: try diversified(parent.mac),
            dek: try diversified(parent.dek))
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

    /// The whole list now.
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
