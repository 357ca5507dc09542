// SPDX-License-Identifier: MIT

import TraceFile

/// One row of a trace with what it means.
public struct DecodedRow: Sendable {
    /// What a row is, as `show --json` names it.
    public enum Kind: String, Sendable {
        case command, response, frame, event, call
        case returned = "return"
        case entropy, state, error, mark, reader, transport, progress, clock
    }

    /// How a protected message stands.
    public enum Opening: Sendable, Equatable {
        case plain
        case sealed
        case opened
        case failed
    }

    public var row: TraceRow
    public var interface: InterfaceKind
    public var kind: Kind
    /// The row of JSON, for rows of `meta` and `reader:N`.
    public var meta: MetaRow?
    /// Octets of the body that stand as `00` for a secret.
    public var sealed: [Range<Int>] = []
    public var grammar = ""
    public var message = ""
    /// The row on one line. For a response it is what the answer says.
    public var summary = ""
    /// For a row that is no exchange: what stands in the answer column beside it.
    var answer = ""
    public var fields: [DecodedField] = []
    public var annotations: [Annotation] = []
    public var sessions: [(name: String, state: String)] = []
    public var opening: Opening = .plain
    /// The message inside a protected one.
    public var plain: [UInt8]?
    /// For a READ BINARY that was understood: where it read and how much was asked for.
    var read: ReadPlace?
    /// The syslog line whose JSON twin says the same.
    var isTwin = false
}

/// One field of a row. Places count in bits from the first bit of their buffer; buffer 0 is the row's body.
public struct DecodedField: Sendable, Equatable {
    public enum Value: Sendable, Equatable {
        case number(UInt64)
        case octets([UInt8])
    }

    public var path: String
    public var value: Value
    public var text: String
    public var buffer: Int
    public var start: Int
    public var bits: Int
}

/// Something to say about a row beside its fields.
public struct Annotation: Sendable, Equatable {
    public enum Severity: String, Sendable {
        case error, warn, note
    }

    /// Whose fault it is.
    public enum Blame: String, Sendable {
        case program, card, reader, outside, trace
    }

    public var code: String
    public var severity: Severity
    public var text: String
    public var path: String?
    public var blame: Blame?
    /// The exchange that shows the cause.
    public var see: UInt64?

    public init(
        code: String, severity: Severity, text: String, path: String? = nil, blame: Blame? = nil, see: UInt64? = nil
    ) {
        self.code = code
        self.severity = severity
        self.text = text
        self.path = path
        self.blame = blame
        self.see = see
    }
}

/// A read of part of a file.
struct ReadPlace: Sendable, Equatable {
    var offset: Int
    var length: Int
}
