// SPDX-License-Identifier: MIT

/// Lets one task after another through, in the order in which they came (rule G11): an actor alone would let a second call
/// in while the first waits for the element.
actor Lane {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func enter() async {
        if !isTaken {
            isTaken = true
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    func leave() {
        if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
    }
}
