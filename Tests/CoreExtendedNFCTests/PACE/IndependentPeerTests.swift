// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import Testing
import VirtualCards

/// PACE with generic mapping against libeac, which shares nothing with either of our sides but libcrypto's arithmetic.
@Suite(.enabled(if: IndependentPeer.absence == nil, Comment(rawValue: IndependentPeer.absence ?? "")))
struct IndependentPeerTests {
    struct Way: Sendable, CustomTestStringConvertible {
        let bits: Int
        let parameters: Int
        var option: String { "ecdh-gm-aes\(bits):\(parameters)" }
        var testDescription: String { option }
        /// The octets of the protocol's object identifier.
        var identifier: [UInt8] { octets("04007F000702020402") + [UInt8(bits / 64)] }
    }

    static let ways = [Way(bits: 128, parameters: 13), Way(bits: 192, parameters: 12), Way(bits: 256, parameters: 15)]

    /// A chip that leaves its part of PACE to libeac, and is gone once the keys are agreed.
    private final class Chip: NFCTagTransport {
        private let peer: IndependentPeer
        private let cardAccess: [UInt8]
        private let keys = KeyCollector()

        init(_ peer: IndependentPeer, _ way: Way) {
            self.peer = peer
            let info = DER.sequence(
                TLV.encode(0x06, way.identifier), DER.integer([2]), DER.integer([UInt8(way.parameters)]))
            cardAccess = DER.set([info])
        }

        /// What libeac made: encryption and MAC key.
        var agreed: [[UInt8]] { [keys["enc"] ?? [], keys["mac"] ?? []] }
        var identifier: Data { Data() }
        func send(_ data: Data) async throws -> Data { throw TransportError.unsupported("send") }

        func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
            let data = apdu.data.map { [UInt8]($0) } ?? []
            switch apdu.ins {
            case 0xA4 where apdu.cla == 0, 0x22: return ResponseAPDU(statusWord: 0x9000)
            case 0xB0 where apdu.cla == 0:
                return ResponseAPDU(data: Data(cardAccess.dropFirst(Int(apdu.p2)).prefix(apdu.ne ?? 0)), statusWord: 0x9000)
            case 0x86:
                let object = try TLV.first(in: data[...]).children().first
                let step = object.map { Int($0.tag - 0x81) / 2 + 2 } ?? 1
                let words: [[UInt8]]
                do { words = try peer.step(step, object.map { Array($0.value) } ?? []) } catch is IndependentPeer.Failure {
                    return ResponseAPDU(statusWord: 0x6300)
                }
                if words.count == 3 {
                    keys.log("enc", words[1])
                    keys.log("mac", words[2])
                }
                return ResponseAPDU(
                    data: Data(TLV.encode(0x7C, TLV.encode(UInt32(0x80 + 2 * (step - 1)), words[0]))), statusWord: 0x9000)
            default: throw TransportError(.tagConnectionLost, detail: "the peer knows PACE alone")
            }
        }
    }

    @Test(arguments: ways) func ourReaderAgreesWithItsChip(way: Way) async throws {
        let chip = Chip(try IndependentPeer(.chip, bits: way.bits, parameters: way.parameters, can: "123456"), way)
        let keys = KeyCollector()
        await #expect(throws: NFCError.tagConnectionLost) {
            try await CardEnvironment.with(CardEnvironment(keySink: keys)) {
                try await CoreExtendedNFC.readPassport(transport: chip, access: .can("123456"), dataGroups: [.com])
            }
        }
        #expect(keys["pace.ksEnc"]?.count == way.bits / 8)
        #expect([keys["pace.ksEnc"], keys["pace.ksMac"]] == chip.agreed)
    }

    @Test func itsChipRefusesAnotherCAN() async throws {
        let way = Self.ways[0]
        let chip = Chip(try IndependentPeer(.chip, bits: way.bits, parameters: way.parameters, can: "123457"), way)
        await #expect(throws: NFCError.paceFailed("")) {
            try await CoreExtendedNFC.readPassport(transport: chip, access: .can("123456"), dataGroups: [.com])
        }
    }

    @Test(arguments: ways) func ourChipAgreesWithItsTerminal(way: Way) async throws {
        let card = try virtualPassport("pace=\(way.option)&dg=1")
        let peer = try IndependentPeer(.terminal, bits: way.bits, parameters: way.parameters, can: "123456")
        func general(_ tag: UInt32?, _ value: [UInt8], isLast: Bool = false) async throws -> [UInt8] {
            let data = TLV.encode(0x7C, tag.map { TLV.encode($0, value) } ?? [])
            let answer = try await card.sendAPDU(
                try CommandAPDU(cla: isLast ? 0x00 : 0x10, ins: 0x86, p1: 0, p2: 0, data: Data(data), ne: 256))
            #expect(answer.isSuccess)
            return Array(try TLV.first(in: [UInt8](answer.data)[...]).children()[0].value)
        }
        let selection = TLV.encode(0x80, way.identifier) + octets("830102")
        #expect(try await card.sendAPDU(CommandAPDU(cla: 0, ins: 0x22, p1: 0xC1, p2: 0xA4, data: Data(selection))).isSuccess)
        let mapping = try peer.step(1, try await general(nil, []))[0]
        let key = try peer.step(2, try await general(0x81, mapping))[0]
        let token = try peer.step(3, try await general(0x83, key))[0]
        // It checks our chip's token, then tells its keys: the channel is opened with them.
        let agreed = try peer.step(4, try await general(0x85, token, isLast: true))
        let channel = SecureMessagingTransport(
            over: card,
            try SecureMessaging(
                cipher: .aes, encryptionKey: agreed[1], authenticationKey: agreed[2],
                sendSequenceCounter: [UInt8](repeating: 0, count: 16)))
        #expect(try await channel.sendAPDU(command("00A4040C07A0000002471001")).isSuccess)
        #expect(try await channel.sendAPDU(command("00A4020C020101")).isSuccess)
    }
}
