// SPDX-License-Identifier: MIT

public import GrammarLibrary
public import TraceFile

/// What must be equal for a run to be the same as its recording.
public enum ReplayMode: String, Sendable, CaseIterable {
    /// Every octet of every command. Needs the recorded random bytes.
    case bytes
    /// Every field but what was drawn at random and what is bound to it. For sessions whose answers hold for any random bytes.
    case fields
    /// The plain commands: the recorded card agrees on fresh keys and seals the recorded answers under them.
    case resealed
}

/// Where the random bytes of a run come from.
public enum ReplayEntropy: Sendable, Equatable {
    /// Those that were recorded, each by its label and number.
    case recorded
    /// The system's.
    case fresh
    /// Made from a number: the same in every run.
    case seed(UInt64)
}

/// In which order recorded exchanges may come.
public enum ReplayOrder: String, Sendable, CaseIterable {
    /// As they were recorded.
    case strict
    /// Any, as long as each command meets the file, the application and the rights that it met in the recording.
    case loose
}

/// What a command gets that is not in the recording, also when the recording is used up.
public enum UnrecordedPolicy: Sendable, Equatable {
    /// Nothing: the replay ends there.
    case stop
    /// This status word.
    case status(UInt16)
    /// The answer that stands at this place, whatever was asked.
    case next
    /// The answer to the recorded command that is most like it.
    case nearest
    /// What a card built from the trace says.
    case model

    /// `stop`, `next`, `nearest`, `model`, or a status word in four digits.
    public init?(_ text: String) {
        switch text {
        case "stop": self = .stop
        case "next": self = .next
        case "nearest": self = .nearest
        case "model": self = .model
        default:
            guard text.utf8.count == 4, let word = UInt16(text, radix: 16) else { return nil }
            self = .status(word)
        }
    }

    public var name: String {
        switch self {
        case .stop: "stop"
        case .next: "next"
        case .nearest: "nearest"
        case .model: "model"
        case .status(let word): StatusBytes(word).text
        }
    }
}

/// How a recording is played back.
public struct ReplayOptions: Sendable {
    /// Nil takes the strictest mode that the trace and its secrets allow.
    public var mode: ReplayMode?
    public var entropy = ReplayEntropy.recorded
    /// How many times as long as recorded an answer takes: 0 does not wait, 1 waits as long as the card did.
    public var timeScale = 0.0
    public var order = ReplayOrder.strict
    public var unrecorded = UnrecordedPolicy.stop
    /// Arguments of the call, each in place of the recorded one of that name.
    public var arguments: [String: JSONValue] = [:]
    /// Nil for the grammars built in.
    public var grammars: GrammarLibrary?

    public init() {}
}

/// A status word as its two octets.
struct StatusBytes: Sendable {
    var octets: [UInt8]

    init(_ word: UInt16) { octets = [UInt8(truncatingIfNeeded: word >> 8), UInt8(truncatingIfNeeded: word)] }

    var text: String {
        octets.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined()
    }
}
