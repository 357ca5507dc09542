// SPDX-License-Identifier: MIT

import CardCrypto
import Synchronization

/// The time that sessions live by, and what wakes them.
package protocol CredentialClock: Sendable {
    /// Nanoseconds of a clock that never jumps.
    func now(in environment: CardEnvironment) throws(EnvironmentError) -> Int64

    /// Runs `action` once the time is `deadline`, unless the alarm is cancelled before.
    func wake(at deadline: Int64, in environment: CardEnvironment, _ action: @escaping @Sendable () async -> Void) -> ClockAlarm
}

/// Something that will happen at a time. It does not happen when this is cancelled first.
package struct ClockAlarm: Sendable {
    package let cancel: @Sendable () -> Void

    package init(cancel: @escaping @Sendable () -> Void) { self.cancel = cancel }
}

/// The environment's monotonic clock.
package struct EnvironmentCredentialClock: CredentialClock {
    package init() {}

    package func now(in environment: CardEnvironment) throws(EnvironmentError) -> Int64 {
        try environment.monotonicNanoseconds()
    }

    package func wake(
        at deadline: Int64, in environment: CardEnvironment, _ action: @escaping @Sendable () async -> Void
    ) -> ClockAlarm {
        let task = Task {
            guard let now = try? now(in: environment) else { return }
            if deadline > now { try? await Task.sleep(for: .nanoseconds(deadline &- now)) }
            if !Task.isCancelled { await action() }
        }
        return ClockAlarm { task.cancel() }
    }
}

/// A clock that stands still until it is told to go on: sixty seconds pass in no time, and always in the same order.
package final class SteppedClock: CredentialClock {
    private struct Alarm {
        var id: Int
        var deadline: Int64
        var action: @Sendable () async -> Void
    }

    private struct State {
        var now: Int64 = 0
        var nextID = 0
        var alarms: [Alarm] = []
    }

    private let state: Mutex<State>
    /// Told how much time passed, before an alarm of that time rings.
    private let passed: @Sendable (_ nanoseconds: Int64) -> Void

    package init(now: Int64 = 0, passed: @escaping @Sendable (_ nanoseconds: Int64) -> Void = { _ in }) {
        state = Mutex(State(now: now))
        self.passed = passed
    }

    package var now: Int64 { state.withLock { $0.now } }

    package func now(in environment: CardEnvironment) throws(EnvironmentError) -> Int64 { now }

    package func wake(
        at deadline: Int64, in environment: CardEnvironment, _ action: @escaping @Sendable () async -> Void
    ) -> ClockAlarm {
        let id = state.withLock { state in
            state.nextID &+= 1
            state.alarms.append(Alarm(id: state.nextID, deadline: deadline, action: action))
            return state.nextID
        }
        return ClockAlarm { [weak self] in self?.state.withLock { $0.alarms.removeAll { $0.id == id } } }
    }

    /// When the next alarm rings.
    package var nextDeadline: Int64? { state.withLock { $0.alarms.map(\.deadline).min() } }

    /// Lets time pass. Alarms ring one after another, each at its own time, and have been heard when this returns.
    package func advance(by duration: Duration) async {
        let target = now.addingReportingOverflow(duration.nanoseconds)
        await advance(to: target.overflow ? .max : target.partialValue)
    }

    /// Lets time pass until `target`; does nothing when that is past.
    package func advance(to target: Int64) async {
        while let action = takeAlarm(before: target) { await action() }
        go(to: target)
    }

    private func go(to time: Int64) {
        let step = state.withLock { state in
            defer { state.now = max(state.now, time) }
            return max(0, time &- state.now)
        }
        if step > 0 { passed(step) }
    }

    private func takeAlarm(before target: Int64) -> (@Sendable () async -> Void)? {
        let alarm = state.withLock { state -> Alarm? in
            guard
                let index = state.alarms.indices.min(by: {
                    (state.alarms[$0].deadline, state.alarms[$0].id) < (state.alarms[$1].deadline, state.alarms[$1].id)
                }), state.alarms[index].deadline <= target
            else { return nil }
            return state.alarms.remove(at: index)
        }
        guard let alarm else { return nil }
        go(to: alarm.deadline)
        return alarm.action
    }
}
