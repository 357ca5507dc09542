// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets

extension Parser {
    /// Looser binds first: or, and, not, comparison, `+ - | ^`, `* & << >>`.
    mutating func expression() throws(ParseStop) -> Expression {
        depth += 1
        defer { depth -= 1 }
        guard depth < 64 else { throw expected("a shorter expression") }
        var left = try conjunction()
        while at("or") {
            advance()
            left = join(.or, left, try conjunction())
        }
        return left
    }

    private func join(_ op: Expression.Operator, _ left: Expression, _ right: Expression) -> Expression {
        .binary(op, left, right, Place(file: left.place.file, start: left.place.start, end: right.place.end))
    }

    private mutating func conjunction() throws(ParseStop) -> Expression {
        var left = try negation()
        while at("and") {
            advance()
            left = join(.and, left, try negation())
        }
        return left
    }

    private mutating func negation() throws(ParseStop) -> Expression {
        var count = 0
        let place = current.place
        while accept("not") { count += 1 }
        let inner = try comparison()
        return count % 2 == 0 ? inner : .not(inner, place)
    }

    private mutating func comparison() throws(ParseStop) -> Expression {
        let left = try sum()
        guard current.kind == .symbol, let op = Expression.Operator(rawValue: current.text) else { return left }
        switch op {
        case .equal, .unequal, .less, .lessEqual, .greater, .greaterEqual:
            advance()
            return join(op, left, try sum())
        default: return left
        }
    }

    private mutating func sum() throws(ParseStop) -> Expression {
        var left = try product()
        while current.kind == .symbol, let op = Expression.Operator(rawValue: current.text) {
            switch op {
            case .add, .subtract, .or_, .xor:
                advance()
                left = join(op, left, try product())
            default: return left
            }
        }
        return left
    }

    private mutating func product() throws(ParseStop) -> Expression {
        var left = try postfix()
        while current.kind == .symbol, let op = Expression.Operator(rawValue: current.text) {
            switch op {
            case .multiply, .and_, .shiftLeft, .shiftRight:
                advance()
                left = join(op, left, try postfix())
            default: return left
            }
        }
        return left
    }

    private mutating func postfix() throws(ParseStop) -> Expression {
        var result = try primary()
        while true {
            if at("."), peek(1).kind == .name {
                advance()
                result = .member(result, try name("a field"))
            } else if accept("[") {
                let start = try expression()
                try require("..<")
                let end = try expression()
                let close = current.place
                try require("]")
                result = .slice(result, start, end, Place(file: close.file, start: result.place.start, end: close.end))
            } else {
                return result
            }
        }
    }

    private mutating func primary() throws(ParseStop) -> Expression {
        let token = current
        if token.kind == .number {
            guard let (value, mask) = Self.value(token.text), mask == .max else { throw expected("a number without '?'") }
            advance()
            return .number(value, token.place)
        }
        if accept("(") {
            let inner = try expression()
            try require(")")
            return inner
        }
        let name = try name("a value")
        guard at("("), current.place.start == name.place.end else { return .name(name) }
        advance()
        if name.text == "hex" || name.text == "text" {
            let content = try string("a text in quotes")
            try require(")")
            if name.text == "text" { return .octets(Array(content.text.utf8), name.place) }
            do { return .octets(try Hex.decode(content.text), name.place) } catch {
                diagnostics.add(.syntax, content.place, "expected hexadecimal digits in pairs, found \(error)")
                return .octets([], name.place)
            }
        }
        var arguments: [Expression] = []
        while !at(")") {
            let argument = try expression()
            if accept("...") {
                let end = try expression()
                arguments.append(
                    .span(argument, end, Place(file: token.place.file, start: argument.place.start, end: end.place.end)))
            } else {
                arguments.append(argument)
            }
            if !accept(",") { break }
        }
        let close = current.place
        try require(")", "',' or ')'")
        return .call(name, arguments, Place(file: name.place.file, start: name.place.start, end: close.end))
    }

    /// What follows the word `check`.
    mutating func check() throws(ParseStop) -> CheckSyntax {
        let place = advance().place
        var result = CheckSyntax(predicate: try expression(), place: place)
        if let severity = severity() {
            result.severity = severity
            result.text = try string("a text in quotes")
        }
        while true {
            if at("blame"), peek(1).kind == .name {
                advance()
                let who = try name("program, card, reader, outside or trace")
                result.blame = Blame(rawValue: who.text)
                if result.blame == nil {
                    diagnostics.add(
                        .unknownName, who.place, "expected program, card, reader, outside or trace, found '\(who.text)'")
                }
            } else if at("see"), peek(1).kind == .name {
                advance()
                result.see = try name("a variable")
            } else if at("near"), peek(1).kind == .name {
                advance()
                repeat { result.near.append(try near()) } while accept(",")
            } else {
                return result
            }
        }
    }

    private mutating func near() throws(ParseStop) -> CheckSyntax.Near {
        let name = try name("a variable")
        try require("in")
        if accept("[") {
            var values: [Expression] = []
            repeat { values.append(try expression()) } while accept(",")
            try require("]")
            return .values(name, values)
        }
        let low = try signed()
        try require("...")
        let high = try signed()
        guard low <= high, high - low <= 64 else {
            diagnostics.add(.size, name.place, "expected a range of at most 64 neighbours, found \(low)...\(high)")
            return .range(name, 0...0)
        }
        return .range(name, low...high)
    }

    private mutating func signed() throws(ParseStop) -> Int {
        let isNegative = accept("-")
        let value = Int(clamping: min(1 << 30, try number("a number").value))
        return isNegative ? -value : value
    }
}
