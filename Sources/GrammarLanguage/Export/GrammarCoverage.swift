// SPDX-License-Identifier: MIT

import GrammarRuntime

/// Which parts of a set of grammars were met: alternatives, tags, transitions, and checks both ways.
///
/// Counted is what was seen to happen. A transition counts when a session moved as it says on its event; of several that say
/// the same, the first one. A derived field's check counts as held when the field was there and did not fail.
public struct GrammarCoverage: Sendable {
    public struct Item: Sendable, Equatable {
        public enum Kind: String, Sendable, CaseIterable { case alternative, tag, exchange, transition, checkHeld, checkFailed }
        public let kind: Kind
        public let grammar: String
        public let name: String
        public let line: Int
    }

    private let program: Program
    private let items: [Item]
    private var seen: Set<Int> = []
    private var nodeItems: [Int: Int] = [:]
    private var exchangeItems: [Int: Int] = [:]
    private var heldItems: [Int: Int] = [:]
    private var failedItems: [Int: Int] = [:]
    private var transitionItems: [[[Int]]] = []
    private var derivedChecks: [Int: Int] = [:]

    /// Nothing seen yet of `program`.
    public init(_ program: Program) {
        self.program = program
        var items: [Item] = []
        // A type that stands in several places has several nodes; what people wrote counts once, by its place.
        var byPlace: [String: Int] = [:]
        func add(_ kind: Item.Kind, _ name: String, _ place: GrammarPlace) -> Int {
            let key = "\(kind.rawValue) \(place.file):\(place.line):\(place.column)"
            if let index = byPlace[key] { return index }
            let grammar = program.grammars.first { $0.file == place.file }?.name ?? ""
            items.append(Item(kind: kind, grammar: grammar, name: name, line: place.line))
            byPlace[key] = items.count - 1
            return items.count - 1
        }
        for (index, node) in program.nodes.enumerated() where index > Int(Node.value) {
            if node.kind == .alternative {
                nodeItems[index] = add(.alternative, "\(program.path(index)).\(program.name(index))", node.place)
            }
            if node.kind == .tag { nodeItems[index] = add(.tag, program.path(index), node.place) }
        }
        for (index, info) in program.exchanges.enumerated() { exchangeItems[index] = add(.exchange, info.name, info.place) }
        for (index, info) in program.checks.enumerated() where info.code == .failed {
            let name =
                info.slot >= 0 && info.slot < program.slotNodes.count
                ? program.slotNodes[info.slot].first.map { program.path($0) } ?? "" : ""
            heldItems[index] = add(.checkHeld, name, info.place)
            failedItems[index] = add(.checkFailed, name, info.place)
        }
        for session in program.sessions {
            transitionItems.append(
                session.transitions.enumerated().map { state, list in
                    list.map { transition in
                        add(.transition, "\(session.name), line \(transition.place.line)", transition.place)
                    }
                })
        }
        for step in program.code where step.op == .same { derivedChecks[Int(step.b)] = Int(step.c) }
        self.items = items
    }

    /// Takes account of what the last push gave.
    ///
    /// - Parameters:
    ///   - before: the sessions' states before the push, from ``Decoder/sessions``.
    ///   - event: for an event its name.
    public mutating func add(
        _ decoder: Decoder, _ outcome: Decoder.Outcome, before: [(name: String, state: String)], event: String? = nil
    ) {
        var failed: Set<Int32> = []
        for annotation in decoder.annotations[outcome.annotations] where annotation.check >= 0 {
            if annotation.code == .held { meet(heldItems[Int(annotation.check)]) }
            if annotation.code == .failed {
                meet(failedItems[Int(annotation.check)])
                failed.insert(annotation.span)
            }
        }
        for index in outcome.spans {
            let span = decoder.spans[index]
            let node = program.nodes[Int(span.node)]
            meet(nodeItems[Int(span.node)])
            // A choice says which alternative it took, also inside a message without a field of its own for it.
            if node.kind == .choice || node.kind == .composite || node.kind == .root || node.kind == .tag {
                meet(nodeItems[Int(clamping: span.value)], if: .alternative)
            }
            if let check = derivedChecks[Int(span.node)], !failed.contains(Int32(index)), !span.flags.contains(.truncated) {
                meet(heldItems[check])
            }
        }
        if let exchange = outcome.exchange { meet(exchangeItems[exchange]) }
        for (number, after) in decoder.sessions.enumerated() where before.indices.contains(number) {
            move(number, from: before[number].state, to: after.state, outcome, event)
        }
    }

    private mutating func meet(_ item: Int?, if kind: Item.Kind? = nil) {
        guard let item, kind == nil || items[item].kind == kind else { return }
        seen.insert(item)
    }

    private mutating func move(_ number: Int, from: String, to: String, _ outcome: Decoder.Outcome, _ event: String?) {
        let session = program.sessions[number]
        guard let state = session.states.firstIndex(of: from), let target = session.states.firstIndex(of: to) else { return }
        for (index, transition) in session.transitions[state].enumerated() {
            let isMeant = transition.events.contains { candidate in
                switch candidate {
                case .any: event != nil
                case .exchange(let exchange): event == nil && exchange == outcome.exchange
                case .named(let name): name == event
                }
            }
            guard isMeant, (transition.target < 0 ? state : transition.target) == target else { continue }
            switch transition.outcome {
            case .ok where !outcome.isSuccess: continue
            case .error where outcome.isSuccess, .errorNamed where outcome.isSuccess: continue
            default: break
            }
            meet(transitionItems[number][state][index])
            return
        }
    }

    /// Decodes every example of the program.
    public mutating func addExamples() {
        for info in program.examples {
            var decoder = Decoder(program, secrets: Dictionary(info.givens) { first, _ in first })
            let request = info.exchange >= 0 ? program.exchanges[info.exchange].request : info.root
            let response = info.exchange >= 0 ? program.exchanges[info.exchange].response : info.root
            for (number, frame) in info.frames.enumerated() {
                let before = decoder.sessions
                let outcome =
                    frame.isRequest || info.exchange < 0
                    ? decoder.push(request: frame.octets, entry: frame.isRequest ? request : response, exchange: number + 1)
                    : decoder.push(response: frame.octets, entry: response, exchange: number)
                // A request alone fires no transition.
                add(decoder, outcome, before: frame.isRequest ? decoder.sessions.map { ($0.name, "") } : before)
            }
        }
    }

    /// How many of a kind were met in a grammar, or in all.
    public func count(_ kind: Item.Kind, in grammar: String? = nil) -> (met: Int, all: Int) {
        let those = items.indices.filter { items[$0].kind == kind && (grammar == nil || items[$0].grammar == grammar) }
        return (those.filter { seen.contains($0) }.count, those.count)
    }

    /// What was not met, in the order of the grammars.
    public var missing: [Item] { items.indices.filter { !seen.contains($0) }.map { items[$0] } }

    public var grammars: [String] { program.grammars.map(\.name).sorted() }
}
