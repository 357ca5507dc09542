// SPDX-License-Identifier: MIT

import Octets

/// The data objects of a protected answer: `[85|87] [99] 8E`, unknown ones among them (ICAO 9303-11 9.8.4, 9.8.5).
struct ProtectedAnswer {
    /// The padded data objects before DO 8E as they stand in the message: what the MAC covers.
    let authenticated: [UInt8]
    let mac: [UInt8]
    private let sealed: TLV?
    private let status: TLV?

    init(_ octets: [UInt8]) throws(SecureMessagingError) {
        let objects: [TLV]
        do {
            objects = try TLV.parse(octets, TLVRules(allowsFiller: false))
        } catch {
            throw SecureMessagingError(.objects, "the answer is no run of data objects: \(error)")
        }
        var sealed: TLV?
        var status: TLV?
        var mac: TLV?
        for object in objects {
            guard mac == nil else { throw Self.outOfOrder(object) }
            switch object.tag {
            case 0x85, 0x87:
                guard sealed == nil, status == nil else { throw Self.outOfOrder(object) }
                sealed = object
            case 0x99:
                guard status == nil else { throw Self.outOfOrder(object) }
                status = object
            case 0x8E: mac = object
            default: break
            }
        }
        guard let mac, mac.value.count == 8 else {
            throw SecureMessagingError(.macMissing, "the answer of \(octets.count) bytes has no MAC of 8 bytes")
        }
        self.authenticated = Array(octets[..<mac.offset])
        self.mac = Array(mac.value)
        self.sealed = sealed
        self.status = status
    }

    /// SW1-SW2 of DO 99.
    func requiredStatusWord() throws(SecureMessagingError) -> UInt16 {
        guard let value = status?.value, value.count == 2, let high = value.first, let low = value.last else {
            throw SecureMessagingError(.statusMissing, "the answer has no status word of 2 bytes under its MAC")
        }
        return UInt16(high) << 8 | UInt16(low)
    }

    /// The sealed octets without padding indicator; nil when the answer has none.
    func cryptogram(blockLength: Int) throws(SecureMessagingError) -> [UInt8]? {
        guard let sealed else { return nil }
        var octets = sealed.value
        // DO 87 has the indicator 01. DO 85 has none, but chips that send one cannot be ruled out: the length tells.
        if sealed.tag == 0x87 || octets.count % blockLength == 1 {
            guard octets.popFirst() == 0x01 else {
                throw SecureMessagingError(
                    .cryptogram, "DO \(hexText([UInt8(truncatingIfNeeded: sealed.tag)])) has no padding indicator 01")
            }
        }
        guard !octets.isEmpty, octets.count % blockLength == 0 else {
            throw SecureMessagingError(.cryptogram, "\(octets.count) sealed bytes are not whole blocks of \(blockLength)")
        }
        return Array(octets)
    }

    private static func outOfOrder(_ object: TLV) -> SecureMessagingError {
        SecureMessagingError(
            .objects,
            "data object \(String(object.tag, radix: 16, uppercase: true)) twice or out of order at byte \(object.offset)")
    }
}
