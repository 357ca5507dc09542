// SPDX-License-Identifier: MIT

import Octets

@testable import TraceFile

/// GSMTAP packets in frames of each link type, and captures of them.
enum Captured {
    static func gsmtap(_ body: String, subType: UInt8 = 0, version: UInt8 = 2, type: UInt8 = 4) throws -> [UInt8] {
        [version, 4, type, 0, 0, 0, 0, 0, 0, 0, 0, 0, subType, 0, 0, 0] + (try Hex.decode(body))
    }

    static func udp(_ payload: [UInt8], from source: UInt16 = 50_000, to port: UInt16 = 4729) -> [UInt8] {
        bigEndian(source) + bigEndian(port) + bigEndian(UInt16(payload.count + 8)) + [0, 0] + payload
    }

    static func ip4(_ udp: [UInt8], place: UInt16 = 0, options: [UInt8] = []) -> [UInt8] {
        let first = [UInt8(0x45 + options.count / 4), 0]
        let length = bigEndian(UInt16(20 + options.count + udp.count))
        return first + length + [0, 0] + bigEndian(place) + [64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1] + options + udp
    }

    /// With a hop-by-hop and a destination options header in front of UDP.
    static func ip6(_ udp: [UInt8]) -> [UInt8] {
        let extensions: [UInt8] = [60, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0]
        let address = [UInt8](repeating: 0, count: 15) + [1]
        return [0x60, 0, 0, 0] + bigEndian(UInt16(extensions.count + udp.count)) + [0, 64] + address + address + extensions + udp
    }

    /// The frame of a link type that carries `packet`.
    static func frame(_ packet: [UInt8], linkType: UInt16) -> [UInt8] {
        let isSix = packet[0] >> 4 == 6
        let type: [UInt8] = isSix ? [0x86, 0xDD] : [0x08, 0x00]
        let addresses = [UInt8](repeating: 0xEE, count: 12)
        return switch linkType {
        case 0: [isSix ? 30 : 2, 0, 0, 0] + packet
        case 108: [0, 0, 0, isSix ? 30 : 2] + packet
        // With padding of the link behind the packet.
        case 1: addresses + type + packet + [0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA]
        case 113: [0, 0, 3, 4, 0, 6] + [UInt8](repeating: 0, count: 8) + type + packet
        case 276: type + [0, 0, 0, 0, 0, 1, 3, 4, 0, 6] + [UInt8](repeating: 0, count: 8) + packet
        default: packet
        }
    }

    static func tagged(_ packet: [UInt8]) -> [UInt8] {
        [UInt8](repeating: 0xEE, count: 12) + [0x88, 0xA8, 0, 7, 0x81, 0, 0, 9, 8, 0] + packet
    }

    /// A classic capture, a packet a second from 1,000,000,000 on, each with the fraction 123,456.
    static func classic(
        _ frames: [[UInt8]], linkType: UInt16 = 1, isBigEndian: Bool = false, isNano: Bool = false
    ) -> [UInt8] {
        func word(_ value: UInt32) -> [UInt8] { isBigEndian ? littleEndian(value).reversed() : littleEndian(value) }
        func half(_ value: UInt16) -> [UInt8] { isBigEndian ? bigEndian(value) : bigEndian(value).reversed() }
        var octets = word(isNano ? 0xA1B2_3C4D : 0xA1B2_C3D4) + half(2) + half(4) + word(0) + word(0) + word(262_144)
        octets += word(UInt32(linkType))
        for (index, frame) in frames.enumerated() {
            octets += word(1_000_000_000 + UInt32(index)) + word(123_456) + word(UInt32(frame.count)) + word(UInt32(frame.count))
            octets += frame
        }
        return octets
    }

    /// Exchanges as a classic capture of Ethernet.
    static func exchanges(_ bodies: String...) throws -> [UInt8] {
        classic(try bodies.map { frame(ip4(udp(try gsmtap($0))), linkType: 1) })
    }

    static func bigEndian(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(truncatingIfNeeded: value)] }
}

/// The exchanges of a trace's `apdu:0`, as `command>answer` in hex; an ATR and other rows without a command stand after `>`.
func exchanges(_ trace: Trace) -> [String] {
    var lines: [String] = []
    var last: UInt64?
    for row in trace.rows where row.interface == 0 && row.dissector == "iso7816" {
        let text = Hex.encode(row.body)
        if row.direction == .sent {
            lines.append("\(text)>")
        } else if row.packetID == last {
            lines[lines.count - 1] += text
        } else {
            lines.append(">\(text)")
        }
        last = row.packetID
    }
    return lines
}
