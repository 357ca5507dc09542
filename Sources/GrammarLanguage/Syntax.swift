// SPDX-License-Identifier: MIT

import GrammarRuntime

/// A name with its place.
struct Name: Sendable, Equatable {
    var text: String
    var place: Place
    static func == (left: Self, right: Self) -> Bool { left.text == right.text }
}

struct SyntaxFile {
    var file = 0
    var grammar: Name?
    var uses: [Name] = []
    var citations: [Name] = []
    var declarations: [Declaration] = []
}

enum Declaration {
    case enumeration(EnumSyntax)
    case message(MessageSyntax)
    case tags(TagsSyntax)
    case choice(ChoiceSyntax)
    case exchange(ExchangeSyntax)
    case gather(GatherSyntax)
    case layer(LayerSyntax)
    case session(SessionSyntax)
    case transform(TransformSyntax)
    case example(ExampleSyntax)

    var name: Name {
        switch self {
        case .enumeration(let it): it.name
        case .message(let it): it.name
        case .tags(let it): it.name
        case .choice(let it): it.name
        case .exchange(let it): it.name
        case .gather(let it): it.name
        case .layer(let it): it.name
        case .session(let it): it.name
        case .transform(let it): it.name
        case .example(let it): it.subject
        }
    }

    var kind: String {
        switch self {
        case .enumeration: "enum"
        case .message: "message"
        case .tags: "tlv"
        case .choice: "choose"
        case .exchange: "exchange"
        case .gather: "gather"
        case .layer: "layer"
        case .session: "session"
        case .transform: "transform"
        case .example: "example"
        }
    }
}

struct EnumSyntax {
    struct Entry {
        var value: UInt64
        var mask: UInt64
        var name: Name
        var text: Name?
        var place: Place
    }
    var name: Name
    var bits = 8
    var isClosed = false
    var entries: [Entry] = []
}

struct MessageSyntax {
    var name: Name
    var items: [ItemSyntax] = []
    var ok: Expression?
}

enum ItemSyntax {
    case field(FieldSyntax)
    case check(CheckSyntax)
}

struct FieldSyntax {
    var name: Name
    var type: TypeSyntax
    var value: Expression?
    var condition: Expression?
    var isNonce = false
    var isSecret = false
    var label: Name?
}

struct BitSyntax {
    var name: Name
    var width: Int
    var type: Name?
    var value: Expression?
    var label: Name?
}

indirect enum TypeSyntax {
    case number(octets: Int, littleEndian: Bool, Place)
    case filling(Place)
    case bits(width: Int, [BitSyntax], Place)
    case octets(NodeKind, count: Expression?, inner: TypeSyntax?, Place)
    case list(count: Expression?, TypeSyntax, Place)
    case inline([ItemSyntax], Place)
    case tags([TagSyntax], Place)
    case named(grammar: Name?, Name)

    var place: Place {
        switch self {
        case .number(_, _, let place), .filling(let place), .bits(_, _, let place), .octets(_, _, _, let place),
            .list(_, _, let place),
            .inline(_, let place), .tags(_, let place):
            place
        case .named(_, let name): name.place
        }
    }
}

struct TagSyntax {
    var tag: UInt32
    var place: Place
    var name: Name
    var type: TypeSyntax?
    var isNonce = false
    var isSecret = false
    var label: Name?
}

struct TagsSyntax {
    var name: Name
    var dialect = Dialect.ber
    var entries: [TagSyntax] = []
}

struct ChoiceSyntax {
    struct Alternative {
        var condition: Expression?
        var name: Name
        var type: TypeSyntax
        var remark: (severity: Severity, text: Name)?
    }
    var name: Name
    var alternatives: [Alternative] = []
}

struct RefineSyntax {
    var path: Expression
    var type: TypeSyntax
    var condition: Expression?
}

struct ExchangeSyntax {
    var name: Name
    var label: Name?
    /// What tells one request from another, for one line.
    var detail: Name?
    var request: (grammar: Name?, name: Name)?
    var condition: Expression?
    var response: (grammar: Name?, name: Name)?
    var refinements: [RefineSyntax] = []
}

struct GatherSyntax {
    var name: Name
    var isRequest = false
    var type: (grammar: Name?, name: Name)?
    var condition: Expression?
    var decode: (grammar: Name?, name: Name)?
    /// Whether the parts are joined before a layer opens them.
    var isProtected = false
    var keep: Expression?
    var part: Expression?
    var more: Expression?
    var next: Expression?
    var result: YieldSyntax?
}

struct ParameterSyntax {
    var name: Name
    var type: Name
    var isGiven = false
}

struct LayerSyntax {
    /// Whether its messages are read and never written.
    var isReadOnly = false
    struct Clause {
        var isRequest: Bool
        var type: (grammar: Name?, name: Name)
        var condition: Expression?
        var statements: [Statement]
        var place: Place
    }
    var name: Name
    var parameters: [ParameterSyntax] = []
    var clauses: [Clause] = []
}

struct VariableSyntax {
    var name: Name
    var type: Name
    var size: Int?
    var isGiven: Bool
}

struct TransitionSyntax {
    var events: [Name]
    var outcome = SessionInfo.Outcome.any
    var condition: Expression?
    var target: Name
    var contested: Name?
    var statements: [Statement] = []
    var place: Place
}

struct SessionSyntax {
    struct State {
        var name: Name
        var isInitial = false
    }
    struct Block {
        /// Nil is any.
        var states: [Name]?
        var except: [Name] = []
        var transitions: [TransitionSyntax]
    }
    var name: Name
    var variables: [VariableSyntax] = []
    var events: [Name] = []
    /// Those of them that no program causes.
    var outside: Set<String> = []
    /// What events carry: `call.data`, `elapsed`.
    var carried: [ParameterSyntax] = []
    var states: [State] = []
    var blocks: [Block] = []
    var illegal: Name?
    var resyncs = false
}

struct TransformSyntax {
    var name: Name
    var parameters: [ParameterSyntax] = []
    var result: Name
    var inverse: Name?
}

struct ExampleSyntax {
    struct Given {
        var name: Name
        var octets: [UInt8]
    }
    enum Expectation {
        case code(Name, Int?)
        case field(Name, [UInt8])
    }
    var subject: Name
    var grammar: Name?
    var title: Name?
    var givens: [Given] = []
    var frames: [ExampleInfo.Frame] = []
    var expectations: [Expectation] = []
    var place: Place
}

// MARK: Statements and expressions

struct CheckSyntax {
    enum Near {
        case range(Name, ClosedRange<Int>)
        case values(Name, [Expression])
    }
    var predicate: Expression
    var severity = Severity.error
    var text: Name?
    var blame: Blame?
    var see: Name?
    var near: [Near] = []
    var place: Place
}

struct YieldSyntax {
    struct Assign {
        var path: Expression
        var value: Expression
        var condition: Expression?
    }
    var type: (grammar: Name?, name: Name)
    var assigns: [Assign] = []
    var place: Place
}

enum Statement {
    case bind(Name, Expression)
    case assign(Name, Expression)
    case bump(Name, Int)
    case open(Expression, transform: Expression?, Name, TypeSyntax)
    case check(CheckSyntax)
    case start(grammar: Name?, Name, [Expression], Place)
    case stop(Name?, Place)
    case yield(YieldSyntax)
    case note(Severity, Name)
    case decode(Expression, Expression, grammar: Name, Place)
}

indirect enum Expression {
    enum Operator: String {
        case or, and, equal = "==", unequal = "!=", less = "<", lessEqual = "<=", greater = ">", greaterEqual = ">=", add = "+",
            subtract = "-", or_ = "|", xor = "^", multiply = "*", and_ = "&", shiftLeft = "<<", shiftRight = ">>"
    }
    case number(UInt64, Place)
    case octets([UInt8], Place)
    case name(Name)
    case member(Expression, Name)
    case slice(Expression, Expression, Expression, Place)
    case call(Name, [Expression], Place)
    case span(Expression, Expression, Place)
    case not(Expression, Place)
    case binary(Operator, Expression, Expression, Place)

    var place: Place {
        switch self {
        case .number(_, let place), .octets(_, let place), .slice(_, _, _, let place), .call(_, _, let place),
            .span(_, _, let place),
            .not(_, let place), .binary(_, _, _, let place):
            place
        case .name(let name): name.place
        case .member(let base, let name): Place(file: name.place.file, start: base.place.start, end: name.place.end)
        }
    }
}
