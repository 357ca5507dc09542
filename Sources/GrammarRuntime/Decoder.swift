// SPDX-License-Identifier: MIT

/// Reads one card connection, frame by frame, with a compiled program.
///
/// A decoder is a value: a copy is a snapshot. Spans, annotations and buffers of the last exchange (a request and its
/// response) are in ``spans``, ``annotations`` and ``buffers``; the next request replaces them, in the same storage.
public struct Decoder: Sendable {
    /// The machine at work; decoders share it until one of them moves.
    private final class Shared: @unchecked Sendable {
        let machine: UnsafeMutablePointer<Machine>

        init(_ machine: consuming Machine) {
            self.machine = .allocate(capacity: 1)
            self.machine.initialize(to: machine)
        }

        deinit {
            machine.deinitialize(count: 1)
            machine.deallocate()
        }
    }

    private var shared: Shared
    /// The layers that opened the last command, by their numbers: those that open its answer.
    private var used: UInt64 = 0

    package var machine: Machine {
        @inline(__always) unsafeAddress { UnsafePointer(shared.machine) }
        @inline(__always) unsafeMutableAddress {
            if !isKnownUniquelyReferenced(&shared) { shared = Shared(Machine(copying: shared.machine.pointee)) }
            return shared.machine
        }
    }

    /// A decoder of `program`.
    ///
    /// - Parameters:
    ///   - registry: where the transforms come from; those that are not found leave what they would open sealed.
    ///   - secrets: octets by the grammars' names, `bac.seed`; names that the program does not know are ignored.
    public init(
        _ program: Program, transforms registry: any TransformRegistry = StandardTransforms(), secrets: [String: [UInt8]] = [:]
    ) {
        shared = Shared(Machine(program, registry))
        for (name, octets) in secrets { give(name, octets) }
    }

    public var program: Program { machine.program }
    /// The spans of the exchange, a view of the decoder's own storage.
    public var spans: SpanList { SpanList(decoder: self) }
    public var annotations: [Annotation] { machine.annotations }
    public var buffers: [DecodedBuffer] { machine.buffers.all }
    /// Everything that is remembered between exchanges; setting it goes back to that moment.
    public var state: CardState {
        get { machine.state }
        set { machine.state = newValue }
    }
    /// Whether failed checks try the neighbours that the grammar names.
    public var triesNearMisses: Bool {
        get { machine.triesNearMisses }
        set { machine.triesNearMisses = newValue }
    }

    /// Gives a secret by its name. False, and nothing is changed, when the program has no such name or the grammar declares
    /// another length for it.
    @discardableResult
    public mutating func give(_ name: String, _ octets: [UInt8]) -> Bool {
        var known = false
        for index in machine.program.tables.variables.indices {
            let info = machine.program.tables.variables[index]
            guard info.isGiven else { continue }
            let full = "\(machine.program.tables.strings[info.grammar]).\(machine.program.tables.strings[info.name])"
            if full == name, info.size == 0 || info.size == octets.count {
                machine.givens[index] = octets
                if !machine.program.tables.layers.contains(where: { $0.parameters.contains(index) }) {
                    machine.state.variables[index] = Variable(value: .octets(octets), exchange: nil)
                }
                known = true
            }
        }
        return known
    }

    /// What one push added: ranges of ``spans``, ``annotations`` and ``buffers``.
    public struct Outcome: Sendable, Equatable {
        public var spans: Range<Int>
        public var annotations: Range<Int>
        public var buffers: Range<Int>
        /// The number of the exchange in the program, or nil; see ``Decoder/exchangeName(_:)``.
        public var exchange: Int?
        /// The exchange of what carried the request, when that is another kind of message: an APDU around a native command.
        public var carrier: Int?
        /// Whether the response means success, as far as the grammar says.
        public var isSuccess: Bool
        /// The worst severity among the annotations, notes apart.
        public var verdict: Severity
    }

    /// Reads a command, or any frame that begins something.
    ///
    /// - Parameters:
    ///   - entry: the kind of message, from ``Program/entry(named:)``.
    ///   - exchange: the number that annotations call it by.
    public mutating func push(request frame: [UInt8], entry: Int, exchange: Int = 0) -> Outcome {
        machine.beginRequest(exchange)
        guard machine.fast.roots.indices.contains(entry), let buffer = machine.addBuffer(frame, .frame, source: -1) else {
            return tooLong(0)
        }
        if machine.state.pending != nil { machine.annotate(.unpaired, .warn, span: -1) }
        machine.state.pending = nil
        machine.parse(root: entry, buffer: buffer)
        var root = entry
        var isInner = false
        if machine.fast.roots[root].joins, let carried = machine.join(root: root, request: true) {
            root = carried
            isInner = true
        }
        used = 0
        var isPart = false
        var outer = -1
        opening: while machine.fast.layers.count > 0 {
            if machine.fast.roots[root].gathersProtected {
                switch machine.gather(root: root, protected: true) {
                case .none: break
                case .part:
                    isPart = true
                    break opening
                case .whole(let whole, _): root = whole
                }
            }
            guard let plain = unwrap(root: root, request: true) else { break }
            // What another kind of message carries has an exchange of its own; the carrier's gives the frame's fields their names.
            if outer < 0, plain != root, let number = machine.findExchange(root) {
                outer = number
                machine.refine(number, request: true)
            }
            root = plain
        }
        if !isPart, machine.fast.roots[root].gathers, case .whole(let whole, _) = machine.gather(root: root, protected: false) {
            root = whole
        }
        let number = machine.findExchange(root)
        if let number { machine.refine(number, request: true) }
        machine.state.pending = CardState.Pending(exchange: number ?? -1, identifier: exchange, root: root, outer: outer)
        if let number, machine.fast.exchanges[number].response < 0 {
            // Nothing will answer, so it is done when it was sent.
            machine.state.pending = nil
            machine.fire(.exchange(number), outcome: .ok)
        }
        if isInner {
            machine.state.inner = CardState.Inner(
                command: machine.innermost(root), root: root, exchange: number ?? -1, identifier: exchange,
                carrier: machine.carrier)
        }
        var result = outcome(spans: 0, annotations: 0, buffers: 0, exchange: number, success: false)
        result.carrier = outer >= 0 ? outer : nil
        return result
    }

    /// Reads the answer to the last command.
    public mutating func push(response frame: [UInt8], entry: Int, exchange: Int = 0) -> Outcome {
        let entry = machine.fast.roots.indices.contains(entry) ? max(entry, machine.fast.roots[entry].twin) : entry
        guard var pending = machine.state.pending else {
            machine.beginRequest(exchange)
            machine.isInRequest = false
            guard machine.fast.roots.indices.contains(entry), let buffer = machine.addBuffer(frame, .frame, source: -1) else {
                return tooLong(0)
            }
            machine.parse(root: entry, buffer: buffer)
            machine.annotate(.unpaired, .warn, span: -1)
            return outcome(spans: 0, annotations: 0, buffers: 0, exchange: nil, success: false)
        }
        let start = (machine.spans.count, machine.annotations.count, machine.buffers.count)
        machine.isInRequest = false
        machine.exchange = exchange
        machine.state.pending = nil
        guard machine.fast.roots.indices.contains(entry), let buffer = machine.addBuffer(frame, .frame, source: -1) else {
            return tooLong(machine.spans.count)
        }
        machine.parse(root: entry, buffer: buffer)
        var root = entry
        if machine.fast.roots[root].joins, let carried = machine.join(root: root, request: false) {
            root = carried
            if let inner = machine.state.inner {
                if inner.identifier != pending.identifier || inner.root != pending.root {
                    // The answer was parsed already; its command comes back beside it.
                    machine.recall(inner)
                }
                pending = CardState.Pending(
                    exchange: inner.exchange, identifier: inner.identifier, root: inner.root, outer: pending.outer)
                machine.state.inner = nil
            }
        }
        if pending.outer >= 0 { machine.refine(pending.outer, request: false) }
        var number = pending.exchange
        while true {
            if machine.fast.roots[root].gathers {
                switch machine.gatherAnswer(root: root, pending: pending, layers: used) {
                case .none: break
                case .part:
                    return outcome(spans: start.0, annotations: start.1, buffers: start.2, exchange: number, success: true)
                case .whole(let whole, let owner): (root, number, used) = (whole, owner, machine.gatheredLayers)
                }
            }
            guard used != 0, let plain = unwrap(root: root, request: false) else { break }
            root = plain
        }
        let okCode = machine.fast.roots[root].okCode
        let success = okCode < 0 || machine.test(okCode)
        if number >= 0 {
            machine.refine(number, request: false)
            if machine.fast.exchanges[number].isHeard {
                machine.fire(.exchange(number), outcome: success ? .ok : .error)
            }
        }
        if pending.outer >= 0, pending.outer != number, machine.fast.exchanges[pending.outer].isHeard {
            machine.fire(.exchange(pending.outer), outcome: success ? .ok : .error)
        }
        return outcome(
            spans: start.0, annotations: start.1, buffers: start.2, exchange: number >= 0 ? number : nil, success: success)
    }

    /// Tells an event that is not a frame: a call's return, an error, `reset`.
    ///
    /// - Parameter values: what the event carries, by the names that the grammar uses: `call.data`, `return.data`, `elapsed`.
    public mutating func push(
        event name: String, isSuccess: Bool = true, error: String? = nil, values: [String: EventValue] = [:], exchange: Int = 0
    ) -> Outcome {
        machine.beginRequest(exchange)
        for (name, variable) in machine.program.tables.eventVariables {
            switch values[name] {
            case .number(let number)?: machine.state.variables[variable] = Variable(value: .number(number), exchange: exchange)
            case .octets(let octets)?: machine.state.variables[variable] = Variable(value: .octets(octets), exchange: exchange)
            case nil: machine.state.variables[variable] = Variable()
            }
        }
        if name == "reset" || name == "removal" {
            for layer in machine.state.layers { machine.stop(layer) }
            machine.state.pending = nil
            for index in machine.state.gathers.indices { machine.state.gathers[index] = CardState.GatherState() }
        }
        machine.fire(.named(name), outcome: isSuccess ? .ok : error.map { .errorNamed($0) } ?? .error)
        return outcome(spans: 0, annotations: 0, buffers: 0, exchange: nil, success: isSuccess)
    }

    /// A value that an event carries.
    public enum EventValue: Sendable, Equatable {
        case number(Int64)
        case octets([UInt8])
    }

    /// Tells the state that was seen from outside; it outranks the model. Returns false when there is no such session or state.
    @discardableResult
    public mutating func observe(session: String, state: String) -> Bool {
        guard let index = machine.program.tables.sessions.firstIndex(where: { $0.name == session }),
            let number = machine.program.tables.sessions[index].states.firstIndex(of: state)
        else { return false }
        machine.state.sessions[index] = number
        return true
    }

    private mutating func unwrap(root: Int, request: Bool) -> Int? {
        var layer = machine.fast.layers.count
        while layer > 0 {
            layer -= 1
            let mark: UInt64 = 1 << UInt64(layer & 63)
            if (used & mark != 0) == request { continue }
            let isActive = machine.state.layers.contains(layer)
            let info = machine.fast.layers[layer]
            for index in (request ? info.requests : info.responses).range {
                let clause = machine.fast.clauses[index]
                guard clause.root == root, !request || isActive || clause.yields, machine.tries(clause.condition) else {
                    continue
                }
                if request, !isActive { machine.startFromGiven(layer) }
                if request {
                    if clause.yields { used |= mark }
                } else {
                    used &= ~mark
                }
                machine.yielded = nil
                machine.runStatements(clause.body)
                let origin: DecodedBuffer.Origin = machine.fast.layers[layer].hasKeys ? .plain : .unwrapped
                guard let plain = machine.yielded, let buffer = machine.addBuffer(plain.octets, origin, source: plain.source)
                else {
                    return nil
                }
                machine.parse(root: plain.root, buffer: buffer)
                return plain.root
            }
        }
        return nil
    }

    private mutating func tooLong(_ start: Int) -> Outcome {
        machine.annotate(.lost, .error, span: -1)
        return outcome(
            spans: start, annotations: max(0, machine.annotations.count - 1), buffers: machine.buffers.count, exchange: nil,
            success: false)
    }

    private func outcome(spans: Int, annotations: Int, buffers: Int, exchange: Int?, success: Bool) -> Outcome {
        var worst = Severity.note
        var index = annotations
        while index < machine.annotations.count {
            if machine.annotations[index].severity > worst { worst = machine.annotations[index].severity }
            index += 1
        }
        return Outcome(
            spans: spans..<machine.spans.count, annotations: annotations..<machine.annotations.count,
            buffers: buffers..<machine.buffers.count, exchange: exchange, isSuccess: success, verdict: worst)
    }
}

/// The spans of a decoder's exchange, without a copy of them.
public struct SpanList: RandomAccessCollection, Sendable {
    fileprivate let decoder: Decoder

    public var startIndex: Int { 0 }
    public var endIndex: Int { decoder.machine.spans.count }
    public subscript(_ index: Int) -> FieldSpan {
        @inline(__always) get { decoder.machine.spans[index] }
    }
}
