// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// Keys and data: PUT KEY, DELETE [key], STORE DATA (GPC 11.2.2.3.2, 11.8, 11.11).
extension SecureElementMachine {
    private func selectedDomain() throws(StatusWord) -> Int {
        guard let aid = channel.selected, let place = memory.index(of: aid) else { throw .conditionsNotSatisfied }
        return place
    }

    mutating func putKey(_ command: CardCommand) throws(StatusWord) -> [UInt8] {
        let place = try selectedDomain()
        guard command.p1 & 0x80 == 0 else { throw .wrongParameters }
        let first = command.p2 & 0x7F
        let isSeveral = command.p2 & 0x80 != 0
        guard (1...3).contains(first), !isSeveral || first == 1 else { throw .wrongParameters }
        let (version, keys, isAES) = try keys(in: command.data)
        guard keys.count == (isSeveral ? 3 : 1) else { throw .wrongData }
        var sets = memory.applications[place].keySets
        let values = keys.map(\.value)
        if command.p1 == 0 {
            guard isSeveral else { throw .wrongParameters }
            guard !sets.contains(where: { $0.version == version }) else { throw .conditionsNotSatisfied }
            // The first key set of one's own takes the place of the one that the card was delivered with.
            sets.removeAll { $0.version == 0xFF }
            sets.append(ElementKeySet(version: version, isAES: isAES, keys: values))
        } else {
            guard let index = sets.firstIndex(where: { $0.version == command.p1 }) else { throw .referencedDataNotFound }
            guard version == command.p1 || !sets.contains(where: { $0.version == version }) else { throw .conditionsNotSatisfied }
            if isSeveral {
                sets[index] = ElementKeySet(version: version, isAES: isAES, keys: values)
            } else {
                guard sets[index].isAES == isAES else { throw .wrongData }
                sets[index].keys[Int(first) - 1] = values[0]
                sets[index].version = version
                // Amendment D 6.2.2.1: a replaced key begins its counter again.
                sets[index].counter = 0
            }
        }
        memory.applications[place].keySets = sets
        return [version] + keys.flatMap(\.check)
    }

    /// The keys in the data field of PUT KEY (GPC table 11-68, Amendment D 7.2), decrypted and proved by their check values.
    private func keys(
        in data: [UInt8]
    ) throws(StatusWord) -> (version: UInt8, keys: [(value: [UInt8], check: [UInt8])], isAES: Bool) {
        guard let secure = channel.secure else { throw .securityNotSatisfied }
        var found: [(value: [UInt8], check: [UInt8])] = []
        var cursor = ByteCursor(data)
        guard let version = try? cursor.u8(), (0x01...0x7F).contains(version) else { throw .wrongData }
        var isAES = secure.isAES
        while !cursor.isAtEnd {
            guard let type = try? cursor.u8(), type == 0x80 || type == 0x88, let length = try? cursor.u8(),
                var sealed = (try? cursor.take(Int(length))).map({ Array($0) }), let checkLength = try? cursor.u8(),
                checkLength == 3,
                let check = (try? cursor.take(3)).map({ Array($0) })
            else { throw .wrongData }
            isAES = type == 0x88
            var keyLength = sealed.count
            if isAES {
                guard let told = sealed.first else { throw .wrongData }
                keyLength = Int(told)
                sealed.removeFirst()
            }
            guard (isAES ? [16, 24, 32] : [16]).contains(keyLength), sealed.count >= keyLength else { throw .wrongData }
            let key = Array(try secure.openSensitive(sealed).prefix(keyLength))
            let cipher: BlockCipher = isAES ? .aes : .tripleDES
            let block = [UInt8](repeating: isAES ? 0x01 : 0x00, count: cipher.blockLength)
            guard let right = try? cipher.encrypt(block, key: key), Array(right.prefix(3)) == check else {
                throw .securityNotSatisfied
            }
            found.append((key, check))
        }
        return (version, found, isAES)
    }

    mutating func deleteKey(_ objects: [TLV]) throws(StatusWord) -> [UInt8] {
        let place = try selectedDomain()
        let version = objects.first { $0.tag == 0xD2 }?.value.first
        // A key of a set is not to be had without the others here.
        guard objects.allSatisfy({ $0.tag == 0xD2 && $0.value.count == 1 }), let version else { throw .wrongData }
        guard memory.applications[place].keySets.contains(where: { $0.version == version }) else { throw .referencedDataNotFound }
        // The keys of the session in hand, and the issuer's last ones, stay.
        guard channel.secure?.keyVersion != version, place > 0 || memory.applications[place].keySets.count > 1 else {
            throw .conditionsNotSatisfied
        }
        memory.applications[place].keySets.removeAll { $0.version == version }
        return [0x00]
    }

    mutating func storeData(_ command: CardCommand) throws(StatusWord) -> [UInt8] {
        let isLast = command.p1 & 0x80 != 0
        guard let secure = channel.secure else { throw .securityNotSatisfied }
        var data = command.data
        if command.p1 & 0x60 == 0x60 { data = try secure.openSensitive(data) }
        guard var personalization = channel.personalization else { return try storeOwn(data, command, isLast) }
        do throws(StatusWord) {
            guard command.p2 == personalization.block else { throw .wrongParameters }
            try personalization.applet.store(data, isLast: isLast)
            personalization.block &+= 1
            channel.personalization = personalization
        } catch {
            channel.personalization = nil
            throw error
        }
        guard isLast else { return [] }
        channel.personalization = nil
        guard let place = memory.index(of: personalization.aid) else { throw .referencedDataNotFound }
        memory.applications[place].applet = personalization.applet
        memory.applications[place].isPersonalized = true
        return []
    }

    /// Data objects of the security domain itself: IIN, CIN, manager address and others; with DGI, inside 0070.
    private mutating func storeOwn(_ data: [UInt8], _ command: CardCommand, _ isLast: Bool) throws(StatusWord) -> [UInt8] {
        let place = try selectedDomain()
        guard command.p2 == channel.nextBlock else { throw .wrongParameters }
        channel.nextBlock = isLast ? 0 : channel.nextBlock &+ 1
        var body = data[...]
        if command.p1 & 0x18 == 0x08 {
            guard data.count >= 3, data[0] == 0x00, data[1] == 0x70, Int(data[2]) == data.count - 3 else { throw .wrongData }
            body = data[3...]
        }
        guard let objects = try? TLV.parse(body, TLVRules(allowsFiller: false)), !objects.isEmpty else { throw .wrongData }
        for object in objects {
            guard let tag = UInt16(exactly: object.tag), [0x42, 0x45, 0x5F50, 0x7F21, 0x9F7F].contains(tag) else {
                throw .wrongData
            }
            memory.applications[place].objects.removeAll { $0.tag == tag }
            memory.applications[place].objects.append(ElementObject(tag: tag, value: Array(object.value)))
        }
        let size = memory.applications[place].objects.reduce(0) { $0 + $1.value.count }
        guard size <= memory.freeNonVolatile else { throw .notEnoughSpace }
        return []
    }
}
