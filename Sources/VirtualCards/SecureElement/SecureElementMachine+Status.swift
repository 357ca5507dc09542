// SPDX-License-Identifier: MIT

import Octets

/// The registry: GET DATA, GET STATUS, SET STATUS (GPC 11.3, 11.4, 11.10).
extension SecureElementMachine {
    /// Card recognition data, the value of `73` (GPC H.2).
    var recognition: [UInt8] {
        func identifier(_ last: [UInt8]) -> [UInt8] { TLV.encode(0x06, [0x2A, 0x86, 0x48, 0x86, 0xFC, 0x6B] + last) }
        let protocols = channelOptions.map { identifier([0x04, $0.0, $0.1]) }
        return identifier([0x01]) + TLV.encode(0x60, identifier([0x02, 0x02, 0x03, 0x01])) + TLV.encode(0x63, identifier([0x03]))
            + protocols.flatMap { TLV.encode(0x64, $0) }
    }

    private var channelOptions: [(UInt8, UInt8)] {
        var options: [(UInt8, UInt8)] = []
        for set in memory.applications.first?.keySets ?? [] {
            let next: (UInt8, UInt8) = (set.isAES ? 0x03 : 0x02, option(for: set))
            if !options.contains(where: { $0 == next }) { options.append(next) }
        }
        return options
    }

    mutating func getData(_ command: CardCommand) throws(StatusWord) -> [UInt8] {
        guard let aid = channel.selected, let place = memory.index(of: aid) else { throw .conditionsNotSatisfied }
        let domain = memory.applications[place]
        let tag = command.parameters
        let value: [UInt8]
        switch tag {
        case 0x0066: value = TLV.encode(0x73, recognition)
        case 0x0067: value = capabilities
        case 0x00E0: value = keyInformation(domain)
        case 0x00C1:
            guard let holder = memory.keyHolder(of: aid), let set = memory.applications[holder].keySets.first else {
                throw .referencedDataNotFound
            }
            value = Self.number(Int(set.counter), set.isAES ? 3 : 2)
        case 0x00D3: value = [channel.secure?.stage == .open ? 0x80 | (channel.secure?.level ?? 0) : 0x00]
        case 0x2F00:
            guard command.data == [0x5C, 0x00] || command.data.isEmpty else { throw .wrongData }
            value = memory.applications.filter { !$0.isSecurityDomain }.flatMap { TLV.encode(0x61, TLV.encode(0x4F, $0.aid)) }
        case 0xFF21:
            value =
                TLV.encode(0x81, Self.number(memory.applications.count, 2))
                + TLV.encode(0x82, Self.number(memory.freeNonVolatile, 4)) + TLV.encode(0x83, Self.number(memory.freeVolatile, 4))
        default:
            if let object = domain.objects.first(where: { $0.tag == tag }) {
                value = object.value
            } else if tag == 0x9F7F, place == 0 {
                value = productionData
            } else if tag == 0x0042, place == 0 {
                value = [0x54, 0x44, 0x00]
            } else if tag == 0x0045, place == 0 {
                value = diversification
            } else {
                throw .referencedDataNotFound
            }
        }
        // GPC 11.3.3: the interindustry class gives the value alone.
        return command.cla & 0x80 == 0 ? value : TLV.encode(UInt32(tag), value)
    }

    static func number(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    /// GPC H.4: secure channels with their options and AES sizes; privileges of domains and applications; hashes.
    private var capabilities: [UInt8] {
        let channels = channelOptions.flatMap { number, option in
            TLV.encode(
                0xA0,
                TLV.encode(0x80, [number]) + TLV.encode(0x81, [option]) + (number == 3 ? TLV.encode(0x82, [0x07]) : []))
        }
        return channels + TLV.encode(0x81, [0xFF, 0xFE, 0x80]) + TLV.encode(0x82, [0x1E, 0x00, 0x30])
            + TLV.encode(0x83, [0x01, 0x02])
    }

    private func keyInformation(_ domain: ElementApplication) -> [UInt8] {
        domain.keySets.flatMap { set in
            set.keys.enumerated().flatMap { place, key in
                TLV.encode(
                    0xC0,
                    [
                        UInt8(truncatingIfNeeded: place + 1), set.version, set.isAES ? 0x88 : 0x80,
                        UInt8(truncatingIfNeeded: key.count),
                    ])
            }
        }
    }

    /// Card production life cycle data, 42 octets in the usual order; fabricator and type say that it is a simulation.
    private var productionData: [UInt8] {
        let start: [UInt8] = [0x00, 0x00, 0x54, 0x44, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01]
        let serial = Array(diversification.suffix(8))
        return start + serial + [UInt8](repeating: 0, count: 24)
    }

    // MARK: - GET STATUS

    mutating func getStatus(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard let aid = channel.selected, let domain = memory.application(aid) else { throw .conditionsNotSatisfied }
        guard [0x80, 0x40, 0x20, 0x10].contains(command.p1), command.p2 & 0xFC == 0, command.p2 & 0x02 != 0 else {
            throw .wrongParameters
        }
        var entries: [[UInt8]]
        if command.p2 & 0x01 != 0 {
            guard let listing = channel.listing, listing.command == 0xF2, listing.scope == command.p1 else {
                throw .conditionsNotSatisfied
            }
            entries = listing.entries
        } else {
            guard let objects = try? TLV.parse(command.data, TLVRules(allowsFiller: false)),
                let prefix = objects.first(where: { $0.tag == 0x4F }).map({ Array($0.value) })
            else { throw .wrongData }
            let tags = try Self.tagList(objects.first { $0.tag == 0x5C })
            func isSeen(_ name: [UInt8]) -> Bool { name.starts(with: prefix) && mayManage(domain, name, global: 0x00_0400) }
            switch command.p1 {
            case 0x80:
                // The issuer's own entry is the issuer's to see (GPC 11.4.2.1).
                guard domain.aid == ElementNames.issuerDomain else { throw .wrongParameters }
                entries = memory.applications.prefix(1).filter { isSeen($0.aid) }.map { entry(of: $0, tags) }
            case 0x40: entries = memory.applications.dropFirst().filter { isSeen($0.aid) }.map { entry(of: $0, tags) }
            default:
                entries = memory.files.filter { isSeen($0.aid) }.map { entry(of: $0, withModules: command.p1 == 0x10, tags) }
            }
        }
        channel.listing = nil
        guard !entries.isEmpty else { throw .referencedDataNotFound }
        let (data, rest) = page(entries)
        if !rest.isEmpty { channel.listing = (0xF2, command.p1, rest) }
        return CardReply(data, rest.isEmpty ? .success : StatusWord(rawValue: 0x6310))
    }

    /// As many entries as an answer holds, at least one.
    func page(_ entries: [[UInt8]]) -> (data: [UInt8], rest: [[UInt8]]) {
        let room = channel.secure?.longestReply ?? 256
        var data: [UInt8] = []
        var rest = entries[...]
        while let next = rest.first, data.isEmpty || data.count + next.count <= room {
            data += next
            rest = rest.dropFirst()
        }
        return (data, Array(rest))
    }

    /// The tags that `5C` lists; nil for all.
    private static func tagList(_ list: TLV?) throws(StatusWord) -> [UInt32]? {
        guard let list, !list.value.isEmpty else { return nil }
        var tags: [UInt32] = []
        var rest = list.value
        while let first = rest.popFirst() {
            var tag = UInt32(first)
            if first & 0x1F == 0x1F {
                guard let second = rest.popFirst() else { throw .wrongData }
                tag = tag << 8 | UInt32(second)
            }
            tags.append(tag)
        }
        return tags
    }

    private static func entry(_ objects: [(UInt32, [UInt8])], _ tags: [UInt32]?) -> [UInt8] {
        TLV.encode(0xE3, objects.filter { tags?.contains($0.0) ?? true }.flatMap { TLV.encode($0.0, $0.1) })
    }

    private func entry(of application: ElementApplication, _ tags: [UInt32]?) -> [UInt8] {
        let state = application.aid == ElementNames.issuerDomain ? memory.cardState : application.state
        var objects: [(UInt32, [UInt8])] = [
            (0x4F, application.aid), (0x9F70, [state]), (0xC5, Self.number(Int(application.privileges), 3)),
        ]
        if application.aid != ElementNames.issuerDomain { objects.append((0xC4, application.file)) }
        objects.append((0xCC, application.domain))
        return Self.entry(objects, tags)
    }

    private func entry(of file: ElementFile, withModules: Bool, _ tags: [UInt32]?) -> [UInt8] {
        var objects: [(UInt32, [UInt8])] = [(0x4F, file.aid), (0x9F70, [ElementState.loaded]), (0xCE, file.version)]
        if withModules { objects += file.modules.map { (0x84, $0) } }
        objects.append((0xCC, file.domain))
        return Self.entry(objects, tags)
    }

    // MARK: - SET STATUS

    mutating func setStatus(_ command: CardCommand) throws(StatusWord) -> [UInt8] {
        guard let aid = channel.selected, let domain = memory.application(aid) else { throw .conditionsNotSatisfied }
        switch command.p1 {
        case 0x80: try setCardState(command.p2, by: domain)
        case 0x40, 0x60:
            guard let place = memory.index(of: command.data) else { throw .referencedDataNotFound }
            let target = memory.applications[place]
            guard place > 0, command.p1 == 0x40 || target.isSecurityDomain else { throw .conditionsNotSatisfied }
            guard mayManage(domain, target.aid, global: 0x00_0800), target.aid != domain.aid || command.p2 == 0x0F else {
                throw .conditionsNotSatisfied
            }
            let places =
                command.p1 == 0x40
                ? [place] : memory.applications.indices.filter { memory.belongs(memory.applications[$0].aid, to: target.aid) }
            for place in places { try setState(command.p2, at: place, isFirst: memory.applications[place].aid == target.aid) }
        default: throw .wrongParameters
        }
        return []
    }

    private mutating func setState(_ state: UInt8, at place: Int, isFirst: Bool) throws(StatusWord) {
        let old = memory.applications[place].state
        let isLocked = old & ElementState.lockBit != 0
        switch state {
        case 0x80...0xFF:
            guard !isLocked else {
                if isFirst { throw .conditionsNotSatisfied }
                return
            }
            memory.applications[place].state = old | ElementState.lockBit
        case _ where isLocked: memory.applications[place].state = old & 0x7F
        case ElementState.personalized where memory.applications[place].isSecurityDomain && old == ElementState.selectable:
            memory.applications[place].state = state
            memory.applications[place].isPersonalized = true
        default: if isFirst { throw .conditionsNotSatisfied }
        }
    }

    /// GPC 5.1.1 and figure 5-1: forward only, but for LOCKED back to SECURED.
    private mutating func setCardState(_ state: UInt8, by domain: ElementApplication) throws(StatusWord) {
        let order = [ElementState.ready, ElementState.initialized, ElementState.secured]
        switch state {
        case ElementState.terminated:
            guard domain.has(0x08_0000) else { throw .conditionsNotSatisfied }
        case ElementState.locked:
            guard domain.has(0x10_0000), memory.cardState == ElementState.secured else { throw .conditionsNotSatisfied }
        case ElementState.secured where memory.cardState == ElementState.locked:
            guard domain.has(0x10_0000) else { throw .conditionsNotSatisfied }
        default:
            guard let new = order.firstIndex(of: state) else { throw .wrongData }
            guard let old = order.firstIndex(of: memory.cardState), new > old else { throw .conditionsNotSatisfied }
        }
        memory.cardState = state
    }
}
