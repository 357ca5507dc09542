// SPDX-License-Identifier: MIT

/// A portrait of nobody: a grey picture of 96 by 128 pixels in squares of 8, as a baseline JPEG (ITU-T T.81).
///
/// Every square has one shade, so that each block holds its DC coefficient and nothing else; it opens in any viewer.
enum FaceImage {
    static let width = 96
    static let height = 128

    /// - Parameter length: the least number of octets wanted; comment segments make up for what the picture has not.
    static func jpeg(length: Int = 0) -> [UInt8] {
        let head = startOfImage
        let tail = tables + frame + scan + [0xFF, 0xD9]
        return head + comments(length - head.count - tail.count) + tail
    }

    /// The shade of a square, 0 black to 255 white: hair, face, eyes, mouth and shoulders on a light ground.
    private static func shade(_ column: Int, _ row: Int) -> Int {
        let across = 2 * column - 11
        func inside(_ centre: Int, _ wide: Int, _ high: Int) -> Bool {
            let down = 2 * row - centre
            return across * across * high * high + down * down * wide * wide <= wide * wide * high * high
        }
        switch (abs(across), row) {
        case (3, 6): return 40
        case (1, 10), (3, 10): return 90
        case (1, 8): return 150
        default: break
        }
        if inside(15, 7, 9) { return 180 }
        if inside(12, 9, 11) { return 60 }
        if inside(32, 13, 9) { return 110 }
        return 232
    }

    /// SOI and the JFIF marker.
    private static let startOfImage: [UInt8] = [
        0xFF, 0xD8, 0xFF, 0xE0, 0x00, 0x10, 0x4A, 0x46, 0x49, 0x46, 0x00, 0x01, 0x01, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x00,
    ]

    /// COM segments of `count` octets in all, four at the least; none when `count` is not positive.
    private static func comments(_ count: Int) -> [UInt8] {
        var left = count > 0 ? max(4, count) : 0
        var octets: [UInt8] = []
        octets.reserveCapacity(left)
        while left > 0 {
            var segment = min(left, 65_537)
            if (1...3).contains(left - segment) { segment -= 4 }
            let length = segment - 2
            octets += [0xFF, 0xFE, UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length)]
            octets += repeatElement(0x20, count: length - 2)
            left -= segment
        }
        return octets
    }

    /// DQT: 8 for the DC coefficient, so that it counts in shades. DHT: nine DC categories of four bits each; of AC only the
    /// end of block, one bit `0`.
    private static let tables: [UInt8] =
        [0xFF, 0xDB, 0x00, 0x43, 0x00, 0x08] + [UInt8](repeating: 0x01, count: 63)
        + [0xFF, 0xC4, 0x00, 0x1C, 0x00, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
        + [0xFF, 0xC4, 0x00, 0x14, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]

    /// SOF0: eight bits, one component. SOS.
    private static let frame: [UInt8] = [
        0xFF, 0xC0, 0x00, 0x0B, 0x08, 0x00, UInt8(height), 0x00, UInt8(width), 0x01, 0x01, 0x11, 0x00,
        0xFF, 0xDA, 0x00, 0x08, 0x01, 0x01, 0x00, 0x00, 0x3F, 0x00,
    ]

    /// The entropy-coded squares, filled with ones to a whole octet, `00` put in after each `FF` (T.81 F.1.2).
    private static var scan: [UInt8] {
        var bits: [UInt8] = []
        var previous = 0
        for row in 0..<height / 8 {
            for column in 0..<width / 8 {
                let value = shade(column, row) - 128
                let difference = value - previous
                previous = value
                let category = Int.bitWidth - abs(difference).leadingZeroBitCount
                append(category, 4, to: &bits)
                append(difference < 0 ? difference - 1 : difference, category, to: &bits)
                bits.append(0)
            }
        }
        while bits.count % 8 != 0 { bits.append(1) }
        var octets: [UInt8] = []
        for start in stride(from: 0, to: bits.count, by: 8) {
            let octet = bits[start..<start + 8].reduce(0) { $0 << 1 | $1 }
            octets += octet == 0xFF ? [0xFF, 0x00] : [octet]
        }
        return octets
    }

    /// The lowest `count` bits of `value`, highest first.
    private static func append(_ value: Int, _ count: Int, to bits: inout [UInt8]) {
        for shift in stride(from: count - 1, through: 0, by: -1) { bits.append(UInt8(truncatingIfNeeded: value >> shift) & 1) }
    }
}
