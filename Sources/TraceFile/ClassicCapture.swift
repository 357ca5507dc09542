// SPDX-License-Identifier: MIT

import Octets

/// A capture in the classic format: a header of 24 octets, and before each packet 16 octets with its time, the octets
/// kept and the octets it had (draft-ietf-opsawg-pcap). Both byte orders, stamps in micro- and in nanoseconds.
///
/// Read here and not through libpcap: that tells no place of damage, and on Linux it draws ten other libraries into every
/// program that links it. The tests compare the two.
struct ClassicCapture {
    struct Packet: Equatable {
        /// Nanoseconds since 1970-01-01 00:00 UTC.
        var time: UInt64
        var octets: ArraySlice<UInt8>
    }

    /// More than libpcap would ever have kept of one packet.
    private static let packetLimit = 262_144

    let linkType: UInt16
    /// The packets read so far.
    private(set) var count = 0
    /// Where and why reading ended early; nil until then.
    private(set) var damage: TraceDamage?

    private var cursor: ByteCursor
    private let total: Int
    private let isBigEndian: Bool
    private let fraction: UInt64

    /// Whether `octets` begin as such a capture does.
    static func isOne(_ octets: [UInt8]) -> Bool { form(octets) != nil }

    /// - Throws: ``TraceFileError``: `notACapture` for another beginning, a header that is cut off, or a version that is
    ///   not 2.
    init(_ octets: [UInt8], path: String) throws(TraceFileError) {
        guard let form = Self.form(octets) else {
            throw TraceFileError(.notACapture(firstBytes: [UInt8](octets.prefix(4)), guess: nil), path: path)
        }
        (isBigEndian, fraction) = form
        total = octets.count
        cursor = ByteCursor(octets)
        let major: UInt16
        do throws(OutOfOctets) {
            _ = try cursor.take(4)
            major = try Self.u16(&cursor, isBigEndian)
            _ = try cursor.take(14)
            // The upper half holds the length of frame checksums, which the datagram's own length leaves out.
            linkType = UInt16(truncatingIfNeeded: try Self.u32(&cursor, isBigEndian))
        } catch {
            let guess = "classic pcap, cut off in its header"
            throw TraceFileError(.notACapture(firstBytes: [UInt8](octets.prefix(4)), guess: guess), path: path)
        }
        guard major == 2 else {
            let guess = "classic pcap of version \(major)"
            throw TraceFileError(.notACapture(firstBytes: [UInt8](octets.prefix(6)), guess: guess), path: path)
        }
    }

    mutating func next() -> Packet? {
        guard damage == nil, !cursor.isAtEnd else { return nil }
        let offset = cursor.offset
        var copy = cursor
        var said: UInt64?
        do throws(OutOfOctets) {
            let seconds = UInt64(try Self.u32(&copy, isBigEndian))
            let part = UInt64(try Self.u32(&copy, isBigEndian))
            let kept = Int(try Self.u32(&copy, isBigEndian))
            _ = try Self.u32(&copy, isBigEndian)
            said = 16 + UInt64(kept)
            guard kept <= Self.packetLimit else {
                note(.damaged, offset, said, "its length, \(grouped(UInt64(kept))) bytes, is more than a packet may have")
                return nil
            }
            let octets = try copy.take(kept)
            cursor = copy
            count += 1
            return Packet(time: seconds * 1_000_000_000 + part * fraction, octets: octets)
        } catch {
            let there = "\(grouped(UInt64(total - offset)))"
            let detail =
                said.map { "the record says \(grouped($0)) bytes, \(there) are there" }
                ?? "a record begins, \(there) of its bytes are there"
            note(.cutShort, offset, said, detail)
            return nil
        }
    }

    private mutating func note(_ kind: TraceDamage.Kind, _ offset: Int, _ said: UInt64?, _ detail: String) {
        damage = TraceDamage(
            kind: kind, block: count + 1, offset: UInt64(offset), said: said, present: UInt64(total - offset), rows: count,
            detail: detail, unit: "record"
        )
    }

    private static func form(_ octets: [UInt8]) -> (isBigEndian: Bool, fraction: UInt64)? {
        switch [UInt8](octets.prefix(4)) {
        case [0xD4, 0xC3, 0xB2, 0xA1]: (false, 1_000)
        case [0xA1, 0xB2, 0xC3, 0xD4]: (true, 1_000)
        case [0x4D, 0x3C, 0xB2, 0xA1]: (false, 1)
        case [0xA1, 0xB2, 0x3C, 0x4D]: (true, 1)
        default: nil
        }
    }

    private static func u16(_ cursor: inout ByteCursor, _ isBigEndian: Bool) throws(OutOfOctets) -> UInt16 {
        isBigEndian ? try cursor.u16() : try cursor.u16le()
    }

    private static func u32(_ cursor: inout ByteCursor, _ isBigEndian: Bool) throws(OutOfOctets) -> UInt32 {
        isBigEndian ? try cursor.u32() : try cursor.u32le()
    }
}
