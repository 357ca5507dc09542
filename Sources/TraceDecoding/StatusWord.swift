// SPDX-License-Identifier: MIT

import Octets

/// What a status word means, in few words (ISO/IEC 7816-4 5.6, ISO/IEC 7816-8, ICAO 9303-11).
enum StatusWord {
    /// `6A82 not found`; the bare number when nothing is known about it.
    static func text(_ value: UInt16) -> String {
        let hex = Hex.encode([UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)])
        guard let meaning = meaning(value) else { return hex }
        return "\(hex) \(meaning)"
    }

    /// The meaning alone; nil for `9000` and for what is not known.
    static func meaning(_ value: UInt16) -> String? {
        if let exact = table[value] { return exact }
        let low = value & 0xFF
        switch value >> 8 {
        case 0x61: return "\(low == 0 ? 256 : Int(low)) more bytes"
        case 0x6C: return "Le is \(low == 0 ? 256 : Int(low))"
        case 0x63 where low & 0xF0 == 0xC0: return "\(low & 0x0F) tries left"
        case 0x62, 0x63: return "warning"
        case 0x9F: return "\(low) bytes wait"
        default: return nil
        }
    }

    /// Whether the card did what was asked, a warning included.
    static func isSuccess(_ value: UInt16) -> Bool {
        value == 0x9000 || value >> 8 == 0x61 || value >> 8 == 0x9F || value == 0x9100 || value == 0x91AF || value >> 8 == 0x62
    }

    private static let table: [UInt16: String] = [
        0x6281: "part may be corrupt",
        0x6282: "end of file",
        0x6283: "file deactivated",
        0x6285: "file terminated",
        0x6300: "not verified",
        0x6400: "nothing changed",
        0x6581: "memory failure",
        0x6700: "wrong length",
        0x6881: "no such channel",
        0x6882: "no secure messaging",
        0x6883: "chain not ended",
        0x6884: "no chaining",
        0x6981: "wrong file kind",
        0x6982: "access denied",
        0x6983: "blocked",
        0x6984: "data invalid",
        0x6985: "conditions of use",
        0x6986: "no file selected",
        0x6987: "SM object missing",
        0x6988: "SM object wrong",
        0x6A80: "wrong data",
        0x6A81: "not supported",
        0x6A82: "not found",
        0x6A83: "no such record",
        0x6A84: "no room",
        0x6A86: "wrong P1 or P2",
        0x6A87: "Lc and P1-P2",
        0x6A88: "no such object",
        0x6A89: "exists already",
        0x6B00: "past the end",
        0x6D00: "no such command",
        0x6E00: "no such class",
        0x6F00: "no diagnosis",
        0x9100: "operation ok",
        0x91AF: "one more frame",
        0x91AE: "not authentic",
        0x911E: "integrity",
        0x917E: "wrong length",
    ]
}
