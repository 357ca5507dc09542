// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials

extension CredentialSession {
    /// The credentials that the app has access to, in random order; each as it is now.
    ///
    /// - Throws: ``ErrorCode``: `invalidSessionState` outside management.
    public func listCredentials() async throws -> [Credential] {
        try await perform("listCredentials()", isForExtensions: true, results: Self.described) { link throws(ErrorCode) in
            guard case .management = machine.state else { throw .invalidSessionState }
            let stored = try await self.element(link) { element throws(SecureElementError) in try await element.credentials() }
            let policy = link.device.policy
            var list = stored.filter { $0.isAccessible(to: policy.application) }
            if policy.isAppExtension, policy.isIdentityProvider { list.removeAll { !$0.isGovernmentID } }
            try Self.shuffle(&list, link.environment)
            return list.map { $0.snapshot(device: link.device) }
        }
    }

    private static func described(_ list: [Credential]) -> [CredentialArgument] {
        [.init("credentials", .list(list.map(\.arguments)))]
    }

    /// Fisher and Yates, with four octets a step from the environment.
    private static func shuffle(_ list: inout [StoredCredential], _ environment: CardEnvironment) throws(ErrorCode) {
        guard list.count > 1 else { return }
        // The element's own order must not show through.
        list.sort { $0.identifier.uuidString < $1.identifier.uuidString }
        let octets = try draw(4 * (list.count - 1), label: "credential.order", environment)
        for step in 0..<list.count - 1 {
            let number = octets[4 * step..<4 * step + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            list.swapAt(step, step + Int(number % UInt32(list.count - step)))
        }
    }

    private static func draw(_ count: Int, label: String, _ environment: CardEnvironment) throws(ErrorCode) -> [UInt8] {
        do { return try environment.randomOctets(count, label: label) } catch { throw .internalError }
    }

    /// Begins the installation of a credential, whose owner the app becomes. The event `credentialFinishedInstalling` tells when
    /// it is installed; when it failed, nothing does but the next list.
    ///
    /// - Parameters:
    ///   - configurationUUID: the product configuration.
    ///   - name: for people; not empty.
    /// - Returns: the pending credential.
    /// - Throws: ``ErrorCode``: `invalidSessionState`, `invalidInput`, `invalidProductConfigID`, `insufficientSpace`, `network`,
    ///   `conditionsNotSatisfied`.
    public func provisionCredential(configurationUUID: UUID, name: String) async throws -> Credential {
        let arguments: [CredentialArgument] = [
            .init("configurationUUID", .text(configurationUUID.uuidString)), .init("name", .text(name)),
        ]
        return try await perform("provisionCredential(configurationUUID:name:)", arguments, results: \.arguments) {
            link throws(ErrorCode) in
            guard case .management = machine.state else { throw .invalidSessionState }
            guard !name.isEmpty else { throw .invalidInput }
            let policy = link.device.policy
            guard policy.meetsConditions else { throw .conditionsNotSatisfied }
            guard policy.isOnline else { throw .network }
            let request = ProvisioningRequest(
                identifier: try Self.drawIdentifier(link.environment), configuration: configurationUUID, name: name,
                owner: policy.application
            )
            let credential = try await self.element(link) { element throws(SecureElementError) in
                try await element.provision(request)
            }
            guard let now = link.now else { throw .internalError }
            link.device.scheduleInstallation(
                credential.identifier, at: now &+ link.device.installationDelay.nanoseconds, in: link.environment
            )
            return credential.snapshot(device: link.device)
        }
    }

    /// A random UUID (RFC 9562 5.4) from the environment.
    private static func drawIdentifier(_ environment: CardEnvironment) throws(ErrorCode) -> UUID {
        var o = try draw(16, label: "credential.identifier", environment)
        o[6] = o[6] & 0x0F | 0x40
        o[8] = o[8] & 0x3F | 0x80
        return UUID(
            uuid: (
                o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7], o[8], o[9], o[10], o[11], o[12], o[13], o[14], o[15]
            )
        )
    }

    /// Deletes a credential that the app owns. The installation of a pending one is given up.
    ///
    /// - Throws: ``ErrorCode``: `invalidSessionState` outside management, `credentialDoesNotExist`, `userNotAuthorized` for an app
    ///   that may only use it.
    public func deleteCredential(_ credential: Credential) async throws {
        try await perform("deleteCredential(_:)", Self.naming(credential)) { link throws(ErrorCode) in
            guard case .management = machine.state else { throw .invalidSessionState }
            _ = try await accessible(credential, link, asOwner: true)
            link.device.cancelInstallation(credential.identifier)
            try await self.element(link) { element throws(SecureElementError) in
                try await element.delete(credential.identifier)
            }
        }
    }

    // MARK: - Parts

    static func naming(_ credential: Credential) -> [CredentialArgument] {
        [.init("credential", .text(credential.identifier.uuidString))]
    }

    /// The credential as it is known now (rules G9 and G12).
    func accessible(_ credential: Credential, _ link: Link, asOwner: Bool) async throws(ErrorCode) -> StoredCredential {
        let application = link.device.policy.application
        guard let stored = await link.device.element.knownCredential(credential.identifier), stored.isAccessible(to: application)
        else { throw .credentialDoesNotExist }
        guard !asOwner || stored.owner == application else { throw .userNotAuthorized }
        return stored
    }

    /// The credential when it is installed.
    func installed(_ credential: Credential, _ link: Link, asOwner: Bool = false) async throws(ErrorCode) -> Credential {
        let stored = try await accessible(credential, link, asOwner: asOwner)
        guard stored.installation == .installed else { throw .invalidCredentialState }
        return stored.snapshot(device: link.device)
    }
}
