// SPDX-License-Identifier: MIT

import FoundationEssentials
import GlobalPlatform
import Octets
import TagTransport
import Testing

@testable import VirtualCards

@Suite struct ChannelVectorTests {
    private func host(_ vector: ChannelVector) throws -> any GlobalPlatform.SecureChannel {
        let keys = vector.keys.map { Hex.octets($0) }
        let set = try GlobalPlatformKeys(enc: keys[0], mac: keys[1], dek: keys[2])
        let challenge = Array(Hex.octets(vector.initializeUpdate)[5..<13])
        let offer = try ChannelOffer(parsing: Hex.octets(vector.offer))
        let level = SecurityLevel(rawValue: vector.level)
        return vector.isAES
            ? try SCP03(keys: set, level: level, hostChallenge: challenge, offer: offer)
            : try SCP02(keys: set, level: level, hostChallenge: challenge, offer: offer)
    }

    @Test(arguments: ChannelVector.all) func theHostWritesTheRecordedCommands(_ vector: ChannelVector) throws {
        var channel = try host(vector)
        #expect(Hex.encode(try channel.externalAuthenticate().octets) == vector.authenticate)
        for (place, command) in vector.commands.enumerated() {
            let wrapped = try channel.wrap(CommandAPDU(bytes: Hex.octets(command.plain)))
            #expect(Hex.encode(wrapped.octets) == command.wrapped)
            guard place == 0, let answer = vector.answer else { continue }
            let response = try channel.unwrap(ResponseAPDU(data: Data(Hex.octets(answer.wrapped)), statusWord: 0x9000))
            #expect(Hex.encode(response.data) == answer.plain)
        }
    }

    @Test func theSessionKeysAreThoseOfTheExample() throws {
        let scp02 = try #require(try host(ChannelVector.scp02) as? SCP02)
        #expect(Hex.encode(scp02.encryptionKey) == "1BA074B31F72A6C44FE8F5D9AFE4DA2F")
        #expect(Hex.encode(scp02.macKey) == "29A69328E60494982632039DDD47A2F1")
        let scp03 = try #require(try host(ChannelVector.all[1]) as? SCP03)
        #expect(Hex.encode(scp03.encryptionKey) == "C4E87149F2114DA66BB015A567D751F9")
        #expect(Hex.encode(scp03.macKey) == "8B2635556E987A6B84F43D9FFC197D3F")
        #expect(Hex.encode(scp03.responseMACKey) == "3F6B2CE3B3ABD9A99BD4453AFA54CC7B")
    }

    @Test(arguments: ChannelVector.all) func theCardOpensTheRecordedCommandsAndAnswersAsRecorded(_ vector: ChannelVector) throws {
        let offer = Hex.octets(vector.offer)
        // The security domain of the eUICC, which the challenge of i=70 is computed over.
        let aid = Hex.octets("A0000005591010FFFFFFFF8900000100")
        let counter = vector.isAES ? UInt32(offer[31]) : UInt32(offer[13])
        let keys = ElementKeySet(
            version: offer[10], isAES: vector.isAES, keys: vector.keys.map { Hex.octets($0) }, counter: counter)
        var channel = try ElementChannel(
            keys: keys, option: vector.isAES ? 0x70 : 0x15, holder: aid, aid: aid,
            hostChallenge: Array(Hex.octets(vector.initializeUpdate)[5..<13]), random: Array(offer[14..<20]))
        let told = vector.isAES ? 13..<21 : 14..<20
        #expect(channel.cardChallenge == Array(offer[told]))
        #expect(channel.cardCryptogram == Array(offer[told.upperBound..<told.upperBound + 8]))
        try channel.authenticate(CardCommand(parsing: Hex.octets(vector.authenticate)))
        for (place, command) in vector.commands.enumerated() {
            let clear = try channel.open(CardCommand(parsing: Hex.octets(command.wrapped)))
            let plain = try CardCommand(parsing: Hex.octets(command.plain))
            #expect(clear == plain)
            guard place == 0, let answer = vector.answer else { continue }
            #expect(Hex.encode(channel.close(CardReply(Hex.octets(answer.plain))).data) == answer.wrapped)
        }
    }

    @Test(arguments: ChannelVector.all) func theHostGoesNoFurtherOnAWrongCardCryptogram(_ vector: ChannelVector) throws {
        var wrong = vector
        wrong.keys[vector.isAES ? 1 : 0] = Hex.encode(Hex.octets(vector.keys[1]).map { $0 ^ 0x10 })
        #expect(throws: GlobalPlatformError(.cardCryptogramWrong)) { try host(wrong) }
    }

    @Test(arguments: ChannelVector.all.filter { $0.level & 0x10 != 0 })
    func aResponseWithOneWrongBitIsRefused(_ vector: ChannelVector) throws {
        var first = try host(vector)
        _ = try first.externalAuthenticate()
        _ = try first.wrap(CommandAPDU(bytes: Hex.octets(vector.commands[0].plain)))
        let right = Hex.octets(try #require(vector.answer).wrapped)
        for place in right.indices {
            var channel = first
            var octets = right
            octets[place] ^= 0x04
            #expect(throws: GlobalPlatformError(.responseMACWrong)) {
                try channel.unwrap(ResponseAPDU(data: Data(octets), statusWord: 0x9000))
            }
        }
        // The MAC is over the status word too; what is too short holds none; an error comes bare.
        var channel = first
        #expect(throws: GlobalPlatformError(.responseMACWrong)) {
            try channel.unwrap(ResponseAPDU(data: Data(right), statusWord: 0x6310))
        }
        #expect(throws: GlobalPlatformError(.responseUnprotected)) { try channel.unwrap(ResponseAPDU(statusWord: 0x9000)) }
        #expect(try channel.unwrap(ResponseAPDU(statusWord: 0x6A88)).statusWord == 0x6A88)
    }

    @Test func aLevelThatAProtocolDoesNotHaveIsRefusedBeforeItIsAsked() throws {
        var vector = ChannelVector.scp02
        vector.authenticate = "848211" + vector.authenticate.dropFirst(6)
        #expect(throws: GlobalPlatformError(.levelNotSupported)) { try host(vector) }
        vector = ChannelVector.all[3]
        // i=00: no protection of responses.
        vector.offer = vector.offer.replacing("3003703B1A", with: "3003103B1A")
        #expect(throws: GlobalPlatformError(.levelNotSupported)) { try host(vector) }
    }

    @Test func anOfferOfAnotherLengthOrProtocolIsRefused() {
        let right = Hex.octets(ChannelVector.all[1].offer)
        for count in right.indices {
            #expect(throws: GlobalPlatformError(.malformedResponse)) { try ChannelOffer(parsing: Array(right[..<count])) }
        }
        var other = right
        other[11] = 0x11
        #expect(throws: GlobalPlatformError(.protocolNotSupported)) { try ChannelOffer(parsing: other) }
    }
}
