// SPDX-License-Identifier: MIT

import Glibc

/// Threads that belong to no pool, for calls that block: the pool that runs Swift tasks has as many threads as the machine has cores.
package enum DetachedThread {
    /// Starts a detached thread that runs `body` once; task-local values do not reach it.
    ///
    /// - Returns: false when the system gives no thread; `body` is then not run.
    package static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
        final class Box {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        let box = Unmanaged.passRetained(Box(body))
        var thread = pthread_t()
        let result = pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            },
            box.toOpaque()
        )
        if result != 0 { box.release() }
        return result == 0
    }
}
