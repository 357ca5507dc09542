// SPDX-License-Identifier: MIT

import Glibc
import Threads

/// A thread of its own for calls that block, one job after the other, bridged to async callers by continuations.
///
/// PC/SC calls block for as long as a card or a person takes, and the pool that runs Swift tasks has as many threads as
/// the machine has cores: two such calls made there can stop a whole program. The thread ends with its owner.
final class WorkerThread: Sendable {
    private let queue: JobQueue

    init() {
        let queue = JobQueue()
        self.queue = queue
        if !DetachedThread.start({ queue.work() }) { queue.finish() }
    }

    deinit { queue.finish() }

    /// Runs `job` on the thread and returns its outcome; nil when the thread has ended.
    func run<Value: Sendable>(_ job: @escaping @Sendable () -> Value) async -> Value? {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Value?, Never>) in
            let accepted = queue.add { continuation.resume(returning: job()) }
            if !accepted { continuation.resume(returning: nil) }
        }
    }

    /// Runs `job` on the thread some time; false when the thread has ended.
    @discardableResult
    func post(_ job: @escaping @Sendable () -> Void) -> Bool { queue.add(job) }

    /// Lets the thread end after the jobs that wait already.
    func finish() { queue.finish() }
}

/// A queue of jobs that one thread works off. The mutex guards `jobs` and `finished`.
private final class JobQueue: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var jobs: [@Sendable () -> Void] = []
    private var finished = false

    init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    func add(_ job: @escaping @Sendable () -> Void) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard !finished else { return false }
        jobs.append(job)
        pthread_cond_signal(condition)
        return true
    }

    func finish() {
        pthread_mutex_lock(mutex)
        finished = true
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    func work() {
        while true {
            pthread_mutex_lock(mutex)
            while jobs.isEmpty && !finished { pthread_cond_wait(condition, mutex) }
            let batch = jobs
            jobs.removeAll(keepingCapacity: true)
            let ends = finished && batch.isEmpty
            pthread_mutex_unlock(mutex)
            if ends { return }
            for job in batch { job() }
        }
    }
}
