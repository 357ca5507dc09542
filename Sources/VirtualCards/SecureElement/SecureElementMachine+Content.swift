// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// Content management: INSTALL, LOAD and DELETE (GPC 11.2, 11.5, 11.6).
extension SecureElementMachine {
    /// The selected security domain.
    private func manager() throws(StatusWord) -> ElementApplication {
        guard let aid = channel.selected, let domain = memory.application(aid), domain.isSecurityDomain else {
            throw .conditionsNotSatisfied
        }
        return domain
    }

    /// The selected security domain, when it may manage content: with authorized management (GPC 9.2).
    private func contentManager() throws(StatusWord) -> ElementApplication {
        let domain = try manager()
        guard domain.has(0x00_4000) else { throw .conditionsNotSatisfied }
        return domain
    }

    /// Whether the domain may touch what is called `aid`: what is below it, or all with the global privilege.
    func mayManage(_ domain: ElementApplication, _ aid: [UInt8], global privilege: UInt32) -> Bool {
        domain.has(privilege) || memory.belongs(aid, to: domain.aid)
    }

    // MARK: - INSTALL

    mutating func install(_ command: CardCommand) throws(StatusWord) -> [UInt8] {
        guard command.p2 == 0 else { throw .wrongParameters }
        let fields = try Self.lengthValues(command.data, count: 6)
        channel.personalization = nil
        switch command.p1 {
        case 0x02: try installForLoad(Self.lengthValues(command.data, count: 5))
        case 0x04, 0x0C: try installForInstall(fields, selectable: command.p1 == 0x0C)
        case 0x08: try makeSelectable(fields)
        case 0x10: try extradite(fields)
        case 0x20: try installForPersonalization(fields)
        case 0x40: try updateRegistry(fields)
        default: throw .wrongParameters
        }
        // No receipt: a length of zero (GPC 11.5.3.1).
        return [0x00]
    }

    private static func lengthValues(_ data: [UInt8], count: Int) throws(StatusWord) -> [[UInt8]] {
        do throws(OutOfOctets) {
            var cursor = ByteCursor(data)
            var fields: [[UInt8]] = []
            while !cursor.isAtEnd, fields.count < count { fields.append(Array(try cursor.take(Int(try cursor.u8())))) }
            // INSTALL [for load] has five fields; the others six, whose last some hosts leave out.
            guard cursor.isAtEnd, fields.count >= 5 else { throw OutOfOctets(offset: cursor.offset, wanted: 1, present: 0) }
            return fields + [[UInt8]](repeating: [], count: count - fields.count)
        } catch {
            throw .wrongData
        }
    }

    private func requireName(_ aid: [UInt8]) throws(StatusWord) {
        guard (5...16).contains(aid.count) else { throw .wrongData }
    }

    private mutating func installForLoad(_ fields: [[UInt8]]) throws(StatusWord) {
        let domain = try contentManager()
        try requireName(fields[0])
        let owner = fields[1].isEmpty ? domain.aid : fields[1]
        guard let ownerEntry = memory.application(owner), ownerEntry.isSecurityDomain else { throw .referencedDataNotFound }
        guard mayManage(domain, owner, global: 0x00_0400) else { throw .conditionsNotSatisfied }
        guard memory.file(fields[0]) == nil, memory.application(fields[0]) == nil else { throw .conditionsNotSatisfied }
        guard [0, 20, 32].contains(fields[2].count) else { throw .wrongData }
        if !fields[3].isEmpty, let wanted = TLV.find(0xC6, in: fields[3][...]) {
            guard wanted.value.reduce(0, { ($0 << 8 | Int($1)) & 0xFF_FFFF }) <= memory.freeNonVolatile else {
                throw .notEnoughSpace
            }
        }
        channel.load = ElementLoad(file: fields[0], domain: owner, hash: fields[2])
        memory.failed.removeAll { $0 == fields[0] }
        memory.pending.append(fields[0])
    }

    private mutating func installForInstall(_ fields: [[UInt8]], selectable: Bool) throws(StatusWord) {
        let domain = try contentManager()
        let (fileName, module, instance) = (fields[0], fields[1], fields[2])
        guard let file = memory.file(fileName), file.modules.contains(module) else { throw .referencedDataNotFound }
        try requireName(instance)
        guard memory.application(instance) == nil, memory.file(instance) == nil else { throw .conditionsNotSatisfied }
        let privileges = try Self.privileges(fields[3])
        let isDomain = privileges & 0x80_0000 != 0
        guard isDomain == (module == ElementNames.domainModule), module != ElementNames.contactlessRegistry else {
            throw .wrongData
        }
        let parameters = try Self.parameters(fields[4])
        guard let own = parameters.first(where: { $0.tag == 0xC9 }) else { throw .wrongData }
        var entry = ElementApplication(
            aid: instance, file: fileName, module: module, privileges: privileges,
            state: selectable ? ElementState.selectable : ElementState.installed, domain: domain.aid)
        if isDomain {
            (entry.nonVolatile, entry.volatile) = (512, 256)
        } else {
            let type = ElementApplets.type(for: module)
            entry.nonVolatile = type.memory.nonVolatile + own.value.count
            entry.volatile = type.memory.volatile
            entry.applet = try type.init(parameters: Array(own.value))
            entry.contactless = 0x00
        }
        if let system = parameters.first(where: { $0.tag == 0xEF }) { try apply(system, to: &entry) }
        guard entry.nonVolatile + ElementMemory.entryLength <= memory.freeNonVolatile, entry.volatile <= memory.freeVolatile
        else {
            throw .notEnoughSpace
        }
        memory.applications.append(entry)
    }

    /// System specific parameters: quotas, and the contactless objects of Amendment C.
    private func apply(_ system: TLV, to entry: inout ElementApplication) throws(StatusWord) {
        guard let objects = try? system.children() else { throw .wrongData }
        for object in objects {
            let number = object.value.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            switch object.tag {
            case 0xC7 where number < entry.volatile, 0xC8 where number < entry.nonVolatile: throw .notEnoughSpace
            case 0xA0:
                guard !entry.isSecurityDomain, let state = TLV.find(0x81, in: object.value)?.value.first else { throw .wrongData }
                guard [0x00, 0x01, 0x80].contains(state) else { throw .wrongData }
                entry.contactless = state
                entry.updates &+= 1
            case 0xA1:
                guard let list = TLV.find(0xA2, in: object.value) else { continue }
                guard let name = TLV.find(0x4F, in: list.value).map({ Array($0.value) }) else { throw .wrongData }
                guard let head = memory.application(name), head.head.isEmpty else { throw .referencedDataNotFound }
                entry.head = name
            default: continue
            }
        }
    }

    private static func privileges(_ octets: [UInt8]) throws(StatusWord) -> UInt32 {
        switch octets.count {
        case 1: return UInt32(octets[0]) << 16
        case 3: return UInt32(octets[0]) << 16 | UInt32(octets[1]) << 8 | UInt32(octets[2])
        default: throw .wrongData
        }
    }

    private static func parameters(_ octets: [UInt8]) throws(StatusWord) -> [TLV] {
        guard let objects = try? TLV.parse(octets, TLVRules(allowsFiller: false)) else { throw .wrongData }
        return objects
    }

    private mutating func makeSelectable(_ fields: [[UInt8]]) throws(StatusWord) {
        let domain = try contentManager()
        guard let place = memory.index(of: fields[2]) else { throw .referencedDataNotFound }
        guard mayManage(domain, fields[2], global: 0x00_0400), memory.applications[place].state == ElementState.installed else {
            throw .conditionsNotSatisfied
        }
        memory.applications[place].state = ElementState.selectable
        if !fields[3].isEmpty { memory.applications[place].privileges |= try Self.privileges(fields[3]) & 0x7F_FFFF }
    }

    private mutating func extradite(_ fields: [[UInt8]]) throws(StatusWord) {
        let domain = try contentManager()
        guard let target = memory.application(fields[0]), target.isSecurityDomain else { throw .referencedDataNotFound }
        guard mayManage(domain, fields[2], global: 0x00_0400), !ElementNames.delivered.contains(fields[2]),
            !memory.belongs(target.aid, to: fields[2])
        else { throw .conditionsNotSatisfied }
        if let place = memory.index(of: fields[2]) {
            memory.applications[place].domain = target.aid
        } else if let place = memory.files.firstIndex(where: { $0.aid == fields[2] }) {
            memory.files[place].domain = target.aid
        } else {
            throw .referencedDataNotFound
        }
    }

    private mutating func updateRegistry(_ fields: [[UInt8]]) throws(StatusWord) {
        let domain = try contentManager()
        // Without a name it is the runtime environment, which has no parameter that could be changed here.
        guard !fields[2].isEmpty else { return }
        guard let place = memory.index(of: fields[2]) else { throw .referencedDataNotFound }
        guard mayManage(domain, fields[2], global: 0x00_0400) else { throw .conditionsNotSatisfied }
        var entry = memory.applications[place]
        if !fields[3].isEmpty {
            let privileges = try Self.privileges(fields[3])
            // What makes a security domain is given at its installation.
            guard privileges & 0x80_0000 == entry.privileges & 0x80_0000 else { throw .wrongData }
            entry.privileges = privileges
        }
        if let system = try Self.parameters(fields[4]).first(where: { $0.tag == 0xEF }) { try apply(system, to: &entry) }
        if !fields[0].isEmpty {
            guard let target = memory.application(fields[0]), target.isSecurityDomain else { throw .referencedDataNotFound }
            guard !memory.belongs(target.aid, to: entry.aid), place > 0 else { throw .conditionsNotSatisfied }
            entry.domain = target.aid
        }
        memory.applications[place] = entry
    }

    private mutating func installForPersonalization(_ fields: [[UInt8]]) throws(StatusWord) {
        let domain = try manager()
        guard let entry = memory.application(fields[2]) else { throw .referencedDataNotFound }
        guard entry.domain == domain.aid, !entry.isLocked, let applet = entry.applet else { throw .conditionsNotSatisfied }
        channel.personalization = ElementPersonalization(aid: entry.aid, applet: applet)
    }

    // MARK: - LOAD

    mutating func load(_ command: CardCommand) throws(StatusWord) -> [UInt8] {
        guard var load = channel.load else { throw .conditionsNotSatisfied }
        do throws(StatusWord) {
            guard command.p1 & 0x7F == 0, command.p2 == load.block else { throw .wrongParameters }
            load.block &+= 1
            load.octets += command.data
            guard load.octets.count + ElementMemory.entryLength <= memory.freeNonVolatile else { throw .notEnoughSpace }
            guard command.p1 == 0x80 else {
                channel.load = load
                return [0x00]
            }
            try finish(load)
            memory.pending.removeAll { $0 == load.file }
            channel.load = nil
            return [0x00]
        } catch {
            endLoad()
            throw error
        }
    }

    private mutating func finish(_ load: ElementLoad) throws(StatusWord) {
        // Blocks E2 with the signatures of DAP, then C4 (GPC table 11-58).
        guard let objects = try? TLV.parse(load.octets, TLVRules(allowsFiller: false)), let code = objects.last, code.tag == 0xC4,
            objects.dropLast().allSatisfy({ $0.tag == 0xE2 })
        else { throw .wrongData }
        let block = Array(code.value)
        if !load.hash.isEmpty {
            let digest = load.hash.count == 20 ? Digest.sha1 : Digest.sha256
            guard let hash = try? digest.hash(block), hash == load.hash else { throw .wrongData }
        }
        let content = try LoadFileContent(parsing: block)
        guard content.aid == load.file else { throw .wrongData }
        memory.files.append(
            ElementFile(
                aid: content.aid, version: content.version, modules: content.modules, domain: load.domain, length: block.count))
    }

    /// Ends a load that is under way: it leaves nothing but its failure.
    mutating func endLoad() {
        guard let load = channel.load else { return }
        channel.load = nil
        memory.pending.removeAll { $0 == load.file }
        if !memory.failed.contains(load.file) { memory.failed.append(load.file) }
    }

    // MARK: - DELETE

    mutating func delete(_ command: CardCommand) throws(StatusWord) -> [UInt8] {
        guard command.p1 == 0, command.p2 & 0x7F == 0 else { throw .wrongParameters }
        guard let objects = try? TLV.parse(command.data, TLVRules(allowsFiller: false)), let first = objects.first else {
            throw .wrongData
        }
        if first.tag == 0xD0 || first.tag == 0xD2 { return try deleteKey(objects) }
        guard first.tag == 0x4F else { throw .wrongData }
        let aid = Array(first.value)
        let domain = try contentManager()
        if memory.failed.contains(aid) {
            memory.failed.removeAll { $0 == aid }
            return [0x00]
        }
        guard memory.application(aid) != nil || memory.file(aid) != nil else { throw .referencedDataNotFound }
        guard mayManage(domain, aid, global: 0x00_1000), !ElementNames.delivered.contains(aid) else {
            throw .conditionsNotSatisfied
        }
        var doomed = [aid]
        if let file = memory.file(aid) {
            guard ![ElementNames.domainFile, ElementNames.contactlessFile].contains(aid) else { throw .conditionsNotSatisfied }
            let users = memory.applications.filter { $0.file == file.aid }.map(\.aid)
            guard users.isEmpty || command.p2 == 0x80 else { throw .conditionsNotSatisfied }
            doomed += users
        }
        // Nothing may be left that belongs to what goes, or is selected while it goes.
        let isHeld =
            memory.applications.contains { !doomed.contains($0.aid) && (doomed.contains($0.domain) || doomed.contains($0.head)) }
            || memory.files.contains { !doomed.contains($0.aid) && doomed.contains($0.domain) }
        let isSelected = (wired.channels + contactless.channels).contains { doomed.contains($0?.selected ?? []) }
        guard !isHeld, !isSelected else { throw .conditionsNotSatisfied }
        memory.applications.removeAll { doomed.contains($0.aid) }
        memory.files.removeAll { doomed.contains($0.aid) }
        return [0x00]
    }
}
