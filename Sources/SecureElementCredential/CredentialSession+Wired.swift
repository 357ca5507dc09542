// SPDX-License-Identifier: MIT

public import FoundationEssentials
import TagTransport

extension CredentialSession {
    /// Enters wired mode for maintenance, from any state and without asking the person. The credential's first instance is
    /// selected then.
    ///
    /// - Throws: ``ErrorCode``: `invalidCredentialState` for a credential that is not installed, `credentialDoesNotExist`,
    ///   `userNotAuthorized`; `resourceUnavailable`, after which the session is in management.
    public func enterWiredMode(using credential: Credential) async throws {
        try await perform("enterWiredMode(using:)", Self.naming(credential)) { link throws(ErrorCode) in
            try await leadToManagement { () async throws(ErrorCode) in
                let known = try await installed(credential, link, asOwner: true)
                guard let first = known.instances.first else { throw .invalidCredentialState }
                try await becomeWired(known, selecting: first, link)
            }
        }
    }

    /// Sends a command APDU to the credential.
    ///
    /// - Parameter data: the command. It may select instances of the credential and their security domains by name, and nothing
    ///   else; it may not open logical channels.
    /// - Returns: the response, its last two octets the status word, whatever they say.
    /// - Throws: ``ErrorCode``: `invalidSessionState` outside wired mode, `invalidInput` for octets that are no command,
    ///   `commandNotSupported`; `resourceUnavailable` and `acquiredResourceRelinquished`, after which the session is in management.
    public func transceive(_ data: Data) async throws -> Data {
        try await perform(
            "transceive(_:)", [.init("data", .octets(Array(data)))], isForExtensions: true,
            results: { [.init("data", .octets(Array($0)))] }
        ) { link throws(ErrorCode) in
            guard case .wired(let credential) = machine.state else { throw .invalidSessionState }
            let octets = Array(data)
            let command: CommandAPDU
            do { command = try CommandAPDU(bytes: octets) } catch { throw .invalidInput }
            guard Self.mayBeSent(command, to: credential) else { throw .commandNotSupported }
            machine.exchangeBegins()
            setAlarm()
            let answer: Result<[UInt8], ErrorCode>
            do throws(ErrorCode) {
                answer = .success(
                    try await leadToManagement { () async throws(ErrorCode) in
                        try await self.element(link) { element throws(SecureElementError) in
                            try await element.transceive(octets)
                        }
                    })
            } catch { answer = .failure(error) }
            machine.exchangeEnds(at: link.now ?? machine.since)
            return Data(try answer.get())
        }
    }

    /// Rows T24 and T25: no way out of the credential, neither by a name nor by a channel.
    private static func mayBeSent(_ command: CommandAPDU, to credential: Credential) -> Bool {
        // Class byte of a further interindustry channel, or a channel other than the basic one (ISO/IEC 7816-4 5.4.1).
        if command.cla & 0x40 != 0 || command.cla & 0x03 != 0 { return false }
        // MANAGE CHANNEL.
        if command.ins == 0x70 { return false }
        guard command.ins == 0xA4, command.p1 == 0x04, command.cla & 0x80 == 0 else { return true }
        let name = command.data ?? Data()
        return credential.instances.contains { $0.instanceAID == name || $0.securityDomainAID == name }
    }

    /// Leaves wired mode. An emulation that wired mode led to ends only where the rules say so (row T48).
    ///
    /// - Throws: ``ErrorCode``: `invalidSessionState` outside wired mode.
    public func endWiredMode() async throws {
        try await perform("endWiredMode()", isForExtensions: true) { link throws(ErrorCode) in
            switch machine.state {
            case .wired: break
            case .cardEmulation where machine.emulationContinuesWired && link.device.rules.endWiredModeEndsEmulation: break
            default: throw .invalidSessionState
            }
            enterManagement()
        }
    }

    func becomeWired(
        _ credential: Credential, selecting instance: Credential.InstanceInfo, _ link: Link
    ) async throws(ErrorCode) {
        let aid = Array(instance.instanceAID)
        // What a reader talks to is let go before the wired interface takes it. A selection is replaced by the next one, or stays
        // when that fails.
        if case .cardEmulation = machine.state {
            leaveMode()
            await cleanUp(link)
        }
        do throws(ErrorCode) {
            try await self.element(link) { element throws(SecureElementError) in try await element.select(instance: aid) }
        } catch {
            if case .cardEmulation = machine.state { enter(.management) }
            throw error
        }
        enter(.wired(credential: credential))
    }
}
