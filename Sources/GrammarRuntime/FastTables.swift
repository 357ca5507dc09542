// SPDX-License-Identifier: MIT

/// What the machine looks at for every message, flat: lists of lists are ranges of one list.
struct FastTables: Sendable {
    struct Span: Sendable, BitwiseCopyable {
        var start: Int32
        var count: Int32
        var range: Range<Int> { Int(start)..<Int(start) + Int(count) }
    }

    struct Root: Sendable, BitwiseCopyable {
        var node: Int
        var code: Int
        var okCode: Int
        var twin: Int
        var firstSlot: Int
        var slotCount: Int
        /// Its dispatch, or -1.
        var dispatch: Int
        var gathers: Bool
        /// Whether parts of it are joined before a layer opens them.
        var gathersProtected: Bool
        var joins: Bool
        var slots: Range<Int> { firstSlot..<firstSlot + slotCount }
    }

    struct Dispatch: Sendable, BitwiseCopyable {
        var slot: Int
        /// The first of its lists.
        var lists: Int
    }

    struct Exchange: Sendable, BitwiseCopyable {
        var response: Int
        var condition: Int
        var refinements: Span
        /// Whether some session has a transition for it.
        var isHeard: Bool
    }

    struct Refinement: Sendable, BitwiseCopyable {
        var slot: Int
        var root: Int
        var enumeration: Int
        var condition: Int
        var ofRequest: Bool
    }

    struct TagTable: Sendable, BitwiseCopyable {
        var entries: Span
        var dialect: Dialect
    }

    struct Tag: Sendable, BitwiseCopyable {
        var tag: UInt32
        var node: Int32
        var code: Int32
    }

    struct Gather: Sendable, BitwiseCopyable {
        var root: Int
        var part: Int
        var more: Int
        var condition: Int
        var decode: Int
        var ofRequest: Bool
        var keep: Int
        var isProtected: Bool
    }

    struct Layer: Sendable, BitwiseCopyable {
        var requests: Span
        var responses: Span
        var hasKeys: Bool
    }

    struct Clause: Sendable, BitwiseCopyable {
        var root: Int
        var condition: Int
        var body: Int
        var yields: Bool
    }

    struct Need: Sendable, BitwiseCopyable {
        /// Variables that must be known, and fields that must be there for that to matter.
        var variables: Span
        var slots: Span
        var isMatch: Bool
    }

    struct Move: Sendable, BitwiseCopyable {
        /// The number among the state's transitions.
        var transition: Int32
        var condition: Int32
        var outcome: SessionInfo.Kind
    }

    let code: Table<Instruction>
    /// What each check follows from.
    let needs: Table<Need>
    let needed: Table<Int32>
    /// For session, state and exchange, in this order: the transitions that wait for it.
    let waiting: Table<Span>
    let moves: Table<Move>
    /// Where a session's part of ``waiting`` begins.
    let sessions: Table<Int>
    let nodes: Table<Node>
    let constants: Table<Int64>
    let roots: Table<Root>
    let dispatches: Table<Dispatch>
    let lists: Table<Span>
    let listed: Table<Int32>
    let exchanges: Table<Exchange>
    let refinements: Table<Refinement>
    let tagTables: Table<TagTable>
    let tags: Table<Tag>
    let gathers: Table<Gather>
    let layers: Table<Layer>
    let clauses: Table<Clause>
    /// The entry of each value of an enumeration of up to eight bits, 256 an enumeration, or -1; -2 for those that are wider.
    let dense: Table<Int16>

    init(_ tables: ProgramTables) {
        code = Table(tables.code)
        nodes = Table(tables.nodes)
        constants = Table(tables.constants)
        roots = Table(
            tables.roots.indices.map { number in
                let root = tables.roots[number]
                return Root(
                    node: root.node, code: root.code, okCode: root.okCode, twin: root.twin, firstSlot: root.firstSlot,
                    slotCount: root.slotCount, dispatch: tables.dispatches.firstIndex { $0.root == number } ?? -1,
                    gathers: root.gathers, gathersProtected: root.gathersProtected, joins: root.joins)
            })
        var dispatches: [Dispatch] = []
        var lists: [Span] = []
        var listed: [Int32] = []
        for dispatch in tables.dispatches {
            dispatches.append(Dispatch(slot: dispatch.slot, lists: lists.count))
            for list in dispatch.lists {
                lists.append(Span(start: Int32(listed.count), count: Int32(list.count)))
                listed += list.map { Int32($0) }
            }
        }
        self.dispatches = Table(dispatches)
        self.lists = Table(lists)
        self.listed = Table(listed)
        var heard: Set<Int> = []
        for transition in tables.sessions.flatMap({ $0.transitions.flatMap { $0 } }) {
            heard.formUnion(transition.takesAny ? Array(tables.exchanges.indices) : transition.exchanges)
        }
        var refinements: [Refinement] = []
        exchanges = Table(
            tables.exchanges.indices.map { number in
                let info = tables.exchanges[number]
                let first = refinements.count
                refinements += info.refinements.map {
                    Refinement(
                        slot: $0.slot, root: $0.root, enumeration: $0.enumeration, condition: $0.condition,
                        ofRequest: $0.ofRequest)
                }
                return Exchange(
                    response: info.response, condition: info.condition,
                    refinements: Span(start: Int32(first), count: Int32(info.refinements.count)),
                    isHeard: heard.contains(number))
            })
        self.refinements = Table(refinements)
        var tags: [Tag] = []
        tagTables = Table(
            tables.tagTables.map { table in
                let first = tags.count
                tags += table.entries.map { Tag(tag: $0.tag, node: Int32($0.node), code: Int32($0.code)) }
                return TagTable(
                    entries: Span(start: Int32(first), count: Int32(table.entries.count)), dialect: table.dialect)
            })
        self.tags = Table(tags)
        gathers = Table(
            tables.gathers.map {
                Gather(
                    root: $0.root, part: $0.part, more: $0.more, condition: $0.condition, decode: $0.decode,
                    ofRequest: $0.ofRequest, keep: $0.keep, isProtected: $0.isProtected)
            })
        var clauses: [Clause] = []
        func spread(_ list: [LayerInfo.Clause]) -> Span {
            let first = clauses.count
            clauses += list.map { Clause(root: $0.root, condition: $0.condition, body: $0.body, yields: $0.yields) }
            return Span(start: Int32(first), count: Int32(list.count))
        }
        layers = Table(
            tables.layers.map {
                // A layer without parameters is a wrapping: it has nothing to hide.
                Layer(
                    requests: spread($0.requests), responses: spread($0.responses), hasKeys: !$0.parameters.isEmpty)
            })
        self.clauses = Table(clauses)
        var needed: [Int32] = []
        func remember(_ all: Set<Int>) -> Span {
            needed += all.sorted().map { Int32($0) }
            return Span(start: Int32(needed.count - all.count), count: Int32(all.count))
        }
        needs = Table(
            tables.checks.map { info in
                var (variables, slots): (Set<Int>, Set<Int>) = ([], [])
                var pc = info.expression
                while pc >= 0, pc < tables.code.count {
                    let step = tables.code[pc]
                    if step.op == .check || step.op == .match { break }
                    if step.op == .variable { variables.insert(Int(step.b)) }
                    if step.op == .slotNumber || step.op == .slotIs || step.op == .slotBytes { slots.insert(Int(step.b)) }
                    pc += 1
                }
                return Need(variables: remember(variables), slots: remember(slots), isMatch: info.isMatch)
            })
        self.needed = Table(needed)
        var (moves, waiting, starts): ([Move], [Span], [Int]) = ([], [], [])
        for session in tables.sessions {
            starts.append(waiting.count)
            for state in session.states.indices {
                let transitions = session.transitions.indices.contains(state) ? session.transitions[state] : []
                for exchange in tables.exchanges.indices {
                    let first = moves.count
                    for (number, transition) in transitions.enumerated()
                    where transition.takesAny || transition.exchanges.contains(exchange) {
                        moves.append(
                            Move(
                                transition: Int32(number), condition: Int32(transition.condition),
                                outcome: transition.outcome.kind))
                    }
                    waiting.append(Span(start: Int32(first), count: Int32(moves.count - first)))
                }
            }
        }
        self.moves = Table(moves)
        self.waiting = Table(waiting)
        sessions = Table(starts)
        dense = Table(
            tables.enumerations.flatMap { enumeration in
                enumeration.dense.count == 256 ? enumeration.dense : [Int16](repeating: -2, count: 256)
            })
    }

    func free() {
        needs.free()
        needed.free()
        waiting.free()
        moves.free()
        sessions.free()
        code.free()
        nodes.free()
        constants.free()
        roots.free()
        dispatches.free()
        lists.free()
        listed.free()
        exchanges.free()
        refinements.free()
        tagTables.free()
        tags.free()
        gathers.free()
        layers.free()
        clauses.free()
        dense.free()
    }
}
