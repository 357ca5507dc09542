// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets
import Synchronization
import TagTransport
import TraceDecoding
import TraceFile

/// The card side of a replay: it compares what it is asked with what was recorded and gives the recorded answer.
///
/// The first difference is kept; from then on nothing is answered any more, so that a library that goes on after an error
/// cannot blur where the two runs parted. Another policy than to stop answers commands that were not recorded, and notes each.
final class RecordedCard: Sendable {
    private struct State {
        /// The step that comes next in strict order: behind the last one that was served.
        var next = 0
        var served: [Bool]
        /// Exchanges that were never served.
        var exchangesLeft: Int
        /// The first step that was never served.
        var firstFree = 0
        var difference: Difference?
        var loose: LooseOrder?
        var model: TraceModel?
        var guesses: [Guess] = []
        /// Runs of steps that came before an earlier one, with that earlier one.
        var moved: [(steps: ClosedRange<Int>, before: Int)] = []
        var delay: UInt64 = 0
    }

    let transport: RecordedSession.Transport
    private let exchanges: Int
    private let matching: any Matching
    private let policy: Policy
    private let state: Mutex<State>

    init(_ transport: RecordedSession.Transport, matching: (any Matching)? = nil, policy: Policy = Policy()) {
        self.transport = transport
        let matching = matching ?? BytesMatching(transport)
        self.matching = matching
        self.policy = policy
        exchanges = transport.steps.count(where: \.isExchange)
        var state = State(served: [Bool](repeating: false, count: transport.steps.count), exchangesLeft: exchanges)
        if policy.order == .loose { state.loose = LooseOrder(transport.steps, matching) }
        if policy.unrecorded == .model { state.model = policy.model ?? TraceModel() }
        self.state = Mutex(state)
    }

    var difference: Difference? { state.withLock { $0.difference } }
    /// The step that stands next: behind the last one that was served.
    var next: Int { state.withLock { $0.next } }
    /// In strict order the steps that were asked for and answered; in any order those before the first that was not.
    var position: Int { state.withLock { $0.firstFree } }
    /// The steps that never came.
    var unserved: [Int] { state.withLock { state in state.served.indices.filter { !state.served[$0] } } }
    /// Exchanges that never came; asked for after each command, so it is kept rather than counted.
    var exchangesLeft: Int { state.withLock { $0.exchangesLeft } }
    var hasServedExchanges: Bool { exchangesLeft < exchanges }
    var guesses: [Guess] { state.withLock { $0.guesses } }
    var moved: [(steps: ClosedRange<Int>, before: Int)] { state.withLock { $0.moved } }

    /// How long the last answer took when it was recorded, in nanoseconds; 0 when it is asked for again.
    func takeDelay() -> UInt64 {
        state.withLock { state in
            defer { state.delay = 0 }
            return state.delay
        }
    }

    /// The error that a library gets after the first difference.
    static let stopped = TransportError(.tagConnectionLost, detail: "the replay has stopped: this is not what was recorded")

    func apdu(_ command: [UInt8]) throws(TransportError) -> [UInt8] {
        try give(
            take("a command APDU", command) { step in
                if case .apdu = step { return true }
                return false
            }
        )
    }

    func frame(_ frame: [UInt8]) throws(TransportError) -> [UInt8] {
        try give(
            take("a frame", frame) { step in
                if case .frame = step { return true }
                return false
            }
        )
    }

    func reset() throws(TransportError) -> [UInt8] {
        try event("a reset", unrecorded: transport.row.atr ?? []) { step in
            if case .reset(_, let atr) = step { return .success(atr) }
            if case .failedEvent(_, let error) = step { return .failure(error) }
            return nil
        }
    }

    func removal() throws(TransportError) {
        _ = try event("a removal") { step in
            if case .removal = step { return .success([]) }
            if case .failedEvent(_, let error) = step { return .failure(error) }
            return nil
        }
    }

    func control(code: UInt32, input: [UInt8]) throws(TransportError) -> [UInt8] {
        try event("control code \(code)") { step in
            if case .control(_, let recorded, let sent, let output) = step, recorded == Int(code), sent ?? input == input {
                return .success(output)
            }
            if case .failedEvent(_, let error) = step { return .failure(error) }
            return nil
        }
    }

    /// A structured call of a FeliCa or vicinity card: function and arguments must be as recorded.
    func structured(_ function: String, _ arguments: [String: JSONValue]) throws(TransportError) -> JSONValue? {
        let outcome: RecordedSession.StructuredOutcome = try state.withLock { state throws(TransportError) in
            let place = structuredPlace(function, arguments, state)
            let step = try current(&state, at: place, what: function, octets: nil)
            guard case .structured(_, function, let recorded, let outcome) = step else {
                throw differ(.kind(step: place, now: function, nowOctets: nil), &state)
            }
            if let name = recorded.difference(from: arguments) {
                throw differ(.argument(step: place, name: name, now: arguments), &state)
            }
            if case .notRecorded = outcome { throw differ(.unanswered(step: place), &state) }
            serve(place, &state)
            return outcome
        }
        switch outcome {
        case .result(let value): return value
        case .failure(let error): throw error
        case .notRecorded: throw Self.stopped
        }
    }

    /// In any order the nearest free call that is the same; else the next step.
    private func structuredPlace(_ function: String, _ arguments: [String: JSONValue], _ state: borrowing State) -> Int {
        guard policy.order == .loose else { return state.next }
        let fits = transport.steps.indices.filter { index in
            guard !state.served[index], case .structured(_, function, let recorded, _) = transport.steps[index] else {
                return false
            }
            return recorded.difference(from: arguments) == nil
        }
        let next = state.next
        return fits.min { abs($0 - next) < abs($1 - next) } ?? next
    }

    // MARK: - Steps

    private func take(
        _ what: String, _ octets: [UInt8], _ isOfKind: (RecordedSession.Step) -> Bool
    ) throws(TransportError) -> RecordedSession.Answer {
        try state.withLock { state throws(TransportError) in
            guard state.difference == nil else { throw Self.stopped }
            let command = matching.open(octets)
            var first: MatchDifference?
            if state.next < transport.steps.count, !state.served[state.next], isOfKind(transport.steps[state.next]) {
                first = matching.difference(of: command, from: state.next)
                if first == nil { return try answer(command, from: state.next, &state) }
            }
            if let place = elsewhere(command, isOfKind, &state) { return try answer(command, from: place, &state) }
            return try unrecorded(command, what, first, isOfKind, &state)
        }
    }

    /// A step that the order allows though it does not come next.
    private func elsewhere(
        _ command: OpenCommand, _ isOfKind: (RecordedSession.Step) -> Bool, _ state: inout State
    ) -> Int? {
        let steps = transport.steps
        if let loose = state.loose {
            let (served, next) = (state.served, state.next)
            return loose.place(
                of: command, near: next, isFree: { !served[$0] && isOfKind(steps[$0]) },
                isEqual: { matching.difference(of: command, from: $0) == nil })
        }
        // A run that has left the recording comes back to it where the next command is that of a later exchange.
        guard policy.unrecorded != .stop, policy.unrecorded != .next else { return nil }
        return steps.indices.dropFirst(state.next + 1).prefix(Self.farthestReturn).first {
            isOfKind(steps[$0]) && matching.difference(of: command, from: $0) == nil
        }
    }

    private func answer(_ command: OpenCommand, from place: Int, _ state: inout State) throws(TransportError)
        -> RecordedSession.Answer
    {
        let recorded = transport.steps[place].answer ?? .notRecorded
        if case .notRecorded = recorded { throw differ(.unanswered(step: place), &state) }
        serve(place, &state)
        state.loose?.take(command, status: recorded.status)
        state.model?.follow(command.plain, status: recorded.status)
        return matching.answer(to: command, from: place)
    }

    private func serve(_ place: Int, _ state: inout State) {
        if place > state.firstFree, policy.order == .loose { moved(place, &state) }
        if !state.served[place], transport.steps[place].isExchange { state.exchangesLeft -= 1 }
        state.served[place] = true
        state.next = place + 1
        while state.firstFree < state.served.count, state.served[state.firstFree] { state.firstFree += 1 }
        state.delay = transport.delays.indices.contains(place) ? transport.delays[place] : 0
    }

    private func moved(_ place: Int, _ state: inout State) {
        if let last = state.moved.last, last.steps.upperBound + 1 == place, last.before == state.firstFree {
            state.moved[state.moved.count - 1].steps = last.steps.lowerBound...place
        } else if state.moved.count < Self.mostNotes {
            state.moved.append((place...place, state.firstFree))
        }
    }

    /// - Parameter unrecorded: what a run gets that may leave the recording; nil when the event has to be there.
    private func event(
        _ what: String, unrecorded answer: [UInt8]? = nil, _ match: (RecordedSession.Step) -> Result<[UInt8], TransportError>?
    ) throws(TransportError) -> [UInt8] {
        let result: Result<[UInt8], TransportError> = try state.withLock { state throws(TransportError) in
            var place = state.next
            if policy.order == .loose,
                place >= transport.steps.count || state.served[place] || match(transport.steps[place]) == nil
            {
                let served = state.served
                place = transport.steps.indices.first { !served[$0] && match(transport.steps[$0]) != nil } ?? place
            }
            let isThere = place < transport.steps.count && match(transport.steps[place]) != nil
            if let answer, !isThere, policy.unrecorded != .stop, state.difference == nil {
                add(Guess(after: before(state.next), command: what, answer: "as asked", policy: policy.unrecorded.name), &state)
                lost(&state)
                return .success(answer)
            }
            let step = try current(&state, at: place, what: what, octets: nil)
            guard let result = match(step) else {
                throw differ(.kind(step: place, now: what, nowOctets: nil), &state)
            }
            if case .reset = step { lost(&state) }
            serve(place, &state)
            return result
        }
        return try result.get()
    }

    /// The card was reset where the recording has no reset: programs connect and leave in their own way.
    func unrecordedReset() { state.withLock { lost(&$0) } }

    /// The card has lost its power.
    private func lost(_ state: inout State) {
        matching.reset()
        state.loose?.reset()
        state.model?.powerOn()
    }

    private func current(
        _ state: inout State, at place: Int, what: String, octets: [UInt8]?
    ) throws(TransportError) -> RecordedSession.Step {
        guard state.difference == nil else { throw Self.stopped }
        guard place < transport.steps.count else { throw differ(extra(octets, what), &state) }
        return transport.steps[place]
    }

    private func extra(_ octets: [UInt8]?, _ what: String) -> Difference {
        let times = transport.steps.count { step in
            guard let octets else { return false }
            return step.command?.octets == octets
        }
        return .extra(now: octets, what: what, recordedTimes: times)
    }

    private func differ(_ difference: Difference, _ state: inout State) -> TransportError {
        state.difference = difference
        return Self.stopped
    }

    // MARK: - What was not recorded

    private func unrecorded(
        _ command: OpenCommand, _ what: String, _ first: MatchDifference?, _ isOfKind: (RecordedSession.Step) -> Bool,
        _ state: inout State
    ) throws(TransportError) -> RecordedSession.Answer {
        switch policy.unrecorded {
        case .stop: throw stop(command, what, first, isOfKind, &state)
        case .status(let word): return guess(command, StatusBytes(word).octets, "as asked", &state)
        case .next:
            guard state.next < transport.steps.count, isOfKind(transport.steps[state.next]) else {
                throw stop(command, what, first, isOfKind, &state)
            }
            let place = state.next
            note(command, "as exchange \(transport.steps[place].packet)", &state)
            return try answer(command, from: place, &state)
        case .nearest:
            let candidates = transport.steps.indices.filter { index in
                guard isOfKind(transport.steps[index]), case .response? = transport.steps[index].answer else { return false }
                return true
            }
            func likeness(_ index: Int) -> Int { Likeness.between(command.plain, matching.recorded(index) ?? []) }
            // Of equally near ones the one that is nearest in the recording.
            let next = state.next
            let best = candidates.map { ($0, likeness($0)) }.max { ($0.1, -abs($0.0 - next)) < ($1.1, -abs($1.0 - next)) }
            guard let (place, _) = best else { throw stop(command, what, first, isOfKind, &state) }
            note(command, "as exchange \(transport.steps[place].packet)", &state)
            let status = transport.steps[place].answer?.status
            state.loose?.take(command, status: status)
            return matching.answer(to: command, from: place)
        case .model:
            guard let answer = state.model?.answer(command.plain) else { throw stop(command, what, first, isOfKind, &state) }
            return guess(command, answer.octets, answer.isGuessed ? "guessed" : "as the trace shows", &state)
        }
    }

    private func guess(_ command: OpenCommand, _ response: [UInt8], _ why: String, _ state: inout State) -> RecordedSession.Answer
    {
        let status = response.count >= 2 ? Hex.encode(response.suffix(2)) : "nothing"
        note(command, response.count > 2 ? "\(response.count - 2) bytes and \(status), \(why)" : "\(status), \(why)", &state)
        state.loose?.take(command, status: response.count >= 2 ? UInt16(status, radix: 16) : nil)
        state.delay = 0
        return .response(RecordedSession.Octets(octets: matching.answer(to: command, with: response), frame: 0))
    }

    private func note(_ command: OpenCommand, _ answer: String, _ state: inout State) {
        add(
            Guess(
                after: before(state.next), command: policy.names.name(of: command.plain), answer: answer,
                policy: policy.unrecorded.name), &state)
    }

    private func add(_ guess: Guess, _ state: inout State) {
        guard state.guesses.count < Self.mostNotes else { return }
        state.guesses.append(guess)
        policy.onGuess?(guess)
    }

    /// The exchange before a place.
    private func before(_ place: Int) -> UInt64? {
        place > 0 && place <= transport.steps.count ? transport.steps[place - 1].packet : nil
    }

    private func stop(
        _ command: OpenCommand, _ what: String, _ first: MatchDifference?, _ isOfKind: (RecordedSession.Step) -> Bool,
        _ state: inout State
    ) -> TransportError {
        let steps = transport.steps
        if state.loose != nil {
            // The free step that is most like the command is the one that it is compared with.
            let free = steps.indices.filter { !state.served[$0] && isOfKind(steps[$0]) }
            let best = free.compactMap { index -> (Int, Int)? in
                matching.recorded(index).map { (index, Likeness.between(command.plain, $0)) }
            }.max { ($0.1, -$0.0) < ($1.1, -$1.0) }
            if let (place, likeness) = best, likeness >= 1000, let difference = matching.difference(of: command, from: place) {
                return differ(.command(step: place, difference), &state)
            }
            return differ(extra(command.plain, what), &state)
        }
        guard state.next < steps.count else { return differ(extra(command.octets, what), &state) }
        if let first { return differ(.command(step: state.next, first), &state) }
        return differ(.kind(step: state.next, now: what, nowOctets: command.octets), &state)
    }

    private func give(_ answer: RecordedSession.Answer) throws(TransportError) -> [UInt8] {
        switch answer {
        case .response(let octets): return octets.octets
        case .failure(let error, _): throw error
        case .notRecorded: throw Self.stopped
        }
    }

    /// How far a run that has left the recording is looked for.
    private static let farthestReturn = 4096
    private static let mostNotes = 1000
}

extension RecordedSession.Octets {
    /// Equal octet by octet, but where the secret is missing.
    func matches(_ other: [UInt8]) -> Bool {
        guard octets.count == other.count else { return false }
        if unknown.isEmpty { return octets == other }
        return octets.indices.allSatisfy { index in octets[index] == other[index] || unknown.contains { $0.contains(index) } }
    }
}
