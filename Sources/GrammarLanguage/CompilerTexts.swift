// SPDX-License-Identifier: MIT

import GrammarRuntime

extension Compiler {
    /// A text with its `{...}` parts compiled; a secret in one is a mistake.
    mutating func template(_ text: Name, _ scope: Scope, words: [String] = []) -> Int {
        var pieces: Template = []
        var rest = text.text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            if open > rest.startIndex { pieces.append(.text(String(rest[..<open]))) }
            let inside = String(rest[rest.index(after: open)..<close])
            let offset = text.place.start + 1 + text.text[..<rest.index(after: open)].utf8.count
            pieces.append(
                piece(inside, Place(file: text.place.file, start: offset, end: offset + inside.utf8.count), scope, words))
            rest = rest[rest.index(after: close)...]
        }
        if !rest.isEmpty { pieces.append(.text(String(rest))) }
        program.templates.append(pieces)
        return program.templates.count - 1
    }

    private mutating func piece(_ text: String, _ place: Place, _ scope: Scope, _ words: [String]) -> TemplatePiece {
        if words.contains(text) { return .word(text) }
        var expression: Expression?
        for part in text.split(separator: ".", omittingEmptySubsequences: false) {
            let name = Name(text: String(part), place: place)
            if let base = expression { expression = .member(base, name) } else { expression = .name(name) }
        }
        guard let expression else { return .text("") }
        if case .member(let base, let last) = expression, last.text == "frame",
            case .variable(let variable)? = resolve(base, scope)
        {
            return .exchange(variable: variable.index)
        }
        let kind = infer(expression, scope)
        if kind.isTainted {
            var see: (String, Place)?
            if case .variable(let variable)? = resolve(expression, scope) { see = ("declared a key here", variable.place) }
            if case .field(let field)? = resolve(expression, scope) { see = ("declared secret here", field.place) }
            diagnostics.add(.keyInText, place, "the key or secret \(text) would be printed: texts may not hold it", see: see)
            return .text("?")
        }
        var isOctets = kind.isOctets
        let code = aside { compiler in
            if isOctets { compiler.octets(expression, scope) } else { compiler.number(expression, scope) }
            compiler.emit(.done)
        }
        if case .shape? = resolve(expression, scope) { isOctets = false }
        return isOctets ? .octets(code: code) : .number(code: code)
    }
}
