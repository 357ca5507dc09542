// SPDX-License-Identifier: MIT

import Octets
import SessionSupport
import TestSupport
import Testing
import TraceFile

@testable import TraceDecoding

/// Expressions over the fields of an exchange.
@Suite struct FieldFilterTests {
    private static func exchange(_ command: String, _ answer: String) -> [DecodedRow] {
        var decoder = TraceDecoder(interfaces: [TraceInterface(.apdu(0))])
        return [(RowDirection.sent, command), (.received, answer)].map { direction, octets in
            decoder.push(
                TraceRow(time: 0, interface: 0, direction: direction, packetID: 1, dissector: "iso7816", body: hex(octets)))
        }
    }

    private static let select = exchange("00A4040C07A0000002471001", "6A82")
    private static let challenge = exchange("0084000008", "4608F919887022129000")
    private static let verify = exchange("002000010431323334", "63C2")

    static let onSelect: [(String, Bool)] = [
        ("iso7816.response.sw == 0x6A82", true), ("iso7816.response.sw != 0x9000", true),
        ("iso7816.response.sw == 0x9000", false),
        ("iso7816.response.sw > 0x9000", false), ("iso7816.response.sw <= 27266", true), ("iso7816.command.lc == 7", true),
        ("iso7816.command.data == A0:00:00:02:47:10:01", true), ("iso7816.command.data == 0xA0000002471001", true),
        ("iso7816.command.data contains 02:47", true), ("iso7816.command.data contains 47:02", false),
        ("iso7816.command.ins == SELECT", true), ("iso7816.response.sw contains \"not found\"", true), ("iso7816", true),
        ("bac", false),
        ("iso7816.command.le", false), ("!iso7816.command.le", true), ("not iso7816.command.le", true),
        ("bac.rndIC", false), ("iso7816.sm == 0", true),
        ("bac || iso7816.command.ins == 0xA4", true), ("bac && iso7816", false), ("bac or iso7816 and bac", false),
        ("(bac or iso7816) and iso7816", true),
        ("iso7816.command.ins eq 0xA4 and iso7816.response.sw ne 0x9000", true), ("kind == command", true),
        ("kind == error", false),
        ("interface == apdu:0", true), ("summary contains eMRTD", true),
    ]

    @Test(arguments: onSelect) func aFilterIsTrueOfTheWholeExchange(_ text: String, _ isTrue: Bool) throws {
        #expect(try FieldFilter(text).matches(Self.select) == isTrue)
    }

    @Test func anUnequalNeedsTheField() throws {
        #expect(try FieldFilter("iso7816.command.le != 7").matches(Self.select) == false)
        #expect(try FieldFilter("iso7816.command.le != 7").matches(Self.challenge))
    }

    @Test func aSealedFieldIsThereAndEqualsNothing() throws {
        #expect(try FieldFilter("iso7816.command.data.pin").matches(Self.verify))
        #expect(try FieldFilter("iso7816.command.data.pin == 31:32:33:34").matches(Self.verify) == false)
        #expect(try FieldFilter("iso7816.command.data.pin contains 31").matches(Self.verify) == false)
    }

    static let mistakes: [(String, Int, FieldFilterError.Code)] = [
        ("", 1, .syntax), ("iso7816.response.sw ==", 23, .syntax), ("(iso7816", 9, .syntax), ("iso7816 iso7816", 9, .syntax),
        ("&& iso7816", 1, .syntax), ("iso7816.response.sv == 1", 1, .unknownField), ("iso7816 && bacc", 12, .unknownField),
        ("iso7816.response.sw == )", 24, .syntax),
    ]

    @Test(arguments: mistakes) func aMistakeHasItsColumn(_ text: String, _ column: Int, _ code: FieldFilterError.Code) {
        let error = #expect(throws: FieldFilterError.self) { try FieldFilter(text) }
        #expect(error?.column == column)
        #expect(error?.code == code)
    }

    @Test func anUnknownFieldNamesTheNearest() {
        let error = #expect(throws: FieldFilterError.self) { try FieldFilter("iso7816.response.sv == 1") }
        #expect(error?.description == "unknown field iso7816.response.sv in the filter, at column 1; iso7816.response.sw?")
    }

    @Test func noTextTrapsAndNoneIsReadWithoutEnd() {
        var generator = SeededGenerator(seed: 11)
        let pieces = [
            "(", ")", "!", "&&", "||", "==", "<", "contains", "iso7816", "bac.rndIC", "0x", "0xFFFFFFFFFFFFFFFFFF", "::", "\"",
            "é", "-", ".",
        ]
        for _ in 0..<2_000 {
            let text = (0..<Int.random(in: 0...12, using: &generator)).compactMap { _ in pieces.randomElement(using: &generator) }
                .joined(separator: Bool.random(using: &generator) ? " " : "")
            if let filter = try? FieldFilter(text, names: Self.small) { _ = filter.matches(Self.select) }
        }
        for deep in ["(", "!"] {
            #expect(throws: FieldFilterError.self) { try FieldFilter(String(repeating: deep, count: 100_000)) }
        }
    }

    private static let small = FieldFilter.Names(["iso7816.command.ins", "bac.ifd.rndIC"])
}
