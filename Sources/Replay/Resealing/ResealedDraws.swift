// SPDX-License-Identifier: MIT

import CardCrypto
import Octets
import Synchronization
import VirtualCards

/// Random octets for a run in place of those recorded: from a seed, a stream of its own for each label, so that another order or
/// a new draw elsewhere shifts nothing. Times are those that another clock tells.
final class SeededDraws: RandomSource, EnvironmentClock {
    private let seed: UInt64
    private let clock: any EnvironmentClock
    private let streams = Mutex<[String: CardRandom]>([:])

    init(seed: UInt64, clock: any EnvironmentClock) {
        self.seed = seed
        self.clock = clock
    }

    func octets(_ count: Int, label: String) throws(EnvironmentError) -> [UInt8] {
        streams.withLock { streams in
            streams[label, default: CardRandom(seed: seed, use: "replay \(label)")].octets(count)
        }
    }

    func nanoseconds(_ kind: ClockKind) throws(EnvironmentError) -> Int64 { try clock.nanoseconds(kind) }
}
