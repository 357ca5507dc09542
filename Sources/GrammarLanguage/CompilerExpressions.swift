// SPDX-License-Identifier: MIT

import GrammarRuntime

/// The names that an expression can see.
struct Scope {
    struct Variable {
        var index: Int
        var isNumber: Bool
        var isTainted: Bool
        var place: Place
    }
    /// Fields that need no prefix, the innermost shape first.
    var shapes: [Shape] = []
    /// `request`, `response` and what was opened.
    var objects: [String: Shape] = [:]
    var variables: [String: Variable] = [:]
    /// Types that an exchange gives to fields, by slot.
    var refinements: [Int: Shape] = [:]
    var inStructure = false
    var inGather = false
    /// Fields of this message that come after the place at work.
    var later: [String] = []
}

/// What an expression gives.
struct ValueKind {
    var isOctets = false
    /// Bits of a number when they are known; 0 otherwise.
    var bits = 0
    var isTainted = false
}

enum Resolved {
    case field(Field)
    case shape(Shape)
    case variable(Scope.Variable)
    case constant(UInt64, bits: Int)
}

extension Compiler {
    // MARK: Names

    func resolve(_ expression: Expression, _ scope: Scope) -> Resolved? {
        switch expression {
        case .name(let name):
            if let variable = scope.variables[name.text] { return .variable(variable) }
            if let shape = scope.objects[name.text] { return .shape(shape) }
            for shape in scope.shapes { if let field = shape.find(name.text) { return .field(field) } }
            return nil
        case .member(let base, let name):
            if case .name(let enumName) = base, resolve(base, scope) == nil, let symbol = lookUp(enumName.text),
                case .enumeration(let it) = symbol.declaration, let entry = it.entries.first(where: { $0.name.text == name.text })
            {
                return .constant(entry.value, bits: it.bits)
            }
            switch resolve(base, scope) {
            case .shape(let shape): return shape.find(name.text).map { .field($0) }
            case .field(let field):
                if let refined = scope.refinements[field.slot], let inner = refined.find(name.text) { return .field(inner) }
                return field.shape?.find(name.text).map { .field($0) }
            default: return nil
            }
        default: return nil
        }
    }

    /// Says that a name is not known, with the nearest that is.
    mutating func unknown(_ expression: Expression, _ scope: Scope) {
        switch expression {
        case .member(let base, let name):
            if case .name(let enumName) = base, let symbol = lookUp(enumName.text), case .enumeration(let it) = symbol.declaration {
                let hint = nearest(name.text, it.entries.map(\.name.text)).map { "; did you mean '\($0)'?" } ?? ""
                diagnostics.add(
                    .unknownName, name.place, "\(enumName.text) has no value \(name.text)\(hint)", see: ("declared here", it.name.place))
                return
            }
            let names: [String]
            switch resolve(base, scope) {
            case .shape(let shape): names = shape.names()
            case .field(let field): names = (scope.refinements[field.slot]?.names() ?? []) + (field.shape?.names() ?? [])
            case .some: names = []
            case nil:
                unknown(base, scope)
                return
            }
            let hint = nearest(name.text, names).map { "; did you mean '\($0)'?" } ?? ""
            diagnostics.add(.unknownName, name.place, "there is no field \(name.text) here\(hint)")
        case .name(let name):
            if scope.later.contains(name.text) {
                diagnostics.add(.size, name.place, "\(name.text) is read after this, so its value is not known yet")
                return
            }
            var names = Array(scope.variables.keys) + Array(scope.objects.keys) + ["remaining", "peek"]
            for shape in scope.shapes { names += shape.names() }
            let hint = nearest(name.text, names.sorted()).map { "; did you mean '\($0)'?" } ?? ""
            diagnostics.add(.unknownName, name.place, "nothing is called \(name.text) here\(hint)")
        default: diagnostics.add(.type, expression.place, "expected a name")
        }
    }

    // MARK: Kinds

    func infer(_ expression: Expression, _ scope: Scope) -> ValueKind {
        switch expression {
        case .number, .not: return ValueKind()
        case .octets: return ValueKind(isOctets: true)
        case .name(let name) where name.text == "joined" && scope.inGather: return ValueKind(isOctets: true)
        case .name, .member:
            switch resolve(expression, scope) {
            case .field(let field):
                switch field.kind {
                case .number(let bits): return ValueKind(bits: bits, isTainted: field.isSecret)
                default: return ValueKind(isOctets: true, isTainted: field.isSecret)
                }
            case .variable(let variable): return ValueKind(isOctets: !variable.isNumber, isTainted: variable.isTainted)
            case .constant(_, let bits): return ValueKind(bits: bits)
            default: return ValueKind()
            }
        case .slice(let base, _, _, _): return ValueKind(isOctets: true, isTainted: infer(base, scope).isTainted)
        case .span: return ValueKind(isOctets: true)
        case .call(let name, let arguments, _):
            switch name.text {
            case "count", "has", "peek", "remaining", "number": return ValueKind()
            case "raw", "before": return ValueKind(isOctets: true)
            case "pad", "unpad": return ValueKind(isOctets: true, isTainted: arguments.first.map { infer($0, scope).isTainted } ?? false)
            default:
                guard let symbol = lookUp(name.text), case .transform(let it) = symbol.declaration else { return ValueKind(isOctets: true) }
                return ValueKind(isOctets: true, isTainted: it.result.text == "key")
            }
        case .binary(let op, let left, let right, _):
            let (a, b) = (infer(left, scope), infer(right, scope))
            switch op {
            case .add where a.isOctets || b.isOctets, .xor where a.isOctets || b.isOctets:
                return ValueKind(isOctets: true, isTainted: a.isTainted || b.isTainted)
            case .and, .or, .equal, .unequal, .less, .lessEqual, .greater, .greaterEqual: return ValueKind()
            default: return ValueKind(isTainted: a.isTainted || b.isTainted)
            }
        }
    }

    /// A short text that is equal for equal expressions.
    func describe(_ expression: Expression) -> String {
        switch expression {
        case .number(let value, _): return String(value)
        case .octets(let octets, _): return octets.description
        case .name(let name): return name.text
        case .member(let base, let name): return describe(base) + "." + name.text
        case .slice(let base, let start, let end, _): return "\(describe(base))[\(describe(start))..<\(describe(end))]"
        case .call(let name, let arguments, _): return "\(name.text)(\(arguments.map(describe).joined(separator: ", ")))"
        case .span(let first, let last, _): return "\(describe(first))...\(describe(last))"
        case .not(let inner, _): return "not (\(describe(inner)))"
        case .binary(let op, let left, let right, _): return "(\(describe(left)) \(op) \(describe(right)))"
        }
    }

    // MARK: Code

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

    private mutating func binary(_ op: Expression.Operator, _ left: Expression, _ right: Expression, _ whole: Expression, _ scope: Scope) {
        switch op {
        case .and:
            condition(left, scope)
            let no = hole(.test)
            condition(right, scope)
            let end = hole(.jump)
            land(no)
            emit(.push, c: 0)
            land(end)
        case .or:
            condition(left, scope)
            emit(.not)
            let yes = hole(.test)
            condition(right, scope)
            let end = hole(.jump)
            land(yes)
            emit(.push, c: 1)
            land(end)
        case .equal, .unequal:
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
        case .name(let name) where name.text == "joined" && scope.inGather && resolve(expression, scope) == nil: emit(.joined)
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

    // MARK: Texts

    /// A text with its `{...}` parts compiled; a secret in one is a mistake.
    mutating func template(_ text: Name, _ scope: Scope, words: [String] = []) -> Int {
        var pieces: Template = []
        var rest = text.text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            if open > rest.startIndex { pieces.append(.text(String(rest[..<open]))) }
            let inside = String(rest[rest.index(after: open)..<close])
            let offset = text.place.start + 1 + text.text[..<rest.index(after: open)].utf8.count
            pieces.append(piece(inside, Place(file: text.place.file, start: offset, end: offset + inside.utf8.count), scope, words))
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
        if case .member(let base, let last) = expression, last.text == "frame", case .variable(let variable)? = resolve(base, scope) {
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
