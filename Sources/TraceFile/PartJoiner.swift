// SPDX-License-Identifier: MIT

/// Joins the parts of rows that were too large for one block (``PartMark``). Parts that do not follow each other to the
/// last are given out as the rows that they are.
struct PartJoiner {
    enum Outcome {
        case pass(Found)
        case held
        /// A row was made of `count` parts.
        case joined(RowView, count: Int)
    }

    private var marks: [PartMark] = []
    private var held: [RowView] = []
    private var queue: [Found] = []

    /// What waits to be given out before anything else is read.
    mutating func pop() -> Found? { queue.isEmpty ? nil : queue.removeFirst() }

    /// At the end of the file: what was held.
    mutating func flush() -> Found? {
        release()
        return pop()
    }

    /// Whether nothing is held and nothing waits.
    var isIdle: Bool { held.isEmpty && queue.isEmpty }

    mutating func take(_ found: Found) -> Outcome {
        guard case .row(let view) = found, view.mayBePart, view.bodyExtent.count <= TraceLimits.partSize,
            let mark = view.protocolText.flatMap(PartMark.init)
        else {
            if held.isEmpty { return .pass(found) }
            return giveUp(then: found)
        }
        if continues(mark, view) || (held.isEmpty && mark.part == 1) {
            marks.append(mark)
            held.append(view.detached)
            guard mark.part == mark.of else { return .held }
            defer { clear() }
            return .joined(joined(), count: held.count)
        }
        if held.isEmpty { return .pass(found) }
        if mark.part > 1 { return giveUp(then: found) }
        release()
        marks = [mark]
        held = [view.detached]
        return pop().map { .pass($0) } ?? .held
    }

    private func continues(_ mark: PartMark, _ view: RowView) -> Bool {
        guard let last = marks.last, let first = held.first else { return false }
        return mark.part == last.part + 1 && mark.of == last.of && mark.dissector == last.dissector
            && mark.protocolText == last.protocolText && view.interface == first.interface && view.direction == first.direction
            && view.packetID == first.packetID
    }

    private mutating func giveUp(then found: Found) -> Outcome {
        release()
        queue.append(found.detached)
        return pop().map { .pass($0) } ?? .held
    }

    private mutating func release() {
        queue.append(contentsOf: held.map { .row($0) })
        clear()
    }

    private mutating func clear() {
        marks = []
        held = []
    }

    /// One view over a block that is put together as the writer would have, had it been allowed to be so long.
    private func joined() -> RowView {
        let first = held[0]
        let mark = marks[0]
        var body: [UInt8] = []
        body.reserveCapacity(held.reduce(0) { $0 + $1.bodyExtent.count })
        for part in held { body += part.body }
        var packet = PacketBlock(
            time: first.time, interface: first.interface, direction: first.direction, packetID: first.packetID)
        packet.tags = (mark.dissector, mark.protocolText)
        var block = BlockBuilder()
        block.packet(packet, body[...], first.comments)
        let octets = BlockOctets(block.octets)
        let view = octets.withFields { fields -> RowView? in
            guard let found = try? PacketFields(Pcapng.enhancedPacket, fields), let tags = ExportedPDUTags(fields, found.packet)
            else {
                return nil
            }
            return RowView(
                frame: first.frame, time: first.time, interface: first.interface, direction: first.direction,
                packetID: first.packetID,
                hasComments: first.hasComments, block: octets, bodyExtent: Extent(tags.body),
                dissectorExtent: Extent(tags.dissector),
                protocolExtent: Extent(tags.protocolText), options: Extent(found.options)
            )
        }
        return view ?? first
    }
}
