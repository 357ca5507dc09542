// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Foundation
import Octets
import Testing

/// The values of ICAO 9303-11 appendix D.
enum AppendixD {
    static let mrzKey = "L898902C<369080619406236"
    static let challenge = "4608F91988702212"
    static let random = "781723860C06C226"
    static let keyingMaterial = "0B795240CB7049B01C19B33E32804F0B"
    static let authenticate =
        "008200002872C29C2371CC9BDB65B779B8E8D37B29ECC154AA56A8799FAE2F498F76ED92F25F1448EEA8AD90A728"
    static let authenticated = "46B9342A41396CD7386BF5803104D7CEDC122B9132139BAF2EEDC94EE178534F2F2D235D074D74499000"
    static let encryption = "979EC13B1CBFE9DCD01AB0FED307EAE5"
    static let authentication = "F1CB1F1FB5ADF208806B89DC579DC1F8"
    static let counter = "887022120C06C226"

    static func afterChallenge() throws -> BasicAccessControl {
        var access = try BasicAccessControl(mrzKey: mrzKey)
        _ = try access.begin()
        _ = try access.received(response(challenge + "9000"))
        return access
    }

    static func beforeAnswer() throws -> BasicAccessControl {
        var access = try afterChallenge()
        _ = try access.drew(random: octets(random), keyingMaterial: octets(keyingMaterial))
        return access
    }
}

@Suite struct BasicAccessControlTests {
    /// ICAO 9303-11 D.2.
    @Test func theSeedIsTheFirstHalfOfTheHashOfTheMRZ() throws {
        #expect(Hex.encode(try BasicAccessControl(mrzKey: AppendixD.mrzKey).seed) == "239AB9CB282DAF66231DC5A4DF6BFBAE")
    }

    /// ICAO 9303-11 D.3, every octet in both directions.
    @Test func theExchangeOfAppendixDGivesItsSessionKeys() throws {
        var access = try BasicAccessControl(mrzKey: AppendixD.mrzKey)
        guard case .send(let first) = try access.begin() else { Issue.record("no command"); return }
        #expect(Hex.encode(first.octets) == "0084000008")
        guard case .drawRandom = try access.received(response(AppendixD.challenge + "9000")) else {
            Issue.record("no draw")
            return
        }
        let second = try access.drew(random: octets(AppendixD.random), keyingMaterial: octets(AppendixD.keyingMaterial))
        guard case .send(let command) = second else { Issue.record("no command"); return }
        #expect(Hex.encode(command.octets) == AppendixD.authenticate)
        guard case .agreed(let keys) = try access.received(response(AppendixD.authenticated)) else {
            Issue.record("not agreed")
            return
        }
        #expect(Hex.encode(keys.encryption) == AppendixD.encryption)
        #expect(Hex.encode(keys.authentication) == AppendixD.authentication)
        #expect(Hex.encode(keys.sendSequenceCounter) == AppendixD.counter)
    }

    /// Field reports A15 and E17; wire facts row 57.
    @Test(arguments: [0x6300, 0x63C2, 0x6985, 0x6988, 0x6A88] as [UInt16])
    func aRefusedKeyNamesTheStatusWord(word: UInt16) throws {
        var access = try AppendixD.beforeAnswer()
        let answer = ResponseAPDU(statusWord: word)
        let error = #expect(throws: BasicAccessControlError.self) { try access.received(answer) }
        #expect(error?.code == .authenticationRefused(word))
        #expect(error?.detail.contains("to EXTERNAL AUTHENTICATE") == true)
    }

    @Test(arguments: [0, 1, 9, 39, 41, 65_536])
    func aCryptogramOfAnotherLengthIsRefused(length: Int) throws {
        var access = try AppendixD.beforeAnswer()
        let answer = ResponseAPDU(data: Data(repeating: 0x46, count: length), statusWord: 0x9000)
        let error = #expect(throws: BasicAccessControlError.self) { try access.received(answer) }
        #expect(error?.code == .cryptogramLength)
    }

    @Test(arguments: 0..<40)
    func anyChangedOctetOfTheCryptogramIsFound(index: Int) throws {
        var access = try AppendixD.beforeAnswer()
        var answer = octets(AppendixD.authenticated)
        answer[index] ^= 0x01
        let error = #expect(throws: BasicAccessControlError.self) { try access.received(ResponseAPDU(bytes: answer)) }
        #expect(error?.code == .macWrong)
    }

    /// The card's answer of appendix D, replayed to a terminal that drew something else.
    @Test func anAnswerToOtherRandomOctetsIsRefused() throws {
        var access = try AppendixD.afterChallenge()
        _ = try access.drew(random: octets("0000000000000000"), keyingMaterial: octets(AppendixD.keyingMaterial))
        let error = #expect(throws: BasicAccessControlError.self) { try access.received(response(AppendixD.authenticated)) }
        #expect(error?.code == .nonceMismatch)
    }

    @Test(arguments: ["9000", "46089000", "4608F919887022124608F919887022129000"])
    func aChallengeIsEightOctets(answer: String) throws {
        var access = try BasicAccessControl(mrzKey: AppendixD.mrzKey)
        _ = try access.begin()
        let error = #expect(throws: BasicAccessControlError.self) { try access.received(response(answer)) }
        #expect(error?.code == .challengeLength)
    }

    @Test func eventsOutOfOrderAreRefused() throws {
        var access = try BasicAccessControl(mrzKey: AppendixD.mrzKey)
        let error = #expect(throws: BasicAccessControlError.self) { try access.received(response("9000")) }
        #expect(error?.code == .outOfOrder)
        #expect(throws: BasicAccessControlError.self) { try access.begin() }
    }

    @Test func noKeyStandsInAnyRendering() throws {
        let access = try AppendixD.beforeAnswer()
        var text = ""
        dump(access, to: &text)
        text += "\(access) \(String(reflecting: access))"
        #expect(!text.contains("239AB9CB"))
        #expect(!text.contains("35, 154"))
    }
}
