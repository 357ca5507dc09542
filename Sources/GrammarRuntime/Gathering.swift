// SPDX-License-Identifier: MIT

/// Parts of a message that travel in several exchanges: command chaining, GET RESPONSE.
extension Machine {
    enum Gathered {
        case none
        case part
        case whole(root: Int, exchange: Int)
    }

    private static let longest = 1 << 20

    /// Keeps the part of a request that goes on; gives the kind of the whole message once it is there.
    mutating func gather(root: Int, request: Bool) -> Int? {
        for index in program.gathers.indices {
            guard program.gathers[index].ofRequest == request, program.gathers[index].root == root else { continue }
            let more = test(program.gathers[index].more)
            let pieces = state.gathers[index].pieces
            if pieces == 0, !more { continue }
            let info = program.gathers[index]
            if pieces > 0, !test(info.next) {
                annotate(.lost, .warn, span: -1)
                state.gathers[index] = CardState.GatherState()
                if !more { continue }
            }
            append(info.part, to: index)
            guard !more else { return nil }
            return complete(index)
        }
        return nil
    }

    mutating func gatherAnswer(root: Int, pending: CardState.Pending) -> Gathered {
        for index in program.gathers.indices {
            guard !program.gathers[index].ofRequest, program.gathers[index].root == root else { continue }
            let more = test(program.gathers[index].more)
            let pieces = state.gathers[index].pieces
            if pieces == 0, !more { continue }
            let info = program.gathers[index]
            if pieces > 0, !test(info.next) {
                annotate(.lost, .warn, span: -1)
                state.gathers[index] = CardState.GatherState()
                if !more { continue }
            }
            if state.gathers[index].pieces == 0 {
                state.gathers[index].command = plainCommand()
                state.gathers[index].commandRoot = pending.root
                state.gathers[index].exchange = pending.exchange
            }
            append(info.part, to: index)
            if more { return .part }
            let owner = state.gathers[index].exchange
            let (command, commandRoot) = (state.gathers[index].command, state.gathers[index].commandRoot)
            // The last part's fields are those that the whole takes over; the first command's fields come back after them.
            guard let answer = gathered(index) else { return .none }
            isInRequest = true
            if commandRoot >= 0, let buffer = addBuffer(command, .remembered, source: -1) { parse(root: commandRoot, buffer: buffer) }
            isInRequest = false
            guard let buffer = addBuffer(answer, .gathered, source: -1) else { return .none }
            parse(root: program.yields[info.yield].root, buffer: buffer)
            return .whole(root: program.yields[info.yield].root, exchange: owner)
        }
        return .none
    }

    private mutating func append(_ part: Int, to index: Int) {
        guard let range = valueRange(part) else {
            state.gathers[index].pieces += 1
            return
        }
        if state.gathers[index].octets.count + range.count <= Self.longest { state.gathers[index].octets += arena[range] }
        state.gathers[index].pieces += 1
    }

    /// The octets of the whole message; the gather is empty again.
    private mutating func gathered(_ index: Int) -> [UInt8]? {
        joined = state.gathers[index].octets
        state.gathers[index] = CardState.GatherState()
        yielded = nil
        execute(Instruction(.yield, b: program.gathers[index].yield))
        joined = []
        return yielded?.octets
    }

    private mutating func complete(_ index: Int) -> Int? {
        guard let octets = gathered(index), let buffer = addBuffer(octets, .gathered, source: -1) else { return nil }
        let root = program.yields[program.gathers[index].yield].root
        parse(root: root, buffer: buffer)
        return root
    }

    /// The octets of the innermost command of this exchange.
    private func plainCommand() -> [UInt8] {
        guard let buffer = buffers.last(where: { $0.isRequest && $0.origin != .opened }) else { return [] }
        return Array(arena[buffer.offset..<buffer.offset + buffer.count])
    }
}
