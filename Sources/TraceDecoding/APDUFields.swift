// SPDX-License-Identifier: MIT

public import GrammarLibrary
import GrammarRuntime

/// Single commands and status words by a set of grammars, without a trace around them.
public struct APDUFields: Sendable {
    /// By the grammars built in.
    public static let standard = APDUFields()

    private let index: GrammarIndex

    /// - Parameter grammars: nil for those built in.
    public init(_ grammars: GrammarLibrary? = nil) { index = grammars.map { GrammarIndex($0.program) } ?? .standard }

    /// The field that the octet at `offset` of a command belongs to, and the octets of that field.
    ///
    /// - Returns: its path; `iso7816.command` for octets that are no command.
    public func field(at offset: Int, of command: [UInt8]) -> (path: String, range: Range<Int>) {
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

    /// The octets of the first field with a path.
    public func place(of path: String, in command: [UInt8]) -> Range<Int>? {
        var decoder = Decoder(index.program)
        let outcome = decoder.push(request: command, entry: index.command)
        var reader = FieldReader(index.program)
        let fields = reader.fields(decoder, outcome, FieldReader.Cover(showsSecrets: true)).fields
        return fields.first { $0.path == path && $0.buffer == 0 && $0.bits > 0 }.map {
            $0.start / 8..<($0.start + $0.bits + 7) / 8
        }
    }

    /// What a command's field says beyond its digits: the instruction's name, how many bytes Lc and Le mean; else nothing.
    public func meaning(of path: String, in command: [UInt8]) -> String {
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
    public func status(_ word: UInt16) -> String { index.status.text(word) }

    /// The name of an interindustry instruction: `READ BINARY`.
    public func instruction(_ ins: UInt8) -> String { index.instruction(ins) ?? "command 00\(hex(ins))" }

    /// The name of a command of a DESFire card by its code: `SelectApplication`.
    public func nativeCommand(_ code: UInt8) -> String {
        index.nativeCommand(code) ?? "command 90\(hex(code))"
    }

    /// What a command is called, on one line; its length for octets that are no command.
    public func name(of octets: some Collection<UInt8>) -> String {
        var decoder = Decoder(index.program)
        let frame = Array(octets)
        let outcome = decoder.push(request: frame, entry: index.command)
        let isCut = decoder.annotations[outcome.annotations].contains { $0.severity == .error && $0.code != .failed }
        guard !isCut, let view = CommandView(decoder, index, isSealed: isProtected(class: frame.first)) else {
            return "\(frame.count) bytes that are no command"
        }
        return index.wrapped(decoder, outcome.exchange) ?? index.headline(view, exchange: outcome.exchange, in: .masterFile)
    }

    private func hex(_ octet: UInt8) -> String {
        let text = String(octet, radix: 16, uppercase: true)
        return text.count < 2 ? "0" + text : text
    }
}
