// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets
import Synchronization
import TagTransport
import TraceFile

/// The card side of a replay: it compares what it is asked with what was recorded, in order, and gives the recorded answer.
///
/// The first difference is kept; from then on nothing is answered any more, so that a library that goes on after an error
/// cannot blur where the two runs parted.
final class RecordedCard: Sendable {
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

    private struct State {
        var next = 0
        var difference: Difference?
    }

    let transport: RecordedSession.Transport
    private let matching: any Matching
    private let state = Mutex(State())

    init(_ transport: RecordedSession.Transport, matching: (any Matching)? = nil) {
        self.transport = transport
        self.matching = matching ?? BytesMatching(transport)
    }

    var difference: Difference? { state.withLock { $0.difference } }
    /// The steps that were asked for and answered.
    var position: Int { state.withLock { $0.next } }

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
        try event("a reset") { step in
            if case .reset(_, let atr) = step {
                matching.reset()
                return .success(atr)
            }
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
            let step = try current(&state, what: function, octets: nil)
            guard case .structured(_, function, let recorded, let outcome) = step else {
                throw differ(.kind(step: state.next, now: function, nowOctets: nil), &state)
            }
            if let name = recorded.difference(from: arguments) {
                throw differ(.argument(step: state.next, name: name, now: arguments), &state)
            }
            if case .notRecorded = outcome { throw differ(.unanswered(step: state.next), &state) }
            state.next += 1
            return outcome
        }
        switch outcome {
        case .result(let value): return value
        case .failure(let error): throw error
        case .notRecorded: throw Self.stopped
        }
    }

    // MARK: - Steps

    private func take(
        _ what: String, _ octets: [UInt8], _ isOfKind: (RecordedSession.Step) -> Bool
    ) throws(TransportError) -> RecordedSession.Answer {
        try state.withLock { state throws(TransportError) in
            let step = try current(&state, what: what, octets: octets)
            guard isOfKind(step) else {
                throw differ(.kind(step: state.next, now: what, nowOctets: octets), &state)
            }
            let command = matching.open(octets)
            if let difference = matching.difference(of: command, from: state.next) {
                throw differ(.command(step: state.next, difference), &state)
            }
            if case .notRecorded = step.answer { throw differ(.unanswered(step: state.next), &state) }
            state.next += 1
            return matching.answer(to: command, from: state.next - 1)
        }
    }

    private func event(
        _ what: String, _ match: (RecordedSession.Step) -> Result<[UInt8], TransportError>?
    ) throws(TransportError) -> [UInt8] {
        let result: Result<[UInt8], TransportError> = try state.withLock { state throws(TransportError) in
            let step = try current(&state, what: what, octets: nil)
            guard let result = match(step) else {
                throw differ(.kind(step: state.next, now: what, nowOctets: nil), &state)
            }
            state.next += 1
            return result
        }
        return try result.get()
    }

    private func current(_ state: inout State, what: String, octets: [UInt8]?) throws(TransportError) -> RecordedSession.Step {
        guard state.difference == nil else { throw Self.stopped }
        guard state.next < transport.steps.count else {
            let times = transport.steps.count { step in
                guard let octets else { return false }
                return step.command?.octets == octets
            }
            throw differ(.extra(now: octets, what: what, recordedTimes: times), &state)
        }
        return transport.steps[state.next]
    }

    private func differ(_ difference: Difference, _ state: inout State) -> TransportError {
        state.difference = difference
        return Self.stopped
    }

    private func give(_ answer: RecordedSession.Answer) throws(TransportError) -> [UInt8] {
        switch answer {
        case .response(let octets): return octets.octets
        case .failure(let error, _): throw error
        case .notRecorded: throw Self.stopped
        }
    }
}

extension RecordedSession.Octets {
    /// Equal octet by octet, but where the secret is missing.
    func matches(_ other: [UInt8]) -> Bool {
        guard octets.count == other.count else { return false }
        if unknown.isEmpty { return octets == other }
        return octets.indices.allSatisfy { index in octets[index] == other[index] || unknown.contains { $0.contains(index) } }
    }
}

/// A recorded card of any kind.
class RecordedTransport: NFCTagTransport, CardConnection, @unchecked Sendable {
    // Unchecked for the sake of the subclasses alone: all stored properties are constant and Sendable.
    let card: RecordedCard
    let identifier: Data
    let readerName: String
    let atr: Data
    let protocolName = "recorded"

    init(_ card: RecordedCard) {
        self.card = card
        identifier = Data(card.transport.row.identifier ?? [])
        readerName = card.transport.readerName
        atr = Data(card.transport.row.atr ?? [])
    }

    func send(_ data: Data) async throws -> Data { Data(try card.frame(Array(data))) }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let octets = try card.apdu(apdu.octets)
        do { return try ResponseAPDU(bytes: octets) } catch {
            throw TransportError(.malformedResponse, detail: error.description)
        }
    }

    func resetCard() async throws -> Data { Data(try card.reset()) }
    func removeCard() async throws { try card.removal() }
    func control(code: UInt32, data: Data) async throws -> Data { Data(try card.control(code: code, input: Array(data))) }

    /// The transport for a recorded card, with the sub-protocols that the recorded one had.
    static func make(_ card: RecordedCard) -> RecordedTransport {
        switch card.transport.row.kind {
        case .iso7816: RecordedISO7816Transport(card)
        case .felica: RecordedFeliCaTransport(card)
        case .iso15693: RecordedISO15693Transport(card)
        case .raw: RecordedTransport(card)
        }
    }
}

final class RecordedISO7816Transport: RecordedTransport, ISO7816TagTransporting, @unchecked Sendable {
    var initialAID: String { Hex.encode(card.transport.row.initialAID ?? []) }
}
