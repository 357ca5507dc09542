// SPDX-License-Identifier: MIT

import GrammarRuntime

/// Alternatives and tag dictionaries.
extension Compiler {
    mutating func choice(_ syntax: ChoiceSyntax, _ parent: Int, _ shape: Shape) -> Extent {
        let number = program.choices.count
        program.choices.append(Choice())
        emit(.choose, b: number)
        var alternatives: [Choice.Alternative] = []
        var ends: [Int] = []
        var extent = Extent.bounded
        var seen: [(text: String, place: Place)] = []
        for alternative in syntax.alternatives {
            var next: [Int]?
            if let condition = alternative.condition {
                let text = describe(condition)
                if let first = seen.first(where: { $0.text == text }) {
                    diagnostics.add(
                        .unreachable, condition.place,
                        "alternative \(alternative.name.text) is never reached: an earlier one has the same condition",
                        see: ("taken here", first.place))
                }
                seen.append((text, condition.place))
                next = branch(condition, Scope(shapes: [shape], inStructure: true))
            } else if alternative.name.place != syntax.alternatives.last?.name.place, let last = syntax.alternatives.last {
                diagnostics.add(
                    .unreachable, last.name.place, "alternative \(last.name.text) is never reached",
                    see: ("'otherwise' takes everything here", alternative.name.place))
            }
            let start = program.code.count
            let node = node(alternative.name.text, .alternative, parent: parent, place: alternative.name.place, flags: .unnamed)
            emit(.alternative, b: node)
            if let remark = alternative.remark {
                self.remark(remark.severity, remark.text, Scope(shapes: [shape], inStructure: true))
            }
            let firstNode = program.nodes.count
            shape.openAlternatives += 1
            if content(alternative.type, parent, shape, isRoot: false) == .open { extent = .open }
            shape.openAlternatives -= 1
            let fields = Array(firstNode..<program.nodes.count)
            let slots = fields.map { Int(program.nodes[$0].slot) }.filter { $0 >= 0 }
            let required = fields.filter { index in
                let it = program.nodes[index]
                return it.slot >= 0 && !it.flags.contains(.derived) && !it.flags.contains(.optional) && it.kind != .bits
                    && it.kind != .composite
                    && it.kind != .choice && Int(it.parent) == parent
            }.map { Int(program.nodes[$0].slot) }
            alternatives.append(.init(node: node, code: start, slots: slots, required: required, fields: fields))
            if let next {
                ends.append(hole(.jump))
                for hole in next { land(hole) }
            }
        }
        for end in ends { land(end) }
        program.choices[number].alternatives = alternatives
        return extent
    }

    mutating func tagTable(_ syntax: [TagSyntax], _ dialect: Dialect, _ parent: Int, _ shape: Shape, name: String?) {
        let number = program.tagTables.count
        program.tagTables.append(TagTable(dialect: dialect, entries: []))
        guard stack.count < 32 else { return }
        stack.append((name ?? "", number, shape))
        defer { stack.removeLast() }
        var entries: [TagTable.Entry] = []
        var seen: [UInt32: Place] = [:]
        let jump = hole(.jump)
        for entry in syntax {
            guard !isTooLarge else { break }
            if let first = seen[entry.tag] {
                diagnostics.add(.duplicate, entry.place, "this tag has a name already", see: ("named here", first))
            }
            seen[entry.tag] = entry.place
            if !isWellFormed(entry.tag, dialect) {
                diagnostics.add(
                    .size, entry.place,
                    "expected a tag that \(dialect) can encode, found \(String(entry.tag, radix: 16, uppercase: true))")
            }
            var flags: NodeFlags = .optional
            if entry.isNonce { flags.insert(.nonce) }
            if entry.isSecret { flags.insert(.secret) }
            let node = node(
                entry.name.text, .tag, parent: parent, place: entry.name.place, flags: flags, label: entry.label?.text)
            let inner = Shape()
            var kind = Field.Kind.octets
            var code = -1
            // The slot comes before those inside, so that fields of one instance stand together.
            let slot = slot(for: node)
            if let type = entry.type {
                code = program.code.count
                _ = content(type, node, inner, isRoot: false)
                emit(.endTag)
                if let value = inner.fields["_"] {
                    kind = value.kind
                    program.nodes[node].size = program.nodes[value.node].size
                    program.nodes[value.node].flags.formUnion(flags.subtracting(.optional))
                } else {
                    kind = .composite
                }
            }
            entries.append(.init(tag: entry.tag, node: node, code: code))
            let size = Int(program.nodes[node].size)
            if let first = shape.fields[entry.name.text] {
                diagnostics.add(
                    .duplicate, entry.name.place, "\(entry.name.text) is declared twice", see: ("declared here", first.place))
            }
            shape.fields[entry.name.text] = Field(
                slot: slot, node: node, kind: kind, isSecret: entry.isSecret, size: size, shape: inner, place: entry.name.place)
            shape.order.append(entry.name.text)
        }
        land(jump)
        program.tagTables[number].entries = entries
        emit(.tlv, b: number)
    }

    private func isWellFormed(_ tag: UInt32, _ dialect: Dialect) -> Bool {
        switch dialect {
        case .compact: return tag < 16
        case .simple: return tag > 0 && tag < 0xFF
        case .ber:
            var octets: [UInt8] = []
            for shift in stride(from: UInt32(24), through: 0, by: -8) where tag >> shift != 0 {
                octets.append(UInt8(truncatingIfNeeded: tag >> shift))
            }
            guard let first = octets.first, let last = octets.last else { return false }
            if first & 0x1F != 0x1F { return octets.count == 1 }
            return octets.count > 1 && last & 0x80 == 0 && octets.dropFirst().dropLast().allSatisfy { $0 & 0x80 != 0 }
        }
    }
}
