// SPDX-License-Identifier: MIT

import CardCrypto

extension DESFireCardMachine {
    // MARK: - Data, values, records, transactions

    mutating func performData(_ command: DESFireCardCommand, _ data: [UInt8]) throws(DESFireRefusal) -> [UInt8] {
        switch command.code {
        case 0xBD, 0xAD: return try readData(command.header)
        case 0x3D, 0x8D: try writeData(command.header, data)
        case 0x6C: return try getValue(command.header)
        case 0x0C, 0xDC, 0x1C: try change(command, data)
        case 0xBB, 0xAB: return try readRecords(command.header)
        case 0x3B, 0x8B: try writeRecord(command.header, data)
        case 0xDB, 0xBA: try updateRecord(command.header, data)
        case 0xEB: try clearRecords(command.header)
        case 0xC7: return try commit(command.header)
        case 0xA7:
            guard command.header.isEmpty else { throw .length }
            guard !shadows.isEmpty else { throw .noChanges }
            shadows = [:]
            transactionInput = []
        case 0xC8: return try commitReader(data.isEmpty ? command.body : data)
        case 0xF6: return try fileCounters(command.header[0])
        default: throw .illegalCommand
        }
        return []
    }

    /// The content as this transaction sees it.
    private func content(_ number: UInt8) throws(DESFireRefusal) -> DESFireContent {
        if let shadow = shadows[number] { return shadow }
        return try file(number).content
    }

    private func range(_ header: [UInt8], in count: Int) throws(DESFireRefusal) -> Range<Int> {
        let (offset, length) = (number(header[1..<4]), number(header[4..<7]))
        guard offset < count else { throw .boundary }
        let end = length == 0 ? count : offset + length
        guard end <= count else { throw .boundary }
        return offset..<end
    }

    private mutating func readData(_ header: [UInt8]) throws(DESFireRefusal) -> [UInt8] {
        let file = try file(header[0])
        switch file.content {
        // What a transaction wrote into a backup file is not seen before the commit.
        case .standard(let data), .backup(let data):
            let range = try range(header, in: data.count)
            if file.messaging != nil, channel == nil {
                return Array(try mirrored(header[0], file, data, from: range.lowerBound)[range])
            }
            return Array(data[range])
        case .transactionMAC(let mac):
            let data = littleEndian(Int(mac.counter), 4) + mac.mac
            return Array(data[try range(header, in: data.count)])
        default: throw .parameter
        }
    }

    private mutating func writeData(_ header: [UInt8], _ data: [UInt8]) throws(DESFireRefusal) {
        guard data.count == number(header[4..<7]), !data.isEmpty else { throw .length }
        switch try content(header[0]) {
        case .standard(var content):
            content.replaceSubrange(try range(header, in: content.count), with: data)
            application.files[header[0]]?.content = .standard(content)
        case .backup(var content):
            content.replaceSubrange(try range(header, in: content.count), with: data)
            shadows[header[0]] = .backup(content)
            note(0x3D, header, data)
        default: throw .parameter
        }
    }

    private func getValue(_ header: [UInt8]) throws(DESFireRefusal) -> [UInt8] {
        guard case .value(let value) = try file(header[0]).content else { throw .parameter }
        return littleEndian(Int(value.value), 4)
    }

    private mutating func change(_ command: DESFireCardCommand, _ data: [UInt8]) throws(DESFireRefusal) {
        guard data.count == 4 else { throw .length }
        let amount = signed(data)
        guard amount >= 0 else { throw .parameter }
        guard case .value(var value) = try content(command.header[0]) else { throw .parameter }
        let isDebit = command.code == 0xDC
        if command.code == 0x1C {
            guard value.allowsLimitedCredit else { throw .permissionDenied }
            guard amount <= value.limit else { throw .boundary }
            value.limit -= amount
        }
        let (result, overflow) =
            isDebit ? value.value.subtractingReportingOverflow(amount) : value.value.addingReportingOverflow(amount)
        guard !overflow, (value.lower...value.upper).contains(result) else { throw .boundary }
        value.value = result
        if isDebit { value.taken = value.taken.addingReportingOverflow(amount).partialValue }
        shadows[command.header[0]] = .value(value)
        note(command.code, command.header, data)
    }

    private func readRecords(_ header: [UInt8]) throws(DESFireRefusal) -> [UInt8] {
        guard case .records(let records) = try file(header[0]).content else { throw .parameter }
        let (offset, count) = (number(header[1..<4]), number(header[4..<7]))
        let present = records.records.count
        guard offset < present else { throw .boundary }
        let end = present - offset
        guard count <= end else { throw .boundary }
        return records.records[(count == 0 ? 0 : end - count)..<end].flatMap { $0 }
    }

    private mutating func writeRecord(_ header: [UInt8], _ data: [UInt8]) throws(DESFireRefusal) {
        guard case .records(var records) = try content(header[0]) else { throw .parameter }
        let (offset, length) = (number(header[1..<4]), number(header[4..<7]))
        guard data.count == length, !data.isEmpty else { throw .length }
        guard offset + length <= records.size else { throw .boundary }
        if !records.isOpen {
            if records.records.count >= records.capacity {
                guard records.isCyclic else { throw .boundary }
                records.records.removeFirst()
            }
            records.records.append([UInt8](repeating: 0, count: records.size))
            records.isOpen = true
        }
        records.records[records.records.count - 1].replaceSubrange(offset..<offset + length, with: data)
        shadows[header[0]] = .records(records)
        note(0x3B, header, data)
    }

    private mutating func updateRecord(_ header: [UInt8], _ data: [UInt8]) throws(DESFireRefusal) {
        guard memory.model == .ev2 || memory.model == .ev3 else { throw .illegalCommand }
        guard case .records(var records) = try content(header[0]) else { throw .parameter }
        let (record, offset, length) = (number(header[1..<4]), number(header[4..<7]), number(header[7..<10]))
        guard data.count == length, !data.isEmpty else { throw .length }
        guard record < records.records.count, offset + length <= records.size else { throw .boundary }
        records.records[records.records.count - 1 - record].replaceSubrange(offset..<offset + length, with: data)
        shadows[header[0]] = .records(records)
        note(0xDB, header, data)
    }

    private mutating func clearRecords(_ header: [UInt8]) throws(DESFireRefusal) {
        guard header.count == 1 else { throw .length }
        // Clearing needs the right to read and write both.
        let file = try file(header[0])
        let right = file.right(.readWrite)
        guard right == 0x0E || (channel != nil && keyInUse == right) else { throw .authentication }
        guard case .records(var records) = try content(header[0]) else { throw .parameter }
        guard !records.isOpen else { throw .permissionDenied }
        records.records = []
        shadows[header[0]] = .records(records)
        note(0xEB, header, [])
    }

    // MARK: - Transactions

    private mutating func commit(_ header: [UInt8]) throws(DESFireRefusal) -> [UInt8] {
        guard header.count <= 1 else { throw .length }
        guard !shadows.isEmpty else { throw .noChanges }
        for (number, content) in shadows {
            let content = settled(content)
            application.files[number]?.content = content
        }
        shadows = [:]
        defer { transactionInput = [] }
        guard let number = application.files.first(where: { $0.value.content.typeCode == 5 })?.key,
            case .transactionMAC(var file)? = application.files[number]?.content
        else {
            guard header.first != 0x01 else { throw .parameter }
            return []
        }
        file.counter &+= 1
        var vector = [0x5A, 0x00, 0x01, 0x00, 0x80] + littleEndian(Int(file.counter), 4) + memory.uid
        while vector.count % 16 != 0 { vector.append(0) }
        let mac = (try? CMAC.authenticate(vector, key: file.key)).flatMap { try? CMAC.authenticate(transactionInput, key: $0) }
        file.mac = oddOctets(mac ?? [])
        application.files[number]?.content = .transactionMAC(file)
        return header.first == 0x01 ? littleEndian(Int(file.counter), 4) + file.mac : []
    }

    /// What the copy leaves behind for the next transaction.
    private func settled(_ content: DESFireContent) -> DESFireContent {
        switch content {
        case .value(var value):
            if value.taken > 0 { value.limit = value.taken }
            value.taken = 0
            return .value(value)
        case .records(var records):
            records.isOpen = false
            return .records(records)
        default: return content
        }
    }

    private mutating func commitReader(_ identifier: [UInt8]) throws(DESFireRefusal) -> [UInt8] {
        guard memory.model == .ev2 || memory.model == .ev3 else { throw .illegalCommand }
        guard identifier.count == 16, channel != nil else { throw .length }
        note(0xC8, [], identifier)
        return [UInt8](repeating: 0, count: 16)
    }

    private mutating func note(_ code: UInt8, _ header: [UInt8], _ data: [UInt8]) {
        for part in [[code] + header, data] where !part.isEmpty {
            transactionInput += part
            while transactionInput.count % 16 != 0 { transactionInput.append(0) }
        }
    }
}
