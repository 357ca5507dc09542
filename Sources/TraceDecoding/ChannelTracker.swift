// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import Octets
import TagTransport
import TraceFile

/// Follows basic access control and the secure messaging that it opens, from both sides' messages and the keys at hand
/// (ICAO 9303-11 4.3 and 9.8).
///
/// This is the built-in view of these two protocols. It never fails: a message that it cannot open is *sealed*, one whose
/// check does not hold says so.
struct ChannelTracker {
    /// How a message stands.
    enum Opening: Sendable, Equatable {
        /// Nothing to open.
        case plain
        /// Protected, and no key at hand.
        case sealed
        /// Opened, and its check held.
        case opened
        /// The keys are at hand and its check does not hold.
        case failed(String)
    }

    struct OpenedCommand {
        var opening: Opening = .plain
        /// The command inside.
        var command: CommandAPDU?
    }

    struct OpenedResponse {
        var opening: Opening = .plain
        /// The response inside.
        var response: ResponseAPDU?
    }

    /// Message authentication codes that were checked, and how many of them held.
    private(set) var checked = 0
    private(set) var held = 0
    /// The key exchange has just ended, and both sides proved that they know the key.
    private(set) var agreed = false
    private(set) var isOpen = false

    private struct Channel {
        var enc: [UInt8]
        var mac: [UInt8]
        /// The send sequence counter before the next message, and what else it may be after a bare status word: some
        /// chips count such an exchange and some do not.
        var counter: UInt64
        var otherCounters: [UInt64] = []
    }

    /// How many document keys are tried on one message: a hostile file may hold any number.
    private static let mostSeeds = 64

    private let seeds: [[UInt8]]
    /// Session keys that the recorder kept, by the exchange after which they hold.
    private let sessionKeys: [UInt32: (enc: [UInt8], mac: [UInt8], counter: UInt64)]
    private var challenge: [UInt8]?
    private var cryptogram: [UInt8]?
    private var documentKeys: (enc: [UInt8], mac: [UInt8])?
    private var channel: Channel?

    init(secrets: SecretStore) {
        var known: Set<[UInt8]> = []
        seeds = secrets.keys(named: "bac.seed").map(\.octets).filter { known.insert($0).inserted }.prefix(Self.mostSeeds) + []
        func keys(_ name: String, count: Int) -> [UInt32: [UInt8]] {
            let records = secrets.keys(named: name).lazy.filter { $0.octets.count == count }
            return Dictionary(records.map { ($0.packetID, $0.octets) }, uniquingKeysWith: { first, _ in first })
        }
        let macs = keys("secureMessaging.mac", count: 16)
        let counters = keys("secureMessaging.ssc", count: 8)
        var sessions: [UInt32: (enc: [UInt8], mac: [UInt8], counter: UInt64)] = [:]
        for (packet, enc) in keys("secureMessaging.enc", count: 16) {
            guard let mac = macs[packet], let counter = counters[packet] else { continue }
            sessions[packet] = (enc, mac, counter.reduce(0) { $0 << 8 | UInt64($1) })
        }
        sessionKeys = sessions
    }

    /// The card was reset, removed or newly connected.
    mutating func reset() {
        challenge = nil
        cryptogram = nil
        documentKeys = nil
        channel = nil
        isOpen = false
    }

    mutating func push(command: CommandAPDU) -> OpenedCommand {
        agreed = false
        if isProtected(command) { return open(command) }
        // A plain command in an open channel ends it (ICAO 9303-11 9.8.3).
        channel = nil
        isOpen = false
        guard command.ins == 0x82, command.cla & 0xF0 == 0, let data = command.data, data.count == 40 else {
            cryptogram = nil
            return OpenedCommand()
        }
        let octets = Array(data)
        cryptogram = octets
        documentKeys = nil
        guard !seeds.isEmpty else { return OpenedCommand(opening: .sealed) }
        checked += 1
        for seed in seeds {
            guard let keys = derive(seed), let mac = try? RetailMAC.authenticate(Array(octets[..<32]), key: keys.mac) else { continue }
            guard mac == Array(octets[32...]) else { continue }
            documentKeys = keys
            held += 1
            if let plain = try? BlockCipher.tripleDES.decrypt(Array(octets[..<32]), key: keys.enc), let challenge,
                Array(plain[8..<16]) != challenge
            {
                return OpenedCommand(opening: .failed("RND.IC is not the challenge that the card sent"))
            }
            return OpenedCommand(opening: .opened)
        }
        return OpenedCommand(opening: .failed("M_IFD is wrong for the password at hand"))
    }

    mutating func push(response: ResponseAPDU, to command: CommandAPDU, packet: UInt64?) -> OpenedResponse {
        defer {
            if let packet, let number = UInt32(exactly: packet), let keys = sessionKeys[number], channel == nil {
                channel = Channel(enc: keys.enc, mac: keys.mac, counter: keys.counter)
                isOpen = true
            }
        }
        if isProtected(command) { return open(response) }
        if command.ins == 0x84, response.isSuccess, response.data.count == 8 { challenge = Array(response.data) }
        guard command.ins == 0x82, let sent = cryptogram, response.isSuccess, response.data.count == 40 else { return OpenedResponse() }
        cryptogram = nil
        guard let keys = documentKeys else { return OpenedResponse(opening: seeds.isEmpty ? .sealed : .plain) }
        return agree(sent: sent, answer: Array(response.data), keys: keys)
    }

    // MARK: - Basic access control

    private func derive(_ seed: [UInt8]) -> (enc: [UInt8], mac: [UInt8])? {
        guard let enc = try? KeyDerivation.key(from: seed, counter: KeyDerivation.encryption, for: .tripleDES),
            let mac = try? KeyDerivation.key(from: seed, counter: KeyDerivation.authentication, for: .tripleDES)
        else { return nil }
        return (enc, mac)
    }

    private mutating func agree(sent: [UInt8], answer: [UInt8], keys: (enc: [UInt8], mac: [UInt8])) -> OpenedResponse {
        checked += 1
        guard let mac = try? RetailMAC.authenticate(Array(answer[..<32]), key: keys.mac), mac == Array(answer[32...]) else {
            return OpenedResponse(opening: .failed("M_IC is wrong"))
        }
        held += 1
        guard let ifd = try? BlockCipher.tripleDES.decrypt(Array(sent[..<32]), key: keys.enc),
            let icc = try? BlockCipher.tripleDES.decrypt(Array(answer[..<32]), key: keys.enc)
        else { return OpenedResponse(opening: .sealed) }
        guard Array(icc[8..<16]) == Array(ifd[..<8]) else {
            return OpenedResponse(opening: .failed("the card answered another RND.IFD"))
        }
        guard Array(icc[..<8]) == Array(ifd[8..<16]) else {
            return OpenedResponse(opening: .failed("the card answered another RND.IC"))
        }
        let seed = zip(ifd[16..<32], icc[16..<32]).map { $0 ^ $1 }
        guard let session = derive(seed) else { return OpenedResponse(opening: .sealed) }
        let counter = (icc[4..<8] + ifd[4..<8]).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        channel = Channel(enc: session.enc, mac: session.mac, counter: counter)
        isOpen = true
        agreed = true
        return OpenedResponse(opening: .opened)
    }

    // MARK: - Secure messaging

    /// First interindustry class with the header under the MAC (ISO/IEC 7816-4 5.4.1).
    private func isProtected(_ command: CommandAPDU) -> Bool { command.cla & 0xEC == 0x0C }

    private mutating func open(_ command: CommandAPDU) -> OpenedCommand {
        guard let channel else { return OpenedCommand(opening: .sealed) }
        checked += 1
        guard let data = command.data, let objects = try? TLV.parse(Array(data), TLVRules(allowsFiller: false)),
            let mac = objects.last, mac.tag == 0x8E
        else { return OpenedCommand(opening: .failed("no DO 8E at the end")) }
        let header = Padding.pad([command.cla, command.ins, command.p1, command.p2], to: 8)
        let covered = header + Array(data)[..<mac.offset]
        let counters = [channel.counter] + channel.otherCounters
        guard
            let counter = counters.first(where: { counter in
                (try? RetailMAC.authenticate(octets(counter &+ 1) + covered, key: channel.mac)) == Array(mac.value)
            })
        else {
            self.channel?.counter = channel.counter &+ 1
            return OpenedCommand(opening: .failed("the command MAC is wrong at SSC \(Hex.encode(octets(channel.counter &+ 1)))"))
        }
        held += 1
        self.channel?.counter = counter &+ 1
        self.channel?.otherCounters = []
        var field: [UInt8]?
        var ne: Int?
        for object in objects {
            switch object.tag {
            case 0x85, 0x87: field = decrypt(object, channel)
            case 0x97: ne = expected(object.value)
            default: break
            }
        }
        let inner = try? CommandAPDU(
            cla: command.cla & 0xF3, ins: command.ins, p1: command.p1, p2: command.p2, data: field.map { Data($0) }, ne: ne
        )
        return OpenedCommand(opening: .opened, command: inner)
    }

    private mutating func open(_ response: ResponseAPDU) -> OpenedResponse {
        guard let channel else { return OpenedResponse(opening: .sealed) }
        guard !response.data.isEmpty else {
            // A bare status word: nothing says whether the chip counted this exchange, so both counters stay open.
            self.channel?.otherCounters = [channel.counter &- 1, channel.counter &+ 1]
            return OpenedResponse(opening: .plain, response: response)
        }
        checked += 1
        let data = Array(response.data)
        self.channel?.counter = channel.counter &+ 1
        guard let objects = try? TLV.parse(data, TLVRules(allowsFiller: false)), let mac = objects.last, mac.tag == 0x8E else {
            return OpenedResponse(opening: .failed("no DO 8E at the end"))
        }
        let counter = octets(channel.counter &+ 1)
        guard (try? RetailMAC.authenticate(counter + data[..<mac.offset], key: channel.mac)) == Array(mac.value) else {
            return OpenedResponse(opening: .failed("the response MAC is wrong at SSC \(Hex.encode(counter))"))
        }
        held += 1
        var field: [UInt8] = []
        var status = response.statusWord
        for object in objects {
            switch object.tag {
            case 0x85, 0x87: field = decrypt(object, channel) ?? []
            case 0x99 where object.value.count == 2: status = object.value.reduce(0) { $0 << 8 | UInt16($1) }
            default: break
            }
        }
        return OpenedResponse(opening: .opened, response: ResponseAPDU(data: Data(field), statusWord: status))
    }

    /// The plaintext of DO 87 (after its padding indicator) or DO 85.
    private func decrypt(_ object: TLV, _ channel: Channel) -> [UInt8]? {
        var cryptogram = Array(object.value)
        if cryptogram.count % 8 == 1 { cryptogram.removeFirst() }
        guard let plain = try? BlockCipher.tripleDES.decrypt(cryptogram, key: channel.enc) else { return nil }
        return Padding.unpad(plain)
    }

    private func expected(_ value: ArraySlice<UInt8>) -> Int? {
        let number = value.reduce(0) { $0 << 8 | Int($1) }
        switch value.count {
        case 1: return number == 0 ? 256 : number
        case 2: return number == 0 ? 65_536 : number
        default: return nil
        }
    }

    private func octets(_ counter: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: counter >> (56 - 8 * UInt64($0))) } }
}
