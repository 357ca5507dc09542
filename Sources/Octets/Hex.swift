// SPDX-License-Identifier: MIT

/// Hexadecimal text of octets: upper case, two digits an octet, no prefix.
public enum Hex {
    /// The upper-case hexadecimal text of `octets`.
    public static func encode(_ octets: some Sequence<UInt8>) -> String {
        if let text = octets.withContiguousStorageIfAvailable({ source in
            String(unsafeUninitializedCapacity: source.count * 2) { target in
                var place = 0
                for octet in source {
                    target[place] = digit(octet >> 4)
                    target[place + 1] = digit(octet)
                    place += 2
                }
                return place
            }
        }) {
            return text
        }
        var text: [UInt8] = []
        text.reserveCapacity(octets.underestimatedCount * 2)
        for octet in octets {
            text.append(digit(octet >> 4))
            text.append(digit(octet & 0x0F))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The octets that `text` spells. Either case is read; spaces, tabs and colons between digits are passed over.
    ///
    /// - Throws: ``HexError`` with the offset, in UTF-8 code units, of the digit at fault.
    public static func decode(_ text: some StringProtocol) throws(HexError) -> [UInt8] {
        var octets: [UInt8] = []
        octets.reserveCapacity(text.utf8.count / 2)
        var high: UInt8?
        var offset = 0
        for unit in text.utf8 {
            if unit == 0x20 || unit == 0x09 || unit == 0x3A {
                offset += 1
                continue
            }
            guard let value = value(of: unit) else { throw HexError(code: .notADigit, offset: offset) }
            if let first = high {
                octets.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
            offset += 1
        }
        guard high == nil else { throw HexError(code: .halfAnOctet, offset: offset) }
        return octets
    }

    /// The upper-case hexadecimal digit for the low four bits of `nibble`.
    public static func digit(_ nibble: UInt8) -> UInt8 {
        let low = nibble & 0x0F
        return low < 10 ? 0x30 + low : 0x37 + low
    }

    /// The value of one hexadecimal digit given as an ASCII code, or nil.
    public static func value(of unit: UInt8) -> UInt8? {
        switch unit {
        case 0x30...0x39: unit - 0x30
        case 0x41...0x46: unit - 0x37
        case 0x61...0x66: unit - 0x57
        default: nil
        }
    }
}

/// What is wrong with hexadecimal text, and where. Equality is on the code.
public struct HexError: CodedError {
    public enum Code: Sendable {
        case notADigit
        case halfAnOctet
    }

    public let code: Code
    /// The place of the fault in UTF-8 code units from the start of the text.
    public let offset: Int

    public init(code: Code, offset: Int) {
        self.code = code
        self.offset = offset
    }

    public var description: String {
        switch code {
        case .notADigit: "not a hexadecimal digit at character \(offset + 1)"
        case .halfAnOctet: "an odd number of hexadecimal digits"
        }
    }
}
