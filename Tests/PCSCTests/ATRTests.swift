// SPDX-License-Identifier: MIT

import Octets
import Testing

@testable import PCSC

@Suite struct ATRTests {
    private func atr(_ text: String) throws -> ATR { ATR(try Hex.decode(text)) }

    // LudovicRousseau/pyscard-contrib#5
    @Test func octetsAfterTheCheckAreSurplusAndNotCountedInIt() throws {
        let atr = try atr("3B 84 80 01 01 11 20 03 36 90 00")
        #expect(atr.check == .right)
        #expect(atr.historicalBytes == [0x01, 0x11, 0x20, 0x03])
        #expect(atr.faults == [ATR.Fault(code: .surplus(2), offset: 9)])
        #expect(!atr.isValid)
    }

    // pyscard-contrib#2
    @Test func aBrokenCompactTLVIsReportedAndNothingElse() throws {
        let atr = try atr("3F 6A 00 00 00 64 01 50 01 0C 82 01 01 A9")
        #expect(atr.convention == .inverse)
        #expect(atr.protocols == [0])
        #expect(atr.check == .absent)
        #expect(atr.historicalBytes.count == 10)
        #expect(atr.historicalBytes.first == 0x00)
        #expect(atr.faults.map(\.code) == [.brokenHistoricalTLV])
        #expect(atr.isValid)
    }

    // kanidm/webauthn-rs PR #375
    @Test func theHighHalfOfT0AndTDIsAMask() throws {
        let atr = try atr("3BFD1300008131FE158073C021C057597562694B657940")
        #expect(atr.groups.count == 3)
        #expect(atr.groups[0] == ATR.Group(ta: 0x13, tb: 0x00, tc: 0x00, td: 0x81))
        #expect(atr.groups[1] == ATR.Group(td: 0x31))
        #expect(atr.groups[2] == ATR.Group(ta: 0xFE, tb: 0x15))
        #expect(atr.protocols == [1])
        #expect(atr.check == .right)
        #expect(atr.historicalText == "YubiKey")
        #expect(atr.faults.isEmpty)
    }

    // vsmartcard#129
    @Test func decimalTextIsRefusedWithTheReason() throws {
        let atr = try atr("35 39 32 34 35 31 35 30")
        #expect(atr.convention == nil)
        #expect(atr.faults == [ATR.Fault(code: .initialCharacter(0x35), offset: 0), ATR.Fault(code: .looksLikeText, offset: 0)])
        #expect(!atr.isValid)
    }

    // Ledger-Donjon/scaffold#30; ISO/IEC 7816-3 11.4.4: the first TC for T=1 of group 3 or later.
    @Test func theCheckOfT1IsSaidByTheFirstTCAfterT1FromGroup3On() throws {
        // TC1 is 01, which says nothing of T=1; TC3 is 01: CRC. TCK by hand.
        let octets: [UInt8] = [0x3B, 0xC0, 0x01, 0x81, 0x41, 0x01]
        let crc = ATR(octets + [octets.dropFirst().reduce(0, ^)])
        #expect(crc.check == .right)
        #expect(crc.groups[0].tc == 0x01)
        #expect(crc.groups[2].tc == 0x01)
        #expect(crc.t1UsesCRC)
        let lrc: [UInt8] = [0x3B, 0xC0, 0x01, 0x81, 0x11, 0xFE]
        #expect(!ATR(lrc + [lrc.dropFirst().reduce(0, ^)]).t1UsesCRC)
    }

    @Test func aWrongOrMissingCheckIsFound() throws {
        let wrong = try atr("3B 80 80 01 02")
        #expect(wrong.check == .wrong(expected: 0x01))
        #expect(wrong.faults == [ATR.Fault(code: .wrongCheck, offset: 4)])
        #expect(!wrong.isContactless)
        let missing = try atr("3B 80 80 01")
        #expect(missing.check == .missing)
        #expect(missing.faults == [ATR.Fault(code: .truncated, offset: 4)])
    }

    @Test func everyPrefixIsTruncatedAndNothingTraps() throws {
        let whole = try Hex.decode("3BFD1300008131FE158073C021C057597562694B657940")
        for count in 0..<whole.count {
            let atr = ATR(Array(whole.prefix(count)))
            #expect(!atr.isValid, "\(count) octets")
        }
        // TD chains without an end.
        #expect(!ATR([0x3B, 0x80] + [UInt8](repeating: 0x80, count: 400)).isValid)
    }

    // PC/SC part 3, 3.1.3.2.3.2; the numbers as in the Suica line of pcsc-tools' list.
    @Test(arguments: [
        ("3B8F8001804F0CA000000306030001000000006A", "MIFARE Classic 1K", ATR.Technology.iso14443A),
        ("3B8F8001804F0CA0000003060300030000000068", "MIFARE Ultralight or NTAG", .iso14443A),
        ("3B8F8001804F0CA00000030611003B0000000042", "FeliCa", .felica),
        ("3B8F8001804F0CA0000003060B00140000000077", "ICODE SLI", .iso15693),
    ])
    func storageCardsAreNamedByTheirNumbers(_ text: String, _ name: String, _ technology: ATR.Technology) throws {
        let atr = try atr(text)
        #expect(atr.faults.isEmpty)
        #expect(atr.cardName == name)
        #expect(atr.technology == technology)
        #expect(!atr.takesCommandAPDUs)
    }

    @Test func layer4CardsAreOfTypeAUnlessTheyHaveTheFormOfTypeB() throws {
        #expect(try atr("3B8180018080").technology == .iso14443A)
        #expect(try atr("3B8180018080").cardName == "DESFire or NTAG 424 DNA")
        // An Irish passport of type B in pcsc-tools' list.
        #expect(try atr("3B8880010000000077819100 6E").technology == .iso14443B)
        #expect(try atr("3B80800101").technology == .iso14443A)
        #expect(try atr("3B80800101").technologyText == "ISO 14443-4 type A")
    }

    @Test func aCardWithContactsIsNotContactless() throws {
        let sam = try atr("3BDF18FF81F1FE43003F03834D494641524520506C75732053414D3B")
        #expect(sam.check == .right)
        #expect(sam.technology == .contact)
        #expect(sam.technologyText == nil)
        #expect(sam.historicalText == "MIFARE Plus SAM")
        #expect(sam.specificProtocol == nil)
    }
}
