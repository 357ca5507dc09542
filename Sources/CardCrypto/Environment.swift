// SPDX-License-Identifier: MIT

import Glibc
public import Octets

/// What the library may take from the world: random octets, time, readers; and where it tells the keys it agreed on.
///
/// One environment holds for a task and its child tasks. Everything that the library draws goes through
/// ``current``, so that a recording can keep it and a replay can hand it out again. Code outside this package can
/// neither make nor set an environment: a source that is not the system's own cannot be reached but through
/// a replay, a fuzzing run, a benchmark or a test.
public struct CardEnvironment: Sendable {
    package var random: any RandomSource
    package var clock: any EnvironmentClock
    package var keySink: (any KeySink)?
    package var readersAllowed: Bool

    package init(
        random: any RandomSource = SystemRandomSource(),
        clock: any EnvironmentClock = SystemClock(),
        keySink: (any KeySink)? = nil,
        readersAllowed: Bool = true
    ) {
        self.random = random
        self.clock = clock
        self.keySink = keySink
        self.readersAllowed = readersAllowed
    }

    @TaskLocal private static var local = CardEnvironment()

    /// The environment of the current task.
    public static var current: CardEnvironment { local }

    /// Runs `operation`, and the child tasks it starts, in `environment`.
    package static func with<Result>(
        _ environment: CardEnvironment,
        isolation: isolated (any Actor)? = #isolation,
        _ operation: () async throws -> Result
    ) async rethrows -> Result {
        try await $local.withValue(environment, operation: operation, isolation: isolation)
    }

    /// `count` random octets for the use that `label` names, for instance `bac.rndIFD`.
    ///
    /// - Throws: ``EnvironmentError`` when the system has none, or when a replay has none recorded for this use.
    public func randomOctets(_ count: Int, label: String) throws(EnvironmentError) -> [UInt8] {
        try random.octets(count, label: label)
    }

    /// Nanoseconds since 1970-01-01 00:00 UTC: the time that certificates are judged at.
    public func calendarNanoseconds() throws(EnvironmentError) -> Int64 { try clock.nanoseconds(.calendar) }

    /// Nanoseconds of a clock that never jumps; only differences mean something.
    public func monotonicNanoseconds() throws(EnvironmentError) -> Int64 { try clock.nanoseconds(.monotonic) }

    /// Tells the key `octets`, named as the grammars' `given` are (`bac.seed`), to whoever keeps keys; to nobody by default.
    public func logKey(_ name: String, _ octets: [UInt8]) { keySink?.log(name, octets) }

    /// Throws when readers may not be used: in a replay.
    public func requireReaders() throws(EnvironmentError) {
        guard readersAllowed else { throw EnvironmentError(code: .readersForbidden, detail: "a replay never reaches a reader") }
    }
}

/// A source of random octets. `package`, so that nothing outside can stand in for the system's.
package protocol RandomSource: Sendable {
    func octets(_ count: Int, label: String) throws(EnvironmentError) -> [UInt8]
}

package enum ClockKind: String, Sendable {
    case calendar
    case monotonic
}

package protocol EnvironmentClock: Sendable {
    func nanoseconds(_ kind: ClockKind) throws(EnvironmentError) -> Int64
}

package protocol KeySink: Sendable {
    func log(_ name: String, _ octets: [UInt8])
}

/// The kernel's random source.
package struct SystemRandomSource: RandomSource {
    package init() {}

    package func octets(_ count: Int, label: String) throws(EnvironmentError) -> [UInt8] {
        guard count > 0 else { return [] }
        var octets = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            // getentropy gives at most 256 octets a call.
            let piece = min(256, count - filled)
            let result = octets.withUnsafeMutableBytes { buffer in
                getentropy(buffer.baseAddress?.advanced(by: filled), piece)
            }
            guard result == 0 else { throw EnvironmentError(code: .noRandom, detail: "getentropy: errno \(errno)") }
            filled += piece
        }
        return octets
    }
}

package struct SystemClock: EnvironmentClock {
    package init() {}

    package func nanoseconds(_ kind: ClockKind) throws(EnvironmentError) -> Int64 {
        var time = timespec()
        clock_gettime(kind == .calendar ? CLOCK_REALTIME : CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}

/// Why the environment could not give what was asked. Equality is on the code.
public struct EnvironmentError: CodedError {
    public enum Code: String, Sendable {
        /// The system gave no random octets.
        case noRandom
        /// A replay was asked for a draw that was not recorded.
        case drawNotRecorded
        /// A replay was asked for another number of octets than were recorded.
        case drawOfOtherLength
        /// A replay was asked for a time that was not recorded.
        case timeNotRecorded
        /// Readers may not be used here.
        case readersForbidden
    }

    public let code: Code
    public let detail: String

    public init(code: Code, detail: String) {
        self.code = code
        self.detail = detail
    }

    public var description: String { detail.isEmpty ? code.rawValue : detail }
}
