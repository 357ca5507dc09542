// SPDX-License-Identifier: MIT

/// Runs a program forwards over octets. It has no failure path: what does not fit becomes spans and annotations.
package struct Machine: ~Copyable {
    package enum Mode: Sendable {
        case decode
        /// Only counters and names: the first half of sealing.
        case prepare
        /// Matches write what they would compare: the second half of sealing.
        case patch
    }

    struct Frame: Sendable, BitwiseCopyable {
        enum Kind: UInt8, Sendable, BitwiseCopyable { case limit, loop, table, tag }
        var kind: Kind
        var pc: Int
        var end: Int
        var mark: Int
        var count: Int
    }

    package let program: Program
    /// The program's tables that every message needs.
    var fast: FastTables {
        @inline(__always) unsafeAddress { UnsafePointer(program.fast) }
    }
    let transforms: [Transform?]
    package var spans: Store<FieldSpan>
    package var annotations: [Annotation] = []
    package var buffers: Store<DecodedBuffer>
    package var arena: Store<UInt8>
    /// The span of each field, or -1.
    package var slots: SlotTable
    package var state: CardState
    var frames: Store<Frame>
    var numbers = NumberStack()
    var values: [Value] = []
    /// Whether the expression at work met something that is not known.
    var isUnknown: Bool {
        get { doubt != 0 }
        set { doubt = newValue ? doubt | 1 : 0 }
    }
    /// 1: not known; 2: because a field is absent.
    private var doubt: UInt8 = 0
    var isAbsent: Bool {
        get { doubt & 2 != 0 }
        set { doubt = newValue ? 3 : doubt & 1 }
    }
    var mode = Mode.decode
    var isProbing = false
    var isInRequest = true
    var exchange = 0
    var steps = 0
    var nesting = 0
    var joined: [UInt8] = []
    /// What the gather at work kept of the first part.
    var kept: [UInt8] = []
    /// The layers of the command whose answer was joined last.
    var gatheredLayers: UInt64 = 0
    /// The gather that joined the message at work.
    var carrier = -1
    /// Whether a check of the statements at work had no key.
    var isSealed = false
    /// Slots of what could not be opened.
    var closed: [Range<Int>] = []
    /// Secrets from outside, by variable.
    package var givens: [Int: [UInt8]] = [:]
    /// What the last `yield` gave.
    var yielded: (root: Int, octets: [UInt8], source: Int32)?
    /// Where the structure stands while a remark's values are worked out.
    var context = (position: 0, end: 0)
    package var triesNearMisses = true
    var tableDepth = 0
    package var touched: [(span: Int32, enumeration: Int)] = []

    static let deepest = 16
    static let longestFrame = 1 << 24
    static let arenaLimit = 1 << 26

    package init(_ program: Program, _ registry: any TransformRegistry) {
        self.program = program
        transforms = program.tables.transforms.map { registry.transform(named: $0.name) }
        slots = SlotTable(count: program.tables.slotCount)
        state = CardState(program)
        frames = Store(capacity: 64)
        spans = Store(capacity: 256)
        buffers = Store(capacity: 16)
        arena = Store(capacity: 1024)
    }

    /// The same moment again: what happens to one does not happen to the other.
    init(copying other: borrowing Machine) {
        program = other.program
        transforms = other.transforms
        slots = other.slots.copy()
        state = other.state
        frames = other.frames.copy()
        spans = other.spans.copy()
        buffers = other.buffers.copy()
        arena = other.arena.copy()
        annotations = other.annotations
        (isInRequest, exchange, isSealed, closed, givens) = (
            other.isInRequest, other.exchange, other.isSealed, other.closed, other.givens
        )
        (triesNearMisses, touched, carrier) = (other.triesNearMisses, other.touched, other.carrier)
    }

    /// Appends `octets` as a buffer; nil when the exchange has grown over the limit.
    mutating func addBuffer(_ octets: [UInt8], _ origin: DecodedBuffer.Origin, source: Int32) -> Int? {
        guard buffers.count < 1024, octets.count <= Self.longestFrame, arena.count + octets.count <= Self.arenaLimit else {
            return nil
        }
        buffers.append(
            DecodedBuffer(origin: origin, offset: arena.count, count: octets.count, source: source, isRequest: isInRequest))
        arena.append(contentsOf: octets)
        return buffers.count - 1
    }

    /// Reads buffer `buffer` as root `root`.
    mutating func parse(root: Int, buffer: Int, parent: Int32 = -1) {
        let place = buffers[buffer]
        parse(root: root, buffer: buffer, from: place.offset, to: place.offset + place.count, parent: parent)
    }

    mutating func parse(root: Int, buffer: Int, from: Int, to: Int, parent: Int32) {
        guard nesting < 4 else { return }
        nesting += 1
        let depth = tableDepth
        tableDepth = 0
        steps = 4096 + 64 * (to - from)
        run(fast.roots[root].code, buffer: buffer, from: from, to: to, parent: parent)
        tableDepth = depth
        nesting -= 1
    }

    /// The truth of the expression at `code`; false when something in it is not known.
    mutating func test(_ code: Int) -> Bool {
        code < 0 || (number(code) ?? 0) != 0
    }

    /// The same for a guard that tries keys on a message: what does not open is no finding.
    mutating func tries(_ code: Int) -> Bool {
        let saved = isProbing
        isProbing = true
        defer { isProbing = saved }
        return test(code)
    }

    /// The octets that the expression at `code` gives; nil when something in it is not known.
    mutating func octets(_ code: Int) -> [UInt8]? {
        isUnknown = false
        let saved = steps
        steps = 10_000
        run(code, buffer: -1, from: context.position, to: context.end, parent: -1)
        steps = saved
        defer { isUnknown = false }
        guard case .octets(let octets)? = popValue(), !isUnknown else { return nil }
        return octets
    }

    mutating func annotate(
        _ code: AnnotationCode, _ severity: Severity, span: Int32, template: Int = -1, values: [AnnotationValue] = [],
        place: GrammarPlace? = nil
    ) {
        guard annotations.count < 4096 else { return }
        var origin = GrammarPlace()
        if let place {
            origin = place
        } else if span >= 0, Int(span) < spans.count {
            origin = program.tables.nodes[Int(spans[Int(span)].node)].place
        }
        annotations.append(Annotation(code, severity, span: span, place: origin, template: template, values: values))
    }

    @inline(__always)
    mutating func put(
        _ node: Int, _ slot: Int32, parent: Int32, start: Int, count: Int, value: UInt64, buffer: Int, flags: SpanFlags = []
    ) -> Int32 {
        let index = Int32(truncatingIfNeeded: spans.count)
        spans.append(
            FieldSpan(
                node: node, parent: parent, start: start, count: count, value: value,
                buffer: UInt16(truncatingIfNeeded: buffer), flags: flags))
        if slot >= 0 { slots[Int(slot)] = index }
        return index
    }

    /// The octets of arena positions `from..<from + count` as a number.
    @inline(__always)
    func load(_ from: Int, _ count: Int) -> UInt64 {
        arena.number(from, count)
    }

    /// Runs from `start` to `done`.
    mutating func run(_ start: Int, buffer: Int, from: Int, to: Int, parent outer: Int32) {
        // Held here, so that the loop does not look for them at every step.
        let code = fast.code
        let nodes = fast.nodes
        let base = buffer >= 0 ? buffers[buffer].offset : 0
        let floor = frames.count
        var pc = start
        var position = from
        var end = to
        var parent = outer
        var resuming = false
        var group: UInt64 = 0
        var groupBits = 0
        var groupStart = 0
        var left = steps
        defer { steps = left }

        while true {
            left &-= 1
            guard left > 0, UInt(bitPattern: pc) < UInt(bitPattern: code.count) else {
                overrun(buffer, base, position, to, parent, outer)
                frames.removeLast(frames.count - floor)
                return
            }
            let step = code[pc]
            pc += 1
            switch step.op {
            case .uint:
                let node = Int(step.b)
                let size = Int(step.a & 0x0F)
                let info = nodes[node]
                if end - position >= size {
                    var value: UInt64
                    if size == 1 { value = UInt64(arena[position]) } else { value = load(position, size) }
                    if step.a & 0x80 != 0 { value = value.byteSwapped >> UInt64(64 - 8 * size) }
                    let span = put(
                        node, info.slot, parent: parent, start: (position - base) * 8, count: size * 8, value: value,
                        buffer: buffer)
                    position += size
                    if info.flags.contains(.unnamed) { spans[Int(parent)].value = value }
                    if info.enumeration >= 0 { know(value, info, span) }
                } else {
                    position = short(node, info, parent, position, end, base, buffer, wanted: size)
                }
            case .bits:
                let node = Int(step.b)
                let size = Int(step.a)
                if end - position >= size {
                    group = load(position, size)
                    groupBits = size * 8
                    groupStart = (position - base) * 8
                    parent = put(
                        node, nodes[node].slot, parent: parent, start: groupStart, count: groupBits, value: group,
                        buffer: buffer,
                        flags: .composite)
                    position += size
                } else {
                    groupBits = 0
                    parent = put(
                        node, nodes[node].slot, parent: parent, start: (position - base) * 8, count: 0, value: 0,
                        buffer: buffer,
                        flags: [.composite, .truncated])
                    annotateShort(parent, wanted: size, present: end - position)
                    if end > position { position = gap(parent, position, end, base, buffer) }
                }
            case .bit:
                let width = Int(step.a)
                if groupBits >= width {
                    groupBits -= width
                    let value = (group >> UInt64(groupBits)) & ((1 << UInt64(width)) &- 1)
                    let node = Int(step.b)
                    let info = nodes[node]
                    let span = put(node, info.slot, parent: parent, start: groupStart, count: width, value: value, buffer: buffer)
                    groupStart += width
                    if info.enumeration >= 0 { know(value, info, span) }
                }
            case .bytes:
                let node = Int(step.b)
                let wanted = isUnknown ? end - position : max(0, Int(clamping: numbers.popLast() ?? 0))
                if isUnknown {
                    isUnknown = false
                    numbers.removeLast()
                }
                if wanted <= end - position {
                    _ = put(
                        node, nodes[node].slot, parent: parent, start: (position - base) * 8, count: wanted * 8, value: 0,
                        buffer: buffer)
                    position += wanted
                } else {
                    position = short(node, nodes[node], parent, position, end, base, buffer, wanted: wanted)
                }
            case .rest:
                let node = Int(step.b)
                _ = put(
                    node, nodes[node].slot, parent: parent, start: (position - base) * 8, count: (end - position) * 8,
                    value: 0,
                    buffer: buffer)
                position = end
            case .number:
                let node = Int(step.b)
                let count = end - position
                let value = count <= 8 ? load(position, count) : 0
                let info = nodes[node]
                _ = put(
                    node, info.slot, parent: parent, start: (position - base) * 8, count: count * 8, value: value, buffer: buffer)
                if info.flags.contains(.unnamed) { spans[Int(parent)].value = value }
                position = end
            case .begin:
                let node = Int(step.b)
                parent = put(
                    node, nodes[node].slot, parent: parent, start: (position - base) * 8, count: 0, value: 0,
                    buffer: buffer,
                    flags: .composite)
            case .close:
                if step.a == 1, position < end {
                    annotate(.surplus, .warn, span: Int32(truncatingIfNeeded: spans.count))
                    position = gap(parent, position, end, base, buffer)
                }
                let index = Int(parent)
                spans[index].bitCount = UInt32(truncatingIfNeeded: (position - base) * 8) &- spans[index].startBit
                parent = spans[index].parent
            case .limit:
                var wanted = Int(clamping: numbers.popLast() ?? 0)
                if isUnknown || wanted < 0 {
                    wanted = wanted < 0 ? 0 : end - position
                    isUnknown = false
                }
                frames.append(Frame(kind: .limit, pc: 0, end: end, mark: 0, count: 0))
                if wanted > end - position {
                    annotateShort(parent, wanted: wanted, present: end - position)
                } else {
                    end = position + wanted
                }
            case .endLimit:
                if position < end {
                    annotate(.surplus, .warn, span: Int32(truncatingIfNeeded: spans.count))
                    position = gap(parent, position, end, base, buffer)
                }
                if let frame = frames.popLast() { end = frame.end }
            case .enter:
                var count = Int.max
                if step.a == 1 {
                    count = max(0, Int(clamping: numbers.popLast() ?? 0))
                    isUnknown = false
                }
                frames.append(Frame(kind: .loop, pc: 0, end: 0, mark: position, count: count))
            case .more:
                let top = frames.count - 1
                if frames[top].count == 0 || position >= end {
                    if position >= end, frames[top].count > 0, frames[top].count != Int.max {
                        annotate(.truncated, .error, span: parent)
                    }
                    frames.removeLast()
                    pc = Int(step.c)
                } else {
                    frames[top].mark = position
                    if frames[top].count != Int.max { frames[top].count -= 1 }
                }
            case .again:
                if frames[frames.count - 1].mark < position { pc = Int(step.c) } else { frames.removeLast() }
            case .tlv:
                if !resuming {
                    guard tableDepth < Self.deepest else {
                        if position < end {
                            annotate(.unknown, .warn, span: Int32(truncatingIfNeeded: spans.count))
                            position = gap(parent, position, end, base, buffer)
                        }
                        continue
                    }
                    tableDepth += 1
                    frames.append(Frame(kind: .table, pc: pc - 1, end: end, mark: 0, count: 0))
                }
                resuming = false
                var limit = end
                if let target = readTag(Int(step.b), &position, &limit, &parent, base, buffer) {
                    frames.append(Frame(kind: .tag, pc: 0, end: end, mark: 0, count: 0))
                    end = limit
                    pc = target
                } else if position >= end {
                    frames.removeLast()
                    tableDepth -= 1
                } else {
                    resuming = true
                    pc -= 1
                }
            case .endTag:
                if position < end {
                    annotate(.surplus, .warn, span: Int32(truncatingIfNeeded: spans.count))
                    position = gap(parent, position, end, base, buffer)
                }
                parent = spans[Int(parent)].parent
                if let frame = frames.popLast() { end = frame.end }
                resuming = true
                pc = frames[frames.count - 1].pc
            case .choose: break
            case .alternative: spans[Int(parent)].value = UInt64(step.b)
            case .when:
                let truth = numbers.popLast() ?? 0
                if truth == 0 || isUnknown { pc = Int(step.c) }
                isUnknown = false
            case .clear:
                // The first request and the first response of an exchange find their slots empty.
                if buffer > 1 || (buffer == 1 && isInRequest) {
                    slots.clear(Int(step.b)..<Int(step.b) + Int(step.c))
                }
            case .derive:
                let slot = nodes[Int(step.b)].slot
                if slot < 0 || slots[Int(slot)] < 0 { pc = Int(step.c) }
            case .same: same(step)
            case .test:
                let truth = numbers.popLast() ?? 0
                if truth == 0 { pc = Int(step.c) }
            case .testRemaining: if end - position != Int(step.b) { pc = Int(step.c) }
            case .testPeek:
                if position >= end || arena[position] & step.a != UInt8(truncatingIfNeeded: step.b) { pc = Int(step.c) }
            case .jump: pc = Int(step.c)
            case .push: numbers.append(Int64(step.c))
            case .remaining: numbers.append(Int64(end - position))
            case .peek:
                let place = position + Int(step.c)
                numbers.append(place < end && place >= 0 ? Int64(arena[place]) : -1)
            case .equal:
                let right = numbers.popLast() ?? 0
                numbers.append((numbers.popLast() ?? 0) == right ? 1 : 0)
            case .subtract:
                let right = numbers.popLast() ?? 0
                numbers.append((numbers.popLast() ?? 0) &- right)
            case .done: return
            case .need:
                if mode == .decode, !isProbing, isHopeless(Int(step.b)) {
                    isUnknown = true
                    if fast.needs[Int(step.b)].isMatch { values.append(.none) } else { numbers.append(0) }
                    pc = Int(step.c)
                }
            case .check, .match:
                if isProbing { return }
                if step.op == .check { check(step, pc - 1) } else { match(step, pc - 1) }
            case .note:
                context = (position, end)
                note(Int(step.c), parent)
                context = (0, 0)
            default:
                operate(step)
            }
        }
    }
}
