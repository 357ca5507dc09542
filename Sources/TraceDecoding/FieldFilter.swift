// SPDX-License-Identifier: MIT

import GrammarLibrary
import GrammarRuntime
public import Octets
import TraceFile

/// An expression over the fields of an exchange: `iso7816.response.sw != 0x9000 && bac.rndIC`.
///
/// - A name alone asks whether the field is there. It may leave out middle parts, and a grammar's name stands for all it has.
/// - `==`, `!=`, `<`, `<=`, `>`, `>=` compare with a number (`18`, `0x9000`), octets (`46:08:F9`) or a text (`"not found"`, or a
///   word without quotes); `contains` looks inside octets and texts. A name whose field repeats is true when one of them is;
///   `!=` when the field is there and none is equal.
/// - `&&` or `and`, `||` or `or`, `!` or `not`, parentheses.
/// - Of the rows themselves: `kind`, `interface`, `grammar`, `message`, `summary`, and of their annotations `code`, `severity`,
///   `blame`.
public struct FieldFilter: Sendable {
    private indirect enum Node: Sendable {
        case present(Name)
        case compare(Name, Comparison, Literal)
        case not(Node)
        case both(Node, Node)
        case either(Node, Node)
    }

    fileprivate enum Comparison: Sendable { case equal, unequal, less, lessEqual, greater, greaterEqual, contains }

    private enum Name: Sendable {
        case field([String])
        case row(String)
    }

    fileprivate struct Literal: Sendable {
        var number: UInt64?
        var octets: [UInt8]?
        var text: String
    }

    private let root: Node

    private static let rowNames = ["kind", "interface", "grammar", "message", "summary", "code", "severity", "blame"]

    /// - Throws: ``FieldFilterError`` with the column of what is wrong.
    public init(_ text: String, grammars: GrammarLibrary? = nil) throws(FieldFilterError) {
        try self.init(text, names: Names((grammars ?? .standard).program))
    }

    /// The paths that a filter may ask for.
    struct Names: Sendable {
        let paths: Set<String>
        init(_ program: Program) { paths = Set(program.nodes.indices.map { program.path($0) }) }
        init(_ paths: [String]) { self.paths = Set(paths) }
    }

    init(_ text: String, names: Names) throws(FieldFilterError) {
        var parser = FilterParser(text)
        root = try Self.either(&parser, names.paths, 0)
        if let left = parser.current { throw parser.error("expected && or ||, found \(left.text)", at: left.column) }
    }

    /// Whether the rows of one exchange fulfil the expression together.
    public func matches(_ rows: [DecodedRow]) -> Bool { holds(root, rows) }

    // MARK: - Reading

    private static func either(_ parser: inout FilterParser, _ paths: Set<String>, _ depth: Int) throws(FieldFilterError) -> Node
    {
        var node = try both(&parser, paths, depth)
        while parser.take("||", "or") { node = .either(node, try both(&parser, paths, depth)) }
        return node
    }

    private static func both(_ parser: inout FilterParser, _ paths: Set<String>, _ depth: Int) throws(FieldFilterError) -> Node {
        var node = try single(&parser, paths, depth)
        while parser.take("&&", "and") { node = .both(node, try single(&parser, paths, depth)) }
        return node
    }

    private static func single(_ parser: inout FilterParser, _ paths: Set<String>, _ depth: Int) throws(FieldFilterError) -> Node
    {
        guard depth < 64 else { throw parser.error("nested too deep", at: parser.column) }
        if parser.take("!", "not") { return .not(try single(&parser, paths, depth + 1)) }
        if parser.take("(") {
            let node = try either(&parser, paths, depth + 1)
            guard parser.take(")") else { throw parser.error("expected )", at: parser.column) }
            return node
        }
        guard let word = parser.current, word.kind == .word else {
            throw parser.error("expected a field, found \(parser.current?.text ?? "the end")", at: parser.column)
        }
        parser.advance()
        let name = try resolve(word, paths, parser)
        guard let comparison = parser.comparison() else { return .present(name) }
        guard let value = parser.current, value.kind != .sign else {
            throw parser.error("expected a value, found \(parser.current?.text ?? "the end")", at: parser.column)
        }
        parser.advance()
        return .compare(name, comparison, literal(value))
    }

    private static func resolve(_ word: FilterParser.Token, _ paths: Set<String>, _ parser: FilterParser) throws(FieldFilterError)
        -> Name
    {
        if rowNames.contains(word.text) { return .row(word.text) }
        var parts = word.text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        let whole = parts
        if parts.count > 1, let last = parts.last, ["header", "gap", "filler", "unknown"].contains(last) { parts.removeLast() }
        if paths.contains(where: { leadsTo(parts, $0, toItsEnd: false) }) { return .field(whole) }
        let nearest = (Array(paths) + rowNames).map { ($0, EditDistance.between(word.text, $0)) }.min {
            ($0.1, $0.0) < ($1.1, $1.0)
        }
        let hint = nearest.flatMap { $0.1 <= max(2, word.text.count / 3) ? "; \($0.0)?" : nil } ?? ""
        throw FieldFilterError(.unknownField, "unknown field \(word.text) in the filter", hint, column: word.column)
    }

    private static func literal(_ token: FilterParser.Token) -> Literal {
        let text = token.text
        var literal = Literal(number: nil, octets: nil, text: text)
        guard token.kind == .word else { return literal }
        if text.hasPrefix("0x") || text.hasPrefix("0X") {
            let digits = text.dropFirst(2)
            literal.number = UInt64(digits, radix: 16)
            literal.octets = try? Hex.decode(digits.count % 2 == 0 ? String(digits) : "0" + digits)
        } else if text.contains(":") {
            literal.octets = try? Hex.decode(text.split(separator: ":").joined())
            if let octets = literal.octets, octets.count <= 8 { literal.number = octets.reduce(0) { $0 << 8 | UInt64($1) } }
        } else {
            literal.number = UInt64(text)
        }
        return literal
    }

    // MARK: - Deciding

    private func holds(_ node: Node, _ rows: [DecodedRow]) -> Bool {
        switch node {
        case .not(let inner): return !holds(inner, rows)
        case .both(let left, let right): return holds(left, rows) && holds(right, rows)
        case .either(let left, let right): return holds(left, rows) || holds(right, rows)
        case .present(.row(let name)): return rows.contains { !self.words(name, $0).isEmpty }
        case .present(.field(let parts)):
            return rows.contains { $0.fields.contains { Self.leadsTo(parts, $0.path, toItsEnd: false) } }
        case .compare(.row(let name), let comparison, let literal):
            let all = rows.flatMap { words(name, $0) }
            if comparison == .unequal { return !all.isEmpty && !all.contains(literal.text) }
            return all.contains { word in
                switch comparison {
                case .equal: word == literal.text
                case .contains: word.contains(literal.text)
                default: false
                }
            }
        case .compare(.field(let parts), let comparison, let literal):
            let fields = rows.flatMap { $0.fields.filter { !$0.isSealed && Self.leadsTo(parts, $0.path, toItsEnd: true) } }
            if comparison == .unequal { return !fields.isEmpty && !fields.contains { $0.compare(literal, { $0 == $1 }, .equal) } }
            return fields.contains { field in
                switch comparison {
                case .equal, .unequal: field.compare(literal, { $0 == $1 }, .equal)
                case .less: field.compare(literal, { $0 < $1 }, nil)
                case .lessEqual: field.compare(literal, { $0 <= $1 }, nil)
                case .greater: field.compare(literal, { $0 > $1 }, nil)
                case .greaterEqual: field.compare(literal, { $0 >= $1 }, nil)
                case .contains: field.compare(literal, { _, _ in false }, .contains)
                }
            }
        }
    }

    private func words(_ name: String, _ row: DecodedRow) -> [String] {
        switch name {
        case "kind": [row.kind.rawValue]
        case "interface": [row.interface.name]
        case "grammar": [row.grammar]
        case "message": [row.message]
        case "summary": [row.summary]
        case "code": row.annotations.map(\.code)
        case "severity": row.annotations.map(\.severity.rawValue)
        default: row.annotations.compactMap { $0.blame?.rawValue }
        }
    }

    /// Whether a path has these parts in this order, the first at its start, the last at its end where that is asked.
    private static func leadsTo(_ parts: [String], _ path: String, toItsEnd: Bool) -> Bool {
        var left = parts[...]
        var isFirst = true
        var isLastTaken = false
        for part in path.split(separator: ".") {
            isLastTaken = left.first.map { $0 == part } ?? false
            if isFirst, !isLastTaken { return false }
            isFirst = false
            if isLastTaken { left.removeFirst() } else if left.isEmpty { return !toItsEnd }
        }
        return left.isEmpty && (isLastTaken || !toItsEnd)
    }
}

extension FieldFilter {
    fileprivate enum Search { case equal, contains }
}

extension DecodedField {
    fileprivate func compare(_ literal: FieldFilter.Literal, _ numbers: (UInt64, UInt64) -> Bool, _ search: FieldFilter.Search?)
        -> Bool
    {
        switch value {
        case .number(let value):
            if let number = literal.number { return search == .contains ? false : numbers(value, number) }
        case .octets(let octets):
            if let wanted = literal.octets {
                switch search {
                case .equal: return octets == wanted
                case .contains: return octets.holds(wanted)
                case nil: break
                }
            }
            if search == .contains, octets.holds(Array(literal.text.utf8)) { return true }
            if let number = literal.number, octets.count <= 8, search != .contains {
                return numbers(octets.reduce(0) { $0 << 8 | UInt64($1) }, number)
            }
        }
        switch search {
        case .equal: return text == literal.text
        case .contains: return text.contains(literal.text)
        case nil: return false
        }
    }
}

extension [UInt8] {
    fileprivate func holds(_ wanted: [UInt8]) -> Bool {
        guard !wanted.isEmpty, wanted.count <= count else { return false }
        return (0...count - wanted.count).contains { self[$0..<$0 + wanted.count].elementsEqual(wanted) }
    }
}

/// What is wrong with a filter. Equality is on the code.
public struct FieldFilterError: CodedError {
    public enum Code: Sendable { case syntax, unknownField }
    public let code: Code
    /// From 1.
    public let column: Int
    private let what: String
    private let hint: String

    init(_ code: Code, _ what: String, _ hint: String = "", column: Int) {
        (self.code, self.what, self.hint, self.column) = (code, what, hint, column)
    }

    /// `unknown field desfire.aidd in the filter, at column 1; desfire.aid?`
    public var description: String { "\(what), at column \(column)\(hint)" }
}

/// Words, signs and quoted texts of a filter.
private struct FilterParser {
    struct Token {
        enum Kind { case word, text, sign }
        var kind: Kind
        var text: String
        var column: Int
    }

    private var tokens: [Token] = []
    private var place = 0
    private let end: Int

    init(_ text: String) {
        let characters = Array(text)
        end = characters.count + 1
        var index = 0
        while index < characters.count {
            let character = characters[index]
            let start = index
            if character == " " || character == "\t" {
                index += 1
            } else if character == "\"" {
                index += 1
                var inner = ""
                while index < characters.count, characters[index] != "\"" {
                    inner.append(characters[index])
                    index += 1
                }
                index += 1
                tokens.append(Token(kind: .text, text: inner, column: start + 1))
            } else if Self.isWord(character) {
                while index < characters.count, Self.isWord(characters[index]) { index += 1 }
                tokens.append(Token(kind: .word, text: String(characters[start..<index]), column: start + 1))
            } else {
                let pair = index + 1 < characters.count ? String(characters[index...index + 1]) : ""
                let sign = ["&&", "||", "==", "!=", "<=", ">="].contains(pair) ? pair : String(character)
                index += sign.count
                tokens.append(Token(kind: .sign, text: sign, column: start + 1))
            }
        }
    }

    private static func isWord(_ character: Character) -> Bool {
        character.isLetter || character.isNumber || character == "." || character == "_" || character == ":" || character == "-"
    }

    var current: Token? { place < tokens.count ? tokens[place] : nil }
    var column: Int { current?.column ?? end }
    mutating func advance() { place += 1 }

    mutating func take(_ words: String...) -> Bool {
        guard let current, current.kind != .text, words.contains(current.text) else { return false }
        advance()
        return true
    }

    /// The comparison that stands here.
    mutating func comparison() -> FieldFilter.Comparison? {
        let table: [String: FieldFilter.Comparison] = [
            "==": .equal, "eq": .equal, "!=": .unequal, "ne": .unequal, "<": .less, "lt": .less, "<=": .lessEqual,
            "le": .lessEqual,
            ">": .greater, "gt": .greater, ">=": .greaterEqual, "ge": .greaterEqual, "contains": .contains,
        ]
        guard let current, current.kind != .text, let value = table[current.text] else { return nil }
        advance()
        return value
    }

    func error(_ text: String, at column: Int) -> FieldFilterError {
        FieldFilterError(.syntax, "\(text) in the filter", column: column)
    }
}
