// SPDX-License-Identifier: MIT

/// Parts of a message that travel in several exchanges: command chaining, GET RESPONSE.
extension Machine {
    enum Gathered {
        case none
        case part
        case whole(root: Int, exchange: Int)
    }

    private static let longest = 1 << 20

    /// Joins blocks; gives the kind of the message that they carry once it is there.
    mutating func join(root: Int, request: Bool) -> Int? {
        for index in fast.gathers.indices where fast.gathers[index].decode >= 0 {
            guard fast.gathers[index].ofRequest == request, fast.gathers[index].root == root,
                test(fast.gathers[index].condition)
            else { continue }
            if !request {
                // Several grammars may carry their messages in one kind of block: an answer is read by the one that read its
                // command, and is a block like others when none did.
                guard let inner = state.inner,
                    program.tables.gathers[inner.carrier].grammar == program.tables.gathers[index].grammar
                else { continue }
            }
            let info = program.tables.gathers[index]
            carrier = index
            if state.gathers[index].pieces > 0, !test(info.next) { drop(index) }
            append(info.part, to: index)
            if test(info.more) { return nil }
            let octets = state.gathers[index].octets
            let source = slots[info.part]
            let isSingle = state.gathers[index].pieces == 1
            state.gathers[index] = CardState.GatherState()
            if isSingle, source >= 0, !spans[Int(source)].flags.contains(.composite) {
                // One block holds it all: it is read where it stands.
                let range = valueRange(span: source)
                spans[Int(source)].flags.insert(.composite)
                parse(
                    root: info.decode, buffer: Int(spans[Int(source)].buffer), from: range.lowerBound, to: range.upperBound,
                    parent: source)
                return info.decode
            }
            guard let buffer = addBuffer(octets, .gathered, source: source) else { return nil }
            parse(root: info.decode, buffer: buffer)
            return info.decode
        }
        return nil
    }

    /// Brings back the fields of the command that blocks carried before.
    mutating func recall(_ inner: CardState.Inner) {
        isInRequest = true
        if let buffer = addBuffer(inner.command, .remembered, source: -1) { parse(root: inner.root, buffer: buffer) }
        isInRequest = false
    }

    /// Keeps the part of a request that goes on; gives the kind of the whole message once it is there.
    ///
    /// - Parameter protected: whether this is before a layer opens the message, or after.
    mutating func gather(root: Int, protected: Bool) -> Gathered {
        for index in fast.gathers.indices where fast.gathers[index].decode < 0 {
            guard fast.gathers[index].ofRequest, fast.gathers[index].root == root,
                fast.gathers[index].isProtected == protected
            else { continue }
            let pieces = state.gathers[index].pieces
            let more = goesOn(index)
            if pieces == 0, !more { continue }
            let info = program.tables.gathers[index]
            if pieces > 0, !test(info.next) {
                drop(index)
                if !more { continue }
            }
            if state.gathers[index].pieces == 0 { state.gathers[index].kept = keptOctets(index) }
            append(info.part, to: index)
            return more ? .part : complete(index).map { .whole(root: $0, exchange: -1) } ?? .none
        }
        return .none
    }

    /// Whether the message at work is a part that others follow; the condition may ask for what has come so far.
    private mutating func goesOn(_ index: Int) -> Bool {
        guard fast.gathers[index].isProtected else { return test(fast.gathers[index].more) }
        let part = valueRange(fast.gathers[index].part).map { arena.array($0) } ?? []
        let isFirst = state.gathers[index].pieces == 0
        joined = isFirst ? part : state.gathers[index].octets + part
        kept = isFirst ? keptOctets(index) : state.gathers[index].kept
        let more = test(fast.gathers[index].more)
        (joined, kept) = ([], [])
        return more
    }

    private func keptOctets(_ index: Int) -> [UInt8] {
        let slot = fast.gathers[index].keep
        return slot >= 0 && slots[slot] >= 0 ? slotOctets(slot) : []
    }

    mutating func gatherAnswer(root: Int, pending: CardState.Pending, layers: UInt64) -> Gathered {
        for index in fast.gathers.indices where fast.gathers[index].decode < 0 {
            guard !fast.gathers[index].ofRequest, fast.gathers[index].root == root else { continue }
            let more = test(fast.gathers[index].more)
            let pieces = state.gathers[index].pieces
            if pieces == 0, !more { continue }
            let info = program.tables.gathers[index]
            if pieces > 0, !test(info.next) {
                drop(index)
                if !more { continue }
            }
            if state.gathers[index].pieces == 0 {
                state.gathers[index].command = plainCommand()
                state.gathers[index].commandRoot = pending.root
                state.gathers[index].exchange = pending.exchange
                state.gathers[index].layers = layers
            }
            append(info.part, to: index)
            if more { return .part }
            let owner = state.gathers[index].exchange
            gatheredLayers = state.gathers[index].layers
            let (command, commandRoot) = (state.gathers[index].command, state.gathers[index].commandRoot)
            // The last part's fields are those that the whole takes over; the first command's fields come back after them.
            guard let answer = gathered(index) else { return .none }
            isInRequest = true
            if commandRoot >= 0, let buffer = addBuffer(command, .remembered, source: -1) {
                parse(root: commandRoot, buffer: buffer)
            }
            isInRequest = false
            guard let buffer = addBuffer(answer, .gathered, source: -1) else { return .none }
            parse(root: program.tables.yields[info.yield].root, buffer: buffer)
            return .whole(root: program.tables.yields[info.yield].root, exchange: owner)
        }
        return .none
    }

    /// The rest of a message did not come; what there is of it is forgotten.
    private mutating func drop(_ index: Int) {
        annotate(
            .lost, .warn, span: -1,
            values: [
                .number(Int64(state.gathers[index].octets.count)),
                .word(fast.gathers[index].ofRequest ? "a command" : "an answer"),
            ])
        state.gathers[index] = CardState.GatherState()
    }

    private mutating func append(_ part: Int, to index: Int) {
        guard let range = valueRange(part) else {
            state.gathers[index].pieces += 1
            return
        }
        if state.gathers[index].octets.count + range.count <= Self.longest { state.gathers[index].octets += arena.array(range) }
        state.gathers[index].pieces += 1
    }

    /// The octets of the whole message; the gather is empty again.
    private mutating func gathered(_ index: Int) -> [UInt8]? {
        joined = state.gathers[index].octets
        kept = state.gathers[index].kept
        state.gathers[index] = CardState.GatherState()
        yielded = nil
        execute(Instruction(.yield, b: program.tables.gathers[index].yield))
        (joined, kept) = ([], [])
        return yielded?.octets
    }

    private mutating func complete(_ index: Int) -> Int? {
        guard let octets = gathered(index), let buffer = addBuffer(octets, .gathered, source: -1) else { return nil }
        let root = program.tables.yields[program.tables.gathers[index].yield].root
        parse(root: root, buffer: buffer)
        return root
    }

    /// The octets of the innermost command of this exchange.
    func plainCommand() -> [UInt8] {
        var index = buffers.count - 1
        while index >= 0, !buffers[index].isRequest || buffers[index].origin == .opened { index -= 1 }
        guard index >= 0 else { return [] }
        return arena.array(buffers[index].offset..<buffers[index].offset + buffers[index].count)
    }

    /// The octets of the last message that was read as `root`.
    func innermost(_ root: Int) -> [UInt8] {
        let node = Int32(truncatingIfNeeded: program.tables.roots[root].node)
        var span = spans.count - 1
        while span >= 0, spans[span].node != node { span -= 1 }
        guard span >= 0 else { return [] }
        return arena.array(rawRange(span: Int32(truncatingIfNeeded: span)))
    }
}
