// SPDX-License-Identifier: MIT

/// Which exchanges of two traces belong together: those that say the same, in order; between these, those of one kind.
enum SideAlignment {
    /// Pairs of places; nil where one side has none.
    static func pairs(_ lefts: [TraceDiff.Side], _ rights: [TraceDiff.Side]) -> [(Int?, Int?)] {
        let matched = common(lefts.map(key), rights.map(key), offset: (0, 0))
        var pairs: [(Int?, Int?)] = []
        var (left, right) = (0, 0)
        for (one, other) in matched + [(lefts.count, rights.count)] {
            // What lies between two that say the same is compared by its kind.
            pairs += gap(left..<one, right..<other, lefts, rights)
            if one < lefts.count, other < rights.count { pairs.append((one, other)) }
            (left, right) = (one + 1, other + 1)
        }
        return pairs
    }

    private static func gap(
        _ left: Range<Int>, _ right: Range<Int>, _ lefts: [TraceDiff.Side], _ rights: [TraceDiff.Side]
    ) -> [(Int?, Int?)] {
        let matched = common(
            left.map { kind(lefts[$0]) }, right.map { kind(rights[$0]) }, offset: (left.lowerBound, right.lowerBound))
        var pairs: [(Int?, Int?)] = []
        var (l, r) = (left.lowerBound, right.lowerBound)
        for (one, other) in matched + [(left.upperBound, right.upperBound)] {
            while l < one {
                pairs.append((l, nil))
                l += 1
            }
            while r < other {
                pairs.append((nil, r))
                r += 1
            }
            if one < left.upperBound, other < right.upperBound { pairs.append((one, other)) }
            (l, r) = (one + 1, other + 1)
        }
        return pairs
    }

    /// What an exchange says, without what is drawn and without lengths: its line.
    private static func key(_ side: TraceDiff.Side) -> String { side.what }

    /// Its instruction and the protocol it belongs to, whatever it is applied to.
    private static func kind(_ side: TraceDiff.Side) -> String {
        guard side.isCommand, side.octets.count >= 2 else { return side.what }
        return "\(side.octets[1]) \(side.message)"
    }

    /// The longest run of pairs with equal keys, in order.
    private static func common(_ left: [String], _ right: [String], offset: (Int, Int)) -> [(Int, Int)] {
        var start = 0
        while start < left.count, start < right.count, left[start] == right[start] { start += 1 }
        var end = 0
        while end < left.count - start, end < right.count - start, left[left.count - 1 - end] == right[right.count - 1 - end] {
            end += 1
        }
        let (a, b) = (Array(left[start..<left.count - end]), Array(right[start..<right.count - end]))
        var pairs = (0..<start).map { ($0, $0) }
        if !a.isEmpty, !b.isEmpty {
            pairs += (a.count > most / b.count ? ordered(a, b) : longest(a, b)).map { ($0 + start, $1 + start) }
        }
        pairs += (0..<end).map { (left.count - end + $0, right.count - end + $0) }
        return pairs.map { ($0.0 + offset.0, $0.1 + offset.1) }
    }

    /// By the table of all pairs.
    private static func longest(_ a: [String], _ b: [String]) -> [(Int, Int)] {
        let width = b.count + 1
        var table = [Int32](repeating: 0, count: (a.count + 1) * width)
        for i in a.indices.reversed() {
            for j in b.indices.reversed() {
                table[i * width + j] =
                    a[i] == b[j] ? table[(i + 1) * width + j + 1] + 1 : max(table[(i + 1) * width + j], table[i * width + j + 1])
            }
        }
        var pairs: [(Int, Int)] = []
        var (i, j) = (0, 0)
        while i < a.count, j < b.count {
            if a[i] == b[j] {
                pairs.append((i, j))
                (i, j) = (i + 1, j + 1)
            } else if table[(i + 1) * width + j] >= table[i * width + j + 1] {
                i += 1
            } else {
                j += 1
            }
        }
        return pairs
    }

    /// Where the table would be too large: each takes the next that is equal.
    private static func ordered(_ a: [String], _ b: [String]) -> [(Int, Int)] {
        var places: [String: [Int]] = [:]
        for (index, key) in b.enumerated().reversed() { places[key, default: []].append(index) }
        var pairs: [(Int, Int)] = []
        var next = 0
        for (index, key) in a.enumerated() {
            while let place = places[key]?.last, place < next { places[key]?.removeLast() }
            guard let place = places[key]?.last, place - next <= window else { continue }
            pairs.append((index, place))
            next = place + 1
        }
        return pairs
    }

    /// Cells of the largest table, 16 MiB of it.
    private static let most = 1 << 22
    private static let window = 256
}

/// What exchanges come to, on part of a line: protocols that were run, files that were read.
struct ExchangeDigest {
    private struct Access {
        var name: String
        var isAgreed = false
    }

    private var accesses: [Access] = []
    private var files: [String] = []
    private var reads: [String] = []

    init(_ sides: [TraceDiff.Side]) {
        for side in sides {
            if let name = Self.access(side.message) {
                if accesses.last?.name != name { accesses.append(Access(name: name)) }
                if side.hasAgreed { accesses[accesses.count - 1].isAgreed = true }
            }
            if let file = side.file { files.append(file) }
        }
    }

    private static func access(_ grammar: String) -> String? {
        switch grammar {
        case "bac": "BAC"
        case "pace": "PACE"
        case "chipAuthentication": "Chip Authentication"
        case "terminalAuthentication": "Terminal Authentication"
        case "desfire", "ntag424": nil
        default: nil
        }
    }

    /// - Parameter other: what the other trace comes to: what it has and this one never tried is named.
    func text(beside other: ExchangeDigest?) -> String {
        var parts = files.filter { $0.hasPrefix("EF.CardAccess") }.isEmpty || other != nil ? [] : ["EF.CardAccess read"]
        let tried = Set(accesses.map(\.name))
        if let other {
            for access in other.accesses where !tried.contains(access.name) && access.name == "PACE" {
                if !parts.contains("PACE never tried") { parts.append("PACE never tried") }
            }
        }
        for access in accesses {
            let text = access.isAgreed || other == nil ? access.name : "\(access.name) refused"
            if parts.last != text { parts.append(text) }
        }
        let names = files.filter { !Self.common.contains($0) }
        if !names.isEmpty {
            let shown = names.prefix(3).joined(separator: ", ") + (names.count > 3 ? " and \(names.count - 3) more" : "")
            parts.append("\(shown) read")
        }
        return parts.joined(separator: ", ")
    }

    /// Files that every document has.
    private static let common: Set<String> = ["EF.CardAccess", "EF.COM", "EF.SOD"]
}
