// SPDX-License-Identifier: MIT

import Foundation
import Octets
import TagTransport
import Testing

/// The seven cases of ISO/IEC 7816-3 12.1.3.
@Suite struct CommandAPDUTests {
    private static let expectedLengths: [Int?] = [nil, 1, 2, 127, 255, 256, 257, 4_096, 65_535, 65_536]

    @Test(arguments: Array(0...300) + [65_535])
    func everyCaseRoundTrips(count: Int) throws {
        let data = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        for ne in Self.expectedLengths {
            for form in [nil, CommandAPDU.Form.extended] {
                let command = try CommandAPDU(cla: 0x80, ins: 0xCA, p1: 0x12, p2: 0x34, data: data, ne: ne, form: form)
                let isExtended = count > 255 || (ne ?? 0) > 256 || form == .extended
                #expect(command.octets == Self.octets(data, ne, isExtended: isExtended))
                #expect(try CommandAPDU(bytes: command.octets) == command)
                #expect(Array(command.bytes) == command.octets)
                #expect(command.caseName == Self.caseName(count, ne, isExtended: isExtended))
                #expect(command.data == (data.isEmpty ? nil : data) && command.ne == ne)
            }
        }
    }

    /// The standard's table, written down again.
    private static func octets(_ data: Data, _ ne: Int?, isExtended: Bool) -> [UInt8] {
        let header: [UInt8] = [0x80, 0xCA, 0x12, 0x34]
        let high = UInt8(data.count >> 8)
        let low = UInt8(data.count & 0xFF)
        let le = ne.map { [UInt8($0 >> 8 & 0xFF), UInt8($0 & 0xFF)] }
        return switch (data.isEmpty, le, isExtended) {
        case (true, nil, _): header
        case (true, .some(let le), false): header + [le[1]]
        case (false, nil, false): header + [low] + data
        case (false, .some(let le), false): header + [low] + data + [le[1]]
        case (true, .some(let le), true): header + [0] + le
        case (false, nil, true): header + [0, high, low] + data
        case (false, .some(let le), true): header + [0, high, low] + data + le
        }
    }

    private static func caseName(_ count: Int, _ ne: Int?, isExtended: Bool) -> String {
        switch (count == 0, ne == nil) {
        case (true, true): "1"
        case (true, false): isExtended ? "2E" : "2S"
        case (false, true): isExtended ? "3E" : "3S"
        case (false, false): isExtended ? "4E" : "4S"
        }
    }

    /// Reports of people who met these bytes: OpenSK#565, apdu4j#21, jcardsim#189, u2f-ref-code#180, proxmark3#171.
    @Test(arguments: [
        // Lc 00 and two octets more is an extended Le, not an empty data field.
        ("00A40000" + "001234", "2E", 0, 0x1234),
        ("00A40000" + "000000", "2E", 0, 65_536),
        ("00A40000" + "000001", "2E", 0, 1),
        ("00D60000" + "000010" + "0102030405060708090A0B0C0D0E0F10", "3E", 16, nil),
        ("00B00000" + "000000", "2E", 0, 65_536),
        ("00CB3FFF" + "000004" + "5C025F50" + "0000", "4E", 4, 65_536),
        ("00CB3FFF" + "000004" + "5C025F50" + "0010", "4E", 4, 16),
        ("00B20114" + "00", "2S", 0, 256),
        // GET RESPONSE without Le asks for nothing; with 00, for all.
        ("00C00000", "1", 0, nil),
        ("00C00000" + "00", "2S", 0, 256),
        ("00C00000" + "17", "2S", 0, 0x17),
    ])
    func octetsAreReadAsTheCaseTheyAre(text: String, caseName: String, count: Int, ne: Int?) throws {
        let octets = try Hex.decode(text)
        let command = try CommandAPDU(bytes: octets)
        #expect(command.caseName == caseName && (command.data?.count ?? 0) == count && command.ne == ne)
        #expect(command.octets == octets)
    }

    @Test(arguments: [
        ("", APDUError.Code.headerTruncated(present: 0), 0),
        ("00A404", .headerTruncated(present: 3), 3),
        // proxmark3#171: an empty Lc before Le.
        ("00B20114" + "0000", .lengthTruncated, 6),
        ("00A4040C" + "07A00000", .dataTruncated(wanted: 7, present: 3), 4),
        ("00A4040C" + "0102", .surplus(octets: 0), -1),
        ("00A4040C" + "01020304", .surplus(octets: 1), 7),
        ("00A4040C" + "010203" + "040506", .surplus(octets: 3), 7),
        // OpenSK#565: Le of three octets after a data field.
        ("00A40000" + "000003" + "010203" + "001234", .surplus(octets: 1), 12),
        ("00A40000" + "000003" + "010203" + "12", .lengthTruncated, 10),
        ("00A40000" + "000003" + "0102", .dataTruncated(wanted: 3, present: 2), 5),
        ("00A40000" + "00FFFF" + "0102", .dataTruncated(wanted: 65_535, present: 2), 5),
        ("00A40000" + "000000" + "01", .emptyExtendedData, 5),
        ("00A40000" + "000000" + "0000", .emptyExtendedData, 5),
    ])
    func whatIsNoCommandIsRefusedAtTheByteAtFault(text: String, code: APDUError.Code, offset: Int) throws {
        let octets = try Hex.decode(text)
        guard offset >= 0 else {
            #expect(try CommandAPDU(bytes: octets).caseName == "3S")
            return
        }
        let error = #expect(throws: APDUError.self) { try CommandAPDU(bytes: octets) }
        #expect(error?.code == code)
        #expect(error?.offset == offset)
    }

    @Test func an256thExpectedByteDoesNotMakeABodyExtended() throws {
        // GlobalPlatformPro#223: some cards refuse the extended form.
        let command = try CommandAPDU(cla: 0, ins: 0xA4, p1: 4, p2: 0, data: Data([0xA0]), ne: 256)
        #expect(Hex.encode(command.octets) == "00A4040001A000")
        let longer = try CommandAPDU(cla: 0, ins: 0xA4, p1: 4, p2: 0, data: Data([0xA0]), ne: 257)
        #expect(Hex.encode(longer.octets) == "00A40400000001A00101")
    }

    @Test func lengthsOutOfRangeAreRefused() {
        func make(_ count: Int, _ ne: Int?, _ form: CommandAPDU.Form? = nil) throws -> CommandAPDU {
            try CommandAPDU(cla: 0, ins: 0, p1: 0, p2: 0, data: Data(count: count), ne: ne, form: form)
        }
        #expect(throws: APDUError(code: .dataTooLong(65_536), offset: 4)) { try make(65_536, nil) }
        #expect(throws: APDUError(code: .expectedLengthOutOfRange(0), offset: 4)) { try make(0, 0) }
        #expect(throws: APDUError(code: .expectedLengthOutOfRange(-1), offset: 4)) { try make(0, -1) }
        #expect(throws: APDUError(code: .expectedLengthOutOfRange(65_537), offset: 4)) { try make(0, 65_537) }
        #expect(throws: APDUError(code: .doesNotFitShortForm, offset: 4)) { try make(256, nil, .short) }
        #expect(throws: APDUError(code: .doesNotFitShortForm, offset: 4)) { try make(1, 257, .short) }
    }

    @Test func theOlderInitialiserTakesLeAsItTravels() {
        #expect(CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: 0, le: 0).ne == 256)
        #expect(CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: 0, le: 0).le == 0)
        #expect(CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: 0, le: 0x17).ne == 0x17)
        #expect(CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: 0).caseName == "1")
        #expect(CommandAPDU(cla: 0, ins: 0xD6, p1: 0, p2: 0, data: Data(count: 256)).caseName == "3E")
        #expect(CommandAPDU(cla: 0, ins: 0xD6, p1: 0, p2: 0, data: Data(count: 70_000)).data?.count == 65_535)
    }

    @Test func slicesThatDoNotBeginAtZeroAreRead() throws {
        let octets = try Hex.decode("FFFF00A4040C02A000FFFF")
        let slice = octets[2..<9]
        #expect(try CommandAPDU(bytes: slice) == CommandAPDU(bytes: Array(slice)))
        let data = Data(octets)[2..<9]
        #expect(try CommandAPDU(bytes: data).data == Data([0xA0, 0x00]))
        let command = CommandAPDU(cla: 0, ins: 0xA4, p1: 4, p2: 12, data: Data(octets)[7..<9])
        #expect(command.data?.startIndex == 0 && command.octets == Array(slice))
    }

    @Test func anyOctetsAreReadAndWrittenAgainOrRefusedInPlace() {
        var generator = SystemRandomNumberGenerator()
        var read = 0
        for _ in 0..<100_000 {
            var octets = (0..<Int.random(in: 0...24, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator) }
            // Small lengths, so that many are right.
            for index in [4, 5, 6] where index < octets.count { octets[index] &= 0x07 }
            do throws(APDUError) {
                #expect(try CommandAPDU(bytes: octets).octets == octets)
                read += 1
            } catch {
                #expect((0...octets.count).contains(error.offset) && !error.description.isEmpty)
            }
        }
        #expect(read > 1_000)
    }
}
