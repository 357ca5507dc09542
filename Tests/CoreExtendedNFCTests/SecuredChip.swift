// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import Synchronization

/// A passport chip for tests that need what no honest chip does: it opens and seals by itself (pinned to the octets of
/// ICAO 9303-11 appendix D by ``SecuredChipTests``), and a test may put its own answer in place of any plain one.
final class SecuredChip: NFCTagTransport {
    enum Answer {
        /// Protected as it should be.
        case plain([UInt8])
        /// Sent as it stands.
        case bare([UInt8])
        case removed
    }

    /// The plain command, its number from power-on, and what an honest chip would answer.
    typealias Quirk = @Sendable (_ number: Int, _ command: CommandAPDU, _ honest: [UInt8]) -> Answer

    private struct State {
        var number = 0
        var application = false
        var selected: [UInt8]?
        var challenge: [UInt8]?
        var keys: (enc: [UInt8], mac: [UInt8], counter: UInt64)?
        var log: [CommandAPDU] = []
    }

    private let files: [UInt16: [UInt8]]
    private let cardAccess: [UInt8]?
    private let quirk: Quirk?
    private let state = Mutex(State())

    init(files: [DataGroupId: [UInt8]], cardAccess: [UInt8]? = nil, quirk: Quirk? = nil) {
        self.files = Dictionary(uniqueKeysWithValues: files.map { ($0.key.fileIdentifier, $0.value) })
        self.cardAccess = cardAccess
        self.quirk = quirk
    }

    var identifier: Data { Data() }
    /// The plain commands, in their order.
    var commands: [CommandAPDU] { state.withLock { $0.log } }
    func send(_ data: Data) async throws -> Data { throw TransportError.unsupported("send") }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        try ResponseAPDU(bytes: try state.withLock { try answer(apdu, &$0) })
    }

    private func answer(_ apdu: CommandAPDU, _ state: inout State) throws -> [UInt8] {
        state.number += 1
        guard apdu.cla == 0x0C, var keys = state.keys else {
            state.log.append(apdu)
            return try sent(apdu, try plain(apdu, &state), state.number) { $0 }
        }
        keys.counter &+= 1
        let objects = try TLV.parse(Array(apdu.data ?? Data()))
        let header = [apdu.cla, apdu.ins, apdu.p1, apdu.p2, 0x80, 0, 0, 0]
        let covered = objects.filter { $0.tag != 0x8E }.flatMap { TLV.encode($0.tag, $0.value) }
        let mac = try RetailMAC.authenticate(octets(keys.counter) + header + covered, key: keys.mac)
        guard objects.first(where: { $0.tag == 0x8E }).map({ Array($0.value) }) == mac else { return [0x69, 0x88] }
        var content: [UInt8]?
        if let sealed = objects.first(where: { $0.tag == 0x87 || $0.tag == 0x85 }) {
            let octets = Array(sealed.tag == 0x87 ? sealed.value.dropFirst() : sealed.value)
            content = Padding.unpad(try BlockCipher.tripleDES.decrypt(octets, key: keys.enc))
        }
        let ne = objects.first { $0.tag == 0x97 }.map { $0.value.reduce(0) { $0 << 8 | Int($1) } }
        let command = try CommandAPDU(
            cla: 0, ins: apdu.ins, p1: apdu.p1, p2: apdu.p2, data: content.map { Data($0) }, ne: ne.map { $0 == 0 ? 256 : $0 })
        state.log.append(command)
        let honest = try plain(command, &state)
        let before = keys.counter &- 1
        keys.counter &+= 1
        let counter = keys.counter
        let reply = try sent(command, honest, state.number) { plain in
            var objects: [UInt8] = []
            if plain.count > 2 {
                let sealed = try BlockCipher.tripleDES.encrypt(Padding.pad(Array(plain.dropLast(2)), to: 8), key: keys.enc)
                objects += command.ins & 1 == 1 ? TLV.encode(0x85, sealed) : TLV.encode(0x87, [1] + sealed)
            }
            objects += TLV.encode(0x99, plain.suffix(2))
            objects += TLV.encode(0x8E, try RetailMAC.authenticate(self.octets(counter) + objects, key: keys.mac))
            return objects + plain.suffix(2)
        }
        // A chip that refuses in plain keeps its counter, as some do (wire facts 3.2).
        state.keys = (keys.enc, keys.mac, reply.count == 2 ? before : counter)
        return reply
    }

    private func sent(_ command: CommandAPDU, _ honest: [UInt8], _ number: Int, protect: ([UInt8]) throws -> [UInt8]) throws
        -> [UInt8]
    {
        switch quirk?(number, command, honest) ?? .plain(honest) {
        case .plain(let octets): return try protect(octets)
        case .bare(let octets): return octets
        case .removed: throw TransportError(.tagConnectionLost, code: 0x8010_0069, detail: "removed")
        }
    }

    private func plain(_ command: CommandAPDU, _ state: inout State) throws -> [UInt8] {
        let data = Array(command.data ?? Data())
        switch (command.ins, command.p1) {
        case (0xA4, 0x00): return [0x90, 0x00]
        case (0xA4, 0x04):
            state.application = true
            return [0x90, 0x00]
        case (0xA4, 0x02):
            guard data.count == 2 else { return [0x6A, 0x80] }
            let identifier = UInt16(data[0]) << 8 | UInt16(data[1])
            if !state.application {
                state.selected = identifier == 0x011C ? cardAccess : nil
                return state.selected == nil ? [0x6A, 0x82] : [0x90, 0x00]
            }
            guard state.keys != nil else { return [0x69, 0x82] }
            state.selected = files[identifier]
            return state.selected == nil ? [0x6A, 0x82] : [0x90, 0x00]
        case (0x84, _):
            let challenge = octets(AppendixD.challenge)
            state.challenge = challenge
            return challenge + [0x90, 0x00]
        case (0x82, _): return try authenticate(data, &state)
        case (0xB0, _), (0xB1, _):
            guard let file = state.selected else { return [0x69, 0x86] }
            let isOdd = command.ins == 0xB1
            let offset =
                isOdd
                ? try TLV.first(in: data[...]).value.reduce(0) { $0 << 8 | Int($1) } : Int(command.p1) << 8 | Int(command.p2)
            guard offset < file.count else { return [0x6B, 0x00] }
            let ne = command.ne ?? 256
            let piece = file[offset...].prefix(isOdd ? ne - (ne - 2 < 0x80 ? 2 : 3) : ne)
            return (isOdd ? TLV.encode(0x53, piece) : Array(piece)) + [0x90, 0x00]
        default: return [0x6D, 0x00]
        }
    }

    private func authenticate(_ data: [UInt8], _ state: inout State) throws -> [UInt8] {
        let seed = Array(try Digest.sha1.hash(Array(AppendixD.mrzKey.utf8))[..<16])
        let enc = try KeyDerivation.key(from: seed, counter: 1, for: .tripleDES)
        let mac = try KeyDerivation.key(from: seed, counter: 2, for: .tripleDES)
        guard let challenge = state.challenge, data.count == 40,
            try RetailMAC.authenticate(Array(data[..<32]), key: mac) == Array(data[32...])
        else { return [0x63, 0x00] }
        let plain = try BlockCipher.tripleDES.decrypt(Array(data[..<32]), key: enc)
        guard Array(plain[8..<16]) == challenge else { return [0x63, 0x00] }
        let own = octets("0B4F80323EB3191CB04970CB4052790B")
        let shared = zip(plain[16...], own).map { $0 ^ $1 }
        let sealed = try BlockCipher.tripleDES.encrypt(challenge + plain[..<8] + own, key: enc)
        state.keys = (
            try KeyDerivation.key(from: shared, counter: 1, for: .tripleDES),
            try KeyDerivation.key(from: shared, counter: 2, for: .tripleDES),
            (challenge[4...] + plain[4..<8]).reduce(0) { $0 << 8 | UInt64($1) }
        )
        return sealed + (try RetailMAC.authenticate(sealed, key: mac)) + [0x90, 0x00]
    }

    private func octets(_ counter: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: counter >> (56 - 8 * UInt64($0))) }
    }
    private func octets(_ hex: String) -> [UInt8] { (try? Hex.decode(hex)) ?? [] }
}
