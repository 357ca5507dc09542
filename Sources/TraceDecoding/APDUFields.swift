// SPDX-License-Identifier: MIT

import Octets
import TagTransport

/// The fields of commands and responses by path and place (ISO/IEC 7816-4 5.1, ISO/IEC 7816-3 12.1.3).
public enum APDUFields {
    /// The fields of a command in the order of its octets. Values of places in `sealed` are left out.
    static func fields(of command: CommandAPDU, sealed: [Range<Int>]) -> [DecodedField] {
        let octets = command.octets
        return layout(of: octets).map { part in
            let value = Array(octets[part.range])
            let isSealed = sealed.contains { $0.overlaps(part.range) }
            return DecodedField(
                path: "iso7816.command.\(part.name)",
                value: isSealed ? .octets([]) : part.name == "data" ? .octets(value) : .number(value.reduce(0) { $0 << 8 | UInt64($1) }),
                text: isSealed ? "sealed, \(part.range.count) bytes" : text(part.name, value, command), buffer: 0,
                start: part.range.lowerBound * 8, bits: part.range.count * 8
            )
        }
    }

    static func fields(of response: ResponseAPDU) -> [DecodedField] {
        var fields: [DecodedField] = []
        let count = response.data.count
        if count > 0 {
            fields.append(
                DecodedField(
                    path: "iso7816.response.data", value: .octets(Array(response.data)), text: "\(count) bytes", buffer: 0, start: 0,
                    bits: count * 8
                )
            )
        }
        fields.append(
            DecodedField(
                path: "iso7816.response.sw", value: .number(UInt64(response.statusWord)), text: StatusWord.text(response.statusWord),
                buffer: 0, start: count * 8, bits: 16
            )
        )
        return fields
    }

    /// The field that the octet at `offset` of a command belongs to, and the octets of that field.
    ///
    /// - Returns: its path; `iso7816.command` for octets that are no command.
    public static func field(at offset: Int, of command: [UInt8]) -> (path: String, range: Range<Int>) {
        for part in layout(of: command) where part.range.contains(offset) { return ("iso7816.command.\(part.name)", part.range) }
        return ("iso7816.command", command.indices)
    }

    private struct Part {
        var name: String
        var range: Range<Int>
    }

    private static func layout(of octets: [UInt8]) -> [Part] {
        guard let command = try? CommandAPDU(bytes: octets) else { return [] }
        var parts = [
            Part(name: "cla", range: 0..<1), Part(name: "ins", range: 1..<2), Part(name: "p1", range: 2..<3),
            Part(name: "p2", range: 3..<4),
        ]
        var place = 4
        let isExtended = command.form == .extended
        if let data = command.data {
            let width = isExtended ? 3 : 1
            parts.append(Part(name: "lc", range: place..<place + width))
            place += width
            parts.append(Part(name: "data", range: place..<place + data.count))
            place += data.count
        }
        if place < octets.count { parts.append(Part(name: "le", range: place..<octets.count)) }
        return parts
    }

    private static func text(_ name: String, _ value: [UInt8], _ command: CommandAPDU) -> String {
        switch name {
        case "ins": CommandName.instruction(cla: command.cla, ins: command.ins)
        case "lc": "\(command.data?.count ?? 0) bytes"
        case "le": "\(command.ne ?? 0) bytes"
        case "data": "\(value.count) bytes"
        default: Hex.encode(value)
        }
    }
}

extension APDUFields {
    /// What a command's field says beyond its digits: the instruction's name, how many bytes Lc and Le mean; else nothing.
    public static func meaning(of path: String, in command: [UInt8]) -> String {
        guard ["ins", "lc", "le"].contains(path.split(separator: ".").last ?? ""), let command = try? CommandAPDU(bytes: command) else { return "" }
        return fields(of: command, sealed: []).first { $0.path == path }?.text ?? ""
    }

    /// `6A82 not found`.
    public static func status(_ word: UInt16) -> String { StatusWord.text(word) }

    /// The name of an interindustry instruction: `READ BINARY`.
    public static func instruction(_ ins: UInt8) -> String { CommandName.instruction(cla: 0, ins: ins) }

    /// What a command is called, on one line; its length for octets that are no command.
    public static func name(of octets: some Collection<UInt8>) -> String {
        guard let command = try? CommandAPDU(bytes: octets) else { return "\(octets.count) bytes that are no command" }
        return CommandName.summary(command, isProtected: command.cla & 0xEC == 0x0C)
    }
}
