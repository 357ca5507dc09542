// SPDX-License-Identifier: MIT

import GrammarRuntime

/// Single commands and status words by the grammars built in, without a trace around them.
public enum APDUFields {
    /// The field that the octet at `offset` of a command belongs to, and the octets of that field.
    ///
    /// - Returns: its path; `iso7816.command` for octets that are no command.
    public static func field(at offset: Int, of command: [UInt8]) -> (path: String, range: Range<Int>) {
        let index = GrammarIndex.standard
        var decoder = Decoder(index.program)
        let outcome = decoder.push(request: command, entry: index.command)
        var reader = FieldReader(index.program)
        let isWhole = CommandView(decoder, index, isSealed: false) != nil
        if isWhole {
            let fields = reader.fields(decoder, outcome, FieldReader.Cover(showsSecrets: true)).fields
            let own = fields.filter { $0.buffer == 0 && $0.depth == 0 && $0.bits > 0 }
            for field in own where (field.start / 8..<(field.start + field.bits + 7) / 8).contains(offset) {
                return (field.path, field.start / 8..<(field.start + field.bits + 7) / 8)
            }
        }
        return ("iso7816.command", command.indices)
    }

    /// What a command's field says beyond its digits: the instruction's name, how many bytes Lc and Le mean; else nothing.
    public static func meaning(of path: String, in command: [UInt8]) -> String {
        let index = GrammarIndex.standard
        var decoder = Decoder(index.program)
        _ = decoder.push(request: command, entry: index.command)
        guard let view = CommandView(decoder, index, isSealed: false) else { return "" }
        switch path {
        case "iso7816.command.ins": return index.instruction(view.ins) ?? ""
        case "iso7816.command.lc": return decoder.span(index.commandFields.data) == nil ? "" : "\(view.data.count) bytes"
        case "iso7816.command.le": return view.ne.map { "\($0) bytes" } ?? ""
        default: return ""
        }
    }

    /// `6A82 not found`.
    public static func status(_ word: UInt16) -> String { GrammarIndex.standard.status.text(word) }

    /// The name of an interindustry instruction: `READ BINARY`.
    public static func instruction(_ ins: UInt8) -> String { GrammarIndex.standard.instruction(ins) ?? "command 00\(hex(ins))" }

    /// What a command is called, on one line; its length for octets that are no command.
    public static func name(of octets: some Collection<UInt8>) -> String {
        let index = GrammarIndex.standard
        var decoder = Decoder(index.program)
        let frame = Array(octets)
        let outcome = decoder.push(request: frame, entry: index.command)
        let isCut = decoder.annotations[outcome.annotations].contains { $0.severity == .error && $0.code != .failed }
        guard !isCut, let view = CommandView(decoder, index, isSealed: isProtected(class: frame.first)) else {
            return "\(frame.count) bytes that are no command"
        }
        return index.wrapped(decoder, outcome.exchange) ?? index.headline(view, exchange: outcome.exchange, in: .masterFile)
    }

    private static func hex(_ octet: UInt8) -> String {
        let text = String(octet, radix: 16, uppercase: true)
        return text.count < 2 ? "0" + text : text
    }
}
