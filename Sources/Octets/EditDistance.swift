// SPDX-License-Identifier: MIT

/// How far two words are apart, for "did you mean".
public enum EditDistance {
    /// Insertions, deletions and exchanges of one octet that lead from one word to the other (Levenshtein).
    ///
    /// A word from outside has any length: only its first 64 octets count, and the first 64 of the other.
    public static func between(_ left: some StringProtocol, _ right: some StringProtocol) -> Int {
        let right = Array(right.utf8.prefix(64))
        var row = Array(0...right.count)
        for (index, octet) in left.utf8.prefix(64).enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for (column, other) in right.enumerated() {
                let above = row[column + 1]
                row[column + 1] = min(above + 1, row[column] + 1, diagonal + (octet == other ? 0 : 1))
                diagonal = above
            }
        }
        return row[right.count]
    }
}
