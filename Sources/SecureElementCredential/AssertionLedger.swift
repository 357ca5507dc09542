// SPDX-License-Identifier: MIT

/// Which presentment intent assertion an app holds, and when it may have the next (limits L5 to L7).
///
/// Transactions present under an assertion of their own, which the limits do not count: the documented way is to
/// relinquish and to perform at once.
struct AssertionLedger: Sendable {
    struct Held: Sendable, Equatable {
        var id: Int
        /// When it ends by itself.
        var deadline: Int64
    }

    enum End: Sendable, Equatable {
        case active
        /// It ended by itself.
        case timedOut
        case ended
    }

    private(set) var held: Held?
    private var acquisitions: [Int64] = []
    private var lastEnd: Int64?
    private var timedOut: Set<Int> = []
    private var nextID = 1

    /// Acquires an assertion.
    ///
    /// - Parameter now: nanoseconds.
    /// - Returns: nil when the app holds one, or may not have one yet.
    mutating func acquire(now: Int64, limits: CredentialRules.Limits) -> Held? {
        guard held == nil else { return nil }
        if let lastEnd, now &- lastEnd < limits.assertionGap.nanoseconds { return nil }
        acquisitions.removeAll { now &- $0 >= limits.assertionSpan.nanoseconds }
        guard acquisitions.count < limits.assertionsInSpan else { return nil }
        acquisitions.append(now)
        let assertion = Held(id: nextID, deadline: now &+ limits.assertion.nanoseconds)
        nextID &+= 1
        held = assertion
        return assertion
    }

    /// Ends the assertion with this number; nothing happens when it has ended.
    mutating func end(_ id: Int, now: Int64) {
        guard held?.id == id else { return }
        held = nil
        lastEnd = now
    }

    /// Ends whatever is held.
    mutating func endAny(now: Int64) {
        if let held { end(held.id, now: now) }
    }

    /// Ends the assertion when its time is over.
    ///
    /// - Returns: whether it did.
    mutating func expire(now: Int64) -> Bool {
        guard let held, now >= held.deadline else { return false }
        timedOut.insert(held.id)
        end(held.id, now: held.deadline)
        return true
    }

    /// Nobody has the assertion any more who could ask how it ended.
    mutating func forget(_ id: Int, now: Int64) {
        end(id, now: now)
        timedOut.remove(id)
    }

    func state(of id: Int) -> End {
        if held?.id == id { return .active }
        return timedOut.contains(id) ? .timedOut : .ended
    }
}
