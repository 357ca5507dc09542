// SPDX-License-Identifier: MIT

/// One word of a grammar text with its place.
struct Token: Sendable, Equatable {
    enum Kind: Sendable, Equatable { case name, number, string, symbol, comment, end }
    var kind: Kind
    var text: String
    var place: Place
    /// Whether it is the first on its line, and how many lines lie before it.
    var linesBefore: Int
    /// A text without its closing quote.
    var isUnclosed = false
}

/// Cuts a text into tokens. Everything that is not blank is in one of them.
struct Lexer {
    private let source: GrammarSource
    private let file: Int
    private var index = 0
    private var lines = 1

    /// Longest first.
    private static let symbols = [
        "...", "..<", "->", "==", "!=", "<=", ">=", "<<", ">>", "+=", "-=", "{", "}", "(", ")", "[", "]", ":", ",", ".", "=", "<",
        ">", "+",
        "-", "*", "&", "|", "^", "?",
    ].map { Array($0.utf8) }

    init(_ source: GrammarSource, file: Int) {
        self.source = source
        self.file = file
    }

    /// The tokens of the text, comments among them, ending with an `end`.
    static func tokens(_ source: GrammarSource, file: Int, _ diagnostics: inout Diagnostics) -> [Token] {
        var lexer = Lexer(source, file: file)
        var tokens: [Token] = []
        while let token = lexer.next(&diagnostics) { tokens.append(token) }
        let end = source.octets.count
        tokens.append(Token(kind: .end, text: "", place: Place(file: file, start: end, end: end), linesBefore: lexer.lines))
        return tokens
    }

    private mutating func next(_ diagnostics: inout Diagnostics) -> Token? {
        let octets = source.octets
        while index < octets.count,
            octets[index] == 0x20 || octets[index] == 0x09 || octets[index] == 0x0A || octets[index] == 0x0D
        {
            if octets[index] == 0x0A { lines += 1 }
            index += 1
        }
        guard index < octets.count else { return nil }
        let start = index
        let first = octets[index]
        if isWord(first) {
            while index < octets.count, isWord(octets[index]) || (octets[index] == 0x3F && isDigit(first)) { index += 1 }
            return token(isDigit(first) ? .number : .name, start)
        }
        if first == 0x2F, index + 1 < octets.count, octets[index + 1] == 0x2F {
            while index < octets.count, octets[index] != 0x0A { index += 1 }
            return token(.comment, start)
        }
        if first == 0x22 { return string(&diagnostics) }
        for symbol in Self.symbols where octets[index...].starts(with: symbol) {
            index += symbol.count
            return token(.symbol, start)
        }
        // An octet that begins nothing: passed over with the rest of its character.
        index += 1
        while index < octets.count, octets[index] & 0xC0 == 0x80 { index += 1 }
        let odd = Token(kind: .symbol, text: text(start), place: Place(file: file, start: start, end: index), linesBefore: 0)
        diagnostics.add(.syntax, odd.place, "expected a name, a number or a symbol, found '\(odd.text)'")
        return next(&diagnostics)
    }

    private mutating func string(_ diagnostics: inout Diagnostics) -> Token {
        let start = index
        let octets = source.octets
        index += 1
        while index < octets.count, octets[index] != 0x22, octets[index] != 0x0A { index += 1 }
        let isClosed = index < octets.count && octets[index] == 0x22
        let content = String(decoding: octets[(start + 1)..<index], as: UTF8.self)
        if isClosed {
            index += 1
        } else {
            diagnostics.add(
                .unclosedString, Place(file: file, start: start, end: index),
                "expected '\"' at the end of this text, found the end of the line")
        }
        var token = token(.string, start)
        token.text = content
        token.isUnclosed = !isClosed
        return token
    }

    private func text(_ start: Int) -> String { String(decoding: source.octets[start..<index], as: UTF8.self) }

    private mutating func token(_ kind: Token.Kind, _ start: Int) -> Token {
        defer { lines = 0 }
        return Token(kind: kind, text: text(start), place: Place(file: file, start: start, end: index), linesBefore: lines)
    }

    private func isDigit(_ octet: UInt8) -> Bool { (0x30...0x39).contains(octet) }

    private func isWord(_ octet: UInt8) -> Bool {
        isDigit(octet) || (0x41...0x5A).contains(octet) || (0x61...0x7A).contains(octet) || octet == 0x5F
    }
}
