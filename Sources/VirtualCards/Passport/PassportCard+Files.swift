// SPDX-License-Identifier: MIT

import Octets

extension PassportCard {
    /// SELECT: the application by its whole name; a file of it by identifier; the master file, but not out of a session.
    mutating func select(_ command: CardCommand, isSecured: Bool) throws(StatusWord) -> CardReply {
        guard command.p2 & 0xF3 == 0 else { throw .wrongParameters }
        switch (command.p1, command.data) {
        case (0x04, PassportFiles.application):
            isInApplication = true
            current = nil
            return CardReply(command.p2 == 0 && command.ne != nil ? TLV.encode(0x6F, TLV.encode(0x84, command.data)) : [])
        case (0x04, _): throw .fileNotFound
        case (0x00, []), (0x00, [0x3F, 0x00]):
            guard !isSecured || !isInApplication else { throw .fileNotFound }
            if configuration.quirks.contains(.noMasterFile) { throw command.data.isEmpty ? .wrongParameters : .wrongLength }
            isInApplication = false
            current = nil
            return CardReply()
        case (0x00, _), (0x02, _):
            guard command.data.count == 2 else { throw .lengthContradictsParameters }
            let identifier = UInt16(command.data[0]) << 8 | UInt16(command.data[1])
            let content = try file(identifier, isSecured: isSecured)
            current = identifier
            guard command.p2 & 0x0C != 0x0C, command.ne != nil else { return CardReply() }
            let parameters = ElementaryFile(identifier: identifier, content: .transparent(content)).controlParameters
            return CardReply(TLV.encode(command.p2 == 0 ? 0x6F : 0x62, parameters))
        default: throw .wrongParameters
        }
    }

    private func file(_ identifier: UInt16, isSecured: Bool) throws(StatusWord) -> [UInt8] {
        guard isInApplication else {
            guard let content = files.masterFile[identifier] else { throw .fileNotFound }
            guard isSecured || identifier != PassportFiles.cardSecurity else { throw .securityNotSatisfied }
            return content
        }
        guard isSecured else { throw .securityNotSatisfied }
        if identifier == PassportFiles.authorities, let terminalAuthentication {
            return terminalAuthentication.fileOfAuthorities()
        }
        guard let content = files[identifier] else { throw .fileNotFound }
        // Fingers and irises are for terminals that proved themselves (9303-10 4.7.3, 4.7.4).
        if identifier == 0x0103 || identifier == 0x0104 {
            let group = Int(identifier & 0xFF)
            guard terminalAuthentication?.mayRead(dataGroup: group) == true else { throw .securityNotSatisfied }
        }
        return content
    }

    mutating func readBinary(_ command: CardCommand, isSecured: Bool, room: Int) throws(Refusal) -> CardReply {
        if let refusal = tooMuch(command) { throw refusal }
        do throws(StatusWord) {
            let access = try BinaryAccess(command)
            if !access.isOdd, !command.data.isEmpty { throw .wrongLength }
            let identifier: UInt16
            switch access.target {
            // Short identifiers are the low octet of the long ones (9303-10 4.3).
            case .shortIdentifier(let short): identifier = 0x0100 | UInt16(short)
            case .identifier(let long): identifier = long
            case .current:
                guard isSecured || !isInApplication else { throw .securityNotSatisfied }
                guard let current else { throw .noCurrentFile }
                identifier = current
            }
            let content = try file(identifier, isSecured: isSecured)
            current = identifier
            let reply = try access.read(content, command, limit: min(room, longestRead))
            if !isStrict || !reachesPastEnd(access, command, content.count) { return reply }
        } catch {
            throw Refusal(status: error, kind: isStrict && error == .offsetOutside ? .endsSession : .secured)
        }
        throw Refusal(status: .offsetOutside, kind: .endsSession)
    }

    /// What a chip with such a quirk says to a read of more than it can give at once.
    private func tooMuch(_ command: CardCommand) -> Refusal? {
        let wanted = command.ne ?? 0
        guard wanted > longestRead else { return nil }
        if configuration.quirks.contains(.refusesLe) { return Refusal(status: .wrongLength, kind: .bare) }
        if configuration.quirks.contains(.tellsLe) { return Refusal(status: .rightLength(longestRead), kind: .bare) }
        return nil
    }

    private func reachesPastEnd(_ access: BinaryAccess, _ command: CardCommand, _ count: Int) -> Bool {
        guard let ne = command.ne, !access.isOdd else { return false }
        return ne > count - access.offset
    }
}
