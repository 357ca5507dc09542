// SPDX-License-Identifier: MIT

import Glibc

/// A value that a task gives to a thread that waits for it.
final class Handover<Value: Sendable>: @unchecked Sendable {
    // Unchecked: the value is written before the semaphore is raised and read after it.
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    private var value: Value?

    init() { sem_init(semaphore, 0, 0) }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func give(_ value: Value) {
        self.value = value
        sem_post(semaphore)
    }

    func take() -> Value {
        while true {
            while sem_wait(semaphore) != 0 {}
            if let value { return value }
        }
    }
}
