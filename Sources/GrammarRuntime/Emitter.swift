// SPDX-License-Identifier: MIT

/// The same program backwards: values in, octets out. Children come before the fields that follow from them.
struct Emission {
    var octets: [UInt8] = []
    /// Values by slot; nil when a draft is written.
    var given: [Int: [UInt8]]?
    /// Nodes that a given value belongs to, and what encloses them.
    var present: Set<Int> = []
    /// Derived fields that wait for the end of their message.
    var open: [Int: (start: Int, count: Int)] = [:]
    /// Octets that only a finished message can tell.
    var needsPatch = false
    var failed = false

    /// What is being read from: the children of one draft, in order.
    struct Source {
        var children: [Draft]
        var next = 0
    }
}

extension Machine {
    /// The octets of root `root` from values by slot; nil when no alternative takes them.
    mutating func emit(root: Int, given: [Int: [UInt8]]) -> [UInt8]? {
        var emission = Emission()
        var values = given
        for (slot, octets) in given where octets.isEmpty {
            if program.tables.slotNodes[slot].allSatisfy({ program.tables.nodes[$0].kind != .tag }) { values[slot] = nil }
        }
        for slot in values.keys {
            for var node in program.tables.slotNodes[slot] {
                while node >= 0, emission.present.insert(node).inserted { node = Int(program.tables.nodes[node].parent) }
            }
        }
        emission.given = values
        return finish(root, &emission, Emission.Source(children: []))
    }

    /// The octets of a draft, whose node is that of a root.
    package mutating func emit(_ draft: Draft) -> [UInt8]? {
        guard let root = program.tables.roots.firstIndex(where: { $0.node == draft.node }) else { return nil }
        var emission = Emission()
        return finish(root, &emission, Emission.Source(children: [draft]))
    }

    private mutating func finish(_ root: Int, _ emission: inout Emission, _ source: Emission.Source) -> [UInt8]? {
        let kept = slots.snapshot
        let saved = (spans.count, numbers.count, values.count, steps)
        var source = source
        steps = 1_000_000
        _ = emit(program.tables.roots[root].code, &source, &emission, depth: 0)
        slots.restore(kept)
        spans.removeLast(spans.count - saved.0)
        numbers.removeLast(max(0, numbers.count - saved.1))
        values.removeLast(max(0, values.count - saved.2))
        steps = saved.3
        isUnknown = false
        if emission.failed { return nil }
        return emission.needsPatch ? patched(root, emission.octets) : emission.octets
    }

    /// Reads what was written and fills in what follows from the whole.
    private mutating func patched(_ root: Int, _ octets: [UInt8]) -> [UInt8]? {
        let kept = slots.snapshot
        let saved = (spans.count, buffers.count, arena.count, annotations.count, mode)
        defer {
            slots.restore(kept)
            spans.removeLast(spans.count - saved.0)
            buffers.removeLast(buffers.count - saved.1)
            arena.removeLast(arena.count - saved.2)
            annotations.removeLast(annotations.count - saved.3)
            mode = saved.4
        }
        guard let buffer = addBuffer(octets, .opened, source: -1) else { return nil }
        mode = .patch
        parse(root: root, buffer: buffer)
        return arena.array(buffers[buffer].offset..<arena.count)
    }

    private func isGap(_ draft: Draft) -> Bool { draft.node == Int(Node.gap) || draft.node == Int(Node.filler) }

    /// The next child when it is `node`; octets that no field claims are written on the way.
    private func take(_ node: Int, _ source: inout Emission.Source, _ emission: inout Emission) -> Draft? {
        var ahead = source.next
        while ahead < source.children.count, isGap(source.children[ahead]) { ahead += 1 }
        guard ahead < source.children.count, source.children[ahead].node == node else { return nil }
        flush(&source, &emission, to: ahead)
        source.next = ahead + 1
        return source.children[ahead]
    }

    func flush(_ source: inout Emission.Source, _ emission: inout Emission, to end: Int? = nil) {
        while source.next < end ?? source.children.count, isGap(source.children[source.next]) {
            emission.octets += source.children[source.next].octets ?? []
            source.next += 1
        }
    }

    private func follows(_ node: Int, _ source: Emission.Source) -> Bool {
        var ahead = source.next
        while ahead < source.children.count, isGap(source.children[ahead]) { ahead += 1 }
        return ahead < source.children.count && source.children[ahead].node == node
    }

    /// Writes a leaf, and remembers where, for the fields that follow from it.
    private mutating func write(_ node: Int, _ octets: [UInt8], _ emission: inout Emission) {
        let info = program.tables.nodes[node]
        let value = octets.count <= 8 ? octets.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } : 0
        _ = put(
            node, info.slot, parent: -1, start: emission.octets.count * 8, count: octets.count * 8, value: value, buffer: 0)
        emission.octets += octets
    }

    private mutating func writeLeaf(_ step: Instruction, _ source: inout Emission.Source, _ emission: inout Emission) {
        let node = Int(step.b)
        let info = program.tables.nodes[node]
        let size = step.op == .uint ? Int(step.a & 0x0F) : Int(info.size)
        if emission.given == nil {
            guard let draft = take(node, &source, &emission) else { return }
            if let octets = draft.octets {
                write(node, octets, &emission)
            } else if let inner = draft.children.first,
                let root = program.tables.roots.firstIndex(where: { $0.node == inner.node })
            {
                var inside = Emission.Source(children: draft.children)
                let start = emission.octets.count
                _ = emit(program.tables.roots[root].code, &inside, &emission, depth: 1)
                flush(&inside, &emission)
                let written = Array(emission.octets[start...])
                emission.octets.removeLast(written.count)
                write(node, written, &emission)
            } else if info.flags.contains(.derived) || size > 0 {
                emission.open[node] = (emission.octets.count, size)
                emission.needsPatch = emission.needsPatch || step.op != .uint
                write(node, [UInt8](repeating: 0, count: size), &emission)
            } else {
                write(node, [], &emission)
            }
            return
        }
        if info.slot >= 0, let octets = emission.given?[Int(info.slot)] {
            guard step.op == .uint, octets.count != size else {
                write(node, octets, &emission)
                return
            }
            let shortest = Array(octets.drop { $0 == 0 })
            if shortest.count > size { emission.failed = true }
            write(node, [UInt8](repeating: 0, count: max(0, size - shortest.count)) + shortest.suffix(size), &emission)
            return
        }
        // A field of no fixed size that nobody gave is empty; one of fixed size waits for what it follows from.
        emission.open[node] = (emission.octets.count, size)
        write(node, [UInt8](repeating: 0, count: size), &emission)
    }

    /// Writes from `start` to the matching `close` or `done`; gives the place after it.
    mutating func emit(_ start: Int, _ source: inout Emission.Source, _ emission: inout Emission, depth: Int) -> Int {
        var pc = start
        var loops: [Int] = []
        guard depth < 96 else {
            emission.failed = true
            return program.tables.code.count
        }
        while pc >= 0, pc < program.tables.code.count, !emission.failed {
            steps -= 1
            guard steps > 0 else {
                emission.failed = true
                break
            }
            let step = program.tables.code[pc]
            let here = pc
            pc += 1
            switch step.op {
            case .uint, .rest, .number: writeLeaf(step, &source, &emission)
            case .bytes:
                numbers.removeLast(min(1, numbers.count))
                writeLeaf(step, &source, &emission)
            case .bits: pc = emitBits(step, pc, &source, &emission)
            case .begin:
                var inside = Emission.Source(children: [])
                let node = Int(step.b)
                if emission.given == nil {
                    guard let draft = take(node, &source, &emission) else {
                        pc = skip(here)
                        continue
                    }
                    inside.children = draft.children
                    if let number = draft.number, program.tables.nodes[node].kind == .choice {
                        inside.children.insert(Draft(node: -1, number: number), at: 0)
                    }
                }
                let first = emission.octets.count
                let span = put(node, program.tables.nodes[node].slot, parent: -1, start: first * 8, count: 0, value: 0, buffer: 0)
                pc = emit(pc, &inside, &emission, depth: depth + 1)
                spans[Int(span)].bitCount = UInt32(truncatingIfNeeded: (emission.octets.count - first) * 8)
            case .close, .endTag, .done:
                flush(&source, &emission)
                return pc
            case .limit: numbers.removeLast(min(1, numbers.count))
            case .endLimit: flush(&source, &emission)
            case .enter:
                if step.a == 1 { numbers.removeLast(min(1, numbers.count)) }
                loops.append(-1)
            case .more:
                let goesOn = emission.given == nil && follows(Int(program.tables.code[pc].b), source) && loops.last != source.next
                if goesOn, !loops.isEmpty {
                    loops[loops.count - 1] = source.next
                } else {
                    _ = loops.popLast()
                    pc = Int(step.c)
                }
            case .again: pc = Int(step.c)
            case .tlv: emitTable(Int(step.b), &source, &emission, depth: depth)
            case .choose: pc = chosen(Int(step.b), &source, &emission) ?? program.tables.code.count
            case .alternative: break
            case .when:
                let truth = (numbers.popLast() ?? 0) != 0 && !isUnknown
                isUnknown = false
                let node = Int(step.b)
                let goesOn: Bool
                if emission.given == nil {
                    goesOn = follows(node, source)
                } else {
                    goesOn = emission.present.contains(node) || (truth && program.tables.nodes[node].flags.contains(.derived))
                }
                if !goesOn { pc = Int(step.c) }
            case .clear: for slot in Int(step.b)..<Int(step.b) + Int(step.c) { slots[slot] = -1 }
            case .derive:
                if emission.open[Int(step.b)] == nil {
                    pc = Int(step.c)
                } else if step.a == 1 {
                    emission.needsPatch = true
                    pc = Int(step.c)
                }
            case .same:
                let value = numbers.popLast() ?? 0
                if let place = emission.open[Int(step.b)], !isUnknown {
                    for index in 0..<place.count {
                        emission.octets[place.start + index] = UInt8(
                            truncatingIfNeeded: value >> Int64(8 * (place.count - 1 - index)))
                    }
                    if place.count < 8, value >> Int64(8 * place.count) != 0 { emission.failed = true }
                }
                isUnknown = false
            case .test: if (numbers.popLast() ?? 0) == 0 { pc = Int(step.c) }
            case .jump: pc = Int(step.c)
            case .check: numbers.removeLast(min(1, numbers.count))
            case .match: values.removeLast(min(1, values.count))
            case .note: break
            case .push: numbers.append(Int64(step.c))
            case .remaining: numbers.append(0)
            case .peek: numbers.append(-1)
            case .equal:
                let right = numbers.popLast() ?? 0
                numbers.append((numbers.popLast() ?? 0) == right ? 1 : 0)
            case .subtract:
                let right = numbers.popLast() ?? 0
                numbers.append((numbers.popLast() ?? 0) &- right)
            default: operate(step)
            }
        }
        return pc
    }

    /// The place after the `close` that matches the `begin` at `start`.
    private func skip(_ start: Int) -> Int {
        var level = 0
        var pc = start
        while pc < program.tables.code.count {
            switch program.tables.code[pc].op {
            case .begin, .bits: level += 1
            case .close:
                level -= 1
                if level == 0 { return pc + 1 }
            default: break
            }
            pc += 1
        }
        return pc
    }

    private mutating func emitBits(
        _ step: Instruction, _ start: Int, _ source: inout Emission.Source, _ emission: inout Emission
    ) -> Int {
        var pc = start
        var inside = Emission.Source(children: [])
        if emission.given == nil {
            guard let draft = take(Int(step.b), &source, &emission) else { return skip(start - 1) }
            inside.children = draft.children
        }
        var group: UInt64 = 0
        var width = 0
        while pc < program.tables.code.count, program.tables.code[pc].op == .bit {
            let bit = program.tables.code[pc]
            let node = program.tables.nodes[Int(bit.b)]
            pc += 1
            var value: UInt64 = 0
            if emission.given != nil {
                value = (node.slot >= 0 ? emission.given?[Int(node.slot)] : nil)?.reduce(0) { $0 << 8 | UInt64($1) } ?? 0
            } else if let draft = take(Int(bit.b), &inside, &emission) {
                value = draft.number ?? 0
            } else {
                continue
            }
            if value >> UInt64(bit.a) != 0 { emission.failed = true }
            group = group << UInt64(bit.a) | value
            width += Int(bit.a)
            _ = put(
                Int(bit.b), node.slot, parent: -1, start: emission.octets.count * 8, count: Int(bit.a), value: value, buffer: 0)
        }
        for shift in stride(from: width - 8, through: 0, by: -8) {
            emission.octets.append(UInt8(truncatingIfNeeded: group >> UInt64(shift)))
        }
        flush(&inside, &emission)
        return pc + 1
    }

    /// Where the alternative that the values belong to begins.
    private func chosen(_ index: Int, _ source: inout Emission.Source, _ emission: inout Emission) -> Int? {
        let choice = program.tables.choices[index]
        guard let given = emission.given else {
            guard source.next < source.children.count, source.children[source.next].node == -1 else { return nil }
            let node = source.children[source.next].number ?? 0
            source.next += 1
            return choice.alternatives.first { UInt64($0.node) == node }?.code
        }
        var all: Set<Int> = []
        for alternative in choice.alternatives { all.formUnion(alternative.slots) }
        let mine = Set(given.keys).intersection(all)
        for isExact in [true, false] {
            for alternative in choice.alternatives
            where mine.isSubset(of: alternative.slots) && mine.isSuperset(of: alternative.required) {
                if fits(alternative, given, isExact) { return alternative.code }
            }
        }
        emission.failed = true
        return nil
    }

    private func fits(_ alternative: Choice.Alternative, _ given: [Int: [UInt8]], _ isExact: Bool) -> Bool {
        var longest = 0
        for field in alternative.fields {
            let node = program.tables.nodes[field]
            if node.kind == .octets, node.slot >= 0 { longest = max(longest, given[Int(node.slot)]?.count ?? 0) }
        }
        for field in alternative.fields {
            let node = program.tables.nodes[field]
            let size = Int(node.size)
            guard node.kind == .number, size > 0 else { continue }
            if node.slot >= 0, let octets = given[Int(node.slot)] {
                if isExact, octets.count != size { return false }
                if octets.drop(while: { $0 == 0 }).count > size { return false }
            } else if node.flags.contains(.counting), size < 8, longest >> (8 * size) != 0 {
                return false
            }
        }
        return bitsFit(alternative.code, given)
    }

    /// Whether the values of the first bit fields from `start` on are as narrow as the fields: class 84 is none of the forms with three bits.
    private func bitsFit(_ start: Int, _ given: [Int: [UInt8]]) -> Bool {
        var pc = start
        while pc < program.tables.code.count {
            let step = program.tables.code[pc]
            if step.op == .close || step.op == .done || step.op == .jump { return true }
            let slot = step.op == .bit ? Int(program.tables.nodes[Int(step.b)].slot) : -1
            if slot >= 0, let octets = given[slot], octets.count <= 8 {
                let value = octets.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
                if value >> UInt64(step.a) != 0 { return false }
            }
            pc += 1
        }
        return true
    }
}
