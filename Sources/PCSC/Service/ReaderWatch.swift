// SPDX-License-Identifier: MIT

import Synchronization
import Threads

/// The thread behind a stream of reader events.
enum ReaderWatch {
    /// How long one wait lasts at most, in milliseconds: a reader that appears between listing and waiting is seen then.
    private static let longestWait: UInt32 = 2_000

    static func events(library: PCSCLibrary) -> AsyncStream<ReaderEvent> {
        AsyncStream { continuation in
            let stop = StopFlag()
            continuation.onTermination = { _ in stop.stop() }
            let started = DetachedThread.start {
                do throws(PCSCError) {
                    let context = try library.establish()
                    defer { library.release(context) }
                    let breaker = CallBreaker(library, context)
                    defer { breaker.ended() }
                    stop.whenStopped { breaker.breakCall() }
                    try watch(library, context, breaker) { continuation.yield($0) }
                } catch {
                    if error.code != PCSCError.cancelled { continuation.yield(.failed(error)) }
                }
                continuation.finish()
            }
            if !started { continuation.finish() }
        }
    }

    private static func watch(
        _ library: PCSCLibrary, _ context: PCSCLibrary.Context, _ breaker: CallBreaker, _ tell: (ReaderEvent) -> Void
    ) throws(PCSCError) {
        var tracker = ReaderTracker()
        // What the service gave for the pseudo reader goes back to it whole (it counts readers in the high 16 bits).
        var pseudo = RawReaderState(name: RawReaderState.readersChanged, flags: 0)
        tracker.update(try PCSCContext.look(library, context).map { ReaderStatus($0) }).forEach(tell)
        while !breaker.isBroken {
            do throws(PCSCError) {
                let known = tracker.known.map(\.raw) + [pseudo]
                let seen = try library.statusChange(context, known, milliseconds: longestWait)
                pseudo.flags = (seen.last?.flags ?? 0) & ~0x0002
            } catch {
                guard error.code == PCSCError.timeout || error.code == PCSCError.unknownReader else { throw error }
            }
            tracker.update(try PCSCContext.look(library, context).map { ReaderStatus($0) }).forEach(tell)
        }
    }
}

/// Joins the end of a stream, which can come at any time, with what must then be done, which is known only later.
private final class StopFlag: Sendable {
    private struct State {
        var stopped = false
        var action: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    func stop() {
        let action = state.withLock { state in
            state.stopped = true
            return state.action
        }
        action?()
    }

    func whenStopped(_ action: @escaping @Sendable () -> Void) {
        let stopped = state.withLock { state in
            state.action = action
            return state.stopped
        }
        if stopped { action() }
    }
}
