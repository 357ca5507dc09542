// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import Octets
import Testing

@testable import CoreExtendedNFC

/// Published and recorded exchanges, given to the reader's handshakes and channels.
@Suite struct DESFireChannelVectorTests {
    /// A real DESFire EV1 behind a PN532, logged for a Python library; the last row is desfire-workshop's challenge 3, trace 1, a key
    /// of zeros and the UID; the first D40 row its challenge 2.
    struct Handshake: Sendable, CustomTestStringConvertible {
        let name: String
        let method: DESFireAuthentication
        let cipher: DESFireCipher
        let key, challenge, rndA, sent, proof, session: String
        var testDescription: String { name }
    }

    static let handshakes = [
        Handshake(
            name: "D40", method: .legacy, cipher: .des, key: "0000000000000001", challenge: "EEF75F380A83C1C2",
            rndA: "1926D4D1CFB36F49", sent: "B097593B2D88F0859BE89DC396824F6C", proof: "CACE7A134BD1ACC2",
            session: "1926D4D11E831E3A"),
        Handshake(
            name: "DES", method: .iso, cipher: .des, key: "0000000000000000", challenge: "5D994CE085F24089",
            rndA: "849B36C5F8BF4A09", sent: "21D0AD5F2FD97454A746CC80567F1B1C", proof: "913C6DED84221C41",
            session: "849B36C54FD1B759"),
        Handshake(
            name: "2K3DES", method: .iso, cipher: .twoKeyTripleDES, key: "00102031405060708090A0B0B0A09080",
            challenge: "B295579926155AE3", rndA: "530E3D90F7A201C4", sent: "70F349740C945DAE159BA9FEDBCC461A",
            proof: "B8FD7FE56B241FC4", session: "530E3D90BCD82997F7A201C447332DAF"),
        Handshake(
            name: "AES, key of zeros", method: .aes, cipher: .aes, key: "00000000000000000000000000000000",
            challenge: "B969FDFE56FD91FC9DE6F6F213B8FD1E", rndA: "F44B26F5686F3A391CD38EBD10772281",
            sent: "36AAD7DF6E436BA08D18613830A70D5AD43E3D3F4A8D47541EEE623A934E4774", proof: "800DB680BC146BD121D6578F2D2E2059",
            session: "F44B26F5C05DDD7110772281C4D066E8"),
        Handshake(
            name: "AES", method: .aes, cipher: .aes, key: "10182028303840485058606870788088",
            challenge: "B351CB2465D4F33AC627FD6E87A168F2", rndA: "40E7D27174CBA675E8EFBAB99C530E3D",
            sent: "044B6CAC343A0865895149649CA8DDE1F5AC4EC67BD208900AF02F049E05F0B0", proof: "A2EE144B1012FBEB7B2F11132D95A454",
            session: "40E7D271626FFBD49C530E3D304F5B17"),
        Handshake(
            name: "AES of a workshop's card", method: .aes, cipher: .aes, key: "0000000000000000000462216AE16E80",
            challenge: "A2E31CD221871695EBC539146C045F2F", rndA: "42DD37CF783D227636E7A6C6FD5C742B",
            sent: "5721FE58466ABA8722260F8C7D00EF1653376E6A124D217E6C8EDDFA0430E9DE", proof: "2EAA1936A236311C3750565F5B1E5141",
            session: "42DD37CFC9E5D61AFD5C742B34ACF076"),
    ]

    @Test(arguments: handshakes) func aRecordedAuthenticationIsMadeAgain(_ row: Handshake) throws {
        var handshake = DESFireHandshake(
            method: row.method, key: try DESFireKey(row.cipher, octets(row.key)), rndA: octets(row.rndA))
        #expect(Hex.encode(try handshake.respond(to: octets(row.challenge))) == row.sent)
        _ = try handshake.finish(octets(row.proof))
        #expect(handshake.sessionKeys.map(\.name) == ["desfire.sessionKey"])
        #expect(Hex.encode(handshake.sessionKeys[0].octets) == row.session)
        var other = handshake
        var wrong = octets(row.proof)
        wrong[0] ^= 0x80
        #expect(throws: DESFireChannelError(.proofWrong, "")) { try other.finish(wrong) }
        #expect(throws: DESFireChannelError(.handshakeLength, "")) { try other.finish(wrong + [0]) }
    }

    // The session after the fifth authentication above: plain commands, whose MACs chain over commands and answers.
    @Test func theMACsOfAnEV1SessionChain() throws {
        var channel = EV1Channel(cipher: .aes, key: octets("40E7D271626FFBD49C530E3D304F5B17"))
        let text1 = (0x00...0x33).map { UInt8($0) }
        let text2 = (0x34...0x4F).map { UInt8($0) }
        let steps: [(DESFireRequest, answer: [UInt8], mac: String)] = [
            (.init(code: .createStandardDataFile, header: octets("05001100500000")), [], "A75316AD1596B953"),
            (.init(code: .getFileIDs, answers: true), [5], "2D5FF67FFEC9D2D3"),
            (.init(code: .getFileSettings, header: [5], answers: true), octets("00001100500000"), "2AAC7517024E09DC"),
            (
                .init(code: .writeData, header: octets("05000000340000"), data: text1, protection: .file(.plain)), [],
                "765C9DAA50ECB62F"
            ),
            (
                .init(code: .writeData, header: octets("053400001C0000"), data: text2, protection: .file(.plain)), [],
                "3E0AED986B8B0F37"
            ),
            (
                .init(code: .readData, header: octets("05000000300000"), protection: .file(.plain), answers: true),
                Array(text1.prefix(48)), "4C65F1F842262BAC"
            ),
            (
                .init(code: .readData, header: octets("05300000200000"), protection: .file(.plain), answers: true),
                Array((text1 + text2).suffix(32)), "F02205CF913C03C9"
            ),
            (.init(code: .deleteFile, header: [5]), [], "1BEF0D32B6D1D7F9"),
        ]
        for (request, answer, mac) in steps {
            #expect(try channel.seal(request) == request.header + request.data)
            var copy = channel
            #expect(try channel.open(request, answer + octets(mac), status: 0) == answer)
            // The same answer under another status, or a second time, is no answer.
            var again = channel
            #expect(throws: DESFireChannelError(.macWrong, "")) { try copy.open(request, answer + octets(mac), status: 0xAF) }
            #expect(throws: DESFireChannelError(.macWrong, "")) { try again.open(request, answer + octets(mac), status: 0) }
        }
    }

    // desfire-workshop, challenge 2: an enciphered read of a D40 card.
    @Test func aRecordedD40ReadIsOpened() throws {
        let channel = D40Channel(key: octets("1926D4D11E831E3A"))
        let request = DESFireRequest(
            code: .readData, header: octets("010000001E0000"), protection: .file(.enciphered), answers: true, answerLength: 30)
        let answer = octets("43369B9B9BB1C0DBC555557B35C304B2CC686616D36ECB37CA9C352CDACB78FA")
        let text = try channel.open(request, answer)
        #expect(Hex.encode(text) == "666C61677B347537685F346C6F6E335F69355F6E30375F336E6F7539687D")
        for index in answer.indices {
            var changed = answer
            changed[index] ^= 0x01
            #expect(throws: DESFireChannelError.self) { try channel.open(request, changed) }
        }
    }

    // desfire-workshop, challenge 3, trace 1: settings with their MAC, then an enciphered read in two frames.
    @Test func aRecordedEV1ReadIsOpened() throws {
        var channel = EV1Channel(cipher: .aes, key: octets("42DD37CFC9E5D61AFD5C742B34ACF076"))
        let settings = DESFireRequest(code: .getFileSettings, header: [1], answers: true)
        _ = try channel.seal(settings)
        let parsed = try DESFireFileSettings(
            bytes: try channel.open(settings, octets("00031111300000") + octets("380F1E37D30424F7"), status: 0))
        #expect(parsed.communication == .enciphered && parsed.fileSize == 48)
        let read = DESFireRequest(
            code: .readData, header: octets("01000000300000"), protection: .file(.enciphered), answers: true, answerLength: 48)
        _ = try channel.seal(read)
        let text = try channel.open(
            read,
            octets(
                "391C92D7E2CC71655EFA31769E58E79FA1FFE79ED76C9A8AB4D28E6AEC0D3B8E4F00FF9AB4D4F1564F7AD7B3FA0F3823C7E5EBFB2FBBEAEB9A691D41FFBF5815"
            ), status: 0)
        #expect(text.prefix(24).allSatisfy { $0 == 0 })
        #expect(Hex.encode(text.suffix(24)) == "666C61677B643363727970745F6672306D5F74723463337D")
    }

    // NXP AN12196 tables 14, 17 and 18: EV2First with a key of zeros, WriteData, ChangeFileSettings.
    @Test func theSessionOfTheApplicationNoteIsMadeAgain() throws {
        var handshake = DESFireHandshake(
            method: .ev2First, key: .zero(.aes), rndA: octets("13C5DB8A5930439FC3DEF9A4C675360F"))
        #expect(
            Hex.encode(try handshake.respond(to: octets("A04C124213C186F22399D33AC2A30215")))
                == "35C3E05A752E0144BAC0DE51C1F22C56B34408A23D8AEA266CAB947EA8E0118D")
        var channel = try handshake.finish(octets("3FA64DB5446D1F34CD6EA311167F5E4985B89690C04A05F17FA7AB2F08120663"))
        #expect(handshake.capabilities == [UInt8](repeating: 0, count: 12))
        let message =
            "0051D1014D550463686F6F73652E75726C2E636F6D2F6E7461673432343F653D303030303030303030303030303030303030303030303030303030303030303026633D303030303030303030303030303030"
        let text = octets(message + "30" + String(repeating: "00", count: 128 - 1 - message.count / 2))
        let write = DESFireRequest(
            code: .writeDataISO, header: octets("02000000800000"), data: text, protection: .file(.enciphered))
        let sent = Hex.encode(try channel.seal(write))
        #expect(
            sent
                == "02000000800000421C73A27D827658AF481FDFF20A5025B559D0E3AA21E58D347F343CFFC768BFE596C706BC00F2176781D4B0242642A0FF5A42C461AAF894D9A1284B8C76BCFA658ACD40555D362E08DB15CF421B51283F9064BCBE20E96CAE545B407C9D651A3315B27373772E5DA2367D2064AE054AF996C6F1F669170FA88CE8C4E3A4A7BBBEF0FD971FF532C3A802AF745660F2B4D1D9A8499661EBF3"
        )
        #expect(try channel.open(write, octets("FC222E5F7A542452"), status: 0) == [])
        let settings = DESFireRequest(
            code: .changeFileSettings, header: [2], data: octets("4000E0C1F121200000430000430000"), protection: .secret)
        #expect(Hex.encode(try channel.seal(settings)) == "0261B6D97903566E84C3AE5274467E89EAD799B7C1A0EF7A04")
        var replayed = channel
        #expect(throws: DESFireChannelError(.macWrong, "")) {
            try replayed.open(settings, octets("FC222E5F7A542452"), status: 0)
        }
        #expect(try channel.open(settings, octets("57BFF87B1241E93D"), status: 0) == [])
    }

    // NXP AN12321: LRPFirst with a key of zeros. What the note does not give is left out here: the first answer's MAC.
    @Test func theLRPSessionOfTheApplicationNoteIsMadeAgain() throws {
        let key = octets("2A5181848C630158FC56DF551BD81A6C")
        var channel = EV2Channel(
            cipher: .lrp(
                encryption: try LRP(key: key, updateNumber: 1), authentication: try LRP(key: key), counter: [0, 0, 0, 1]),
            transaction: octets("2F0CF791"), counter: 0)
        #expect(
            Hex.encode(try channel.seal(DESFireRequest(code: .getCardUID, protection: .secret, answers: true)))
                == "790003E69F330EAC")
    }
}
