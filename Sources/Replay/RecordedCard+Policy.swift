// SPDX-License-Identifier: MIT

import TagTransport
import TraceDecoding
import TraceFile

extension RecordedCard {
    /// The first thing that was not as recorded.
    enum Difference: Sendable {
        /// Another command than the recorded one.
        case command(step: Int, MatchDifference)
        /// The recorded structured call with another argument.
        case argument(step: Int, name: String, now: [String: JSONValue])
        /// Something of another kind: a reset where a command was recorded.
        case kind(step: Int, now: String, nowOctets: [UInt8]?)
        /// More than was recorded.
        case extra(now: [UInt8]?, what: String, recordedTimes: Int)
        /// The recording ends before the answer.
        case unanswered(step: Int)
    }

    /// What a card does with commands that come in another order, or were never recorded.
    struct Policy: Sendable {
        var order = ReplayOrder.strict
        var unrecorded = UnrecordedPolicy.stop
        /// The card that answers for ``UnrecordedPolicy/model``.
        var model: TraceModel?
        /// Told of each answer that was not recorded, while the command waits.
        var onGuess: (@Sendable (Guess) -> Void)?
        /// The grammars that commands are named by.
        var names = APDUFields.standard
    }

    /// A command that was not recorded, and what it was given.
    struct Guess: Sendable {
        /// The exchange before it.
        var after: UInt64?
        var command: String
        var answer: String
        var policy: String
    }
}
