// SPDX-License-Identifier: MIT

extension Machine {
    /// Arena positions of the value of the field in `slot`; nil when it is absent.
    package func valueRange(_ slot: Int) -> Range<Int>? {
        guard slot >= 0, slots[slot] >= 0 else { return nil }
        return valueRange(span: slots[slot])
    }

    package func valueRange(span: Int32) -> Range<Int> {
        let index = Int(span)
        let range = rawRange(span: span)
        let kind = fast.nodes[Int(spans[index].node)].kind
        if kind == .tag || kind == .unknownTag, index + 1 < spans.count {
            return range.lowerBound + spans[index + 1].count..<range.upperBound
        }
        return range
    }

    /// Arena positions of everything of the field in `slot`, a tag's head included.
    package func rawRange(span: Int32) -> Range<Int> {
        let here = spans[Int(span)]
        let start = (Int(here.buffer) < buffers.count ? buffers[Int(here.buffer)].offset : 0) + here.start
        return start..<start + here.count
    }

    /// The octets of `range`, as far as they are there.
    package func octets(in range: Range<Int>) -> [UInt8] { arena.array(range) }

    /// The value on the stack, its octets taken out of the exchange.
    mutating func popValue() -> Value? {
        let value = values.popLast()
        if case .place(let start, let count)? = value { return .octets(arena.array(Int(start)..<Int(start) + Int(count))) }
        return value
    }

    private mutating func push(_ range: Range<Int>) {
        values.append(
            .place(start: Int32(truncatingIfNeeded: range.lowerBound), count: Int32(truncatingIfNeeded: range.count)))
    }

    /// The two values on the stack; nil, and the whole expression in doubt, when one of them is not known.
    private mutating func popPair() -> (left: [UInt8], right: [UInt8])? {
        let (right, left) = (values.popLast() ?? .none, values.popLast() ?? .none)
        guard right.isOctets, left.isOctets else {
            isUnknown = true
            return nil
        }
        return (octets(left), octets(right))
    }

    private func areEqual(_ left: Value, _ right: Value) -> Bool {
        switch (left, right) {
        case (.place(let start, let count), .octets(let octets)), (.octets(let octets), .place(let start, let count)):
            arena.holds(octets, in: Int(start)..<Int(start) + Int(count))
        case (.none, .none), (.number, .number), (.none, .number), (.number, .none): true
        default: octets(left) == octets(right)
        }
    }

    private func octets(_ value: Value) -> [UInt8] {
        switch value {
        case .octets(let octets): octets
        case .place(let start, let count): arena.array(Int(start)..<Int(start) + Int(count))
        case .none, .number: []
        }
    }

    @inline(__always)
    private mutating func popNumber() -> Int64 { numbers.popLast() ?? 0 }

    /// Nil, and the whole expression in doubt, when the octets are not known.
    private mutating func popOctets() -> [UInt8]? {
        if case .octets(let octets)? = popValue() { return octets }
        isUnknown = true
        return nil
    }

    /// The instructions that are not worth a place in the inner loop: expressions and statements.
    mutating func operate(_ step: Instruction) {
        switch step.op {
        case .constant: numbers.append(fast.constants[Int(step.b)])
        case .slotNumber:
            let span = slots[Int(step.b)]
            if span >= 0 {
                numbers.append(Int64(truncatingIfNeeded: spans[Int(span)].value))
            } else {
                isAbsent = true
                numbers.append(0)
            }
        case .slotIs:
            let span = slots[Int(step.b)]
            if span < 0 { isAbsent = true }
            numbers.append(span >= 0 && spans[Int(span)].value == UInt64(truncatingIfNeeded: step.c) ? 1 : 0)
        case .slotCount:
            if let range = valueRange(Int(step.b)) {
                numbers.append(Int64(range.count))
            } else {
                numbers.append(0)
            }
        case .has: numbers.append(slots[Int(step.b)] >= 0 ? 1 : 0)
        case .add, .multiply, .and, .or, .xor, .shiftLeft, .shiftRight, .unequal, .less, .lessEqual: binary(step.op)
        case .inState: numbers.append(state.sessions[Int(step.b)] == Int(step.c) ? 1 : 0)
        case .not: numbers.append(popNumber() == 0 ? 1 : 0)
        case .toNumber:
            let octets = popOctets() ?? []
            numbers.append(octets.count <= 8 ? Int64(truncatingIfNeeded: octets.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }) : 0)
        case .countBytes: numbers.append(Int64(popOctets()?.count ?? 0))
        case .bytesEqual:
            let (right, left) = (values.popLast() ?? .none, values.popLast() ?? .none)
            if !right.isOctets || !left.isOctets { isUnknown = true }
            numbers.append(areEqual(left, right) ? 1 : 0)
        case .variable: pushVariable(Int(step.b), asNumber: step.a == 1)
        default:
            if step.op.rawValue >= Opcode.set.rawValue { execute(step) } else { operateOctets(step) }
        }
    }

    private mutating func binary(_ op: Opcode) {
        let right = popNumber()
        let left = popNumber()
        numbers.append(Self.join(op, left, right))
    }

    private mutating func pushVariable(_ index: Int, asNumber: Bool) {
        let value = state.variables[index].value
        if asNumber {
            if case .number(let number) = value {
                numbers.append(number)
            } else {
                isUnknown = true
                numbers.append(0)
            }
            return
        }
        if value == .none { isUnknown = true }
        values.append(value)
    }

    private mutating func operateOctets(_ step: Instruction) {
        switch step.op {
        case .literal: values.append(.octets(program.tables.literals[Int(step.b)]))
        case .slotBytes, .slotRaw:
            let span = slots[Int(step.b)]
            guard span >= 0 else {
                // Everything of an absent object is no octets; its value is not known.
                if step.op == .slotRaw { return values.append(.octets([])) }
                isAbsent = true
                return values.append(.none)
            }
            let range = step.op == .slotRaw ? rawRange(span: span) : valueRange(span: span)
            push(range.clamped(to: 0..<arena.count))
        case .slotRange:
            let first = slots[Int(step.b)]
            let last = slots[Int(step.c)]
            guard first >= 0, last >= 0, spans[Int(first)].buffer == spans[Int(last)].buffer else {
                values.append(.octets([]))
                return
            }
            let start = rawRange(span: first).lowerBound
            let end = rawRange(span: last).upperBound
            push(start <= end ? (start..<end).clamped(to: 0..<arena.count) : 0..<0)
        case .before:
            let span = slots[Int(step.b)]
            guard span >= 0, spans[Int(span)].parent >= 0 else {
                values.append(.octets([]))
                return
            }
            let run = valueRange(span: spans[Int(span)].parent)
            let end = rawRange(span: span).lowerBound
            push(run.lowerBound <= end ? (run.lowerBound..<end).clamped(to: 0..<arena.count) : 0..<0)
        case .joined: values.append(.octets(step.a == 1 ? kept : joined))
        case .concatenate:
            guard let (left, right) = popPair() else { return values.append(.none) }
            values.append(.octets(left.count + right.count <= Self.longestFrame ? left + right : left))
        case .exclusive:
            guard let (left, right) = popPair() else { return values.append(.none) }
            values.append(.octets(zip(left, right).map { $0 ^ $1 }))
        case .slice:
            let end = Int(clamping: popNumber())
            let start = Int(clamping: popNumber())
            guard let octets = popOctets() else { return values.append(.none) }
            let lower = min(max(0, start), octets.count)
            values.append(.octets(Array(octets[lower..<min(max(lower, end), octets.count)])))
        case .octets:
            let number = popNumber()
            let width = Int(step.a)
            values.append(
                .octets((0..<width).map { UInt8(truncatingIfNeeded: number >> Int64(8 * (width - 1 - $0))) }))
        case .pad:
            let block = Int(clamping: popNumber())
            guard var octets = popOctets() else { return values.append(.none) }
            octets.append(0x80)
            if block > 0, block <= 256 { while octets.count % block != 0 { octets.append(0) } }
            values.append(.octets(octets))
        case .unpad:
            _ = popNumber()
            unpad()
        case .transform: transform(Int(step.b))
        default: break
        }
    }

    private mutating func unpad() {
        guard let octets = popOctets() else { return values.append(.none) }
        var end = octets.count
        while end > 0, octets[end - 1] == 0 { end -= 1 }
        if end > 0, octets[end - 1] == 0x80 {
            values.append(.octets(Array(octets[..<(end - 1)])))
        } else {
            if !isProbing { annotate(.unopened, .error, span: -1, values: [.word("the padding is not 80 00..")]) }
            isUnknown = true
            values.append(.none)
        }
    }

    private mutating func transform(_ index: Int) {
        let count = program.tables.transforms[index].parameters
        var arguments: [[UInt8]] = []
        var isKnown = true
        for index in 0..<min(count, values.count) where !values[values.count - 1 - index].isOctets { isKnown = false }
        guard isKnown, count <= values.count else {
            values.removeLast(min(count, values.count))
            isUnknown = true
            values.append(.none)
            return
        }
        for _ in 0..<count { if let octets = popOctets() { arguments.append(octets) } }
        arguments.reverse()
        guard let function = transforms[index] else {
            isUnknown = true
            values.append(.none)
            return
        }
        do {
            values.append(.octets(try function(arguments)))
        } catch {
            if !isProbing { annotate(.unopened, .error, span: -1, values: [.word("\(function.name): \(error.detail)")]) }
            isUnknown = true
            values.append(.none)
        }
    }
}
