// SPDX-License-Identifier: MIT

import Octets

/// Names and texts, looked up when somebody wants to read them.
extension Decoder {
    /// The path of a span: `iso7816.command.ins`, `emrtd.com.version`. Repeats share it and stand in order.
    public func path(of span: Int) -> String {
        guard machine.spans.indices.contains(span) else { return "" }
        let here = machine.spans[span]
        let node = Int(here.node)
        // A fixed node belongs to nothing in the grammar: it hangs on the span around it.
        if node <= Int(Node.value) {
            let parent = here.parent >= 0 ? path(of: Int(here.parent)) : ""
            return node == Int(Node.value) ? parent : parent + (parent.isEmpty ? "" : ".") + program.name(node)
        }
        return program.path(node)
    }

    /// What the value of a span means: a name, a number, text or hexadecimal octets; `nil` for composites.
    ///
    /// A field marked `secret` shows its length only, unless `showingSecrets` is set.
    public func text(of span: Int, showingSecrets: Bool = false) -> String? {
        guard machine.spans.indices.contains(span) else { return nil }
        let here = machine.spans[span]
        let node = program.nodes[Int(here.node)]
        if node.flags.contains(.secret), !showingSecrets { return "\(here.count) bytes, secret" }
        var enumeration = Int(node.enumeration)
        if here.flags.contains(.refined), let touched = machine.touched.last(where: { $0.span == Int32(span) }) {
            enumeration = touched.enumeration
        }
        if enumeration >= 0 { return program.text(of: here.value, in: enumeration) }
        switch node.kind {
        case .choice:
            let taken = Int(here.value)
            return program.nodes.indices.contains(taken) ? program.label(taken) : nil
        case .composite, .root, .bits, .tag, .unknownTag, .alternative: return nil
        case .number, .bit: return String(here.value)
        case .text:
            let octets = octets(of: span)
            return octets.allSatisfy { (0x20..<0x7F).contains($0) } ? String(decoding: octets, as: UTF8.self) : Hex.encode(octets)
        case .decimal, .octets, .header, .value, .gap, .filler: return Hex.encode(octets(of: span))
        }
    }

    /// The octets of a span, or of the octets that hold its bits.
    public func octets(of span: Int) -> [UInt8] {
        guard machine.spans.indices.contains(span) else { return [] }
        let here = machine.spans[span]
        guard machine.buffers.indices.contains(Int(here.buffer)) else { return [] }
        let base = machine.buffers[Int(here.buffer)].offset
        let end = (Int(here.startBit) + Int(here.bitCount) + 7) / 8
        return machine.octets(in: base + here.start..<base + max(end, here.start))
    }

    /// The octets of buffer `number` of this exchange.
    public func octets(ofBuffer number: Int) -> [UInt8] {
        guard machine.buffers.indices.contains(number) else { return [] }
        let place = machine.buffers[number]
        return machine.arena.array(place.offset..<place.offset + place.count)
    }

    /// The label of an exchange that was read last, with what tells this request from others; nil for an exchange without a guard
    /// of its own, which stands for many.
    public mutating func headline(_ exchange: Int) -> String? {
        guard program.exchanges.indices.contains(exchange) else { return nil }
        let info = program.exchanges[exchange]
        guard info.detail >= 0 else {
            return info.condition < 0 && info.refinements.isEmpty && info.label.isEmpty ? nil : info.label
        }
        let remark = Annotation(.remark, .note, template: info.detail, values: machine.render(info.detail))
        return info.label + text(of: remark)
    }

    /// The label that the grammar gives a field, else its name.
    public func label(of span: Int) -> String {
        guard machine.spans.indices.contains(span) else { return "" }
        let here = machine.spans[span]
        let node = program.nodes[Int(here.node)]
        // A part without a name of its own is called as what it belongs to.
        if node.flags.contains(.unnamed), node.label < 0, here.parent >= 0 { return label(of: Int(here.parent)) }
        return program.label(Int(here.node))
    }

    /// Whether a span has no octets of its own beside those of spans inside it.
    public func isComposite(_ span: Int) -> Bool {
        guard machine.spans.indices.contains(span) else { return false }
        return machine.spans[span].flags.contains(.composite)
    }

    public func isNonce(_ span: Int) -> Bool { flags(span).contains(.nonce) }
    public func isSecret(_ span: Int) -> Bool { flags(span).contains(.secret) }

    private func flags(_ span: Int) -> NodeFlags {
        machine.spans.indices.contains(span) ? program.nodes[Int(machine.spans[span].node)].flags : []
    }

    /// The name of exchange `number`, its label and its grammar: `select`, `SELECT`, `iso7816`.
    public func exchangeName(_ number: Int) -> (name: String, label: String, grammar: String)? {
        guard program.exchanges.indices.contains(number) else { return nil }
        let info = program.exchanges[number]
        return (info.name, info.label.isEmpty ? info.name : info.label, info.grammar)
    }

    /// Each session with its state.
    public var sessions: [(name: String, state: String)] {
        program.sessions.indices.map { (program.sessions[$0].name, program.sessions[$0].states[machine.state.sessions[$0]]) }
    }

    /// The sentence of an annotation.
    public func text(of annotation: Annotation) -> String {
        var text = annotation.template >= 0 ? program.fill(Int(annotation.template), annotation.values) : standardText(annotation)
        if let expected = annotation.expected, let actual = annotation.actual {
            text += ": expected \(Hex.encode(expected)), found \(Hex.encode(actual))"
        }
        if let near = annotation.nearMiss { text += "; \(near)" }
        return text
    }

    private func standardText(_ annotation: Annotation) -> String {
        var name = annotation.span >= 0 ? label(of: Int(annotation.span)) : "frame"
        if annotation.span < 0, annotation.check >= 0 {
            let slot = program.checks[Int(annotation.check)].slot
            if slot >= 0, let node = program.slotNodes[slot].first { name = program.label(node) }
        }
        switch annotation.code {
        case .truncated, .missing:
            if case .word(let why)? = annotation.values.first { return why }
            if case .number(let wanted)? = annotation.values.first, case .number(let present)? = annotation.values.last {
                return "\(name): \(wanted) bytes wanted, \(present) there"
            }
            return "\(name): cut off"
        case .surplus: return "\(annotation.span >= 0 ? octets(of: Int(annotation.span)).count : 0) bytes left over"
        case .unknown: return "\(name): not known to the grammar"
        case .noncanonical:
            if case .number(let count)? = annotation.values.first { return "\(count) bytes of filler" }
            return "\(name): not in the shortest form"
        case .failed: return annotation.template < 0 ? "\(name) does not follow from the rest" : name
        case .held: return "\(name): held"
        case .sealed: return "sealed: no key"
        case .unopened:
            if case .word(let why)? = annotation.values.first { return why }
            return "could not be opened"
        case .unpaired: return "a response without a request, or a request without a response"
        case .illegal: return "not allowed here"
        case .contested: return "sources disagree"
        case .lost:
            if case .number(let count)? = annotation.values.first, case .word(let message)? = annotation.values.last {
                return "the rest of \(message) did not come, \(count) bytes of it are there"
            }
            return "messages seem to be missing, or the frame is too long"
        case .remark: return name
        }
    }
}

extension ProgramTables {
    package func name(_ node: Int) -> String { strings[Int(nodes[node].name)] }

    package func label(_ node: Int) -> String { nodes[node].label >= 0 ? strings[Int(nodes[node].label)] : name(node) }

    package func path(_ node: Int) -> String {
        var parts: [String] = []
        var index = Int32(node)
        while index >= 0 {
            let here = nodes[Int(index)]
            if !here.flags.contains(.unnamed) { parts.append(strings[Int(here.name)]) }
            index = here.parent
        }
        return parts.reversed().joined(separator: ".")
    }

    /// The slot of the field that `path` names under a root, the path beginning below it.
    package func slot(_ path: String, in root: Int) -> Int? {
        let full = self.path(roots[root].node) + "." + path
        let first = roots[root].firstSlot
        for slot in first..<first + roots[root].slotCount
        where slotNodes[slot].contains(where: { self.path($0) == full }) { return slot }
        return nil
    }

    /// The text of `value` in an enumeration: its sentence with the masked part filled in, else its name, else a number.
    package func text(of value: UInt64, in enumeration: Int) -> String {
        let bits = enumerations[enumeration].bits
        guard let index = enumerations[enumeration].find(value) else {
            let width = (bits + 3) / 4
            let digits = String(value, radix: 16, uppercase: true)
            return "\(String(repeating: "0", count: max(0, width - digits.count)))\(digits) unknown"
        }
        let entry = enumerations[enumeration].entries[index]
        if entry.text.isEmpty { return strings[entry.name] }
        if !entry.hasHole { return entry.text }
        let low = value & ~entry.mask & (bits >= 64 ? .max : (1 << UInt64(bits)) - 1)
        var text = ""
        var rest = entry.text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            text += rest[..<open]
            text += String(low)
            rest = rest[rest.index(after: close)...]
        }
        return text + rest
    }

    package func fill(_ template: Int, _ values: [AnnotationValue]) -> String {
        var text = ""
        var next = 0
        for piece in templates[template] {
            if case .text(let part) = piece {
                text += part
                continue
            }
            guard next < values.count else { break }
            switch values[next] {
            case .number(let number): text += String(number)
            case .octets(let octets): text += Hex.encode(octets)
            case .word(let word): text += word
            case .unknown: text += "?"
            }
            next += 1
        }
        return text
    }
}

extension Program {
    package func name(_ node: Int) -> String { tables.name(node) }
    package func label(_ node: Int) -> String { tables.label(node) }
    package func path(_ node: Int) -> String { tables.path(node) }
    package func slot(_ path: String, in root: Int) -> Int? { tables.slot(path, in: root) }
    package func text(of value: UInt64, in enumeration: Int) -> String { tables.text(of: value, in: enumeration) }
    package func fill(_ template: Int, _ values: [AnnotationValue]) -> String { tables.fill(template, values) }
}

extension Program {
    /// The frames of every example, with the kind of message that each is.
    public var exampleFrames: [(octets: [UInt8], entry: Int, isRequest: Bool)] {
        tables.examples.flatMap { example in
            example.frames.map { frame in
                if example.exchange < 0 { return (frame.octets, example.root, true) }
                let exchange = tables.exchanges[example.exchange]
                return (frame.octets, frame.isRequest ? exchange.request : exchange.response, frame.isRequest)
            }
        }
    }
}
