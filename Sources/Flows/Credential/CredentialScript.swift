// SPDX-License-Identifier: MIT

public import Octets
import SecureElementCredential

/// Calls of a credential session as text, a step a line.
///
/// ```
/// startSession                     # a comment, also after a step
/// provisionCredential loyalty "My card"    -> C1    the label of the new credential
/// listCredentials                  -> 1             how many there are
/// enterWiredMode C1
/// transceive 00A4040005F000000001  -> 90??          two bytes check the status word, more the whole answer
/// wait 16 s                                         in session time
/// transceive 00B0000004            throws sessionInvalidated
/// ```
///
/// Beside the API's calls there are `wait N s`, `foreground`, `background`, `person allow|decline|dismiss|timeOut`,
/// `scene valid|invalid`, `network on|off`, `field on|off` and `tap HEX` for the contactless reader, `reader N s` to let a
/// program at the virtual reader work for at most so long, `event NAME` for the next event of the stream, and `state`.
/// Credentials are called C1, C2 and so on in the order in which the script meets them, those of one list by name, or by
/// their name in quotes; assertions are A1, A2.
public struct CredentialScript: Sendable {
    /// A step.
    public struct Line: Sendable {
        /// From 1.
        public let number: Int
        /// Where the step begins, from 1, in UTF-8 code units.
        public let column: Int
        /// The call or the step.
        public let verb: String
        /// What stands after the verb, without the expectation.
        public let words: [Word]
        /// What the step must come to.
        public let expectation: Expectation
    }

    /// A word of a step.
    public struct Word: Sendable {
        /// Without its quotes.
        public let text: String
        /// Where it begins, from 1, in UTF-8 code units.
        public let column: Int
        /// Whether it stood in quotes.
        public let isQuoted: Bool
    }

    /// What a step must come to.
    public enum Expectation: Sendable {
        /// That it throws nothing.
        case success
        case result(Word)
        case throwing(CredentialSession.ErrorCode)
    }

    /// The steps in order; lines without one are left out.
    public let lines: [Line]

    /// - Throws: ``CredentialScriptError`` with the line and column at fault.
    public init(_ text: String) throws(CredentialScriptError) {
        var lines: [Line] = []
        var number = 0
        for raw in text.utf8.split(omittingEmptySubsequences: false, whereSeparator: { $0 == 0x0A }) {
            number += 1
            let words = try Self.words(of: Array(raw), line: number)
            if let first = words.first { lines.append(try Self.line(number, first, Array(words.dropFirst()))) }
        }
        self.lines = lines
    }

    /// What each step takes, at least and at most.
    static let verbs: [String: ClosedRange<Int>] = [
        "startSession": 0...0, "isEligible": 0...0, "invalidate": 0...0, "secureElementInfo": 0...0, "listCredentials": 0...0,
        "provisionCredential": 2...2, "deleteCredential": 1...1, "enterWiredMode": 1...1, "transceive": 1...1,
        "endWiredMode": 0...0, "performTransaction": 1...1, "performWiredTransaction": 1...2,
        "performTransactionInWiredMode": 1...2, "performCardEmulationTransactionWithCurrentCredential": 0...0,
        "endCardEmulation": 0...0, "acquirePresentmentAssertion": 0...0, "relinquish": 0...1, "securityDomainCounter": 1...1,
        "invalidateConfiguration": 0...0, "state": 0...0, "event": 0...1, "wait": 1...2, "reader": 1...2, "foreground": 0...0,
        "background": 0...0, "person": 1...1, "scene": 1...1, "network": 1...1, "field": 1...1, "tap": 1...1,
    ]

    private static func words(of units: [UInt8], line: Int) throws(CredentialScriptError) -> [Word] {
        var words: [Word] = []
        var index = 0
        while index < units.count {
            let unit = units[index]
            if unit == 0x20 || unit == 0x09 || unit == 0x0D {
                index += 1
            } else if unit == 0x23 {
                break
            } else if unit == 0x22 {
                guard let end = units[(index + 1)...].firstIndex(of: 0x22) else {
                    throw CredentialScriptError(.syntax, line: line, column: index + 1, "a quote that does not end")
                }
                words.append(
                    Word(text: String(decoding: units[(index + 1)..<end], as: UTF8.self), column: index + 1, isQuoted: true))
                index = end + 1
            } else {
                let end = units[index...].firstIndex { [0x20, 0x09, 0x0D, 0x23, 0x22].contains($0) } ?? units.count
                words.append(Word(text: String(decoding: units[index..<end], as: UTF8.self), column: index + 1, isQuoted: false))
                index = end
            }
        }
        return words
    }

    private static func line(_ number: Int, _ verb: Word, _ rest: [Word]) throws(CredentialScriptError) -> Line {
        guard !verb.isQuoted, let count = verbs[verb.text] else {
            let near = verbs.keys.sorted().min {
                EditDistance.between(verb.text, $0) < EditDistance.between(verb.text, $1)
            }
            let hint = near.map { EditDistance.between(verb.text, $0) <= 4 ? "; did you mean \($0)" : "" } ?? ""
            throw CredentialScriptError(.unknownCall, line: number, column: verb.column, "unknown call \(verb.text)\(hint)")
        }
        var words = rest
        var expectation = Expectation.success
        if let place = words.firstIndex(where: { !$0.isQuoted && ($0.text == "->" || $0.text == "throws") }) {
            let mark = words[place]
            guard words.count == place + 2 else {
                throw CredentialScriptError(.syntax, line: number, column: mark.column, "\(mark.text) is followed by one word")
            }
            let wanted = words[place + 1]
            if mark.text == "->" {
                expectation = .result(wanted)
            } else {
                guard let code = CredentialSession.ErrorCode.allCases.first(where: { $0.name == wanted.text }) else {
                    throw CredentialScriptError(
                        .unknownError, line: number, column: wanted.column, "no error is called \(wanted.text)")
                }
                expectation = .throwing(code)
            }
            words.removeSubrange(place...)
        }
        guard count.contains(words.count) else {
            let wants =
                count.lowerBound == count.upperBound ? "\(count.lowerBound)" : "\(count.lowerBound) or \(count.upperBound)"
            throw CredentialScriptError(
                .syntax, line: number, column: verb.column,
                "\(verb.text) takes \(wants == "0" ? "nothing" : wants + (wants == "1" ? " word" : " words")), not \(words.count)"
            )
        }
        return Line(number: number, column: verb.column, verb: verb.text, words: words, expectation: expectation)
    }
}

/// What is wrong with a script, or with what a step came to, and where. Equality is on the code.
public struct CredentialScriptError: CodedError {
    /// What is wrong.
    public enum Code: String, Sendable {
        case syntax, unknownCall, unknownError, argument
        /// The step came to something else than the script says.
        case mismatch
    }

    /// What two errors are equal by.
    public let code: Code
    /// From 1.
    public let line: Int
    /// From 1, in UTF-8 code units.
    public let column: Int
    /// For people: what was expected and what is there.
    public let detail: String

    init(_ code: Code, line: Int, column: Int, _ detail: String) {
        self.code = code
        self.line = line
        self.column = column
        self.detail = detail
    }

    public var description: String { "line \(line), column \(column): \(detail)" }
}
