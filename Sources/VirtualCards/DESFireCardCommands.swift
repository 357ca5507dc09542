// SPDX-License-Identifier: MIT

import CardCrypto

extension DESFireCardMachine {
    struct Outcome {
        var data: [UInt8] = []
        var endsSession = false
    }

    /// Does a command whose protection was right.
    mutating func perform(
        _ command: DESFireCardCommand, _ data: [UInt8], second: [UInt8]
    ) throws(DESFireRefusal) -> Outcome {
        if memory.model == .ntag424 { try requireNTAG(command.code) }
        switch command.code {
        case 0x60: return Outcome(data: versionOctets)
        case 0x51: return Outcome(data: memory.uid)
        case 0x6E: return Outcome(data: littleEndian(memory.free, 3))
        case 0x3C: return Outcome(data: memory.signature)
        case 0xFC: try format()
        case 0x5C: try configure(command.header[0], data)
        case 0x6A: return Outcome(data: try applicationIDs())
        case 0x5A: try selectNative(command.header)
        case 0xCA: try createApplication(command.header)
        case 0xDA: return Outcome(endsSession: try deleteApplication(command.header))
        case 0x45, 0x54, 0x64, 0xC4, 0xC6, 0x55, 0x56, 0x57: return try performKeys(command, data, second)
        case 0x6F, 0x61, 0xF5, 0x5F, 0xCD, 0xCB, 0xCC, 0xC1, 0xC0, 0xCE, 0xDF: return try performFiles(command, data)
        default: return Outcome(data: try performData(command, data))
        }
        return Outcome()
    }

    // MARK: - The card

    private mutating func format() throws(DESFireRefusal) {
        guard selected == .card, isMaster else { throw .authentication }
        guard !memory.formatIsDisabled else { throw .permissionDenied }
        memory.applications = []
    }

    private mutating func configure(_ option: UInt8, _ data: [UInt8]) throws(DESFireRefusal) {
        guard isMaster else { throw .authentication }
        switch (memory.model, option) {
        case (.ntag424, 0x05):
            // Bit 1 of the capabilities' first octet switches to LRP, for good (NT4H2421Gx 10.5.1).
            guard data.count == 10 else { throw .length }
            if data[4] & 0x02 != 0 { memory.usesLRP = true }
        case (.ntag424, _): break
        case (_, 0x00):
            guard data.count == 1 else { throw .length }
            memory.formatIsDisabled = memory.formatIsDisabled || data[0] & 0x01 != 0
        default: break
        }
    }

    // MARK: - Applications

    private var listingIsAllowed: Bool { application.settings & 0x02 != 0 || isMaster }
    var creationIsAllowed: Bool { application.settings & 0x04 != 0 || isMaster }

    private func applicationIDs() throws(DESFireRefusal) -> [UInt8] {
        guard selected == .card else { throw .permissionDenied }
        guard listingIsAllowed else { throw .authentication }
        return memory.applications.flatMap(\.identifier)
    }

    func dfNames() throws(DESFireRefusal) -> [[UInt8]] {
        guard selected == .card else { throw .permissionDenied }
        guard listingIsAllowed else { throw .authentication }
        return memory.applications.compactMap { application in
            application.isoID.map { application.identifier + littleEndian(Int($0), 2) + application.name }
        }
    }

    private mutating func selectNative(_ identifier: [UInt8]) throws(DESFireRefusal) {
        guard identifier.count == 3 else { throw .length }
        if identifier == [0, 0, 0] { return select(.card) }
        guard let index = memory.applications.firstIndex(where: { $0.identifier == identifier }) else {
            throw .applicationNotFound
        }
        select(.application(index))
    }

    private mutating func createApplication(_ header: [UInt8]) throws(DESFireRefusal) {
        guard selected == .card else { throw .permissionDenied }
        guard creationIsAllowed else { throw .authentication }
        guard header.count == 5 || (7...23).contains(header.count) else { throw .length }
        let count = header[4] & 0x0F
        guard (1...14).contains(count), Array(header[0..<3]) != [0, 0, 0] else { throw .parameter }
        let cipher: DESFireCipher =
            switch header[4] & 0xC0 {
            case 0x80: .aes
            case 0x40: .threeKeyTripleDES
            case 0x00: .twoKeyTripleDES
            default: throw .parameter
            }
        guard memory.model != .d40 || cipher == .twoKeyTripleDES else { throw .parameter }
        let name = Array(header.dropFirst(7))
        var new = DESFireApplication(
            identifier: Array(header[0..<3]), settings: header[3], cipher: cipher,
            keys: Array(repeating: .zero(cipher), count: Int(count)))
        if header.count >= 7 { new.isoID = UInt16(header[5]) | UInt16(header[6]) << 8 }
        new.name = name
        new.filesHaveISOIDs = header[4] & 0x20 != 0
        for other in memory.applications {
            if other.identifier == new.identifier || (new.isoID != nil && other.isoID == new.isoID)
                || (!name.isEmpty && other.name == name)
            {
                throw .duplicate
            }
        }
        guard memory.applications.count < 28 else { throw .count }
        guard new.cost <= memory.free else { throw .outOfMemory }
        memory.applications.append(new)
    }

    /// - Returns: whether the session ends, as it does when the selected application goes.
    private mutating func deleteApplication(_ identifier: [UInt8]) throws(DESFireRefusal) -> Bool {
        guard identifier.count == 3 else { throw .length }
        guard let index = memory.applications.firstIndex(where: { $0.identifier == identifier }) else {
            throw .applicationNotFound
        }
        let isOwn = selected == .application(index)
        guard isMaster, isOwn || selected == .card else { throw .authentication }
        memory.applications.remove(at: index)
        if isOwn { select(.card) }
        return isOwn
    }

    func littleEndian(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}

extension DESFireCardMachine {
    // MARK: - Keys

    private mutating func performKeys(
        _ command: DESFireCardCommand, _ data: [UInt8], _ second: [UInt8]
    ) throws(DESFireRefusal) -> Outcome {
        let header = command.header
        switch command.code {
        case 0x45:
            guard application.settings & 0x02 != 0 || isMaster else { throw .authentication }
            return Outcome(data: [application.settings, UInt8(application.keys.count) | application.typeBits])
        case 0x54:
            guard isMaster else { throw .authentication }
            guard application.settings & 0x08 != 0, data.count == 1 else { throw .permissionDenied }
            application.settings = data[0]
            return Outcome()
        case 0x64:
            guard header.count == 1 || header.count == 2 else { throw .length }
            let keys = header.count == 2 ? application.keySets[header[1]] ?? [] : application.keys
            guard keys.indices.contains(Int(header[0] & 0x0F)) else { throw .noSuchKey }
            return Outcome(data: [keys[Int(header[0] & 0x0F)].version])
        case 0xC4, 0xC6: return try changeKey(command, data, second)
        default: return try keySet(command)
        }
    }

    private mutating func changeKey(
        _ command: DESFireCardCommand, _ data: [UInt8], _ second: [UInt8]
    ) throws(DESFireRefusal) -> Outcome {
        let octet = command.header[command.header.count - 1]
        let set = command.code == 0xC6 ? command.header[0] : 0
        let number = Int(octet & 0x3F)
        let cipher = newCipher(octet)
        var keys = set == 0 ? application.keys : application.keySets[set] ?? []
        guard keys.indices.contains(number) else { throw .noSuchKey }
        try requireRightToChange(number)
        let length = max(cipher.keyLength, 16)
        guard data.count == length + (cipher == .aes ? 1 : 0) else { throw .length }
        var octets = Array(data[..<length])
        if command.hasSecondChecksum {
            octets = exclusiveOr(
                octets, keys[number].octets + [UInt8](repeating: 0, count: max(0, length - keys[number].octets.count)))
            let checksum: [UInt8]
            if case .d40 = channel { checksum = DESFireChecksum.crc16(octets) } else { checksum = DESFireChecksum.crc32(octets) }
            guard checksum == second else { throw .integrity }
        }
        keys[number] = DESFireCardKey(cipher, octets, version: cipher == .aes ? data[length] : nil)
        if set == 0 { application.keys = keys } else { application.keySets[set] = keys }
        if selected == .card { memory.card.cipher = cipher }
        return Outcome(endsSession: number == Int(keyInUse) && set == 0)
    }

    /// Bits 7 to 4 of the settings: the key that changes keys, `E` each its own, `F` none but the master key (MF3ICDx21 short sheet).
    private func requireRightToChange(_ number: Int) throws(DESFireRefusal) {
        guard channel != nil else { throw .authentication }
        if memory.model == .ntag424 {
            guard isMaster else { throw .authentication }
            return
        }
        if number == 0 {
            guard application.settings & 0x01 != 0 else { throw .permissionDenied }
            guard isMaster else { throw .authentication }
            return
        }
        switch application.settings >> 4 {
        case 0x0F: throw .permissionDenied
        case 0x0E: guard Int(keyInUse) == number else { throw .authentication }
        case let changer: guard keyInUse == changer else { throw .authentication }
        }
    }

    private mutating func keySet(_ command: DESFireCardCommand) throws(DESFireRefusal) -> Outcome {
        guard memory.model == .ev2 || memory.model == .ev3 else { throw .illegalCommand }
        guard selected != .card, isMaster else { throw .authentication }
        let header = command.header
        guard let set = header.first, (1...15).contains(set) else { throw .parameter }
        switch command.code {
        case 0x56:
            guard header.count == 2 else { throw .length }
            let cipher: DESFireCipher = header[1] == 2 ? .aes : header[1] == 1 ? .threeKeyTripleDES : .twoKeyTripleDES
            guard cipher == application.cipher else { throw .parameter }
            application.keySets[set] = Array(repeating: .zero(cipher), count: application.keys.count)
            application.finished.remove(set)
            return Outcome()
        case 0x57:
            guard header.count == 2 else { throw .length }
            guard application.keySets[set] != nil else { throw .noSuchKey }
            application.finished.insert(set)
            return Outcome()
        default:
            guard let keys = application.keySets[set], application.finished.contains(set) else { throw .noSuchKey }
            application.keySets[set] = application.keys
            application.keys = keys
            return Outcome(endsSession: true)
        }
    }
}
