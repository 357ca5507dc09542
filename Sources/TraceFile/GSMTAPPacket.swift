// SPDX-License-Identifier: MIT

/// What a GSMTAP packet of version 2 says of a SIM (libosmocore's gsmtap.h): the version, the header's length in words of
/// four octets, the type (4, SIM), at offset 12 the sub-type, and after the header what passed.
enum GSMTAPPacket: Equatable {
    /// A command and its answer, one behind the other.
    case exchange(ArraySlice<UInt8>)
    case atr(ArraySlice<UInt8>)
    /// Protocol selection (ISO/IEC 7816-3 9), or a piece of a T=0 command that is sent as pieces.
    case piece(ArraySlice<UInt8>, RowDirection, String)
    /// Another type than SIM: the radio side.
    case radio
    /// A sub-type of SIM that is not known.
    case unknown(UInt8)
    /// Another version.
    case version(UInt8)
    /// No GSMTAP header, or one that is longer than the packet.
    case malformed

    /// The UDP port that IANA gave to it.
    static let port: UInt16 = 4729

    init(_ payload: ArraySlice<UInt8>) {
        guard let version = payload.first else {
            self = .malformed
            return
        }
        guard version == 2 else {
            self = version == 1 || version == 3 ? .version(version) : .malformed
            return
        }
        let start = payload.startIndex
        guard payload.count >= 16, payload[start + 1] >= 4, Int(payload[start + 1]) * 4 <= payload.count else {
            self = .malformed
            return
        }
        guard payload[start + 2] == 4 else {
            self = .radio
            return
        }
        let body = payload.dropFirst(Int(payload[start + 1]) * 4)
        switch payload[start + 12] {
        // The first SIMtrace knew no sub-type for an ATR. Classes 3B and 3F are reserved (ISO/IEC 7816-4 5.4.1).
        case 0: self = Self.isATR(body) ? .atr(body) : .exchange(body)
        case 1: self = .atr(body)
        case 2: self = .piece(body, .sent, "PPS")
        case 3: self = .piece(body, .received, "PPS")
        case 4, 5: self = .piece(body, .sent, "TPDU")
        case 6, 7: self = .piece(body, .received, "TPDU")
        case let other: self = .unknown(other)
        }
    }

    /// Whether the octets are an ATR from its first to its last (ISO/IEC 7816-3 8.2).
    static func isATR(_ octets: ArraySlice<UInt8>) -> Bool {
        guard octets.count >= 2, octets.count <= 33, octets.first == 0x3B || octets.first == 0x3F else { return false }
        let start = octets.startIndex
        var place = 1
        var more = octets[start + 1]
        let historical = Int(more & 0x0F)
        var hasCheck = false
        while true {
            place += (more >> 4).nonzeroBitCount
            // TD is the last of its group, and says which follow and which protocol is meant.
            guard more & 0x80 != 0 else { break }
            guard place < octets.count else { return false }
            more = octets[start + place]
            if more & 0x0F != 0 { hasCheck = true }
        }
        return place + 1 + historical + (hasCheck ? 1 : 0) == octets.count
    }
}
