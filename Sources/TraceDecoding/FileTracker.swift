// SPDX-License-Identifier: MIT

import Octets

/// Which file is selected and how much of it has been read, as far as the messages tell.
struct FileTracker: Sendable {
    /// A file whose last octet was read.
    struct Whole {
        var text: String
        var grammar: String
        var name: String
        var octets: [UInt8]
        var exchanges: [UInt64]
    }

    /// What was selected last that has files.
    private(set) var place = FileNames.Place.masterFile
    private var file: (text: String, grammar: String, name: String)?
    /// Octets in the file, once its first data object's header was read.
    private var length: Int?
    private var octets: [UInt8] = []
    private var exchanges: [UInt64] = []

    /// What is kept of one file at most.
    private static let longest = 1 << 20

    /// The selected file's name; nil when nobody has said.
    var name: String? { file?.text }
    /// The kind of message that the selected file is, `emrtd.Dg1`; nil when nobody has said.
    var message: String? { file.map { Self.message($0.grammar, $0.name) } }

    static func message(_ grammar: String, _ name: String) -> String {
        "\(grammar).\(name.prefix(1).uppercased())\(name.dropFirst())"
    }

    mutating func reset() { self = FileTracker() }

    /// Takes in one exchange, opened where it was protected.
    ///
    /// - Returns: the file when this exchange has read it to its end.
    mutating func push(_ command: CommandView, data: [UInt8], status: UInt16, packet: UInt64?, _ index: GrammarIndex) -> Whole? {
        switch command.ins {
        case 0xA4:
            guard GrammarIndex.isSuccess(status) else { return nil }
            let before = place
            self = FileTracker()
            place = before
            if command.p1 == 0x04 {
                place = index.files.application(command.data).place
            } else if command.data.isEmpty || command.data == [0x3F, 0x00] {
                place = .masterFile
            }
            if command.p1 != 0x04, command.data.count == 2 {
                file = index.files.file(UInt16(command.data[0]) << 8 | UInt16(command.data[1]), in: place)
            }
            return nil
        case 0xB0 where command.p1 & 0x80 == 0: return read(at: command.offset, data, packet)
        case 0xB1:
            guard let offset = index.oddOffset(command), let object = try? TLV.first(in: data[...]) else { return nil }
            return read(at: offset, Array(object.value), packet)
        default: return nil
        }
    }

    private mutating func read(at offset: Int, _ data: [UInt8], _ packet: UInt64?) -> Whole? {
        guard !data.isEmpty else { return nil }
        if offset == 0, length == nil, let header = try? TLV.header(in: data[...]) {
            length = header.headerLength + header.valueLength
        }
        let before = octets.count
        guard offset <= before, before < Self.longest else { return nil }
        let new = data.dropFirst(before - offset)
        octets += new.prefix(Self.longest - before)
        if let packet, !new.isEmpty { exchanges.append(packet) }
        guard let file, let length, before < length, octets.count >= length else { return nil }
        return Whole(
            text: file.text, grammar: file.grammar, name: file.name, octets: Array(octets.prefix(length)), exchanges: exchanges)
    }
}
