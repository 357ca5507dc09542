// SPDX-License-Identifier: MIT

import TagTransport

/// What a replay asks for when it compares, and how the recorded answers come into the run: one type a mode.
///
/// The recorded card asks under its lock: each command of the run is opened once, compared with one or more recorded steps, and
/// answered once. Steps are numbers among the transport's steps.
protocol Matching: AnyObject, Sendable {
    /// The recorded command of a step in the form in which it is compared; nil for what is no exchange of octets.
    func recorded(_ step: Int) -> [UInt8]?

    /// A command of the run in the form in which it is compared.
    func open(_ command: [UInt8]) -> OpenCommand

    /// Where a command differs from a recorded one; nil when they are equal in this mode.
    ///
    /// It must not change anything: with `--order loose` and the nearest answer many steps are asked.
    func difference(of command: OpenCommand, from step: Int) -> MatchDifference?

    /// What the run gets for a command that equals the recorded one of `step`: what was recorded, or what stands for it now.
    ///
    /// What the mode keeps (nonces bound, counters, the state of a channel) moves on here.
    func answer(to command: OpenCommand, from step: Int) -> RecordedSession.Answer

    /// A response that is not in the recording, as the run must see it: sealed under the live keys where a channel is open.
    func answer(to command: OpenCommand, with response: [UInt8]) -> [UInt8]

    /// The card loses its power: keys and selections are gone.
    func reset()
}

/// A command of the run.
struct OpenCommand: Sendable {
    /// As it came.
    var octets: [UInt8]
    /// As it is compared: the plain command, where a channel was opened; else as it came.
    var plain: [UInt8]
    /// Why it could not be opened, in words: a MAC that is wrong under the live keys.
    var failure: String?

    init(_ octets: [UInt8], plain: [UInt8]? = nil, failure: String? = nil) {
        self.octets = octets
        self.plain = plain ?? octets
        self.failure = failure
    }
}

/// Where a command of the run differs from a recorded one.
struct MatchDifference: Sendable {
    /// Both commands in the form in which they were compared.
    var recorded: RecordedSession.Octets
    var now: [UInt8]
    /// The first field that differs, where the mode knows it: `desfire.readData.length`; else it is found by the octets.
    var path: String?

    init(recorded: RecordedSession.Octets, now: [UInt8], path: String? = nil) {
        self.recorded = recorded
        self.now = now
        self.path = path
    }
}

/// Mode `bytes`: every octet equal, but where a secret is missing.
final class BytesMatching: Matching {
    private let steps: [RecordedSession.Step]

    init(_ transport: RecordedSession.Transport) { steps = transport.steps }

    func recorded(_ step: Int) -> [UInt8]? { steps[step].command?.octets }

    func open(_ command: [UInt8]) -> OpenCommand { OpenCommand(command) }

    func difference(of command: OpenCommand, from step: Int) -> MatchDifference? {
        guard let recorded = steps[step].command else { return nil }
        return recorded.matches(command.octets) ? nil : MatchDifference(recorded: recorded, now: command.octets)
    }

    func answer(to command: OpenCommand, from step: Int) -> RecordedSession.Answer { steps[step].answer ?? .notRecorded }

    func answer(to command: OpenCommand, with response: [UInt8]) -> [UInt8] { response }

    func reset() {}
}

extension RecordedSession.Step {
    /// The command of an exchange of octets.
    var command: RecordedSession.Octets? {
        switch self {
        case .apdu(_, let command, _), .frame(_, let command, _): command
        default: nil
        }
    }

    /// The answer of an exchange of octets.
    var answer: RecordedSession.Answer? {
        switch self {
        case .apdu(_, _, let answer), .frame(_, _, let answer): answer
        default: nil
        }
    }
}
