// SPDX-License-Identifier: MIT

import CardCrypto
import Octets
import Synchronization
import TraceFile

/// What a replay hands out: random octets and times that were recorded, by label or kind and number; or fresh octets. Readers are
/// forbidden.
final class ReplayDraws: RandomSource, EnvironmentClock {
    private struct State {
        var drawn: [String: Int] = [:]
        var times: [String: Int] = [:]
        /// What was drawn that is not what was recorded.
        var fresh: [BoundValues.Draw] = []
        var failure: EnvironmentError?
    }

    private let call: Int
    private let entropy: ReplayEntropy
    private let secrets: SecretStore
    private let times: [String: [Int64]]
    private let state = Mutex(State())

    init(call: RecordedSession.Call, secrets: SecretStore, entropy: ReplayEntropy = .recorded) {
        self.call = call.row.id
        self.entropy = entropy
        self.secrets = secrets
        times = Dictionary(grouping: call.times, by: \.kind.rawValue).mapValues { $0.map(\.nanoseconds) }
    }

    /// The environment of a replay.
    func environment(keySink: (any KeySink)? = nil) -> CardEnvironment {
        CardEnvironment(random: self, clock: self, keySink: keySink, readersAllowed: false)
    }

    /// The first draw that could not be given.
    var failure: EnvironmentError? { state.withLock { $0.failure } }

    func octets(_ count: Int, label: String) throws(EnvironmentError) -> [UInt8] {
        try state.withLock { state throws(EnvironmentError) in
            let index = state.drawn[label, default: 0]
            state.drawn[label] = index + 1
            let recorded = secrets.entropy(call: call, label: label, index: index)
            let drawn: [UInt8]? =
                switch entropy {
                case .recorded: nil
                case .fresh: try SystemRandomSource().octets(count, label: label)
                case .seed(let seed): try Self.seeded(seed, label, index, count)
                }
            if let drawn {
                if state.fresh.count < Self.mostNoted { state.fresh.append(.init(recorded: recorded, now: drawn)) }
                return drawn
            }
            guard let octets = recorded else {
                throw fail(.drawNotRecorded, "\(label), draw \(index + 1): \(count) random bytes that were not recorded", &state)
            }
            guard octets.count == count else {
                throw fail(
                    .drawOfOtherLength, "\(label), draw \(index + 1): \(octets.count) bytes were recorded, \(count) are wanted",
                    &state)
            }
            return octets
        }
    }

    /// What was drawn in place of recorded octets, for values of the result that are such a draw.
    var boundValues: BoundValues { BoundValues(state.withLock { $0.fresh }) }

    private static let mostNoted = 10_000

    /// Octets that depend on nothing but these.
    private static func seeded(_ seed: UInt64, _ label: String, _ index: Int, _ count: Int) throws(EnvironmentError) -> [UInt8] {
        var octets: [UInt8] = []
        var block = 0
        while octets.count < count {
            let text = "tapdeck replay \(seed) \(label) \(index) \(block)"
            do { octets += try Digest.sha256.hash(Array(text.utf8)) } catch {
                throw EnvironmentError(code: .noRandom, detail: "\(error)")
            }
            block += 1
        }
        return Array(octets.prefix(count))
    }

    func nanoseconds(_ kind: ClockKind) throws(EnvironmentError) -> Int64 {
        try state.withLock { state throws(EnvironmentError) in
            let index = state.times[kind.rawValue, default: 0]
            if entropy != .recorded, let known = times[kind.rawValue], let last = known.last, index >= known.count {
                // Other random bytes may lead to another path through the library; time does not pass on it.
                return last
            }
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
