// SPDX-License-Identifier: MIT

import GrammarRuntime

/// What Wireshark is told before the first packet: fields, texts of values, expert infos.
///
/// Several nodes may have one path (the Lc of a short and of an extended command). Wireshark takes several fields of one name
/// when their types are alike, so the type is chosen for the path, the mask and the texts for the node.
struct LuaFields {
    enum Class: Equatable {
        case number, wideNumber, octets, text, none
    }

    let program: Program
    private var classes: [String: Class] = [:]
    private var indices: [String: Int] = [:]
    private(set) var fieldLines: [String] = []
    private var expertIndices: [String: Int] = [:]
    private(set) var expertLines: [String] = []
    private var usedEnumerations: Set<Int> = []
    private var containers: [String: Int] = [:]
    private var tags: [Int: UInt32] = [:]
    private(set) var containerLines: [String] = []
    /// What has a secret inside: its octets are shown nowhere.
    private var covering: Set<Int> = []
    /// Choices of which each alternative is one octet: the octet is their value.
    private var octetChoices: Set<Int> = []

    init(_ program: Program) {
        self.program = program
        for table in program.tagTables { for entry in table.entries { tags[entry.node] = entry.tag } }
        for (index, node) in program.nodes.enumerated() where index > Int(Node.value) {
            let path = program.path(index)
            guard let kind = Self.kind(of: node) else { continue }
            classes[path] = Self.join(classes[path], kind)
        }
        for (index, node) in program.nodes.enumerated() where node.flags.contains(.secret) {
            var above = index
            while above >= 0, covering.insert(above).inserted { above = Int(program.nodes[above].parent) }
        }
        findOctetChoices()
    }

    private mutating func findOctetChoices() {
        var inside: [Int: [Int]] = [:]
        for (index, node) in program.nodes.enumerated() where node.parent >= 0 {
            inside[Int(node.parent), default: []].append(index)
        }
        for (index, node) in program.nodes.enumerated() where node.kind == .choice && !node.flags.contains(.unnamed) {
            // Each alternative stands before its fields.
            let kinds = (inside[index] ?? []).map { program.nodes[$0] }
            let areOctets = kinds.enumerated().allSatisfy { place, node in
                if place % 2 == 0 { return node.kind == .alternative }
                return (node.kind == .bits || node.kind == .number) && node.size == 1
            }
            if areOctets, kinds.count >= 2, kinds.count % 2 == 0, classes[program.path(index)] == nil, !covering.contains(index) {
                octetChoices.insert(index)
            }
        }
    }

    /// Whether a choice has a value of its own: that of its one octet.
    func isOctet(_ node: Int) -> Bool { octetChoices.contains(node) }

    /// Whether a composite has its octets as a value.
    func hasOctets(_ node: Int) -> Bool {
        let info = program.nodes[node]
        return info.kind != .root && !info.flags.contains(.unnamed) && classes[program.path(node)] == nil
            && !covering.contains(node)
    }

    /// The field of a composite's octets, or of a choice's one octet.
    mutating func octets(_ node: Int) -> String { declare(program.path(node), label(node), "bytes", "") }
    mutating func octet(_ node: Int) -> String { declare(program.path(node), label(node), "uint8", ", base.DEC_HEX, nil") }

    /// The class that a leaf needs on its own; nil for what has no value.
    private static func kind(of node: Node) -> Class? {
        if node.flags.contains(.secret) { return Class.none }
        switch node.kind {
        case .number: return node.size == 0 || node.size > 4 ? .wideNumber : .number
        // A group without a name is shown by its bits alone.
        case .bits: return node.flags.contains(.unnamed) ? nil : node.size > 4 ? .wideNumber : .number
        case .bit: return node.size > 32 ? .wideNumber : .number
        case .octets, .decimal: return .octets
        case .text: return .text
        default: return nil
        }
    }

    private static func join(_ first: Class?, _ second: Class) -> Class {
        guard let first, first != second else { return second }
        if first == .none || second == .none { return .none }
        if first != .text, second != .text, first != .octets, second != .octets { return .wideNumber }
        return .octets
    }

    /// Whether a value is told by its range alone, as a number of up to four octets, or as one of up to eight.
    func form(of node: Int) -> Class { classes[program.path(node)] ?? .none }

    /// The Lua expression of the field of `node`.
    ///
    /// - Parameters:
    ///   - group: for a bit field the octets of its group and the bits below it.
    mutating func field(_ node: Int, group: (octets: Int, shift: Int)? = nil) -> String {
        let info = program.nodes[node]
        let form = form(of: node)
        var kind = "none"
        var extra = ""
        switch form {
        case .none: break
        case .octets: kind = "bytes"
        case .text: kind = "string"
        case .number, .wideNumber:
            let octets = group?.octets ?? Int(info.size)
            kind = form == .wideNumber ? "uint64" : ["uint8", "uint8", "uint16", "uint24", "uint32"][min(max(0, octets), 4)]
            let isWhole = info.kind != .bit
            var base = isWhole ? "base.DEC_HEX" : "base.DEC"
            var texts = "nil"
            if info.enumeration >= 0, form == .number {
                if isWhole { base = "base.HEX" }
                usedEnumerations.insert(Int(info.enumeration))
                texts = "N[\(info.enumeration)]"
            }
            extra = ", \(base), \(texts)"
            if let group, info.kind == .bit {
                let mask = (UInt64.max >> UInt64(64 - min(64, max(1, Int(info.size))))) << UInt64(group.shift)
                extra += form == .wideNumber ? ", UInt64.fromhex(\"\(hex(mask))\")" : ", 0x\(hex(mask))"
            }
        }
        // What stands for a whole tag carries the tag's label.
        let isTag = info.flags.contains(.unnamed) && info.label < 0 && info.parent >= 0
        return declare(program.path(node), isTag ? tagged(Int(info.parent)) : label(node), kind, extra)
    }

    /// The label of a tag with the tag's octets after it.
    private func tagged(_ node: Int) -> String {
        guard let tag = tags[node] else { return label(node) }
        let digits = hex(UInt64(tag))
        return "\(label(node)) (\(digits.count % 2 == 1 ? "0" : "")\(digits))"
    }

    /// The label of a node, or of what it stands in when it has no name.
    func label(_ node: Int) -> String {
        var node = node
        while program.nodes[node].flags.contains(.unnamed), program.nodes[node].label < 0, program.nodes[node].parent >= 0 {
            node = Int(program.nodes[node].parent)
        }
        return program.label(node)
    }

    private func hex(_ value: UInt64) -> String { String(value, radix: 16, uppercase: true) }

    private mutating func declare(_ path: String, _ label: String, _ kind: String, _ extra: String) -> String {
        let line = "ProtoField.\(kind)(\(Lua.quoted("tapdeck." + path)), \(Lua.quoted(label))\(extra))"
        if let index = indices[line] { return "F[\(index)]" }
        let index = fieldLines.count + 1
        indices[line] = index
        fieldLines.append("F[\(index)] = \(line)")
        return "F[\(index)]"
    }

    mutating func declareNamed(_ node: Int, _ kind: String) -> String { declare(program.path(node), tagged(node), kind, "") }

    mutating func header(_ node: Int) -> String { declare(program.path(node) + ".header", "tag and length", "bytes", "") }

    /// The fields for what a container holds beside its own fields: gaps, fillers, unknown objects and their heads.
    mutating func container(_ node: Int) -> String {
        let path = program.path(node)
        if let index = containers[path] { return "U[\(index)]" }
        let list = [
            declare(path + ".gap", "not claimed by a field", "bytes", ""),
            declare(path + ".filler", "filler", "bytes", ""),
            declare(path + ".unknown", "unknown object", "bytes", ""),
            declare(path + ".unknown.header", "tag and length", "bytes", ""),
        ]
        let index = containerLines.count + 1
        containers[path] = index
        containerLines.append("U[\(index)] = {\(list.joined(separator: ", "))}")
        return "U[\(index)]"
    }

    /// The expert info of a check.
    mutating func expert(_ check: Int) -> String {
        let info = program.checks[check]
        var path =
            info.slot >= 0 && info.slot < program.slotNodes.count
            ? program.slotNodes[info.slot].first.map { program.path($0) } : nil
        if path == nil { path = program.files.indices.contains(info.place.file) ? grammar(info.place.file) : "grammar" }
        let text = info.template >= 0 ? plain(info.template) : "does not follow from the rest"
        let abbreviation = "tapdeck.\(path ?? "grammar").\(info.code.rawValue).line\(info.place.line)"
        if let index = expertIndices[abbreviation] { return "X[\(index)]" }
        let index = expertLines.count + 1
        expertIndices[abbreviation] = index
        let severity = ["NOTE", "WARN", "ERROR"][Int(info.severity.rawValue)]
        let group = info.code == .remark ? "PROTOCOL" : "CHECKSUM"
        expertLines.append(
            "X[\(index)] = ProtoExpert.new(\(Lua.quoted(abbreviation)), \(Lua.quoted(text)), expert.group.\(group), expert.severity.\(severity))"
        )
        return "X[\(index)]"
    }

    private func grammar(_ file: Int) -> String? { program.grammars.first { $0.file == file }?.name }

    /// A template without its values.
    private func plain(_ template: Int) -> String {
        program.templates[template].map { piece in
            if case .text(let text) = piece { text } else { "?" }
        }.joined()
    }

    mutating func use(enumeration: Int) { usedEnumerations.insert(enumeration) }

    /// The texts of values, and of masked values the functions that find them.
    func enumerationLines() -> [String] {
        usedEnumerations.sorted().flatMap { index -> [String] in
            let info = program.enumerations[index]
            let all: UInt64 = info.bits >= 64 ? .max : (1 << UInt64(info.bits)) - 1
            var seen: Set<UInt64> = []
            var lines = ["-- \(info.name)", "N[\(index)] = {"]
            for entry in info.entries where entry.mask & all == all && seen.insert(entry.value).inserted {
                lines.append("  [\(entry.value)] = \(Lua.quoted(program.text(of: entry.value, in: index))),")
            }
            lines.append("}")
            let masked = info.entries.filter { $0.mask & all != all }
            guard !masked.isEmpty else { return lines }
            lines.append("M[\(index)] = function(v)")
            for entry in masked {
                let test = Lua.masked("v", entry.mask & all)
                let low = Lua.masked("v", ~entry.mask & all)
                let text = entry.text.isEmpty ? program.strings[entry.name] : entry.text
                let parts = text.split(separator: "{low}", omittingEmptySubsequences: false).map { Lua.quoted(String($0)) }
                lines.append(
                    "  if \(test) == \(entry.value) then return \(parts.joined(separator: " .. fmt(\"%d\", \(low)) .. ")) end")
            }
            lines.append("end")
            return lines
        }
    }
}

/// Pieces of Lua text.
enum Lua {
    /// `text` as a Lua string that means the same in every version.
    static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\" + String(scalar)
            case "\n": result += "\\n"
            default:
                if scalar.value < 0x20 || scalar.value == 0x7F {
                    let digits = String(scalar.value)
                    result += "\\" + String(repeating: "0", count: 3 - digits.count) + digits
                } else {
                    result.unicodeScalars.append(scalar)
                }
            }
        }
        return result + "\""
    }

    static func quoted(_ octets: [UInt8]) -> String {
        "\""
            + octets.map { octet in
                let digits = String(octet)
                return "\\" + String(repeating: "0", count: 3 - digits.count) + digits
            }.joined() + "\""
    }

    /// `value & mask` by remainders: Lua 5.2 has no operators on bits, and a call costs more.
    static func masked(_ value: String, _ mask: UInt64) -> String {
        var parts: [String] = []
        var bit: UInt64 = 0
        while bit < 53 {
            guard mask >> bit & 1 == 1 else {
                bit += 1
                continue
            }
            let first = bit
            while bit < 53, mask >> bit & 1 == 1 { bit += 1 }
            let top = "\(value) % \(UInt64(1) << bit)"
            parts.append(first == 0 ? "(\(top))" : "(\(top) - \(value) % \(UInt64(1) << first))")
        }
        if parts.isEmpty { return "0" }
        return parts.count == 1 ? parts[0] : "(\(parts.joined(separator: " + ")))"
    }

    static func shiftedRight(_ value: String, _ count: UInt64) -> String {
        count == 0 ? value : "floor(\(value) / \(UInt64(1) << min(count, 52)))"
    }
}
