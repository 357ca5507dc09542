// SPDX-License-Identifier: MIT

import Glibc
import Synchronization
import Threads

/// The end of a pipe that the signal handler writes to; set once, before the handler is.
private nonisolated(unsafe) var wakeDescriptor: Int32 = -1

/// What happens on Ctrl-C and SIGTERM. The first asks the command to end in order, a second one ends at once.
enum Interruption {
    private static let handler = Mutex<(@Sendable () -> Void)?>(nil)
    private static let happened = Mutex(false)

    /// Whether the user has asked to end.
    static var wasAsked: Bool { happened.withLock { $0 } }

    /// Begins to watch. To be called once.
    ///
    /// A handler of its own, not a mask: the main thread of an asynchronous program sleeps with every signal let through.
    static func watch() {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { return }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let waiting = ends[0]
        wakeDescriptor = ends[1]
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in
            // Only what a signal handler may do (POSIX.1-2017 2.4.3).
            var octet: UInt8 = 0
            _ = write(wakeDescriptor, &octet, 1)
        }
        action.sa_flags = SA_RESTART
        sigaction(SIGINT, &action, nil)
        sigaction(SIGTERM, &action, nil)
        _ = DetachedThread.start {
            var octet: UInt8 = 0
            while true {
                let count = read(waiting, &octet, 1)
                if count == 1 { Interruption.arrived() } else if count == 0 || errno != EINTR { return }
            }
        }
    }

    /// Runs `operation` so that an interruption cancels it. The operation cleans up; the command then ends with 130.
    static func cancelling<Result: Sendable>(_ operation: @escaping @Sendable () async throws -> Result) async throws -> Result {
        let task = Task { try await operation() }
        handler.withLock { $0 = { task.cancel() } }
        defer { handler.withLock { $0 = nil } }
        return try await task.value
    }

    /// Calls `action` on an interruption, until `operation` has ended.
    static func calling<Result>(_ action: @escaping @Sendable () -> Void, during operation: () throws -> Result) rethrows
        -> Result
    {
        handler.withLock { $0 = action }
        defer { handler.withLock { $0 = nil } }
        return try operation()
    }

    /// Waits for an interruption; then calls `action` and returns when that is done.
    static func waiting(_ action: () -> Void) {
        let isAsked = Latch()
        calling({ isAsked.raise() }, during: { isAsked.wait() })
        action()
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

/// Opens once, and lets through whoever waits.
private final class Latch: Sendable {
    private let ends: (reading: Int32, writing: Int32)

    init() {
        var ends: [Int32] = [-1, -1]
        _ = pipe(&ends)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        self.ends = (ends[0], ends[1])
    }

    deinit {
        close(ends.reading)
        close(ends.writing)
    }

    func raise() {
        var octet: UInt8 = 0
        _ = write(ends.writing, &octet, 1)
    }

    func wait() {
        var octet: UInt8 = 0
        while read(ends.reading, &octet, 1) < 0, errno == EINTR {}
    }
}
