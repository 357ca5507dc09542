// SPDX-License-Identifier: MIT

import GrammarRuntime

extension Compiler {
    // MARK: Layers and gathers

    mutating func declareLayer(_ syntax: LayerSyntax) {
        symbols[grammar]?[syntax.name.text]?.number = program.layers.count
        var info = LayerInfo(name: syntax.name.text, grammar: grammar)
        info.isReadOnly = syntax.isReadOnly
        for parameter in syntax.parameters {
            info.parameters.append(variable(parameter.name, isGiven: parameter.isGiven, isTainted: parameter.type.text == "key"))
            program.variables[program.variables.count - 1].isCounter = parameter.type.text == "counter"
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
            guard let entry = entryRoot(clause.type, "message") else { continue }
            let root = clause.isRequest ? entry : max(entry, program.roots[entry].twin)
            guard let shape = shapes[root] else { continue }
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
            if !syntax.isReadOnly { turnRound(&info, clause, effects, inner, shape) }
            if clause.isRequest {
                program.layers[number].requests.append(info)
            } else {
                program.layers[number].responses.append(info)
            }
        }
    }

    mutating func gather(_ syntax: GatherSyntax) {
        guard let type = syntax.type, let part = syntax.part, let more = syntax.more, syntax.result != nil || syntax.decode != nil
        else {
            diagnostics.add(
                .syntax, syntax.name.place,
                "gather \(syntax.name.text) needs request or response, part, more when, and yield or decode")
            return
        }
        guard let entry = entryRoot(type, "message") else { return }
        let root = syntax.isRequest ? entry : max(entry, program.roots[entry].twin)
        guard let shape = shapes[root] else { return }
        var info = GatherInfo(name: syntax.name.text, grammar: grammar, ofRequest: syntax.isRequest, root: root)
        var scope = Scope(shapes: [shape])
        scope.inGather = true
        scope.objects[syntax.isRequest ? "request" : "response"] = shape
        if !syntax.isRequest {
            // What asked for such a response: the request of the exchanges that have it.
            let exchange = program.exchanges.first { $0.response == root }
            scope.objects["request"] = exchange.flatMap { shapes[$0.request] }
        }
        guard case .field(let field)? = resolve(part, scope) else { return unknown(part, scope) }
        info.part = field.slot
        info.isProtected = syntax.isProtected && syntax.isRequest
        if let keep = syntax.keep {
            guard case .field(let kept)? = resolve(keep, scope) else { return unknown(keep, scope) }
            info.keep = kept.slot
        }
        func code(_ compiler: inout Compiler, _ expression: Expression) -> Int {
            compiler.aside { compiler in
                compiler.condition(expression, scope)
                compiler.emit(.done)
            }
        }
        info.more = code(&self, more)
        if let next = syntax.next { info.next = code(&self, next) }
        if let condition = syntax.condition { info.condition = code(&self, condition) }
        if let decode = syntax.decode {
            guard let inner = entryRoot(decode, "message") else { return }
            info.decode = syntax.isRequest ? inner : max(inner, program.roots[inner].twin)
        } else if let result = syntax.result, let number = yield(result, scope) {
            info.yield = number
        } else {
            return
        }
        program.gathers.append(info)
    }

    // MARK: Sessions

    mutating func session(_ syntax: SessionSyntax) {
        var info = SessionInfo(name: syntax.name.text, grammar: grammar)
        var scope = Scope()
        for variable in syntax.variables {
            let isNumber = variable.type.text == "int"
            if !["key", "bytes", "counter", "int", "id"].contains(variable.type.text) {
                diagnostics.add(
                    .type, variable.type.place, "expected key, bytes, counter, int or id, found '\(variable.type.text)'")
            }
            if let first = scope.variables[variable.name.text] {
                diagnostics.add(
                    .duplicate, variable.name.place, "\(variable.name.text) is declared twice",
                    see: ("declared here", first.place))
            }
            // What is given is a secret, whatever its type is called.
            let isTainted = variable.type.text == "key" || variable.isGiven
            let index = self.variable(variable.name, isGiven: variable.isGiven, isTainted: isTainted)
            info.variables.append(index)
            if variable.isGiven { program.variables[index].size = variable.size ?? 0 }
            scope.variables[variable.name.text] = .init(
                index: index, isNumber: isNumber, isTainted: isTainted, place: variable.name.place)
        }
        for carried in syntax.carried where scope.variables[carried.name.text] == nil {
            let index =
                program.eventVariables[carried.name.text]
                ?? variable(carried.name, isGiven: false, isTainted: carried.type.text == "key")
            program.eventVariables[carried.name.text] = index
            scope.variables[carried.name.text] = .init(
                index: index, isNumber: carried.type.text == "int", isTainted: carried.type.text == "key",
                place: carried.name.place)
        }
        var places: [String: Place] = [:]
        for state in syntax.states {
            if let first = places[state.name.text] {
                diagnostics.add(
                    .duplicate, state.name.place, "\(state.name.text) is declared twice", see: ("declared here", first))
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
                block.states.map { list in list.contains { $0.text == info.states[index] } } ?? !block.except.contains {
                    $0.text == info.states[index]
                }
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
            info.allowed.append(allowed(list, syntax.outside))
        }
        for state in syntax.states where !entered.contains(state.name.text) && !syntax.resyncs {
            diagnostics.add(.unusedState, state.name.place, "no transition leads to state \(state.name.text)", severity: .warn)
        }
        if let illegal = syntax.illegal { info.illegal = template(illegal, scope, words: ["event", "state", "allowed"]) }
        program.sessions.append(info)
    }

    mutating func unknownState(_ name: Name, _ states: [String]) {
        let hint = nearest(name.text, states).map { "; did you mean '\($0)'?" } ?? ""
        diagnostics.add(.unknownName, name.place, "there is no state \(name.text)\(hint)")
    }

    private mutating func transition(_ syntax: TransitionSyntax, _ session: SessionInfo, _ base: Scope) -> SessionInfo.Transition?
    {
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

    /// The events that succeed without a word against it, aside from those that no program causes.
    private func allowed(_ list: [(TransitionSyntax, SessionInfo.Transition)], _ outside: Set<String>) -> [String] {
        var names: [String] = []
        for (syntax, made) in list where made.contested < 0 && !isError(made.outcome) {
            let isWarned = syntax.statements.contains { if case .note(.warn, _) = $0 { true } else { false } }
            for case .named(let name) in made.events where !isWarned && !outside.contains(name) && !names.contains(name) {
                names.append(name)
            }
        }
        return names
    }

    private mutating func shadows(_ list: [(TransitionSyntax, SessionInfo.Transition)], _ state: String) {
        for (index, (syntax, made)) in list.enumerated() {
            let earlier = list[..<index].first { _, first in
                first.condition < 0
                    && (first.outcome == .any || first.outcome == made.outcome
                        || (first.outcome == .error && isError(made.outcome)))
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
}
