// SPDX-License-Identifier: MIT

extension DESFireCardMachine {
    // MARK: - Files

    mutating func performFiles(_ command: DESFireCardCommand, _ data: [UInt8]) throws(DESFireRefusal) -> Outcome {
        let header = command.header
        guard selected != .card else { throw .permissionDenied }
        switch command.code {
        case 0x6F:
            guard application.settings & 0x02 != 0 || isMaster else { throw .authentication }
            return Outcome(data: application.files.keys.sorted())
        case 0x61:
            guard application.settings & 0x02 != 0 || isMaster else { throw .authentication }
            return Outcome(
                data: application.files.sorted { $0.key < $1.key }.compactMap(\.value.isoID).flatMap { littleEndian(Int($0), 2) })
        case 0xF5:
            guard header.count == 1 else { throw .length }
            guard memory.model == .ntag424 || application.settings & 0x02 != 0 || isMaster else { throw .authentication }
            return Outcome(data: settings(try file(header[0]), number: header[0]))
        case 0x5F: try changeSettings(header, data)
        case 0xDF: try deleteFile(header)
        default: try createFile(command, data)
        }
        return Outcome()
    }

    private func settings(_ file: DESFireFile, number: UInt8) -> [UInt8] {
        var octets = [file.content.typeCode, file.options] + littleEndian(Int(file.rights), 2)
        switch file.content {
        case .standard(let data), .backup(let data): octets += littleEndian(data.count, 3)
        case .value(let value):
            octets += littleEndian(Int(value.lower), 4) + littleEndian(Int(value.upper), 4) + littleEndian(Int(value.limit), 4)
            octets.append((value.allowsLimitedCredit ? 1 : 0) | (value.freeGetValue ? 2 : 0))
        case .records(let records):
            octets += littleEndian(records.size, 3) + littleEndian(records.most, 3) + littleEndian(records.records.count, 3)
        case .transactionMAC(let mac): octets += [0x02, mac.keyVersion]
        }
        if let messaging = file.messaging { octets += messaging.octets }
        return octets
    }

    private mutating func changeSettings(_ header: [UInt8], _ data: [UInt8]) throws(DESFireRefusal) {
        // A plain command has everything in its header.
        let all = header + data
        guard let number = all.first, all.count >= 4 else { throw .length }
        var changed = try file(number)
        switch changed.right(.change) {
        case 0x0E: break
        case 0x0F: throw .permissionDenied
        case let key: guard channel != nil, keyInUse == key else { throw .authentication }
        }
        changed.options = all[1]
        changed.rights = UInt16(all[2]) | UInt16(all[3]) << 8
        if memory.model == .ntag424 {
            guard all[1] & 0xBC == 0 else { throw .parameter }
            changed.messaging =
                all[1] & 0x40 == 0 ? nil : try NTAGMessaging(Array(all[4...]), counter: changed.messaging?.counter ?? 0)
            guard changed.messaging != nil || all.count == 4 else { throw .length }
            if case .standard(let content) = changed.content, let messaging = changed.messaging {
                guard messaging.fits(content.count) else { throw .boundary }
            }
        } else {
            guard all.count == 4 else { throw .length }
        }
        application.files[number] = changed
    }

    private mutating func deleteFile(_ header: [UInt8]) throws(DESFireRefusal) {
        guard header.count == 1 else { throw .length }
        guard creationIsAllowed else { throw .authentication }
        _ = try file(header[0])
        application.files[header[0]] = nil
        shadows[header[0]] = nil
    }

    private mutating func createFile(_ command: DESFireCardCommand, _ data: [UInt8]) throws(DESFireRefusal) {
        guard creationIsAllowed else { throw .authentication }
        var rest = command.header[...]
        func take(_ count: Int) throws(DESFireRefusal) -> [UInt8] {
            guard rest.count >= count else { throw .length }
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }
        let fixed: Int =
            switch command.code {
            case 0xCD, 0xCB: 3
            case 0xCC: 13
            case 0xCE: 1
            default: 6
            }
        let fileNumber = try take(1)[0]
        var isoID: UInt16?
        if rest.count == fixed + 5 {
            let octets = try take(2)
            isoID = UInt16(octets[0]) | UInt16(octets[1]) << 8
        }
        let options = try take(1)[0]
        let rights = try take(2)
        guard rest.count == fixed else { throw .length }
        guard fileNumber < (memory.model == .d40 ? 16 : 32), options & 0xFC == 0 else { throw .parameter }
        guard application.files[fileNumber] == nil else { throw .duplicate }
        if let isoID, application.files.values.contains(where: { $0.isoID == isoID }) { throw .duplicate }
        let content: DESFireContent
        switch command.code {
        case 0xCD, 0xCB:
            let size = number(try take(3))
            guard size > 0 else { throw .parameter }
            guard size <= memory.free else { throw .outOfMemory }
            let zeros = [UInt8](repeating: 0, count: size)
            content = command.code == 0xCD ? .standard(zeros) : .backup(zeros)
        case 0xCC:
            let (lower, upper, value) = (try signed(take(4)), try signed(take(4)), try signed(take(4)))
            guard lower <= value, value <= upper else { throw .boundary }
            let option = try take(1)[0]
            content = .value(
                DESFireValue(
                    lower: lower, upper: upper, value: value, allowsLimitedCredit: option & 1 != 0,
                    freeGetValue: option & 2 != 0))
        case 0xCE:
            guard memory.model == .ev2 || memory.model == .ev3 else { throw .illegalCommand }
            guard data.count == 17, try take(1) == [0x02] else { throw .parameter }
            if application.files.values.contains(where: { $0.content.typeCode == 5 }) { throw .duplicate }
            content = .transactionMAC(DESFireTransactionFile(key: Array(data[..<16]), keyVersion: data[16]))
        default:
            let (size, most) = (number(try take(3)), number(try take(3)))
            let isCyclic = command.code == 0xC0
            guard size > 0, most > (isCyclic ? 1 : 0) else { throw .parameter }
            guard size.multipliedReportingOverflow(by: most).partialValue <= memory.free else { throw .outOfMemory }
            content = .records(DESFireRecords(size: size, most: most, isCyclic: isCyclic))
        }
        guard content.cost <= memory.free else { throw .outOfMemory }
        application.files[fileNumber] = DESFireFile(
            isoID: isoID, options: options, rights: UInt16(rights[0]) | UInt16(rights[1]) << 8, content: content)
    }

    func signed(_ octets: [UInt8]) -> Int32 { Int32(truncatingIfNeeded: number(octets)) }
}
