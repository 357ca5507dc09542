// SPDX-License-Identifier: MIT

/// One row where it stands in the reader's buffer: nothing is copied until it is asked for.
///
/// It may be kept; the reader then copies its buffer before it reads on, so take ``row`` of what you keep.
public struct RowView: Sendable {
    /// The frame number that Wireshark shows, from 1.
    public let frame: Int
    /// Nanoseconds since 1970-01-01 00:00 UTC; 0 for a simple packet block, which has no time.
    public let time: UInt64
    /// Index of the interface in the file.
    public let interface: Int
    public let direction: RowDirection?
    /// The exchange's number (`epb_packetid`).
    public let packetID: UInt64?
    public let hasComments: Bool

    let block: BlockOctets
    let bodyExtent: Extent
    let dissectorExtent: Extent
    let protocolExtent: Extent
    let options: Extent

    /// The octets after the exported-PDU tags.
    public var body: ArraySlice<UInt8> { block.slice(bodyExtent) }

    /// The dissector named in the exported-PDU tags; empty where there are no such tags.
    public var dissector: String { block.withFields { $0.text(dissectorExtent.range) } }

    /// Whether the dissector has this name, without making a string.
    public func isDissector(_ name: StaticString) -> Bool {
        guard dissectorExtent.count == name.utf8CodeUnitCount, name.hasPointerRepresentation else {
            return dissector == "\(name)"
        }
        return name.withUTF8Buffer { wanted in block.withFields { $0.slice(dissectorExtent.range).elementsEqual(wanted) } }
    }

    /// The text for Wireshark's protocol column.
    public var protocolText: String? { protocolExtent.isEmpty ? nil : block.withFields { $0.text(protocolExtent.range) } }

    /// `opt_comment`, in order.
    public var comments: [String] {
        guard hasComments else { return [] }
        return block.withFields { fields in
            var comments: [String] = []
            _ = fields.forEachOption(from: options.range.lowerBound, to: options.range.upperBound) { code, range in
                if code == Pcapng.Option.comment { comments.append(fields.text(range)) }
            }
            return comments
        }
    }

    /// A copy that stands for itself.
    public var row: TraceRow {
        TraceRow(
            frame: frame, time: time, interface: interface, direction: direction, packetID: packetID, dissector: dissector,
            protocolText: protocolText, body: [UInt8](body), comments: comments
        )
    }

    /// Whether the row may be a part of another, cheaply told: few rows have a protocol text, fewer a slash in it.
    var mayBePart: Bool {
        !protocolExtent.isEmpty && isDissector("data") && block.slice(protocolExtent).contains(0x2F)
    }

    /// The same view over octets of its own.
    var detached: RowView {
        RowView(
            frame: frame, time: time, interface: interface, direction: direction, packetID: packetID, hasComments: hasComments,
            block: block.detached, bodyExtent: bodyExtent, dissectorExtent: dissectorExtent, protocolExtent: protocolExtent,
            options: options
        )
    }
}

/// What a packet block says of itself before the interface's rules are laid on it.
struct PacketFields {
    var interface = 0
    /// In the interface's units; nil for a simple packet block.
    var stamp: UInt64?
    var packet: Range<Int>
    var options: Range<Int>
    var direction: RowDirection?
    var packetID: UInt64?
    var hasComments = false

    /// - Throws: a fault in words when the lengths inside the block contradict each other.
    init(_ type: UInt32, _ fields: BlockFields) throws(BlockReader.Fault) {
        let end = fields.count - 4
        let captured: Int
        let start: Int
        var flagsCode = Pcapng.Option.packetFlags
        switch type {
        case Pcapng.enhancedPacket:
            guard let interface = fields.u32(8), let high = fields.u32(12), let low = fields.u32(16), let length = fields.u32(20),
                end >= 28
            else { throw BlockReader.Fault("a packet block of \(fields.count) bytes is too short") }
            self.interface = Int(interface)
            stamp = UInt64(high) << 32 | UInt64(low)
            captured = Int(length)
            start = 28
        case Pcapng.oldPacket:
            guard let interface = fields.u16(8), let high = fields.u32(12), let low = fields.u32(16), let length = fields.u32(20),
                end >= 28
            else { throw BlockReader.Fault("a packet block of \(fields.count) bytes is too short") }
            self.interface = Int(interface)
            stamp = UInt64(high) << 32 | UInt64(low)
            captured = Int(length)
            start = 28
            flagsCode = 2
        default:
            guard let length = fields.u32(8), end >= 12 else {
                throw BlockReader.Fault("a packet block of \(fields.count) bytes is too short")
            }
            start = 12
            captured = min(Int(length), end - start)
        }
        guard captured <= end - start else {
            throw BlockReader.Fault(
                "its packet says \(grouped(UInt64(captured))) bytes, \(grouped(UInt64(max(end - start, 0)))) are there"
            )
        }
        packet = start..<start + captured
        let optionsStart = min(start + captured + Pcapng.padding(captured), end)
        options = type == Pcapng.simplePacket ? end..<end : optionsStart..<end
        var direction: RowDirection?
        var packetID: UInt64?
        var hasComments = false
        let areWhole = fields.forEachOption(from: options.lowerBound, to: options.upperBound) { code, range in
            switch code {
            case Pcapng.Option.comment: hasComments = true
            case flagsCode:
                guard range.count == 4, let flags = fields.u32(range.lowerBound) else { return }
                direction = flags & 3 == 1 ? .received : flags & 3 == 2 ? .sent : nil
            case Pcapng.Option.packetID where type == Pcapng.enhancedPacket:
                if range.count == 8 { packetID = fields.u64(range.lowerBound) }
            default: break
            }
        }
        guard areWhole else { throw BlockReader.Fault("an option runs past the block's end") }
        self.direction = direction
        self.packetID = packetID
        self.hasComments = hasComments
    }
}

/// The tags before an exported PDU's octets.
struct ExportedPDUTags {
    var dissector = 0..<0
    var protocolText = 0..<0
    var direction: RowDirection?
    var body: Range<Int>

    /// Nil when the tags do not end inside `packet`.
    init?(_ fields: BlockFields, _ packet: Range<Int>) {
        let big = BlockFields(octets: fields.octets, isBigEndian: true)
        body = packet
        var place = packet.lowerBound
        while place + 4 <= packet.upperBound, let tag = big.u16(place), let length = big.u16(place + 2).map(Int.init) {
            let value = place + 4..<place + 4 + length
            guard value.upperBound <= packet.upperBound else { return nil }
            place = value.upperBound
            switch tag {
            case Pcapng.Tag.end:
                body = place..<packet.upperBound
                return
            case Pcapng.Tag.dissector: dissector = fields.withoutZeros(value)
            case Pcapng.Tag.heuristicDissector, Pcapng.Tag.dissectorTable:
                if dissector.isEmpty { dissector = fields.withoutZeros(value) }
            case Pcapng.Tag.protocolColumn: protocolText = fields.withoutZeros(value)
            case Pcapng.Tag.direction:
                if let number = big.u32(value.lowerBound), number < 2 { direction = number == 0 ? .sent : .received }
            default: break
            }
        }
        return nil
    }
}

extension BlockFields {
    fileprivate func withoutZeros(_ range: Range<Int>) -> Range<Int> {
        let slice = slice(range)
        var count = slice.count
        while count > 0, slice[count - 1] == 0 { count -= 1 }
        return range.lowerBound..<range.lowerBound + count
    }
}
