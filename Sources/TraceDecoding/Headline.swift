// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets

/// Commands and answers on one line, from the grammars' names and the fields that people look for.
extension GrammarIndex {
    /// `READ BINARY 18 at 4`, `SELECT EF.COM`; under secure messaging that was not opened only what the header tells.
    ///
    /// - Parameters:
    ///   - exchange: the number that the decoder gave the command.
    ///   - place: whose files identifiers name.
    func headline(_ command: CommandView, exchange: Int?, in place: FileNames.Place) -> String {
        let info = exchange.flatMap { program.exchanges.indices.contains($0) ? program.exchanges[$0] : nil }
        if command.cla == 0xFF {
            guard let info, info.grammar != "iso7816" else { return "reader command \(Hex.encode([command.ins]))" }
            return info.label
        }
        if let info, info.grammar != "iso7816" {
            // A grammar that says more of an instruction's fields leaves its name and details as they are.
            guard let name = instruction(command.ins), info.label.hasPrefix(name + " ") else { return label(info) }
            return name + detail(command, in: place)
        }
        // In a proprietary class an instruction means what its application says (ISO/IEC 7816-4 5.4.1).
        if command.cla > 0x80 || (command.cla == 0x80 && info == nil) {
            return "command \(Hex.encode([command.cla, command.ins]))"
        }
        let name = info.map(label) ?? instruction(command.ins) ?? "command \(Hex.encode([command.cla, command.ins]))"
        return name + detail(command, in: place)
    }

    /// `DESFire GetVersion`: the label of an exchange that gives the instruction a name of its own; nil for others.
    func wrapped(_ decoder: Decoder, _ exchange: Int?) -> String? {
        guard let exchange, program.exchanges.indices.contains(exchange), let ins = decoder.span(commandFields.ins),
            decoder.spans[ins].flags.contains(.refined), let text = decoder.text(of: ins)
        else { return nil }
        let label = program.exchanges[exchange].label
        return label.hasSuffix(text) ? nil : "\(label.prefix { $0 != "," }) \(text)"
    }

    /// `ReadData, sealed`: a DESFire command whose channel was not opened. Its code travels in clear.
    func sealedName(_ code: UInt8, _ exchange: Int?) -> String? {
        guard let exchange, program.exchanges.indices.contains(exchange), program.exchanges[exchange].grammar == "desfire",
            program.exchanges[exchange].name == "NATIVE"
        else { return nil }
        return nativeCommand(code).map { "\($0), sealed" }
    }

    /// `DESFire GetVersion`: a message that is no APDU, by the first of its fields whose values have names.
    func named(_ decoder: Decoder, _ reading: CardReading.Reading, isRequest: Bool) -> String? {
        guard let number = reading.exchange, program.exchanges.indices.contains(number) else { return nil }
        let info = program.exchanges[number]
        guard info.grammar != "iso14443", info.grammar != "iso7816" else { return nil }
        let root = isRequest ? info.request : info.response
        guard program.roots.indices.contains(root),
            let start = reading.outcome.spans.last(where: { Int(decoder.spans[$0].node) == program.roots[root].node }),
            let field = reading.outcome.spans.first(where: {
                $0 > start && program.nodes[Int(decoder.spans[$0].node)].enumeration >= 0
            }),
            let text = decoder.text(of: field)
        else { return nil }
        return isRequest ? "\(info.label) \(text)" : "\(Hex.encode(decoder.octets(of: field))) \(text)"
    }

    /// The name of an instruction: `READ BINARY`.
    func instruction(_ ins: UInt8) -> String? { instructions[Int(ins)] }

    private func label(_ info: ExchangeInfo) -> String {
        info.grammar == "iso7816" ? Self.short(info.label) : info.label.isEmpty ? info.name : info.label
    }

    private func detail(_ command: CommandView, in place: FileNames.Place) -> String {
        let asked = command.isSealed ? nil : command.ne
        let length = asked.map { "\(grouped($0)) " } ?? ""
        switch command.ins {
        case 0xA4: return command.isSealed ? "" : " \(selected(command, in: place))"
        case 0xB0 where command.p1 & 0x80 == 0: return " \(length)at \(command.offset)"
        case 0xB0: return " \(length)at \(command.p2) of SFI \(Hex.encode([command.p1 & 0x1F]))"
        case 0xB1: return command.isSealed ? "" : oddOffset(command).map { " at \($0)" } ?? ""
        case 0xD6 where command.p1 & 0x80 == 0:
            return command.isSealed ? " at \(command.offset)" : " \(grouped(command.data.count)) at \(command.offset)"
        case 0xB2: return " \(command.p1)"
        case 0x20 where command.data.isEmpty && !command.isSealed: return ", tries of \(Hex.encode([command.p2]))"
        case 0x20, 0x24, 0x2C: return " \(Hex.encode([command.p2]))"
        case 0xC0: return asked.map { " \(grouped($0))" } ?? ""
        case 0xCA, 0xCB, 0xDA: return " \(Hex.encode([command.p1, command.p2]))"
        default: return ""
        }
    }

    /// What a SELECT asks for: a name that a grammar knows, else the identifier.
    private func selected(_ command: CommandView, in place: FileNames.Place) -> String {
        if command.p1 == 0x04 {
            if command.data.isEmpty { return "default application" }
            return files.application(command.data).text ?? Hex.encode(command.data)
        }
        if command.data.isEmpty { return "MF" }
        guard command.data.count == 2 else { return Hex.encode(command.data) }
        let identifier = UInt16(command.data[0]) << 8 | UInt16(command.data[1])
        return files.file(identifier, in: place)?.text ?? "file \(Hex.encode(command.data))"
    }

    /// The offset in DO 54 of an odd READ BINARY (ISO/IEC 7816-4 11.3.3).
    func oddOffset(_ command: CommandView) -> Int? {
        guard let object = try? TLV.first(in: command.data[...]), object.tag == 0x54, object.value.count <= 4 else { return nil }
        return object.value.reduce(0) { $0 << 8 | Int($1) }
    }

    /// What the answer column says: the status word, or the data when that is what was asked for.
    func answer(data: [UInt8], status word: UInt16, to ins: UInt8?) -> String {
        if !Self.isSuccess(word) || data.isEmpty { return status.text(word) }
        if ins == 0x84 || data.count > 4 { return "\(grouped(data.count)) bytes" }
        return Hex.encode(data)
    }

    /// Whether the card did what was asked, a warning included.
    static func isSuccess(_ value: UInt16) -> Bool {
        value == 0x9000 || value >> 8 == 0x61 || value >> 8 == 0x9F || value == 0x9100 || value == 0x91AF || value == 0x9190
            || value >> 8 == 0x62
    }
}
