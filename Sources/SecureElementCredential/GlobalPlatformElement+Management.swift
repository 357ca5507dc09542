// SPDX-License-Identifier: MIT

public import FoundationEssentials
import GlobalPlatform
import Octets

extension GlobalPlatformElement {
    /// The registry, joined with what the card says of its applications.
    ///
    /// A credential whose instances are all gone is dropped, with what it leaves behind; one of which a part is gone has failed.
    public func credentials() async throws(SecureElementError) -> [StoredCredential] {
        guard host.keys != nil else { return registry.credentials }
        return try await managing {
            try await openDomain()
            let entries = try await host.getStatus(.applications)
            let states = Dictionary(entries.map { ($0.aid, $0) }, uniquingKeysWith: { first, _ in first })
            for var credential in registry.credentials where credential.installation == .installed {
                let present = credential.instances.count { states[$0.instanceAID] != nil }
                if present == 0 {
                    try await removeRest(of: credential)
                    registry.remove(credential.identifier)
                    continue
                }
                if present < credential.instances.count { credential.installation = .failed }
                for index in credential.instances.indices {
                    guard let entry = states[credential.instances[index].instanceAID] else { continue }
                    credential.instances[index].lifeCycleState = [entry.lifeCycle] + (entry.contactlessState.map { [$0] } ?? [])
                }
                if credential != registry.credential(credential.identifier) { registry.put(credential) }
            }
            return registry.credentials
        }
    }

    public func provision(_ request: ProvisioningRequest) async throws(SecureElementError) -> StoredCredential {
        guard let configuration = configurations.first(where: { $0.identifier == request.configuration }) else {
            throw SecureElementError(.unknownConfiguration, request.configuration.uuidString)
        }
        try await requireRoom(for: configuration)
        let credential = StoredCredential(
            identifier: request.identifier, name: request.name, configuration: request.configuration, installation: .pending,
            owner: request.owner, isGovernmentID: configuration.isGovernmentID)
        registry.put(credential)
        return credential
    }

    /// A load file that is not there yet must fit. A card that does not tell its memory is believed to have it.
    private func requireRoom(for configuration: ProductConfiguration) async throws(SecureElementError) {
        let isLoaded = registry.credentials.contains {
            $0.configuration == configuration.identifier && $0.installation == .installed
        }
        guard !isLoaded else { return }
        let free: Int? = try await managing {
            do {
                try await host.select()
                return try await host.freeResources().nonVolatile
            } catch is GlobalPlatformError {
                return nil
            }
        }
        if let free, free < configuration.loadFile.count { throw SecureElementError(.noRoom, "\(free) bytes are left") }
    }

    public func install(_ identifier: UUID) async throws(SecureElementError) -> StoredCredential {
        guard var credential = registry.credential(identifier),
            let configuration = configurations.first(where: { $0.identifier == credential.configuration })
        else { throw SecureElementError(.noSuchCredential) }
        if credential.instances.isEmpty {
            // On disk before the card hears of it: whatever is cut off from here on can be found and removed.
            credential.instances = plan(for: configuration)
            registry.put(credential)
        }
        do throws(SecureElementError) {
            let plan = credential.instances
            credential.instances = try await managing { try await install(configuration, as: plan) }
            credential.installation = .installed
        } catch {
            // The card went away: the next session goes on.
            if error.code == .busy || error.code == .takenBack { return credential }
            // Nothing half there stays; what cannot be removed now is removed with the credential.
            let half = credential
            _ = try? await managing {
                try await openDomain()
                try await removeAll(of: half)
            }
            credential.installation = .failed
        }
        registry.put(credential)
        return credential
    }

    /// The instances to be, their names and that of their domain with the last octet raised past those of other credentials.
    private func plan(for configuration: ProductConfiguration) -> [StoredInstance] {
        let known = registry.credentials.flatMap(\.instances)
        let taken = Set(known.map(\.instanceAID) + known.map(\.securityDomainAID))
        func raised(_ aid: Data, _ step: UInt8) -> [UInt8] {
            var aid = Array(aid)
            if let last = aid.popLast() { aid.append(last &+ step) }
            return aid
        }
        for step in UInt8(0)...254 {
            let domain = configuration.domain.map { raised($0.aid, step) } ?? []
            let plan = configuration.instances.map { instance in
                StoredInstance(
                    instanceAID: raised(instance.aid, step), packageAID: Array(configuration.packageAID),
                    moduleAID: Array(instance.moduleAID), securityDomainAID: domain, role: instance.role,
                    isContactless: instance.isContactless)
            }
            if taken.isDisjoint(with: plan.map(\.instanceAID) + (domain.isEmpty ? [] : [domain])) || step == 254 { return plan }
        }
        return []
    }

    private func install(_ configuration: ProductConfiguration, as plan: [StoredInstance]) async throws -> [StoredInstance] {
        try await openDomain()
        let package = Array(configuration.packageAID)
        // What an installation that was cut off left behind.
        for instance in plan.reversed() { try await remove(instance.instanceAID) }
        let own = configuration.domain == nil ? nil : plan.first?.securityDomainAID
        if let own, let domain = configuration.domain {
            try await remove(own)
            try await host.installForInstall(
                loadFile: Array(domain.packageAID), module: Array(domain.moduleAID), instance: own, privileges: .securityDomain)
        }
        if try await !host.getStatus(.loadFiles, matching: package).contains(where: { $0.aid == package }) {
            try await host.installForLoad(loadFile: package)
            try await host.load(Array(configuration.loadFile))
        }
        var head: [UInt8]?
        for (instance, planned) in zip(configuration.instances, plan) {
            let name = planned.instanceAID
            try await host.installForInstall(
                loadFile: package, module: Array(instance.moduleAID), instance: name,
                parameters: InstallParameters(
                    application: Array(instance.parameters), head: instance.role == .member ? head : nil))
            if instance.role == .head { head = name }
            if !instance.personalization.isEmpty {
                try await host.installForPersonalization(name)
                try await host.storeData(instance.personalization.map { Array($0) })
            }
            if let own { try await host.installForExtradition(name, to: own) }
        }
        let issuer = try await host.getStatus(.issuerSecurityDomain).first?.aid ?? []
        if let own { try await giveKeys(to: own) }
        let domain = own ?? issuer
        let keyInfo = (try? await host.getData(0x00E0)) ?? []
        return plan.map { planned in
            var instance = planned
            instance.securityDomainAID = domain
            instance.securityDomainKeyInfo = keyInfo
            return instance
        }
    }

    /// A new security domain opens its first channel under its parent's keys, and has its own from then on.
    private func giveKeys(to domain: [UInt8]) async throws {
        guard let parent = host.keys else { throw SecureElementError(.fault, "no keys for a security domain") }
        try await host.select(domain)
        try await host.openChannel(level: .mac)
        let version: UInt8 = await host.channel?.name == "SCP02" ? 0x21 : 0x31
        try await host.putKeys(try ProductConfiguration.domainKeys(of: domain, parent: parent, version: version))
    }

    public func delete(_ identifier: UUID) async throws(SecureElementError) {
        guard let credential = registry.credential(identifier) else { return }
        if !credential.instances.isEmpty {
            try await managing {
                try await openDomain()
                try await removeAll(of: credential)
            }
        }
        registry.remove(identifier)
    }

    /// Instances, then what is left without them.
    private func removeAll(of credential: StoredCredential) async throws {
        // Members of a group go before its head.
        let ordered = credential.instances.filter { $0.role != .head } + credential.instances.filter { $0.role == .head }
        for instance in ordered { try await remove(instance.instanceAID) }
        try await removeRest(of: credential)
    }

    /// The credential's own security domain, and the load file that no other credential uses.
    private func removeRest(of credential: StoredCredential) async throws {
        guard let first = credential.instances.first else { return }
        let configuration = configurations.first { $0.identifier == credential.configuration }
        if configuration?.domain != nil { try await remove(first.securityDomainAID) }
        // Several configurations may share a load file.
        let isShared = registry.credentials.contains { other in
            guard other.identifier != credential.identifier, other.installation != .failed else { return false }
            if let instance = other.instances.first { return instance.packageAID == first.packageAID }
            return configurations.contains { $0.identifier == other.configuration && Array($0.packageAID) == first.packageAID }
        }
        if !isShared { try await remove(first.packageAID, related: true) }
    }

    /// What is gone already is no error.
    private func remove(_ aid: [UInt8], related: Bool = false) async throws {
        do { _ = try await host.delete(aid, related: related) } catch let error as GlobalPlatformError
            where error.code == .notFound || error.code == .applicationNotFound
        {}
    }

    /// Selects the issuer security domain and opens a secure channel to it: what personalises a credential passes enciphered.
    private func openDomain() async throws {
        try await host.select()
        try await host.openChannel(level: .macAndEncryption)
    }
}
