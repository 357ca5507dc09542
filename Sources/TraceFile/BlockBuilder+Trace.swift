// SPDX-License-Identifier: MIT

/// What an enhanced packet block says beside its octets and comments.
struct PacketBlock {
    var time: UInt64
    var interface: Int
    var direction: RowDirection?
    var packetID: UInt64?
    /// The dissector and the text for the protocol column; nil for octets without exported-PDU tags.
    var tags: (dissector: String, protocolText: String?)?

    init(time: UInt64, interface: Int, direction: RowDirection?, packetID: UInt64?) {
        self.time = time
        self.interface = interface
        self.direction = direction
        self.packetID = packetID
    }
}

extension BlockBuilder {
    mutating func sectionHeader(_ header: TraceHeader) {
        begin(Pcapng.sectionHeader)
        u32(Pcapng.byteOrderMagic)
        u16(1)
        u16(0)
        u64(.max)
        option(Pcapng.Option.comment, header.comment ?? "")
        option(Pcapng.Option.sectionHardware, header.hardware)
        option(Pcapng.Option.sectionSystem, header.system)
        option(Pcapng.Option.sectionApplication, header.application)
        endOfOptions()
        end()
    }

    mutating func interface(_ interface: TraceInterface) {
        begin(Pcapng.interface)
        u16(interface.linkType)
        u16(0)
        u32(0)
        option(Pcapng.Option.interfaceName, interface.kind.name)
        option(Pcapng.Option.interfaceDescription, interface.description)
        u16(Pcapng.Option.timeResolution)
        u16(1)
        u32(9)
        endOfOptions()
        end()
    }

    /// One enhanced packet block: options in the order comments, flags, packet number, as editcap writes them.
    mutating func packet(_ packet: PacketBlock, _ body: ArraySlice<UInt8>, _ comments: some Sequence<String>) {
        begin(Pcapng.enhancedPacket)
        u32(UInt32(truncatingIfNeeded: packet.interface))
        u32(UInt32(truncatingIfNeeded: packet.time >> 32))
        u32(UInt32(truncatingIfNeeded: packet.time))
        let lengths = octets.count
        u64(0)
        let start = octets.count
        if let tags = packet.tags { exportedPDU(tags.dissector, tags.protocolText, packet.direction) }
        raw(body)
        let length = UInt32(truncatingIfNeeded: octets.count - start)
        pad(octets.count - start)
        setU32(length, at: lengths)
        setU32(length, at: lengths + 4)

        let options = octets.count
        for comment in comments { option(Pcapng.Option.comment, comment) }
        if let direction = packet.direction {
            u16(Pcapng.Option.packetFlags)
            u16(4)
            u32(direction == .sent ? 2 : 1)
        }
        if let packetID = packet.packetID {
            u16(Pcapng.Option.packetID)
            u16(8)
            u64(packetID)
        }
        if octets.count > options { endOfOptions() }
        end()
    }

    private mutating func exportedPDU(_ dissector: String, _ protocolText: String?, _ direction: RowDirection?) {
        tag(Pcapng.Tag.dissector, dissector.utf8)
        if let protocolText { tag(Pcapng.Tag.protocolColumn, protocolText.utf8) }
        if let direction {
            u16be(Pcapng.Tag.direction)
            u16be(4)
            u16be(0)
            u16be(UInt16(direction.rawValue))
        }
        u32(0)
    }
}

extension TraceHeader {
    /// The section's comment: `tapdeck=1 session=<UUID>`; nil for a header that says neither.
    var comment: String? {
        let words = [format.map { "tapdeck=\($0)" }, session.map { "session=\($0)" }].compactMap { $0 }
        return words.isEmpty ? nil : words.joined(separator: " ")
    }

    /// Reads `tapdeck=` and `session=` out of a section's comment; other words are passed over.
    mutating func read(comment: String) {
        for word in comment.split(separator: " ") {
            if word.hasPrefix("tapdeck="), let number = Int(word.dropFirst(8)) { format = number }
            if word.hasPrefix("session=") { session = String(word.dropFirst(8)) }
        }
    }
}
