// SPDX-License-Identifier: MIT

/// One field as it was found: which field of which grammar, where, and its value when it is a number.
///
/// Leaves (spans without children) cover each buffer exactly once, in order within their parent.
public struct FieldSpan: Sendable, Equatable, BitwiseCopyable {
    /// The node of the program that says what it is.
    package var node: Int32
    /// The index of the enclosing span, or -1.
    public var parent: Int32
    /// The first bit, counted from the first bit of the buffer.
    public var startBit: UInt32
    /// How many bits.
    public var bitCount: UInt32
    /// The value of a number; the node of the alternative taken for a choice.
    public var value: UInt64
    /// The number of the buffer within the exchange.
    public var buffer: UInt16
    public var flags: SpanFlags

    @inline(__always)
    init(node: Int, parent: Int32, start: Int, count: Int, value: UInt64, buffer: UInt16, flags: SpanFlags) {
        self.node = Int32(truncatingIfNeeded: node)
        self.parent = parent
        self.startBit = UInt32(truncatingIfNeeded: start)
        self.bitCount = UInt32(truncatingIfNeeded: count)
        self.value = value
        self.buffer = buffer
        self.flags = flags
    }

    /// The first octet within the buffer.
    public var start: Int { Int(startBit >> 3) }
    /// The number of whole octets.
    public var count: Int { Int(bitCount >> 3) }
}

/// What is odd or special about a span.
public struct SpanFlags: OptionSet, Sendable, Equatable, BitwiseCopyable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }
    /// Has spans inside it, or would have if it were not empty.
    public static let composite = SpanFlags(rawValue: 1)
    /// Fewer octets were there than the grammar asks for.
    public static let truncated = SpanFlags(rawValue: 2)
    /// Written in a legal form that is not the shortest.
    public static let noncanonical = SpanFlags(rawValue: 4)
    /// Octets that no field claims.
    public static let gap = SpanFlags(rawValue: 8)
    /// A refinement gave it another enumeration; its number is in the annotation table of refinements.
    public static let refined = SpanFlags(rawValue: 16)
}

/// Where the octets of a buffer come from.
public struct DecodedBuffer: Sendable, Equatable, BitwiseCopyable {
    public enum Origin: UInt8, Sendable, BitwiseCopyable { case frame, opened, plain, gathered, remembered, unwrapped }
    public var origin: Origin
    /// Where it lies in ``Decoder/octets``.
    package var offset: Int
    /// Its length in octets.
    public var count: Int
    /// The span whose octets it was made from, or -1.
    public var source: Int32
    /// Whether it came with a command.
    public var isRequest: Bool
}

/// How bad an annotation is; the verdict of a frame is the worst.
public enum Severity: UInt8, Sendable, Comparable, CaseIterable {
    case note, warn, error
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    public var name: String {
        switch self {
        case .note: "note"
        case .warn: "warn"
        case .error: "error"
        }
    }
}

/// Whose fault it is.
public enum Blame: String, Sendable, CaseIterable { case program, card, reader, outside, trace }

/// What an annotation says.
public enum AnnotationCode: String, Sendable, CaseIterable {
    /// Fewer octets than the grammar asks for.
    case truncated
    /// A required field is absent.
    case missing
    /// Octets are left over.
    case surplus
    /// A value or tag that the grammar does not know.
    case unknown
    /// Legal, but not the canonical form.
    case noncanonical
    /// A check is false.
    case failed
    /// A check is true.
    case held
    /// There is no key.
    case sealed
    /// A transform rejected its input.
    case unopened
    /// A response without a request, or a second request.
    case unpaired
    /// An event that the state does not allow.
    case illegal
    /// Sources disagree on whether this is right.
    case contested
    /// Frames seem to be missing.
    case lost
    /// A remark of the grammar.
    case remark
}

/// A value of an annotation's text, kept until somebody asks for the text.
public enum AnnotationValue: Sendable, Equatable {
    case number(Int64)
    case octets([UInt8])
    case word(String)
    case unknown
}

/// One remark on a frame.
public struct Annotation: Sendable, Equatable {
    public var code: AnnotationCode
    public var severity: Severity
    public var blame: Blame?
    /// The span it speaks of, or -1 for the frame.
    public var span: Int32
    /// The exchange that shows the cause.
    public var see: Int?
    /// Where the grammar says so.
    public var place: GrammarPlace
    /// The template of the text in the program, or -1.
    package var template: Int32
    package var values: [AnnotationValue]
    /// What a failed match expected, and what was there; nil when a key would show.
    public var expected: [UInt8]?
    public var actual: [UInt8]?
    /// The near miss that fits.
    public var nearMiss: String?
    /// The check in the program that spoke, or -1.
    package var check: Int32

    init(
        _ code: AnnotationCode, _ severity: Severity, span: Int32 = -1, blame: Blame? = nil, see: Int? = nil,
        place: GrammarPlace = GrammarPlace(), template: Int = -1, values: [AnnotationValue] = [], check: Int = -1
    ) {
        self.code = code
        self.severity = severity
        self.blame = blame
        self.span = span
        self.see = see
        self.place = place
        self.template = Int32(truncatingIfNeeded: template)
        self.values = values
        self.check = Int32(truncatingIfNeeded: check)
    }
}
