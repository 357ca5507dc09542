// SPDX-License-Identifier: MIT

/// UTF-8 text that grows at its end, for output in bulk: pieces are put in as they are, no strings are made between.
public struct TextBuffer: Sendable {
    public private(set) var octets: [UInt8] = []

    public init(capacity: Int = 0) { octets.reserveCapacity(capacity) }

    public var count: Int { octets.count }
    public var isEmpty: Bool { octets.isEmpty }

    /// Empties it and keeps its room.
    public mutating func removeAll() { octets.removeAll(keepingCapacity: true) }

    /// Takes off what stands behind `count`.
    public mutating func cut(to count: Int) { if count < octets.count { octets.removeLast(octets.count - max(0, count)) } }

    /// Takes off blanks at the end, as far back as `start`.
    public mutating func trim(from start: Int) {
        var end = octets.count
        while end > start, octets[end - 1] == 0x20 { end -= 1 }
        cut(to: end)
    }

    @inline(__always)
    public mutating func append(_ octet: UInt8) { octets.append(octet) }

    @inline(__always)
    public mutating func append(_ text: StaticString) {
        octets.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    public mutating func append(text: String) {
        var text = text
        text.withUTF8 { octets.append(contentsOf: $0) }
    }

    public mutating func append(contentsOf other: TextBuffer) { octets.append(contentsOf: other.octets) }

    /// Text with blanks before it up to `width` columns.
    public mutating func append(text: String, right width: Int) {
        append(blanks: width - text.columns)
        append(text: text)
    }

    public mutating func append(blanks count: Int) { for _ in 0..<max(0, count) { octets.append(0x20) } }

    /// A decimal number, with zeros or blanks before it up to `width`.
    public mutating func append(number: UInt64, width: Int = 0, fill: UInt8 = 0x20) {
        var digits: InlineArray<20, UInt8> = .init(repeating: 0)
        var count = 0
        var rest = number
        repeat {
            digits[count] = 0x30 + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
            count += 1
        } while rest > 0
        for _ in 0..<max(0, width - count) { octets.append(fill) }
        while count > 0 {
            count -= 1
            octets.append(digits[count])
        }
    }

    /// A number of units of 10 to the minus `places`, with a point.
    public mutating func append(decimal number: UInt64, places: Int) {
        var unit: UInt64 = 1
        for _ in 0..<min(places, 19) { unit *= 10 }
        append(number: number / unit)
        octets.append(0x2E)
        append(number: number % unit, width: places, fill: 0x30)
    }

    /// Upper-case hexadecimal text.
    public mutating func append(hex octets: [UInt8]) { octets.withUnsafeBufferPointer { append(hex: $0) } }

    public mutating func append(hex octets: ArraySlice<UInt8>) { octets.withUnsafeBufferPointer { append(hex: $0) } }

    public mutating func append(hex source: UnsafeBufferPointer<UInt8>) {
        let start = octets.count
        octets.append(contentsOf: repeatElement(0, count: source.count * 2))
        octets.withUnsafeMutableBufferPointer { target in
            var place = start
            for octet in source {
                target[place] = Hex.digit(octet >> 4)
                target[place + 1] = Hex.digit(octet)
                place += 2
            }
        }
    }

    /// A JSON string (RFC 8259): quotes, and the escapes that it demands.
    public mutating func append(json text: String) {
        octets.append(0x22)
        var text = text
        text.withUTF8 { units in
            var start = 0
            for place in units.indices {
                let unit = units[place]
                guard unit < 0x20 || unit == 0x22 || unit == 0x5C else { continue }
                octets.append(contentsOf: units[start..<place])
                escape(unit)
                start = place + 1
            }
            octets.append(contentsOf: units[start...])
        }
        octets.append(0x22)
    }

    private mutating func escape(_ unit: UInt8) {
        octets.append(0x5C)
        switch unit {
        case 0x08: octets.append(0x62)
        case 0x09: octets.append(0x74)
        case 0x0A: octets.append(0x6E)
        case 0x0C: octets.append(0x66)
        case 0x0D: octets.append(0x72)
        case 0x22, 0x5C: octets.append(unit)
        default:
            append("u00")
            octets.append(0x30 + (unit >> 4))
            octets.append(unit & 15 < 10 ? 0x30 + (unit & 15) : 0x57 + (unit & 15))
        }
    }

    public var text: String { String(decoding: octets, as: UTF8.self) }
}

extension String {
    /// How many columns of a terminal it takes.
    package var columns: Int {
        var isPlain = true
        for unit in utf8 where unit >= 0x80 {
            isPlain = false
            break
        }
        return isPlain ? utf8.count : count
    }
}
