// SPDX-License-Identifier: MIT

/// How a replay went.
public struct ReplayReport: Sendable {
    public enum Verdict: Sendable {
        /// Every command and the result are as recorded, as far as the mode, the order and the policy ask.
        case same
        case differs(Divergence)
        /// The replay could not be tried.
        case blocked(Blocked)
    }

    public var mode = ReplayMode.bytes
    /// Exchanges of the recording.
    public var exchanges = 0
    /// Seconds that the library took.
    public var seconds = 0.0
    public var verdict: Verdict
    /// Exchanges with sealed octets that were not compared, since their secret is not at hand.
    public var notCompared = 0
    /// The recording ends before its call returned, so that its result was not compared.
    public var endsEarly = false
    /// Commands that were not recorded, each with what it was given.
    public var unrecorded: [Unrecorded] = []
    /// Runs of exchanges that came before an earlier one.
    public var moved: [Moved] = []
    /// What the mode cannot make anew and answers as it was recorded.
    public var notes: [String] = []
    /// Recorded exchanges that never came, where the policy lets a run leave the recording.
    public var skipped = 0

    /// A command that was not recorded, and its answer by the policy.
    public struct Unrecorded: Sendable, Equatable {
        /// The exchange before it; nil before the first.
        public var after: UInt64?
        public var command: String
        /// `6A82, guessed`, `as exchange 12`.
        public var answer: String
        public var policy: String
    }

    /// Exchanges that came before one that stands before them in the recording.
    public struct Moved: Sendable, Equatable {
        public var exchanges: ClosedRange<UInt64>
        public var before: UInt64
    }

    public var isSame: Bool {
        if case .same = verdict { return true }
        return false
    }
}

/// Why a replay could not be tried: what is missing, where it was looked for, and what helps.
public struct Blocked: Error, Sendable, Equatable {
    public enum Reason: Sendable, Equatable {
        /// Random octets that the session drew are not at hand; the first that is wanted.
        case entropy(String)
        /// An argument of the call is sealed and its secret is not at hand.
        case argument(String)
        /// The recorded answers, from this exchange on, hold for the recorded random octets alone.
        case boundAnswers(UInt64)
        /// The answers cannot be sealed afresh.
        case notResealed
        /// The trace is of a format that this version does not know.
        case laterFormat(Int)
        /// There is nothing to compare.
        case empty
        /// A password or key that the recorded card needs is not at hand.
        case key(String)
        /// The trace holds no call of a flow.
        case noCall
        /// The flow is not known to this version.
        case unknownFlow(String)
        /// The call was made by a program's own code.
        case callFromCode(String)
    }

    public var reason: Reason
    /// For people: what is missing.
    public var text: String
    /// Arguments of the call, by name, with any of which it can be replayed under fresh random bytes.
    public var helps: [String] = []

    public init(reason: Reason, text: String, helps: [String] = []) {
        self.reason = reason
        self.text = text
        self.helps = helps
    }
}

/// Where and how the library's behaviour parted from the recording.
public struct Divergence: Error, Sendable, CustomStringConvertible {
    public enum Kind: Sendable, Equatable {
        /// Another command than the recorded one.
        case command
        /// Recorded exchanges that never came.
        case missing(count: Int)
        /// A command that is not in the trace.
        case extra
        /// A command that was recorded, and was asked once more.
        case again(recordedTimes: Int)
        /// Something else was done: a reset where a command was recorded.
        case kind
        /// All exchanges are the same and the result is not.
        case result
        /// The library drew or read the time when the recording did not.
        case draw
        /// The recording ends before the answer.
        case unanswered
    }

    /// What differs, on one line.
    public struct Field: Sendable, Equatable {
        /// `iso7816.command.le`, `result.dataGroupReadStatus.dg1`.
        public var path: String
        /// `byte 45 of 46`; empty for a result.
        public var place: String
        public var recorded: String
        public var now: String
        /// What each means, where that is more than its digits: `40 bytes`.
        public var recordedMeaning: String
        public var nowMeaning: String

        public init(
            path: String, place: String, recorded: String, now: String, recordedMeaning: String = "", nowMeaning: String = ""
        ) {
            self.path = path
            self.place = place
            self.recorded = recorded
            self.now = now
            self.recordedMeaning = recordedMeaning
            self.nowMeaning = nowMeaning
        }
    }

    /// A line of the recording beside the place: what `show` prints of it.
    public struct Line: Sendable, Equatable {
        public var number: UInt64
        public var what: String
        public var answer: String

        public init(number: UInt64, what: String, answer: String) {
            self.number = number
            self.what = what
            self.answer = answer
        }
    }

    public var kind: Kind
    /// The exchange where the runs part; nil when it lies after the last one.
    public var packet: UInt64?
    /// Its frame number in Wireshark.
    public var frame: Int?
    /// How many exchanges were the same before it.
    public var sameBefore: Int
    public var exchanges: Int
    /// The number of the recording's last line.
    public var lastPacket: UInt64
    public var field: Field?
    /// The recording's lines before and after it.
    public var before: Line?
    public var subject: String
    public var after: Line?
    /// What the library threw, when it threw by itself: once the replay has stopped, every error is of its making.
    public var thrown: String?
    /// Rows of the trace whose own checks fail, and which are therefore likely the cause.
    public var causes: [String]
    /// Further notes.
    public var notes: [String]

    public var description: String {
        var text = "differs at exchange \(packet.map { "\($0)" } ?? "after the last"): \(subject)"
        if let field { text += "; \(field.path) \(field.place): recorded \(field.recorded), now \(field.now)" }
        return text
    }
}
