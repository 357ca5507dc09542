// SPDX-License-Identifier: MIT

import CardCrypto
import Synchronization
import TraceFile

/// What a replay hands out again: random octets by label and number, times by kind and number. Readers are forbidden.
final class ReplayDraws: RandomSource, EnvironmentClock {
    private struct State {
        var drawn: [String: Int] = [:]
        var times: [String: Int] = [:]
        var given = 0
        var failure: EnvironmentError?
    }

    private let call: Int
    private let secrets: SecretStore
    private let times: [String: [Int64]]
    private let state = Mutex(State())

    init(call: RecordedSession.Call, secrets: SecretStore) {
        self.call = call.row.id
        self.secrets = secrets
        times = Dictionary(grouping: call.times, by: \.kind.rawValue).mapValues { $0.map(\.nanoseconds) }
    }

    /// The environment of a replay.
    var environment: CardEnvironment { CardEnvironment(random: self, clock: self, keySink: nil, readersAllowed: false) }

    /// The first draw that could not be given.
    var failure: EnvironmentError? { state.withLock { $0.failure } }

    func octets(_ count: Int, label: String) throws(EnvironmentError) -> [UInt8] {
        try state.withLock { state throws(EnvironmentError) in
            let index = state.drawn[label, default: 0]
            state.drawn[label] = index + 1
            guard let octets = secrets.entropy(call: call, label: label, index: index) else {
                throw fail(.drawNotRecorded, "\(label), draw \(index + 1): \(count) random bytes that were not recorded", &state)
            }
            guard octets.count == count else {
                throw fail(
                    .drawOfOtherLength, "\(label), draw \(index + 1): \(octets.count) bytes were recorded, \(count) are wanted",
                    &state)
            }
            state.given += 1
            return octets
        }
    }

    func nanoseconds(_ kind: ClockKind) throws(EnvironmentError) -> Int64 {
        try state.withLock { state throws(EnvironmentError) in
            let index = state.times[kind.rawValue, default: 0]
            guard let known = times[kind.rawValue], index < known.count else {
                throw fail(
                    .timeNotRecorded, "the \(kind.rawValue) time was read \(index + 1) times, it was recorded \(index) times",
                    &state)
            }
            state.times[kind.rawValue] = index + 1
            return known[index]
        }
    }

    private func fail(_ code: EnvironmentError.Code, _ detail: String, _ state: inout State) -> EnvironmentError {
        let error = EnvironmentError(code: code, detail: detail)
        if state.failure == nil { state.failure = error }
        return error
    }
}
