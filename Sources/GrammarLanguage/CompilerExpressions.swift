// SPDX-License-Identifier: MIT

import GrammarRuntime

/// Code of expressions.
extension Compiler {
    mutating func condition(_ expression: Expression, _ scope: Scope) {
        if infer(expression, scope).isOctets { diagnostics.add(.type, expression.place, "expected a condition, found bytes") }
        number(expression, scope)
    }

    /// Code that goes on when `expression` holds, and the jumps that are taken when it does not.
    mutating func branch(_ expression: Expression, _ scope: Scope) -> [Int] {
        func isBuiltin(_ side: Expression, _ text: String) -> Bool {
            if case .name(let name) = side, name.text == text { return resolve(side, scope) == nil }
            return false
        }
        switch expression {
        case .binary(.and, let left, let right, _): return branch(left, scope) + branch(right, scope)
        case .binary(.equal, let left, .number(let value, _), _):
            if isBuiltin(left, "remaining"), value < 65_536 { return [hole(.testRemaining, b: Int(value))] }
            if isBuiltin(left, "peek"), value < 256 {
                emit(.testPeek, a: 0xFF, b: Int(value))
                return [program.code.count - 1]
            }
            if case .binary(.and_, let inner, .number(let mask, _), _) = left, isBuiltin(inner, "peek"), mask < 256, value < 256 {
                emit(.testPeek, a: Int(mask), b: Int(value))
                return [program.code.count - 1]
            }
        default: break
        }
        condition(expression, scope)
        return [hole(.test)]
    }

    /// Code that leaves a number.
    mutating func number(_ expression: Expression, _ scope: Scope) {
        switch expression {
        case .number(let value, _): constant(value)
        case .octets:
            octets(expression, scope)
            emit(.toNumber)
        case .name(let name) where resolve(expression, scope) == nil:
            if name.text == "remaining" {
                if !scope.inStructure { diagnostics.add(.type, name.place, "'remaining' means something inside a message only") }
                emit(.remaining)
            } else if name.text == "peek" {
                if !scope.inStructure { diagnostics.add(.type, name.place, "'peek' means something inside a message only") }
                emit(.peek)
            } else {
                unknown(expression, scope)
                emit(.push)
            }
        case .name, .member:
            switch resolve(expression, scope) {
            case .field(let field):
                if case .number = field.kind {
                    emit(.slotNumber, b: field.slot)
                } else {
                    emit(.slotBytes, b: field.slot)
                    emit(.toNumber)
                }
            case .variable(let variable):
                emit(.variable, a: variable.isNumber ? 1 : 0, b: variable.index)
                if !variable.isNumber { emit(.toNumber) }
            case .constant(let value, _): constant(value)
            case .state(let session, let state): emit(.inState, b: session, c: state)
            case .shape:
                diagnostics.add(.type, expression.place, "expected a number, found a whole message")
                emit(.push)
            case nil:
                unknown(expression, scope)
                emit(.push)
            }
        case .not(let inner, _):
            condition(inner, scope)
            emit(.not)
        case .call(let name, let arguments, let place): call(name, arguments, place, scope)
        case .binary(let op, let left, let right, _): binary(op, left, right, expression, scope)
        case .slice, .span:
            octets(expression, scope)
            emit(.toNumber)
        }
    }

    func constantValue(_ expression: Expression, _ scope: Scope) -> UInt64? {
        if case .number(let value, _) = expression { return value }
        if case .constant(let value, _)? = resolve(expression, scope) { return value }
        return nil
    }

    private mutating func constant(_ value: UInt64) {
        if value < 1 << 31 {
            emit(.push, c: Int(value))
        } else {
            program.constants.append(Int64(truncatingIfNeeded: value))
            emit(.constant, b: program.constants.count - 1)
        }
    }

    private mutating func call(_ name: Name, _ arguments: [Expression], _ place: Place, _ scope: Scope) {
        switch name.text {
        case "count":
            guard let first = argument(name, arguments, scope) else { return emit(.push) }
            if case .field(let field)? = resolve(first, scope) {
                emit(.slotCount, b: field.slot)
            } else {
                octets(first, scope)
                emit(.countBytes)
            }
        case "has":
            guard let first = argument(name, arguments, scope) else { return emit(.push) }
            guard case .field(let field)? = resolve(first, scope) else {
                unknown(first, scope)
                return emit(.push)
            }
            emit(.has, b: field.slot)
        case "peek":
            var distance = 0
            if case .number(let value, _)? = arguments.first { distance = Int(clamping: min(value, 65_535)) }
            emit(.peek, c: distance)
        case "number":
            guard let first = argument(name, arguments, scope) else { return emit(.push) }
            octets(first, scope)
            emit(.toNumber)
        default:
            octets(.call(name, arguments, place), scope)
            emit(.toNumber)
        }
    }

    private mutating func argument(_ name: Name, _ arguments: [Expression], _ scope: Scope) -> Expression? {
        if let first = arguments.first { return first }
        diagnostics.add(.type, name.place, "\(name.text) takes a value")
        return nil
    }

    /// The sides of `a and b and c`, or of `a or b or c`.
    private func row(_ op: Expression.Operator, _ expression: Expression) -> [Expression] {
        guard case .binary(op, let left, let right, _) = expression else { return [expression] }
        return row(op, left) + row(op, right)
    }

    private mutating func binary(
        _ op: Expression.Operator, _ left: Expression, _ right: Expression, _ whole: Expression, _ scope: Scope
    ) {
        switch op {
        case .and, .or:
            // One way out of a whole row of them, at the first that decides.
            let sides = row(op, left) + row(op, right)
            var decided: [Int] = []
            for side in sides.dropLast() {
                condition(side, scope)
                if op == .or { emit(.not) }
                decided.append(hole(.test))
            }
            if let last = sides.last { condition(last, scope) }
            let end = hole(.jump)
            for hole in decided { land(hole) }
            emit(.push, c: op == .or ? 1 : 0)
            land(end)
        case .equal, .unequal:
            if op == .equal, case .field(let field)? = resolve(left, scope), case .number = field.kind,
                let value = constantValue(right, scope),
                value < 1 << 31
            {
                emit(.slotIs, b: field.slot, c: Int(value))
                return
            }
            if infer(left, scope).isOctets, infer(right, scope).isOctets {
                octets(left, scope)
                octets(right, scope)
                emit(.bytesEqual)
                if op == .unequal { emit(.not) }
            } else {
                number(left, scope)
                number(right, scope)
                emit(op == .equal ? .equal : .unequal)
            }
        case .greater, .greaterEqual:
            number(right, scope)
            number(left, scope)
            emit(op == .greater ? .less : .lessEqual)
        default:
            if infer(whole, scope).isOctets {
                octets(whole, scope)
                emit(.toNumber)
                return
            }
            number(left, scope)
            number(right, scope)
            switch op {
            case .less: emit(.less)
            case .lessEqual: emit(.lessEqual)
            case .add: emit(.add)
            case .subtract: emit(.subtract)
            case .or_: emit(.or)
            case .xor: emit(.xor)
            case .multiply: emit(.multiply)
            case .and_: emit(.and)
            case .shiftLeft: emit(.shiftLeft)
            default: emit(.shiftRight)
            }
        }
    }

    /// Code that leaves octets.
    mutating func octets(_ expression: Expression, _ scope: Scope, width: Int = 0) {
        let kind = infer(expression, scope)
        if case .call(let name, let arguments, let place) = expression, kind.isOctets {
            octetsCall(name, arguments, place, scope)
            return
        }
        guard kind.isOctets else {
            let bits = kind.bits > 0 ? kind.bits : width * 8
            if case .field(let field)? = resolve(expression, scope), width == 0, program.nodes[field.node].kind != .bit {
                emit(.slotBytes, b: field.slot)
                return
            }
            if bits == 0, resolve(expression, scope) != nil || isLiteral(expression) {
                diagnostics.add(.type, expression.place, "expected bytes, found a number of no known width")
            }
            number(expression, scope)
            emit(.octets, a: max(1, width > 0 ? width : (bits + 7) / 8))
            return
        }
        switch expression {
        case .octets(let octets, _):
            program.literals.append(octets)
            emit(.literal, b: program.literals.count - 1)
        case .name(let name)
        where (name.text == "joined" || name.text == "kept") && scope.inGather && resolve(expression, scope) == nil:
            emit(.joined, a: name.text == "kept" ? 1 : 0)
        case .name, .member:
            switch resolve(expression, scope) {
            case .field(let field): emit(.slotBytes, b: field.slot)
            case .variable(let variable): emit(.variable, b: variable.index)
            default: unknown(expression, scope)
            }
        case .slice(let base, let start, let end, _):
            octets(base, scope)
            number(start, scope)
            number(end, scope)
            emit(.slice)
        case .binary(let op, let left, let right, _):
            octets(left, scope)
            octets(right, scope)
            emit(op == .xor ? .exclusive : .concatenate)
        default:
            diagnostics.add(.type, expression.place, "expected bytes")
            program.literals.append([])
            emit(.literal, b: program.literals.count - 1)
        }
    }

    private func isLiteral(_ expression: Expression) -> Bool {
        if case .number = expression { return true }
        return false
    }

    private mutating func octetsCall(_ name: Name, _ arguments: [Expression], _ place: Place, _ scope: Scope) {
        switch name.text {
        case "raw", "before":
            if case .span(let first, let last, _)? = arguments.first {
                guard case .field(let a)? = resolve(first, scope) else { return unknown(first, scope) }
                guard case .field(let b)? = resolve(last, scope) else { return unknown(last, scope) }
                emit(.slotRange, b: a.slot, c: b.slot)
                return
            }
            guard let first = argument(name, arguments, scope) else { return }
            guard case .field(let field)? = resolve(first, scope) else { return unknown(first, scope) }
            emit(name.text == "raw" ? .slotRaw : .before, b: field.slot)
        case "pad", "unpad":
            guard let first = argument(name, arguments, scope) else { return }
            octets(first, scope)
            if arguments.count > 1 { number(arguments[1], scope) } else { emit(.push, c: 8) }
            emit(name.text == "pad" ? .pad : .unpad)
        default:
            guard let symbol = lookUp(name.text), case .transform(let it) = symbol.declaration else {
                var names = ["count", "has", "peek", "number", "raw", "before", "pad", "unpad", "hex", "text"]
                for use in [grammar] + (uses[grammar] ?? []) {
                    for (key, symbol) in symbols[use] ?? [:] { if case .transform = symbol.declaration { names.append(key) } }
                }
                let hint = nearest(name.text, names.sorted()).map { "; did you mean '\($0)'?" } ?? ""
                diagnostics.add(.unknownName, name.place, "there is no transform \(name.text)\(hint)")
                return
            }
            if arguments.count != it.parameters.count {
                diagnostics.add(
                    .type, place, "expected \(it.parameters.count) values for \(name.text), found \(arguments.count)",
                    see: ("declared here", it.name.place))
            }
            for (argument, parameter) in zip(arguments, it.parameters) {
                let width = ["u8": 1, "u16": 2, "u32": 4][parameter.type.text] ?? 0
                octets(argument, scope, width: infer(argument, scope).isOctets ? 0 : width)
            }
            emit(.transform, b: symbol.number)
        }
    }
}
