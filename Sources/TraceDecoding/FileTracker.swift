// SPDX-License-Identifier: MIT

import Octets
import TagTransport

/// Which file is selected and how much of it has been read, as far as the messages tell.
struct FileTracker {
    /// The selected file's name; nil when nobody has said.
    private(set) var name: String?
    private(set) var application = CommandName.Application.unknown
    /// Octets in the file, once its first data object's header was read.
    private var length: Int?
    private var covered = 0

    mutating func reset() { self = FileTracker() }

    /// Takes in one exchange, opened where it was protected.
    ///
    /// - Returns: the text for the answer when this exchange has read the file to its end: `EF.COM whole`.
    mutating func push(command: CommandAPDU, response: ResponseAPDU) -> String? {
        switch command.ins {
        case 0xA4:
            guard response.isSuccess else { return nil }
            let (before, selected) = (self, command)
            self = FileTracker()
            application = before.application
            application.select(selected)
            let data = command.data.map { Array($0) } ?? []
            if command.p1 != 0x04, data.count == 2 { name = CommandName.fileName(UInt16(data[0]) << 8 | UInt16(data[1]), in: application) }
            return nil
        case 0xB0 where command.p1 & 0x80 == 0:
            return read(at: Int(command.p1) << 8 | Int(command.p2), Array(response.data))
        case 0xB1:
            guard let offset = CommandName.oddOffset(command), let object = try? TLV.first(in: Array(response.data)[...]) else { return nil }
            return read(at: offset, Array(object.value))
        default:
            return nil
        }
    }

    private mutating func read(at offset: Int, _ data: [UInt8]) -> String? {
        guard !data.isEmpty else { return nil }
        if offset == 0, length == nil, let header = try? TLV.header(in: data[...]) { length = header.headerLength + header.valueLength }
        guard offset <= covered else { return nil }
        let before = covered
        covered = max(covered, offset + data.count)
        guard let name, let length, before < length, covered >= length else { return nil }
        return "\(name) whole"
    }
}
