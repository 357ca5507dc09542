// SPDX-License-Identifier: MIT

extension Machine {
    mutating func execute(_ step: Instruction) {
        switch step.op {
        case .set:
            let value: Value = step.a == 1 ? numbers.popLast().map { .number($0) } ?? .none : popValue() ?? .none
            state.variables[Int(step.b)] = Variable(value: isUnknown ? .none : value, exchange: exchange)
            isUnknown = false
        case .bump:
            guard mode != .patch else { return }
            state.variables[Int(step.b)].value = bumped(state.variables[Int(step.b)].value, by: Int(step.c))
        case .open: open(program.tables.opens[Int(step.b)])
        case .yield:
            if mode == .decode, !isSealed { yield(program.tables.yields[Int(step.b)]) }
        case .start:
            let layer = Int(step.b)
            let parameters = program.tables.layers[layer].parameters
            for parameter in parameters.reversed() {
                let value = popValue() ?? .none
                // Keys that follow from what is not known are not known either, nor is the counter beside them.
                state.variables[parameter] = Variable(value: isUnknown ? .none : value, exchange: exchange)
            }
            isUnknown = false
            state.layers.removeAll { $0 == layer }
            state.layers.append(layer)
            if !state.spent.contains(layer) { state.spent.append(layer) }
        case .stop: stop(Int(step.b))
        case .decode: decode(program.tables.decodes[Int(step.b)])
        default: break
        }
    }

    private mutating func decode(_ info: DecodeInfo) {
        let (response, command) = (popValue() ?? .none, popValue() ?? .none)
        isUnknown = false
        // The row itself is none of these messages: its own octets are buffer 0.
        if buffers.count == 0 { _ = addBuffer([], .frame, source: -1) }
        var number: Int?
        if case .octets(let octets) = command, info.request >= 0, let buffer = addBuffer(octets, .opened, source: -1) {
            parse(root: info.request, buffer: buffer)
            number = findExchange(info.request)
            if let number { refine(number, request: true) }
        }
        if case .octets(let octets) = response, info.response >= 0, let buffer = addBuffer(octets, .opened, source: -1) {
            isInRequest = false
            parse(root: info.response, buffer: buffer)
            if let number { refine(number, request: false) }
            isInRequest = true
        }
    }

    /// A counter moved by `distance`, at its own width.
    func bumped(_ value: Value, by distance: Int) -> Value {
        switch value {
        case .none, .place: return .none
        case .number(let number): return .number(number &+ Int64(distance))
        case .octets(var octets):
            var carry = distance
            for index in octets.indices.reversed() where carry != 0 {
                let sum = Int(octets[index]) + carry
                octets[index] = UInt8(truncatingIfNeeded: sum)
                carry = sum >> 8
            }
            return .octets(octets)
        }
    }

    private mutating func open(_ info: OpenInfo) {
        guard mode != .prepare else {
            if info.hasTransform { _ = values.popLast() }
            isUnknown = false
            return
        }
        let root = fast.roots[info.root]
        slots.clear(root.firstSlot..<root.firstSlot + root.slotCount)
        if info.hasTransform {
            let source = info.slot >= 0 ? slots[info.slot] : -1
            guard case .octets(let octets)? = popValue(), !isUnknown,
                let buffer = addBuffer(octets, .opened, source: source)
            else {
                if isUnknown, mode == .decode, !annotations.contains(where: { $0.code == .unopened }) {
                    annotate(.sealed, .note, span: source)
                }
                isUnknown = false
                closed.append(root.firstSlot..<root.firstSlot + root.slotCount)
                return
            }
            parse(root: info.root, buffer: buffer)
            return
        }
        guard let range = valueRange(info.slot) else { return }
        let span = slots[info.slot]
        guard !spans[Int(span)].flags.contains(.composite) || program.tables.nodes[Int(spans[Int(span)].node)].kind == .tag else {
            return
        }
        spans[Int(span)].flags.insert(.composite)
        parse(root: info.root, buffer: Int(spans[Int(span)].buffer), from: range.lowerBound, to: range.upperBound, parent: span)
    }

    private mutating func yield(_ info: YieldInfo) {
        var given: [Int: [UInt8]] = [:]
        var source: Int32 = -1
        let root = program.tables.roots[info.root]
        for slot in root.firstSlot..<root.firstSlot + root.slotCount {
            guard slots[slot] >= 0, isPlainValue(slot) else { continue }
            given[slot] = slotOctets(slot)
        }
        for slot in Set(info.assignments.map(\.slot)) { given[slot] = nil }
        for assignment in info.assignments where given[assignment.slot] == nil {
            guard test(assignment.condition) else { continue }
            if assignment.code < 0 {
                if assignment.source >= 0, slots[assignment.source] >= 0 {
                    given[assignment.slot] = slotOctets(assignment.source)
                }
            } else if let octets = octets(assignment.code) {
                given[assignment.slot] = octets
                source = assignment.source >= 0 ? slots[assignment.source] : source
            } else {
                // Without the key there is no plain message.
                if !annotations.contains(where: { $0.code == .unopened }) {
                    annotate(.sealed, .note, span: assignment.source >= 0 ? slots[assignment.source] : -1)
                }
                return
            }
        }
        guard let octets = emit(root: info.root, given: given) else { return }
        yielded = (info.root, octets, source)
    }

    /// Whether the field in `slot` holds a value of its own, which does not follow from others.
    func isPlainValue(_ slot: Int) -> Bool {
        let node = program.tables.nodes[Int(spans[Int(slots[slot])].node)]
        if node.flags.contains(.derived) { return false }
        return switch node.kind {
        case .number, .bit, .octets, .text, .decimal, .tag: true
        default: false
        }
    }

    /// The octets of a field; of a bit field its value in one or two octets.
    func slotOctets(_ slot: Int) -> [UInt8] {
        let span = slots[slot]
        if program.tables.nodes[Int(spans[Int(span)].node)].kind == .bit {
            let value = spans[Int(span)].value
            return value > 0xFF
                ? [UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)] : [UInt8(truncatingIfNeeded: value)]
        }
        return arena.array(valueRange(span: span))
    }

    // MARK: Checks

    mutating func same(_ step: Instruction) {
        let node = program.tables.nodes[Int(step.b)]
        let span = node.slot >= 0 ? slots[Int(node.slot)] : -1
        var holds = true
        if step.a == 1 {
            guard case .octets(let expected)? = popValue(), !isUnknown, span >= 0 else {
                isUnknown = false
                return
            }
            let range = valueRange(span: span)
            holds = arena.holds(expected, in: range)
            if !holds, mode == .patch, range.count == expected.count {
                for (index, octet) in zip(range, expected) { arena[index] = octet }
                holds = true
            }
        } else {
            let expected = numbers.popLast() ?? 0
            guard !isUnknown, span >= 0, !spans[Int(span)].flags.contains(.truncated) else {
                isUnknown = false
                return
            }
            holds = Int64(truncatingIfNeeded: spans[Int(span)].value) == expected
        }
        if !holds { fail(Int(step.c), span, expected: nil, actual: nil) }
    }

    mutating func check(_ step: Instruction, _ pc: Int) {
        let truth = numbers.popLast() ?? 0
        let span = spanOfCheck(Int(step.c))
        guard mode == .decode else {
            isUnknown = false
            return
        }
        if isUnknown {
            // A check on a field that is not there says nothing; one without a key is sealed.
            let isAbsent = isAbsent
            isUnknown = false
            if !isAbsent { seal(Int(step.c), span) }
        } else if truth != 0 {
            hold(Int(step.c), span)
        } else {
            fail(Int(step.c), span, expected: nil, actual: nil)
        }
    }

    mutating func match(_ step: Instruction, _ pc: Int) {
        let value = popValue() ?? .none
        let check = Int(step.c)
        let slot = Int(step.b)
        let span = slots[slot]
        guard mode != .prepare else {
            isUnknown = false
            return
        }
        guard case .octets(let expected) = value, !isUnknown else {
            let isAbsent = isAbsent
            isUnknown = false
            if mode == .decode, !isAbsent { seal(check, span) }
            return
        }
        guard span >= 0 else {
            // A field under a condition may be absent; an object that a message must have may not.
            let isTag = program.tables.slotNodes[slot].contains { program.tables.nodes[$0].kind == .tag }
            let isOptional = program.tables.slotNodes[slot].allSatisfy { program.tables.nodes[$0].flags.contains(.optional) }
            if mode == .decode, isTag || !isOptional, !closed.contains(where: { $0.contains(slot) }) {
                let info = program.tables.checks[check]
                annotations.append(
                    Annotation(.missing, info.severity, blame: isInRequest ? .program : .card, place: info.place, check: check))
            }
            return
        }
        let range = valueRange(span: span)
        if mode == .patch {
            if range.count == expected.count { for (index, octet) in zip(range, expected) { arena[index] = octet } }
            return
        }
        if arena.holds(expected, in: range) {
            hold(check, span)
        } else {
            fail(check, span, expected: expected, actual: arena.array(range))
        }
    }

    /// Whether the check can only come out as sealed: a variable is not known, and every field that it speaks of is there.
    func isHopeless(_ check: Int) -> Bool {
        var isOpen = true
        for index in fast.needs[check].variables.range where state.variables[Int(fast.needed[index])].value == .none {
            isOpen = false
        }
        if isOpen { return false }
        for index in fast.needs[check].slots.range where slots[Int(fast.needed[index])] < 0 { return false }
        return true
    }

    private func spanOfCheck(_ check: Int) -> Int32 {
        let slot = program.tables.checks[check].slot
        return slot >= 0 ? slots[slot] : -1
    }

    private mutating func hold(_ check: Int, _ span: Int32) {
        guard annotations.count < 4096 else { return }
        annotations.append(Annotation(.held, .note, span: span, place: program.tables.checks[check].place, check: check))
    }

    private mutating func seal(_ check: Int, _ span: Int32) {
        isSealed = true
        annotations.append(Annotation(.sealed, .note, span: span, place: program.tables.checks[check].place, check: check))
    }

    private mutating func fail(_ check: Int, _ span: Int32, expected: [UInt8]?, actual: [UInt8]?) {
        guard annotations.count < 4096, !isProbing else { return }
        let info = program.tables.checks[check]
        var annotation = Annotation(
            info.code, info.severity, span: span, blame: info.blame ?? (isInRequest ? .program : .card), place: info.place,
            template: info.template, values: render(info.template), check: check)
        if info.see >= 0 { annotation.see = state.variables[info.see].exchange }
        if !info.isTainted {
            annotation.expected = expected
            annotation.actual = actual
        }
        if triesNearMisses, mode == .decode { annotation.nearMiss = nearMiss(info) }
        annotations.append(annotation)
    }

    mutating func note(_ check: Int, _ parent: Int32) {
        guard mode == .decode, annotations.count < 4096 else { return }
        let info = program.tables.checks[check]
        annotations.append(
            Annotation(
                info.code, info.severity, span: parent, blame: info.blame, place: info.place, template: info.template,
                values: render(info.template), check: check))
    }

    /// The values of a template's pieces, in order.
    mutating func render(_ template: Int) -> [AnnotationValue] {
        guard template >= 0 else { return [] }
        var result: [AnnotationValue] = []
        for piece in program.tables.templates[template] {
            switch piece {
            case .text, .word: break
            case .number(let code): result.append(number(code).map { .number($0) } ?? .unknown)
            case .octets(let code): result.append(octets(code).map { .octets($0) } ?? .unknown)
            case .exchange(let variable):
                result.append(state.variables[variable].exchange.map { .number(Int64($0)) } ?? .unknown)
            }
        }
        return result
    }

    // MARK: Near misses

    /// Tries the neighbours that a check names, one at a time, and says which makes it true. A counter that fits is kept, so
    /// that what follows can be read.
    private mutating func nearMiss(_ info: CheckInfo) -> String? {
        for clause in info.near {
            let original = state.variables[clause.variable]
            guard original.value != .none else { continue }
            switch clause.candidates {
            case .offsets(let range):
                for distance in range where distance != 0 {
                    state.variables[clause.variable].value = bumped(original.value, by: distance)
                    if probe(info) {
                        annotations.append(Annotation(.lost, .note, span: -1, place: info.place))
                        return "right for \(clause.name) \(distance > 0 ? "+" : "")\(distance)"
                    }
                }
            case .values(let candidates):
                for candidate in candidates {
                    state.variables[clause.variable] = original
                    guard let octets = octets(candidate.code) else { continue }
                    state.variables[clause.variable].value = .octets(octets)
                    if probe(info) {
                        state.variables[clause.variable] = original
                        return "right with \(candidate.name) for \(clause.name)"
                    }
                }
            }
            state.variables[clause.variable] = original
        }
        return nil
    }

    private mutating func probe(_ info: CheckInfo) -> Bool {
        isProbing = true
        isUnknown = false
        let saved = steps
        steps = 10_000
        run(info.expression, buffer: -1, from: 0, to: 0, parent: -1)
        steps = saved
        isProbing = false
        defer { isUnknown = false }
        guard info.expression >= 0, !isUnknown else {
            values.removeAll(keepingCapacity: true)
            return false
        }
        if info.isMatch {
            guard case .octets(let expected)? = popValue(), info.slot >= 0, let range = valueRange(info.slot) else {
                return false
            }
            return arena.holds(expected, in: range)
        }
        return (numbers.popLast() ?? 0) != 0
    }
}
