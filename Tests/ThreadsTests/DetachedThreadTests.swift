// SPDX-License-Identifier: MIT

import Glibc
import Testing
import Threads

private enum Place {
    @TaskLocal static var name = "none"
}

@Suite struct DetachedThreadTests {
    @Test func theBodyRunsOnAThreadOfItsOwn() async {
        let (own, other) = await withCheckedContinuation { (result: CheckedContinuation<(pthread_t, pthread_t), Never>) in
            let own = pthread_self()
            if !DetachedThread.start({ result.resume(returning: (own, pthread_self())) }) {
                result.resume(returning: (own, own))
            }
        }
        // This one lived while the other did, so their numbers cannot be one used twice.
        #expect(own != other)
    }

    @Test func taskLocalValuesDoNotReachIt() async {
        let seen = await Place.$name.withValue("task") {
            await withCheckedContinuation { (result: CheckedContinuation<String, Never>) in
                if !DetachedThread.start({ result.resume(returning: Place.name) }) { result.resume(returning: "no thread") }
            }
        }
        #expect(seen == "none")
    }
}
