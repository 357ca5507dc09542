// SPDX-License-Identifier: MIT

/// A machine readable zone, read field by field (ICAO 9303-4, -5, -6).
public struct MRZData: Sendable, Codable, Equatable {
    /// The sizes of document that have a machine readable zone.
    public enum Format: String, Sendable, Codable {
        /// Cards: three lines of 30.
        case td1
        /// Two lines of 36.
        case td2
        /// Passports: two lines of 44.
        case td3
    }

    public let format: Format
    public let documentCode: String
    public let issuingState: String
    /// Whole, also when it is longer than nine characters.
    public let documentNumber: String
    /// `YYMMDD`.
    public let dateOfBirth: String
    public let sex: String
    /// `YYMMDD`.
    public let dateOfExpiry: String
    public let nationality: String
    public let lastName: String
    public let firstName: String
    public let optionalData1: String
    public let optionalData2: String
    /// All characters without line ends.
    public let mrzString: String
    /// Each check digit with what it should be.
    public let checkDigits: [MRZCheckDigit]

    /// Whether every check digit is right.
    public var checkDigitsHold: Bool { checkDigits.allSatisfy(\.holds) }

    /// The lines as they are printed.
    public var lines: [String] {
        let length = format == .td1 ? 30 : format == .td2 ? 36 : 44
        let characters = Array(mrzString.utf8)
        return stride(from: 0, to: characters.count, by: length).map { text(characters[$0..<min($0 + length, characters.count)]) }
    }

    /// Parses the characters of a whole machine readable zone without line ends: 90 (TD1), 72 (TD2) or 88 (TD3).
    ///
    /// - Throws: ``MRZError``. Wrong check digits are not thrown: ``checkDigits`` tells.
    public init(_ characters: some Collection<UInt8>) throws(MRZError) {
        let all = Array(characters)
        if let offset = all.firstIndex(where: { !CheckDigit.isAllowed($0) }) {
            throw MRZError(.character, offset: offset, "character \(offset + 1) of the MRZ is none of A-Z, 0-9, <")
        }
        let format: Format
        let names: ArraySlice<UInt8>
        let number: LongNumber
        let first: ArraySlice<UInt8>
        let second: ArraySlice<UInt8>
        /// Nationality, birth, sex and expiry begin here.
        let places: (nationality: Int, birth: Int, sex: Int, expiry: Int)
        let composite: MRZCheckDigit
        switch all.count {
        case 90:
            format = .td1
            names = all[60..<90]
            number = LongNumber(all[5..<14], all[14], optional: all[15..<30])
            first = number.optional
            second = all[48..<59]
            places = (45, 30, 37, 38)
            composite = MRZCheckDigit(
                .composite, printed: all[59], over: all[5..<30] + all[30..<37] + all[38..<45] + all[48..<59])
        case 72:
            format = .td2
            names = all[5..<36]
            number = LongNumber(all[36..<45], all[45], optional: all[64..<71])
            first = number.optional
            second = []
            places = (46, 49, 56, 57)
            composite = MRZCheckDigit(.composite, printed: all[71], over: all[36..<46] + all[49..<56] + all[57..<71])
        case 88:
            format = .td3
            names = all[5..<44]
            number = LongNumber(all[44..<53], all[53])
            first = all[72..<86]
            second = []
            places = (54, 57, 64, 65)
            composite = MRZCheckDigit(.composite, printed: all[87], over: all[44..<54] + all[57..<64] + all[65..<87])
        default:
            throw MRZError(.length, offset: all.count, "an MRZ of \(all.count) characters; TD1 has 90, TD2 72, TD3 88")
        }
        self.format = format
        documentCode = Self.field(all[0..<2])
        issuingState = Self.field(all[2..<5])
        documentNumber = Self.field(number.characters[...])
        nationality = Self.field(all[places.nationality..<places.nationality + 3])
        let birth = all[places.birth..<places.birth + 6]
        dateOfBirth = text(birth)
        sex = Self.field(all[places.sex..<places.sex + 1])
        let expiry = all[places.expiry..<places.expiry + 6]
        dateOfExpiry = text(expiry)
        (lastName, firstName) = Self.names(names)
        optionalData1 = Self.field(first)
        optionalData2 = Self.field(second)
        mrzString = text(all)
        var digits = [
            MRZCheckDigit(.documentNumber, printed: number.checkDigit, over: number.characters),
            MRZCheckDigit(.dateOfBirth, printed: all[places.birth + 6], over: birth),
            MRZCheckDigit(.dateOfExpiry, printed: all[places.expiry + 6], over: expiry),
        ]
        if format == .td3 { digits.append(MRZCheckDigit(.optionalData, printed: all[86], over: first)) }
        checkDigits = digits + [composite]
    }

    private static func field(_ characters: ArraySlice<UInt8>) -> String {
        var field = characters
        while field.last == CheckDigit.filler { field.removeLast() }
        while field.first == CheckDigit.filler { field.removeFirst() }
        return text(field.map { $0 == CheckDigit.filler ? 0x20 : $0 })
    }

    /// The primary and the secondary identifier stand with two fillers between them (9303-3 4.6).
    private static func names(_ characters: ArraySlice<UInt8>) -> (last: String, first: String) {
        for index in characters.indices.dropLast()
        where characters[index] == CheckDigit.filler && characters[index + 1] == CheckDigit.filler {
            return (field(characters[..<index]), field(characters[index...]))
        }
        return (field(characters), "")
    }
}
