// SPDX-License-Identifier: MIT

import GrammarRuntime

extension Compiler {
    mutating func exchange(_ syntax: ExchangeSyntax) {
        guard let requestName = syntax.request else {
            diagnostics.add(.syntax, syntax.name.place, "exchange \(syntax.name.text) has no request")
            return
        }
        guard let request = entryRoot(requestName, "message") else { return }
        let response =
            syntax.response.flatMap { entryRoot($0, "message") }.map { $0 == request ? twin(of: $0, syntax) : $0 } ?? -1
        var info = ExchangeInfo(
            name: syntax.name.text, label: syntax.label?.text ?? "", grammar: grammar, request: request, response: response)
        info.place = grammarPlace(syntax.name.place)
        var scope = Scope(shapes: shapes[request].map { [$0] } ?? [])
        scope.objects["request"] = shapes[request]
        scope.objects["response"] = shapes[response]
        for refinement in syntax.refinements {
            if let made = refine(refinement, response, &scope) { info.refinements.append(made) }
        }
        if let detail = syntax.detail { info.detail = template(detail, scope) }
        symbols[grammar]?[syntax.name.text]?.number = program.exchanges.count
        program.exchanges.append(info)
        exchangeScopes.append((scope, syntax.condition))
    }

    /// A second instance of a message that is both request and response, so that a response does not take the place of its request.
    private mutating func twin(of root: Int, _ syntax: ExchangeSyntax) -> Int {
        if program.roots[root].twin >= 0 { return program.roots[root].twin }
        guard let type = syntax.response else { return root }
        let name = program.name(program.roots[root].node)
        let made = self.root(
            .named(grammar: type.grammar, type.name), called: name, parent: -1, unnamed: false, place: type.name.place,
            isEntry: false)
        program.roots[root].twin = made
        return made
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
        if case .named(let named, let name) = syntax.type,
            let symbol = named.map({ symbols[$0.text]?[name.text] }) ?? lookUp(name.text),
            case .enumeration(let it) = symbol.declaration
        {
            result.enumeration = symbol.number
            if case .number(let bits) = field.kind, bits != it.bits {
                diagnostics.add(
                    .type, name.place, "expected an enumeration of \(bits) bits, found \(it.bits)",
                    see: ("declared here", it.name.place))
            }
        } else {
            let name = rootName(syntax.type)
            let number = self.root(
                syntax.type, called: name ?? "_", parent: name == nil ? field.node : -1, unnamed: name == nil,
                place: syntax.path.place,
                isEntry: false)
            result.root = number
            if let shape = shapes[number] {
                // Several refinements of one field, under conditions: their fields are all to be seen.
                if let earlier = scope.refinements[field.slot] {
                    earlier.transparent.append(shape)
                } else {
                    scope.refinements[field.slot] = shape
                }
            }
            if case .number = field.kind {
                diagnostics.add(.type, syntax.path.place, "expected a field of bytes, or an enumeration for it")
            }
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
            // A grammar that uses another knows more than it: its exchanges are tried first. Of equal ones, those that ask for a
            // session's state are: they hold for a card that is known.
            let numbers = (byRoot[root] ?? []).map { number in
                (number: number, height: heights[program.exchanges[number].grammar] ?? 0, asks: asksForState(number))
            }.enumerated().sorted { left, right in
                let (a, b) = (left.element, right.element)
                if a.height != b.height { return a.height > b.height }
                return a.asks != b.asks ? a.asks : left.offset < right.offset
            }.map(\.element.number)
            var counts: [Int: Int] = [:]
            // Names in a guard are those of its own grammar.
            let saved = grammar
            defer { grammar = saved }
            var keys: [[(slot: Int, value: Int)]] = []
            for number in numbers {
                grammar = program.exchanges[number].grammar
                keys.append(keyed(exchangeScopes[number].condition, exchangeScopes[number].scope))
            }
            for key in keys { for (slot, _) in key { counts[slot, default: 0] += 1 } }
            let best = counts.max { ($0.value, -$0.key) < ($1.value, -$1.key) }?.key ?? -1
            var lists = [[Int]](repeating: [], count: best < 0 ? 1 : 257)
            for (number, key) in zip(numbers, keys) {
                let (scope, condition) = exchangeScopes[number]
                grammar = program.exchanges[number].grammar
                let values = key.filter { $0.slot == best }
                let isWhole = values.count == 1 && key.count == 1 && isSingle(condition)
                if let condition, !isWhole {
                    program.exchanges[number].condition = aside { compiler in
                        compiler.condition(condition, scope)
                        compiler.emit(.done)
                    }
                }
                if let value = values.first?.value {
                    lists[value].append(number)
                } else {
                    for index in lists.indices { lists[index].append(number) }
                }
            }
            program.dispatches.append(Dispatch(root: root, slot: best, lists: lists))
        }
    }

    /// How many grammars stand below each, at the longest.
    func heights() -> [String: Int] {
        var result: [String: Int] = [:]
        for _ in 0..<16 {
            for (name, used) in uses { result[name] = min(16, (used.map { result[$0, default: 0] + 1 }.max() ?? 0)) }
        }
        return result
    }

    /// Whether an exchange's guard holds in a state of a session only.
    private mutating func asksForState(_ exchange: Int) -> Bool {
        let saved = grammar
        defer { grammar = saved }
        grammar = program.exchanges[exchange].grammar
        let scope = exchangeScopes[exchange].scope
        func asks(_ condition: Expression?) -> Bool {
            switch condition {
            case .binary(.and, let left, let right, _)?: return asks(left) || asks(right)
            case let other?:
                if case .state? = resolve(other, scope) { return true }
                return false
            case nil: return false
            }
        }
        return asks(exchangeScopes[exchange].condition)
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

    mutating func finish() {
        dispatch()
        // As with exchanges, a grammar that uses another knows more than it.
        let heights = heights()
        program.gathers = program.gathers.enumerated().sorted { left, right in
            let (a, b) = (heights[left.element.grammar] ?? 0, heights[right.element.grammar] ?? 0)
            return a != b ? a > b : left.offset < right.offset
        }.map(\.element)
        for gather in program.gathers {
            if gather.decode >= 0 { program.roots[gather.root].joins = true } else { program.roots[gather.root].gathers = true }
            if gather.isProtected { program.roots[gather.root].gathersProtected = true }
        }
        for info in program.exchanges where !exampled.contains("\(info.grammar).\(info.name)") {
            guard let symbol = symbols[info.grammar]?[info.name] else { continue }
            diagnostics.add(.noExample, symbol.declaration.name.place, "exchange \(info.name) has no example", severity: .warn)
        }
    }
}
