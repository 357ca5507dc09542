// SPDX-License-Identifier: MIT

import Octets
import Testing

@Suite struct EditDistanceTests {
    @Test(arguments: [
        ("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("same", "same", 0), ("--card-kind", "--card", 5),
    ])
    func theFewestEditsAreCounted(_ left: String, _ right: String, _ edits: Int) {
        #expect(EditDistance.between(left, right) == edits)
        #expect(EditDistance.between(right, left) == edits)
    }

    @Test func onlyTheFirst64OctetsCount() {
        #expect(EditDistance.between(String(repeating: "a", count: 100_000), String(repeating: "a", count: 64)) == 0)
    }
}
