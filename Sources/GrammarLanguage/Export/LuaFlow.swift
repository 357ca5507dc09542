// SPDX-License-Identifier: MIT

import GrammarRuntime

/// Turns the instructions that are reached from one place into the body of a Lua function.
///
/// What the machine keeps on stacks (limits, repetitions, parents, numbers) has a depth that is known at every instruction, so
/// each depth becomes a local. Jumps become `goto`, which Lua has since 5.2.
struct LuaFlow {
    enum Purpose {
        /// Reads octets from `pos` to `e` into the tree at `p0`.
        case structure
        /// Gives a number, or nil when something in it is not known.
        case value
        /// What a layer does, as far as it needs no key.
        case statements
    }

    struct Shape {
        var numbers = 0
        var octets = 0
        var limits = 0
        var loops = 0
        /// The nodes of the composites that are open.
        var parents: [Int] = []
        var group = (octets: 0, left: 0)
    }

    let program: Program
    let purpose: Purpose
    let slots: LuaSlots
    var lines: [String] = []
    /// Numbers and octets at work, as Lua expressions.
    var numbers: [LuaValue] = []
    var octets: [LuaValue] = []
    var shape = Shape()
    var deepest = Shape()
    /// Whether something since the last use of a number may be absent.
    var mayDoubt = false
    var opened: [Int] = []
    private var shapes: [Int: Shape] = [:]

    init(_ program: Program, _ purpose: Purpose, _ slots: LuaSlots) {
        (self.program, self.purpose, self.slots) = (program, purpose, slots)
    }

    /// The lines of the body from `start`, inside `parents`.
    mutating func body(from start: Int, inside parents: [Int], _ fields: inout LuaFields) -> [String] {
        var entry = Shape()
        entry.parents = parents
        let order = walk(start, entry)
        let targets = Set(order.flatMap { successors($0).jump.map { [$0] } ?? [] })
        var reachable = true
        for (index, pc) in order.enumerated() {
            guard let here = shapes[pc] else { continue }
            if targets.contains(pc) {
                if reachable { flush() }
                lines.append("::L\(pc)::")
                reachable = false
            }
            if !reachable {
                numbers = (0..<here.numbers).map { LuaValue("n\($0)") }
                octets = (0..<here.octets).map { LuaValue("s\($0)") }
                reachable = true
            }
            shape = here
            note(here)
            let step = program.code[pc]
            switch step.op {
            case .jump:
                flush()
                lines.append("goto L\(Int(step.c))")
                reachable = false
            case .done, .endTag:
                finish(step, &fields)
                reachable = false
            default:
                translate(step, &fields)
                let next = pc + 1
                if index + 1 < order.count, order[index + 1] != next, shapes[next] != nil { lines.append("goto L\(next)") }
            }
        }
        return declarations(parents.count) + lines
    }

    private mutating func note(_ here: Shape) {
        deepest.numbers = max(deepest.numbers, here.numbers + 2)
        deepest.octets = max(deepest.octets, here.octets + 2)
        deepest.limits = max(deepest.limits, here.limits + 1)
        deepest.loops = max(deepest.loops, here.loops + 1)
        if here.parents.count > deepest.parents.count { deepest.parents = here.parents }
    }

    private func declarations(_ first: Int) -> [String] {
        var names = ["it", "v", "u", "g", "gp", "t"]
        names += (0..<min(deepest.numbers, 40)).map { "n\($0)" }
        names += (0..<min(deepest.octets, 16)).map { "s\($0)" }
        names += (0..<min(deepest.limits, 24)).map { "e\($0)" }
        names += (0..<min(deepest.loops, 16)).flatMap { ["c\($0)", "m\($0)"] }
        names += (first + 1..<first + 48).map { "p\($0)" } + (0..<first + 48).flatMap { ["b\($0)", "l\($0)"] }
        // Only those that are spoken of.
        let text = lines.joined(separator: "\n")
        let spoken = Set(text.split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init))
        let list = names.filter { spoken.contains($0) }
        return list.isEmpty ? [] : ["local \(list.joined(separator: ", "))"]
    }

    // MARK: Shapes

    private func successors(_ pc: Int) -> (next: Bool, jump: Int?) {
        let step = program.code[pc]
        switch step.op {
        case .jump: return (false, Int(step.c))
        case .done, .endTag: return (false, nil)
        case .test, .testRemaining, .testPeek, .when, .more, .again, .derive: return (true, Int(step.c))
        default: return (true, nil)
        }
    }

    /// Every instruction that is reached, in order, with the depths before it.
    private mutating func walk(_ start: Int, _ entry: Shape) -> [Int] {
        var work = [(start, entry)]
        while let (pc, before) = work.popLast() {
            guard pc >= 0, pc < program.code.count, shapes[pc] == nil else { continue }
            shapes[pc] = before
            let step = program.code[pc]
            let after = moved(before, step)
            let (next, jump) = successors(pc)
            if let jump { work.append((jump, step.op == .more ? leaving(before) : after)) }
            if next { work.append((pc + 1, step.op == .again ? leaving(after) : after)) }
        }
        return shapes.keys.sorted()
    }

    private func leaving(_ shape: Shape) -> Shape {
        var shape = shape
        shape.loops = max(0, shape.loops - 1)
        return shape
    }

    private func moved(_ shape: Shape, _ step: Instruction) -> Shape {
        var shape = shape
        switch step.op {
        case .bits:
            shape.parents.append(Int(step.b))
            shape.group = (Int(step.a), Int(step.a) * 8)
        case .bit: shape.group.left -= Int(step.a)
        case .begin: shape.parents.append(Int(step.b))
        case .close: _ = shape.parents.popLast()
        case .bytes, .when, .test: shape.numbers -= 1
        case .limit:
            shape.numbers -= 1
            shape.limits += 1
        case .endLimit: shape.limits -= 1
        case .enter:
            if step.a == 1 { shape.numbers -= 1 }
            shape.loops += 1
        case .same:
            if step.a == 1 { shape.octets -= 1 } else { shape.numbers -= 1 }
        case .push, .constant, .slotNumber, .slotIs, .slotCount, .has, .remaining, .peek, .inState: shape.numbers += 1
        case .add, .subtract, .multiply, .and, .or, .xor, .shiftLeft, .shiftRight, .equal, .unequal, .less, .lessEqual:
            shape.numbers -= 1
        case .variable: if step.a == 1 { shape.numbers += 1 } else { shape.octets += 1 }
        case .literal, .slotBytes, .slotRaw, .slotRange, .before, .joined: shape.octets += 1
        case .concatenate, .exclusive: shape.octets -= 1
        case .slice: shape.numbers -= 2
        case .octets:
            shape.numbers -= 1
            shape.octets += 1
        case .toNumber, .countBytes:
            shape.octets -= 1
            shape.numbers += 1
        case .bytesEqual:
            shape.octets -= 2
            shape.numbers += 1
        case .pad, .unpad: shape.numbers -= 1
        case .transform: shape.octets -= program.transforms[Int(step.b)].parameters - 1
        case .check: shape.numbers -= 1
        case .match: shape.octets -= 1
        case .set: if step.a == 1 { shape.numbers -= 1 } else { shape.octets -= 1 }
        case .open: if program.opens[Int(step.b)].hasTransform { shape.octets -= 1 }
        case .start: shape.octets -= program.layers[Int(step.b)].parameters.count
        case .decode: shape.octets -= 2
        default: break
        }
        shape.numbers = max(0, shape.numbers)
        shape.octets = max(0, shape.octets)
        shape.limits = max(0, shape.limits)
        return shape
    }

    // MARK: Stacks

    mutating func flush() {
        for (index, value) in numbers.enumerated() where value.text != "n\(index)" { lines.append("n\(index) = \(value.number)") }
        for (index, value) in octets.enumerated() where value.text != "s\(index)" { lines.append("s\(index) = \(value.text)") }
        numbers = numbers.indices.map { LuaValue("n\($0)") }
        octets = octets.indices.map { LuaValue("s\($0)") }
    }

    mutating func popNumber() -> LuaValue { numbers.popLast() ?? LuaValue("0", constant: 0) }
    mutating func popOctets() -> LuaValue { octets.popLast() ?? LuaValue("nil", isUnknown: true) }

    /// Ends a test: what is on the stacks must be in its locals on both ways.
    mutating func leave(unless condition: String, to target: Int32) {
        flush()
        lines.append("if not (\(condition)) then goto L\(Int(target)) end")
    }

    /// The Lua variable of the innermost composite.
    var parent: String { "p\(shape.parents.count)" }
    var container: Int { shape.parents.last ?? Int(Node.gap) }

    private mutating func finish(_ step: Instruction, _ fields: inout LuaFields) {
        if step.op == .endTag {
            lines.append("if pos < e then surplus(\(fields.container(container)), \(parent), pos, e) end")
            lines.append("do return end")
            return
        }
        switch purpose {
        case .structure: lines.append("do return pos end")
        case .statements: lines.append("do return end")
        case .value:
            if numbers.isEmpty, !octets.isEmpty {
                lines.append("do return \(popOctets().text) end")
            } else {
                let value = popNumber()
                lines.append("do return \(value.isUnknown ? "nil" : value.number) end")
            }
        }
    }
}

/// A Lua expression on one of the stacks.
struct LuaValue {
    var text: String
    /// True and false rather than 1 and 0.
    var isTruth = false
    var constant: UInt64?
    /// Whether it can never be worked out here: a key is needed.
    var isUnknown = false

    init(_ text: String, isTruth: Bool = false, constant: UInt64? = nil, isUnknown: Bool = false) {
        (self.text, self.isTruth, self.constant, self.isUnknown) = (text, isTruth, constant, isUnknown)
    }

    var number: String { isTruth ? "(\(text) and 1 or 0)" : text }
    var truth: String { isTruth ? text : "\(text) ~= 0" }
}

/// Which slots somebody asks for: only those are kept.
struct LuaSlots {
    var numbers: Set<Int> = []
    var ranges: Set<Int> = []
    var items: Set<Int> = []
    var truncations: Set<Int> = []
    /// Slots of requests: their octets are the request's, also while its answer is read.
    private(set) var asked: Set<Int> = []

    init(_ program: Program) {
        for step in program.code {
            switch step.op {
            case .slotNumber, .slotIs: numbers.insert(Int(step.b))
            case .slotCount, .has, .slotBytes, .slotRaw, .before: ranges.insert(Int(step.b))
            case .slotRange: ranges.formUnion([Int(step.b), Int(step.c)])
            case .derive: ranges.insert(Int(program.nodes[Int(step.b)].slot))
            case .same:
                let slot = Int(program.nodes[Int(step.b)].slot)
                numbers.insert(slot)
                ranges.insert(slot)
                items.insert(slot)
                truncations.insert(slot)
            case .match: ranges.insert(Int(step.b))
            default: break
            }
        }
        for check in program.checks where check.slot >= 0 { items.insert(check.slot) }
        for open in program.opens where open.slot >= 0 {
            ranges.insert(open.slot)
            items.insert(open.slot)
        }
        for dispatch in program.dispatches where dispatch.slot >= 0 { numbers.insert(dispatch.slot) }
        for exchange in program.exchanges {
            for refinement in exchange.refinements where refinement.slot >= 0 {
                numbers.insert(refinement.slot)
                ranges.insert(refinement.slot)
                items.insert(refinement.slot)
            }
        }
        for gather in program.gathers {
            ranges.insert(gather.part)
            items.insert(gather.part)
        }
        for info in program.yields {
            for assignment in info.assignments { ranges.formUnion([assignment.slot, assignment.source]) }
        }
        for root in Set(program.exchanges.map(\.request)) where program.roots.indices.contains(root) {
            let info = program.roots[root]
            asked.formUnion(info.firstSlot..<info.firstSlot + info.slotCount)
        }
        numbers.remove(-1)
        ranges.remove(-1)
        items.remove(-1)
    }

    /// The assignments that forget `slots`.
    func clearing(_ slots: Range<Int>) -> [String] {
        slots.flatMap { slot in
            (ranges.contains(slot) ? ["S[\(slot)]"] : []) + (numbers.contains(slot) ? ["V[\(slot)]"] : [])
                + (items.contains(slot) ? ["I[\(slot)]", "K[\(slot)]"] : []) + (truncations.contains(slot) ? ["Z[\(slot)]"] : [])
        }
    }
}

extension Program {
    /// Every instruction reached from `start`, aside from those of tags.
    func reached(from start: Int) -> [Int] {
        var seen: Set<Int> = []
        var work = start >= 0 ? [start] : []
        while let pc = work.popLast() {
            guard pc >= 0, pc < code.count, seen.insert(pc).inserted else { continue }
            let step = code[pc]
            switch step.op {
            case .done, .endTag: break
            case .jump: work.append(Int(step.c))
            case .test, .testRemaining, .testPeek, .when, .more, .again, .derive: work += [pc + 1, Int(step.c)]
            default: work.append(pc + 1)
            }
        }
        return seen.sorted()
    }

    func tables(reachedFrom start: Int) -> [Int] {
        reached(from: start).compactMap { code[$0].op == .tlv ? Int(code[$0].b) : nil }
    }
}
