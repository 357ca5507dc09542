// SPDX-License-Identifier: MIT

@main
struct Tapdeck {
    static func main() {
        print("tapdeck")
    }
}
