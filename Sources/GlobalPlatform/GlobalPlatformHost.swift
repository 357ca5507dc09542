// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
public import TagTransport

/// The off-card side of GlobalPlatform: selects a security domain, opens a secure channel, and manages what is on the card.
///
/// Commands have short lengths only (GPC 11.1.5). Random octets come from the task's `CardEnvironment` under the label
/// `globalPlatform.hostChallenge`; session keys go to its key log as `globalPlatform.sEnc`, `sMac`, `sRmac` and `dek`.
///
/// Every command throws ``GlobalPlatformError``, and whatever the transport throws as it is. A secure channel ends with
/// ``select(_:)``, a new ``openChannel(level:)``, and a response that does not prove itself.
public actor GlobalPlatformHost {
    /// Where commands go.
    public nonisolated let transport: any NFCTagTransport
    /// The keys of the security domain that channels are opened to; nil when none were given.
    public nonisolated let keys: GlobalPlatformKeys?
    /// 0...3, in the class octet of every command.
    public nonisolated let logicalChannel: UInt8

    /// The open secure channel; nil when there is none.
    public private(set) var channel: (any SecureChannel)?

    /// - Parameter keys: needed for ``openChannel(level:)`` alone.
    public init(transport: any NFCTagTransport, keys: GlobalPlatformKeys? = nil, logicalChannel: UInt8 = 0) {
        self.transport = transport
        self.keys = keys
        self.logicalChannel = logicalChannel & 0x03
    }

    /// Forgets the secure channel: the card was reset or selected past this host.
    public func forgetChannel() { channel = nil }

    /// Selects by name; nil selects the issuer security domain with an empty data field. Ends the secure channel.
    ///
    /// - Returns: the data field, a file control information template `6F` as a rule.
    @discardableResult
    public func select(_ aid: [UInt8]? = nil) async throws -> [UInt8] {
        channel = nil
        let response = try await plain("SELECT", cla: 0x00, ins: 0xA4, p1: 0x04, p2: 0x00, data: aid ?? [], ne: 256)
        // 6283: the card is locked, its answer is valid (GPC 11.9.3.2). The caller sees the data and a refusal at the next command.
        guard response.isSuccess || (response.statusWord == 0x6283 && !response.data.isEmpty) else {
            throw GlobalPlatformError.refusal(response.statusWord, of: "SELECT")
        }
        return [UInt8](response.data)
    }

    /// INITIALIZE UPDATE and EXTERNAL AUTHENTICATE, in the protocol that the card offers for the key set.
    ///
    /// - Parameter wantsLongMAC: SCP03 in S16 mode, with challenges and MACs of 16 octets.
    /// - Throws: `channelNotOpen` without keys, `cardCryptogramWrong` before the card could count a failure,
    ///   `hostCryptogramRefused`, `levelNotSupported`.
    @discardableResult
    public func openChannel(level: SecurityLevel = .mac, wantsLongMAC: Bool = false) async throws -> ChannelOffer {
        channel = nil
        guard let keys else { throw GlobalPlatformError(.channelNotOpen, detail: "no keys were given for a secure channel") }
        guard level.isDefined else {
            throw GlobalPlatformError(.levelNotSupported, detail: "level \(level.rawValue) is not defined")
        }
        let environment = CardEnvironment.current
        let hostChallenge = try environment.randomOctets(wantsLongMAC ? 16 : 8, label: "globalPlatform.hostChallenge")
        let response = try await plain(
            "INITIALIZE UPDATE", cla: 0x80, ins: 0x50, p1: keys.version, p2: 0x00, data: hostChallenge, ne: 256)
        guard response.isSuccess else { throw GlobalPlatformError.refusal(response.statusWord, of: "INITIALIZE UPDATE") }
        let offer = try ChannelOffer(parsing: [UInt8](response.data))
        var opened: any SecureChannel
        if offer.protocolNumber == 2 {
            let scp02 = try SCP02(keys: keys, level: level, hostChallenge: hostChallenge, offer: offer)
            environment.logKey("globalPlatform.sEnc", scp02.encryptionKey)
            environment.logKey("globalPlatform.sMac", scp02.macKey)
            // No level of SCP02 here asks for an R-MAC: its key is the C-MAC's for whoever reads the log.
            environment.logKey("globalPlatform.sRmac", scp02.macKey)
            environment.logKey("globalPlatform.dek", scp02.dataKey)
            opened = scp02
        } else {
            let scp03 = try SCP03(keys: keys, level: level, hostChallenge: hostChallenge, offer: offer)
            environment.logKey("globalPlatform.sEnc", scp03.encryptionKey)
            environment.logKey("globalPlatform.sMac", scp03.macKey)
            environment.logKey("globalPlatform.sRmac", scp03.responseMACKey)
            environment.logKey("globalPlatform.dek", scp03.dataKey)
            opened = scp03
        }
        let authenticate = try opened.externalAuthenticate()
        let answer = try await transport.sendAPDU(onChannel(authenticate))
        guard answer.isSuccess else {
            if answer.statusWord == 0x6300 {
                throw GlobalPlatformError(
                    .hostCryptogramRefused, command: "EXTERNAL AUTHENTICATE", statusWord: 0x6300,
                    detail: "the card found the host's cryptogram wrong; it may count such failures")
            }
            throw GlobalPlatformError.refusal(answer.statusWord, of: "EXTERNAL AUTHENTICATE")
        }
        channel = opened
        return offer
    }

    /// Sends a command, through the secure channel when one is open, and returns its response unwrapped, whatever its status word.
    ///
    /// - Parameter name: what an error calls the command.
    public func exchange(_ command: CommandAPDU, named name: String = "command") async throws -> ResponseAPDU {
        guard var open = channel else { return try await joined(onChannel(command)) }
        let wrapped = try open.wrap(command)
        channel = open
        let response = try await joined(onChannel(wrapped))
        do {
            let answer = try open.unwrap(response)
            channel = open
            return answer
        } catch {
            // GPC 10.2.3: what is not proved ends the session.
            channel = nil
            throw GlobalPlatformError(error.code, command: name, statusWord: error.statusWord, detail: error.detail)
        }
    }

    /// Sends a command of the GlobalPlatform class and returns its data.
    ///
    /// - Throws: the refusal that its status word means, unless it is in `accepted`.
    func perform(
        _ name: String, ins: UInt8, p1: UInt8, p2: UInt8, data: [UInt8] = [], ne: Int? = 256,
        accepted: Set<UInt16> = []
    ) async throws -> (data: [UInt8], status: UInt16) {
        guard data.count <= 255 else {
            throw GlobalPlatformError(.invalidArgument, command: name, detail: "\(data.count) bytes; a command carries 255")
        }
        let response = try await exchange(
            CommandAPDU(cla: 0x80, ins: ins, p1: p1, p2: p2, data: Data(data), ne: ne), named: name)
        guard response.isSuccess || accepted.contains(response.statusWord) else {
            throw GlobalPlatformError.refusal(response.statusWord, of: name)
        }
        return ([UInt8](response.data), response.statusWord)
    }

    /// How many octets of data fit into a command under the present level.
    var longestData: Int {
        guard let channel, channel.level.contains(.commandMAC) else { return 255 }
        let mac = (channel as? SCP03)?.macLength ?? 8
        guard channel.level.contains(.commandEncryption) else { return 255 - mac }
        let block = channel is SCP03 ? 16 : 8
        return (255 - mac) / block * block - 1
    }

    func requireChannel(_ name: String) throws(GlobalPlatformError) -> any SecureChannel {
        guard let channel else {
            throw GlobalPlatformError(.channelNotOpen, command: name, detail: "there is no secure channel")
        }
        return channel
    }

    /// Sends a command of the interindustry class, which the runtime environment answers and no secure channel protects.
    func performInClear(_ name: String, ins: UInt8, p1: UInt8, p2: UInt8, ne: Int?) async throws -> [UInt8] {
        let response = try await plain(name, cla: 0x00, ins: ins, p1: p1, p2: p2, data: [], ne: ne)
        guard response.isSuccess else { throw GlobalPlatformError.refusal(response.statusWord, of: name) }
        return [UInt8](response.data)
    }

    private func plain(
        _ name: String, cla: UInt8, ins: UInt8, p1: UInt8, p2: UInt8, data: [UInt8], ne: Int?
    ) async throws -> ResponseAPDU {
        let command: CommandAPDU
        do {
            command = try CommandAPDU(cla: cla, ins: ins, p1: p1, p2: p2, data: Data(data), ne: ne, form: .short)
        } catch {
            throw GlobalPlatformError(.invalidArgument, command: name, detail: error.description)
        }
        return try await joined(onChannel(command))
    }

    /// Follows `61xx`, which T=0 alone needs.
    private func joined(_ command: CommandAPDU) async throws -> ResponseAPDU {
        guard let chaining = transport as? any ISO7816TagTransporting else { return try await transport.sendAPDU(command) }
        return try await chaining.sendAPDUWithChaining(command)
    }

    /// The MAC is over the class of channel 0 (GPC E.4.4), so the channel comes last.
    private func onChannel(_ command: CommandAPDU) throws -> CommandAPDU {
        guard logicalChannel > 0 else { return command }
        return try CommandAPDU(
            cla: command.cla | logicalChannel, ins: command.ins, p1: command.p1, p2: command.p2, data: command.data,
            ne: command.ne,
            form: command.form)
    }
}
