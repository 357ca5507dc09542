// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Foundation
import Octets
import Testing

private func channelOfAppendixD() throws -> SecureMessaging {
    try SecureMessaging(
        cipher: .tripleDES, encryptionKey: octets(AppendixD.encryption), authenticationKey: octets(AppendixD.authentication),
        sendSequenceCounter: octets(AppendixD.counter))
}

/// ICAO 9303-11 D.4: plain command, protected command, protected answer, plain answer, counter after it.
private let exchangesOfAppendixD: [(String, String, String, String, String)] = [
    (
        "00A4020C02011E", "0CA4020C158709016375432908C044F68E08BF8B92D635FF24F800", "990290008E08FA855A5D4C50A8ED9000", "9000",
        "887022120C06C228"
    ),
    (
        "00B0000004", "0CB000000D9701048E08ED6705417E96BA5500", "8709019FF0EC34F9922651990290008E08AD55CC17140B2DED9000",
        "60145F019000", "887022120C06C22A"
    ),
    (
        "00B0000412", "0CB000040D9701128E082EA28A70F3C7B53500",
        "871901FB9235F4E4037F2327DCC8964F1F9B8C30F42C8E2FFF224A990290008E08C8B2787EAEA07D749000",
        "04303130365F36063034303030305C0261759000", "887022120C06C22C"
    ),
]

@Suite struct SecureMessagingTests {
    @Test func theExchangesOfAppendixDAreMadeAndOpened() throws {
        var channel = try channelOfAppendixD()
        for (plain, protected, answer, opened, counter) in exchangesOfAppendixD {
            #expect(Hex.encode(try channel.protect(command(plain)).octets) == protected)
            #expect(Hex.encode(try channel.unprotect(response(answer)).octets) == opened)
            #expect(Hex.encode(channel.sendSequenceCounter) == counter)
        }
    }

    /// A protected MSE:Set AT from a public test of another reader; the counter is 00..BB after the step.
    @Test func aProtectedCommandUnderAESIsAsPublished() throws {
        var channel = try SecureMessaging(
            cipher: .aes, encryptionKey: octets("CC86415F2ED7E8FD663B754265695AE1"),
            authenticationKey: octets("581E84B8EE06C4D3EEE30461498D7FB3"),
            sendSequenceCounter: octets("000000000000000000000000000000BA"))
        let protected = try channel.protect(command("002241A40F800A04007F000702020302028401C3"))
        #expect(Hex.encode(protected.octets) == "0C2241A41D871101980953D37F67558690045D78A853B18A8E08929767A2CEF172E200")
    }

    /// The cryptogram of SELECT EF.COM under the session keys of ICAO 9303-11 G.1, as its authors computed it.
    @Test func theCounterIsTheInitialVectorUnderAES() throws {
        var channel = try SecureMessaging(
            cipher: .aes, encryptionKey: octets("F5F0E35C0D7161EE6724EE513A0D9A7F"),
            authenticationKey: octets("FE251C7858B356B24514B3BD5F4297D1"), sendSequenceCounter: [UInt8](repeating: 0, count: 16))
        let protected = try channel.protect(command("00A4020C02011E"))
        #expect(Hex.encode(protected.octets).contains("871101EE0E4724F4465C1BE9C2F73ABDD73A3D"))
    }

    /// ISO/IEC 7816-4 10.2.2: an odd INS has DO 85 and no padding indicator.
    @Test func anOddInstructionHasDO85() throws {
        var channel = try channelOfAppendixD()
        let protected = try channel.protect(command("00B1000004540280003F"))
        #expect(Array(protected.octets[..<4]) == octets("0CB10000"))
        #expect(protected.data?.prefix(2) == data("8508"))
    }

    /// Le 256 stays one octet, what is longer takes two and makes the message extended.
    @Test func theInnerLeKeepsItsSize() throws {
        var short = try channelOfAppendixD()
        #expect(try short.protect(command("00B0000000")).data?.prefix(3) == data("970100"))
        var extended = try channelOfAppendixD()
        let protected = try extended.protect(command("00B00000000000"))
        #expect(protected.data?.prefix(4) == data("97020000"))
        #expect(protected.octets.suffix(2) == [0, 0])
        #expect(protected.form == .extended)
    }

    @Test func longDataMakesTheMessageExtended() throws {
        var channel = try channelOfAppendixD()
        let protected = try channel.protect(CommandAPDU(cla: 0, ins: 0xD6, p1: 0, p2: 0, data: Data(count: 250)))
        #expect(protected.form == .extended)
        #expect(protected.ne == 65_536)
        #expect(protected.data?.prefix(4) == data("87820101"))
    }

    /// ISO/IEC 7816-4 5.4.1: the further interindustry classes have one bit; proprietary ones are refused, and the channel stays.
    @Test func theClassOctetDecidesTheBits() throws {
        var channel = try channelOfAppendixD()
        #expect(try channel.protect(command("4084000008")).cla == 0x60)
        var other = try channelOfAppendixD()
        let refused = #expect(throws: SecureMessagingError.self) { try other.protect(command("9060000000")) }
        #expect(refused?.code == .classOctet)
        #expect(other.state == .ready(bareAnswers: 0))
        #expect(Hex.encode(other.sendSequenceCounter) == AppendixD.counter)
    }

    @Test(arguments: 0..<41)
    func anyChangedOctetUnderTheMACEndsTheChannel(index: Int) throws {
        var channel = try channelOfAppendixD()
        for (plain, _, answer, _, _) in exchangesOfAppendixD.prefix(2) {
            _ = try channel.protect(command(plain))
            _ = try channel.unprotect(response(answer))
        }
        _ = try channel.protect(command(exchangesOfAppendixD[2].0))
        var answer = octets(exchangesOfAppendixD[2].2)
        #expect(answer.count == 43)
        answer[index] ^= 0x01
        #expect(throws: SecureMessagingError.self) { try channel.unprotect(ResponseAPDU(bytes: answer)) }
        let next = #expect(throws: SecureMessagingError.self) { try channel.protect(command("00B0000004")) }
        #expect(next?.code == .ended)
    }

    @Test func aReplayedAnswerIsRefused() throws {
        var channel = try channelOfAppendixD()
        _ = try channel.protect(command(exchangesOfAppendixD[0].0))
        _ = try channel.unprotect(response(exchangesOfAppendixD[0].2))
        _ = try channel.protect(command(exchangesOfAppendixD[0].0))
        let error = #expect(throws: SecureMessagingError.self) { try channel.unprotect(response(exchangesOfAppendixD[0].2)) }
        #expect(error?.code == .macWrong)
    }

    /// Field report B17, and 9303-11 9.8.5: an answer without DO 8E is never taken, 9000 alone included.
    @Test(arguments: ["9000", "990290009000", "8709019FF0EC34F9922651990290009000", "990290008E04112233449000"])
    func anAnswerWithoutMACIsRefused(answer: String) throws {
        var channel = try channelOfAppendixD()
        _ = try channel.protect(command("00B0000004"))
        let error = #expect(throws: SecureMessagingError.self) { try channel.unprotect(response(answer)) }
        #expect(error?.code == .macMissing)
        #expect(channel.state == .ended(.macMissing))
    }

    /// Wire facts rows 54 and 3.2, field report E1: the counter goes back, and the next command is as the first would have been.
    @Test func aBareStatusWordRestoresTheCounter() throws {
        var channel = try channelOfAppendixD()
        let first = try channel.protect(command("00B0000004"))
        let error = #expect(throws: SecureMessagingError.self) { try channel.unprotect(response("6700")) }
        #expect(error?.code == .bareStatusWord(0x6700))
        #expect(error?.leavesChannelOpen == true)
        #expect(Hex.encode(channel.sendSequenceCounter) == AppendixD.counter)
        #expect(try channel.protect(command("00B0000004")) == first)
    }

    @Test(arguments: ["6987", "6988"])
    func theCardsOwnSecureMessagingErrorsEndTheChannel(word: String) throws {
        var channel = try channelOfAppendixD()
        _ = try channel.protect(command("00B0000004"))
        #expect(throws: SecureMessagingError.self) { try channel.unprotect(response(word)) }
        let next = #expect(throws: SecureMessagingError.self) { try channel.protect(command("00B0000004")) }
        #expect(next?.code == .ended)
    }

    @Test func aSecondBareStatusWordEndsTheChannel() throws {
        var channel = try channelOfAppendixD()
        for _ in 0..<2 {
            _ = try channel.protect(command("00B0000004"))
            #expect(throws: SecureMessagingError.self) { try channel.unprotect(response("6700")) }
        }
        #expect(channel.state == .ended(.bareStatusWord(0x6700)))
    }

    /// 9303-11 9.8.4: 85 or 87, then 99, then 8E, each once; nothing after the MAC.
    @Test(arguments: [
        "990290008709019FF0EC34F99226518E08AD55CC17140B2DED", "990290009902900000008E08AD55CC17140B2DED",
        "990290008E08AD55CC17140B2DED9900", "990290008E08AD55CC17140B2DED8E08AD55CC17140B2DED", "99", "9902", "9980",
        "9984FFFFFFFF",
        "1F", "8E",
    ])
    func objectsTwiceOutOfOrderOrBrokenAreRefused(objects: String) throws {
        var channel = try channelOfAppendixD()
        _ = try channel.protect(command("00B0000004"))
        let error = #expect(throws: SecureMessagingError.self) { try channel.unprotect(response(objects + "9000")) }
        #expect(error?.code == .objects || error?.code == .macMissing)
    }

    @Test func anyOctetsAtAllEndWithAnErrorAndNotATrap() throws {
        var generator = SystemRandomNumberGenerator()
        for length in 0..<600 {
            var channel = try channelOfAppendixD()
            _ = try channel.protect(command("00B0000004"))
            let noise = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) } + [0x90, 0x00]
            #expect(throws: SecureMessagingError.self) { try channel.unprotect(ResponseAPDU(bytes: noise)) }
        }
    }

    @Test func oneCommandIsUnderWayAtATime() throws {
        var channel = try channelOfAppendixD()
        let early = #expect(throws: SecureMessagingError.self) {
            var other = channel
            _ = try other.unprotect(response("9000"))
        }
        #expect(early?.code == .noCommand)
        _ = try channel.protect(command("00B0000004"))
        let second = #expect(throws: SecureMessagingError.self) { try channel.protect(command("00B0000004")) }
        #expect(second?.code == .answerOutstanding)
    }

    @Test func keysOfAnotherLengthAreRefused() {
        for (cipher, length, counter) in [
            (SecureMessagingCipher.tripleDES, 24, 8), (.aes, 17, 16), (.aes, 16, 8), (.tripleDES, 0, 8),
        ] {
            #expect(throws: SecureMessagingError.self) {
                try SecureMessaging(
                    cipher: cipher, encryptionKey: [UInt8](repeating: 1, count: length),
                    authenticationKey: [UInt8](repeating: 1, count: length),
                    sendSequenceCounter: [UInt8](repeating: 0, count: counter))
            }
        }
    }

    @Test func noKeyStandsInAnyRendering() throws {
        var text = ""
        dump(try channelOfAppendixD(), to: &text)
        #expect(!text.contains("979EC13B"))
        #expect(!text.contains("151"))
    }
}

@Suite struct SecureMessagingTransportTests {
    private func transport(_ exchanges: [(String, String)]) throws -> (SecureMessagingTransport, ScriptedChip) {
        let chip = ScriptedChip(exchanges: exchanges)
        return (SecureMessagingTransport(over: chip, try channelOfAppendixD()), chip)
    }

    @Test func commandsTravelProtectedAndAnswersComeBackPlain() async throws {
        let (transport, _) = try transport(exchangesOfAppendixD.map { ($0.1, $0.2) })
        for (plain, _, _, opened, _) in exchangesOfAppendixD {
            #expect(Hex.encode(try await transport.sendAPDU(command(plain)).octets) == opened)
        }
        #expect(transport.identifier == Data([8, 1, 2, 3]))
    }

    /// Wire facts 2.14 and 3.6: GET RESPONSE stands below the protection and moves no counter.
    @Test func anAnswerInPartsIsJoinedAndOpenedOnce() async throws {
        let whole = exchangesOfAppendixD[0].2
        let (transport, chip) = try transport([
            (exchangesOfAppendixD[0].1, "990290006108"), ("00C0000008", "6E00"), ("0CC0000008", String(whole.dropFirst(8))),
            (exchangesOfAppendixD[1].1, exchangesOfAppendixD[1].2),
        ])
        #expect(try await transport.sendAPDU(command(exchangesOfAppendixD[0].0)).isSuccess)
        #expect(try await transport.sendAPDU(command(exchangesOfAppendixD[1].0)).data == data("60145F01"))
        #expect(chip.commands.count == 4)
    }

    @Test func partsWithoutAnEndAreAnError() async throws {
        let endless = ScriptedChip { _, _ in [0x61, 0x10] }
        let transport = SecureMessagingTransport(over: endless, try channelOfAppendixD())
        await #expect(throws: TransportError.self) { try await transport.sendAPDU(command("00B0000004")) }
        #expect(endless.commands.count < 10)
        let growing = ScriptedChip { _, _ in [UInt8](repeating: 0x87, count: 256) + [0x61, 0x00] }
        let other = SecureMessagingTransport(over: growing, try channelOfAppendixD())
        await #expect(throws: TransportError.self) { try await other.sendAPDU(command("00B0000004")) }
    }

    @Test func anAnswerThatNeverCameEndsTheChannel() async throws {
        let (transport, _) = try transport([])
        await #expect(throws: TransportError(.tagConnectionLost)) { try await transport.sendAPDU(command("00B0000004")) }
        let next = await #expect(throws: SecureMessagingError.self) { try await transport.sendAPDU(command("00B0000004")) }
        #expect(next?.code == .ended)
    }

    @Test func rawFramesAreRefused() async throws {
        let (transport, chip) = try transport([])
        await #expect(throws: TransportError(.unsupportedOperation)) { try await transport.send(Data([1])) }
        #expect(chip.commands.isEmpty)
    }
}
