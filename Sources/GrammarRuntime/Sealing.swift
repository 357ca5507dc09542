// SPDX-License-Identifier: MIT

/// Layers backwards: from the plain message to the one that travels.
extension Decoder {
    /// The protected form of a plain message under the layer that is active, whose counter moves on.
    ///
    /// A command begins an exchange; a response belongs to the command that was read or sealed last.
    /// - Returns: nil when no layer is active, when it cannot be turned round, or when a key is missing.
    public mutating func seal(_ plain: [UInt8], entry: Int, isRequest: Bool, exchange: Int = 0) -> [UInt8]? {
        if isRequest { machine.beginRequest(exchange) }
        machine.isInRequest = isRequest
        if machine.state.layers.isEmpty {
            for layer in machine.program.tables.layers.indices { machine.startFromGiven(layer) }
        }
        guard let layer = machine.state.layers.last, machine.program.tables.roots.indices.contains(entry),
            let buffer = machine.addBuffer(plain, .plain, source: -1)
        else { return nil }
        let info = machine.program.tables.layers[layer]
        guard !info.isReadOnly else { return nil }
        guard let clause = (isRequest ? info.requests : info.responses).first(where: { $0.root == entry && $0.yields }) else {
            return nil
        }
        machine.parse(root: entry, buffer: buffer)
        machine.mode = .prepare
        machine.runStatements(clause.body)
        machine.mode = .decode
        guard let octets = machine.sealed(clause, entry), let outer = machine.addBuffer(octets, .frame, source: -1) else {
            return nil
        }
        machine.parse(root: entry, buffer: outer)
        machine.mode = .patch
        machine.runStatements(clause.body)
        machine.mode = .decode
        let place = machine.buffers[outer]
        let written = machine.arena.array(place.offset..<place.offset + place.count)
        if isRequest {
            // What a response is sealed under may ask for the plain command's fields.
            machine.parse(root: entry, buffer: buffer)
        }
        return written
    }

    /// The octets of a message from values by path, `ins` or `header.p1`; what is not given is derived.
    ///
    /// - Returns: nil when a path does not exist or no alternative takes the values.
    public mutating func encode(entry: Int, _ fields: [String: [UInt8]]) -> [UInt8]? {
        guard machine.program.tables.roots.indices.contains(entry) else { return nil }
        var given: [Int: [UInt8]] = [:]
        for (path, octets) in fields {
            guard let slot = machine.program.slot(path, in: entry) else { return nil }
            given[slot] = octets
        }
        return machine.emit(root: entry, given: given)
    }

    /// The draft of the message whose root span is `span`.
    public func draft(of span: Int) -> Draft? { machine.spans.indices.contains(span) ? machine.draft(of: span) : nil }

    /// The octets of a draft; nil when it is not of a message of this program.
    public mutating func encode(_ draft: Draft) -> [UInt8]? { machine.emit(draft) }
}

extension Machine {
    mutating func sealed(_ clause: LayerInfo.Clause, _ root: Int) -> [UInt8]? {
        var inner: [Int: [UInt8]] = [:]
        var used: Set<Int> = []
        for equation in clause.equations {
            guard !used.contains(equation.source), slots[equation.source] >= 0, !slotOctets(equation.source).isEmpty,
                test(equation.condition)
            else { continue }
            if equation.code < 0 {
                inner[equation.slot] = slotOctets(equation.source)
            } else {
                guard let octets = octets(equation.code) else { return nil }
                inner[equation.slot] = octets
            }
            used.insert(equation.source)
        }
        var outer: [Int: [UInt8]] = [:]
        let info = program.tables.roots[root]
        for slot in info.firstSlot..<info.firstSlot + info.slotCount where slots[slot] >= 0 && isPlainValue(slot) {
            outer[slot] = slotOctets(slot)
        }
        for equation in clause.equations where !clause.keeps.contains(equation.source) { outer[equation.source] = nil }
        if clause.open >= 0 {
            let open = program.tables.opens[clause.open]
            guard open.slot >= 0, !open.hasTransform else { return nil }
            let inside = program.tables.roots[open.root]
            // What follows from the rest is written as zeros first, and filled in when everything is in its place.
            for slot in clause.matched where inside.firstSlot..<inside.firstSlot + inside.slotCount ~= slot && inner[slot] == nil
            {
                let size = program.tables.slotNodes[slot].map { Int(program.tables.nodes[$0].size) }.max() ?? 0
                inner[slot] = [UInt8](repeating: 0, count: size)
            }
            guard let octets = emit(root: open.root, given: inner) else { return nil }
            outer[open.slot] = octets
        }
        for fixed in clause.fixed {
            let nodes = program.tables.slotNodes[fixed.slot]
            guard clause.required.contains(fixed.slot) || slots[fixed.slot] >= 0 else { continue }
            let size =
                nodes.map { program.tables.nodes[$0].kind == .bit ? 1 : max(1, Int(program.tables.nodes[$0].size)) }.min() ?? 1
            outer[fixed.slot] = (0..<size).map { UInt8(truncatingIfNeeded: fixed.value >> UInt64(8 * (size - 1 - $0))) }
        }
        return emit(root: root, given: outer)
    }
}
