// SPDX-License-Identifier: MIT

public import FoundationEssentials
import GlobalPlatform
import Octets

extension GlobalPlatformElement {
    /// The registry, joined with what the card says of its applications. A credential whose instances are gone is dropped.
    public func credentials() async throws(SecureElementError) -> [StoredCredential] {
        guard host.keys != nil else { return registry.credentials }
        return try await mapping {
            try await openDomain()
            let entries = try await host.getStatus(.applications)
            let states = Dictionary(entries.map { ($0.aid, $0) }, uniquingKeysWith: { first, _ in first })
            for var credential in registry.credentials where credential.installation == .installed {
                guard credential.instances.allSatisfy({ states[$0.instanceAID] != nil }) else {
                    registry.remove(credential.identifier)
                    continue
                }
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
        let free: Int? = try await mapping {
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
        let names = freeNames(for: configuration)
        do throws(SecureElementError) {
            credential.instances = try await mapping { try await install(configuration, as: names) }
            credential.installation = .installed
        } catch {
            // Nothing half there stays; what cannot be removed now is removed with the credential.
            _ = try? await mapping { for name in names.reversed() { try await remove(name) } }
            credential.installation = .failed
        }
        registry.put(credential)
        return credential
    }

    /// The instances' names with the last octet raised past those of other credentials of the configuration.
    private func freeNames(for configuration: ProductConfiguration) -> [[UInt8]] {
        let taken = Set(registry.credentials.flatMap { $0.instances.map(\.instanceAID) })
        for step in UInt8(0)...254 {
            let names = configuration.instances.map { instance in
                var aid = Array(instance.aid)
                if let last = aid.popLast() { aid.append(last &+ step) }
                return aid
            }
            if taken.isDisjoint(with: names) { return names }
        }
        return configuration.instances.map { Array($0.aid) }
    }

    private func install(_ configuration: ProductConfiguration, as names: [[UInt8]]) async throws -> [StoredInstance] {
        try await openDomain()
        let package = Array(configuration.packageAID)
        if try await !host.getStatus(.loadFiles, matching: package).contains(where: { $0.aid == package }) {
            try await host.installForLoad(loadFile: package)
            try await host.load(Array(configuration.loadFile))
        }
        var head: [UInt8]?
        for (instance, name) in zip(configuration.instances, names) {
            // What an installation that was cut off left behind.
            try await remove(name)
            try await host.installForInstall(
                loadFile: package, module: Array(instance.moduleAID), instance: name,
                parameters: InstallParameters(
                    application: Array(instance.parameters), head: instance.role == .member ? head : nil))
            if instance.role == .head { head = name }
            if !instance.personalization.isEmpty {
                try await host.installForPersonalization(name)
                try await host.storeData(instance.personalization.map { Array($0) })
            }
        }
        let domain = try await host.getStatus(.issuerSecurityDomain).first?.aid ?? []
        let keyInfo = (try? await host.getData(0x00E0)) ?? []
        return zip(configuration.instances, names).map { instance, name in
            StoredInstance(
                instanceAID: name, packageAID: package, moduleAID: Array(instance.moduleAID), securityDomainAID: domain,
                securityDomainKeyInfo: keyInfo, role: instance.role, isContactless: instance.isContactless)
        }
    }

    public func delete(_ identifier: UUID) async throws(SecureElementError) {
        guard let credential = registry.credential(identifier) else { return }
        let shares = registry.credentials.contains {
            $0.identifier != identifier && $0.configuration == credential.configuration && $0.installation != .failed
        }
        if !credential.instances.isEmpty {
            try await mapping {
                try await openDomain()
                // Members of a group go before its head.
                let ordered = credential.instances.filter { $0.role != .head } + credential.instances.filter { $0.role == .head }
                for instance in ordered { try await remove(instance.instanceAID) }
                if !shares, let package = credential.instances.first?.packageAID { try await remove(package, related: true) }
            }
        }
        registry.remove(identifier)
    }

    /// What is gone already is no error.
    private func remove(_ aid: [UInt8], related: Bool = false) async throws {
        do { _ = try await host.delete(aid, related: related) } catch let error as GlobalPlatformError
            where error.code == .notFound || error.code == .applicationNotFound
        {}
    }

    /// Selects the issuer security domain and opens a secure channel to it.
    private func openDomain() async throws {
        try await host.select()
        try await host.openChannel(level: .mac)
    }
}
