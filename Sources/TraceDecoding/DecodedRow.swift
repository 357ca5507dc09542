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
        /// Nothing to open.
        case plain
        /// Protected, and no key at hand.
        case sealed
        /// Opened, and its checks held.
        case opened
        /// The keys are at hand and a check does not hold.
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
    /// The message inside a protected one; nil when it was not opened, or holds a secret that is not to be shown.
    public var plain: [UInt8]?
    /// What was made from the row: what was opened, joined or unwrapped. Fields with a buffer above 0 lie in these.
    public var derived: [DerivedBuffer] = []
    /// Counters that the row's message authentication codes ran over.
    public var counters: [(name: String, octets: [UInt8])] = []
    /// A file that this row has brought to its end.
    public var file: DecodedFile?
    /// Whether the row is a command or answer under secure messaging.
    public var isProtected = false
    /// For a READ BINARY that was understood: where it read and how much was asked for.
    var read: ReadPlace?
    /// For a read of a file that has a name: `EF.COM`.
    public var fileName: String?
    /// The syslog line whose JSON twin says the same.
    public var isTwin = false
    /// Whether the card said that it did what was asked.
    public internal(set) var isSuccess = true

    /// Whether the row is a view that was made from others, of `plain:N`.
    public var isDerived: Bool { if case .plain = interface { true } else { false } }

    init(row: TraceRow, interface: InterfaceKind, kind: Kind) {
        self.row = row
        self.interface = interface
        self.kind = kind
    }
}

/// Octets that were made from a row.
public struct DerivedBuffer: Sendable, Equatable {
    public enum Origin: String, Sendable { case opened, plain, gathered, remembered, unwrapped }
    /// The number that fields call it by, from 1.
    public var number: Int
    public var origin: Origin
    /// Empty when they hold a secret that is not to be shown.
    public var octets: [UInt8]
    public var count: Int
    public var isRequest: Bool
}

/// A file of a card that was read to its end.
public struct DecodedFile: Sendable, Equatable {
    /// `EF.COM`.
    public var name: String
    public var octets: [UInt8]
    /// The exchanges that read it.
    public var exchanges: [UInt64]
    public var fields: [DecodedField]
}

/// One field of a row. Places count in bits from the first bit of their buffer; buffer 0 is the row's body.
public struct DecodedField: Sendable, Equatable {
    public enum Value: Sendable, Equatable {
        case number(UInt64)
        case octets([UInt8])
    }

    /// How the field is built.
    public enum Shape: Sendable, Equatable {
        case leaf
        /// Has fields inside it, which follow.
        case composite
        /// The tag and length of a data object.
        case header
        /// Octets that no field claims.
        case gap
    }

    public var path: String
    public var value: Value
    public var text: String
    public var buffer: Int
    public var start: Int
    public var bits: Int
    public var shape = Shape.leaf
    /// How many fields it lies in.
    public var depth = 0
    /// The grammar's own word for it; the last part of the path where there is none.
    public var label = ""
    /// Drawn at random by either side.
    public var isNonce = false
    /// Its octets are not shown.
    public var isSealed = false

    public init(path: String, value: Value, text: String, buffer: Int = 0, start: Int, bits: Int) {
        self.path = path
        self.value = value
        self.text = text
        self.buffer = buffer
        self.start = start
        self.bits = bits
    }
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

    /// `failed`, `held`, `sealed`: the words of the grammars' runtime; for errors of a reader the error's case.
    public var code: String
    public var severity: Severity
    public var text: String
    public var path: String?
    public var blame: Blame?
    /// The exchange that shows the cause.
    public var see: UInt64?
    /// The rule of a grammar that says so: file, line and column.
    public var rule: String?
    /// Whether a message authentication code was checked.
    public var isAuthentication = false
    /// For a code that failed: what was sent, and what had been right. Nil where a secret would show.
    public var sent: [UInt8]?
    public var expected: [UInt8]?
    /// What the code sent had been right for: `right for ctr +1`. The text ends with it.
    public var near: String?
    /// Index of the field in the row's fields.
    public var field: Int?

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
