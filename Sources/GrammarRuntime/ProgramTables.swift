// SPDX-License-Identifier: MIT

package struct ExchangeInfo: Sendable {
    package struct Refinement: Sendable {
        package var ofRequest: Bool
        package var slot: Int
        /// A root for octets, or an enumeration for a number.
        package var root: Int
        package var enumeration: Int
        package var condition: Int
        package init(ofRequest: Bool, slot: Int, root: Int, enumeration: Int, condition: Int) {
            (self.ofRequest, self.slot, self.root, self.enumeration, self.condition) = (
                ofRequest, slot, root, enumeration, condition
            )
        }
    }
    package var name: String
    package var label: String
    package var grammar: String
    package var request: Int
    package var response: Int
    package var condition = -1
    package var refinements: [Refinement] = []
    /// A template that tells a request from others of its kind, or -1.
    package var detail = -1
    package var place = GrammarPlace()
    package init(name: String, label: String, grammar: String, request: Int, response: Int) {
        (self.name, self.label, self.grammar, self.request, self.response) = (name, label, grammar, request, response)
    }
}

/// The exchanges of one kind of request, found by one of its fields.
package struct Dispatch: Sendable {
    package var root: Int
    package var slot: Int
    /// 256 lists for the values of the field and one for when it is absent; one list when `slot` is -1.
    package var lists: [[Int]]
    package init(root: Int, slot: Int, lists: [[Int]]) { (self.root, self.slot, self.lists) = (root, slot, lists) }
}

package struct SessionInfo: Sendable {
    package enum Event: Sendable, Equatable {
        case any
        case exchange(Int)
        case named(String)
    }
    package enum Outcome: Sendable, Equatable {
        case any, ok, error
        case errorNamed(String)
    }
    package enum Kind: UInt8, Sendable, BitwiseCopyable { case any, ok, error, named }

    package struct Transition: Sendable {
        package var events: [Event]
        /// Those of them that are exchanges.
        package var exchanges: [Int]
        package var takesAny: Bool
        package var outcome: Outcome
        package var condition = -1
        /// -1 stays.
        package var target = -1
        package var body = -1
        package var contested = -1
        package var place = GrammarPlace()
        package init(events: [Event], outcome: Outcome) {
            (self.events, self.outcome) = (events, outcome)
            exchanges = events.compactMap { if case .exchange(let number) = $0 { number } else { nil } }
            takesAny = events.contains(.any)
        }
    }
    package var name: String
    package var grammar: String
    package var states: [String] = []
    package var initial = 0
    package var transitions: [[Transition]] = []
    package var illegal = -1
    package var resyncs = false
    package var events: [String] = []
    /// By state: what a program may do there, for the text of an illegal event.
    package var allowed: [[String]] = []
    package var variables: [Int] = []
    package init(name: String, grammar: String) { (self.name, self.grammar) = (name, grammar) }
}

extension SessionInfo.Outcome {
    var kind: SessionInfo.Kind {
        switch self {
        case .any: .any
        case .ok: .ok
        case .error: .error
        case .errorNamed: .named
        }
    }
}

package struct LayerInfo: Sendable {
    package struct Clause: Sendable {
        package var root: Int
        package var condition = -1
        package var body = -1
        package var yields = false
        /// What an opened object's fields, or the outer message's, must be for the plain message to come out.
        package var equations: [Assignment] = []
        /// Outer fields fixed by the guard or by a check against a constant.
        package var fixed: [(slot: Int, value: UInt64)] = []
        /// Of those, the ones that must be there although the plain message may lack them.
        package var required: [Int] = []
        /// Plain fields that the outer message has too.
        package var keeps: [Int] = []
        /// Slots that a match fills in.
        package var matched: [Int] = []
        package var open = -1
        package init(root: Int) { self.root = root }
    }
    package var name: String
    package var grammar: String
    package var parameters: [Int] = []
    /// Whether nothing can be sealed by it.
    package var isReadOnly = false
    package var requests: [Clause] = []
    package var responses: [Clause] = []
    package init(name: String, grammar: String) { (self.name, self.grammar) = (name, grammar) }
}

package struct GatherInfo: Sendable {
    package var name: String
    package var grammar: String
    package var ofRequest: Bool
    package var root: Int
    package var part = -1
    package var more = -1
    package var next = -1
    package var yield = -1
    /// Which messages take part.
    package var condition = -1
    /// What the joined parts are read as, instead of a yield: then one part alone is a whole message too.
    package var decode = -1
    /// A field of the first part that the whole takes over; -1 for none.
    package var keep = -1
    /// Whether the parts of a request are joined before any layer opens them.
    package var isProtected = false
    package init(name: String, grammar: String, ofRequest: Bool, root: Int) {
        (self.name, self.grammar, self.ofRequest, self.root) = (name, grammar, ofRequest, root)
    }
}

package struct VariableInfo: Sendable {
    package var name: Int
    package var grammar: Int
    package var isGiven: Bool
    package var isTainted: Bool
    /// Whether it is a counter of a layer, which may be shown.
    package var isCounter = false
    /// Octets that it must have; 0 for any number.
    package var size = 0
    package init(name: Int, grammar: Int, isGiven: Bool, isTainted: Bool) {
        (self.name, self.grammar, self.isGiven, self.isTainted) = (name, grammar, isGiven, isTainted)
    }
}

package struct TransformInfo: Sendable {
    package var name: String
    package var parameters: Int
    package init(name: String, parameters: Int) { (self.name, self.parameters) = (name, parameters) }
}

package struct ExampleInfo: Sendable {
    package struct Frame: Sendable {
        package var isRequest: Bool
        package var octets: [UInt8]
        package init(isRequest: Bool, octets: [UInt8]) { (self.isRequest, self.octets) = (isRequest, octets) }
    }
    package enum Expectation: Sendable {
        case code(AnnotationCode, Int?)
        case field(path: String, octets: [UInt8])
    }
    package var name: String
    package var grammar: String
    package var exchange = -1
    package var root = -1
    package var givens: [(String, [UInt8])] = []
    package var frames: [Frame] = []
    package var expectations: [(Expectation, GrammarPlace)] = []
    package var place = GrammarPlace()
    package init(name: String, grammar: String) { (self.name, self.grammar) = (name, grammar) }
}

package struct GrammarInfo: Sendable {
    package var name: String
    package var citations: [String]
    package var file: Int
    package init(name: String, citations: [String], file: Int) {
        (self.name, self.citations, self.file) = (name, citations, file)
    }
}
