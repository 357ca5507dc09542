// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// An identity applet: READ BINARY of the holder's data, INTERNAL AUTHENTICATE with the card's key.
///
/// Personalization takes BER-TLV: `DF02` a piece of the data, in order, up to 2,048 octets together; `DF01` an AES key of 16 octets.
struct IdentityApplet: ElementApplet {
    static let moduleAID = SpecimenPackage.identity.moduleAID
    static let memory = (nonVolatile: 2_560, volatile: 64)
    private static let longestFile = 2_048

    private var file: [UInt8] = []
    private var key: [UInt8] = []

    init(parameters: [UInt8]) throws(StatusWord) {}

    init?(stored: [UInt8]) {
        var reader = FieldReader(stored)
        do throws(OutOfOctets) {
            file = try reader.field()
            key = try reader.field()
        } catch {
            return nil
        }
    }

    var stored: [UInt8] {
        var writer = FieldWriter()
        writer.add(file)
        writer.add(key)
        return writer.octets
    }

    mutating func select(_ context: AppletContext) -> [UInt8] { TLV.encode(0x50, Array("TAPDECK ID".utf8)) }

    mutating func store(_ data: [UInt8], isLast: Bool) throws(StatusWord) {
        guard let objects = try? TLV.parse(data, TLVRules(allowsFiller: false)) else { throw .wrongData }
        for object in objects {
            switch object.tag {
            case 0xDF02:
                guard file.count + object.value.count <= Self.longestFile else { throw .notEnoughSpace }
                file += object.value
            case 0xDF01 where object.value.count == 16: key = Array(object.value)
            default: throw .wrongData
            }
        }
        guard !isLast || !file.isEmpty else { throw .wrongData }
    }

    mutating func process(_ command: CardCommand, _ context: inout AppletContext) throws(StatusWord) -> [UInt8] {
        switch (command.cla & 0xFC, command.ins) {
        case (0x00, 0xB0):
            guard !file.isEmpty else { throw .conditionsNotSatisfied }
            guard command.p1 & 0x80 == 0 else { throw .wrongParameters }
            let offset = Int(command.parameters)
            guard offset < file.count else { throw .offsetOutside }
            return Array(file[offset...].prefix(command.ne ?? 256))
        case (0x00, 0x88):
            guard command.parameters == 0, (8...32).contains(command.data.count) else { throw .wrongData }
            guard !key.isEmpty, let mac = try? CMAC.authenticate(command.data, key: key) else { throw .conditionsNotSatisfied }
            return mac
        default: throw .instructionNotSupported
        }
    }
}
