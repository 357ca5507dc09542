// SPDX-License-Identifier: MIT

import Octets

/// One option of a verb.
struct OptionSpec: Sendable {
    enum Value: Sendable {
        case none
        case required(String)
        /// A secret: without a value it is asked for at a terminal.
        case asked(String)
    }

    var name: String
    var value: Value
    var help: String

    init(_ name: String, _ value: Value = .none, _ help: String) {
        self.name = name
        self.value = value
        self.help = help
    }

    /// `--reader NAME|N`, as help shows it.
    var usage: String {
        switch value {
        case .none: name
        case .required(let metavariable): "\(name) \(metavariable)"
        case .asked(let metavariable): "\(name) [\(metavariable)]"
        }
    }
}

/// A command line, taken apart by a verb's options.
struct Arguments: Sendable {
    /// Given options with their values, in order; an empty text for an option without one.
    private(set) var options: [(name: String, value: String)] = []
    private(set) var operands: [String] = []
    /// What follows `--`.
    private(set) var program: [String]?

    /// - Throws: ``Failure`` with status 2 that names the unknown option and the nearest known one.
    init(_ words: [String], options specs: [OptionSpec]) throws {
        var index = 0
        while index < words.count {
            let word = words[index]
            index += 1
            if word == "--" {
                program = Array(words[index...])
                return
            }
            guard word.hasPrefix("-"), word.count > 1 else {
                operands.append(word)
                continue
            }
            let pieces = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let isLong = word.hasPrefix("--")
            let name = isLong ? pieces[0] : word
            let attached = isLong && pieces.count == 2 ? pieces[1] : nil
            guard let spec = specs.first(where: { $0.name == name }) else {
                throw Failure.usage("unknown option \(name)\(Nearest.suggestion(for: name, among: specs.map(\.name)))")
            }
            switch spec.value {
            case .none:
                if attached != nil { throw Failure.usage("\(name) takes no value") }
                options.append((name, ""))
            case .required(let metavariable):
                if let attached {
                    options.append((name, attached))
                } else if index < words.count {
                    options.append((name, words[index]))
                    index += 1
                } else {
                    throw Failure.usage("\(name) needs a value: \(name) \(metavariable)")
                }
            case .asked:
                if let attached {
                    options.append((name, attached))
                } else if index < words.count, words[index] == "-" || !words[index].hasPrefix("-") {
                    options.append((name, words[index]))
                    index += 1
                } else {
                    options.append((name, "ask"))
                }
            }
        }
    }

    func has(_ name: String) -> Bool { options.contains { $0.name == name } }

    /// The last value given for an option.
    func value(_ name: String) -> String? { options.last { $0.name == name }?.value }

    func values(_ name: String) -> [String] { options.filter { $0.name == name }.map(\.value) }
}

/// The known word that is nearest to an unknown one.
enum Nearest {
    /// `; did you mean --card`, or nothing when no word is near.
    static func suggestion(for word: String, among known: [String]) -> String {
        let ranked = known.map { ($0, EditDistance.between(word, $0)) }.min { $0.1 < $1.1 }
        guard let (nearest, edits) = ranked else { return "" }
        if edits <= max(2, word.count / 3) { return "; did you mean \(nearest)" }
        // A longer word that begins with a known one: --card-kind for --card.
        if let start = known.filter({ word.hasPrefix($0) && $0.count > 3 }).max(by: { $0.count < $1.count }) {
            return "; did you mean \(start)"
        }
        return ""
    }
}
