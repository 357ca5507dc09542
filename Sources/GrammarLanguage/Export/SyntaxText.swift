// SPDX-License-Identifier: MIT

import GrammarRuntime

/// Types and expressions as people write them, for pages and explanations.
struct SyntaxText {
    let source: GrammarSource

    /// Numbers keep the spelling of the grammar: 0x0C stays hexadecimal.
    func expression(_ expression: Expression, inside: Int = 0) -> String {
        switch expression {
        case .number(let value, let place): return spelling(place) ?? String(value)
        case .octets(let octets, _): return octets.map { hex($0) }.joined()
        case .name(let name): return name.text
        case .member(let base, let name): return self.expression(base, inside: 9) + "." + name.text
        case .slice(let base, let start, let end, _):
            return "\(self.expression(base, inside: 9))[\(self.expression(start))..<\(self.expression(end))]"
        case .call(let name, let arguments, _):
            return "\(name.text)(\(arguments.map { self.expression($0) }.joined(separator: ", ")))"
        case .span(let first, let last, _): return "\(self.expression(first)) ... \(self.expression(last))"
        case .not(let inner, _): return "not \(self.expression(inner, inside: 8))"
        case .binary(let op, let left, let right, _):
            let level = Self.level(op)
            let text = "\(self.expression(left, inside: level)) \(op.rawValue) \(self.expression(right, inside: level + 1))"
            return level < inside ? "(\(text))" : text
        }
    }

    private static func level(_ op: Expression.Operator) -> Int {
        switch op {
        case .or: 1
        case .and: 2
        case .equal, .unequal, .less, .lessEqual, .greater, .greaterEqual: 3
        case .or_, .xor, .add, .subtract: 4
        default: 5
        }
    }

    private func spelling(_ place: Place) -> String? {
        guard place.start >= 0, place.end <= source.octets.count, place.start < place.end else { return nil }
        let text = String(decoding: source.octets[place.start..<place.end], as: UTF8.self)
        return text.allSatisfy { $0.isHexDigit || $0 == "x" || $0 == "?" } ? text : nil
    }

    private func hex(_ octet: UInt8) -> String {
        let digits = String(octet, radix: 16, uppercase: true)
        return digits.count == 1 ? "0" + digits : digits
    }

    func type(_ type: TypeSyntax) -> String {
        switch type {
        case .number(let octets, let isLittle, _):
            return "u\(octets * 8)" + (isLittle && octets > 1 ? ", least significant byte first" : "")
        case .filling: return "number that fills what is left"
        case .bits(let width, _, _): return "bits(\(width))"
        case .octets(let kind, let count, let inner, _):
            let word = kind == .text ? "ascii" : kind == .decimal ? "bcd" : "bytes"
            let head = count.map { "\(word)(\(expression($0)))" } ?? (kind == .octets ? "rest" : word)
            return head + (inner.map { " as \(self.type($0))" } ?? "")
        case .list(let count, let item, _):
            return "repeat" + (count.map { "(\(expression($0)))" } ?? "") + " of \(self.type(item))"
        case .inline: return "group"
        case .tags: return "tagged objects"
        case .named(let grammar, let name): return (grammar.map { $0.text + "." } ?? "") + name.text
        }
    }

    /// Octets that a type always takes; nil when that depends.
    func size(_ type: TypeSyntax, _ sizes: [String: Int]) -> Int? {
        switch type {
        case .number(let octets, _, _): return octets
        case .bits(let width, _, _): return width / 8
        case .octets(_, .number(let count, _)?, _, _): return Int(clamping: count)
        case .named(_, let name): return sizes[name.text]
        default: return nil
        }
    }

    /// The comment lines that stand right above `place`, without their slashes.
    func comment(above place: Place) -> [String] {
        var line = source.position(place.start).line - 1
        var result: [String] = []
        while line > 0 {
            let text = trimmed(source.line(line))
            guard text.hasPrefix("//") else { break }
            result.insert(trimmed(String(text.dropFirst(2))), at: 0)
            line -= 1
        }
        return result
    }

    private func trimmed(_ text: String) -> String {
        var text = Substring(text)
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" || last == "\r" { text.removeLast() }
        return String(text)
    }
}
