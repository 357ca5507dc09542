// SPDX-License-Identifier: MIT

import Octets

/// One record of a Proxmark3 trace, little endian: `u32 time, u16 duration, u16 length with bit 15 for an answer`, the
/// frame, and one parity bit for each of its octets in whole octets. The file has no header and no end mark.
struct Proxmark3Record {
    /// Where the record begins in the file.
    var offset: Int
    /// In carrier periods, on a clock that starts with the capture and turns over after 2^32.
    var ticks: UInt32
    var duration: UInt16
    var isAnswer: Bool
    var frame: ArraySlice<UInt8>
    var parity: ArraySlice<UInt8>

    static let headerSize = 8

    /// The records of a file, and where it stops making sense.
    static func parse(_ octets: [UInt8]) -> (records: [Proxmark3Record], damage: TraceDamage?) {
        var cursor = ByteCursor(octets)
        var records: [Proxmark3Record] = []
        while !cursor.isAtEnd {
            let offset = cursor.offset
            let left = cursor.remaining
            do throws(OutOfOctets) {
                records.append(try record(&cursor, at: offset))
            } catch {
                let said = said(octets[offset...])
                let damage = TraceDamage(
                    kind: .damaged, block: records.count + 1, offset: UInt64(offset), said: said.map { UInt64($0) },
                    present: UInt64(left), rows: records.count,
                    detail: said.map { "the record says \(grouped(UInt64($0))) bytes, \(grouped(UInt64(left))) are there" }
                        ?? "\(left) bytes are left, a record's header has \(headerSize)", unit: "record"
                )
                return (records, damage)
            }
        }
        return (records, nil)
    }

    private static func record(_ cursor: inout ByteCursor, at offset: Int) throws(OutOfOctets) -> Proxmark3Record {
        let ticks = try cursor.u32le()
        let duration = try cursor.u16le()
        let length = try cursor.u16le()
        let count = Int(length & 0x7FFF)
        let frame = try cursor.take(count)
        let parity = try cursor.take((count + 7) / 8)
        return Proxmark3Record(
            offset: offset, ticks: ticks, duration: duration, isAnswer: length & 0x8000 != 0, frame: frame, parity: parity
        )
    }

    /// The length of the record at the start of `octets`; nil when its header is not there.
    private static func said(_ octets: ArraySlice<UInt8>) -> Int? {
        guard octets.count >= headerSize else { return nil }
        let count = Int(octets[octets.startIndex + 6]) | Int(octets[octets.startIndex + 7] & 0x7F) << 8
        return headerSize + count + (count + 7) / 8
    }

    /// Whether every parity bit is odd parity, as ISO/IEC 14443-3 6.2.3 has it; encrypted MIFARE Classic differs.
    var hasOddParity: Bool {
        for (index, octet) in frame.enumerated() {
            let place = parity.startIndex + index / 8
            guard place < parity.endIndex else { return false }
            let bit = parity[place] >> (7 - UInt8(index % 8)) & 1
            if bit != UInt8(truncatingIfNeeded: (octet.nonzeroBitCount + 1) & 1) { return false }
        }
        return true
    }
}

extension RFProtocol {
    /// The protocol that the frames of a capture speak, told by checksums and frames that only one of them has; nil when
    /// nothing tells.
    static func guess(_ records: some Collection<Proxmark3Record>) -> RFProtocol? {
        var a = 0
        var b = 0
        var isTypeB = false
        var iClass = 0
        var felica = 0
        var restarts = 0
        var last: UInt32 = 0
        for record in records.prefix(10_000) {
            let frame = record.frame
            if frame.count == 1, !record.isAnswer, let octet = frame.first {
                if octet == 0x26 || octet == 0x52 { a += 1 }
                if octet == 0x0A || octet == 0x0C { iClass += 1 }
            }
            if FrameChecksum.endsWithCRCA(frame) { a += 1 }
            if FrameChecksum.endsWithCRCB(frame) {
                b += 1
                let isRequest = !record.isAnswer && frame.count == 5 && frame.first == 0x05
                let isAnswer = record.isAnswer && frame.count >= 14 && frame.first == 0x50
                isTypeB = isTypeB || isRequest || isAnswer
            }
            if frame.starts(with: [0xB2, 0x4D]) || FrameChecksum.endsWithFeliCa(frame) { felica += 1 }
            if record.ticks < last, last - record.ticks < 1 << 20 { restarts += 1 }
            last = record.ticks
        }
        let best = max(a, b, iClass, felica)
        if best == 0 { return restarts > 0 ? .lowFrequency : nil }
        if a == best { return .iso14443A }
        if b == best { return isTypeB ? .iso14443B : .iso15693 }
        return felica == best ? .felica : .iClass
    }
}
