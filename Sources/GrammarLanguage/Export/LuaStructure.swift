// SPDX-License-Identifier: MIT

import GrammarRuntime

/// The instructions that read octets.
extension LuaFlow {
    mutating func translate(_ step: Instruction, _ fields: inout LuaFields) {
        switch step.op {
        case .uint: unsigned(step, &fields)
        case .bits: bits(step, &fields)
        case .bit: bit(step, &fields)
        case .bytes: bytes(step, &fields)
        case .rest: leaf(Int(step.b), "e - pos", &fields)
        case .number: leaf(Int(step.b), "e - pos", &fields)
        case .begin: begin(Int(step.b), &fields)
        case .close: close(step, &fields)
        case .limit:
            let wanted = popNumber().number
            let depth = shape.limits
            lines += ["e\(depth) = e", "v = \(wanted)"]
            if mayDoubt { lines.append("if u then v = e - pos u = nil end") }
            mayDoubt = false
            lines += [
                "if v < 0 then v = 0 end",
                "if v > e - pos then cut(\(parent), v, e - pos) else e = pos + v end",
            ]
        case .endLimit:
            surplus(&fields)
            lines.append("e = e\(max(0, shape.limits - 1))")
        case .enter:
            let depth = shape.loops
            if step.a == 1 {
                lines.append("c\(depth) = \(popNumber().number)")
                if mayDoubt { lines.append("u = nil") }
                mayDoubt = false
                lines.append("if c\(depth) < 0 then c\(depth) = 0 end")
            } else {
                lines.append("c\(depth) = huge")
            }
            lines.append("m\(depth) = pos")
        case .more:
            let depth = max(0, shape.loops - 1)
            flush()
            lines += [
                "if c\(depth) == 0 or pos >= e then",
                "  if c\(depth) > 0 and c\(depth) ~= huge then cut(\(parent), c\(depth), 0) end",
                "  goto L\(Int(step.c))",
                "end",
                "m\(depth) = pos",
                "c\(depth) = c\(depth) - 1",
            ]
        case .again: lines.append("if m\(max(0, shape.loops - 1)) < pos then goto L\(Int(step.c)) end")
        case .tlv: lines.append("pos = tlv(T[\(Int(step.b))], pos, e, \(parent), \(fields.container(container)))")
        case .choose, .clear: break
        case .alternative:
            if let node = shape.parents.last, program.nodes[node].kind == .choice, !program.nodes[node].flags.contains(.unnamed) {
                lines.append("append(\(parent), \(Lua.quoted(": " + program.label(Int(step.b)))))")
            }
        case .when:
            let value = popNumber()
            let guardText = mayDoubt ? "(\(value.truth)) and not u" : value.truth
            if mayDoubt {
                flush()
                lines += ["t = \(guardText)", "u = nil", "if not t then goto L\(Int(step.c)) end"]
            } else {
                leave(unless: guardText, to: step.c)
            }
            mayDoubt = false
        case .derive:
            let slot = Int(program.nodes[Int(step.b)].slot)
            leave(unless: "S[\(slot)]", to: step.c)
        case .same: same(step, &fields)
        case .test: leave(unless: popNumber().truth, to: step.c)
        case .testRemaining: leave(unless: "e - pos == \(Int(step.b))", to: step.c)
        case .testPeek:
            let octet = "byte(B, pos + 1)"
            let masked = step.a == 0xFF ? octet : Lua.masked(octet, UInt64(step.a))
            leave(unless: "pos < e and \(masked) == \(Int(step.b))", to: step.c)
        default: operate(step, &fields)
        }
    }

    private mutating func surplus(_ fields: inout LuaFields) {
        lines.append("if pos < e then pos = surplus(\(fields.container(container)), \(parent), pos, e) end")
    }

    // MARK: Leaves

    /// Remembers what the expressions of the grammars ask for.
    private mutating func keep(_ node: Int, count: String, value: String?) {
        var list = [Int(program.nodes[node].slot)]
        if program.nodes[node].flags.contains(.unnamed), program.nodes[node].parent >= 0 {
            list.append(Int(program.nodes[Int(program.nodes[node].parent)].slot))
        }
        for slot in list where slot >= 0 {
            if slots.ranges.contains(slot) { lines += ["S[\(slot)] = pos", "C[\(slot)] = \(count)"] }
            if let value, slots.numbers.contains(slot) { lines.append("V[\(slot)] = \(value)") }
            if slots.items.contains(slot) { lines.append("I[\(slot)] = it") }
        }
    }

    private func isKept(_ node: Int) -> Bool {
        let slot = Int(program.nodes[node].slot)
        return slots.items.contains(slot)
            || (program.nodes[node].flags.contains(.unnamed) && program.nodes[node].parent >= 0
                && slots.items.contains(Int(program.nodes[Int(program.nodes[node].parent)].slot)))
    }

    private func isCounted(_ node: Int) -> Bool {
        let slot = Int(program.nodes[node].slot)
        guard slots.numbers.contains(slot) else {
            return program.nodes[node].flags.contains(.unnamed) && program.nodes[node].parent >= 0
                && slots.numbers.contains(Int(program.nodes[Int(program.nodes[node].parent)].slot))
        }
        return true
    }

    /// 0: told by its range alone; 1: a number; 2: a number of 64 bits; 3: nothing to show.
    private func shown(_ node: Int, _ fields: LuaFields) -> Int {
        switch fields.form(of: node) {
        case .number: 1
        case .wideNumber: 2
        case .none: 3
        default: 0
        }
    }

    private mutating func unsigned(_ step: Instruction, _ fields: inout LuaFields) {
        let node = Int(step.b)
        let size = Int(step.a & 0x0F)
        let isLittle = step.a & 0x80 != 0 && size > 1
        let field = fields.field(node)
        let info = program.nodes[node]
        let isMasked =
            info.enumeration >= 0
            && program.enumerations[Int(info.enumeration)].entries.contains { $0.mask != mask(of: Int(info.enumeration)) }
        let needsItem = isKept(node) || info.enumeration >= 0
        let needsValue = isCounted(node) || info.enumeration >= 0
        lines.append("if e - pos >= \(size) then")
        lines.append("  \(needsItem ? "it = " : "")\(isLittle ? "add_le" : "add")(\(parent), \(field), range(R, pos, \(size)))")
        if needsValue { lines.append("  v = \(number("pos", size, isLittle))") }
        keep(node, count: String(size), value: "v")
        lines.append("  pos = pos + \(size)")
        lines.append("else")
        lines.append("  it, v = short(\(field), \(shown(node, fields)), \(parent), pos, e, \(size))")
        keep(node, count: "e - pos", value: "v")
        let slot = Int(info.slot)
        if slots.truncations.contains(slot) { lines.append("  Z[\(slot)] = true") }
        lines.append("  pos = e")
        lines.append("end")
        if info.enumeration >= 0 {
            fields.use(enumeration: Int(info.enumeration))
            let level = info.flags.contains(.closedEnum) ? "x_unknown_warn" : "x_unknown"
            if isMasked {
                lines.append("if N[\(info.enumeration)][v] == nil then masked(M[\(info.enumeration)], v, it, \(level)) end")
            } else {
                lines.append("if N[\(info.enumeration)][v] == nil then it:add_proto_expert_info(\(level)) end")
            }
        }
    }

    private func mask(of enumeration: Int) -> UInt64 {
        let bits = program.enumerations[enumeration].bits
        return bits >= 64 ? .max : (1 << UInt64(bits)) - 1
    }

    /// The octets at `place` as a number.
    private func number(_ place: String, _ size: Int, _ isLittle: Bool) -> String {
        switch size {
        case 1: return "byte(B, \(place) + 1)"
        case 2 where !isLittle: return "byte(B, \(place) + 1) * 256 + byte(B, \(place) + 2)"
        default: return "load(\(place), \(size), \(isLittle))"
        }
    }

    private mutating func bits(_ step: Instruction, _ fields: inout LuaFields) {
        let node = Int(step.b)
        let size = Int(step.a)
        let depth = shape.parents.count + 1
        let isNamed = !program.nodes[node].flags.contains(.unnamed)
        lines.append("if e - pos >= \(size) then")
        lines.append("  g = \(number("pos", size, false))")
        lines.append("  gp = range(R, pos, \(size))")
        if isNamed {
            lines.append("  p\(depth) = add(\(parent), \(fields.field(node)), gp)")
            lines.append("  it = p\(depth)")
        } else {
            lines.append("  p\(depth) = \(parent)")
        }
        if slots.items.contains(Int(program.nodes[node].slot)), !isNamed { lines.append("  it = p\(depth)") }
        keep(node, count: String(size), value: "g")
        lines.append("  pos = pos + \(size)")
        lines.append("else")
        lines.append("  g = nil")
        lines.append("  p\(depth) = \(parent)")
        lines.append("  missing(p\(depth), pos, e, \(size), \(fields.container(node)))")
        lines.append("  pos = e")
        lines.append("end")
    }

    private mutating func bit(_ step: Instruction, _ fields: inout LuaFields) {
        let node = Int(step.b)
        let info = program.nodes[node]
        let group = shape.group
        let shift = max(0, group.left - Int(step.a))
        let field = fields.field(node, group: (group.octets, shift))
        let slot = Int(info.slot)
        let needsItem = slots.items.contains(slot) || info.enumeration >= 0
        lines.append("if g then")
        lines.append("  \(needsItem ? "it = " : "")add(\(parent), \(field), gp)")
        if slots.numbers.contains(slot) || info.enumeration >= 0 {
            let low = Lua.masked("g", (UInt64.max >> UInt64(64 - min(64, Int(step.a)))) << UInt64(min(63, shift)))
            lines.append("  v = \(Lua.shiftedRight(low, UInt64(shift)))")
            if slots.numbers.contains(slot) { lines.append("  V[\(slot)] = v") }
        }
        if slots.ranges.contains(slot) { lines.append("  S[\(slot)] = pos - \(group.octets) C[\(slot)] = 0") }
        if slots.items.contains(slot) { lines.append("  I[\(slot)] = it") }
        if info.enumeration >= 0 {
            fields.use(enumeration: Int(info.enumeration))
            lines.append("  if N[\(info.enumeration)][v] == nil then masked(M[\(info.enumeration)], v, it, x_unknown) end")
        }
        lines.append("end")
    }

    private mutating func bytes(_ step: Instruction, _ fields: inout LuaFields) {
        let node = Int(step.b)
        let wanted = popNumber().number
        let field = fields.field(node)
        lines.append("v = \(wanted)")
        if mayDoubt { lines.append("if u then v = e - pos u = nil end") }
        mayDoubt = false
        lines.append("if v < 0 then v = 0 end")
        lines.append("if v <= e - pos then")
        add(node, field, "v", fields)
        keep(node, count: "v", value: nil)
        lines.append("  pos = pos + v")
        lines.append("else")
        lines.append("  it = short(\(field), \(shown(node, fields)), \(parent), pos, e, v)")
        keep(node, count: "e - pos", value: nil)
        lines.append("  pos = e")
        lines.append("end")
    }

    private mutating func leaf(_ node: Int, _ count: String, _ fields: inout LuaFields) {
        let field = fields.field(node)
        if program.nodes[node].kind == .number {
            lines.append("it, v = whole(\(field), \(shown(node, fields)), \(parent), pos, e)")
            keep(node, count: count, value: "v")
        } else {
            add(node, field, count, fields)
            keep(node, count: count, value: nil)
        }
        lines.append("pos = e")
    }

    private mutating func add(_ node: Int, _ field: String, _ count: String, _ fields: LuaFields) {
        if program.nodes[node].flags.contains(.secret) {
            lines.append("  it = secret(\(parent), \(field), pos, \(count), \(Lua.quoted(fields.label(node))))")
        } else {
            lines.append("  \(isKept(node) ? "it = " : "")add(\(parent), \(field), at(pos, \(count)))")
        }
    }

    // MARK: Composites

    private mutating func begin(_ node: Int, _ fields: inout LuaFields) {
        let depth = shape.parents.count + 1
        if program.nodes[node].flags.contains(.unnamed) {
            lines.append("p\(depth) = \(parent)")
        } else if fields.isOctet(node) {
            let label = Lua.quoted(fields.label(node))
            lines.append("if pos < e then p\(depth) = add(\(parent), \(fields.octet(node)), range(R, pos, 1))")
            lines.append("else p\(depth) = add_text(\(parent), at(pos, 0), \(label)) end")
        } else if !fields.hasOctets(node), fields.form(of: node) == .none {
            lines.append("p\(depth) = add(\(parent), \(fields.field(node)), at(pos, e - pos))")
        } else {
            // Its items have its name, or its octets are a field once their number is known.
            lines.append("p\(depth) = add_text(\(parent), at(pos, e - pos), \(Lua.quoted(fields.label(node))))")
        }
        let slot = Int(program.nodes[node].slot)
        lines.append(
            !program.nodes[node].flags.contains(.unnamed) && !fields.isOctet(node)
                ? "b\(depth), l\(depth) = pos, e - pos" : "b\(depth) = pos")
        if slots.ranges.contains(slot) { lines.append("S[\(slot)] = pos C[\(slot)] = e - pos") }
        if slots.items.contains(slot) { lines.append("I[\(slot)] = p\(depth)") }
    }

    private mutating func close(_ step: Instruction, _ fields: inout LuaFields) {
        if step.a == 1 { surplus(&fields) }
        guard let node = shape.parents.last else { return }
        let depth = shape.parents.count
        let info = program.nodes[node]
        guard info.kind != .bits else { return }
        if !info.flags.contains(.unnamed), !fields.isOctet(node) {
            lines.append("if pos - b\(depth) ~= l\(depth) then set_len(\(parent), pos - b\(depth)) end")
        }
        if fields.hasOctets(node), !fields.isOctet(node) {
            lines.append("add(\(parent), \(fields.octets(node)), at(b\(depth), pos - b\(depth))):set_hidden()")
        }
        let slot = Int(info.slot)
        if slots.ranges.contains(slot) { lines.append("C[\(slot)] = pos - b\(depth)") }
    }

    private mutating func same(_ step: Instruction, _ fields: inout LuaFields) {
        let slot = Int(program.nodes[Int(step.b)].slot)
        let expert = fields.expert(Int(step.c))
        if step.a == 1 {
            let expected = popOctets()
            guard !expected.isUnknown else { return }
            lines.append(
                "if differs(\(slot), \(expected.text)) and I[\(slot)] then I[\(slot)]:add_proto_expert_info(\(expert)) end")
            return
        }
        let expected = popNumber()
        if mayDoubt {
            lines.append("t = u u = nil")
        } else {
            lines.append("t = nil")
        }
        mayDoubt = false
        guard !expected.isUnknown else { return }
        lines.append(
            "if not t and not Z[\(slot)] and V[\(slot)] ~= \(expected.number) and I[\(slot)] then I[\(slot)]:add_proto_expert_info(\(expert)) end"
        )
    }
}
