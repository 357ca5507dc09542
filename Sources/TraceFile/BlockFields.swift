// SPDX-License-Identifier: MIT

/// Numbers and options inside one block. Every read is checked and gives nil past the end.
///
/// It does not own the octets: it is made and used inside one `withFields`, and never kept.
struct BlockFields {
    let octets: UnsafeRawBufferPointer
    let isBigEndian: Bool

    var count: Int { octets.count }

    func u16(_ place: Int) -> UInt16? {
        guard place >= 0, place <= count - 2 else { return nil }
        let value = octets.loadUnaligned(fromByteOffset: place, as: UInt16.self)
        return isBigEndian ? UInt16(bigEndian: value) : UInt16(littleEndian: value)
    }

    func u32(_ place: Int) -> UInt32? {
        guard place >= 0, place <= count - 4 else { return nil }
        let value = octets.loadUnaligned(fromByteOffset: place, as: UInt32.self)
        return isBigEndian ? UInt32(bigEndian: value) : UInt32(littleEndian: value)
    }

    func u64(_ place: Int) -> UInt64? {
        guard place >= 0, place <= count - 8 else { return nil }
        let value = octets.loadUnaligned(fromByteOffset: place, as: UInt64.self)
        return isBigEndian ? UInt64(bigEndian: value) : UInt64(littleEndian: value)
    }

    /// The octets of a range given from the start of the block.
    func slice(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        let low = min(max(range.lowerBound, 0), count)
        let high = min(max(range.upperBound, low), count)
        return UnsafeRawBufferPointer(rebasing: octets[low..<high])
    }

    func text(_ range: Range<Int>) -> String { String(decoding: slice(range), as: UTF8.self) }

    /// Calls `visit` with code and range of each option between `start` and `end`.
    ///
    /// - Returns: false when an option runs past `end`.
    func forEachOption(from start: Int, to end: Int, _ visit: (UInt16, Range<Int>) -> Void) -> Bool {
        var place = start
        while place < end {
            guard place + 4 <= end, let code = u16(place), let length = u16(place + 2).map(Int.init) else { return false }
            if code == Pcapng.Option.end { return true }
            guard place + 4 + length <= end else { return false }
            visit(code, place + 4..<place + 4 + length)
            place += 4 + length + Pcapng.padding(length)
        }
        return true
    }

    /// What in the sound beginning of a block that is not there whole contradicts the length `said`; nil when nothing does.
    func contradiction(said: Int) -> String? {
        guard let type = u32(0) else { return nil }
        let options: Int
        switch type {
        case Pcapng.sectionHeader: options = 24
        case Pcapng.interface: options = 16
        case Pcapng.enhancedPacket:
            guard let captured = u32(20).map(Int.init) else { return nil }
            options = 28 + captured + Pcapng.padding(captured)
            if options + 4 > said {
                return "its packet of \(grouped(UInt64(captured))) bytes does not fit its \(grouped(UInt64(said)))"
            }
        case Pcapng.secrets:
            guard let length = u32(12).map(Int.init) else { return nil }
            options = 20 + length - 4 + Pcapng.padding(length)
            if options + 4 > said {
                return "its secrets of \(grouped(UInt64(length))) bytes do not fit its \(grouped(UInt64(said)))"
            }
        default: return nil
        }
        return contradiction(options: options, said: said)
    }

    private func contradiction(options start: Int, said: Int) -> String? {
        var place = start
        while place < said - 4 {
            guard let code = u16(place), let length = u16(place + 2).map(Int.init) else { return nil }
            if code == Pcapng.Option.end {
                return place + 8 == said
                    ? nil : "it ends after \(grouped(UInt64(place + 8))) bytes and says \(grouped(UInt64(said)))"
            }
            place += 4 + length + Pcapng.padding(length)
        }
        return place == said - 4 ? nil : "its options do not fit its \(grouped(UInt64(said))) bytes"
    }
}

/// How the time stamps of an interface become nanoseconds (`if_tsresol`, `if_tsoffset`). Results saturate.
struct TimeScale {
    /// Bit 7: a power of 2 instead of 10; the other bits are the negative exponent.
    var resolution: UInt8 = 6
    /// Seconds to add.
    var offset: Int64 = 0

    func nanoseconds(_ stamp: UInt64) -> UInt64 {
        if resolution == 9, offset == 0 { return stamp }
        var value = UInt128(stamp)
        let exponent = Int(resolution & 0x7F)
        if resolution & 0x80 != 0 {
            value = (value * 1_000_000_000) >> UInt128(exponent)
        } else if exponent <= 9 {
            value *= UInt128(Self.powers[9 - exponent])
        } else if exponent - 9 < Self.powers.count {
            value /= UInt128(Self.powers[exponent - 9])
        } else {
            value = 0
        }
        let shifted = Int128(truncatingIfNeeded: value) + Int128(offset) * 1_000_000_000
        return UInt64(clamping: shifted)
    }

    private static let powers: [UInt64] = (0..<20).map { exponent in (0..<exponent).reduce(1) { power, _ in power * 10 } }
}
