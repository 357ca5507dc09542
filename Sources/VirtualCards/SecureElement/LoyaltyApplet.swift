// SPDX-License-Identifier: MIT

import Octets

/// A loyalty applet: `80 10` tells the points, `80 20` adds and `80 30` redeems two octets of them. Each change is a transaction event: 01 or
/// 02, the points of the change (2), those there are now (4).
///
/// Personalization takes BER-TLV: `DF03` points to begin with, four octets.
struct LoyaltyApplet: ElementApplet {
    static let moduleAID = SpecimenPackage.loyalty.moduleAID
    static let memory = (nonVolatile: 256, volatile: 32)

    private var points: UInt32 = 0

    init(parameters: [UInt8]) throws(StatusWord) {}

    init?(stored: [UInt8]) {
        guard stored.count == 4 else { return nil }
        points = stored.reduce(0) { $0 << 8 | UInt32($1) }
    }

    var stored: [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: points >> UInt32($0)) } }

    mutating func select(_ context: AppletContext) -> [UInt8] { TLV.encode(0x50, Array("TAPDECK LOYALTY".utf8)) }

    mutating func store(_ data: [UInt8], isLast: Bool) throws(StatusWord) {
        guard let objects = try? TLV.parse(data, TLVRules(allowsFiller: false)), objects.count == 1, objects[0].tag == 0xDF03,
            objects[0].value.count == 4
        else { throw .wrongData }
        points = objects[0].value.reduce(0) { $0 << 8 | UInt32($1) }
    }

    mutating func process(_ command: CardCommand, _ context: inout AppletContext) throws(StatusWord) -> [UInt8] {
        guard command.cla & 0xFC == 0x80 else { throw .classNotSupported }
        guard command.ins != 0x10 else { return stored }
        guard command.ins == 0x20 || command.ins == 0x30 else { throw .instructionNotSupported }
        guard command.data.count == 2 else { throw .wrongLength }
        let change = UInt32(command.data[0]) << 8 | UInt32(command.data[1])
        let (sum, overflows) =
            command.ins == 0x20 ? points.addingReportingOverflow(change) : points.subtractingReportingOverflow(change)
        guard !overflows else { throw .conditionsNotSatisfied }
        points = sum
        context.events.append([command.ins == 0x20 ? 0x01 : 0x02] + command.data + stored)
        return stored
    }
}
