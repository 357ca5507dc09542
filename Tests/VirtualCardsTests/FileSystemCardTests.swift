// SPDX-License-Identifier: MIT

import Octets
import Testing
import VirtualCards

/// ISO/IEC 7816-4, by command.
@Suite struct FileSystemCardTests {
    static let firstName = "F05441504445434B01"
    static let secondName = "F05441504445434B02"

    @Test func theAnswerToResetSaysT1AndChecksOut() throws {
        let atr = try card("filesystem").atr
        #expect(atr.dropFirst().reduce(0, ^) == 0)
        #expect(Hex.encode(atr.prefix(3)) == "3B8581")
    }

    @Test func filesAreSelectedByIdentifierNamePathAndParent() throws {
        try play(
            [
                ("00A4000C023F00", "9000"),
                ("00A4000C", "9000"),
                ("00A4000C020001", "9000"),
                ("00A4000C025000", "9000"),
                ("00A4020C020101", "9000"),
                ("00A4020C020001", "6A82"),
                ("00A4030C", "9000"),
                ("00A4020C020001", "9000"),
                ("00A4010C025000", "9000"),
                ("00A4010C025100", "6A82"),
                ("00A4000C025100", "9000"),
                ("00A4000C023F00", "9000"),
                ("00A4030C", "6A82"),
                ("00A4080C0450000104", "9000"),
                ("00A4080C0450000199", "6A82"),
                ("00A4000C025000", "9000"),
                ("00A4030C", "9000"),
                ("00A4090C0450000101", "9000"),
                ("00A4040C09" + Self.firstName, "9000"),
            ], on: card("filesystem"))
    }

    @Test func aPartialNameFindsFirstNextLastAndPrevious() throws {
        try play(
            [
                ("00A4040C08F05441504445434B", "9000"),
                ("00A4020C020102", "9000"),
                ("00A4040E08F05441504445434B", "9000"),
                ("00A4020C020102", "6A82"),
                ("00A4040E08F05441504445434B", "6A82"),
                ("00A4040F08F05441504445434B", "9000"),
                ("00A4020C020102", "9000"),
                ("00A4040D08F05441504445434B", "9000"),
                ("00A4020C020102", "6A82"),
                ("00A4040C08F05441504445434C", "6A82"),
            ], on: card("filesystem"))
    }

    @Test func selectGivesWhatP2AsksFor() throws {
        try play(
            [
                ("00A4040009" + Self.firstName + "00", "6F15820138830250008409" + Self.firstName + "8A01059000"),
                ("00A40204020102" + "00", "62118002010082010183020102880110" + "8A01059000"),
                ("00A40208020102" + "00", "64009000"),
                ("00A4020C020102" + "00", "9000"),
                ("00A4020402010200", "*9000"),
                ("00A40200020104" + "00", "6F*9000"),
            ], on: card("filesystem"))
    }

    @Test func aSelectThatIsNoneIsRefusedWithItsReason() throws {
        try play(
            [
                ("00A4050C020001", "6A86"),
                ("00A4001C020001", "6A86"),
                ("00A4000E020001", "6A86"),
                ("00A4000C03000100", "6A87"),
                ("00A4040C", "6A87"),
                ("00A4080C03500001", "6A87"),
                ("00A4000C02FFFF", "6A82"),
            ], on: card("filesystem"))
    }

    @Test func readBinaryFollowsLe() throws {
        let text = Hex.encode("A file that everybody may read.".utf8)
        try play(
            [
                ("00B0000001", "6986"),
                ("00A4080C0450000101", "9000"),
                ("00B000001F", text + "9000"),
                ("00B0000000", text + "9000"),
                ("00B0000020", text + "6282"),
                ("00B0001E01", "2E9000"),
                ("00B0001E02", "2E6282"),
                ("00B0001F01", "6B00"),
                ("00B07FFF01", "6B00"),
                ("00B00000", "6700"),
                ("00B0000001AA01", "6700"),
                ("00B08200FF", "*9000"),
                ("00B08201FF", "*9000"),
                ("00B08202FF", "*6282"),
                ("00B0850001", "6A82"),
                ("00B0800001", "6A86"),
                ("00B0A10001", "6A86"),
                ("00B09F0001", "6A86"),
            ], on: card("filesystem"))
    }

    @Test func anEmptyFileAnswersEndOfFile() throws {
        try play([("00B0840010", "6282"), ("00B0840000", "9000"), ("00B0840110", "6B00")], on: card("filesystem"))
    }

    @Test func anExtendedLeReadsAWholeFile() throws {
        let card = try card("filesystem")
        try play([("00A4000C020002", "9000")], on: card)
        #expect(try card.send("00B00000009C40").count == 40_002)
        #expect(try card.send("00B00000000000").count == 49_154)
        #expect(Hex.encode(try card.send("00B0000000FFFF").suffix(2)) == "6282")
        #expect(try card.send("00B00000").count == 2)
        #expect(try card.send("00B0830000").count == 258)
        #expect(try card.send("00B08300000000").count == 65_535)
    }

    @Test func anExtendedLeOf256IsALength() throws {
        // With Le of two octets only 0000 means everything.
        try play([("00A4080C0450000101", "9000"), ("00B00000000100", "*6282")], on: card("filesystem"))
    }

    @Test func offsetsAbove7FFFTravelInADataObject() throws {
        let card = try card("filesystem")
        try play([("00A4000C020002", "9000")], on: card)
        let whole = try card.send("00B00000000000")
        let answer = try card.send("00B100000454028000" + "12")
        #expect(answer == [0x53, 0x10] + whole[0x8000..<0x8010] + [0x90, 0x00])
        try play(
            [
                ("00B100000454020000" + "00", "5381FD*9000"),
                ("00B100000554030000FF" + "03", "5301*9000"),
                ("00B10002035401FF" + "03", "5301*9000"),
                ("00B10002045402BFFE" + "03", "5301*9000"),
                ("00B10000045402BFFE" + "04", "5302*9000"),
                ("00B10000045402BFFE" + "05", "5302*6282"),
                ("00B10000045402C000" + "10", "6B00"),
                ("00B10000055403FFFFFF" + "10", "6B00"),
                ("00B100000654047FFFFFFF" + "10", "6B00"),
                ("00B100000654" + "04FFFFFFFF" + "10", "6B00"),
                ("00B10000045402" + "8000" + "02", "6700"),
                ("00B1000010", "6700"),
                ("00B10000025400" + "10", "6A80"),
                ("00B10000045302" + "8000" + "10", "6A80"),
                ("00B10000035402" + "80" + "10", "6A80"),
                ("00B1001F045402" + "8000" + "10", "6A86"),
                ("00B17777045402" + "8000" + "10", "6A82"),
            ], on: card)
    }

    @Test func anExtendedOddReadHoldsItsObjectWhole() throws {
        let card = try card("filesystem")
        let answer = try card.send("00B10002" + "000004" + "54020000" + "1000")
        #expect(Hex.encode(answer.prefix(4)) == "53820FFC")
        #expect(answer.count == 0x1000 + 2)
    }

    @Test func aFileThatNeedsThePINIsReadAfterVerify() throws {
        let card = try card("filesystem")
        try play(
            [
                ("00A4040C09" + Self.firstName, "9000"),
                ("00B0830005", "6982"),
                ("0020000100", "63C3"),
                ("00200001", "63C3"),
                ("002000010431323334", "9000"),
                ("00200001", "9000"),
                ("00B0830005", "412066696C9000"),
                ("0020FF01", "9000"),
                ("00B0830005", "6982"),
                ("002000810831323334FFFFFFFF", "9000"),
                ("00B0830005", "412066696C9000"),
            ], on: card)
        card.powerOn()
        try play([("00A4040C09" + Self.firstName, "9000"), ("00B0830005", "6982")], on: card)
    }

    @Test func threeWrongPINsBlockAndTheUnblockingCodeHelps() throws {
        let card = try card("filesystem")
        try play(
            [
                ("002000010431323335", "63C2"),
                ("002000010431323334", "9000"),
                ("002000010431323335", "63C2"),
                ("002000010431323335", "63C1"),
            ], on: card)
        card.powerOn()
        try play(
            [
                ("00200001", "63C1"),
                ("002000010431323335", "63C0"),
                ("002000010431323334", "6983"),
                ("00200001", "6983"),
                ("002C00010C" + "3132333435363739" + "35353535", "63C9"),
                ("002C00010C" + "3132333435363738" + "35353535", "9000"),
                ("002000010431323334", "63C2"),
                ("002000010435353535", "9000"),
                ("002C010108" + "3132333435363738", "9000"),
                ("00200001", "63C3"),
            ], on: card)
    }

    @Test func thePINIsChanged() throws {
        try play(
            [
                ("002400010831323335" + "39393939", "63C2"),
                ("002400010A31323334" + "393939393939", "9000"),
                ("0020000106" + "393939393939", "9000"),
                ("002400010A393939393939" + "31323334", "9000"),
                ("0024000110" + "31323334FFFFFFFF" + "3536373839FFFFFF", "9000"),
                ("0020000105" + "3536373839", "9000"),
                ("0024000108" + "3536373839" + "FFFFFF", "6A80"),
                ("002401010431323334", "6A86"),
                ("0024000104" + "35363738", "6700"),
            ], on: card("filesystem"))
    }

    @Test func verifyRefusesWhatItIsNot() throws {
        try play(
            [
                ("002001010431323334", "6A86"),
                ("002000020431323334", "6A88"),
                ("00200001" + "11" + String(repeating: "31", count: 17), "6700"),
                ("00200001", "63C3"),
            ], on: card("filesystem"))
        try play([("0020000106303030303030", "9000")], on: card("filesystem?pin=000000"))
    }

    @Test func updateBinaryNeedsThePINAndStaysInside() throws {
        let card = try card("filesystem")
        try play(
            [
                ("00A4080C0450000102", "9000"),
                ("00D6000002CAFE", "6982"),
                ("002000010431323334", "9000"),
                ("00D6000002CAFE", "9000"),
                ("00D600FF01AB", "9000"),
                ("00D600FF02ABCD", "6A84"),
                ("00D6010001AB", "6B00"),
                ("00D60000", "6700"),
                ("00D700000754020010" + "530177", "9000"),
                ("00D7000004" + "54020010", "6700"),
                ("00A4020C020101", "9000"),
                ("00D6000002CAFE", "6982"),
                ("00D6840002CAFE", "6982"),
            ], on: card)
        card.powerOn()
        try play(
            [("00A4080C0450000102", "9000"), ("00B0000002", "CAFE9000"), ("00B000FF01", "AB9000"), ("00B0001001", "779000")],
            on: card)
    }

    @Test func recordsAreReadByNumberAndInTurn() throws {
        let card = try card("filesystem")
        try play(
            [
                ("00A4040C09" + Self.firstName, "9000"),
                ("00B2010403", "6986"),
                ("00B2012403", "6F6E659000"),
                ("00B2012400", "6F6E659000"),
                ("00B2012404", "6C03"),
                ("00B2042401", "349000"),
                ("00B2060400", "6A83"),
                ("00B2000200", "6F6E659000"),
                ("00B2000200", "746865207365636F6E649000"),
                ("00B2000400", "746865207365636F6E649000"),
                ("00B2000300", "6F6E659000"),
                ("00B2000300", "6A83"),
                ("00B2000100", "616E6420746865206C617374206F6E659000"),
                ("00B2000200", "6A83"),
                ("00B2040500", "34616E6420746865206C617374206F6E659000"),
                ("00B2010600", "6A86"),
                ("00B20104", "6700"),
                ("00B2010C00", "6981"),
                ("00B2012C00", "6A82"),
                ("00B0840001", "6981"),
            ], on: card)
    }

    @Test func moreThanLeComesByGetResponse() throws {
        try play(
            [
                ("00A4040009" + Self.firstName + "08", "6F15820138830250" + "610F"),
                ("00C0000005", "008409F054" + "610A"),
                ("00C0000000", "41504445434B018A0105" + "9000"),
                ("00C0000000", "6985"),
                ("00A4040009" + Self.firstName + "08", "*610F"),
                ("00A4000C", "9000"),
                ("00C0000000", "6985"),
                ("00C00000", "6700"),
            ], on: card("filesystem"))
    }

    @Test func challengesHaveTheLengthAskedForAndFollowTheSeed() throws {
        let first = try card("filesystem?seed=7").send("0084000010")
        #expect(first.count == 18)
        #expect(try card("filesystem?seed=7").send("0084000010") == first)
        #expect(try card("filesystem?seed=8").send("0084000010") != first)
        try play([("0084000000", "*9000"), ("00840000", "6700"), ("0084000108", "6A86")], on: card("filesystem"))
        #expect(try card("filesystem").send("0084000000").count == 10)
    }

    @Test func dataObjectsOfTheCardAreRead() throws {
        let card = try card("filesystem")
        try play(
            [("00CA5F5100", Hex.encode(card.atr) + "9000"), ("00CA5F5200", "8073F601409000"), ("00CA006E00", "6A88")], on: card)
    }

    @Test func whatIsNotSupportedIsNamed() throws {
        try play(
            [
                ("00A5000C023F00", "6D00"),
                ("80A4000C023F00", "6E00"),
                ("FFA4000C023F00", "6E00"),
                ("10A4000C023F00", "6884"),
                ("0CA4000C023F00", "6882"),
                ("01A4000C023F00", "6881"),
                ("00A400", "6700"),
                ("", "6700"),
                ("00A4000C033F00", "6700"),
                ("00A4000C0000003F00", "6700"),
            ], on: card("filesystem"))
    }
}
