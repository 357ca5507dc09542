// SPDX-License-Identifier: MIT

import GrammarLibrary
import GrammarRuntime

/// What is looked up in a program once: kinds of message, fields that summaries speak of, tables of names.
package final class GrammarIndex: Sendable {
    package let program: Program
    let status: StatusText
    let files: FileNames
    /// The kinds of message of an APDU row; -1 when the grammars have none.
    package let command: Int
    package let response: Int
    let answerToReset: Int
    let commandFields: CommandFields
    let responseData: Int
    /// The data of the answer that a response carries after everything around it was undone.
    let carriedData: Int
    let statusWord: Int
    let nativeFields: NativeFields
    /// The secrets that grammars ask for: those of layers, which hold from an exchange on, and the others.
    let layerSecrets: [String]
    let otherSecrets: [String]
    /// Checks that compare octets of a message with what a transform makes from a key.
    package let authentications: Set<Int32>
    /// The names of instructions, without what is for the tree.
    let instructions: [String?]
    /// The kinds of message that hold a secret.
    private let secretMessages: Set<Int>
    /// The kinds of message of the frames that a dissector is named for.
    private let frames: [String: (request: Int, response: Int)]

    /// Slots of ISO/IEC 7816-3 12.1.
    struct CommandFields: Sendable {
        var cla = -1
        var ins = -1
        var p1 = -1
        var p2 = -1
        var data = -1
        var le = -1
    }

    /// What is known of DESFire's commands once everything around them was undone; -1 when the grammars have none.
    struct NativeFields: Sendable {
        var code = -1
        var parameters = -1
        /// The variable that holds the application selected.
        var application = -1
    }

    package static let standard = GrammarIndex(GrammarLibrary.standard.program)

    init(_ program: Program) {
        self.program = program
        status = StatusText(program)
        files = FileNames(program)
        let command = program.entry(named: "iso7816.Command") ?? -1
        let response = program.entry(named: "iso7816.Response") ?? -1
        self.command = command
        self.response = response
        answerToReset = program.entry(named: "atr.Atr") ?? -1
        func slot(_ name: String, _ root: Int) -> Int { root >= 0 ? program.slot(name, in: root) ?? -1 : -1 }
        commandFields = CommandFields(
            cla: slot("cla", command), ins: slot("ins", command), p1: slot("p1", command), p2: slot("p2", command),
            data: slot("data", command), le: slot("le", command)
        )
        responseData = slot("data", response)
        carriedData = slot("data", program.entry(named: "desfire.Answer") ?? -1)
        statusWord = slot("sw", response)
        let call = program.entry(named: "desfire.Call") ?? -1
        nativeFields = NativeFields(
            code: slot("code", call), parameters: slot("parameters", call),
            application: program.variables.firstIndex { variable in
                program.strings[variable.grammar] == "desfire" && program.strings[variable.name] == "application"
            } ?? -1)
        var ofLayers: [String] = []
        var others: [String] = []
        for (number, variable) in program.variables.enumerated() where variable.isGiven {
            let name = "\(program.strings[variable.grammar]).\(program.strings[variable.name])"
            if program.layers.contains(where: { $0.parameters.contains(number) }) {
                ofLayers.append(name)
            } else {
                others.append(name)
            }
        }
        layerSecrets = ofLayers
        otherSecrets = others
        let names = program.enumeration("iso7816.Ins")
        instructions = (0..<256).map { value in
            names.flatMap { names in names.find(UInt64(value)).map { Self.short(names.entries[$0].text) } }
        }
        var frames: [String: (request: Int, response: Int)] = [:]
        for grammar in program.grammars where grammar.name != "iso7816" {
            guard let request = program.entry(named: "\(grammar.name).Command"),
                let response = program.entry(named: "\(grammar.name).Response")
            else { continue }
            frames[grammar.name] = (request, response)
        }
        self.frames = frames
        var tops: Set<Int> = []
        for number in program.nodes.indices where program.nodes[number].flags.contains(.secret) {
            var top = number
            while program.nodes[top].parent >= 0 { top = Int(program.nodes[top].parent) }
            tops.insert(top)
        }
        secretMessages = Set(program.roots.indices.filter { tops.contains(Int(program.roots[$0].node)) })
        authentications = Set(
            program.checks.indices.filter { program.isAuthentication($0) }.map { Int32(truncatingIfNeeded: $0) })
    }

    /// Whether one of the layers is a channel of messages that APDUs or blocks carry.
    func hasChannel(_ layers: [Int]) -> Bool {
        layers.contains { program.layers.indices.contains($0) && program.layers[$0].grammar == "desfire" }
    }

    /// The kinds of message of the frames that a dissector is named for; nil when no grammar is about them.
    func frame(_ dissector: String) -> (request: Int, response: Int)? {
        frames[dissector]
    }

    /// The name of a command of a DESFire card: `SelectApplication`.
    func nativeCommand(_ code: UInt8) -> String? {
        guard let codes = program.enumeration("desfire.Code"), let found = codes.find(UInt64(code)) else { return nil }
        return codes.entries[found].text
    }

    /// Whether a field that was read holds a secret.
    func hasSecret(_ decoder: Decoder, _ outcome: Decoder.Outcome) -> Bool {
        outcome.spans.contains { program.nodes[Int(decoder.spans[$0].node)].flags.contains(.secret) }
    }

    /// Whether what `command` reads is part of a file that holds a secret. The first four octets are the file's tag and length.
    func readsSecret(_ command: CommandView, of message: String?) -> Bool {
        guard let message, let entry = program.entry(named: message), secretMessages.contains(entry), !command.isSealed else {
            return false
        }
        switch command.ins {
        case 0xB0: return command.offset > 0 || command.ne.map { $0 > 4 } ?? true
        case 0xB1: return true
        default: return false
        }
    }

    /// The odd instructions are called like the even ones; that their fields hold data objects is for the tree.
    static func short(_ label: String) -> String {
        label.hasSuffix(", data objects") ? String(label.dropLast(14)) : label
    }
}

extension Program {
    /// Whether the right side of a match takes a key and runs a transform.
    fileprivate func isAuthentication(_ check: Int) -> Bool {
        guard checks[check].isMatch, checks[check].expression >= 0 else { return false }
        var hasKey = false
        var hasTransform = false
        for step in code.dropFirst(checks[check].expression).prefix(64) {
            switch step.op {
            case .match, .done: return hasKey && hasTransform
            case .variable: if variables.indices.contains(Int(step.b)), variables[Int(step.b)].isTainted { hasKey = true }
            case .transform: hasTransform = true
            default: break
            }
        }
        return false
    }
}

extension Decoder {
    /// The span of the field in `slot`, when this exchange has it.
    func span(_ slot: Int) -> Int? {
        guard slot >= 0, slot < machine.program.slotCount, machine.slots[slot] >= 0 else { return nil }
        let span = Int(machine.slots[slot])
        return machine.spans.indices.contains(span) ? span : nil
    }

    func number(_ slot: Int) -> UInt64? { span(slot).map { machine.spans[$0].value } }

    func octets(inSlot slot: Int) -> [UInt8]? { span(slot).map { octets(of: $0) } }
}

/// A command as the summary sees it: the innermost one that was opened.
struct CommandView: Sendable {
    var cla: UInt8
    var ins: UInt8
    var p1: UInt8
    var p2: UInt8
    var data: [UInt8]
    /// Octets expected, 256 and 65,536 for the zeros that mean them; nil without Le.
    var ne: Int?
    /// The data field is secure messaging's and was not opened.
    var isSealed: Bool

    /// Nil when what was read last is no command.
    init?(_ decoder: Decoder, _ index: GrammarIndex, isSealed: Bool) {
        let fields = index.commandFields
        guard let cla = decoder.octets(inSlot: fields.cla)?.first, let ins = decoder.number(fields.ins),
            let p1 = decoder.number(fields.p1),
            let p2 = decoder.span(fields.p2), decoder.spans[p2].bitCount == 8
        else { return nil }
        self.cla = cla
        self.ins = UInt8(truncatingIfNeeded: ins)
        self.p1 = UInt8(truncatingIfNeeded: p1)
        self.p2 = UInt8(truncatingIfNeeded: decoder.spans[p2].value)
        self.isSealed = isSealed
        data = decoder.octets(inSlot: fields.data) ?? []
        if let le = decoder.span(fields.le) {
            let value = Int(truncatingIfNeeded: decoder.spans[le].value & 0xFFFF)
            ne = value > 0 ? value : decoder.spans[le].count > 1 ? 65_536 : 256
        }
    }

    var offset: Int { Int(p1) << 8 | Int(p2) }
}

/// ISO/IEC 7816-4 5.4.1: secure messaging as the class of a command tells.
func isProtected(class cla: UInt8?) -> Bool {
    guard let cla else { return false }
    return (cla & 0xE0 == 0 && cla & 0x0C != 0) || (cla & 0xC0 == 0x40 && cla & 0x20 != 0)
}
