// SPDX-License-Identifier: MIT

/// The numbers of the pcapng specification (draft-ietf-opsawg-pcapng) that this module uses.
enum Pcapng {
    static let sectionHeader: UInt32 = 0x0A0D_0D0A
    static let interface: UInt32 = 1
    static let oldPacket: UInt32 = 2
    static let simplePacket: UInt32 = 3
    static let enhancedPacket: UInt32 = 6
    static let journal: UInt32 = 9
    static let secrets: UInt32 = 10
    static let byteOrderMagic: UInt32 = 0x1A2B_3C4D

    /// Blocks beside packets that Wireshark gives a frame number: journal entries, custom blocks, and the events of sysdig.
    static func takesFrameNumber(_ type: UInt32) -> Bool {
        switch type {
        case journal, 0x0BAD, 0x4000_0BAD, 0x204, 0x208, 0x216, 0x217, 0x221, 0x222: true
        default: false
        }
    }

    enum Option {
        static let end: UInt16 = 0
        static let comment: UInt16 = 1
        static let sectionHardware: UInt16 = 2
        static let sectionSystem: UInt16 = 3
        static let sectionApplication: UInt16 = 4
        static let interfaceName: UInt16 = 2
        static let interfaceDescription: UInt16 = 3
        static let timeResolution: UInt16 = 9
        static let timeOffset: UInt16 = 14
        static let packetFlags: UInt16 = 2
        static let packetID: UInt16 = 5
    }

    /// Tags of Wireshark's exported PDU, link type 252.
    enum Tag {
        static let end: UInt16 = 0
        static let dissector: UInt16 = 12
        static let heuristicDissector: UInt16 = 13
        static let dissectorTable: UInt16 = 14
        static let protocolColumn: UInt16 = 33
        static let direction: UInt16 = 35
    }

    static let exportedPDU: UInt16 = 252

    static func padding(_ count: Int) -> Int { -count & 3 }
}

/// Little-endian pcapng blocks, put together in one buffer that is used again and again.
struct BlockBuilder {
    private(set) var octets: [UInt8] = []
    private var blockStart = 0

    init() { octets.reserveCapacity(4096) }

    mutating func removeAll() { octets.removeAll(keepingCapacity: octets.capacity <= 1 << 20) }

    mutating func begin(_ type: UInt32) {
        blockStart = octets.count
        u32(type)
        u32(0)
    }

    /// Closes the block: writes both length fields.
    mutating func end() {
        let length = UInt32(truncatingIfNeeded: octets.count - blockStart + 4)
        u32(length)
        setU32(length, at: blockStart + 4)
    }

    mutating func u8(_ value: UInt8) { octets.append(value) }

    mutating func u16(_ value: UInt16) {
        octets.append(UInt8(truncatingIfNeeded: value))
        octets.append(UInt8(truncatingIfNeeded: value >> 8))
    }

    mutating func u32(_ value: UInt32) {
        u16(UInt16(truncatingIfNeeded: value))
        u16(UInt16(truncatingIfNeeded: value >> 16))
    }

    mutating func u64(_ value: UInt64) {
        u32(UInt32(truncatingIfNeeded: value))
        u32(UInt32(truncatingIfNeeded: value >> 32))
    }

    /// Most significant octet first, as exported-PDU tags have it.
    mutating func u16be(_ value: UInt16) { u16(value.byteSwapped) }

    mutating func raw(_ bytes: some Collection<UInt8>) { octets.append(contentsOf: bytes) }

    mutating func pad(_ count: Int) {
        for _ in 0..<Pcapng.padding(count) { octets.append(0) }
    }

    mutating func setU32(_ value: UInt32, at place: Int) {
        for index in 0..<4 where place + index < octets.count {
            octets[place + index] = UInt8(truncatingIfNeeded: value >> (8 * UInt32(index)))
        }
    }

    /// An option of text; one that is empty is left out. Text past what the 16-bit length can say is cut at a character.
    mutating func option(_ code: UInt16, _ text: String) {
        guard !text.isEmpty else { return }
        let units = shortened(text.utf8, to: 65_535)
        u16(code)
        u16(UInt16(truncatingIfNeeded: units.count))
        raw(units)
        pad(units.count)
    }

    mutating func endOfOptions() { u32(0) }

    /// An exported-PDU tag of text, with zeros up to a multiple of four as Wireshark has it.
    mutating func tag(_ code: UInt16, _ text: String.UTF8View) {
        let units = shortened(text, to: 65_532)
        u16be(code)
        u16be(UInt16(truncatingIfNeeded: units.count + Pcapng.padding(units.count)))
        raw(units)
        pad(units.count)
    }

    private func shortened<Units: BidirectionalCollection<UInt8>>(_ units: Units, to limit: Int) -> Units.SubSequence {
        guard units.count > limit else { return units[...] }
        var end = units.index(units.startIndex, offsetBy: limit)
        while end > units.startIndex, units[end] & 0xC0 == 0x80 { end = units.index(before: end) }
        return units[..<end]
    }
}
