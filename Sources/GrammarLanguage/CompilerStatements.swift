// SPDX-License-Identifier: MIT

import GrammarRuntime

/// What a list of statements leaves behind for sealing.
struct Effects {
    var opened: [(alias: String, open: Int)] = []
    var yields: [YieldSyntax] = []
    var checks: [CheckSyntax] = []
}

extension Compiler {
    /// Code for `list`, ending in `done`; nil when it is empty.
    mutating func statements(_ list: [Statement], _ scope: inout Scope, layer: Int = -1, _ effects: inout Effects) -> Int {
        guard !list.isEmpty else { return -1 }
        let start = program.code.count
        for statement in list { self.statement(statement, &scope, layer, &effects) }
        emit(.done)
        return start
    }

    private mutating func statement(_ statement: Statement, _ scope: inout Scope, _ layer: Int, _ effects: inout Effects) {
        switch statement {
        case .check(let syntax):
            effects.checks.append(syntax)
            check(syntax, scope)
        case .bind(let name, let value):
            let kind = infer(value, scope)
            store(value, scope, kind.isOctets)
            let index = variable(name, isGiven: false, isTainted: kind.isTainted)
            scope.variables[name.text] = .init(
                index: index, isNumber: !kind.isOctets, isTainted: kind.isTainted, place: name.place)
            emit(.set, a: kind.isOctets ? 0 : 1, b: index)
        case .assign(let name, let value):
            guard let variable = scope.variables[name.text] else { return unknown(.name(name), scope) }
            let kind = infer(value, scope)
            if kind.isTainted, !variable.isTainted {
                diagnostics.add(
                    .type, value.place, "expected a value that may be shown, found a key",
                    see: ("\(name.text) is declared here", variable.place))
            }
            if kind.isOctets == variable.isNumber, !variable.isNumber {
                octets(value, scope)
                emit(.set, b: variable.index)
            } else {
                store(value, scope, !variable.isNumber)
                emit(.set, a: variable.isNumber ? 1 : 0, b: variable.index)
            }
        case .bump(let name, let distance):
            guard let variable = scope.variables[name.text] else { return unknown(.name(name), scope) }
            emit(.bump, b: variable.index, c: distance)
        case .note(let severity, let text): remark(severity, text, scope)
        case .decode(let command, let response, let name, let place):
            octets(command, scope)
            octets(response, scope)
            guard let request = entries["\(name.text).Command"], let answer = entries["\(name.text).Response"] else {
                let hint = nearest(name.text, symbols.keys.sorted()).map { "; did you mean '\($0)'?" } ?? ""
                diagnostics.add(
                    .unknownName, name.place.end > 0 ? name.place : place, "\(name.text) has no Command and Response\(hint)")
                return
            }
            program.decodes.append(DecodeInfo(request: request, response: max(answer, program.roots[answer].twin)))
            emit(.decode, b: program.decodes.count - 1)
        case .open(let source, let transform, let name, let type): open(source, transform, name, type, &scope, &effects)
        case .start(let named, let name, let arguments, let place):
            guard let symbol = find(named, name, "layer") else { return }
            guard case .layer(let it) = symbol.declaration else {
                diagnostics.add(.type, name.place, "expected a layer, found the \(symbol.declaration.kind) \(name.text)")
                return
            }
            if it.parameters.count != arguments.count {
                diagnostics.add(
                    .type, place, "expected \(it.parameters.count) values for \(name.text), found \(arguments.count)",
                    see: ("declared here", it.name.place))
                return
            }
            for argument in arguments { octets(argument, scope) }
            emit(.start, b: symbol.number)
        case .stop(let name, let place):
            if let name {
                guard let symbol = find(nil, name, "layer"), case .layer = symbol.declaration else { return }
                emit(.stop, b: symbol.number)
            } else if layer >= 0 {
                emit(.stop, b: layer)
            } else {
                diagnostics.add(.syntax, place, "expected the name of a layer")
            }
        case .yield(let syntax):
            effects.yields.append(syntax)
            if let number = yield(syntax, scope) { emit(.yield, b: number) }
        }
    }

    private mutating func store(_ value: Expression, _ scope: Scope, _ isOctets: Bool) {
        if isOctets { octets(value, scope) } else { number(value, scope) }
    }

    mutating func variable(_ name: Name, isGiven: Bool, isTainted: Bool) -> Int {
        program.variables.append(
            VariableInfo(name: word(name.text), grammar: word(grammar), isGiven: isGiven, isTainted: isTainted))
        return program.variables.count - 1
    }

    private mutating func open(
        _ source: Expression, _ transform: Expression?, _ name: Name, _ type: TypeSyntax, _ scope: inout Scope,
        _ effects: inout Effects
    ) {
        let root = root(type, called: "\(grammar).\(name.text)", parent: -1, unnamed: false, place: name.place, isEntry: false)
        var base = source
        while case .slice(let inner, _, _, _) = base { base = inner }
        var slot = -1
        if case .field(let field)? = resolve(base, scope) { slot = field.slot }
        if let transform {
            switch transform {
            case .call(let function, let arguments, let place): octets(.call(function, arguments + [source], place), scope)
            case .name(let function): octets(.call(function, [source], function.place), scope)
            default: diagnostics.add(.type, transform.place, "expected a transform, like tdes(key)")
            }
        } else if slot < 0 {
            unknown(base, scope)
        }
        program.opens.append(OpenInfo(slot: slot, root: root, hasTransform: transform != nil))
        emit(.open, b: program.opens.count - 1)
        scope.objects[name.text] = shapes[root]
        effects.opened.append((name.text, program.opens.count - 1))
    }

    mutating func yield(_ syntax: YieldSyntax, _ scope: Scope) -> Int? {
        guard let root = entryRoot(syntax.type, "message") else { return nil }
        var assignments: [Assignment] = []
        for assign in syntax.assigns {
            guard let shape = shapes[root] else { continue }
            let target = Scope(shapes: [shape])
            guard case .field(let field)? = resolve(assign.path, target) else {
                unknown(assign.path, target)
                continue
            }
            var condition = assign.condition.map { condition in
                aside { compiler in
                    compiler.condition(condition, scope)
                    compiler.emit(.done)
                }
            }
            // A constant for a field that this message has not (the bit of another class form) changes nothing.
            if case .number = assign.value, condition == nil, scope.shapes.contains(where: { $0 === shape }) {
                condition = aside { compiler in
                    compiler.emit(.has, b: field.slot)
                    compiler.emit(.done)
                }
            }
            var result = Assignment(slot: field.slot, code: -1, source: -1, condition: condition ?? -1)
            if case .field(let source)? = resolve(assign.value, scope), program.nodes[source.node].kind != .bit {
                result.source = source.slot
            } else {
                if case .field(let source)? = innermost(assign.value).flatMap({ resolve($0, scope) }) {
                    result.source = source.slot
                }
                result.code = aside { compiler in
                    let width = max(1, field.size)
                    compiler.octets(assign.value, scope, width: compiler.infer(assign.value, scope).isOctets ? 0 : width)
                    compiler.emit(.done)
                }
            }
            assignments.append(result)
        }
        program.yields.append(YieldInfo(root: root, assignments: assignments))
        return program.yields.count - 1
    }

    /// What the last argument of nested calls is about.
    func innermost(_ expression: Expression) -> Expression? {
        switch expression {
        case .call(let name, let arguments, _):
            if name.text == "unpad" || name.text == "pad" { return arguments.first.flatMap(innermost) }
            return arguments.last.flatMap(innermost)
        case .name, .member: return expression
        case .slice(let base, _, _, _): return innermost(base)
        default: return nil
        }
    }

    mutating func entryRoot(_ type: (grammar: Name?, name: Name), _ what: String) -> Int? {
        guard let symbol = find(type.grammar, type.name, what) else { return nil }
        guard let root = entries["\(symbol.grammar).\(type.name.text)"] else {
            diagnostics.add(
                .type, type.name.place, "expected a \(what), found the \(symbol.declaration.kind) \(type.name.text)",
                see: ("declared here", symbol.declaration.name.place))
            return nil
        }
        return root
    }

    // MARK: Checks

    mutating func remark(_ severity: Severity, _ text: Name, _ scope: Scope) {
        var info = CheckInfo()
        info.code = .remark
        info.severity = severity
        info.place = grammarPlace(text.place)
        info.template = template(text, scope)
        program.checks.append(info)
        emit(.note, c: program.checks.count - 1)
    }

    mutating func check(_ syntax: CheckSyntax, _ scope: Scope) {
        var info = CheckInfo()
        info.severity = syntax.severity
        info.blame = syntax.blame
        info.place = grammarPlace(syntax.place)
        if let text = syntax.text { info.template = template(text, scope) }
        if let see = syntax.see {
            if let variable = scope.variables[see.text] { info.see = variable.index } else { unknown(.name(see), scope) }
        }
        for near in syntax.near { if let clause = nearClause(near, scope) { info.near.append(clause) } }
        let sides = oriented(syntax.predicate, scope)
        let need = hole(.need, b: program.checks.count)
        info.expression = program.code.count
        if let sides {
            info.slot = sides.field.slot
            info.isMatch = true
            info.isTainted = infer(sides.value, scope).isTainted
            let isNumber = !infer(sides.value, scope).isOctets
            octets(sides.value, scope, width: isNumber ? max(1, sides.field.size) : 0)
            program.checks.append(info)
            land(need)
            emit(.match, b: sides.field.slot, c: program.checks.count - 1)
            matched.append(sides.field.slot)
            return
        }
        // The field that the check speaks of: the first that it names.
        if case .field(let field)? = firstField(syntax.predicate).flatMap({ resolve($0, scope) }) { info.slot = field.slot }
        condition(syntax.predicate, scope)
        program.checks.append(info)
        land(need)
        emit(.check, c: program.checks.count - 1)
    }

    /// `field == what follows from others`: reading compares it, sealing writes it (rule 4). Nil for any other check.
    func oriented(_ predicate: Expression, _ scope: Scope) -> (field: Field, value: Expression)? {
        guard case .binary(.equal, let left, let right, _) = predicate else { return nil }
        for (side, other) in [(left, right), (right, left)] {
            guard case .field(let field)? = resolve(side, scope), !mentions(other, field.slot, scope) else { continue }
            let kind = infer(other, scope)
            switch field.kind {
            case .octets where kind.isOctets: return (field, other)
            case .number
            where !kind.isOctets && field.size > 0 && !isConstant(other, scope) && program.nodes[field.node].kind != .bit:
                return (field, other)
            case .number(let bits)
            where kind.isOctets && bits % 8 == 0 && field.size > 0 && program.nodes[field.node].kind != .bit:
                return (field, other)
            default: continue
            }
        }
        return nil
    }

    private func isConstant(_ expression: Expression, _ scope: Scope) -> Bool {
        if case .number = expression { return true }
        if case .constant? = resolve(expression, scope) { return true }
        return false
    }

    private func mentions(_ expression: Expression, _ slot: Int, _ scope: Scope) -> Bool {
        switch expression {
        case .number, .octets: return false
        case .name, .member:
            if case .field(let field)? = resolve(expression, scope) { return field.slot == slot }
            return false
        case .slice(let base, let start, let end, _):
            return mentions(base, slot, scope) || mentions(start, slot, scope) || mentions(end, slot, scope)
        // What lies before a field does not depend on the field.
        case .call(let name, _, _) where name.text == "before": return false
        case .call(_, let arguments, _): return arguments.contains { mentions($0, slot, scope) }
        case .span(let first, let last, _): return mentions(first, slot, scope) || mentions(last, slot, scope)
        case .not(let inner, _): return mentions(inner, slot, scope)
        case .binary(_, let left, let right, _): return mentions(left, slot, scope) || mentions(right, slot, scope)
        }
    }

    private func firstField(_ expression: Expression) -> Expression? {
        switch expression {
        case .name, .member: return expression
        case .binary(_, let left, let right, _): return firstField(left) ?? firstField(right)
        case .not(let inner, _): return firstField(inner)
        case .slice(let base, _, _, _): return firstField(base)
        case .call(_, let arguments, _): return arguments.first.flatMap(firstField)
        default: return nil
        }
    }

    private mutating func nearClause(_ near: CheckSyntax.Near, _ scope: Scope) -> NearClause? {
        switch near {
        case .range(let name, let range):
            guard let variable = scope.variables[name.text] else {
                unknown(.name(name), scope)
                return nil
            }
            return NearClause(variable: variable.index, name: name.text, candidates: .offsets(range))
        case .values(let name, let values):
            guard let variable = scope.variables[name.text] else {
                unknown(.name(name), scope)
                return nil
            }
            let list = values.prefix(16).map { value in
                (
                    code: aside { compiler in
                        compiler.octets(value, scope)
                        compiler.emit(.done)
                    }, name: describe(value)
                )
            }
            return NearClause(variable: variable.index, name: name.text, candidates: .values(list))
        }
    }
}
