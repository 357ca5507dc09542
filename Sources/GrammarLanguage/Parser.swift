// SPDX-License-Identifier: MIT

import GrammarRuntime

/// Thrown after a mistake was written down, to get back to a place where reading can go on.
struct ParseStop: Error {}

/// Reads declarations by recursive descent. A mistake ends the item it is in, never the file.
struct Parser {
    var tokens: [Token]
    var index = 0
    var diagnostics: Diagnostics
    var depth = 0

    static let keywords: Set<String> = [
        "enum", "message", "tlv", "choose", "exchange", "gather", "layer", "session", "transform", "example",
    ]

    static func parse(_ source: GrammarSource, file: Int, _ diagnostics: inout Diagnostics) -> SyntaxFile {
        let tokens = Lexer.tokens(source, file: file, &diagnostics).filter { $0.kind != .comment }
        var parser = Parser(tokens: tokens, diagnostics: diagnostics)
        let result = parser.file(file)
        diagnostics = parser.diagnostics
        return result
    }

    // MARK: The file

    private mutating func file(_ number: Int) -> SyntaxFile {
        var result = SyntaxFile(file: number)
        while current.kind != .end {
            let before = index
            do {
                if accept("grammar") {
                    result.grammar = try name("the grammar's name")
                } else if accept("use") {
                    result.uses.append(try name("the name of a grammar"))
                } else if accept("cite") {
                    result.citations.append(try string("the standard and clause in quotes"))
                } else {
                    try declaration(&result.declarations)
                }
            } catch {
                if index == before { index += 1 }
                recoverToDeclaration()
            }
        }
        return result
    }

    mutating func declaration(_ list: inout [Declaration]) throws(ParseStop) {
        guard current.kind == .name, Self.keywords.contains(current.text) else {
            let hint = nearest(current.text, Self.keywords).map { "; did you mean '\($0)'?" } ?? ""
            throw expected("a declaration (enum, message, tlv, choose, exchange, ...)", hint)
        }
        let keyword = advance().text
        switch keyword {
        case "enum": list.append(.enumeration(try enumeration()))
        case "message": list.append(.message(try message()))
        case "tlv": list.append(.tags(try tags()))
        case "choose": list.append(.choice(try choice()))
        case "exchange": list.append(.exchange(try exchange()))
        case "gather": list.append(.gather(try gather()))
        case "layer":
            let layer = try layer(&list)
            list.append(.layer(layer))
        case "session": list.append(.session(try session()))
        case "transform": list.append(.transform(try transform()))
        default: list.append(.example(try example()))
        }
    }

    // MARK: Tokens

    var current: Token { tokens[min(index, tokens.count - 1)] }

    func peek(_ distance: Int) -> Token { tokens[min(index + distance, tokens.count - 1)] }

    @discardableResult
    mutating func advance() -> Token {
        let token = current
        if index < tokens.count - 1 { index += 1 }
        return token
    }

    func at(_ text: String) -> Bool { (current.kind == .symbol || current.kind == .name) && current.text == text }

    mutating func accept(_ text: String) -> Bool {
        guard at(text) else { return false }
        advance()
        return true
    }

    /// The mistake "expected this, found that" at the current token.
    mutating func expected(_ what: String, _ hint: String = "") -> ParseStop {
        var place = current.place
        // What is missing at the end of a line is missing there, not at the start of the next.
        if current.linesBefore > 0, index > 0 {
            place = tokens[index - 1].place
            place.start = place.end
        }
        let found =
            current.kind == .end
            ? "the end of the file" : current.kind == .string ? "the text \"\(current.text)\"" : "'\(current.text)'"
        diagnostics.add(.syntax, place, "expected \(what), found \(found)\(hint)")
        return ParseStop()
    }

    mutating func require(_ text: String, _ what: String? = nil) throws(ParseStop) {
        guard accept(text) else { throw expected(what ?? "'\(text)'") }
    }

    mutating func name(_ what: String) throws(ParseStop) -> Name {
        guard current.kind == .name else { throw expected(what) }
        let token = advance()
        return Name(text: token.text, place: token.place)
    }

    mutating func string(_ what: String) throws(ParseStop) -> Name {
        guard current.kind == .string else { throw expected(what) }
        let token = advance()
        return Name(text: token.text, place: token.place)
    }

    mutating func optionalString() -> Name? {
        guard current.kind == .string else { return nil }
        let token = advance()
        return Name(text: token.text, place: token.place)
    }

    /// A number with its mask: `0x61??` leaves the low octet open.
    mutating func number(_ what: String) throws(ParseStop) -> (value: UInt64, mask: UInt64) {
        guard current.kind == .number, let result = Self.value(current.text) else { throw expected(what) }
        advance()
        return result
    }

    static func value(_ text: String) -> (value: UInt64, mask: UInt64)? {
        if text.hasPrefix("0x") {
            let digits = text.dropFirst(2)
            guard !digits.isEmpty, digits.count <= 16 else { return nil }
            var value: UInt64 = 0
            var mask: UInt64 = 0
            for digit in digits {
                value <<= 4
                mask <<= 4
                if digit == "?" { continue }
                guard let nibble = digit.hexDigitValue else { return nil }
                value |= UInt64(nibble)
                mask |= 0xF
            }
            // Digits that are not written are zeros that count.
            if digits.count < 16 { mask |= ~((1 << UInt64(4 * digits.count)) - 1) }
            return (value, mask)
        }
        guard let value = UInt64(text) else { return nil }
        return (value, .max)
    }

    /// `{ item* }`; a mistake in one item leaves the others.
    mutating func block(_ what: String = "'{'", _ item: (inout Parser) throws(ParseStop) -> Void) throws(ParseStop) {
        try require("{", what)
        depth += 1
        defer { depth -= 1 }
        guard depth < 64 else { throw expected("less nesting") }
        while !at("}") {
            if current.kind == .end || startsDeclaration {
                // A text that is not closed took the brace with it.
                if index > 0, tokens[index - 1].isUnclosed { return }
                throw expected("'}'")
            }
            let before = index
            do { try item(&self) } catch {
                if index == before, !at("}") { advance() }
                recoverInBlock()
            }
        }
        advance()
    }

    /// A declaration's keyword at the start of a line, not followed by what a field would have.
    private var startsDeclaration: Bool {
        current.kind == .name && current.linesBefore > 0 && Self.keywords.contains(current.text) && peek(1).kind == .name
            && (peek(2).text == "{" || peek(2).text == ":" || peek(2).text == "(")
            && !(depth > 0
                && (current.text == "tlv" || current.text == "message" || current.text == "enum" || current.text == "choose"))
    }

    /// On to the next line of this block, over whole inner blocks.
    private mutating func recoverInBlock() {
        var level = 0
        while current.kind != .end {
            if level == 0, at("}") || current.linesBefore > 0 { return }
            if at("{") { level += 1 }
            if at("}") { level -= 1 }
            advance()
        }
    }

    private mutating func recoverToDeclaration() {
        while current.kind != .end {
            if current.linesBefore > 0, current.kind == .name,
                Self.keywords.contains(current.text) || current.text == "use" || current.text == "cite"
            {
                return
            }
            advance()
        }
    }

    /// `Name` or `grammar.Name`.
    mutating func qualified(_ what: String) throws(ParseStop) -> (grammar: Name?, name: Name) {
        let first = try name(what)
        if at("."), peek(1).kind == .name {
            advance()
            return (first, try name(what))
        }
        return (nil, first)
    }
}
