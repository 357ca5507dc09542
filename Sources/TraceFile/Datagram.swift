// SPDX-License-Identifier: MIT

import Octets

/// A UDP datagram found inside a captured frame.
struct Datagram: Equatable {
    /// Who sent it: the address, then the port.
    var sender: [UInt8]
    var sourcePort: UInt16
    var destinationPort: UInt16
    var payload: ArraySlice<UInt8>
    /// Whether all of the payload is there.
    var state: State

    enum State: Equatable {
        case whole
        /// The capture kept less of the packet than it had.
        case cut
        /// The first of several IP fragments.
        case fragment
    }

    /// The datagram in a frame of a link type; nil for anything else, and for a link type that is not known.
    ///
    /// Ethernet with VLAN tags (1), BSD loopback (0, 108), raw IP (12, 14, 101, 228, 229), Linux cooked capture (113, 276).
    init?(_ frame: ArraySlice<UInt8>, linkType: UInt16) {
        var cursor = ByteCursor(frame)
        do throws(OutOfOctets) {
            switch linkType {
            case 1:
                _ = try cursor.take(12)
                guard try Self.carriesIP(&cursor) else { return nil }
            case 0, 108:
                // The address family in the byte order of the machine that captured. The packet's own first digit tells more.
                _ = try cursor.take(4)
            case 12, 14, 101, 228, 229: break
            case 113:
                _ = try cursor.take(14)
                guard try Self.carriesIP(&cursor) else { return nil }
            case 276:
                guard try Self.carriesIP(&cursor, then: 18) else { return nil }
            default: return nil
            }
            guard let version = cursor.peek.map({ $0 >> 4 }) else { return nil }
            switch version {
            case 4: try self.init(ip4: &cursor)
            case 6: try self.init(ip6: &cursor)
            default: return nil
            }
        } catch {
            return nil
        }
    }

    /// Whether a link type's frames can hold datagrams at all.
    static func isKnown(_ linkType: UInt16) -> Bool { [0, 1, 12, 14, 101, 108, 113, 228, 229, 276].contains(linkType) }

    /// Reads an Ethernet type, over VLAN tags (IEEE 802.1Q 9.6; at most four), then `rest` octets more of the link's header.
    private static func carriesIP(_ cursor: inout ByteCursor, then rest: Int = 0) throws(OutOfOctets) -> Bool {
        var type = try cursor.u16()
        _ = try cursor.take(rest)
        for _ in 0..<4 where [0x8100, 0x88A8, 0x9100].contains(type) {
            _ = try cursor.take(2)
            type = try cursor.u16()
        }
        return type == 0x0800 || type == 0x86DD
    }

    /// RFC 791 3.1.
    private init?(ip4 cursor: inout ByteCursor) throws(OutOfOctets) {
        let headerLength = Int(try cursor.u8() & 0x0F) * 4
        _ = try cursor.u8()
        let length = Int(try cursor.u16())
        _ = try cursor.u16()
        let place = try cursor.u16()
        _ = try cursor.u8()
        let next = try cursor.u8()
        _ = try cursor.u16()
        let source = try cursor.take(4)
        _ = try cursor.take(4)
        guard headerLength >= 20, next == 17, place & 0x1FFF == 0 else { return nil }
        _ = try cursor.take(headerLength - 20)
        // A length of 0 is what a network card is handed that cuts packets up itself.
        let carried = length == 0 ? cursor.remaining : length - headerLength
        try self.init(udp: &cursor, from: source, carried: carried, isFragment: place & 0x2000 != 0)
    }

    /// RFC 8200 3 and 4: the header, then extension headers up to UDP.
    private init?(ip6 cursor: inout ByteCursor) throws(OutOfOctets) {
        _ = try cursor.take(4)
        var carried = Int(try cursor.u16())
        var next = try cursor.u8()
        _ = try cursor.u8()
        let source = try cursor.take(16)
        _ = try cursor.take(16)
        if carried == 0 { carried = cursor.remaining }
        var isFragment = false
        for _ in 0..<16 {
            switch next {
            case 17:
                try self.init(udp: &cursor, from: source, carried: carried, isFragment: isFragment)
                return
            case 0, 43, 60:
                next = try cursor.u8()
                let length = Int(try cursor.u8()) * 8 + 8
                _ = try cursor.take(length - 2)
                carried -= length
            case 44:
                next = try cursor.u8()
                _ = try cursor.u8()
                let place = try cursor.u16()
                _ = try cursor.take(4)
                carried -= 8
                guard place & 0xFFF8 == 0 else { return nil }
                isFragment = place & 1 != 0
            default: return nil
            }
        }
        return nil
    }

    /// RFC 768. `carried` is what the IP header says follows it: padding of the link stands after that.
    private init?(
        udp cursor: inout ByteCursor, from source: ArraySlice<UInt8>, carried: Int, isFragment: Bool
    ) throws(OutOfOctets) {
        let port = try cursor.take(2)
        sender = [UInt8](source) + port
        sourcePort = port.reduce(0) { $0 << 8 | UInt16($1) }
        destinationPort = try cursor.u16()
        let length = Int(try cursor.u16())
        _ = try cursor.u16()
        let wanted = (length == 0 ? carried : length) - 8
        guard wanted >= 0 else { return nil }
        if isFragment {
            payload = cursor.takeRest()
            state = .fragment
        } else {
            state = wanted <= min(cursor.remaining, carried - 8) ? .whole : .cut
            payload = cursor.takeRest().prefix(wanted)
        }
    }
}
