// SPDX-License-Identifier: MIT

import Octets
import Testing

@Suite struct HexTests {
    @Test func everyOctetRoundTripsInUpperCase() throws {
        let octets = Array(UInt8.min...UInt8.max)
        let text = Hex.encode(octets)
        #expect(text == text.uppercased() && text.count == 512)
        #expect(try Hex.decode(text) == octets)
        #expect(try Hex.decode(text.lowercased()) == octets)
    }

    @Test func spacesTabsAndColonsAreBetweenDigits() throws {
        #expect(try Hex.decode(" 00:A4\t04 0C ") == [0x00, 0xA4, 0x04, 0x0C])
        #expect(try Hex.decode("") == [])
    }

    @Test(arguments: [
        ("0", HexError.Code.halfAnOctet, 1), ("00A", .halfAnOctet, 3), ("0G", .notADigit, 1), ("00 x", .notADigit, 3),
        ("é0", .notADigit, 0),
        ("00,11", .notADigit, 2),
    ])
    func whatIsNotHexadecimalIsRefusedInPlace(text: String, code: HexError.Code, offset: Int) {
        let error = #expect(throws: HexError.self) { try Hex.decode(text) }
        #expect(error?.code == code && error?.offset == offset)
    }
}

@Suite struct ByteCursorTests {
    @Test func numbersAreReadInBothOrders() throws {
        var cursor = ByteCursor(try Hex.decode("01" + "0203" + "04050607" + "0203" + "04050607" + "AABB"))
        #expect(try cursor.u8() == 0x01)
        #expect(try cursor.u16() == 0x0203)
        #expect(try cursor.u32() == 0x0405_0607)
        #expect(try cursor.u16le() == 0x0302)
        #expect(try cursor.u32le() == 0x0706_0504)
        #expect(cursor.peek == 0xAA && cursor.offset == 13 && cursor.remaining == 2)
        #expect(cursor.takeRest() == [0xAA, 0xBB])
        #expect(cursor.isAtEnd && cursor.peek == nil)
    }

    @Test func aReadThatFailsMovesNothing() throws {
        var cursor = ByteCursor([1, 2, 3][1...])
        #expect(throws: OutOfOctets(offset: 0, wanted: 4, present: 2)) { try cursor.u32() }
        #expect(throws: OutOfOctets(offset: 0, wanted: -1, present: 2)) { try cursor.take(-1) }
        #expect(throws: OutOfOctets(offset: 0, wanted: Int.max, present: 2)) { try cursor.take(.max) }
        #expect(try cursor.take(2) == [2, 3])
        #expect(throws: OutOfOctets(offset: 2, wanted: 1, present: 0)) { try cursor.u8() }
    }

    @Test func aNumberOfEightOctetsIsReadWhole() throws {
        var cursor = ByteCursor([UInt8](repeating: 0xFF, count: 16))
        #expect(try cursor.bigEndian(8) == UInt64.max)
        #expect(try cursor.littleEndian(8) == UInt64.max)
    }
}
