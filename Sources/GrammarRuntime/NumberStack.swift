// SPDX-License-Identifier: MIT

/// The numbers of an expression at work, in place: no storage that has to be asked for, or asked whether it is shared.
///
/// An expression deeper than the compiler allows loses its deepest numbers; it never traps.
struct NumberStack: Sendable {
    private var values = InlineArray<64, Int64>(repeating: 0)
    private(set) var count = 0

    @inline(__always)
    mutating func append(_ value: Int64) {
        guard count < 64 else { return }
        values[count] = value
        count += 1
    }

    @inline(__always)
    mutating func popLast() -> Int64? {
        guard count > 0 else { return nil }
        count -= 1
        return values[count]
    }

    @inline(__always)
    mutating func removeLast(_ number: Int = 1) { count = max(0, count - number) }

    mutating func removeAll() { count = 0 }
}

/// The span of each field. Emptying all of them costs nothing: what was put in before does not count any more.
package struct SlotTable: ~Copyable {
    private var values: Store<Int>
    private var base = 0

    init(count: Int) { values = Store(repeating: -1, count: count) }

    private init(_ values: consuming Store<Int>, _ base: Int) {
        self.values = values
        self.base = base
    }

    func copy() -> SlotTable { SlotTable(values.copy(), base) }

    /// The index of the span in slot `index`, or -1.
    package subscript(_ index: Int) -> Int32 {
        @inline(__always) get {
            let value = values[index] &- base
            return value < 0 ? -1 : Int32(truncatingIfNeeded: value)
        }
        @inline(__always) set { values[index] = newValue < 0 ? -1 : base &+ Int(newValue) }
    }

    @inline(__always)
    mutating func clear(_ range: Range<Int>) { for index in range { values[index] = -1 } }

    /// Empties every slot; `used` is the number of spans there were.
    mutating func clear(used: Int) { base &+= used }

    var snapshot: [Int] { values.all }
    mutating func restore(_ snapshot: [Int]) { for index in snapshot.indices { values[index] = snapshot[index] } }
}

extension Machine {
    /// The number that the expression at `start` gives; nil when something in it is not known. Guards are short and many,
    /// so those that only compare fields are worked out here, without the inner loop.
    mutating func number(_ start: Int) -> Int64? {
        let code = fast.code
        let floor = numbers.count
        var pc = start
        var isKnown = true
        while UInt(bitPattern: pc) < UInt(bitPattern: code.count) {
            let step = code[pc]
            pc += 1
            switch step.op {
            case .push: numbers.append(Int64(step.c))
            case .constant: numbers.append(fast.constants[Int(step.b)])
            case .slotNumber:
                let span = slots[Int(step.b)]
                // What is not there makes the whole not known.
                isKnown = isKnown && span >= 0
                numbers.append(span >= 0 ? Int64(truncatingIfNeeded: spans[Int(span)].value) : 0)
            case .slotIs:
                let span = slots[Int(step.b)]
                isKnown = isKnown && span >= 0
                numbers.append(span >= 0 && spans[Int(span)].value == UInt64(truncatingIfNeeded: step.c) ? 1 : 0)
            case .slotCount: numbers.append(Int64(valueRange(Int(step.b))?.count ?? 0))
            case .has: numbers.append(slots[Int(step.b)] >= 0 ? 1 : 0)
            case .inState: numbers.append(state.sessions[Int(step.b)] == Int(step.c) ? 1 : 0)
            case .not: numbers.append((numbers.popLast() ?? 0) == 0 ? 1 : 0)
            case .equal, .subtract, .add, .multiply, .and, .or, .xor, .shiftLeft, .shiftRight, .unequal, .less, .lessEqual:
                let right = numbers.popLast() ?? 0
                numbers.append(Self.join(step.op, numbers.popLast() ?? 0, right))
            case .test: if (numbers.popLast() ?? 0) == 0 { pc = Int(step.c) }
            case .jump: pc = Int(step.c)
            case .done:
                let value = numbers.popLast()
                return isKnown ? value : nil
            default:
                numbers.removeLast(numbers.count - floor)
                return general(start)
            }
        }
        return nil
    }

    private mutating func general(_ code: Int) -> Int64? {
        isUnknown = false
        let saved = steps
        steps = 10_000
        run(code, buffer: -1, from: context.position, to: context.end, parent: -1)
        steps = saved
        let value = numbers.popLast() ?? 0
        defer { isUnknown = false }
        return isUnknown ? nil : value
    }

    @inline(__always)
    static func join(_ op: Opcode, _ left: Int64, _ right: Int64) -> Int64 {
        switch op {
        case .equal: left == right ? 1 : 0
        case .subtract: left &- right
        case .add: left &+ right
        case .multiply: left &* right
        case .and: left & right
        case .or: left | right
        case .xor: left ^ right
        case .shiftLeft: (0..<64).contains(right) ? left << right : 0
        case .shiftRight: (0..<64).contains(right) ? left >> right : 0
        case .unequal: left != right ? 1 : 0
        case .less: left < right ? 1 : 0
        default: left <= right ? 1 : 0
        }
    }
}
