// SPDX-License-Identifier: MIT

import GrammarRuntime

extension Compiler {
    // MARK: Exchanges

    mutating func exchange(_ syntax: ExchangeSyntax) {
        guard let requestName = syntax.request else {
            diagnostics.add(.syntax, syntax.name.place, "exchange \(syntax.name.text) has no request")
            return
        }
        guard let request = entryRoot(requestName, "message") else { return }
        let response = syntax.response.flatMap { entryRoot($0, "message") } ?? -1
        var info = ExchangeInfo(
            name: syntax.name.text, label: syntax.label?.text ?? "", grammar: grammar, request: request, response: response)
        info.place = grammarPlace(syntax.name.place)
        var scope = Scope(shapes: shapes[request].map { [$0] } ?? [])
        scope.objects["request"] = shapes[request]
        scope.objects["response"] = shapes[response]
        for refinement in syntax.refinements {
            if let made = refine(refinement, response, &scope) { info.refinements.append(made) }
        }
        symbols[grammar]?[syntax.name.text]?.number = program.exchanges.count
        program.exchanges.append(info)
        exchangeScopes.append((scope, syntax.condition))
    }

    private mutating func refine(_ syntax: RefineSyntax, _ response: Int, _ scope: inout Scope) -> ExchangeInfo.Refinement? {
        guard case .field(let field)? = resolve(syntax.path, scope) else {
            unknown(syntax.path, scope)
            return nil
        }
        var root = syntax.path
        while case .member(let base, _) = root { root = base }
        guard case .name(let side) = root, side.text == "request" || side.text == "response" else {
            diagnostics.add(.syntax, syntax.path.place, "expected request or response and a field")
            return nil
        }
        var result = ExchangeInfo.Refinement(
            ofRequest: side.text == "request", slot: field.slot, root: -1, enumeration: -1, condition: -1)
        if case .named(let named, let name) = syntax.type, let symbol = named.map({ symbols[$0.text]?[name.text] }) ?? lookUp(name.text),
            case .enumeration(let it) = symbol.declaration
        {
            result.enumeration = symbol.number
            if case .number(let bits) = field.kind, bits != it.bits {
                diagnostics.add(
                    .type, name.place, "expected an enumeration of \(bits) bits, found \(it.bits)", see: ("declared here", it.name.place))
            }
        } else {
            let name = rootName(syntax.type)
            let number = self.root(
                syntax.type, called: name ?? "_", parent: name == nil ? field.node : -1, unnamed: name == nil, place: syntax.path.place,
                isEntry: false)
            result.root = number
            if let shape = shapes[number] {
                // Several refinements of one field, under conditions: their fields are all to be seen.
                if let earlier = scope.refinements[field.slot] { earlier.transparent.append(shape) } else { scope.refinements[field.slot] = shape }
            }
            if case .number = field.kind { diagnostics.add(.type, syntax.path.place, "expected a field of bytes, or an enumeration for it") }
        }
        if let condition = syntax.condition {
            result.condition = aside { [scope] compiler in
                compiler.condition(condition, scope)
                compiler.emit(.done)
            }
        }
        return result
    }

    /// Guards and the tables by which exchanges are found.
    private mutating func dispatch() {
        var byRoot: [Int: [Int]] = [:]
        for number in program.exchanges.indices { byRoot[program.exchanges[number].request, default: []].append(number) }
        let heights = heights()
        for root in byRoot.keys.sorted() {
            // A grammar that uses another knows more than it: its exchanges are tried first.
            let numbers = (byRoot[root] ?? []).enumerated().sorted { left, right in
                let (a, b) = (heights[program.exchanges[left.element].grammar] ?? 0, heights[program.exchanges[right.element].grammar] ?? 0)
                return a != b ? a > b : left.offset < right.offset
            }.map(\.element)
            var counts: [Int: Int] = [:]
            let keys = numbers.map { number in keyed(exchangeScopes[number].condition, exchangeScopes[number].scope) }
            for key in keys { for (slot, _) in key { counts[slot, default: 0] += 1 } }
            let best = counts.max { ($0.value, -$0.key) < ($1.value, -$1.key) }?.key ?? -1
            var lists = [[Int]](repeating: [], count: best < 0 ? 1 : 256)
            for (number, key) in zip(numbers, keys) {
                let (scope, condition) = exchangeScopes[number]
                let values = key.filter { $0.slot == best }
                let isWhole = values.count == 1 && key.count == 1 && isSingle(condition)
                if let condition, !isWhole {
                    program.exchanges[number].condition = aside { compiler in
                        compiler.condition(condition, scope)
                        compiler.emit(.done)
                    }
                }
                if let value = values.first?.value { lists[value].append(number) } else { for index in lists.indices { lists[index].append(number) } }
            }
            program.dispatches.append(Dispatch(root: root, slot: best, lists: lists))
        }
    }

    /// How many grammars stand below each, at the longest.
    private func heights() -> [String: Int] {
        var result: [String: Int] = [:]
        for _ in 0..<16 {
            for (name, used) in uses { result[name] = min(16, (used.map { result[$0, default: 0] + 1 }.max() ?? 0)) }
        }
        return result
    }

    /// The parts `field == constant` of a guard that must all hold.
    private func keyed(_ condition: Expression?, _ scope: Scope) -> [(slot: Int, value: Int)] {
        guard let condition else { return [] }
        switch condition {
        case .binary(.and, let left, let right, _): return keyed(left, scope) + keyed(right, scope)
        case .binary(.equal, let left, let right, _):
            guard case .field(let field)? = resolve(left, scope), case .number(bits: 8) = field.kind else { return [] }
            var value: UInt64?
            if case .number(let number, _) = right { value = number }
            if case .constant(let number, _)? = resolve(right, scope) { value = number }
            guard let value, value < 256 else { return [] }
            return [(field.slot, Int(value))]
        default: return []
        }
    }

    private func isSingle(_ condition: Expression?) -> Bool {
        if case .binary(.equal, _, _, _)? = condition { return true }
        return false
    }

    // MARK: Layers and gathers

    mutating func declareLayer(_ syntax: LayerSyntax) {
        symbols[grammar]?[syntax.name.text]?.number = program.layers.count
        var info = LayerInfo(name: syntax.name.text, grammar: grammar)
        for parameter in syntax.parameters {
            info.parameters.append(variable(parameter.name, isGiven: parameter.isGiven, isTainted: parameter.type.text == "key"))
        }
        program.layers.append(info)
    }

    mutating func layer(_ syntax: LayerSyntax) {
        guard let number = symbols[grammar]?[syntax.name.text]?.number, number >= 0 else { return }
        var base = Scope()
        for (parameter, index) in zip(syntax.parameters, program.layers[number].parameters) {
            base.variables[parameter.name.text] = .init(
                index: index, isNumber: false, isTainted: parameter.type.text == "key", place: parameter.name.place)
        }
        let request = syntax.clauses.first(where: \.isRequest).flatMap { entryRoot($0.type, "message") }
        for clause in syntax.clauses {
            guard let root = entryRoot(clause.type, "message"), let shape = shapes[root] else { continue }
            var scope = base
            scope.shapes = [shape]
            scope.objects[clause.isRequest ? "request" : "response"] = shape
            if !clause.isRequest { scope.objects["request"] = request.flatMap { shapes[$0] } }
            var info = LayerInfo.Clause(root: root)
            if let condition = clause.condition {
                info.condition = aside { [scope] compiler in
                    compiler.condition(condition, scope)
                    compiler.emit(.done)
                }
            }
            var effects = Effects()
            matched = []
            var inner = scope
            var body = -1
            _ = aside { compiler in body = compiler.statements(clause.statements, &inner, layer: number, &effects) }
            info.body = body
            info.matched = matched
            info.yields = !effects.yields.isEmpty
            turnRound(&info, clause, effects, inner, shape)
            if clause.isRequest { program.layers[number].requests.append(info) } else { program.layers[number].responses.append(info) }
        }
    }

    mutating func gather(_ syntax: GatherSyntax) {
        guard let type = syntax.type, let part = syntax.part, let more = syntax.more, let result = syntax.result else {
            diagnostics.add(.syntax, syntax.name.place, "gather \(syntax.name.text) needs request or response, part, more when and yield")
            return
        }
        guard let root = entryRoot(type, "message"), let shape = shapes[root] else { return }
        var info = GatherInfo(name: syntax.name.text, grammar: grammar, ofRequest: syntax.isRequest, root: root)
        var scope = Scope(shapes: [shape])
        scope.inGather = true
        scope.objects[syntax.isRequest ? "request" : "response"] = shape
        if !syntax.isRequest { scope.objects["request"] = entries["iso7816.Command"].flatMap { shapes[$0] } }
        guard case .field(let field)? = resolve(part, scope) else { return unknown(part, scope) }
        info.part = field.slot
        func code(_ compiler: inout Compiler, _ expression: Expression) -> Int {
            compiler.aside { compiler in
                compiler.condition(expression, scope)
                compiler.emit(.done)
            }
        }
        info.more = code(&self, more)
        if let next = syntax.next { info.next = code(&self, next) }
        guard let number = yield(result, scope) else { return }
        info.yield = number
        program.gathers.append(info)
    }

    // MARK: Sessions

    mutating func session(_ syntax: SessionSyntax) {
        var info = SessionInfo(name: syntax.name.text, grammar: grammar)
        var scope = Scope()
        for variable in syntax.variables {
            let isNumber = variable.type.text == "int"
            if !["key", "bytes", "counter", "int", "id"].contains(variable.type.text) {
                diagnostics.add(.type, variable.type.place, "expected key, bytes, counter, int or id, found '\(variable.type.text)'")
            }
            if let first = scope.variables[variable.name.text] {
                diagnostics.add(.duplicate, variable.name.place, "\(variable.name.text) is declared twice", see: ("declared here", first.place))
            }
            // What is given is a secret, whatever its type is called.
            let isTainted = variable.type.text == "key" || variable.isGiven
            let index = self.variable(variable.name, isGiven: variable.isGiven, isTainted: isTainted)
            info.variables.append(index)
            scope.variables[variable.name.text] = .init(index: index, isNumber: isNumber, isTainted: isTainted, place: variable.name.place)
        }
        var places: [String: Place] = [:]
        for state in syntax.states {
            if let first = places[state.name.text] {
                diagnostics.add(.duplicate, state.name.place, "\(state.name.text) is declared twice", see: ("declared here", first))
                continue
            }
            places[state.name.text] = state.name.place
            if state.isInitial { info.initial = info.states.count }
            info.states.append(state.name.text)
        }
        if info.states.isEmpty {
            diagnostics.add(.syntax, syntax.name.place, "session \(syntax.name.text) has no state")
            return
        }
        info.events = syntax.events.map(\.text)
        info.resyncs = syntax.resyncs
        info.transitions = Array(repeating: [], count: info.states.count)
        var entered: Set<String> = [info.states[info.initial]]
        var listed: [[(TransitionSyntax, SessionInfo.Transition)]] = Array(repeating: [], count: info.states.count)
        for block in syntax.blocks {
            for name in (block.states ?? []) + block.except where places[name.text] == nil { unknownState(name, info.states) }
            let states = info.states.indices.filter { index in
                block.states.map { list in list.contains { $0.text == info.states[index] } } ?? !block.except.contains { $0.text == info.states[index] }
            }
            for transition in block.transitions {
                guard let made = self.transition(transition, info, scope) else { continue }
                entered.insert(transition.target.text)
                for state in states { listed[state].append((transition, made)) }
            }
        }
        for (state, list) in listed.enumerated() {
            shadows(list, info.states[state])
            info.transitions[state] = list.map(\.1)
        }
        for state in syntax.states where !entered.contains(state.name.text) && !syntax.resyncs {
            diagnostics.add(.unusedState, state.name.place, "no transition leads to state \(state.name.text)", severity: .warn)
        }
        if let illegal = syntax.illegal { info.illegal = template(illegal, scope, words: ["event", "state", "allowed"]) }
        program.sessions.append(info)
    }

    private mutating func unknownState(_ name: Name, _ states: [String]) {
        let hint = nearest(name.text, states).map { "; did you mean '\($0)'?" } ?? ""
        diagnostics.add(.unknownName, name.place, "there is no state \(name.text)\(hint)")
    }

    private mutating func transition(_ syntax: TransitionSyntax, _ session: SessionInfo, _ base: Scope) -> SessionInfo.Transition? {
        var scope = base
        var events: [SessionInfo.Event] = []
        for event in syntax.events {
            if event.text == "any" {
                events.append(.any)
            } else if session.events.contains(event.text) || event.text == "reset" || event.text == "removal" {
                events.append(.named(event.text))
            } else if let symbol = lookUp(event.text), case .exchange = symbol.declaration, symbol.number >= 0 {
                events.append(.exchange(symbol.number))
                if scope.objects["request"] == nil {
                    let known = exchangeScopes[symbol.number].scope
                    scope.objects = known.objects
                    scope.refinements = known.refinements
                }
            } else {
                var names = session.events + ["any", "reset", "removal"]
                for use in [grammar] + (uses[grammar] ?? []) {
                    for (key, symbol) in symbols[use] ?? [:] { if case .exchange = symbol.declaration { names.append(key) } }
                }
                let hint = nearest(event.text, names.sorted()).map { "; did you mean '\($0)'?" } ?? ""
                diagnostics.add(.unknownName, event.place, "there is no exchange or event \(event.text)\(hint)")
            }
        }
        var result = SessionInfo.Transition(events: events, outcome: syntax.outcome)
        result.place = grammarPlace(syntax.place)
        if syntax.target.text != "stay" {
            guard let target = session.states.firstIndex(of: syntax.target.text) else {
                unknownState(syntax.target, session.states)
                return nil
            }
            result.target = target
        }
        if let condition = syntax.condition {
            result.condition = aside { [scope] compiler in
                compiler.condition(condition, scope)
                compiler.emit(.done)
            }
        }
        if let contested = syntax.contested { result.contested = template(contested, scope) }
        var effects = Effects()
        var body = -1
        _ = aside { compiler in body = compiler.statements(syntax.statements, &scope, &effects) }
        result.body = body
        return result
    }

    private mutating func shadows(_ list: [(TransitionSyntax, SessionInfo.Transition)], _ state: String) {
        for (index, (syntax, made)) in list.enumerated() {
            let earlier = list[..<index].first { _, first in
                first.condition < 0 && (first.outcome == .any || first.outcome == made.outcome || (first.outcome == .error && isError(made.outcome)))
                    && made.events.allSatisfy { first.events.contains($0) || first.events.contains(.any) }
            }
            if let earlier {
                diagnostics.add(
                    .shadowed, syntax.place, "in state \(state) this transition is never taken", severity: .warn,
                    see: ("an earlier one takes all of it", earlier.0.place))
            }
        }
    }

    private func isError(_ outcome: SessionInfo.Outcome) -> Bool {
        switch outcome {
        case .error, .errorNamed: true
        default: false
        }
    }

    mutating func finish() {
        dispatch()
        for info in program.exchanges where !exampled.contains("\(info.grammar).\(info.name)") {
            guard let symbol = symbols[info.grammar]?[info.name] else { continue }
            diagnostics.add(.noExample, symbol.declaration.name.place, "exchange \(info.name) has no example", severity: .warn)
        }
    }
}
