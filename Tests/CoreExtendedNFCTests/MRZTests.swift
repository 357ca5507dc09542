// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Testing

/// The specimens of ICAO 9303-4 (TD3), -5 (TD1) and -6 (TD2).
private enum Specimen {
    static let td3 = "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<L898902C36UTO7408122F1204159ZE184226B<<<<<10"
    static let td1 = "I<UTOD231458907<<<<<<<<<<<<<<<7408122F1204159UTO<<<<<<<<<<<6ERIKSSON<<ANNA<MARIA<<<<<<<<<<"
    static let td2 = "I<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<D231458907UTO7408122F1204159<<<<<<<6"
    static let long1 = "I<UTOD23145890<7349<<<<<<<<<<<3407127M9507122UTO<<<<<<<<<<<2STEVENSON<<PETER<JOHN<<<<<<<<<"
    /// The specimen that appendix D of 9303-11 opens.
    static let appendixD = "L898902C<3UTO6908061F9406236ZE184226B<<<<<14"
}

@Suite struct CheckDigitTests {
    /// ICAO 9303-3 4.9 and the specimens of parts 4 to 6.
    @Test(arguments: [
        ("520727", "3"), ("L898902C<", "3"), ("L898902C3", "6"), ("690806", "1"), ("940623", "6"), ("740812", "2"),
        ("120415", "9"),
        ("640812", "5"), ("101031", "8"), ("T22000129", "3"), ("D23145890", "7"), ("ZE184226B<<<<<", "1"),
        ("<<<<<<<<<<<<<<", "0"),
        ("D23145890<734", "9"), ("D23145890734", "9"), ("340712", "7"), ("950712", "2"), ("C11T002JM", "4"), ("960812", "2"),
        ("131031", "7"),
    ])
    func aCheckDigitIsAsPublished(field: String, digit: String) {
        #expect(String(CoreExtendedNFC.mrzCheckDigit(field)) == digit)
    }

    @Test func noLengthMakesTheSumOverflow() {
        #expect(CoreExtendedNFC.mrzCheckDigit(String(repeating: "Z", count: 1_000_000)).isNumber)
    }
}

@Suite struct MRZKeyTests {
    /// ICAO 9303-11 D.2 and 9.7.3.
    @Test func aKeyIsNumberBirthAndExpiryWithTheirDigits() throws {
        let key = try MRZKey(documentNumber: "L898902C", dateOfBirth: "690806", dateOfExpiry: "940623")
        #expect(key.value == "L898902C<369080619406236")
        #expect(key.checkDigitsHold)
        #expect(
            CoreExtendedNFC.computeMRZKey(documentNumber: "L898902C", dateOfBirth: "690806", dateOfExpiry: "940623") == key.value)
    }

    /// Wire facts row 45.
    @Test func aLongNumberStaysWhole() throws {
        let key = "D23145890734934071279507122"
        #expect(try MRZKey(documentNumber: "D23145890734", dateOfBirth: "340712", dateOfExpiry: "950712").value == key)
        #expect(try MRZKey(Specimen.long1).value == key)
        #expect(try MRZKey(String(Specimen.long1.prefix(60))).value == key)
        #expect(try MRZKey(key).value == key)
    }

    /// The same rule in a TD2 line.
    @Test func aLongNumberOfATD2LineGoesOnInTheOptionalData() throws {
        let line = "D23145890<UTO3407127M95071227349<<<<"
        #expect(line.count == 36)
        #expect(try MRZKey(line).value == "D23145890734934071279507122")
    }

    @Test func aPastedLineOrZoneGivesTheKey() throws {
        #expect(try MRZKey(Specimen.appendixD).value == AppendixD.mrzKey)
        #expect(try MRZKey("L898902C<369080619406236").value == AppendixD.mrzKey)
        #expect(try MRZKey("  l898902c<3uto6908061f9406236\tze184226b<<<<<14\r\n").value == AppendixD.mrzKey)
        #expect(try MRZKey(Specimen.td3).value == "L898902C3674081221204159")
        #expect(try MRZKey(Specimen.td1).value == "D23145890774081221204159")
        #expect(try MRZKey(Specimen.td2).value == "D23145890774081221204159")
        #expect(try MRZKey(String(Specimen.td2.suffix(36))).value == "D23145890774081221204159")
    }

    @Test func aWrongCheckDigitIsToldAndTheKeyKept() throws {
        let key = try MRZKey("L898902C<369080619406235")
        #expect(key.value == "L898902C<369080619406235")
        #expect(!key.checkDigitsHold)
        let wrong = key.checkDigits.filter { !$0.holds }
        #expect(wrong.map(\.field) == [.dateOfExpiry])
        #expect(wrong.first?.computed == "6")
    }

    @Test(arguments: [
        "", "L898902C", "L898902C<36908061940623", String(repeating: "A", count: 38), String(repeating: "<", count: 1000),
    ])
    func anotherLengthIsRefused(text: String) {
        #expect(throws: MRZError(.length)) { try MRZKey(text) }
    }

    @Test func aFirstLineIsToldFromASecond() {
        #expect(throws: MRZError(.line)) { try MRZKey(String(Specimen.td3.prefix(44))) }
    }

    @Test func badPartsAreNamed() {
        #expect(throws: MRZError(.date)) {
            try MRZKey(documentNumber: "L898902C", dateOfBirth: "19690806", dateOfExpiry: "940623")
        }
        #expect(throws: MRZError(.documentNumber)) {
            try MRZKey(documentNumber: "<<", dateOfBirth: "690806", dateOfExpiry: "940623")
        }
        let error = #expect(throws: MRZError.self) {
            try MRZKey(documentNumber: "L898-902C", dateOfBirth: "690806", dateOfExpiry: "940623")
        }
        #expect(error?.code == .character)
        #expect(error?.offset == 4)
    }

    @Test func aKeyStandsInNoRendering() throws {
        let key = try MRZKey(Specimen.appendixD)
        var text = "\(key) \(String(reflecting: key))"
        dump(key, to: &text)
        #expect(!text.contains("L898902C"))
    }
}

@Suite struct MRZDataTests {
    @Test func aPassportIsReadFieldByField() throws {
        let mrz = try MRZData(Array(Specimen.td3.utf8))
        #expect(mrz.format == .td3)
        #expect(mrz.documentCode == "P")
        #expect(mrz.issuingState == "UTO")
        #expect(mrz.lastName == "ERIKSSON")
        #expect(mrz.firstName == "ANNA MARIA")
        #expect(mrz.documentNumber == "L898902C3")
        #expect(mrz.nationality == "UTO")
        #expect(mrz.dateOfBirth == "740812")
        #expect(mrz.sex == "F")
        #expect(mrz.dateOfExpiry == "120415")
        #expect(mrz.optionalData1 == "ZE184226B")
        #expect(mrz.checkDigitsHold)
        #expect(mrz.checkDigits.map(\.printed) == ["6", "2", "9", "1", "0"])
        #expect(mrz.lines.map(\.count) == [44, 44])
    }

    @Test func aCardIsReadFieldByField() throws {
        let mrz = try MRZData(Array(Specimen.td1.utf8))
        #expect(mrz.format == .td1)
        #expect(mrz.documentCode == "I")
        #expect(mrz.documentNumber == "D23145890")
        #expect(mrz.dateOfBirth == "740812")
        #expect(mrz.dateOfExpiry == "120415")
        #expect(mrz.nationality == "UTO")
        #expect(mrz.lastName == "ERIKSSON")
        #expect(mrz.checkDigitsHold)
        #expect(mrz.checkDigits.last?.printed == "6")
    }

    @Test func aTD2DocumentIsReadFieldByField() throws {
        let mrz = try MRZData(Array(Specimen.td2.utf8))
        #expect(mrz.format == .td2)
        #expect(mrz.documentNumber == "D23145890")
        #expect(mrz.dateOfExpiry == "120415")
        #expect(mrz.firstName == "ANNA MARIA")
        #expect(mrz.checkDigitsHold)
    }

    @Test func aLongNumberIsReadWhole() throws {
        let mrz = try MRZData(Array(Specimen.long1.utf8))
        #expect(mrz.documentNumber == "D23145890734")
        #expect(mrz.optionalData1 == "")
        #expect(mrz.checkDigits.first?.printed == "9")
        #expect(mrz.checkDigitsHold)
    }

    @Test func eachWrongCheckDigitIsReported() throws {
        var characters = Array(Specimen.td3.utf8)
        for (index, field) in [
            (53, MRZCheckDigit.Field.documentNumber), (63, .dateOfBirth), (71, .dateOfExpiry), (86, .optionalData),
        ] {
            characters = Array(Specimen.td3.utf8)
            characters[index] = characters[index] == 0x35 ? 0x36 : 0x35
            let wrong = try MRZData(characters).checkDigits.filter { !$0.holds }.map(\.field)
            #expect(wrong.contains(field))
            #expect(wrong.contains(.composite))
        }
    }

    @Test func anyOtherLengthOrCharacterIsRefused() {
        for length in 0..<200 where ![72, 88, 90].contains(length) {
            #expect(throws: MRZError(.length)) { try MRZData([UInt8](repeating: 0x3C, count: length)) }
        }
        #expect(throws: MRZError(.character)) { try MRZData([UInt8](repeating: 0xFF, count: 88)) }
        #expect(throws: Never.self) { try MRZData([UInt8](repeating: 0x3C, count: 90)) }
    }
}
