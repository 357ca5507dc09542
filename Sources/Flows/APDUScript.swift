// SPDX-License-Identifier: MIT

public import Octets
public import TagTransport

/// Commands for a card as text, a step a line.
///
/// ```
/// # a comment, also after a step
/// 00 A4 04 00 07 A0000002471001    a command in hexadecimal
/// = 90??                           the answer before: two bytes check the status word, more the whole answer
/// !reset                           resets the card
/// !remove                          takes it out
/// !wait 250                        waits, in milliseconds
/// ```
public struct APDUScript: Sendable, Equatable {
    public enum Step: Sendable, Equatable {
        case command(CommandAPDU)
        case expect(AnswerPattern)
        case reset
        case remove
        case wait(milliseconds: Int)
    }

    public struct Line: Sendable, Equatable {
        /// From 1.
        public let number: Int
        /// Where the step begins, from 1, in UTF-8 code units.
        public let column: Int
        public let step: Step
    }

    public let lines: [Line]

    /// The commands in their order.
    public var commands: [CommandAPDU] {
        lines.compactMap { line in
            if case .command(let command) = line.step { command } else { nil }
        }
    }

    /// - Throws: ``APDUScriptError`` with the line and column at fault.
    public init(_ text: String) throws(APDUScriptError) {
        var lines: [Line] = []
        var hasAnswer = false
        var number = 0
        for raw in text.utf8.split(omittingEmptySubsequences: false, whereSeparator: { $0 == 0x0A }) {
            number += 1
            let content = raw.prefix { $0 != 0x23 }
            guard let start = content.firstIndex(where: { !Self.isSpace($0) }) else { continue }
            let column = content.distance(from: content.startIndex, to: start) + 1
            var units = Array(content[start...])
            while let last = units.last, Self.isSpace(last) { units.removeLast() }
            let step = try Self.step(units, line: number, column: column)
            switch step {
            case .command: hasAnswer = true
            case .reset, .remove: hasAnswer = false
            case .expect where !hasAnswer:
                throw APDUScriptError(.nothingToCheck, line: number, column: column, "there is no answer before it")
            case .expect, .wait: break
            }
            lines.append(Line(number: number, column: column, step: step))
        }
        self.lines = lines
    }

    private static func isSpace(_ unit: UInt8) -> Bool { unit == 0x20 || unit == 0x09 || unit == 0x0D }

    private static func step(_ units: [UInt8], line: Int, column: Int) throws(APDUScriptError) -> Step {
        switch units.first {
        case 0x21: return try directive(units, line: line, column: column)
        case 0x3D: return .expect(try AnswerPattern(units, line: line, column: column))
        default:
            let octets: [UInt8]
            do { octets = try Hex.decode(String(decoding: units, as: UTF8.self)) } catch {
                let text =
                    switch error.code {
                    case .notADigit where units.dropFirst(error.offset).first == 0x3D:
                        "= begins a line of its own, after its command's"
                    case .notADigit: "not a hexadecimal digit"
                    default: "half a byte at the end"
                    }
                throw APDUScriptError(.hexadecimal, line: line, column: column + error.offset, text)
            }
            do { return .command(try CommandAPDU(bytes: octets)) } catch {
                throw APDUScriptError(
                    .command, line: line, column: column + place(ofOctet: error.offset, in: units), "no command APDU: \(error)")
            }
        }
    }

    private static func directive(_ units: [UInt8], line: Int, column: Int) throws(APDUScriptError) -> Step {
        let words = String(decoding: units, as: UTF8.self).split(whereSeparator: { $0 == " " || $0 == "\t" })
        switch (words.first, words.count) {
        case ("!reset", 1): return .reset
        case ("!remove", 1): return .remove
        case ("!wait", 2):
            guard let milliseconds = Int(words[1]), (0...longestWait).contains(milliseconds) else {
                throw APDUScriptError(.wait, line: line, column: column, "!wait takes milliseconds, 0 to \(longestWait)")
            }
            return .wait(milliseconds: milliseconds)
        default:
            throw APDUScriptError(.directive, line: line, column: column, "unknown step; there are !reset, !remove and !wait MS")
        }
    }

    /// Where the octet of this number begins in hexadecimal text.
    private static func place(ofOctet octet: Int, in units: [UInt8]) -> Int {
        var digits = 0
        for (index, unit) in units.enumerated() where Hex.value(of: unit) != nil {
            if digits == octet * 2 { return index }
            digits += 1
        }
        return units.count
    }

    /// An hour.
    private static let longestWait = 3_600_000
}

/// What an answer should be: hexadecimal digits, `?` for any.
public struct AnswerPattern: Sendable, Equatable, CustomStringConvertible {
    /// A nibble, or nil for any.
    private let nibbles: [UInt8?]

    /// Two bytes are compared with the status word, more with the whole answer.
    public func matches(_ answer: [UInt8]) -> Bool {
        let octets = nibbles.count == 4 ? answer.suffix(2) : answer[...]
        guard octets.count * 2 == nibbles.count else { return false }
        return zip(octets.flatMap { [$0 >> 4, $0 & 0x0F] }, nibbles).allSatisfy { $1 == nil || $1 == $0 }
    }

    public var description: String {
        String(decoding: nibbles.map { $0.map(Hex.digit) ?? 0x3F }, as: UTF8.self)
    }

    /// - Parameter units: the step, beginning with `=`.
    init(_ units: [UInt8], line: Int, column: Int) throws(APDUScriptError) {
        var nibbles: [UInt8?] = []
        for (index, unit) in units.enumerated().dropFirst() {
            if unit == 0x20 || unit == 0x09 { continue }
            if unit == 0x3F {
                nibbles.append(nil)
            } else if let value = Hex.value(of: unit) {
                nibbles.append(value)
            } else {
                throw APDUScriptError(.hexadecimal, line: line, column: column + index, "neither a hexadecimal digit nor ?")
            }
        }
        guard nibbles.count >= 4, nibbles.count % 2 == 0 else {
            throw APDUScriptError(.hexadecimal, line: line, column: column, "an answer has at least two whole bytes")
        }
        self.nibbles = nibbles
    }
}

/// What is wrong with a script, or with an answer, and where. Equality is on the code.
public struct APDUScriptError: CodedError {
    public enum Code: String, Sendable {
        case hexadecimal, command, directive, wait, nothingToCheck
        /// The card answered something else.
        case mismatch
    }

    public let code: Code
    /// From 1.
    public let line: Int
    /// From 1, in UTF-8 code units.
    public let column: Int
    public let detail: String
    /// Of a mismatch: what was to come, and what came.
    public let expected: String?
    public let actual: String?

    init(_ code: Code, line: Int, column: Int, _ detail: String) {
        self.code = code
        self.line = line
        self.column = column
        self.detail = detail
        expected = nil
        actual = nil
    }

    init(mismatch pattern: AnswerPattern, actual: [UInt8], line: Int, column: Int) {
        code = .mismatch
        self.line = line
        self.column = column
        expected = pattern.description
        self.actual = Hex.encode(actual)
        detail = "expected \(pattern), the card answered \(Hex.encode(actual))"
    }

    public var description: String { "line \(line), column \(column): \(detail)" }
}
