// SPDX-License-Identifier: MIT

/// Finds the reader that somebody means by a number or a part of its name.
public enum ReaderChoice: Sendable, Equatable {
    case reader(String)
    /// What was given fits no reader.
    case none
    /// It fits more than one: their numbers.
    case several([Int])

    /// - Parameters:
    ///   - wanted: a number as `tapdeck readers` prints it, a whole name, or a part of one in any case; nil takes the first
    ///     reader with a card in it, else the first of all.
    ///   - statuses: all readers in the service's order.
    public init(_ wanted: String?, among statuses: [ReaderStatus]) {
        guard let wanted else {
            let best = statuses.first { $0.hasCard } ?? statuses.first
            self = best.map { .reader($0.reader) } ?? .none
            return
        }
        if let number = Int(wanted), statuses.indices.contains(number) {
            self = .reader(statuses[number].reader)
            return
        }
        if let exact = statuses.first(where: { $0.reader == wanted }) {
            self = .reader(exact.reader)
            return
        }
        let part = wanted.lowercased()
        let fitting = statuses.indices.filter { !part.isEmpty && statuses[$0].reader.lowercased().contains(part) }
        switch fitting.count {
        case 0: self = .none
        case 1: self = .reader(statuses[fitting[0]].reader)
        default: self = .several(fitting)
        }
    }

    /// What to tell when no one reader was found: the error's first line, then facts and what to type. Empty for a reader.
    ///
    /// - Parameter command: the command as it was typed, up to `--reader`: `tapdeck record passport`.
    public func lines(wanted: String, among names: [String], command: String) -> [String] {
        switch self {
        case .reader: return []
        case .none:
            let list = names.enumerated().map { "\($0.offset)  \($0.element)" }
            let example = names.first.map { Self.handle(of: $0) } ?? "0"
            return ["no reader has \"\(wanted)\" in its name"] + list
                + ["a number or a part of the name will do: --reader \(example)"]
        case .several(let numbers):
            let readers = numbers.map { "\($0) (\(Self.shortened(names[$0])))" }
            let listed = readers.dropLast().joined(separator: ", ") + " and " + (readers.last ?? "")
            let count = numbers.count < Self.words.count ? Self.words[numbers.count] : "\(numbers.count)"
            return ["\"\(wanted)\" fits \(count) readers: \(listed)", "\(command) --reader \(numbers[0])"]
        }
    }

    private static let words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]

    /// The last three words of a long name: that is where readers of one make differ.
    private static func shortened(_ name: String) -> String {
        let words = name.split(separator: " ")
        return words.count > 4 ? "... " + words.suffix(3).joined(separator: " ") : name
    }

    /// A word of the name that is easy to type.
    private static func handle(of name: String) -> String {
        let words = name.lowercased().split { !$0.isLetter && !$0.isNumber }
        return words.last { $0.contains(where: \.isLetter) }.map(String.init) ?? "0"
    }
}
