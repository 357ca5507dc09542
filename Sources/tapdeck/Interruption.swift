// SPDX-License-Identifier: MIT

import Glibc
import Synchronization

/// What happens on Ctrl-C and SIGTERM. The first asks the command to end in order, a second one ends at once.
enum Interruption {
    private static let handler = Mutex<(@Sendable () -> Void)?>(nil)
    private static let happened = Mutex(false)

    /// Whether the user has asked to end.
    static var wasAsked: Bool { happened.withLock { $0 } }

    /// Begins to watch. To be called once, before other threads are there: they inherit the blocked signals.
    static func watch() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { _ in
                var signals = sigset_t()
                sigemptyset(&signals)
                sigaddset(&signals, SIGINT)
                sigaddset(&signals, SIGTERM)
                var number: Int32 = 0
                while sigwait(&signals, &number) == 0 { Interruption.arrived() }
                return nil
            }, nil
        )
    }

    /// Runs `operation` so that an interruption cancels it. The operation cleans up; the command then ends with 130.
    static func cancelling<Result: Sendable>(_ operation: @escaping @Sendable () async throws -> Result) async throws -> Result {
        let task = Task { try await operation() }
        handler.withLock { $0 = { task.cancel() } }
        defer { handler.withLock { $0 = nil } }
        return try await task.value
    }

    /// Calls `action` on an interruption, until `operation` has ended.
    static func calling<Result>(_ action: @escaping @Sendable () -> Void, during operation: () throws -> Result) rethrows -> Result {
        handler.withLock { $0 = action }
        defer { handler.withLock { $0 = nil } }
        return try operation()
    }

    private static func arrived() {
        let isSecond = happened.withLock { seen in
            defer { seen = true }
            return seen
        }
        let action = handler.withLock { $0 }
        guard !isSecond, let action else { _exit(ExitStatus.interrupted.rawValue) }
        action()
    }
}
