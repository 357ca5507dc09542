// SPDX-License-Identifier: MIT

/// The one layout of a grammar text. Line breaks and comments stay where their writer put them; spaces, indentation, blank
/// lines and columns are ours. Formatting what was formatted changes nothing.
public struct GrammarFormatter: Sendable {
    public init() {}

    /// `source` in the canonical layout; nil when its characters or texts are not right, so that nothing is lost.
    public func format(_ source: GrammarSource) -> String? {
        var diagnostics = Diagnostics(sources: [source])
        let tokens = Lexer.tokens(source, file: 0, &diagnostics).dropLast()
        guard diagnostics.list.isEmpty else { return nil }
        var lines = lines(Array(tokens))
        align(&lines)
        return lines.map { $0.text }.joined(separator: "\n") + (lines.isEmpty ? "" : "\n")
    }

    private struct Line {
        var depth: Int
        var tokens: [Token]
        var pads: [Int: Int] = [:]
        var isBlank: Bool { tokens.isEmpty }

        var text: String {
            var text = tokens.isEmpty ? "" : String(repeating: "    ", count: depth)
            var parentheses = 0
            for (index, token) in tokens.enumerated() {
                if index > 0, Self.hasSpace(tokens, index, parentheses) {
                    text += " "
                    text += String(repeating: " ", count: pads[index] ?? 0)
                }
                if token.text == "(" { parentheses += 1 }
                if token.text == ")" { parentheses -= 1 }
                text += Self.spelling(token)
            }
            while text.last == " " { text.removeLast() }
            return text
        }

        static func spelling(_ token: Token) -> String { token.kind == .string ? "\"\(token.text)\"" : token.text }

        /// Whether a space stands before token `index`.
        static func hasSpace(_ tokens: [Token], _ index: Int, _ parentheses: Int) -> Bool {
            let token = tokens[index]
            let before = tokens[index - 1]
            let isSymbol = token.kind == .symbol
            if before.kind == .symbol, ["(", "[", ".", "..<", "..."].contains(before.text) { return false }
            if isSymbol, [")", "]", ",", ".", "..<", "..."].contains(token.text) { return false }
            if before.kind == .symbol, before.text == "-" {
                let unary = index < 2 || tokens[index - 2].text == "in" || [",", "(", "..."].contains(tokens[index - 2].text)
                if unary { return false }
            }
            if isSymbol, token.text == "(" || token.text == "[" {
                if [")", "]"].contains(before.text) { return false }
                guard before.kind == .name,
                    !["and", "or", "not", "when", "in", "with", "check", "part", "open"].contains(before.text)
                else {
                    return true
                }
                return index >= 2 && (tokens[index - 2].text == "layer" || tokens[index - 2].text == "transform")
            }
            if isSymbol, token.text == ":", parentheses > 0 { return false }
            if isSymbol, token.text == "}", before.text == "{", before.kind == .symbol { return false }
            return true
        }
    }

    private func lines(_ tokens: [Token]) -> [Line] {
        var lines: [Line] = []
        var depth = 0
        for (index, token) in tokens.enumerated() {
            let opensLine = index == 0 || token.linesBefore > 0
            let closes = token.kind == .symbol && token.text == "}"
            if closes { depth = max(0, depth - 1) }
            if opensLine {
                let last = lines.last?.tokens.last
                let afterOpening = last?.kind == .symbol && last?.text == "{"
                if index > 0, token.linesBefore > 1, !closes, !afterOpening { lines.append(Line(depth: 0, tokens: [])) }
                lines.append(Line(depth: depth, tokens: []))
            }
            lines[lines.count - 1].tokens.append(token)
            if token.kind == .symbol, token.text == "{" { depth = min(depth + 1, 64) }
        }
        return lines
    }

    /// Puts names, values and texts of neighbouring lines into columns.
    private func align(_ lines: inout [Line]) {
        var start = 0
        while start < lines.count {
            let columns = columns(lines[start])
            var end = start + 1
            while end < lines.count, !columns.isEmpty, lines[end].depth == lines[start].depth, self.columns(lines[end]) == columns
            { end += 1 }
            if end - start > 1 {
                for column in columns {
                    let widths = (start..<end).map { width(lines[$0], before: column) }
                    let widest = widths.max() ?? 0
                    // One very long name does not push all others away.
                    guard widest <= 40 else { continue }
                    for (offset, width) in widths.enumerated() { lines[start + offset].pads[column] = widest - width }
                }
            }
            start = end
        }
    }

    /// The tokens of a line that stand in columns: the colon of a field; name and text of a value.
    private func columns(_ line: Line) -> [Int] {
        let tokens = line.tokens
        if tokens.count == 3, tokens[0].kind != .symbol, tokens[1].kind == .name, tokens[2].kind == .string { return [1, 2] }
        guard tokens.count > 2, tokens[0].kind == .name, tokens[1].text == ":", tokens.last?.text != "{" else { return [] }
        return [1]
    }

    private func width(_ line: Line, before column: Int) -> Int {
        var count = 0
        for index in 0..<column { count += Line.spelling(line.tokens[index]).count + 1 + (line.pads[index] ?? 0) }
        return count
    }
}
