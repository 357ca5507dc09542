// SPDX-License-Identifier: MIT

import TraceFile

/// The sealed octets of a row: where they are, and what they are when the secrets are at hand.
public struct SealedPlaces: Sendable, Equatable {
    /// All sealed places of the row's body.
    public let places: [Range<Int>]
    /// The sealed places whose octets are not at hand.
    public let unknown: [Range<Int>]
    /// The row's body with every octet put back that is at hand.
    public let octets: [UInt8]

    /// Reads the comment `tapdeck sealed 5+8,13+2` of a row; places outside the body are passed over.
    public init(row: TraceRow, secrets: SecretStore) {
        let places = row.sealedRanges.map { $0.offset..<$0.offset + $0.length }
        guard !places.isEmpty else {
            self.places = []
            unknown = []
            octets = row.body
            return
        }
        var octets = row.body
        var unknown: [Range<Int>] = []
        let records = row.packetID.map { packet in
            secrets.sealed(packetID: packet, interface: row.interface, direction: row.direction ?? .sent)
        }
        let known = Dictionary(
            (records ?? []).map { (Int($0.offset)..<Int($0.offset) + $0.octets.count, $0.octets) },
            uniquingKeysWith: { first, _ in first }
        )
        for place in places {
            if let secret = known[place] {
                octets.replaceSubrange(place, with: secret)
            } else {
                unknown.append(place)
            }
        }
        self.places = places
        self.unknown = unknown
        self.octets = octets
    }
}
