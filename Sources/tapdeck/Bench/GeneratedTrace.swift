// SPDX-License-Identifier: MIT

import TraceFile

/// A trace of any length for benchmarks: sessions as readers of passports, of file-system cards and of DESFire have them,
/// with octets from a seeded generator, so that no two messages are alike and every run is.
struct GeneratedTrace {
    private var random: UInt64 = 0x5DEE_CE66_D153_1A4B
    private var time: UInt64 = 1_764_500_000_000_000_000
    private var packet: UInt64 = 0
    private(set) var rows = 0

    enum Channel: Int { case apdu, rf, reader, meta }

    static let interfaces: [TraceInterface] = [
        TraceInterface(.apdu(0), description: "Bench 0 (T=1)"), TraceInterface(.rf(0)), TraceInterface(.reader(0)),
        TraceInterface(.meta),
    ]

    /// Gives at least `count` rows, whole sessions, to `take`.
    mutating func make(_ count: Int, _ take: (Channel, RowDirection, UInt64, UInt64, String, [UInt8]) throws -> Void) rethrows {
        var sessions = 0
        while rows < count {
            // Seven of ten sessions are passports behind secure messaging, two plain files, one DESFire; every fifth session
            // is seen on the air.
            switch sessions % 10 {
            case 3, 7: try files(take)
            case 9: try desfire(take)
            default: try passport(take)
            }
            if sessions % 5 == 4 { try air(take) }
            sessions += 1
        }
    }

    /// `count` rows in a file of their own.
    static func write(_ count: Int, to path: String) throws -> Int {
        var writer = try TraceWriter(
            creating: path, header: TraceHeader(session: "00000000-0000-4000-8000-000000000000"), interfaces: interfaces)
        var trace = GeneratedTrace()
        try trace.make(count) { channel, direction, packet, time, dissector, body in
            try writer.writeRow(
                time: time, interface: channel.rawValue, direction: direction, packetID: packet, dissector: dissector, body: body)
        }
        try writer.close()
        return trace.rows
    }

    private mutating func draw() -> UInt64 {
        random ^= random << 13
        random ^= random >> 7
        random ^= random << 17
        return random
    }

    private mutating func octets(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: draw() >> 24) } }

    private typealias Take = (Channel, RowDirection, UInt64, UInt64, String, [UInt8]) throws -> Void

    private mutating func put(_ take: Take, _ channel: Channel, _ direction: RowDirection, _ dissector: String, _ body: [UInt8])
        rethrows
    {
        time += 150_000 + draw() % 2_000_000
        rows += 1
        try take(channel, direction, packet, time, dissector, body)
    }

    private mutating func exchange(_ take: Take, _ command: [UInt8], _ answer: [UInt8]) rethrows {
        packet += 1
        try put(take, .apdu, .sent, "iso7816", command)
        try put(take, .apdu, .received, "iso7816", answer)
    }

    private mutating func connect(_ take: Take, _ atr: [UInt8]) rethrows {
        packet += 1
        try put(take, .apdu, .received, "iso7816", atr)
        packet += 1
        try put(take, .meta, .sent, "json", Array(#"{"td":"mark","text":"session"}"#.utf8))
    }

    private mutating func passport(_ take: Take) rethrows {
        try connect(take, [0x3B, 0x88, 0x80, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0x09])
        try exchange(take, [0, 0xA4, 4, 0x0C, 7, 0xA0, 0, 0, 2, 0x47, 0x10, 1], [0x90, 0])
        try exchange(take, [0, 0x84, 0, 0, 8], octets(8) + [0x90, 0])
        try exchange(take, [0, 0x82, 0, 0, 0x28] + octets(40) + [0x28], octets(40) + [0x90, 0])
        for file in 0..<4 {
            // The class of the first file's SELECT is plain in its head; the rest is under the channel.
            try exchange(
                take, [0x0C, 0xA4, 2, 0x0C, 0x15, 0x87, 9, 1] + octets(8) + [0x8E, 8] + octets(8) + [0],
                [0x99, 2, 0x90, 0, 0x8E, 8] + octets(8) + [0x90, 0])
            for read in 0..<(file == 3 ? 30 : 4) {
                let place = [UInt8(truncatingIfNeeded: read * 224 >> 8), UInt8(truncatingIfNeeded: read * 224)]
                try exchange(
                    take, [0x0C, 0xB0] + place + [0x0D, 0x97, 1, 0xE0, 0x8E, 8] + octets(8) + [0],
                    [0x87, 0x81, 0xE9, 1] + octets(232) + [0x99, 2, 0x90, 0, 0x8E, 8] + octets(8) + [0x90, 0])
            }
        }
    }

    private mutating func files(_ take: Take) rethrows {
        try connect(take, [0x3B, 0x65, 0, 0, 0x20, 0x63, 0xCB, 0x68, 0])
        let name: [UInt8] = [0xA0, 0, 0, 3, 8, 0, 0, 0x10, 0, 1, 0]
        try exchange(take, [0, 0xA4, 4, 0, 11] + name + [0], [0x61, 0x1B])
        try exchange(
            take, [0, 0xC0, 0, 0, 0x1B],
            [0x6F, 0x19, 0x84, 11] + name + [0x85, 4] + octets(4) + [0x8A, 1, 5, 0x82, 1, 0x38]
                + [0x90, 0])
        try exchange(take, [0, 0x20, 0, 0x80, 8, 0, 0, 0, 0, 0, 0, 0, 0], [0x63, 0xC2])
        for file in 0..<8 {
            let found = file % 4 != 3
            try exchange(
                take, [0, 0xA4, 2, 4, 2, 0x50, UInt8(file), 0],
                found ? [0x62, 11, 0x80, 2, 4, 0, 0x83, 2, 0x50, UInt8(file), 0x82, 1, 1, 0x90, 0] : [0x6A, 0x82])
            if !found { continue }
            for read in 0..<6 { try exchange(take, [0, 0xB0, UInt8(read), 0, 0xF8], octets(248) + [0x90, 0]) }
            try exchange(take, [0, 0xB2, UInt8(file + 1), 0x0C, 0], octets(24) + [0x90, 0])
            try exchange(take, [0, 0xCA, 0x9F, 0x17, 0], [0x9F, 0x17, 1, 3, 0x90, 0])
        }
    }

    private mutating func desfire(_ take: Take) rethrows {
        try connect(take, [0x3B, 0x81, 0x80, 1, 0x80, 0x80])
        try exchange(take, [0x90, 0x60, 0, 0, 0], [4, 1, 1, 1, 0, 0x18, 5, 0x91, 0xAF])
        try exchange(take, [0x90, 0xAF, 0, 0, 0], [4, 1, 1, 1, 4, 0x18, 5, 0x91, 0xAF])
        try exchange(take, [0x90, 0xAF, 0, 0, 0], octets(14) + [0x91, 0])
        try exchange(take, [0x90, 0x5A, 0, 0, 3, 1, 0xF4, 0xA1, 0], [0x91, 0])
        try exchange(take, [0x90, 0xAA, 0, 0, 1, 0, 0], octets(16) + [0x91, 0xAF])
        try exchange(take, [0x90, 0xAF, 0, 0, 0x20] + octets(32) + [0], octets(16) + [0x91, 0])
        for file in 0..<12 {
            try exchange(take, [0x90, 0xF5, 0, 0, 1, UInt8(file), 0], octets(15) + [0x91, 0])
            try exchange(take, [0x90, 0xBD, 0, 0, 7, UInt8(file), 0, 0, 0, 0, 0, 0, 0], octets(59) + [0x91, 0])
        }
    }

    private mutating func air(_ take: Take) rethrows {
        try frame(take, .sent, [0x26])
        try frame(take, .received, [0x44, 0x03])
        try frame(take, .sent, [0x93, 0x20])
        let identifier: [UInt8] = [0x88] + octets(3)
        let check = identifier.reduce(0, ^)
        try frame(take, .received, identifier + [check])
        try frame(take, .sent, [0x93, 0x70] + identifier + [check], checked: true)
        try frame(take, .received, [0x24], checked: true)
        try frame(take, .sent, [0xE0, 0x80], checked: true)
        try frame(take, .received, [6, 0x75, 0x77, 0x81, 2, 0x80], checked: true)
        for block in 0..<20 {
            let head: UInt8 = block % 2 == 0 ? 2 : 3
            try frame(take, .sent, [head, 0, 0xB0, 0, UInt8(block), 0x10], checked: true)
            try frame(take, .received, [head] + octets(16) + [0x90, 0], checked: true)
        }
    }

    private mutating func frame(_ take: Take, _ direction: RowDirection, _ octets: [UInt8], checked: Bool = false) rethrows {
        packet += direction == .sent ? 1 : 0
        let whole = checked ? octets + Self.checksum(octets) : octets
        let head: [UInt8] = [
            0, direction == .sent ? 0xFE : 0xFF, UInt8(whole.count >> 8), UInt8(truncatingIfNeeded: whole.count),
        ]
        try put(take, .rf, direction, "iso14443", head + whole)
    }

    /// CRC_A of ISO/IEC 14443-3, annex B, the low octet first.
    private static func checksum(_ octets: [UInt8]) -> [UInt8] {
        var sum: UInt16 = 0x6363
        for octet in octets {
            var part = octet ^ UInt8(truncatingIfNeeded: sum)
            part ^= part << 4
            sum = sum >> 8 ^ UInt16(part) << 8 ^ UInt16(part) << 3 ^ UInt16(part) >> 4
        }
        return [UInt8(truncatingIfNeeded: sum), UInt8(sum >> 8)]
    }
}
