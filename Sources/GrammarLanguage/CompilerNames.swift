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
    /// Whether a session is in a state.
    case state(session: Int, state: Int)
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
            if case .name(let session) = base, resolve(base, scope) == nil, let symbol = lookUp(session.text),
                case .session(let it) = symbol.declaration,
                let state = it.states.firstIndex(where: { $0.name.text == name.text })
            {
                return .state(session: symbol.number, state: state)
            }
            // What a layer holds, for a session that starts it again with some of it.
            if case .name(let layer) = base, resolve(base, scope) == nil, let symbol = lookUp(layer.text),
                case .layer(let it) = symbol.declaration, program.layers.indices.contains(symbol.number),
                let place = it.parameters.firstIndex(where: { $0.name.text == name.text })
            {
                let parameter = it.parameters[place]
                return .variable(
                    Scope.Variable(
                        index: program.layers[symbol.number].parameters[place], isNumber: false,
                        isTainted: parameter.type.text == "key", place: parameter.name.place))
            }
            // What an event carries has names of two parts.
            if case .name(let side) = base, let variable = scope.variables[side.text + "." + name.text] {
                return .variable(variable)
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
            if case .name(let enumName) = base, let symbol = lookUp(enumName.text), case .enumeration(let it) = symbol.declaration
            {
                let hint = nearest(name.text, it.entries.map(\.name.text)).map { "; did you mean '\($0)'?" } ?? ""
                diagnostics.add(
                    .unknownName, name.place, "\(enumName.text) has no value \(name.text)\(hint)",
                    see: ("declared here", it.name.place))
                return
            }
            if case .name(let session) = base, resolve(base, scope) == nil, let symbol = lookUp(session.text),
                case .session(let it) = symbol.declaration
            {
                unknownState(name, it.states.map(\.name.text))
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
        case .name(let name) where (name.text == "joined" || name.text == "kept") && scope.inGather:
            return ValueKind(isOctets: true)
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
            case "pad", "unpad":
                return ValueKind(isOctets: true, isTainted: arguments.first.map { infer($0, scope).isTainted } ?? false)
            default:
                guard let symbol = lookUp(name.text), case .transform(let it) = symbol.declaration else {
                    return ValueKind(isOctets: true)
                }
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
}
