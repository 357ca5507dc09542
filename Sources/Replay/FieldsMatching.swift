// SPDX-License-Identifier: MIT

import GrammarLibrary
import Octets
import Synchronization
import TraceDecoding
import TraceFile

/// Mode `fields`: every field of a command equal but those drawn at random, which bind at first sight and must recur.
///
/// Answers are given as they were recorded, so this mode is for sessions in which no answer depends on what the library drew.
final class FieldsMatching: Matching {
    private struct State {
        var decoder: TraceDecoder
        /// Numbers for the run's rows, above all that a trace can have, so that no recorded secret is put into them.
        var packet: UInt64 = 1 << 40
        /// The command that was opened last.
        var now: DecodedRow?
        /// What stands in this run for a recorded value.
        var bound: [[UInt8]: [UInt8]] = [:]
    }

    private let steps: [RecordedSession.Step]
    private let meaning: RecordedMeaning
    private let interface: Int
    private let grammars: GrammarLibrary?
    private let interfaces: [TraceInterface]
    private let secrets: SecretStore
    private let state: Mutex<State>

    /// - Returns: a failure when the recorded answers are bound to the random bytes of the recorded session.
    static func make(
        _ transport: RecordedSession.Transport, _ trace: Trace, _ secrets: SecretStore, _ grammars: GrammarLibrary?,
        _ meaning: RecordedMeaning
    ) -> Result<FieldsMatching, Blocked> {
        if let bound = meaning.bound {
            return .failure(
                Blocked(
                    reason: .boundAnswers(bound.packet),
                    text: "its answers are bound to its random bytes from exchange \(bound.packet) on, \(bound.what)"))
        }
        return .success(FieldsMatching(transport, trace, secrets, grammars, meaning))
    }

    private init(
        _ transport: RecordedSession.Transport, _ trace: Trace, _ secrets: SecretStore, _ grammars: GrammarLibrary?,
        _ meaning: RecordedMeaning
    ) {
        steps = transport.steps
        self.meaning = meaning
        self.grammars = grammars
        self.secrets = secrets
        interfaces = trace.interfaces
        let number = transport.row.id &- 1
        interface = trace.interfaces.firstIndex { $0.kind == .apdu(number) } ?? 0
        state = Mutex(State(decoder: Self.decoder(trace.interfaces, secrets, grammars)))
    }

    private static func decoder(_ interfaces: [TraceInterface], _ secrets: SecretStore, _ grammars: GrammarLibrary?)
        -> TraceDecoder
    {
        var decoder = TraceDecoder(interfaces: interfaces, secrets: secrets, showsSecrets: true, grammars: grammars)
        decoder.hidesPieces = false
        return decoder
    }

    func recorded(_ step: Int) -> [UInt8]? { steps[step].command?.octets }

    func open(_ command: [UInt8]) -> OpenCommand {
        state.withLock { state in
            state.packet &+= 1
            state.now = state.decoder.push(row(command, .sent, state.packet))
        }
        return OpenCommand(command)
    }

    private func row(_ octets: [UInt8], _ direction: RowDirection, _ packet: UInt64) -> TraceRow {
        TraceRow(time: 0, interface: interface, direction: direction, packetID: packet, dissector: "iso7816", body: octets)
    }

    func difference(of command: OpenCommand, from step: Int) -> MatchDifference? {
        guard let recorded = steps[step].command else { return nil }
        guard recorded.octets != command.octets else { return nil }
        let difference = MatchDifference(recorded: recorded, now: command.octets)
        guard case .apdu(let packet, _, _) = steps[step], let known = meaning.exchanges[packet]?.command
        else { return recorded.matches(command.octets) ? nil : difference }
        return state.withLock { state in
            guard let now = state.now else { return difference }
            guard let path = firstDifference(known, now, recorded.unknown, state.bound) else { return nil }
            return MatchDifference(recorded: recorded, now: command.octets, path: path)
        }
    }

    func answer(to command: OpenCommand, from step: Int) -> RecordedSession.Answer {
        let answer = steps[step].answer ?? .notRecorded
        guard case .response(var response) = answer, case .apdu(let packet, _, _) = steps[step],
            let known = meaning.exchanges[packet]
        else { return answer }
        return state.withLock { state in
            if let now = state.now { bind(known.command, now, &state.bound) }
            if let row = known.response { recur(row, in: &response.octets, state.bound) }
            _ = state.decoder.push(self.row(response.octets, .received, state.packet))
            return .response(response)
        }
    }

    func answer(to command: OpenCommand, with response: [UInt8]) -> [UInt8] {
        state.withLock { state in _ = state.decoder.push(row(response, .received, state.packet)) }
        return response
    }

    func reset() {
        state.withLock { state in
            state.decoder = Self.decoder(interfaces, secrets, grammars)
            state.now = nil
        }
    }

    // MARK: - Fields

    /// The leaves of the frame itself: what was made from it says nothing more.
    private func leaves(_ row: DecodedRow) -> [DecodedField] {
        row.fields.filter { $0.buffer == 0 && $0.shape != .composite && $0.bits > 0 }
    }

    /// The path of the first field that is not as recorded; nil when all are.
    private func firstDifference(
        _ recorded: DecodedRow, _ now: DecodedRow, _ unknown: [Range<Int>], _ bound: [[UInt8]: [UInt8]]
    ) -> String? {
        let (lefts, rights) = (leaves(recorded), leaves(now))
        guard !lefts.isEmpty, !rights.isEmpty else { return recorded.row.body == now.row.body ? nil : recorded.grammar }
        // A code over drawn values is another code for other values.
        let codes = bound.isEmpty ? [] : Set(recorded.annotations.filter(\.isAuthentication).compactMap(\.path))
        for place in 0..<max(lefts.count, rights.count) {
            guard place < lefts.count, place < rights.count else {
                return place < lefts.count ? lefts[place].path : rights[place].path
            }
            let (left, right) = (lefts[place], rights[place])
            guard left.path == right.path else { return right.path }
            let octets = left.start / 8..<(left.start + left.bits + 7) / 8
            if left.bits == right.bits, codes.contains(left.path) || unknown.contains(where: { $0.overlaps(octets) }) { continue }
            if !isEqual(left, right, bound) { return left.path }
        }
        return nil
    }

    private func isEqual(_ recorded: DecodedField, _ now: DecodedField, _ bound: [[UInt8]: [UInt8]]) -> Bool {
        guard case .octets(let left) = recorded.value, case .octets(let right) = now.value, left.count == right.count else {
            return recorded.value == now.value
        }
        if let known = bound[left] { return known == right }
        return recorded.isNonce || left == right
    }

    private func bind(_ recorded: DecodedRow, _ now: DecodedRow, _ bound: inout [[UInt8]: [UInt8]]) {
        for (left, right) in zip(leaves(recorded), leaves(now)) where left.isNonce && left.path == right.path {
            guard case .octets(let old) = left.value, case .octets(let new) = right.value, old.count == new.count else {
                continue
            }
            if bound[old] == nil { bound[old] = new }
        }
    }

    /// A drawn value that an answer gives back is that of this run.
    private func recur(_ row: DecodedRow, in octets: inout [UInt8], _ bound: [[UInt8]: [UInt8]]) {
        guard !bound.isEmpty else { return }
        for field in leaves(row) where field.start % 8 == 0 {
            guard case .octets(let value) = field.value, value.count >= 4, let now = bound[value] else { continue }
            let start = field.start / 8
            guard start <= octets.count, now.count <= octets.count - start else { continue }
            octets.replaceSubrange(start..<start + now.count, with: now)
        }
    }
}
