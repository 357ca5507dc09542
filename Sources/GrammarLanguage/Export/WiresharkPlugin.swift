// SPDX-License-Identifier: MIT

import GrammarRuntime

/// A plug-in for Wireshark, in Lua, that shows what the grammars know about each frame.
///
/// It is a post-dissector: it takes its octets from what the stock dissectors `iso7816` and `iso14443` found, registers the
/// protocol `tapdeck` and the fields `tapdeck.GRAMMAR.PATH`, and pairs requests with responses by interface and packet id.
/// It holds no ciphers: what a layer would open is marked as sealed. Runs under Lua 5.2 (Wireshark 4.0) to 5.4 (4.4 and later).
public struct WiresharkPlugin: Sendable {
    /// The text of the plug-in.
    public let text: String
    /// How many fields it registers.
    public let fieldCount: Int

    /// - Parameter program: compiled without errors.
    public init(_ program: Program) {
        var writer = LuaWriter(program)
        text = writer.text()
        fieldCount = writer.fields.fieldLines.count + LuaRuntime.ownFields
    }
}

/// Puts the plug-in together.
struct LuaWriter {
    let program: Program
    let slots: LuaSlots
    var fields: LuaFields
    private var roots: [Int] = []
    private var wanted: Set<Int> = []
    private var tables: Set<Int> = []
    private var functions: [String] = []
    private var conditions: Set<Int> = []

    init(_ program: Program) {
        self.program = program
        slots = LuaSlots(program)
        fields = LuaFields(program)
    }

    mutating func text() -> String {
        var sections: [[String]] = []
        let command = entry("iso7816.Command")
        let response = entry("iso7816.Response").map { max($0, program.roots[$0].twin) }
        let block = entry("iso14443.Block")
        let answer = block.map { max($0, program.roots[$0].twin) }
        let atr = entry("atr.Atr")
        let starts = [command, response, block, answer, atr].compactMap { $0 }
        for root in starts { want(root) }
        let gathers = gatherLines(reachable: starts)
        let exchanges = exchangeLines(requests: Set(starts))
        let layers = layerLines(reachable: starts)
        let sessions = sessionLines()
        var done = 0
        while done < roots.count {
            rootFunction(roots[done])
            done += 1
        }
        sections.append([
            "-- Made by `tapdeck grammar lua` from: \(program.grammars.map(\.name).sorted().joined(separator: ", ")).",
            "-- SPDX-License-Identifier: MIT", "",
        ])
        sections.append([LuaRuntime.head])
        sections.append(fields.enumerationLines())
        sections.append(fields.fieldLines)
        sections.append(fields.containerLines)
        sections.append(fields.expertLines)
        sections.append(functions)
        sections.append(exchanges)
        sections.append(layers)
        sections.append(gathers)
        sections.append(sessions)
        for (name, root) in [
            ("command", command), ("response", response), ("block", block), ("block_answer", answer), ("atr", atr),
        ] {
            sections.append(["local r_\(name) = \(root.map(String.init) ?? "nil")"])
        }
        sections.append([LuaRuntime.tail, LuaRuntime.views, LuaRuntime.pairing])
        return sections.map { $0.joined(separator: "\n") }.joined(separator: "\n") + "\n"
    }

    private func entry(_ name: String) -> Int? { program.entry(named: name) }

    private mutating func want(_ root: Int) {
        guard program.roots.indices.contains(root), wanted.insert(root).inserted else { return }
        roots.append(root)
    }

    // MARK: Structure

    private mutating func rootFunction(_ root: Int) {
        let info = program.roots[root]
        var flow = LuaFlow(program, .structure, slots)
        let body = flow.body(from: info.code, inside: [], &fields)
        for slot in flow.opened { want(slot) }
        let kept = slots.clearing(info.firstSlot..<info.firstSlot + info.slotCount)
        functions.append("-- \(info.name)")
        // What an earlier message of the same kind left is not this message's.
        functions.append("O[\(root)] = function()")
        for part in stride(from: 0, to: kept.count, by: 24) {
            functions.append("  " + kept[part..<min(part + 24, kept.count)].joined(separator: ", ") + " = nil")
        }
        functions.append("end")
        functions.append("P[\(root)] = function(pos, e, p0)")
        functions.append("  O[\(root)]()")
        functions += body.map { "  " + $0 }
        functions.append("end")
        tableFunctions(in: info.code, info.code)
    }

    /// The tag tables that the code from `start` reads, and theirs.
    private mutating func tableFunctions(in start: Int, _ first: Int) {
        for number in program.tables(reachedFrom: start) where tables.insert(number).inserted {
            let table = program.tagTables[number]
            var lines = ["T[\(number)] = {dialect = \"\(table.dialect)\","]
            for entry in table.entries {
                let isScalar = scalarValue(entry) != nil
                let slot = Int(program.nodes[entry.node].slot)
                let isKept = slots.ranges.contains(slot) || slots.numbers.contains(slot) || slots.items.contains(slot)
                let isSecret = program.nodes[entry.node].flags.contains(.secret) && entry.code < 0
                var parts = [
                    tagField(entry, isScalar), fields.header(entry.node), isKept ? String(slot) : "nil",
                    entry.code >= 0 ? "Y[\(entry.code)]" : "nil", isScalar ? "true" : "nil",
                    isSecret ? Lua.quoted(program.label(entry.node)) : "nil",
                ]
                while parts.last == "nil" { parts.removeLast() }
                lines.append("  [\(entry.tag)] = {\(parts.joined(separator: ", "))},")
            }
            lines.append("}")
            for entry in table.entries where entry.code >= 0 {
                var flow = LuaFlow(program, .structure, slots)
                let body = flow.body(from: entry.code, inside: [entry.node], &fields)
                functions.append("Y[\(entry.code)] = function(pos, e, p1) -- \(program.path(entry.node))")
                functions += body.map { "  " + $0 }
                functions.append("end")
            }
            functions += lines
            for entry in table.entries where entry.code >= 0 { tableFunctions(in: entry.code, first) }
        }
    }

    private mutating func tagField(_ entry: TagTable.Entry, _ isScalar: Bool) -> String {
        if isScalar { return "nil" }
        return entry.code >= 0 ? fields.composite(entry.node) : fields.tag(entry.node)
    }

    /// The only node inside a tag when it is one plain value.
    private func scalarValue(_ entry: TagTable.Entry) -> Int? {
        guard entry.code >= 0 else { return nil }
        var found: Int?
        var pc = entry.code
        while pc < program.code.count {
            let step = program.code[pc]
            switch step.op {
            case .uint, .bytes, .rest, .number:
                guard found == nil, program.nodes[Int(step.b)].flags.contains(.unnamed) else { return nil }
                found = Int(step.b)
            case .endTag: return found
            case .push, .remaining: break
            default: return nil
            }
            pc += 1
        }
        return nil
    }

    // MARK: Exchanges, layers, gathers

    private mutating func value(_ code: Int, inside parents: [Int] = []) -> [String] {
        var flow = LuaFlow(program, .value, slots)
        return flow.body(from: code, inside: parents, &fields)
    }

    /// A function that gives what the expression at `code` gives: its name.
    private mutating func function(_ code: Int) -> String {
        if code < 0 { return "nil" }
        if conditions.insert(code).inserted {
            let body = value(code)
            functions.append("G[\(code)] = function() \(body.joined(separator: " ")) end")
        }
        return "G[\(code)]"
    }

    private mutating func exchangeLines(requests: Set<Int>) -> [String] {
        var lines: [String] = []
        for number in program.exchanges.indices {
            let info = program.exchanges[number]
            lines.append("Q[\(number)] = \(Lua.quoted(info.label.isEmpty ? info.name : info.label))")
            lines.append("E[\(number)] = {")
            // Nothing will answer.
            if info.response < 0 { lines.append("  alone = true,") }
            for isRequest in [true, false] {
                let refinements = info.refinements.filter { $0.ofRequest == isRequest && $0.slot >= 0 }
                guard !refinements.isEmpty else { continue }
                lines.append("  \(isRequest ? "request" : "response") = function()")
                for refinement in refinements {
                    let test = refinement.condition < 0 ? "true" : "(\(function(refinement.condition))() or 0) ~= 0"
                    let slot = refinement.slot
                    if refinement.enumeration >= 0 {
                        fields.use(enumeration: refinement.enumeration)
                        lines.append(
                            "    if I[\(slot)] and V[\(slot)] and \(test) then refined(\(refinement.enumeration), V[\(slot)], I[\(slot)]) end"
                        )
                    } else {
                        want(refinement.root)
                        lines.append("    if I[\(slot)] and \(test) then within(\(refinement.root), \(slot)) end")
                    }
                }
                lines.append("  end,")
            }
            lines.append("}")
        }
        lines.insert(
            contentsOf: [
                "local function refined(n, v, it)",
                "  local text = N[n][v] or (M[n] and M[n](v))",
                "  if text then append(it, \" (\" .. text .. \")\") else it:add_proto_expert_info(x_unknown) end",
                "end",
            ], at: 0)
        for (index, dispatch) in program.dispatches.enumerated() {
            lines.append("D[\(dispatch.root)] = {slot = \(dispatch.slot), lists = {}}")
            for (value, list) in dispatch.lists.enumerated() where !list.isEmpty {
                lines.append("D[\(dispatch.root)].lists[\(value)] = {\(list.map(String.init).joined(separator: ", "))}")
            }
            _ = index
        }
        for number in program.exchanges.indices where program.exchanges[number].condition >= 0 {
            lines.append("E[\(number)].condition = \(function(program.exchanges[number].condition))")
        }
        lines += [
            "local function find_exchange(root)",
            "  local d = D[root]",
            "  if not d then return nil end",
            "  local key = 0",
            "  if d.slot >= 0 then",
            "    key = V[d.slot]",
            "    key = key and key % 256 or 256",
            "  end",
            "  local found = d.lists[key]",
            "  if not found then return nil end",
            "  for i = 1, #found do",
            "    local test = E[found[i]].condition",
            "    if not test or (test() or 0) ~= 0 then return found[i] end",
            "  end",
            "end",
        ]
        return lines
    }

    private mutating func layerLines(reachable: [Int]) -> [String] {
        var lines: [String] = []
        for isRequest in [true, false] {
            lines.append("local function unwrap_\(isRequest ? "request(root)" : "response(layer, root)")")
            for layer in program.layers.indices.reversed() {
                let clauses = isRequest ? program.layers[layer].requests : program.layers[layer].responses
                for clause in clauses where !isRequest || clause.yields {
                    var test = isRequest ? "root == \(clause.root)" : "layer == \(layer) and root == \(clause.root)"
                    if clause.condition >= 0 { test += " and (\(function(clause.condition))() or 0) ~= 0" }
                    lines.append("  if \(test) then")
                    if clause.body >= 0 {
                        var flow = LuaFlow(program, .statements, slots)
                        functions.append("G[\(clause.body)] = function()")
                        functions += flow.body(from: clause.body, inside: [], &fields).map { "  " + $0 }
                        functions.append("end")
                        lines.append("    G[\(clause.body)]()")
                        for root in flow.opened { want(root) }
                    }
                    lines.append("    do return \(isRequest && clause.yields ? String(layer) : "nil") end")
                    lines.append("  end")
                }
            }
            lines.append("end")
        }
        return lines
    }

    /// The sessions whose states some guard asks for, as far as exchanges and resets move them.
    private mutating func sessionLines() -> [String] {
        let asked = Set(program.code.filter { $0.op == .inState }.map { Int($0.b) })
        var lines = ["local sessions = {}"]
        var first: [String] = []
        for number in asked.sorted() where program.sessions.indices.contains(number) {
            let session = program.sessions[number]
            first.append("[\(number)] = \(session.initial)")
            lines.append("sessions[\(number)] = {")
            for (state, list) in session.transitions.enumerated() {
                var transitions: [String] = []
                for transition in list where !transition.events.isEmpty {
                    var parts = ["on = {\(events(of: transition))}"]
                    if transition.takesAny { parts.append("any = true") }
                    switch transition.outcome {
                    case .any: break
                    case .ok: parts.append("ok = true")
                    case .error, .errorNamed: parts.append("ok = false")
                    }
                    if transition.condition >= 0 { parts.append("condition = \(function(transition.condition))") }
                    if transition.target >= 0 { parts.append("to = \(transition.target)") }
                    transitions.append("{\(parts.joined(separator: ", "))}")
                }
                if !transitions.isEmpty { lines.append("  [\(state)] = {by = {}, \(transitions.joined(separator: ", "))},") }
            }
            lines.append("}")
        }
        lines.append("local first_states = {\(first.joined(separator: ", "))}")
        lines.append("local function succeeded(root)")
        for root in program.roots.indices where program.roots[root].okCode >= 0 {
            lines.append("  if root == \(root) then return (\(function(program.roots[root].okCode))() or 0) ~= 0 end")
        }
        lines += ["  return true", "end"]
        return lines
    }

    /// Whether the command at hand has what the whole one is given: not every class can go on.
    private func chain(_ info: GatherInfo) -> String {
        let given = program.yields[info.yield].assignments.map(\.slot).filter { slots.numbers.contains($0) && $0 != info.part }
        return given.isEmpty ? "true" : given.map { "V[\($0)]" }.joined(separator: " and ")
    }

    /// The exchanges by their numbers, what happens to the card by its name.
    private func events(of transition: SessionInfo.Transition) -> String {
        transition.events.compactMap { event in
            switch event {
            case .any: nil
            case .exchange(let number): "[\(number)] = true"
            case .named(let name): "[\(Lua.quoted(name))] = true"
            }
        }.joined(separator: ", ")
    }

    private mutating func gatherLines(reachable: [Int]) -> [String] {
        // Parts of what is protected are of no use where nothing is opened.
        program.gathers.filter { !$0.isProtected }.map { info in
            var parts = [
                "grammar = \(Lua.quoted(info.grammar))", "request = \(info.ofRequest)", "root = \(info.root)",
                "part = \(info.part)", "more = \(function(info.more))",
            ]
            if info.next >= 0 { parts.append("next = \(function(info.next))") }
            if info.condition >= 0 { parts.append("condition = \(function(info.condition))") }
            if info.decode >= 0 {
                want(info.decode)
                parts.append("decode = \(info.decode)")
            } else if info.yield >= 0 {
                let root = program.yields[info.yield].root
                parts.append("to = \(root)")
                if let text = flatYield(program.yields[info.yield]) {
                    want(root)
                    parts.append("yield = \(text)")
                } else if root == entry("iso7816.Command"), info.ofRequest {
                    want(root)
                    parts.append("yield = function() return \(chain(info)) and rejoined(\(info.part)) end")
                }
            }
            return "W[#W + 1] = {\(parts.joined(separator: ", "))}"
        }
    }

    /// A message of plain fields, one after the other, from what is at hand; nil for any other.
    private mutating func flatYield(_ info: YieldInfo) -> String? {
        var parts: [String] = []
        var pc = program.roots[info.root].code
        while pc < program.code.count {
            let step = program.code[pc]
            switch step.op {
            case .uint, .bytes, .rest:
                let slot = Int(program.nodes[Int(step.b)].slot)
                if let assignment = info.assignments.first(where: { $0.slot == slot }) {
                    guard assignment.condition < 0 else { return nil }
                    parts.append(
                        assignment.code >= 0 ? "\(function(assignment.code))() or \"\"" : "octets(\(assignment.source)) or \"\"")
                } else {
                    parts.append("octets(\(slot)) or \"\"")
                }
            case .begin, .clear, .close, .push, .remaining, .subtract, .slotNumber: break
            case .done: return "function() return \(parts.map { "(\($0))" }.joined(separator: " .. ")) end"
            default: return nil
            }
            pc += 1
        }
        return nil
    }
}

extension LuaFields {
    /// The field of a tag that holds other fields.
    mutating func composite(_ node: Int) -> String { declareNamed(node, hasOctets(node) ? "bytes" : "none") }

    /// The field of a tag that holds octets.
    mutating func tag(_ node: Int) -> String {
        declareNamed(node, program.nodes[node].flags.contains(.secret) ? "none" : "bytes")
    }
}
