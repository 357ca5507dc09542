// SPDX-License-Identifier: MIT

import CardCrypto

/// The call that the current task is in, so that draws, progress and structured calls bear its number.
enum CallContext {
    @TaskLocal static var current: Int?
}

/// Hands on what another source gives, and keeps it.
struct RecordingRandomSource: RandomSource {
    let base: any RandomSource
    let recorder: TraceRecorder
    let call: Int

    func octets(_ count: Int, label: String) throws(EnvironmentError) -> [UInt8] {
        let octets = try base.octets(count, label: label)
        recorder.recordDraw(octets, label: label, call: call)
        return octets
    }
}

/// Hands on what another clock says, and keeps it.
struct RecordingClock: EnvironmentClock {
    let base: any EnvironmentClock
    let recorder: TraceRecorder
    let call: Int

    func nanoseconds(_ kind: ClockKind) throws(EnvironmentError) -> Int64 {
        let time = try base.nanoseconds(kind)
        recorder.recordTime(time, kind: kind, call: call)
        return time
    }
}

/// Keeps keys among the secrets of the last exchange, and hands them on.
struct RecordingKeySink: KeySink {
    let base: (any KeySink)?
    let recorder: TraceRecorder

    func log(_ name: String, _ octets: [UInt8]) {
        recorder.recordKey(name, octets)
        base?.log(name, octets)
    }
}

extension TraceRecorder {
    /// The current environment, with everything that is drawn in it recorded for `call`.
    func environment(for call: Int) -> CardEnvironment {
        var environment = CardEnvironment.current
        environment.random = RecordingRandomSource(base: environment.random, recorder: self, call: call)
        environment.clock = RecordingClock(base: environment.clock, recorder: self, call: call)
        environment.keySink = RecordingKeySink(base: environment.keySink, recorder: self)
        return environment
    }
}
