// SPDX-License-Identifier: MIT

extension Machine {
    /// Reads the head of one data object at `position`.
    ///
    /// Gives the instructions of its value with `limit` at the value's end and `parent` at the object; nil when the object
    /// was dealt with whole, or when nothing is left.
    mutating func readTag(
        _ table: Int, _ position: inout Int, _ limit: inout Int, _ parent: inout Int32, _ base: Int, _ buffer: Int
    ) -> Int? {
        let end = limit
        guard position < end else { return nil }
        let dialect = fast.tagTables[table].dialect
        if dialect == .ber, skipFiller(&position, end, parent, base, buffer) { return nil }
        guard let head = readHead(dialect, position, end) else {
            annotate(
                .truncated, .error, span: Int32(truncatingIfNeeded: spans.count),
                values: [.word(headFault(dialect, position, end))])
            position = gap(parent, position, end, base, buffer)
            return nil
        }
        let range = fast.tagTables[table].entries.range
        var entry = range.lowerBound
        while entry < range.upperBound, fast.tags[entry].tag != head.tag { entry += 1 }
        let isKnown = entry < range.upperBound
        let node = isKnown ? Int(fast.tags[entry].node) : Int(Node.unknownTag)
        let valueStart = position + head.size
        let present = end - valueStart
        let count = min(head.length, present)
        let object = put(
            node, fast.nodes[node].slot, parent: parent, start: (position - base) * 8, count: (head.size + count) * 8,
            value: UInt64(head.tag), buffer: buffer, flags: head.isCanonical ? .composite : [.composite, .noncanonical])
        _ = put(
            Int(Node.header), -1, parent: object, start: (position - base) * 8, count: head.size * 8, value: UInt64(head.tag),
            buffer: buffer, flags: head.isCanonical ? [] : .noncanonical)
        if !head.isCanonical { annotate(.noncanonical, .note, span: object + 1) }
        if head.length > present {
            spans[Int(object)].flags.insert(.truncated)
            annotateShort(object, wanted: head.length, present: present)
        }
        if !isKnown { annotate(.unknown, .note, span: object, values: [.number(Int64(head.tag))]) }
        position = valueStart
        if isKnown, fast.tags[entry].code >= 0 {
            limit = valueStart + count
            parent = object
            return Int(fast.tags[entry].code)
        }
        _ = put(
            Int(Node.value), -1, parent: object, start: (position - base) * 8, count: count * 8, value: 0, buffer: buffer)
        position += count
        return nil
    }

    /// ISO/IEC 7816-4 5.2.2.1 and EMV book 3 annex B: octets `00` and `FF` between objects mean nothing. `FF` also begins tags, so
    /// a run of it is filler when nothing else is left, or when it is longer than any tag.
    private mutating func skipFiller(_ position: inout Int, _ end: Int, _ parent: Int32, _ base: Int, _ buffer: Int) -> Bool {
        let first = arena[position]
        guard first == 0x00 || first == 0xFF else { return false }
        var stop = position
        while stop < end, arena[stop] == first { stop += 1 }
        if first == 0xFF, stop < end, stop - position < 4 { return false }
        annotate(.noncanonical, .note, span: Int32(truncatingIfNeeded: spans.count), values: [.number(Int64(stop - position))])
        position = gap(parent, position, stop, base, buffer, node: Int(Node.filler))
        return true
    }

    private struct Head {
        var tag: UInt32
        var size: Int
        var length: Int
        var isCanonical: Bool
    }

    /// Why there is no head at `start`.
    private func headFault(_ dialect: Dialect, _ start: Int, _ end: Int) -> String {
        guard dialect == .ber else { return "ends inside a tag or length" }
        var place = start + 1
        if arena[start] & 0x1F == 0x1F {
            while place < end, arena[place] & 0x80 != 0 { place += 1 }
            place += 1
            if place - start > 4 { return "a tag of more than four bytes" }
        }
        guard place < end else { return "ends inside a tag or length" }
        let count = Int(arena[place] & 0x7F)
        let left = end - place - 1
        if count == 0 { return "an indefinite length, which is not allowed here" }
        if count <= 4 { return "ends inside a length of \(count) bytes" }
        // A length of 128 and more that somebody wrote as one byte.
        let hint = count | 0x80 <= left ? "; as a number this byte is \(count | 0x80), and \(left) bytes are there" : ""
        return "a length of \(count) bytes, which is absurd\(hint)"
    }

    private func readHead(_ dialect: Dialect, _ start: Int, _ end: Int) -> Head? {
        var place = start
        let first = arena[place]
        place += 1
        switch dialect {
        case .compact: return Head(tag: UInt32(first >> 4), size: 1, length: Int(first & 0x0F), isCanonical: true)
        case .simple:
            guard place < end else { return nil }
            let length = arena[place]
            if length != 0xFF { return Head(tag: UInt32(first), size: 2, length: Int(length), isCanonical: true) }
            guard place + 2 < end else { return nil }
            let long = Int(load(place + 1, 2))
            return Head(tag: UInt32(first), size: 4, length: long, isCanonical: long >= 0xFF)
        case .ber: break
        }
        var tag = UInt32(first)
        if first & 0x1F == 0x1F {
            var octet: UInt8
            repeat {
                guard place < end, tag <= 0x00FF_FFFF else { return nil }
                octet = arena[place]
                tag = tag << 8 | UInt32(octet)
                place += 1
            } while octet & 0x80 != 0
        }
        guard place < end else { return nil }
        let initial = arena[place]
        place += 1
        if initial < 0x80 { return Head(tag: tag, size: place - start, length: Int(initial), isCanonical: true) }
        let count = Int(initial & 0x7F)
        guard count > 0, count <= 4, place + count <= end else { return nil }
        let length = Int(load(place, count))
        let shortest = length < 0x80 ? 0 : (64 - length.leadingZeroBitCount + 7) / 8
        return Head(tag: tag, size: place + count - start, length: length, isCanonical: count == shortest)
    }
}

extension Node {
    /// Nodes that every program has, before those of its grammars.
    package static let gap: Int32 = 0
    package static let filler: Int32 = 1
    package static let unknownTag: Int32 = 2
    package static let header: Int32 = 3
    package static let value: Int32 = 4

    /// The nodes with fixed numbers, and their names.
    package static var fixed: [(name: String, node: Node)] {
        let kinds: [(String, NodeKind, NodeFlags)] = [
            ("gap", .gap, []), ("filler", .filler, []), ("unknown", .unknownTag, []), ("header", .header, []),
            ("value", .value, .unnamed),
        ]
        return kinds.map { name, kind, flags in
            var node = Node()
            node.kind = kind
            node.flags = flags
            return (name, node)
        }
    }
}
