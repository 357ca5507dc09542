// SPDX-License-Identifier: MIT

import GrammarRuntime

/// The instructions that work out numbers and octets, and those of layers and checks.
extension LuaFlow {
    mutating func operate(_ step: Instruction, _ fields: inout LuaFields) {
        switch step.op {
        case .push: numbers.append(LuaValue(String(Int(step.c)), constant: UInt64(exactly: step.c)))
        case .constant:
            let value = program.constants[Int(step.b)]
            numbers.append(LuaValue(String(value), constant: UInt64(exactly: value)))
        case .slotNumber: slotNumber(Int(step.b))
        case .slotIs:
            slotNumber(Int(step.b))
            numbers[numbers.count - 1] = LuaValue("V[\(Int(step.b))] == \(Int(step.c))", isTruth: true)
        case .slotCount: numbers.append(LuaValue("(C[\(Int(step.b))] or 0)"))
        case .has: numbers.append(LuaValue("S[\(Int(step.b))]", isTruth: true))
        case .remaining: numbers.append(LuaValue("(e - pos)"))
        case .peek:
            let place = Int(step.c) == 0 ? "pos" : "pos + \(Int(step.c))"
            numbers.append(LuaValue("(\(place) < e and byte(B, \(place) + 1) or -1)"))
        case .inState: numbers.append(LuaValue("(states[\(Int(step.b))] == \(Int(step.c)))", isTruth: true))
        case .not:
            let value = popNumber()
            numbers.append(LuaValue("not (\(value.truth))", isTruth: true, isUnknown: value.isUnknown))
        case .add, .subtract, .multiply, .and, .or, .xor, .shiftLeft, .shiftRight, .equal, .unequal, .less, .lessEqual:
            let right = popNumber()
            let left = popNumber()
            numbers.append(joined(step.op, left, right))
        case .toNumber:
            let value = popOctets()
            numbers.append(LuaValue("tonum(\(value.text))", isUnknown: value.isUnknown))
        case .countBytes:
            let value = popOctets()
            numbers.append(LuaValue("#(\(value.text) or \"\")", isUnknown: value.isUnknown))
        case .bytesEqual:
            let right = popOctets()
            let left = popOctets()
            numbers.append(
                LuaValue("(\(left.text) == \(right.text))", isTruth: true, isUnknown: left.isUnknown || right.isUnknown))
        default: operateOctets(step, &fields)
        }
    }

    private mutating func slotNumber(_ slot: Int) {
        switch purpose {
        // What is not there makes the whole not known.
        case .value:
            flush()
            lines.append("if not V[\(slot)] then return nil end")
            numbers.append(LuaValue("V[\(slot)]"))
        case .structure, .statements:
            flush()
            lines.append("u = u or not V[\(slot)]")
            mayDoubt = true
            numbers.append(LuaValue("(V[\(slot)] or 0)"))
        }
    }

    private func joined(_ op: Opcode, _ left: LuaValue, _ right: LuaValue) -> LuaValue {
        var value = LuaValue("0", isUnknown: left.isUnknown || right.isUnknown)
        let (a, b) = (left.number, right.number)
        switch op {
        case .add: value.text = "(\(a) + \(b))"
        case .subtract: value.text = "(\(a) - \(b))"
        case .multiply: value.text = "(\(a) * \(b))"
        case .and:
            if let mask = right.constant {
                value.text = Lua.masked(a, mask)
            } else if let mask = left.constant {
                value.text = Lua.masked(b, mask)
            } else {
                value.text = "bit.band(\(a), \(b))"
            }
        case .or: value.text = "bit.bor(\(a), \(b))"
        case .xor: value.text = "bit.bxor(\(a), \(b))"
        case .shiftLeft: value.text = right.constant.map { "(\(a) * \(UInt64(1) << min($0, 52)))" } ?? "(\(a) * 2 ^ \(b))"
        case .shiftRight: value.text = right.constant.map { Lua.shiftedRight(a, $0) } ?? "floor(\(a) / 2 ^ \(b))"
        default:
            value.isTruth = true
            let sign = [.equal: "==", .unequal: "~=", .less: "<"][op] ?? "<="
            value.text = "(\(a) \(sign) \(b))"
        }
        return value
    }

    // MARK: Octets

    private mutating func operateOctets(_ step: Instruction, _ fields: inout LuaFields) {
        let slot = Int(step.b)
        switch step.op {
        case .literal: octets.append(LuaValue(Lua.quoted(program.literals[slot])))
        case .slotBytes:
            if purpose == .value {
                flush()
                lines.append("if not S[\(slot)] then return nil end")
            }
            octets.append(LuaValue("\(octetsOf(slot))"))
        case .slotRaw, .before:
            // A tag's head is not kept.
            let isTag = program.slotNodes[slot].contains { program.nodes[$0].kind == .tag }
            let isUnknown = isTag || step.op == .before
            octets.append(LuaValue(isUnknown ? "nil" : "(\(octetsOf(slot)) or \"\")", isUnknown: isUnknown))
        case .slotRange: octets.append(LuaValue("stretch(\(slot), \(Int(step.c)))"))
        case .joined: octets.append(LuaValue("J"))
        case .concatenate:
            let right = popOctets()
            let left = popOctets()
            octets.append(LuaValue("cat(\(left.text), \(right.text))", isUnknown: left.isUnknown || right.isUnknown))
        case .exclusive:
            _ = popOctets()
            _ = popOctets()
            octets.append(LuaValue("nil", isUnknown: true))
        case .slice:
            let end = popNumber()
            let start = popNumber()
            let value = popOctets()
            octets.append(LuaValue("slice(\(value.text), \(start.number), \(end.number))", isUnknown: value.isUnknown))
        case .octets:
            let value = popNumber()
            octets.append(LuaValue("spell(\(value.number), \(Int(step.a)))", isUnknown: value.isUnknown))
        case .pad, .unpad:
            _ = popNumber()
            _ = popOctets()
            octets.append(LuaValue("nil", isUnknown: true))
        case .transform: transform(Int(step.b))
        case .variable:
            if step.a == 1 {
                numbers.append(LuaValue("0", isUnknown: true))
            } else {
                octets.append(LuaValue("nil", isUnknown: true))
            }
        default: statement(step, &fields)
        }
    }

    private func octetsOf(_ slot: Int) -> String { slots.asked.contains(slot) ? "asked_octets(\(slot))" : "octets(\(slot))" }

    private mutating func transform(_ number: Int) {
        let info = program.transforms[number]
        let arguments = (0..<info.parameters).map { _ in popOctets() }
        // Checksums are no ciphers.
        if info.parameters == 1, LuaRuntime.checksums.contains(info.name), let only = arguments.first, !only.isUnknown {
            octets.append(LuaValue("\(info.name)(\(only.text))"))
        } else {
            octets.append(LuaValue("nil", isUnknown: true))
        }
    }

    // MARK: Checks and statements

    private mutating func statement(_ step: Instruction, _ fields: inout LuaFields) {
        switch step.op {
        case .check:
            let value = popNumber()
            let info = program.checks[Int(step.c)]
            if value.isUnknown {
                seal(info.slot)
            } else {
                let expert = fields.expert(Int(step.c))
                if mayDoubt { lines.append("t = u u = nil") } else { lines.append("t = nil") }
                lines.append(
                    "if not t and not (\(value.truth)) then complain(\(place(info.slot)), \(expert)\(text(info, &fields))) end")
            }
            mayDoubt = false
        case .match:
            let value = popOctets()
            let slot = Int(step.b)
            if value.isUnknown {
                seal(slot)
            } else {
                let expert = fields.expert(Int(step.c))
                lines.append("if differs(\(slot), \(value.text)) then complain(\(place(slot)), \(expert)) end")
            }
            if mayDoubt { lines.append("u = nil") }
            mayDoubt = false
        case .note:
            let info = program.checks[Int(step.c)]
            let expert = fields.expert(Int(step.c))
            lines.append("complain(\(purpose == .structure ? parent : "top"), \(expert)\(text(info, &fields)))")
        case .set:
            if step.a == 1 { _ = popNumber() } else { _ = popOctets() }
        case .start: for _ in program.layers[Int(step.b)].parameters { _ = popOctets() }
        case .decode:
            _ = popOctets()
            _ = popOctets()
        case .open:
            let info = program.opens[Int(step.b)]
            if info.hasTransform {
                _ = popOctets()
                seal(info.slot)
            } else if info.slot >= 0 {
                opened.append(info.root)
                lines.append("within(\(info.root), \(info.slot))")
            }
        case .yield: lines.append("sealed(top)")
        default: break
        }
    }

    private mutating func seal(_ slot: Int) {
        lines.append("sealed(\(place(slot)))")
    }

    private func place(_ slot: Int) -> String { slot >= 0 ? "I[\(slot)] or top" : purpose == .structure ? parent : "top" }

    /// The text of a check with its values, as another argument.
    private mutating func text(_ info: CheckInfo, _ fields: inout LuaFields) -> String {
        guard info.template >= 0 else { return "" }
        var parts: [String] = []
        for piece in program.templates[info.template] {
            switch piece {
            case .text(let text): parts.append(Lua.quoted(text))
            case .number(let code): parts.append("show((function() \(closure(code, &fields)) end)())")
            case .octets(let code): parts.append("hex((function() \(closure(code, &fields)) end)())")
            case .exchange, .word: parts.append("\"?\"")
            }
        }
        return ", " + (parts.isEmpty ? "\"\"" : parts.joined(separator: " .. "))
    }

    private func closure(_ code: Int, _ fields: inout LuaFields) -> String {
        var inner = LuaFlow(program, .value, slots)
        return inner.body(from: code, inside: shape.parents, &fields).joined(separator: " ")
    }
}
