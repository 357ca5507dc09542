// SPDX-License-Identifier: MIT

/// A reader over octets that can never step outside them: every read either succeeds whole or throws and moves nothing.
public struct ByteCursor: Sendable {
    private let octets: ArraySlice<UInt8>
    private var index: Int

    public init(_ octets: ArraySlice<UInt8>) {
        self.octets = octets
        self.index = octets.startIndex
    }

    public init(_ octets: [UInt8]) { self.init(octets[...]) }

    /// The number of octets read so far.
    public var offset: Int { index - octets.startIndex }

    /// The number of octets that are left.
    public var remaining: Int { octets.endIndex - index }

    public var isAtEnd: Bool { index == octets.endIndex }

    /// The next octet without reading it, or nil at the end.
    public var peek: UInt8? { isAtEnd ? nil : octets[index] }

    /// The next `count` octets as a slice of the original.
    public mutating func take(_ count: Int) throws(OutOfOctets) -> ArraySlice<UInt8> {
        guard count >= 0, count <= remaining else {
            throw OutOfOctets(offset: offset, wanted: count, present: remaining)
        }
        defer { index += count }
        return octets[index..<index + count]
    }

    /// Everything that is left.
    public mutating func takeRest() -> ArraySlice<UInt8> {
        defer { index = octets.endIndex }
        return octets[index...]
    }

    public mutating func u8() throws(OutOfOctets) -> UInt8 {
        guard let octet = peek else { throw OutOfOctets(offset: offset, wanted: 1, present: 0) }
        index += 1
        return octet
    }

    /// Two octets, most significant first.
    public mutating func u16() throws(OutOfOctets) -> UInt16 { UInt16(truncatingIfNeeded: try bigEndian(2)) }

    /// Four octets, most significant first.
    public mutating func u32() throws(OutOfOctets) -> UInt32 { UInt32(truncatingIfNeeded: try bigEndian(4)) }

    /// Two octets, least significant first.
    public mutating func u16le() throws(OutOfOctets) -> UInt16 { UInt16(truncatingIfNeeded: try littleEndian(2)) }

    /// Four octets, least significant first.
    public mutating func u32le() throws(OutOfOctets) -> UInt32 { UInt32(truncatingIfNeeded: try littleEndian(4)) }

    /// `count` octets, at most eight, most significant first.
    public mutating func bigEndian(_ count: Int) throws(OutOfOctets) -> UInt64 {
        try take(count).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// `count` octets, at most eight, least significant first.
    public mutating func littleEndian(_ count: Int) throws(OutOfOctets) -> UInt64 {
        try take(count).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// A read went past the end. `offset` is where it began.
public struct OutOfOctets: Error, Equatable, CustomStringConvertible {
    public let offset: Int
    public let wanted: Int
    public let present: Int

    public init(offset: Int, wanted: Int, present: Int) {
        self.offset = offset
        self.wanted = wanted
        self.present = present
    }

    public var description: String { "\(wanted) octets wanted at offset \(offset), \(present) are there" }
}
