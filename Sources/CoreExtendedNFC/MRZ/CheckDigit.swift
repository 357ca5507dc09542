// SPDX-License-Identifier: MIT

public import Octets

/// The check digit of machine readable zones (ICAO 9303-3 4.9): weights 7, 3, 1; letters count from 10, the filler as 0.
enum CheckDigit {
    /// The digit in ASCII over characters in ASCII. Characters that no machine readable zone has count as 0.
    static func over(_ characters: some Sequence<UInt8>) -> UInt8 {
        let weights = [7, 3, 1]
        var sum = 0
        var index = 0
        for character in characters {
            let value =
                switch character {
                case 0x30...0x39: Int(character) - 0x30
                case 0x41...0x5A: Int(character) - 0x37
                default: 0
                }
            // The sum is kept below ten, so that no length can make it overflow.
            sum = (sum + value * weights[index]) % 10
            index = (index + 1) % 3
        }
        return 0x30 + UInt8(truncatingIfNeeded: sum)
    }

    static func isAllowed(_ character: UInt8) -> Bool {
        (0x30...0x39).contains(character) || (0x41...0x5A).contains(character) || character == filler
    }

    /// `<`
    static let filler: UInt8 = 0x3C
}

/// One check digit of a machine readable zone: what is printed, and what it should be.
public struct MRZCheckDigit: Sendable, Codable, Equatable {
    public enum Field: String, Sendable, Codable {
        case documentNumber, dateOfBirth, dateOfExpiry, optionalData, composite
    }

    public let field: Field
    public let printed: String
    public let computed: String

    init(_ field: Field, printed: UInt8, over characters: some Sequence<UInt8>) {
        self.field = field
        self.printed = text([printed])
        self.computed = text([CheckDigit.over(characters)])
    }

    /// Whether it is right. The optional data of a passport may have the filler where there is no data (9303-4 4.2.2.2).
    public var holds: Bool { printed == computed || (field == .optionalData && printed == "<" && computed == "0") }
}

/// Why text is no machine readable zone, or no key out of one. Equality is on the code.
public struct MRZError: DetailedError {
    public enum Code: Sendable, Equatable {
        /// No kind of document has so many characters.
        case length
        /// A character other than `A-Z`, `0-9`, `<`.
        case character
        /// A date is not six digits.
        case date
        /// There is no document number.
        case documentNumber
        /// A line that does not hold what is needed.
        case line
    }

    public let code: Code
    /// The character at fault, counted from 0, in the text without spaces and line ends.
    public let offset: Int
    public let detail: String

    public init(_ code: Code, offset: Int = 0, _ detail: String = "") {
        self.code = code
        self.offset = offset
        self.detail = detail
    }
}

/// ASCII characters as text.
func text(_ characters: some Sequence<UInt8>) -> String { String(decoding: Array(characters), as: UTF8.self) }
