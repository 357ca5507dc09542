// SPDX-License-Identifier: MIT

import Glibc
import Synchronization
import TagTransport
import Threads

/// One PC/SC context with the one thread that calls it.
///
/// libpcsclite holds a context's lock for the length of a call, so that two cards in one context would wait for each other.
final class ContextThread: Sendable {
    private let library: PCSCLibrary
    private let context: PCSCLibrary.Context
    private let worker: WorkerThread

    static func open() async throws(TransportError) -> ContextThread {
        let library = try PCSCLibrary.shared.get()
        let worker = WorkerThread()
        let outcome = await worker.run { () -> Result<PCSCLibrary.Context, PCSCError> in
            Result { () throws(PCSCError) in try library.establish() }
        }
        return ContextThread(library, try unwrap(outcome), worker)
    }

    private init(_ library: PCSCLibrary, _ context: PCSCLibrary.Context, _ worker: WorkerThread) {
        self.library = library
        self.context = context
        self.worker = worker
    }

    deinit {
        let (library, context) = (library, context)
        worker.post { library.release(context) }
    }

    /// Makes a call on the thread.
    func call<Value: Sendable>(
        _ body: @escaping @Sendable (PCSCLibrary, PCSCLibrary.Context) throws(PCSCError) -> Value
    ) async throws(TransportError) -> Value {
        let (library, context) = (library, context)
        let outcome = await worker.run { () -> Result<Value, PCSCError> in
            Result { () throws(PCSCError) in try body(library, context) }
        }
        return try Self.unwrap(outcome)
    }

    /// Makes a call some time, for nobody.
    func post(_ body: @escaping @Sendable (PCSCLibrary, PCSCLibrary.Context) -> Void) {
        let (library, context) = (library, context)
        worker.post { body(library, context) }
    }

    /// Makes a call that `SCardCancel` can end, and ends it so when the task is cancelled.
    func cancellableCall<Value: Sendable>(
        _ body: @escaping @Sendable (PCSCLibrary, PCSCLibrary.Context) throws(PCSCError) -> Value
    ) async throws(TransportError) -> Value {
        let (library, context, worker) = (library, context, worker)
        let breaker = CallBreaker(library, context)
        let outcome = await withTaskCancellationHandler {
            await worker.run { () -> Result<Value, PCSCError> in
                defer { breaker.ended() }
                return Result { () throws(PCSCError) in
                    guard !breaker.isBroken else { throw PCSCError(code: PCSCError.cancelled, call: "SCardCancel") }
                    return try body(library, context)
                }
            }
        } onCancel: {
            breaker.breakCall()
        }
        return try Self.unwrap(outcome)
    }

    private static func unwrap<Value>(_ outcome: Result<Value, PCSCError>?) throws(TransportError) -> Value {
        switch outcome {
        case .success(let value): return value
        case .failure(let error): throw error.transportError
        case nil: throw TransportError(.serviceUnavailable, detail: "no thread could be started")
        }
    }
}

/// Ends a waiting PC/SC call from another thread.
///
/// A cancel that comes just before the wait begins is lost in libpcsclite, so it is said again until the call has ended.
final class CallBreaker: Sendable {
    private struct State {
        var broken = false
        var ended = false
    }

    private let library: PCSCLibrary
    private let context: PCSCLibrary.Context
    private let state = Mutex(State())

    init(_ library: PCSCLibrary, _ context: PCSCLibrary.Context) {
        self.library = library
        self.context = context
    }

    var isBroken: Bool { state.withLock { $0.broken } }

    func ended() { state.withLock { $0.ended = true } }

    func breakCall() {
        let needed = state.withLock { state in
            defer { state.broken = true }
            return !state.broken && !state.ended
        }
        guard needed else { return }
        _ = DetachedThread.start { [self] in
            while !state.withLock({ $0.ended }) {
                library.cancel(context)
                usleep(2_000)
            }
        }
    }
}
