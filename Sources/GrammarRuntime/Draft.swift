// SPDX-License-Identifier: MIT

/// A message as values, from which octets can be written again: what was read, or what somebody changed of it.
///
/// A field without octets, number and children is left to be derived; a data object without `header` gets the shortest one.
public struct Draft: Sendable, Equatable {
    package var node: Int
    /// The octets of a leaf as they were.
    public var octets: [UInt8]?
    /// The value of a bit field; the alternative of a choice.
    public var number: UInt64?
    /// Tag and length of a data object as they were.
    public var header: [UInt8]?
    public var children: [Draft]

    package init(node: Int, octets: [UInt8]? = nil, number: UInt64? = nil, header: [UInt8]? = nil, children: [Draft] = []) {
        self.node = node
        self.octets = octets
        self.number = number
        self.header = header
        self.children = children
    }
}

extension Machine {
    /// The draft of the span `root` and everything inside it.
    package func draft(of root: Int) -> Draft {
        var inside = [[Int]](repeating: [], count: spans.count - root)
        for index in (root + 1)..<max(root + 1, spans.count) {
            let parent = Int(spans[index].parent)
            if parent >= root { inside[parent - root].append(index) }
        }
        func build(_ index: Int) -> Draft {
            let span = spans[index]
            let node = Int(span.node)
            let children = inside[index - root].filter { spans[$0].buffer == span.buffer }
            switch program.tables.nodes[node].kind {
            case .bit: return Draft(node: node, number: span.value)
            case .choice: return Draft(node: node, number: span.value, children: children.map(build))
            case .tag, .unknownTag:
                let header = children.first.map { arena.array(rawRange(span: Int32(truncatingIfNeeded: $0))) }
                return Draft(node: node, number: span.value, header: header, children: children.dropFirst().map(build))
            default:
                if !children.isEmpty || span.flags.contains(.composite) {
                    return Draft(node: node, children: children.map(build))
                }
                return Draft(node: node, octets: arena.array(rawRange(span: Int32(truncatingIfNeeded: index))))
            }
        }
        return build(root)
    }
}
