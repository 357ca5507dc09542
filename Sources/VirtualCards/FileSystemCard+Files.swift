// SPDX-License-Identifier: MIT

import Octets

extension FileSystemCard {
    /// SELECT (ISO/IEC 7816-4 11.1.1).
    mutating func select(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.p2 & 0xF0 == 0, command.p2 & 0x03 == 0 || command.p1 == 0x04 else { throw .wrongParameters }
        guard let place = try place(command) else { throw .fileNotFound }
        current = place
        record = 0
        guard command.ne != nil else { return CardReply() }
        let parameters = files[place]?.controlParameters ?? files.dedicated[place.dedicated].controlParameters
        switch command.p2 & 0x0C {
        case 0x00: return CardReply(TLV.encode(0x6F, parameters))
        case 0x04: return CardReply(TLV.encode(0x62, parameters))
        case 0x08: return CardReply(TLV.encode(0x64, []))
        default: return CardReply()
        }
    }

    private func place(_ command: CardCommand) throws(StatusWord) -> FileTree.Place? {
        let data = command.data
        switch command.p1 {
        case 0x00:
            if data.isEmpty { return FileTree.Place(dedicated: 0) }
            return files.find(try Self.identifier(data), from: current.dedicated)
        case 0x01: return files.child(try Self.identifier(data), of: current.dedicated)
        case 0x02: return files.elementary(try Self.identifier(data), in: current.dedicated)
        case 0x03:
            guard data.isEmpty else { throw .lengthContradictsParameters }
            return files.dedicated[current.dedicated].parent.map { FileTree.Place(dedicated: $0) }
        case 0x04: return try named(data, occurrence: command.p2 & 0x03)
        case 0x08: return files.follow(try Self.path(data), from: 0)
        case 0x09: return files.follow(try Self.path(data), from: current.dedicated)
        default: throw .wrongParameters
        }
    }

    /// The first, last, next or previous application whose name begins with `name`.
    private func named(_ name: [UInt8], occurrence: UInt8) throws(StatusWord) -> FileTree.Place? {
        guard (1...16).contains(name.count) else { throw .lengthContradictsParameters }
        let found = files.named(name)
        let index: Int? =
            switch occurrence {
            case 0: found.first
            case 1: found.last
            case 2: found.first { $0 > current.dedicated }
            default: found.last { $0 < current.dedicated }
            }
        return index.map { FileTree.Place(dedicated: $0) }
    }

    private static func identifier(_ data: [UInt8]) throws(StatusWord) -> UInt16 {
        guard data.count == 2 else { throw .lengthContradictsParameters }
        return UInt16(data[0]) << 8 | UInt16(data[1])
    }

    private static func path(_ data: [UInt8]) throws(StatusWord) -> [UInt16] {
        guard !data.isEmpty, data.count % 2 == 0 else { throw .lengthContradictsParameters }
        return stride(from: 0, to: data.count, by: 2).map { UInt16(data[$0]) << 8 | UInt16(data[$0 + 1]) }
    }

    /// READ BINARY (11.3.3).
    mutating func readBinary(_ command: CardCommand) throws(StatusWord) -> CardReply {
        if command.ins == 0xB0, !command.data.isEmpty { throw .wrongLength }
        let access = try BinaryAccess(command)
        let (_, content) = try transparent(access.target, \.reading)
        return try access.read(content, command)
    }

    /// UPDATE BINARY (11.3.5): inside the file's size, which does not change.
    mutating func updateBinary(_ command: CardCommand) throws(StatusWord) -> CardReply {
        let access = try BinaryAccess(command)
        guard !access.written.isEmpty, command.ne == nil else { throw .wrongLength }
        let (index, content) = try transparent(access.target, \.updating)
        guard access.offset < content.count else { throw .offsetOutside }
        guard access.written.count <= content.count - access.offset else { throw .notEnoughSpace }
        var changed = content
        changed.replaceSubrange(access.offset..<access.offset + access.written.count, with: access.written)
        files.dedicated[current.dedicated].files[index].content = .transparent(changed)
        return CardReply()
    }

    /// READ RECORD (11.4.3): one by number, from one to the last, or first, last, next, previous.
    mutating func readRecord(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard let ne = command.ne, command.data.isEmpty else { throw .wrongLength }
        let short = command.p2 >> 3
        guard short != 31 else { throw .wrongParameters }
        let index = try elementary(short == 0 ? .current : .shortIdentifier(short), \.reading)
        guard case .records(let records) = files.dedicated[current.dedicated].files[index].content else {
            throw .wrongFileStructure
        }
        let number = try recordNumber(command, count: records.count)
        guard (1...max(1, records.count)).contains(number), !records.isEmpty else { throw .recordNotFound }
        if command.p2 & 0x07 == 0x05 { return CardReply(records[(number - 1)...].flatMap { $0 }) }
        if command.p2 & 0x07 < 4 { record = number }
        let content = records[number - 1]
        guard command.wantsAll || ne == content.count else { throw .rightLength(content.count) }
        return CardReply(content)
    }

    private func recordNumber(_ command: CardCommand, count: Int) throws(StatusWord) -> Int {
        switch command.p2 & 0x07 {
        case 0x04, 0x05: return command.p1 == 0 ? record : Int(command.p1)
        case 0x00...0x03:
            // Records have no identifiers here.
            guard command.p1 == 0 else { throw .recordNotFound }
            switch command.p2 & 0x03 {
            case 0: return 1
            case 1: return count
            case 2: return record + 1
            default: return record == 0 ? count : record - 1
            }
        default: throw .wrongParameters
        }
    }

    private mutating func transparent(
        _ target: BinaryAccess.Target, _ condition: KeyPath<ElementaryFile, ElementaryFile.Condition>
    ) throws(StatusWord) -> (Int, [UInt8]) {
        let index = try elementary(target, condition)
        guard case .transparent(let content) = files.dedicated[current.dedicated].files[index].content else {
            throw .wrongFileStructure
        }
        return (index, content)
    }

    /// The file that is meant, in the current dedicated file; it becomes the current one.
    private mutating func elementary(
        _ target: BinaryAccess.Target, _ condition: KeyPath<ElementaryFile, ElementaryFile.Condition>
    ) throws(StatusWord) -> Int {
        let found: FileTree.Place?
        switch target {
        case .current:
            guard current.elementary != nil else { throw .noCurrentFile }
            found = current
        case .shortIdentifier(let identifier): found = files.elementary(short: identifier, in: current.dedicated)
        case .identifier(let identifier): found = files.elementary(identifier, in: current.dedicated)
        }
        guard let found, let index = found.elementary else { throw .fileNotFound }
        if found != current { record = 0 }
        current = found
        switch files.dedicated[found.dedicated].files[index][keyPath: condition] {
        case .always: return index
        case .afterVerify where pin.isVerified: return index
        default: throw .securityNotSatisfied
        }
    }
}

extension FileTree {
    /// The files that ``FileSystemCard`` describes.
    static func specimen(seed: UInt64) -> FileTree {
        var random = CardRandom(seed: seed, use: "filesystem content")
        let name: [UInt8] = [0xF0, 0x54, 0x41, 0x50, 0x44, 0x45, 0x43, 0x4B]
        let first = name + [0x01]
        let second = name + [0x02]
        let directory =
            TLV.encode(0x61, TLV.encode(0x4F, first) + TLV.encode(0x50, Array("First".utf8)))
            + TLV.encode(0x61, TLV.encode(0x4F, second) + TLV.encode(0x50, Array("Second".utf8)))
        let master = DedicatedFile(
            identifier: 0x3F00,
            files: [
                ElementaryFile(identifier: 0x2F00, shortIdentifier: 0x1E, content: .transparent(directory)),
                ElementaryFile(identifier: 0x0001, shortIdentifier: 1, content: .transparent(random.octets(300))),
                ElementaryFile(identifier: 0x0002, shortIdentifier: 2, content: .transparent(random.octets(48 << 10))),
                ElementaryFile(
                    identifier: 0x0003, shortIdentifier: 3, content: .transparent(random.octets(BinaryAccess.longestAnswer))),
                ElementaryFile(identifier: 0x0004, shortIdentifier: 4, content: .transparent([])),
            ]
        )
        let records = ["one", "the second", "third of five", "4", "and the last one"].map { Array($0.utf8) }
        let application = DedicatedFile(
            identifier: 0x5000, name: first, parent: 0,
            files: [
                ElementaryFile(
                    identifier: 0x0101, shortIdentifier: 1, content: .transparent(Array("A file that everybody may read.".utf8))),
                ElementaryFile(
                    identifier: 0x0102, shortIdentifier: 2, content: .transparent([UInt8](repeating: 0, count: 256)),
                    updating: .afterVerify),
                ElementaryFile(
                    identifier: 0x0103, shortIdentifier: 3, content: .transparent(Array("A file that needs the PIN.".utf8)),
                    reading: .afterVerify),
                ElementaryFile(identifier: 0x0104, shortIdentifier: 4, content: .records(records)),
            ]
        )
        let other = DedicatedFile(
            identifier: 0x5100, name: second, parent: 0,
            files: [
                ElementaryFile(identifier: 0x0101, shortIdentifier: 1, content: .transparent(Array("Another application.".utf8)))
            ]
        )
        return FileTree(dedicated: [master, application, other])
    }
}
