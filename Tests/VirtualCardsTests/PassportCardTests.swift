// SPDX-License-Identifier: MIT

import CardCrypto
import CardSockets
import Octets
import Testing
import VirtualCards

@Suite struct PassportCardTests {
    private func session(_ options: String = "") throws -> Terminal {
        var terminal = Terminal(try card("passport" + (options.isEmpty ? "" : "?" + options)))
        try #require(try terminal.open() == "9000")
        return terminal
    }

    @Test func itIsAContactlessCardThatSaysExtendedLengths() throws {
        let card = try card("passport")
        #expect(card.protocolName == "T=CL" && card.identifier.count == 4)
        #expect(Hex.encode(card.atr) == "3B858001" + "8073940140" + Hex.encode([card.atr[1...8].reduce(0, ^)]))
    }

    @Test func beforeAccessNothingIsRead() throws {
        try play(
            [
                ("00A4000C023F00", "9000"),
                ("00A4020C02011C", "6A82"),
                ("00B09C0008", "6A82"),
                ("00B0000004", "6986"),
                ("0084000008", "6985"),
                ("00A4040C07A0000002471002", "6A82"),
                ("00A4040C06A00000024710", "6A82"),
                ("00A4040007A000000247100100", "6F098407A00000024710019000"),
                ("00A4020C02011E", "6982"),
                ("00A4020C02011C", "6982"),
                ("00B0000004", "6982"),
                ("00B09E0004", "6982"),
                ("00B1000004540200000" + "4", "6982"),
                ("0082000028" + String(repeating: "00", count: 40) + "28", "6985"),
                ("008800000812345678123456780" + "0", "6D00"),
                ("0CA4020C158709016375432908C044F68E08BF8B92D635FF24F800", "6988"),
                ("80CA000000", "6E00"),
                ("0084000004", "6700"),
                ("0084000000", "*9000"),
            ], on: card("passport"))
    }

    @Test func aWrongKeyIsRefusedAndTheChallengeIsSpent() throws {
        var terminal = Terminal(try card("passport"))
        #expect(try terminal.open(key: "L898902C<369080619406237") == "6300")
        try play([("0082000028" + String(repeating: "00", count: 40) + "28", "6985")], on: terminal.card)
        #expect(try terminal.open() == "9000")
    }

    @Test func aTokenOfAnotherLengthIsRefused() throws {
        try play(
            [("00A4040C07A0000002471001", "9000"), ("0084000008", "*9000"), ("008200000411223344" + "28", "6700")],
            on: card("passport"))
    }

    @Test func anotherDocumentHasAnotherKey() throws {
        let lines =
            "I%3CUTOD23145890%3C7349%3C%3C%3C%3C%3C%3C%3C%3C%3C%3C%3C,3407127M9507122UTO%3C%3C%3C%3C%3C%3C%3C%3C%3C%3C%3C2,"
            + "STEVENSON%3C%3CPETER%3CJOHN%3C%3C%3C%3C%3C%3C%3C%3C%3C"
        var terminal = Terminal(try card("passport?mrz=" + lines))
        #expect(try terminal.open(key: "D23145890734934071279507122") == "9000")
        let dg1 = try terminal.read(0x01)
        #expect(dg1.prefix(5) == [0x61, 0x5D, 0x5F, 0x1F, 0x5A] && dg1.count == 95)
    }

    @Test func everyFileIsReadWholeInPiecesOfAnyLength() throws {
        for step in [1, 100, 160, 231, 255, 256] {
            var terminal = try session()
            for (file, tag) in [(UInt8(0x1E), UInt8(0x60)), (0x1D, 0x77), (0x01, 0x61), (0x02, 0x75)]
            where step > 1 || file == 0x1E {
                let content = try terminal.read(file, step: step)
                #expect(content.first == tag)
                let header = try #require(try TLV.header(in: content[...]))
                #expect(content.count == header.headerLength + header.valueLength, "file \(file), step \(step)")
            }
        }
    }

    @Test func readsFollowLeAndTheFilesEnd() throws {
        var terminal = try session()
        #expect(try terminal.send("00A4020C", data: "011E") == "9000")
        #expect(try terminal.send("00B00000", ne: 22) == "60145F0104303130365F36063034303030305C0261759000")
        #expect(try terminal.send("00B00000", ne: 256) == "60145F0104303130365F36063034303030305C0261759000")
        #expect(try terminal.send("00B00014", ne: 3) == "61756282")
        #expect(try terminal.send("00B00014", ne: 2) == "61759000")
        #expect(try terminal.send("00B00016", ne: 1) == "6B00")
        #expect(try terminal.send("00B00000") == "6700")
        #expect(try terminal.send("00B09E02", ne: 2) == "5F019000")
        #expect(try terminal.send("00B09C00", ne: 2) == "6A82")
        #expect(try terminal.send("00B00000", ne: 1) == "609000")
    }

    @Test func theOddReadTakesItsOffsetAndCryptogramInObjects() throws {
        var terminal = try session()
        #expect(try terminal.send("00A4020C", data: "011E") == "9000")
        #expect(try terminal.send("00B10000", data: "54020002", ne: 4) == "53025F019000")
        #expect(try terminal.send("00B10000", data: "540102", ne: 4, asDO85: false) == "53025F019000")
        #expect(try terminal.send("00B10000", data: "5403000014", ne: 4) == "530261759000")
        #expect(try terminal.send("00B10000", data: "5403000014", ne: 5) == "530261756282")
        #expect(try terminal.send("00B10000", data: "5403000016", ne: 4) == "6B00")
        #expect(try terminal.send("00B1001E", data: "540102", ne: 4) == "53025F019000")
        #expect(try terminal.send("00B10000", data: "530102", ne: 4) == "6A80")
    }

    @Test func aLargePhotoIsReadBeyond7FFF() throws {
        var terminal = try session("photo=40000")
        #expect(try terminal.send("00A4020C", data: "0102") == "9000")
        let head = try terminal.send("00B00000", ne: 5)
        #expect(head.hasPrefix("75829C"))
        #expect(try terminal.send("00B10000", data: "54028000", ne: 0x12) == "5310" + String(repeating: "20", count: 16) + "9000")
        // All of it in one extended answer.
        let whole = try terminal.send("00B00000", ne: 0xFFFF, isExtended: true)
        #expect(whole.count / 2 > 40_000 && whole.hasSuffix("FFD96282"))
        // And what fits one short answer, in both ways of reading.
        #expect(try terminal.send("00B00000", ne: 256).count / 2 == 231 + 2)
        #expect(try terminal.send("00B10000", data: "54020000", ne: 256).count / 2 == 231 + 2)
    }

    @Test func chunkIsTheMostOfAFileInOneAnswer() throws {
        var terminal = try session("chunk=10")
        #expect(try terminal.send("00B09E00", ne: 22).count / 2 == 12)
        #expect(try terminal.read(0x1D).count > 1_000)
    }

    @Test func aWrongMACIsBareAndEndsTheSession() throws {
        var terminal = try session()
        var command = try terminal.wrap([0x00, 0xB0, 0x9E, 0x00], ne: 4)
        command[command.count - 2] ^= 1
        #expect(try terminal.card.send(command) == [0x69, 0x88])
        #expect(try terminal.send("00B09E00", ne: 4) == "bare 6988")
        #expect(try terminal.open() == "9000")
        #expect(try terminal.send("00B09E00", ne: 4) == "60145F019000")
    }

    @Test func aCommandSentTwiceEndsTheSession() throws {
        var terminal = try session()
        let command = try terminal.wrap([0x00, 0xB0, 0x9E, 0x00], ne: 4)
        #expect(try terminal.card.send(command).count > 2)
        #expect(try terminal.card.send(command) == [0x69, 0x88])
    }

    @Test func missingObjectsAreBareAndEndTheSession() throws {
        for (body, status) in [("", "6987"), ("970104", "6987"), ("8E08", "6988"), ("870101", "6987")] {
            var terminal = try session()
            let data = try Hex.decode(body)
            let bytes = [0x0C, 0xB0, 0x9E, 0x00] + (data.isEmpty ? [] : [UInt8(data.count)] + data) + [0]
            #expect(Hex.encode(try terminal.card.send(bytes)) == status, "\(body)")
            #expect(try terminal.send("00B09E00", ne: 4) == "bare 6988")
        }
    }

    @Test func aPlainCommandEndsTheSession() throws {
        for (plain, status) in [
            ("00B09E0004", "6982"), ("00A4040C07A0000002471001", "9000"), ("0084000008", "*9000"), ("00C0000000", "6D00"),
            ("00B09E", "6700"), ("04B09E0004", "6882"), ("8CB09E0004", "6E00"),
        ] {
            var terminal = try session()
            try play([(plain, status)], on: terminal.card)
            #expect(try terminal.send("00B09E00", ne: 4) == "bare 6988", "\(plain)")
        }
    }

    @Test func refusalsInASessionAreSecuredAndTheSessionGoesOn() throws {
        var terminal = try session()
        #expect(try terminal.send("00A4020C", data: "0103") == "6A82")
        #expect(try terminal.send("00A4000C", data: "3F00") == "6A82")
        #expect(try terminal.send("00A4040C", data: "A0000002471002") == "6A82")
        #expect(try terminal.send("00A4050C", data: "011E") == "6A86")
        #expect(try terminal.send("00880000", data: "1122334455667788", ne: 256) == "6D00")
        #expect(try terminal.send("00820000", data: "1122334455667788", ne: 40) == "6985")
        #expect(try terminal.send("00B00000", ne: 4) == "6986")
        #expect(try terminal.send("00840000", ne: 8).count == 20)
        #expect(try terminal.send("00A4040C", data: "A0000002471001") == "9000")
        #expect(try terminal.send("00A40200", data: "011E", ne: 256) == "6F0E800200168201018302011E8A01059000")
        #expect(try terminal.send("00B09E00", ne: 4) == "60145F019000")
    }

    @Test func aStrictChipLosesTheSessionPastTheEnd() throws {
        var terminal = try session("strict")
        #expect(try terminal.send("00B09E00", ne: 22).hasSuffix("61759000"))
        #expect(try terminal.send("00B09E00", ne: 23) == "bare 6B00")
        #expect(try terminal.send("00B09E00", ne: 4) == "bare 6988")
        #expect(try terminal.open() == "9000")
        #expect(try terminal.send("00B09E16", ne: 1) == "bare 6B00")
        #expect(try terminal.open() == "9000")
        #expect(try terminal.send("00B09E00", ne: 256) == "bare 6B00")
    }

    @Test func theOuterLeIsKept() throws {
        var terminal = try session()
        var command = try terminal.wrap([0x00, 0xB0, 0x9E, 0x00], ne: 22)
        // Room for the status word, its MAC and one block.
        command[command.count - 1] = 27
        #expect(try terminal.unwrap(try terminal.card.send(command)) == "60145F010430319000")
        command = try terminal.wrap([0x00, 0xB0, 0x9E, 0x00], ne: 22)
        command[command.count - 1] = 13
        #expect(Hex.encode(try terminal.card.send(command)) == "6700")
    }

    @Test func faultsComeFromOutsideTheChip() throws {
        // The chip has not seen the command that 6C refused: the same one with another outer Le is answered.
        var terminal = try session("fault=6C@4,61@5")
        var command = try terminal.wrap([0x00, 0xB0, 0x9E, 0x00], ne: 4)
        #expect(Hex.encode(try terminal.card.send(command)) == "6C19")
        command[command.count - 1] = 0x19
        #expect(Hex.encode(try terminal.card.send(command)) == "6119")
        #expect(try terminal.unwrap(try terminal.card.send("00C0000019")) == "60145F019000")
        #expect(try terminal.send("00B09E00", ne: 4) == "60145F019000")
        let removed = try session("fault=remove@4")
        #expect(removed.card.exchange([0x0C, 0xB0, 0x9E, 0x00, 0x00]) == .removed)
    }

    @Test func aBareStatusWordFromOutsideLeavesTheCounterWhereItWas() throws {
        // gmrtd#457: a chip that refuses an extended read with a bare 6700 and goes on with the counter from before.
        var terminal = try session("fault=6700@4")
        let before = terminal.ssc
        #expect(try terminal.card.send(try terminal.wrap([0x00, 0xB0, 0x9E, 0x00], ne: 4)) == [0x67, 0x00])
        terminal.ssc = before
        #expect(try terminal.send("00B09E00", ne: 4) == "60145F019000")
    }

    @Test func theSecurityObjectHoldsTheHashesOfTheFilesAsRead() throws {
        var terminal = try session()
        let object = try terminal.read(0x1D)
        let text = Hex.encode(object)
        for (group, number) in [(UInt8(1), "01"), (2, "02")] {
            let hash = Hex.encode(try Digest.sha256.hash(try terminal.read(group)))
            // DataGroupHash of 9303-10 4.6.2.3: number, then hash.
            #expect(text.contains("30250201" + number + "0420" + hash))
        }
        #expect((1_500...2_000).contains(object.count))
    }

    @Test func aFaceIsDescribedAsItsStandardSays() throws {
        var terminal = try session()
        let file = try terminal.read(0x02)
        let group = try TLV.first(in: file[...])
        let information = try #require(try group.children().first)
        #expect(group.tag == 0x75 && information.tag == 0x7F61)
        let template = try information.children()
        #expect(template.map(\.tag) == [0x02, 0x7F60])
        let parts = try template[1].children()
        #expect(parts.map(\.tag) == [0xA1, 0x5F2E])
        #expect(Hex.encode(parts[0].value) == "800201018101028702010188020008")
        // ISO/IEC 19794-5:2005 5.4 to 5.7: the lengths in the record add up, and the image stands where they say.
        let record = Array(parts[1].value)
        var cursor = ByteCursor(record)
        #expect(Hex.encode(try cursor.take(8)) == "4641430030313000")
        #expect(try cursor.u32() == UInt32(record.count))
        #expect(try cursor.u16() == 1)
        #expect(try cursor.u32() == UInt32(record.count - 14))
        #expect(try cursor.u16() == 0)
        _ = try cursor.take(14)
        #expect(Hex.encode(try cursor.take(12)) == "010000600080030000000000")
        #expect(cursor.takeRest().prefix(3) == [0xFF, 0xD8, 0xFF])
    }

    @Test func aResetEndsTheSession() throws {
        var terminal = try session()
        terminal.card.powerOn()
        #expect(try terminal.send("00B09E00", ne: 4) == "bare 6988")
    }

    @Test func theSeedDecidesWhatIsRandom() throws {
        func challenges(_ reference: String) throws -> [[UInt8]] {
            let card = try card(reference)
            _ = try card.send("00A4040C07A0000002471001")
            let first = try card.send("0084000008")
            card.powerOn()
            _ = try card.send("00A4040C07A0000002471001")
            return [first, try card.send("0084000008")]
        }
        let seven = try challenges("passport?seed=7")
        #expect(seven[0] != seven[1])
        #expect(try challenges("passport?seed=7") == seven)
        #expect(try challenges("passport?seed=8") != seven)
        #expect(try challenges("passport") == challenges("passport?seed=0"))
    }

    @Test(arguments: [
        "dg=6", "dg=15", "dg=1,1", "dg=", "chunk=0", "photo=1000001", "strict=maybe", "mrz=P", "issuer=-1", "pace=ecdh",
        "pace=gm-ecdh-aes128",
        "pace=ecdh-gm-aes128:7", "pace=ecdh-gm-aes128:2", "pace=dh-gm-aes128:13", "pace=dh-cam-aes128", "pace=ecdh-cam-3des",
        "pace=ecdh-im-aes128:10", "pace=ecdh-gm-aes128:explicit", "can=1234", "pace=ecdh-gm-aes128&can=12a4", "no-bac", "ca=ecdh",
        "ca=ecdh-aes128:0", "aa=dsa", "aa=rsa:13", "aa=ecdsa:0", "ta", "quirk=none", "delay=60001",
    ])
    func whatAPassportCannotHaveIsRefused(option: String) throws {
        #expect(throws: VirtualCardError(.badValue, "")) { try card("passport?" + option) }
    }

    @Test func dataGroupsCanBeLeftOut() throws {
        var terminal = try session("dg=1")
        #expect(try terminal.send("00B09E00", ne: 256) == "60135F0104303130365F36063034303030305C01619000")
        #expect(try terminal.send("00A4020C", data: "0102") == "6A82")
    }
}
