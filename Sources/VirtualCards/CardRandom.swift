// SPDX-License-Identifier: MIT

import CardCrypto

/// The random source of a virtual card: SHA-256 in counter mode over its seed.
///
/// Block `i` is SHA-256 of the ASCII text `tapdeck card random`, the use's name, the seed and `i`, the last two as eight octets, most
/// significant first. The octets drawn are those of block 0, block 1 and so on; nothing is thrown away between two draws. The
/// same seed gives the same octets on every machine, and a card does not start over when it is reset.
///
/// It is for specimens and tests: whoever knows the seed knows everything it will give.
public struct CardRandom: Sendable {
    private let prefix: [UInt8]
    private var counter: UInt64 = 0
    private var rest: ArraySlice<UInt8> = []

    /// - Parameter use: keeps the octets for one use apart from those for another under the same seed.
    public init(seed: UInt64, use: String = "") {
        prefix = Array("tapdeck card random".utf8) + Array(use.utf8) + Self.octets(of: seed)
    }

    /// Gives `first` before what the seed gives: the values of a published example.
    init(first: [UInt8], seed: UInt64 = 0) {
        self.init(seed: seed)
        rest = first[...]
    }

    /// The next `count` octets.
    public mutating func octets(_ count: Int) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(max(0, count))
        while result.count < count {
            if rest.isEmpty {
                // Hashing fails only when libcrypto has no memory; the card then repeats a known block rather than stops.
                let block = (try? Digest.sha256.hash(prefix + Self.octets(of: counter))) ?? [UInt8](repeating: 0, count: 32)
                rest = block[...]
                counter &+= 1
            }
            let piece = rest.prefix(count - result.count)
            result += piece
            rest = rest.dropFirst(piece.count)
        }
        return result
    }

    private static func octets(of number: UInt64) -> [UInt8] {
        stride(from: UInt64(56), through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
    }
}
