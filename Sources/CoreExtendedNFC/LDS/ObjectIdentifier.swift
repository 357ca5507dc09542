// SPDX-License-Identifier: MIT

/// The dotted text of an object identifier's octets (X.690 8.19); nil when they are none. An arc has at most 63 bits.
func objectIdentifierText(_ octets: some Collection<UInt8>) -> String? {
    guard !octets.isEmpty, octets.count <= 64 else { return nil }
    var arcs: [UInt64] = []
    var arc: UInt64 = 0
    var inside = false
    for octet in octets {
        guard arc < 1 << 56 else { return nil }
        arc = arc << 7 | UInt64(octet & 0x7F)
        inside = octet & 0x80 != 0
        if inside { continue }
        if arcs.isEmpty {
            let first = min(arc / 40, 2)
            arcs = [first, arc - first * 40]
        } else {
            arcs.append(arc)
        }
        arc = 0
    }
    return inside ? nil : arcs.map(String.init).joined(separator: ".")
}
