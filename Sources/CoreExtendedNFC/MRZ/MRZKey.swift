// SPDX-License-Identifier: MIT

/// What opens a document's chip: number, birth and expiry of its machine readable zone, each with its check digit
/// (ICAO 9303-11 9.7.2, 9.7.3).
public struct MRZKey: Sendable, Equatable {
    /// The key's characters: `L898902C<369080619406236`.
    public let value: String
    /// The check digits as they were given or, from parts, as they were computed.
    public let checkDigits: [MRZCheckDigit]

    /// Whether every check digit is right. A key with a wrong one can still be the one that a chip was made with.
    public var checkDigitsHold: Bool { checkDigits.allSatisfy(\.holds) }

    /// A key out of its parts.
    ///
    /// - Parameters:
    ///   - documentNumber: as printed; short ones are filled up with `<` to nine characters, longer ones (TD1, TD2) are taken whole.
    ///   - dateOfBirth: `YYMMDD`; `<` where it is not known.
    ///   - dateOfExpiry: `YYMMDD`.
    /// - Throws: ``MRZError``.
    public init(documentNumber: String, dateOfBirth: String, dateOfExpiry: String) throws(MRZError) {
        var number = try Self.characters(documentNumber)[...]
        while number.last == CheckDigit.filler { number.removeLast() }
        guard !number.isEmpty else { throw MRZError(.documentNumber, "a document number is needed") }
        guard number.count <= Self.longestNumber else {
            throw MRZError(.documentNumber, "a document number of \(number.count) characters; \(Self.longestNumber) is the most")
        }
        let filled = Array(number) + [UInt8](repeating: CheckDigit.filler, count: max(0, 9 - number.count))
        let birth = try Self.date(dateOfBirth, "birth")
        let expiry = try Self.date(dateOfExpiry, "expiry")
        self.init(
            number: filled, CheckDigit.over(filled), birth: birth, CheckDigit.over(birth), expiry: expiry, CheckDigit.over(expiry)
        )
    }

    /// A key out of what a person has: the key itself, the second line of a passport (44 characters) or of a TD2 document
    /// (36), the first two lines of a TD1 card (60), or a whole machine readable zone (88, 72, 90). Spaces and line ends are
    /// passed over, and small letters are read as capitals.
    ///
    /// - Throws: ``MRZError``.
    public init(_ text: String) throws(MRZError) {
        let characters = try Self.characters(text)
        switch characters.count {
        case 88: try self.init(secondLine: characters[44...])
        case 44: try self.init(secondLine: characters[...])
        case 72: try self.init(secondLine: characters[36...])
        case 36:
            // A key of a 21-character number is as long as a TD2 line.
            let key = Self(key: characters)
            if key.checkDigitsHold { self = key } else { try self.init(secondLine: characters[...]) }
        case 90, 60: try self.init(cardLines: characters)
        case 24...Self.longestNumber + 15: self.init(key: characters)
        default:
            throw MRZError(
                .length, offset: characters.count,
                "\(characters.count) characters are no MRZ key (24), second MRZ line (44, 36) or whole MRZ (88, 72, 90)")
        }
    }

    private init(key characters: [UInt8]) {
        let tail = characters.count - 15
        self.init(
            number: Array(characters[..<tail]), characters[tail], birth: Array(characters[(tail + 1)..<(tail + 7)]),
            characters[tail + 7],
            expiry: Array(characters[(tail + 8)..<(tail + 14)]), characters[tail + 14])
    }

    /// TD3 and TD2 have the same places up to the expiry.
    private init(secondLine line: ArraySlice<UInt8>) throws(MRZError) {
        let line = Array(line)
        guard line[13..<19].allSatisfy({ !(0x41...0x5A).contains($0) }), line[21..<27].allSatisfy({ !(0x41...0x5A).contains($0) })
        else {
            throw MRZError(.line, offset: 13, "letters where the dates of a second MRZ line stand; is it the first line?")
        }
        let number =
            line.count == 36 ? LongNumber(line[0..<9], line[9], optional: line[28..<35]) : LongNumber(line[0..<9], line[9])
        self.init(
            number: number.characters, number.checkDigit, birth: Array(line[13..<19]), line[19], expiry: Array(line[21..<27]),
            line[27])
    }

    /// The first two lines of a TD1 card.
    private init(cardLines lines: [UInt8]) throws(MRZError) {
        let number = LongNumber(lines[5..<14], lines[14], optional: lines[15..<30])
        self.init(
            number: number.characters, number.checkDigit, birth: Array(lines[30..<36]), lines[36], expiry: Array(lines[38..<44]),
            lines[44])
    }

    private init(
        number: [UInt8], _ numberDigit: UInt8, birth: [UInt8], _ birthDigit: UInt8, expiry: [UInt8], _ expiryDigit: UInt8
    ) {
        value = text(number + [numberDigit] + birth + [birthDigit] + expiry + [expiryDigit])
        checkDigits = [
            MRZCheckDigit(.documentNumber, printed: numberDigit, over: number),
            MRZCheckDigit(.dateOfBirth, printed: birthDigit, over: birth),
            MRZCheckDigit(.dateOfExpiry, printed: expiryDigit, over: expiry),
        ]
    }

    /// Nine characters and what fits into the longest optional field, that of TD1 (9303-5 4.2.2).
    static let longestNumber = 22

    private static func characters(_ text: String) throws(MRZError) -> [UInt8] {
        var characters: [UInt8] = []
        for unit in text.utf8 where ![0x20, 0x09, 0x0A, 0x0D].contains(unit) {
            let capital = (0x61...0x7A).contains(unit) ? unit - 0x20 : unit
            guard CheckDigit.isAllowed(capital) else {
                throw MRZError(.character, offset: characters.count, "character \(characters.count + 1) is none of A-Z, 0-9, <")
            }
            characters.append(capital)
            guard characters.count <= 256 else { throw MRZError(.length, offset: 256, "more characters than any MRZ has") }
        }
        return characters
    }

    private static func date(_ text: String, _ name: String) throws(MRZError) -> [UInt8] {
        let date = try characters(text)
        guard date.count == 6, date.allSatisfy({ !(0x41...0x5A).contains($0) }) else {
            throw MRZError(.date, "the date of \(name) is six digits, YYMMDD")
        }
        return date
    }
}

extension MRZKey: CustomStringConvertible, CustomReflectable {
    /// The key is a password: it stays out of every rendering.
    public var description: String { "MRZ key of \(value.utf8.count) characters" }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A document number and its check digit, which may go on in the optional data (ICAO 9303-5 4.2.4, 9303-6 4.2.2.3).
struct LongNumber {
    /// The number with its filler up to nine characters.
    let characters: [UInt8]
    let checkDigit: UInt8
    /// What is left of the optional data.
    let optional: ArraySlice<UInt8>

    init(_ number: ArraySlice<UInt8>, _ digit: UInt8, optional: ArraySlice<UInt8> = []) {
        let rest = optional.prefix { $0 != CheckDigit.filler }
        if digit == CheckDigit.filler, let last = rest.last, rest.count >= 2 {
            characters = Array(number) + rest.dropLast()
            checkDigit = last
            self.optional = optional.dropFirst(rest.count)
        } else {
            characters = Array(number)
            checkDigit = digit
            self.optional = optional
        }
    }
}
