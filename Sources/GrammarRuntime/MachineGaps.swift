// SPDX-License-Identifier: MIT

/// What the inner loop does when octets do not fit.
extension Machine {
    @inline(__always)
    mutating func know(_ value: UInt64, _ info: Node, _ span: Int32) {
        let entry = value < 256 ? fast.dense[Int(info.enumeration) << 8 | Int(value)] : -2
        if entry == -1 || (entry == -2 && program.tables.enumerations[Int(info.enumeration)].find(value) == nil) {
            annotate(.unknown, info.flags.contains(.closedEnum) ? .warn : .note, span: span)
        }
    }

    /// A field that the limit cuts off.
    mutating func short(
        _ node: Int, _ info: Node, _ parent: Int32, _ position: Int, _ end: Int, _ base: Int, _ buffer: Int, wanted: Int
    ) -> Int {
        let present = end - position
        let value = present <= 8 ? load(position, present) : 0
        let span = put(
            node, info.slot, parent: parent, start: (position - base) * 8, count: present * 8, value: value, buffer: buffer,
            flags: .truncated)
        annotateShort(span, wanted: wanted, present: present)
        return end
    }

    mutating func annotateShort(_ span: Int32, wanted: Int, present: Int) {
        annotate(
            present == 0 ? .missing : .truncated, .error, span: span,
            values: [.number(Int64(wanted)), .number(Int64(present))])
    }

    /// One leaf for octets that no field claims.
    mutating func gap(_ parent: Int32, _ position: Int, _ end: Int, _ base: Int, _ buffer: Int, node: Int = 0) -> Int {
        _ = put(
            node, -1, parent: parent, start: (position - base) * 8, count: (end - position) * 8, value: 0, buffer: buffer,
            flags: .gap)
        return end
    }

    /// Closes everything when the step budget is used up.
    mutating func overrun(_ buffer: Int, _ base: Int, _ position: Int, _ end: Int, _ parent: Int32, _ outer: Int32) {
        guard buffer >= 0 else { return }
        var index = parent
        var root = parent
        while index != outer, index >= 0 {
            let here = Int(index)
            let stop = index != outer && spans[here].parent == outer ? end : position
            spans[here].bitCount = UInt32(truncatingIfNeeded: (stop - base) * 8) &- spans[here].startBit
            root = index
            index = spans[here].parent
        }
        if position < end {
            annotate(.lost, .error, span: Int32(truncatingIfNeeded: spans.count))
            _ = gap(root, position, end, base, buffer)
        }
    }
}
