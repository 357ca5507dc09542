// SPDX-License-Identifier: MIT

/// The air interface that frames of a capture were spoken on; the raw value is the word of `--protocol`.
public enum RFProtocol: String, Sendable, CaseIterable {
    case iso14443A = "14a"
    case iso14443B = "14b"
    case iso15693 = "15"
    case iClass = "iclass"
    case felica = "felica"
    /// 125 kHz: Hitag and others.
    case lowFrequency = "lf"

    /// The name for people and for Wireshark's protocol column.
    public var name: String {
        switch self {
        case .iso14443A: "ISO14443A"
        case .iso14443B: "ISO14443B"
        case .iso15693: "ISO15693"
        case .iClass: "iCLASS"
        case .felica: "FeliCa"
        case .lowFrequency: "LF"
        }
    }
}

/// The 16-bit checksums of the air interfaces, over whole frames.
enum FrameChecksum {
    /// CRC_A (ISO/IEC 14443-3 annex B): reflected 1021, start 6363, low octet first.
    static func endsWithCRCA(_ frame: ArraySlice<UInt8>) -> Bool { ends(frame, start: 0x6363, complement: 0) }

    /// CRC_B (ISO/IEC 14443-3 annex B), the same as that of ISO/IEC 15693-3: reflected 1021, start FFFF, complemented.
    static func endsWithCRCB(_ frame: ArraySlice<UInt8>) -> Bool { ends(frame, start: 0xFFFF, complement: 0xFFFF) }

    /// FeliCa (JIS X 6319-4): 1021 over length and data, start 0, high octet first.
    static func endsWithFeliCa(_ frame: ArraySlice<UInt8>) -> Bool {
        guard frame.count >= 3 else { return false }
        var sum: UInt16 = 0
        for octet in frame.dropLast(2) {
            sum ^= UInt16(octet) << 8
            for _ in 0..<8 { sum = sum & 0x8000 != 0 ? (sum << 1) ^ 0x1021 : sum << 1 }
        }
        return frame.suffix(2).elementsEqual([UInt8(sum >> 8), UInt8(truncatingIfNeeded: sum)])
    }

    private static func ends(_ frame: ArraySlice<UInt8>, start: UInt16, complement: UInt16) -> Bool {
        guard frame.count >= 3 else { return false }
        var sum = start
        for octet in frame.dropLast(2) {
            sum ^= UInt16(octet)
            for _ in 0..<8 { sum = sum & 1 != 0 ? (sum >> 1) ^ 0x8408 : sum >> 1 }
        }
        sum ^= complement
        return frame.suffix(2).elementsEqual([UInt8(truncatingIfNeeded: sum), UInt8(sum >> 8)])
    }
}
