// SPDX-License-Identifier: MIT

import CardCrypto
import Octets
import TestSupport
import Testing

@testable import VirtualCards

/// The chip gives the answers of the worked examples of ICAO 9303-11 appendices G and H, octet by octet.
@Suite struct PACEVectorTests {
    /// Random octets that make this private key: one more than them modulo the order.
    private func random(_ privateKey: String, _ parameters: DomainParameters) throws -> [UInt8] {
        var octets = try Hex.decode(privateKey)
        octets[octets.count - 1] -= 1
        return [UInt8](repeating: 0, count: parameters.randomLength - octets.count) + octets
    }

    private func card(_ way: String, _ example: PACEExamples.Example) throws -> PassportCard {
        let profile = try PACEProfile(parsing: way)
        var draws = try Hex.decode(example.nonce)
        if example.terminalNonce.isEmpty { draws += try random(example.mappingSecretIC, profile.parameters) }
        draws += try random(example.secretIC, profile.parameters)
        var configuration = PassportConfiguration()
        configuration.profiles = [profile]
        configuration.passwords = [
            .mrz: try Digest.sha1.hash(Array("T22000129364081251010318".utf8)), .can: Array("123456".utf8),
        ]
        var card = PassportCard(
            files: PassportFiles([:]), access: try BasicAccessControl(.specimen), random: CardRandom(first: draws),
            configuration: configuration)
        card.powerOn()
        return card
    }

    private func general(_ card: inout PassportCard, _ tag: UInt32, _ hex: String, isLast: Bool = false) throws -> String {
        let data = TLV.encode(0x7C, TLV.encode(tag, try Hex.decode(hex)))
        return Hex.encode(card.answer([isLast ? 0x00 : 0x10, 0x86, 0, 0, UInt8(data.count)] + data + [0]))
    }

    private func answer(_ tag: UInt32, _ hex: String) throws -> String {
        Hex.encode(TLV.encode(0x7C, TLV.encode(tag, try Hex.decode(hex)))) + "9000"
    }

    @Test(arguments: [
        ("ecdh-gm-aes128:13", PACEExamples.ecdhGeneric, "01"), ("dh-gm-aes128:0", PACEExamples.dhGeneric, "01"),
        ("ecdh-im-aes128:13", PACEExamples.ecdhIntegrated, "02"),
    ])
    func theAnswersAreThoseOfTheStandard(way: String, example: PACEExamples.Example, password: String) throws {
        var card = try card(way, example)
        let select = try Hex.decode("0022C1A40F800A\(example.protocolOID)8301\(password)")
        #expect(Hex.encode(card.answer(select)) == "9000")
        #expect(Hex.encode(card.answer(try Hex.decode("10860000027C0000"))) == (try answer(0x80, example.encryptedNonce)))
        if example.terminalNonce.isEmpty {
            #expect(try general(&card, 0x81, example.mappingPublicIFD) == answer(0x82, example.mappingPublicIC))
        } else {
            #expect(try general(&card, 0x81, example.terminalNonce) == "7C0282009000")
        }
        #expect(try general(&card, 0x83, example.publicIFD) == answer(0x84, example.publicIC))
        #expect(try general(&card, 0x85, example.tokenIFD, isLast: true) == answer(0x86, example.tokenIC))
        guard case .secured(let channel) = card.state else {
            Issue.record("no channel after PACE")
            return
        }
        #expect(Hex.encode(channel.encryptionKey) == example.encryptionKey)
        #expect(Hex.encode(channel.authenticationKey) == example.macKey)
    }

    @Test func stepsOutOfOrderBeginAgain() throws {
        let example = PACEExamples.ecdhGeneric
        var card = try card("ecdh-gm-aes128:13", example)
        let select = try Hex.decode("0022C1A40F800A\(example.protocolOID)830101")
        let nonce = try Hex.decode("10860000027C0000")
        // No MSE before.
        #expect(Hex.encode(card.answer(nonce)) == "6985")
        // A step left out, another command between, the chain ended too early.
        #expect(Hex.encode(card.answer(select)) == "9000")
        #expect(try general(&card, 0x83, example.publicIFD) == "6A80")
        #expect(Hex.encode(card.answer(nonce)) == "6985")
        #expect(Hex.encode(card.answer(select)) == "9000")
        #expect(card.answer(nonce).suffix(2) == [0x90, 0x00])
        #expect(Hex.encode(card.answer(try Hex.decode("00A4000C"))) == "9000")
        #expect(try general(&card, 0x81, example.mappingPublicIFD) == "6985")
        #expect(Hex.encode(card.answer(select)) == "9000")
        #expect(Hex.encode(card.answer(try Hex.decode("00860000027C0000"))) == "6883")
        // A password that the chip does not have, a protocol that it does not speak, parameters of another number.
        #expect(Hex.encode(card.answer(select.dropLast() + [0x03])) == "6A88")
        #expect(Hex.encode(card.answer(try Hex.decode("0022C1A40F800A04007F00070202040204830101"))) == "6A80")
        #expect(Hex.encode(card.answer(try Hex.decode("0022C1A412800A\(example.protocolOID)83010184010C"))) == "6A88")
    }
}
