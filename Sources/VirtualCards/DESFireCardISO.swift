// SPDX-License-Identifier: MIT

import CardCrypto

extension DESFireCardMachine {
    // MARK: - The ISO/IEC 7816-4 commands

    mutating func answerISO(_ octets: [UInt8]) -> [UInt8] {
        do {
            let command = try CardCommand(parsing: octets)
            // A command of the other kind breaks an unfinished chain.
            pending = .none
            return try perform(command).octets
        } catch {
            return error.octets
        }
    }

    private mutating func perform(_ command: CardCommand) throws(StatusWord) -> CardReply {
        switch command.ins {
        case 0xA4: return try select(command)
        case 0xB0: return try readBinary(command)
        case 0xD6: return try updateBinary(command)
        case 0xB2 where memory.model != .ntag424: return try readRecords(command)
        case 0xE2 where memory.model != .ntag424: return try appendRecord(command)
        case 0x84 where memory.model.hasEV1Channel: return challenge(command)
        case 0x82 where memory.model.hasEV1Channel: return try externalAuthenticate(command)
        case 0x88 where memory.model.hasEV1Channel: return try internalAuthenticate(command)
        default: throw .instructionNotSupported
        }
    }

    private mutating func select(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.p2 == 0x00 || command.p2 == 0x0C else { throw .wrongParameters }
        let data = command.data
        switch command.p1 {
        case 0x04:
            if memory.model != .ntag424, data == Self.cardName {
                select(.card)
                return CardReply()
            }
            guard let index = memory.applications.firstIndex(where: { !$0.name.isEmpty && $0.name == data }) else {
                throw .fileNotFound
            }
            select(.application(index))
        case 0x00, 0x01, 0x02:
            guard data.count == 2 || data.isEmpty else { throw .wrongLength }
            let id = data.isEmpty ? 0x3F00 : UInt16(data[0]) << 8 | UInt16(data[1])
            if id == 0x3F00, command.p1 == 0x00 {
                select(memory.model == .ntag424 ? .application(0) : .card)
            } else if command.p1 != 0x02, let index = memory.applications.firstIndex(where: { $0.isoID == id }) {
                select(.application(index))
            } else if command.p1 != 0x01, selected != .card,
                let number = application.files.first(where: { $0.value.isoID == id })?.key
            {
                // Selecting a file leaves application and session as they are.
                isoFile = number
                image = nil
            } else {
                throw .fileNotFound
            }
        default: throw .wrongParameters
        }
        return CardReply()
    }

    /// The file by the short identifier in P1 or the one selected, and the offset.
    private mutating func place(_ command: CardCommand) throws(StatusWord) -> (UInt8, DESFireFile, Int) {
        let offset: Int
        if command.p1 & 0x80 != 0 {
            let short = UInt16(command.p1 & 0x1F)
            guard short != 0, let number = application.files.first(where: { $0.value.isoID.map { $0 & 0x1F } == short })?.key
            else {
                throw .fileNotFound
            }
            if isoFile != number { image = nil }
            isoFile = number
            offset = Int(command.p2)
        } else {
            offset = Int(command.p1) << 8 | Int(command.p2)
        }
        guard let number = isoFile, let file = application.files[number] else { throw .noCurrentFile }
        return (number, file, offset)
    }

    private func require(_ file: DESFireFile, _ use: DESFireRight) throws(StatusWord) {
        let rights = [file.right(use), file.right(.readWrite)]
        // ISO commands have no channel, so a key opens plain files alone.
        if rights.contains(0x0E) { return }
        guard channel != nil, file.options & 0x03 == 0, rights.contains(keyInUse) else { throw .securityNotSatisfied }
    }

    private mutating func readBinary(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.data.isEmpty, let ne = command.ne else { throw .wrongLength }
        let (number, file, offset) = try place(command)
        try require(file, .read)
        var data: [UInt8]
        switch file.content {
        case .standard(let content), .backup(let content): data = content
        default: throw .wrongFileStructure
        }
        guard offset < data.count else { throw .offsetOutside }
        if file.messaging != nil, channel == nil {
            do {
                data = try mirrored(number, file, data, from: offset)
            } catch {
                throw .securityNotSatisfied
            }
        }
        let end = command.wantsAll ? min(data.count, offset + ne) : offset + ne
        guard end <= data.count else { throw .wrongLength }
        return CardReply(Array(data[offset..<end]))
    }

    private mutating func updateBinary(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard !command.data.isEmpty else { throw .wrongLength }
        let (number, file, offset) = try place(command)
        try require(file, .write)
        image = nil
        let end = offset + command.data.count
        switch file.content {
        case .standard(var data):
            guard end <= data.count else { throw .notEnoughSpace }
            data.replaceSubrange(offset..<end, with: command.data)
            application.files[number]?.content = .standard(data)
        case .backup(var data):
            // Without a native commit an ISO command is a transaction of its own.
            guard end <= data.count else { throw .notEnoughSpace }
            data.replaceSubrange(offset..<end, with: command.data)
            application.files[number]?.content = .backup(data)
        default: throw .wrongFileStructure
        }
        return CardReply()
    }

    private mutating func readRecords(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard command.ne != nil, command.p2 & 0x07 == 0x04 || command.p2 & 0x07 == 0x05 else { throw .wrongParameters }
        guard let number = isoFile, let file = application.files[number] else { throw .noCurrentFile }
        try require(file, .read)
        guard case .records(let records) = file.content else { throw .wrongFileStructure }
        let first = max(1, Int(command.p1))
        guard first <= records.records.count else { throw .recordNotFound }
        let newestFirst = Array(records.records.reversed())
        let wanted = command.p2 & 0x07 == 0x04 ? newestFirst[(first - 1)..<first] : newestFirst[(first - 1)...]
        return CardReply(Array(wanted.flatMap { $0 }.prefix(65_536)))
    }

    private mutating func appendRecord(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard let number = isoFile, let file = application.files[number] else { throw .noCurrentFile }
        try require(file, .write)
        guard case .records(var records) = file.content else { throw .wrongFileStructure }
        guard (1...records.size).contains(command.data.count) else { throw .wrongLength }
        if records.records.count >= records.capacity {
            guard records.isCyclic else { throw .notEnoughSpace }
            records.records.removeFirst()
        }
        records.records.append(command.data + [UInt8](repeating: 0, count: records.size - command.data.count))
        application.files[number]?.content = .records(records)
        return CardReply()
    }

    // MARK: - Authentication

    private mutating func challenge(_ command: CardCommand) -> CardReply {
        endSession()
        isoChallenge = random.octets(command.ne == 8 ? 8 : 16)
        return CardReply(isoChallenge)
    }

    private func isoKey(_ command: CardCommand) throws(StatusWord) -> (number: UInt8, cipher: DESFireCipher, key: [UInt8]) {
        let number = command.p2 & 0x1F
        guard (selected == .card) == (command.p2 & 0x80 == 0) else { throw .wrongParameters }
        guard application.keys.indices.contains(Int(number)) else { throw .referencedDataNotFound }
        let key = application.keys[Int(number)]
        let algorithm: UInt8 =
            switch key.cipher {
            case .aes: 0x09
            case .threeKeyTripleDES: 0x04
            default: 0x02
            }
        guard command.p1 == 0 || command.p1 == algorithm else { throw .wrongParameters }
        let (cipher, octets) = key.inUse
        return (number, cipher, octets)
    }

    private mutating func externalAuthenticate(_ command: CardCommand) throws(StatusWord) -> CardReply {
        let (number, cipher, key) = try isoKey(command)
        let length = cipher.randomLength
        let challenge = isoChallenge
        isoChallenge = []
        guard challenge.count == length else { throw .conditionsNotSatisfied }
        guard command.data.count == 2 * length else { throw .wrongLength }
        guard let plain = try? cipher.blockCipher.decrypt(command.data, key: key), Array(plain[length...]) == challenge else {
            throw .authenticationFailed
        }
        isoReader = (number, Array(plain[..<length]))
        return CardReply()
    }

    private mutating func internalAuthenticate(_ command: CardCommand) throws(StatusWord) -> CardReply {
        let (number, cipher, key) = try isoKey(command)
        let length = cipher.randomLength
        guard let reader = isoReader, reader.key == number else { throw .conditionsNotSatisfied }
        isoReader = nil
        guard command.data.count == length else { throw .wrongLength }
        let own = random.octets(length)
        guard let answer = try? cipher.blockCipher.encrypt(own + command.data, key: key),
            let session = try? DESFireSessionKeys.ev1(cipher, rndA: reader.random, rndB: own)
        else { throw .conditionsNotSatisfied }
        channel = .ev1(cipher.blockCipher, key: session, vector: [UInt8](repeating: 0, count: cipher.blockLength))
        keyInUse = number
        return CardReply(answer)
    }

    /// The name of the card's own level.
    static let cardName: [UInt8] = [0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x00]
}
