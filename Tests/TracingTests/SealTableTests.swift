// SPDX-License-Identifier: MIT

import SessionSupport
import TestSupport
import Testing
import Tracing

/// What is secret in an exchange, rule by rule: an example, and beside it something that only looks alike.
@Suite struct SealTableTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var rule: String
        var octets: String
        var sealed: [Range<Int>]
        var testDescription: String { "\(rule): \(octets)" }

        init(_ rule: String, _ octets: String, _ sealed: Range<Int>...) {
            self.rule = rule
            self.octets = octets
            self.sealed = sealed
        }
    }

    static let commands = [
        Case("VERIFY holds the PIN in its data field", "00200001 04 31323334", 5..<9),
        Case("VERIFY with a Le behind it", "00200001 04 31323334 00", 5..<9),
        Case("VERIFY in an extended command", "00200001 000004 31323334", 7..<11),
        Case("VERIFY in an extended command with Le", "00200001 000004 31323334 0000", 7..<11),
        Case("VERIFY with BER-TLV data", "00210001 06 800431323334", 5..<11),
        Case("VERIFY without data asks for the tries", "00200001"),
        Case("VERIFY without data and with Le", "00200001 00"),
        Case("VERIFY on a logical channel, chained", "13200081 02 3132", 5..<7),
        Case("a VERIFY whose Lc lies is sealed to its end", "00200001 08 31323334", 5..<9),
        Case("a VERIFY with more than its Lc says is sealed to its end", "00200001 02 31323334", 5..<9),
        Case("a VERIFY with an extended Lc that lies is sealed to its end", "00200001 000009 31323334", 5..<11),
        Case("CHANGE REFERENCE DATA", "00240001 08 3132333435363738", 5..<13),
        Case("CHANGE REFERENCE DATA, odd instruction", "00250101 04 35363738", 5..<9),
        Case("DISABLE VERIFICATION", "00260001 04 31323334", 5..<9),
        Case("ENABLE VERIFICATION of a SIM", "A0280001 08 31323334FFFFFFFF", 5..<13),
        Case("RESET RETRY COUNTER", "002C0001 0C 313233343536373835363738", 5..<17),
        Case("RESET RETRY COUNTER, odd instruction", "002D0001 04 31323334", 5..<9),
        Case("SELECT", "00A40400 04 31323334"),
        Case("EXTERNAL AUTHENTICATE holds a cryptogram, not its key", "00820000 04 31323334"),
        Case("UPDATE BINARY", "00D60000 04 31323334"),
        Case("PUT KEY of GlobalPlatform", "80D80081 04 01020304 00", 5..<9),
        Case("PUT KEY on a further channel", "C0D80081 04 01020304", 5..<9),
        Case("STORE DATA", "80E20000 02 0102", 5..<7),
        Case("APPEND RECORD is no STORE DATA", "00E20000 02 0102"),
        Case("ChangeKey of DESFire", "90C40000 05 0001020304 00", 5..<10),
        Case("ChangeKeyEV2", "90C60000 05 0001020304 00", 5..<10),
        Case("SetConfiguration", "905C0000 03 000102 00", 5..<8),
        Case("ReadData of DESFire", "90BD0000 07 01000000300000 00"),
        Case("a private key put into an OpenPGP card", "00DB3FFF 05 4D03B60001", 5..<10),
        Case("PUT DATA of anything else", "00DB5FC1 02 5300"),
        Case("LOAD KEYS of the reader", "FF820000 06 FFFFFFFFFFFF", 5..<11),
        Case("GENERAL AUTHENTICATE of the reader names a key and does not hold it", "FF860000 05 0100046000"),
        Case("VERIFY of the reader", "FF200000 04 31323334", 5..<9),
        Case("CHANGE REFERENCE DATA with the class of a reader", "FF240001 04 31323334", 5..<9),
        Case("RESET RETRY COUNTER with the class of a reader", "FF2C0001 04 31323334", 5..<9),
        Case("UPDATE BINARY of the page that holds PWD", "FFD6002B 04 01020304", 5..<9),
        Case("UPDATE BINARY of a page of data", "FFD60010 04 01020304"),
        Case(
            "UPDATE BINARY of a sector trailer: both keys, not the access bits",
            "FFD60007 10 A0A1A2A3A4A5 FF078069 B0B1B2B3B4B5", 5..<11, 15..<21),
        Case("UPDATE BINARY of a block of data", "FFD60006 10 A0A1A2A3A4A5 FF078069 B0B1B2B3B4B5"),
        Case(
            "a transparent exchange whose data objects cannot be told apart is sealed whole", "FFC20001 09 5F460401020304 9501",
            5..<14),
        Case("PWD_AUTH in DO 95", "FFC20001 07 9505 1B01020304 00", 8..<12),
        Case("PWD_AUTH in DO 93, which is sent and not answered", "FFC20001 07 9305 1B01020304", 8..<12),
        Case("READ in DO 95", "FFC20001 04 9502 3004"),
        Case("PWD_AUTH in a direct transmit to a PN53x", "FF000000 08 D44001 1B01020304", 9..<13),
        Case("PWD_AUTH in InCommunicateThru", "FF000000 07 D442 1B01020304", 8..<12),
        Case("READ in a direct transmit", "FF000000 05 D44001 3004"),
        Case("MIFARE Classic authentication in a direct transmit", "FF000000 0F D44001 6004 FFFFFFFFFFFF 01020304", 10..<16),
        Case("the LED of a reader", "FF004050 04 05050300"),
    ]

    @Test(arguments: commands) func aCommandIsSealedAsItsRuleSays(_ rule: Case) {
        #expect(SealTable.places(command: hex(rule.octets)).command == rule.sealed)
        #expect(SealTable.isSecret(command: hex(rule.octets)) == !rule.sealed.isEmpty)
    }

    static let frames = [
        Case("PWD_AUTH", "1B01020304", 1..<5),
        Case("FAST_READ has as many octets as its addresses", "3A0004"),
        Case("WRITE of the page that holds PWD", "A22B01020304", 2..<6),
        Case("WRITE of a page of data", "A20401020304"),
        Case("WRITE of an Ultralight C key", "A22C01020304", 2..<6),
        Case("VERIFY in an I-block", "0200200001 04 31323334", 6..<10),
        Case("VERIFY in an I-block with CID", "0A0000200001 04 31323334", 7..<11),
        Case("SELECT in an I-block", "0200A40400 04 31323334"),
        Case("ChangeKey as a native command", "C4000102030405", 2..<7),
        Case("ChangeKey as a native command in an I-block", "02C4000102030405", 3..<8),
        Case("a native command that reads", "BD01000000300000"),
        Case("a vicinity card's SET PASSWORD", "02B30404 01020304", 3..<8),
        Case("a vicinity card's GET RANDOM NUMBER", "02B204"),
        Case(
            "a write of FeliCa Lite's card key",
            "20080102030405060708 010900 01 8087 000102030405060708090A0B0C0D0E0F", 16..<32),
        Case("a write of a FeliCa block of data", "20080102030405060708 010900 01 8001 000102030405060708090A0B0C0D0E0F"),
    ]

    @Test(arguments: frames) func aFrameIsSealedAsItsRuleSays(_ rule: Case) {
        #expect(SealTable.places(frame: hex(rule.octets), answer: [], checksum: 0).command == rule.sealed)
    }

    /// A CRC of four digits lets them be found by trying, so what covers a sealed place is sealed with it.
    @Test(arguments: frames.filter { !$0.sealed.isEmpty })
    func aChecksumOverASealedPlaceIsSealedWithIt(_ rule: Case) {
        let frame = hex(rule.octets)
        let crc = crcA(frame)
        let expected = rule.sealed + [frame.count..<frame.count + 2]
        let told = SealTable.places(frame: frame + crc, answer: [], checksum: 2).command
        #expect(told == expected)
        // Also when nobody said that there is one.
        let untold = SealTable.places(frame: frame + crc, answer: [], checksum: 0).command
        #expect(Set(untold.joined()).isSuperset(of: Set(expected.joined())))
    }

    @Test(arguments: frames.filter { $0.sealed.isEmpty }) func aChecksumOverNothingSecretIsNotSealed(_ rule: Case) {
        let frame = hex(rule.octets)
        #expect(SealTable.places(frame: frame + crcA(frame), answer: [], checksum: 2).command.isEmpty)
    }

    @Test func theAnswerToPasswordAuthenticationIsAPasswordToo() {
        let plain = SealTable.places(frame: hex("1B01020304"), answer: hex("8080"), checksum: 0)
        #expect(plain.answer == [0..<2])
        let withCRC = SealTable.places(frame: hex("1B01020304") + crcA(hex("1B01020304")), answer: hex("80801234"), checksum: 2)
        #expect(withCRC.answer == [0..<4])
        let refused = SealTable.places(frame: hex("1B01020304"), answer: hex("00"), checksum: 0)
        #expect(refused.answer.isEmpty)
    }

    @Test func theAnswerIsSealedWhereTheReaderHasPutIt() {
        let direct = SealTable.places(command: hex("FF00000007D4421B01020304"), answer: hex("D54300 8080 9000"))
        #expect(direct.answer == [3..<5])
        let exchange = SealTable.places(
            command: hex("FFC200010795051B0102030400"), answer: hex("C003009000 9202 0000 9702 8080 9000"))
        #expect(exchange.answer == [11..<13])
    }

    @Test func noOctetsWhateverTrapAndEveryPlaceLiesInside() {
        var generator = SeededGenerator(seed: 1)
        let starts: [[UInt8]] = [
            [], [0x00, 0x20], [0xFF, 0x00, 0x00, 0x00], [0xFF, 0xC2, 0x00, 0x01], [0xFF, 0x50], [0x1B], [0x02], [0x0A], [0x08],
            [0xFF, 0x00, 0x00, 0x00, 0x20, 0xD4, 0x40, 0x01], [0xFF, 0xC2, 0x00, 0x01, 0x20, 0x95], [0x90, 0xC4],
        ]
        var sealed = 0
        for _ in 0..<200_000 {
            let start = starts.randomElement(using: &generator) ?? []
            let command = start + generator.octets(Int(generator.next() % 41))
            let answer = generator.octets(Int(generator.next() % 21))
            let all = [
                SealTable.places(command: command, answer: answer),
                SealTable.places(frame: command, answer: answer, checksum: Int(generator.next() % 3)),
            ]
            for places in all {
                if !places.isEmpty { sealed += 1 }
                guard places.command.allSatisfy({ $0.lowerBound >= 0 && $0.upperBound <= command.count && !$0.isEmpty }),
                    places.answer.allSatisfy({ $0.lowerBound >= 0 && $0.upperBound <= answer.count })
                else {
                    Issue.record("\(command) \(answer): \(places)")
                    return
                }
            }
        }
        #expect(sealed > 10_000)
    }

    /// CRC_A of ISO/IEC 14443-3 annex B, low octet first.
    private func crcA(_ frame: [UInt8]) -> [UInt8] {
        var sum: UInt16 = 0x6363
        for octet in frame {
            sum ^= UInt16(octet)
            for _ in 0..<8 { sum = sum & 1 != 0 ? sum >> 1 ^ 0x8408 : sum >> 1 }
        }
        return [UInt8(truncatingIfNeeded: sum), UInt8(truncatingIfNeeded: sum >> 8)]
    }
}
