// SPDX-License-Identifier: MIT

import CardCrypto
import Octets
import Testing

@testable import VirtualCards

/// ICAO 9303-11 appendix D, and the check digits and key strings of 9303-3, -4, -5 and -6.
@Suite struct BasicAccessVectorTests {
    /// The chip of D.3: RND.IC, then K.IC.
    private func chip() throws -> VirtualCard {
        let random = CardRandom(first: try Hex.decode("4608F91988702212" + "0B4F80323EB3191CB04970CB4052790B"))
        let machine = PassportCard(
            files: try .specimen(issuer: try .seeded()), access: try BasicAccessControl(.specimen), random: random)
        return VirtualCard(kind: "passport", machine: machine).on()
    }

    @Test func theChipAnswersWithThePublishedBytes() throws {
        try play(
            [
                ("00A4040C07A0000002471001", "9000"),
                ("0084000008", "4608F919887022129000"),
                // E_IC and M_IC of D.3.
                (
                    "008200002872C29C2371CC9BDB65B779B8E8D37B29ECC154AA56A8799FAE2F498F76ED92F25F1448EEA8AD90A728",
                    "46B9342A41396CD7386BF5803104D7CEDC122B9132139BAF2EEDC94EE178534F2F2D235D074D74499000"
                ),
                // D.4: SELECT EF.COM, READ BINARY of 4 octets, READ BINARY of the other 18.
                ("0CA4020C158709016375432908C044F68E08BF8B92D635FF24F800", "990290008E08FA855A5D4C50A8ED9000"),
                ("0CB000000D9701048E08ED6705417E96BA5500", "8709019FF0EC34F9922651990290008E08AD55CC17140B2DED9000"),
                (
                    "0CB000040D9701128E082EA28A70F3C7B53500",
                    "871901FB9235F4E4037F2327DCC8964F1F9B8C30F42C8E2FFF224A990290008E08C8B2787EAEA07D749000"
                ),
            ], on: chip())
    }

    @Test func theCommonFileIsThatOfTheStandard() throws {
        let files = try PassportFiles.specimen(issuer: try .seeded())
        #expect(files[0x011E].map(Hex.encode) == "60145F0104303130365F36063034303030305C026175")
    }

    @Test(arguments: [
        // 9303-11 D.2: TD3, TD1 and TD2, and a document number that is too long for its field.
        (
            ["P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "L898902C<3UTO6908061F9406236ZE184226B<<<<<14"],
            "L898902C<369080619406236"
        ),
        (
            ["I<UTOD231458907<<<<<<<<<<<<<<<", "7408122F1204159UTO<<<<<<<<<<<6", "ERIKSSON<<ANNA<MARIA<<<<<<<<<<"],
            "D23145890774081221204159"
        ),
        (["I<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<", "D231458907UTO7408122F1204159<<<<<<<6"], "D23145890774081221204159"),
        (
            ["I<UTOD23145890<7349<<<<<<<<<<<", "3407127M9507122UTO<<<<<<<<<<<2", "STEVENSON<<PETER<JOHN<<<<<<<<<"],
            "D23145890734934071279507122"
        ),
        (["I<UTOSTEVENSON<<PETER<JOHN<<<<<<<<<<", "D23145890<UTO3407127M95071227349<<<8"], "D23145890734934071279507122"),
    ])
    func theKeyStringIsTakenFromTheLines(lines: [String], key: String) throws {
        let zone = try MachineReadableZone(lines: lines)
        #expect(String(decoding: zone.keyInformation, as: UTF8.self) == key)
        #expect(try MachineReadableZone(lines: [lines.joined()]) == zone)
    }

    @Test(arguments: [
        ["P<UTO"], [], [String(repeating: "<", count: 43), String(repeating: "<", count: 45)],
        [String(repeating: "a", count: 88)],
        [String(repeating: "é", count: 44)],
    ])
    func whatIsNoMachineReadableZoneIsRefused(lines: [String]) {
        #expect(throws: VirtualCardError(.badValue, "")) { try MachineReadableZone(lines: lines) }
    }

    @Test func aesMessagesOpenToo() throws {
        // A protected MSE:Set AT of a real session and its keys, published among the tests of gmrtd (MIT); no holder's data.
        var channel = SecureChannel(
            .aes, encryptionKey: try Hex.decode("CC86415F2ED7E8FD663B754265695AE1"),
            authenticationKey: try Hex.decode("581E84B8EE06C4D3EEE30461498D7FB3"),
            counter: try Hex.decode("000000000000000000000000000000BA"))
        let command = try CardCommand(
            parsing: try Hex.decode("0C2241A41D871101980953D37F67558690045D78A853B18A8E08929767A2CEF172E200"))
        let inner = try channel.open(command)
        #expect(
            inner == CardCommand(cla: 0, ins: 0x22, p1: 0x41, p2: 0xA4, data: try Hex.decode("800A04007F000702020302028401C3")))
    }

    @Test func theRoomOfAShortAnswerIsThatOfTheStandard() throws {
        let key = [UInt8](repeating: 1, count: 16)
        let des = SecureChannel(.tripleDES, encryptionKey: key, authenticationKey: key, counter: [UInt8](repeating: 0, count: 8))
        let aes = SecureChannel(.aes, encryptionKey: key, authenticationKey: key, counter: [UInt8](repeating: 0, count: 16))
        #expect(des.room(in: 256, isOdd: false) == 231)
        #expect(aes.room(in: 256, isOdd: false) == 223)
        #expect(des.room(in: 14, isOdd: false) == 0)
        for isOdd in [false, true] {
            for limit in 0...2_000 {
                for channel in [des, aes] {
                    let room = channel.room(in: limit, isOdd: isOdd)
                    var (sealing, longer) = (channel, channel)
                    let octets = [UInt8](repeating: 7, count: room)
                    #expect(try room == 0 || sealing.seal(CardReply(octets), isOdd: isOdd).data.count <= limit)
                    #expect(try limit < 14 || longer.seal(CardReply(octets + [7]), isOdd: isOdd).data.count > limit)
                }
            }
        }
    }
}
