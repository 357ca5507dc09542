// SPDX-License-Identifier: MIT

extension Machine {
    mutating func beginRequest(_ number: Int) {
        slots.clear(used: spans.count)
        spans.removeAll()
        if !annotations.isEmpty { annotations.removeAll(keepingCapacity: true) }
        buffers.removeAll()
        arena.removeAll()
        numbers.removeAll()
        if !values.isEmpty { values.removeAll(keepingCapacity: true) }
        frames.removeAll()
        if !touched.isEmpty { touched.removeAll(keepingCapacity: true) }
        isUnknown = false
        isInRequest = true
        exchange = number
    }

    mutating func runStatements(_ code: Int) {
        guard code >= 0 else { return }
        isSealed = false
        closed.removeAll(keepingCapacity: true)
        let saved = steps
        steps = 10_000
        run(code, buffer: -1, from: 0, to: 0, parent: -1)
        steps = saved
        numbers.removeAll()
        values.removeAll(keepingCapacity: true)
        isUnknown = false
    }

    /// The first exchange whose guard the request just read fulfils.
    mutating func findExchange(_ root: Int) -> Int? {
        let dispatch = fast.roots[root].dispatch
        guard dispatch >= 0 else { return nil }
        let slot = fast.dispatches[dispatch].slot
        var list = fast.dispatches[dispatch].lists
        if slot >= 0 { list += slots[slot] >= 0 ? Int(spans[Int(slots[slot])].value & 0xFF) : 256 }
        for place in fast.lists[list].range {
            let number = Int(fast.listed[place])
            if test(fast.exchanges[number].condition) { return number }
        }
        return nil
    }

    /// Gives fields of the exchange the types that its refinements name.
    mutating func refine(_ number: Int, request: Bool) {
        for index in fast.exchanges[number].refinements.range {
            let refinement = fast.refinements[index]
            guard refinement.ofRequest == request, refinement.slot >= 0 else { continue }
            let span = slots[refinement.slot]
            guard span >= 0, test(refinement.condition) else { continue }
            if refinement.enumeration >= 0 {
                spans[Int(span)].flags.insert(.refined)
                touched.append((span, refinement.enumeration))
                // The names of this exchange take the place of those that did not fit.
                if !annotations.isEmpty { annotations.removeAll { $0.code == .unknown && $0.span == span } }
                if program.tables.enumerations[refinement.enumeration].find(spans[Int(span)].value) == nil {
                    annotate(.unknown, .note, span: span)
                }
                continue
            }
            guard !spans[Int(span)].flags.contains(.composite) else { continue }
            let range = valueRange(span: span)
            guard !range.isEmpty else { continue }
            let root = fast.roots[refinement.root]
            slots.clear(root.firstSlot..<root.firstSlot + root.slotCount)
            spans[Int(span)].flags.insert(.composite)
            parse(
                root: refinement.root, buffer: Int(spans[Int(span)].buffer), from: range.lowerBound, to: range.upperBound,
                parent: span)
        }
    }

    /// Starts a layer that nobody started from the secrets that were given for it.
    mutating func startFromGiven(_ layer: Int) {
        let parameters = program.tables.layers[layer].parameters
        guard !parameters.isEmpty, !state.spent.contains(layer), parameters.allSatisfy({ givens[$0] != nil }) else { return }
        for parameter in parameters {
            state.variables[parameter] = Variable(value: givens[parameter].map { .octets($0) } ?? .none)
        }
        state.spent.append(layer)
        state.layers.append(layer)
    }

    /// Ends a layer; its keys are forgotten.
    mutating func stop(_ layer: Int) {
        state.layers.removeAll { $0 == layer }
        for parameter in program.tables.layers[layer].parameters { state.variables[parameter] = Variable() }
    }

    /// Moves every session that has a transition for the event.
    mutating func fire(_ event: SessionInfo.Event, outcome: SessionInfo.Outcome) {
        if case .exchange(let number) = event {
            guard fast.exchanges[number].isHeard else { return }
            for session in fast.sessions.indices { moveOn(session, number, outcome) }
        } else {
            for session in program.tables.sessions.indices { move(session, event, outcome) }
        }
    }

    /// Moves a session by an exchange, if a transition of its state waits for it.
    private mutating func moveOn(_ session: Int, _ exchange: Int, _ outcome: SessionInfo.Outcome) {
        let current = state.sessions[session]
        let place = fast.sessions[session] + current * fast.exchanges.count + exchange
        guard fast.waiting.indices.contains(place) else { return }
        for index in fast.waiting[place].range {
            let move = fast.moves[index]
            switch move.outcome {
            case .any: break
            case .ok: guard outcome == .ok else { continue }
            case .error: guard outcome != .ok else { continue }
            case .named:
                guard outcome == program.tables.sessions[session].transitions[current][Int(move.transition)].outcome else {
                    continue
                }
            }
            if test(Int(move.condition)) { return take(session, current, Int(move.transition)) }
        }
    }

    private mutating func take(_ session: Int, _ current: Int, _ number: Int) {
        let transition = program.tables.sessions[session].transitions[current][number]
        if transition.contested >= 0 {
            annotations.append(
                Annotation(
                    .contested, .note, place: transition.place, template: transition.contested,
                    values: render(transition.contested)))
        }
        runStatements(transition.body)
        if transition.target >= 0 { state.sessions[session] = transition.target }
    }

    private mutating func move(_ session: Int, _ event: SessionInfo.Event, _ outcome: SessionInfo.Outcome) {
        let current = state.sessions[session]
        guard program.tables.sessions[session].transitions.indices.contains(current) else { return }
        for index in program.tables.sessions[session].transitions[current].indices {
            guard matches(session, current, index, event, outcome),
                test(program.tables.sessions[session].transitions[current][index].condition)
            else { continue }
            return take(session, current, index)
        }
        if program.tables.sessions[session].illegal >= 0, case .named(let named) = event,
            program.tables.sessions[session].events.contains(named)
        {
            illegal(session, current, named)
        }
    }

    private mutating func illegal(_ session: Int, _ current: Int, _ name: String) {
        let info = program.tables.sessions[session]
        let allowed = info.allowed.indices.contains(current) ? info.allowed[current] : []
        annotations.append(
            Annotation(
                .illegal, .error, blame: .program, template: info.illegal,
                values: [
                    .word(name), .word(info.states[current]),
                    .word(allowed.isEmpty ? "nothing" : allowed.joined(separator: ", ")),
                ]))
    }

    private func matches(
        _ session: Int, _ current: Int, _ index: Int, _ event: SessionInfo.Event, _ outcome: SessionInfo.Outcome
    ) -> Bool {
        let isMeant: Bool
        if case .exchange(let number) = event {
            isMeant =
                program.tables.sessions[session].transitions[current][index].exchanges.contains(number)
                || program.tables.sessions[session].transitions[current][index].takesAny
        } else {
            isMeant = program.tables.sessions[session].transitions[current][index].events.contains { $0 == event || $0 == .any }
        }
        guard isMeant else { return false }
        switch program.tables.sessions[session].transitions[current][index].outcome {
        case .any: return true
        case .ok: return outcome == .ok
        case .error: return outcome != .ok
        case .errorNamed: return outcome == program.tables.sessions[session].transitions[current][index].outcome
        }
    }
}
