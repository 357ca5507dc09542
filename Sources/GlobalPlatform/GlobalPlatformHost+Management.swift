// SPDX-License-Identifier: MIT

import Octets

extension GlobalPlatformHost {
    // MARK: - Asking

    /// GET STATUS with every part of the answer (GPC 11.4). An empty list when nothing matches.
    ///
    /// - Parameter prefix: the beginning of the names wanted; empty for all.
    public func getStatus(_ scope: RegistryScope, matching prefix: [UInt8] = []) async throws -> [RegistryEntry] {
        var entries: [RegistryEntry] = []
        var p2: UInt8 = 0x02
        let criterion = TLV.encode(0x4F, prefix)
        for _ in 0..<Self.mostParts {
            let (data, status) = try await perform(
                "GET STATUS", ins: 0xF2, p1: scope.rawValue, p2: p2, data: criterion, accepted: [0x6310, 0x6A88])
            if status == 0x6A88 { return entries }
            entries += try RegistryEntry.parse(data)
            if status != 0x6310 { return entries }
            p2 = 0x03
        }
        throw GlobalPlatformError(.malformedResponse, command: "GET STATUS", detail: "6310 without an end")
    }

    /// GET DATA (GPC 11.3): the whole data object, tag included, as class 80 gives it.
    ///
    /// - Parameter tag: P1-P2: `0042`, `0045`, `0066`, `0067`, `00C1`, `00E0`, `9F7F`, `FF21` and others.
    public func getData(_ tag: UInt16) async throws -> [UInt8] {
        try await perform(
            "GET DATA", ins: 0xCA, p1: UInt8(truncatingIfNeeded: tag >> 8), p2: UInt8(truncatingIfNeeded: tag)
        ).data
    }

    /// GET DATA `FF21`: what is left on the card.
    public func freeResources() async throws -> FreeResources {
        let data = try await getData(0xFF21)
        guard let object = try? TLV.first(in: data[...]), object.tag == 0xFF21, let parts = try? object.children() else {
            throw GlobalPlatformError(.malformedResponse, command: "GET DATA", detail: "no data object FF21")
        }
        func number(_ tag: UInt32) -> Int { parts.first { $0.tag == tag }?.value.suffix(7).reduce(0) { $0 << 8 | Int($1) } ?? 0 }
        return FreeResources(applications: number(0x81), nonVolatile: number(0x82), volatile: number(0x83))
    }

    /// GET DATA `00E0`: the keys of the selected security domain.
    public func keyInformation() async throws -> [KeyInformation] {
        let data = try await getData(0x00E0)
        guard let object = try? TLV.first(in: data[...]), object.tag == 0xE0, let parts = try? object.children() else {
            throw GlobalPlatformError(.malformedResponse, command: "GET DATA", detail: "no data object E0")
        }
        return parts.filter { $0.tag == 0xC0 && $0.value.count >= 4 }.map { part in
            let octets = Array(part.value)
            return KeyInformation(identifier: octets[0], version: octets[1], type: octets[2], length: Int(octets[3]))
        }
    }

    /// GET DATA `00C1`: the sequence counter of the selected security domain's keys.
    public func sequenceCounter() async throws -> Int {
        let data = try await getData(0x00C1)
        guard let object = try? TLV.first(in: data[...]), object.tag == 0xC1, (1...4).contains(object.value.count) else {
            throw GlobalPlatformError(.malformedResponse, command: "GET DATA", detail: "no data object C1")
        }
        return object.value.reduce(0) { $0 << 8 | Int($1) }
    }

    // MARK: - Loading

    /// INSTALL [for load] (GPC 11.5.2.3.1).
    ///
    /// - Parameters:
    ///   - securityDomain: the one that it will belong to; nil for the selected one.
    ///   - hash: load file data block hash; empty for none.
    /// - Returns: the confirmation; empty when the card gives none.
    @discardableResult
    public func installForLoad(
        loadFile aid: [UInt8], securityDomain: [UInt8]? = nil, hash: [UInt8] = [], parameters: [UInt8] = [], token: [UInt8] = []
    ) async throws -> [UInt8] {
        let data = try lengthValues("INSTALL [for load]", [aid, securityDomain ?? [], hash, parameters, token])
        return try await install(0x02, data, "INSTALL [for load]")
    }

    /// LOAD in as many blocks as it takes (GPC 11.6): object `C4` around the load file data block.
    ///
    /// - Parameter progress: told the number of blocks sent and of all, after each.
    @discardableResult
    public func load(
        _ block: [UInt8], blockLength: Int? = nil, progress: (@Sendable (Int, Int) -> Void)? = nil
    ) async throws -> [UInt8] {
        let file = TLV.encode(0xC4, block)
        let length = min(longestData, max(1, blockLength ?? longestData))
        let count = (file.count + length - 1) / length
        guard count <= 256 else {
            throw GlobalPlatformError(.invalidArgument, command: "LOAD", detail: "\(count) blocks; 256 can be numbered")
        }
        var confirmation: [UInt8] = []
        for number in 0..<count {
            let piece = Array(file[number * length..<min(file.count, (number + 1) * length)])
            confirmation = try await perform(
                "LOAD", ins: 0xE8, p1: number == count - 1 ? 0x80 : 0x00, p2: UInt8(truncatingIfNeeded: number), data: piece
            ).data
            progress?(number + 1, count)
        }
        return confirmation
    }

    // MARK: - Installing

    /// INSTALL [for install] (GPC 11.5.2.3.2).
    ///
    /// - Parameters:
    ///   - parameters: the whole parameter field; see ``InstallParameters``.
    ///   - selectable: whether it is made selectable at once.
    @discardableResult
    public func installForInstall(
        loadFile: [UInt8], module: [UInt8], instance: [UInt8], privileges: Privileges = [],
        parameters: InstallParameters = .init(),
        selectable: Bool = true, token: [UInt8] = []
    ) async throws -> [UInt8] {
        let name = selectable ? "INSTALL [for install and make selectable]" : "INSTALL [for install]"
        let data = try lengthValues(name, [loadFile, module, instance, privileges.octets, parameters.octets, token])
        return try await install(selectable ? 0x0C : 0x04, data, name)
    }

    /// INSTALL [for make selectable] (GPC 11.5.2.3.3).
    @discardableResult
    public func installForMakeSelectable(
        _ aid: [UInt8], privileges: Privileges = [], parameters: [UInt8] = [], token: [UInt8] = []
    ) async throws -> [UInt8] {
        let name = "INSTALL [for make selectable]"
        return try await install(0x08, try lengthValues(name, [[], [], aid, privileges.octets, parameters, token]), name)
    }

    /// INSTALL [for extradition] (GPC 11.5.2.3.4).
    @discardableResult
    public func installForExtradition(_ aid: [UInt8], to securityDomain: [UInt8], token: [UInt8] = []) async throws -> [UInt8] {
        let name = "INSTALL [for extradition]"
        return try await install(0x10, try lengthValues(name, [securityDomain, [], aid, [], [], token]), name)
    }

    /// INSTALL [for registry update] (GPC 11.5.2.3.5): all of it or nothing.
    ///
    /// - Parameter aid: nil for the card's own runtime environment.
    @discardableResult
    public func installForRegistryUpdate(
        _ aid: [UInt8]?, securityDomain: [UInt8]? = nil, privileges: Privileges? = nil, parameters: InstallParameters? = nil,
        token: [UInt8] = []
    ) async throws -> [UInt8] {
        let name = "INSTALL [for registry update]"
        let fields = [securityDomain ?? [], [], aid ?? [], privileges?.octets ?? [], parameters?.octets ?? [], token]
        return try await install(0x40, try lengthValues(name, fields), name)
    }

    /// INSTALL [for personalization] (GPC 11.5.2.3.6): the STORE DATA that follow go to the application.
    @discardableResult
    public func installForPersonalization(_ aid: [UInt8]) async throws -> [UInt8] {
        let name = "INSTALL [for personalization]"
        return try await install(0x20, try lengthValues(name, [[], [], aid, [], [], []]), name)
    }

    private func install(_ p1: UInt8, _ data: [UInt8], _ name: String) async throws -> [UInt8] {
        try await perform(name, ins: 0xE6, p1: p1, p2: 0x00, data: data).data
    }

    /// STORE DATA in as many blocks as there are (GPC 11.11).
    ///
    /// - Parameters:
    ///   - blocks: one data field each.
    ///   - format: bits of P1 beside "last": structure (08 DGI, 10 BER-TLV) and encryption (20 application, 60 encrypted).
    /// - Returns: what the last one answered, where bit 1 of `format` allows an answer.
    @discardableResult
    public func storeData(_ blocks: [[UInt8]], format: UInt8 = 0x00) async throws -> [UInt8] {
        guard !blocks.isEmpty, blocks.count <= 256 else {
            throw GlobalPlatformError(
                .invalidArgument, command: "STORE DATA", detail: "\(blocks.count) blocks; 1 to 256 can be sent")
        }
        var answer: [UInt8] = []
        for (number, block) in blocks.enumerated() {
            let p1 = (format & 0x7F) | (number == blocks.count - 1 ? 0x80 : 0x00)
            answer = try await perform(
                "STORE DATA", ins: 0xE2, p1: p1, p2: UInt8(truncatingIfNeeded: number), data: block,
                ne: format & 0x01 == 0 ? nil : 256
            ).data
        }
        return answer
    }

    // MARK: - Removing

    /// DELETE of an application, security domain or load file (GPC 11.2).
    ///
    /// - Parameter related: a load file's applications too.
    @discardableResult
    public func delete(_ aid: [UInt8], related: Bool = false, token: [UInt8] = []) async throws -> [UInt8] {
        var data = TLV.encode(0x4F, aid)
        if !token.isEmpty { data += TLV.encode(0x9E, token) }
        return try await perform("DELETE", ins: 0xE4, p1: 0x00, p2: related ? 0x80 : 0x00, data: data).data
    }

    /// DELETE [key] (GPC 11.2.2.3.2): by identifier, version or both.
    public func deleteKey(version: UInt8?, identifier: UInt8? = nil) async throws {
        var data: [UInt8] = []
        if let identifier { data += [0xD0, 0x01, identifier] }
        if let version { data += [0xD2, 0x01, version] }
        guard !data.isEmpty else {
            throw GlobalPlatformError(.invalidArgument, command: "DELETE [key]", detail: "neither version nor identifier")
        }
        _ = try await perform("DELETE [key]", ins: 0xE4, p1: 0x00, p2: 0x00, data: data)
    }

    // MARK: - States, keys, channels

    /// SET STATUS (GPC 11.10).
    ///
    /// - Parameters:
    ///   - aid: not looked at for the card itself.
    ///   - state: the new life cycle state, or 80 and 00 to lock and unlock an application.
    public func setStatus(_ target: StatusTarget, aid: [UInt8] = [], state: UInt8) async throws {
        _ = try await perform("SET STATUS", ins: 0xF0, p1: target.rawValue, p2: state, data: aid, ne: nil)
    }

    /// PUT KEY of a whole key set, identifiers 1 to 3 (GPC 11.8). Triple DES goes with SCP02, AES with SCP03.
    ///
    /// - Parameters:
    ///   - keys: their version must not be 0.
    ///   - replacing: the version of the set that it replaces; nil to add.
    /// - Throws: `malformedResponse` when the card's check values are not those of the keys.
    public func putKeys(_ keys: GlobalPlatformKeys, replacing: UInt8? = nil) async throws {
        let name = "PUT KEY"
        let channel = try requireChannel(name)
        guard (1...0x7F).contains(keys.version) else {
            throw GlobalPlatformError(.invalidArgument, command: name, detail: "version \(keys.version); 1 to 127 are versions")
        }
        let isAES = channel.name == "SCP03"
        guard isAES || keys.enc.count == 16 else {
            throw GlobalPlatformError(.keysUnsuitable, command: name, detail: "SCP02 has triple DES keys of 16 bytes")
        }
        var data: [UInt8] = [keys.version]
        var expected: [UInt8] = [keys.version]
        for key in [keys.enc, keys.mac, keys.dek] {
            let check = try KeyCheckValue.of(key, isAES: isAES)
            let sealed = try channel.sealKey(key)
            if isAES {
                data += [0x88, UInt8(truncatingIfNeeded: sealed.count + 1), UInt8(truncatingIfNeeded: key.count)]
            } else {
                data += [0x80, UInt8(truncatingIfNeeded: sealed.count)]
            }
            data += sealed + [0x03] + check
            expected += check
        }
        let answer = try await perform(name, ins: 0xD8, p1: replacing ?? 0x00, p2: 0x81, data: data).data
        guard answer == expected else {
            throw GlobalPlatformError(
                .malformedResponse, command: name, detail: "the card's check values are not those of the keys")
        }
    }

    /// MANAGE CHANNEL [open]: the number of the logical channel that the card opened (GPC 11.7). It goes past the secure channel.
    public func openLogicalChannel() async throws -> UInt8 {
        let data = try await performInClear("MANAGE CHANNEL", ins: 0x70, p1: 0x00, p2: 0x00, ne: 1)
        guard data.count == 1, (1...19).contains(data[0]) else {
            throw GlobalPlatformError(
                .malformedResponse, command: "MANAGE CHANNEL", detail: "\(data.count) bytes are no channel number")
        }
        return data[0]
    }

    /// MANAGE CHANNEL [close].
    public func closeLogicalChannel(_ number: UInt8) async throws {
        _ = try await performInClear("MANAGE CHANNEL", ins: 0x70, p1: 0x80, p2: number, ne: nil)
    }

    /// Values with a length octet each before them.
    private func lengthValues(_ name: String, _ values: [[UInt8]]) throws(GlobalPlatformError) -> [UInt8] {
        var data: [UInt8] = []
        for value in values {
            guard let length = UInt8(exactly: value.count) else {
                throw GlobalPlatformError(.invalidArgument, command: name, detail: "a field of \(value.count) bytes; 255 fit")
            }
            data.append(length)
            data += value
        }
        return data
    }

    private static let mostParts = 1_000
}
