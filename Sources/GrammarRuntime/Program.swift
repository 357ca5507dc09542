// SPDX-License-Identifier: MIT

/// What a compiled set of grammars is while it is made: one flat list of instructions and the tables beside it.
package struct ProgramTables: Sendable {
    package var code: [Instruction] = []
    package var nodes: [Node] = []
    package var strings: [String] = []
    package var constants: [Int64] = []
    package var literals: [[UInt8]] = []
    package var enumerations: [Enumeration] = []
    package var tagTables: [TagTable] = []
    package var choices: [Choice] = []
    package var checks: [CheckInfo] = []
    package var templates: [Template] = []
    package var opens: [OpenInfo] = []
    package var yields: [YieldInfo] = []
    package var decodes: [DecodeInfo] = []
    package var roots: [RootInfo] = []
    package var exchanges: [ExchangeInfo] = []
    package var sessions: [SessionInfo] = []
    package var layers: [LayerInfo] = []
    package var gathers: [GatherInfo] = []
    package var variables: [VariableInfo] = []
    package var transforms: [TransformInfo] = []
    package var examples: [ExampleInfo] = []
    package var grammars: [GrammarInfo] = []
    package var files: [String] = []
    package var slotCount = 0
    package var dispatches: [Dispatch] = []
    /// The nodes that share each slot.
    package var slotNodes: [[Int]] = []
    /// Variables that an event sets, by name: `call.data`, `elapsed`.
    package var eventVariables: [String: Int] = [:]

    package init() {}
}

/// A compiled set of grammars: it never changes, and can be kept, sent and shared.
public final class Program: @unchecked Sendable {
    package let tables: ProgramTables
    let fast: UnsafeMutablePointer<FastTables>

    package init(_ tables: ProgramTables) {
        self.tables = tables
        fast = .allocate(capacity: 1)
        fast.initialize(to: FastTables(tables))
    }

    deinit {
        fast.pointee.free()
        fast.deallocate()
    }

    package var code: [Instruction] { tables.code }
    package var nodes: [Node] { tables.nodes }
    package var strings: [String] { tables.strings }
    package var constants: [Int64] { tables.constants }
    package var literals: [[UInt8]] { tables.literals }
    package var enumerations: [Enumeration] { tables.enumerations }
    package var tagTables: [TagTable] { tables.tagTables }
    package var choices: [Choice] { tables.choices }
    package var checks: [CheckInfo] { tables.checks }
    package var templates: [Template] { tables.templates }
    package var opens: [OpenInfo] { tables.opens }
    package var yields: [YieldInfo] { tables.yields }
    package var decodes: [DecodeInfo] { tables.decodes }
    package var roots: [RootInfo] { tables.roots }
    package var exchanges: [ExchangeInfo] { tables.exchanges }
    package var sessions: [SessionInfo] { tables.sessions }
    package var layers: [LayerInfo] { tables.layers }
    package var gathers: [GatherInfo] { tables.gathers }
    package var variables: [VariableInfo] { tables.variables }
    package var transforms: [TransformInfo] { tables.transforms }
    package var examples: [ExampleInfo] { tables.examples }
    package var grammars: [GrammarInfo] { tables.grammars }
    package var files: [String] { tables.files }
    package var slotCount: Int { tables.slotCount }
    package var dispatches: [Dispatch] { tables.dispatches }
    package var slotNodes: [[Int]] { tables.slotNodes }
    package var eventVariables: [String: Int] { tables.eventVariables }

    /// The kinds of message that a decoder can be given, as `iso7816.Command`.
    public var entryNames: [String] { tables.roots.filter(\.isEntry).map(\.name) }

    /// The number of the kind of message that `name` says, `iso7816.Command`; nil when there is none.
    public func entry(named name: String) -> Int? { tables.roots.firstIndex { $0.isEntry && $0.name == name } }

    /// The names of the secrets that a decoder can be given: `bac.seed`.
    public var givenNames: [String] { tables.givenNames }
}

extension ProgramTables {
    package var givenNames: [String] {
        variables.filter(\.isGiven).map { "\(strings[Int($0.grammar)]).\(strings[Int($0.name)])" }
    }
}

/// A place in a grammar: file, line and column, each from 1 but the file's number.
public struct GrammarPlace: Sendable, Equatable {
    public var file: Int
    public var line: Int
    public var column: Int

    public init(file: Int = 0, line: Int = 0, column: Int = 0) {
        self.file = file
        self.line = line
        self.column = column
    }
}

/// What a span shows.
package enum NodeKind: UInt8, Sendable, BitwiseCopyable {
    case number, bits, bit, octets, text, decimal, composite, choice, alternative, tag, header, value, root, gap, filler,
        unknownTag
}

package struct NodeFlags: OptionSet, Sendable, BitwiseCopyable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    /// Drawn at random by either side.
    package static let nonce = NodeFlags(rawValue: 1)
    /// Never shown.
    package static let secret = NodeFlags(rawValue: 2)
    /// Takes no part in a path.
    package static let unnamed = NodeFlags(rawValue: 4)
    package static let derived = NodeFlags(rawValue: 8)
    package static let closedEnum = NodeFlags(rawValue: 16)
    package static let optional = NodeFlags(rawValue: 32)
    /// Says how long another field is.
    package static let counting = NodeFlags(rawValue: 64)
}

/// One field at one place of one message: what its spans mean.
package struct Node: Sendable, BitwiseCopyable {
    package var name: Int32 = 0
    package var label: Int32 = -1
    package var parent: Int32 = -1
    package var enumeration: Int32 = -1
    package var slot: Int32 = -1
    package var kind: NodeKind = .octets
    package var flags: NodeFlags = []
    /// Octets (for bits: bits) of a field of fixed size; 0 when it varies.
    package var size: UInt16 = 0
    package var line: Int32 = 0
    package var column: Int16 = 0
    package var file: Int16 = 0
    package var grammar: Int32 = 0

    package init() {}
    package var place: GrammarPlace { GrammarPlace(file: Int(file), line: Int(line), column: Int(column)) }
}

package struct Enumeration: Sendable {
    package struct Entry: Sendable {
        package var value: UInt64
        /// Bits that count; all of them for an exact value.
        package var mask: UInt64
        package var name: Int
        package var text: String
        /// Whether the text has a place for the bits that do not count.
        package let hasHole: Bool
        package init(value: UInt64, mask: UInt64, name: Int, text: String) {
            (self.value, self.mask, self.name, self.text) = (value, mask, name, text)
            hasHole = text.contains("{")
        }
    }
    package var name: String
    package var bits: Int
    package var isClosed: Bool
    package var entries: [Entry]
    /// For enumerations of up to eight bits: the entry of each value, or -1.
    private(set) var dense: [Int16] = []
    /// Else: exact values in order with their entries.
    private var values: [UInt64] = []
    private var owners: [Int] = []
    private var masked: [Int] = []

    package init(name: String, bits: Int, isClosed: Bool, entries: [Entry]) {
        (self.name, self.bits, self.isClosed, self.entries) = (name, bits, isClosed, entries)
        let all: UInt64 = bits >= 64 ? .max : (1 << UInt64(bits)) - 1
        let exact = entries.indices.filter { entries[$0].mask & all == all }.sorted { entries[$0].value < entries[$1].value }
        masked = entries.indices.filter { entries[$0].mask & all != all }
        values = exact.map { entries[$0].value }
        owners = exact
        if bits <= 8 {
            dense = (0..<256).map { value in Int16(truncatingIfNeeded: search(UInt64(value)) ?? -1) }
        }
    }

    /// The entry for `value`: an exact one before a masked one, masked ones in order.
    @inline(__always)
    package func find(_ value: UInt64) -> Int? {
        if bits <= 8, value < 256 {
            let entry = dense[Int(value)]
            return entry < 0 ? nil : Int(entry)
        }
        return search(value)
    }

    private func search(_ value: UInt64) -> Int? {
        var low = 0
        var high = values.count
        while low < high {
            let middle = (low + high) / 2
            if values[middle] < value { low = middle + 1 } else { high = middle }
        }
        if low < values.count, values[low] == value { return owners[low] }
        for index in masked where value & entries[index].mask == entries[index].value { return index }
        return nil
    }
}

package enum Dialect: UInt8, Sendable, BitwiseCopyable { case ber, simple, compact }

package struct TagTable: Sendable {
    package struct Entry: Sendable {
        package var tag: UInt32
        package var node: Int
        /// Where the value's instructions begin; -1 for plain octets.
        package var code: Int
        package init(tag: UInt32, node: Int, code: Int) { (self.tag, self.node, self.code) = (tag, node, code) }
    }
    package var dialect: Dialect
    package var entries: [Entry]
    package init(dialect: Dialect, entries: [Entry]) { (self.dialect, self.entries) = (dialect, entries) }

    @inline(__always)
    package func find(_ tag: UInt32) -> Int? {
        for index in entries.indices where entries[index].tag == tag { return index }
        return nil
    }
}

package struct Choice: Sendable {
    package struct Alternative: Sendable {
        package var node: Int
        package var code: Int
        /// Slots of its fields, and of those that must be given.
        package var slots: [Int]
        package var required: [Int]
        /// Nodes with a fixed size, which a given value must fit.
        package var fields: [Int]
        package init(node: Int, code: Int, slots: [Int], required: [Int], fields: [Int]) {
            (self.node, self.code, self.slots, self.required, self.fields) = (node, code, slots, required, fields)
        }
    }
    package var alternatives: [Alternative] = []
    package init() {}
}

/// What a template is made of.
package enum TemplatePiece: Sendable, Equatable {
    case text(String)
    case number(code: Int)
    case octets(code: Int)
    case exchange(variable: Int)
    case word(String)
}

package typealias Template = [TemplatePiece]

package struct NearClause: Sendable {
    package enum Candidates: Sendable {
        case offsets(ClosedRange<Int>)
        /// Expressions, with what each is called.
        case values([(code: Int, name: String)])
    }
    package var variable: Int
    package var name: String
    package var candidates: Candidates
    package init(variable: Int, name: String, candidates: Candidates) {
        (self.variable, self.name, self.candidates) = (variable, name, candidates)
    }
}

package struct CheckInfo: Sendable {
    package var code: AnnotationCode = .failed
    package var severity: Severity = .error
    package var template: Int = -1
    package var blame: Blame?
    package var see: Int = -1
    package var near: [NearClause] = []
    package var place = GrammarPlace()
    /// Where the predicate, or the right side of a match, begins.
    package var expression = -1
    package var isTainted = false
    /// The slot whose field the check speaks of; -1 for none.
    package var slot = -1
    /// Whether it compares the slot with octets that follow from others.
    package var isMatch = false
    package init() {}
}

package struct OpenInfo: Sendable {
    package var slot: Int
    package var root: Int
    package var hasTransform: Bool
    package init(slot: Int, root: Int, hasTransform: Bool) {
        (self.slot, self.root, self.hasTransform) = (slot, root, hasTransform)
    }
}

package struct Assignment: Sendable {
    package var slot: Int
    /// Instructions that leave octets; -1 copies the slot in `source`.
    package var code: Int
    package var source: Int
    package var condition: Int
    package init(slot: Int, code: Int, source: Int, condition: Int) {
        (self.slot, self.code, self.source, self.condition) = (slot, code, source, condition)
    }
}

package struct YieldInfo: Sendable {
    package var root: Int
    package var assignments: [Assignment]
    package init(root: Int, assignments: [Assignment]) { (self.root, self.assignments) = (root, assignments) }
}

/// A command and a response that an event carries.
package struct DecodeInfo: Sendable {
    package var request: Int
    package var response: Int
    package init(request: Int, response: Int) { (self.request, self.response) = (request, response) }
}

/// Something that a parse can begin with.
package struct RootInfo: Sendable {
    package var name: String
    package var node: Int
    package var code: Int
    package var isEntry: Bool
    package var okCode = -1
    /// The same message as a response, when it is a request too: its fields stand apart.
    package var twin = -1
    /// Whether parts of it are gathered, or carry another message.
    package var gathers = false
    package var gathersProtected = false
    package var joins = false
    package var firstSlot = 0
    package var slotCount = 0
    package init(name: String, node: Int, code: Int, isEntry: Bool) {
        (self.name, self.node, self.code, self.isEntry) = (name, node, code, isEntry)
    }
}
