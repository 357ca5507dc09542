// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// The files of a passport application (ICAO 9303-10 4.6, 4.7), by file identifier.
struct PassportFiles: Sendable {
    static let application: [UInt8] = [0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01]
    static let common: UInt16 = 0x011E
    static let security: UInt16 = 0x011D
    /// In the master file.
    static let cardAccess: UInt16 = 0x011C
    /// In the master file.
    static let cardSecurity: UInt16 = 0x011D

    private let contents: [UInt16: [UInt8]]
    /// The files outside the application.
    var masterFile: [UInt16: [UInt8]] = [:]

    init(_ contents: [UInt16: [UInt8]]) { self.contents = contents }

    subscript(identifier: UInt16) -> [UInt8]? { contents[identifier] }

    /// The specimen: EF.COM, EF.SOD signed by `issuer`, and those of DG1 and DG2 that `groups` names.
    static func specimen(
        _ zone: MachineReadableZone = .specimen, groups: [Int] = [1, 2], photoLength: Int = 0, issuer: SpecimenIssuer
    ) throws(CryptoError) -> PassportFiles {
        var dataGroups: [Int: [UInt8]] = [:]
        for group in groups {
            dataGroups[group] = group == 1 ? dataGroup1(zone) : dataGroup2(FaceImage.jpeg(length: photoLength))
        }
        var contents = [common: commonData(groups), security: try issuer.documentSecurityObject(dataGroups)]
        for (group, content) in dataGroups { contents[0x0100 | UInt16(group)] = content }
        return PassportFiles(contents)
    }

    /// EF.COM as in ICAO 9303-11 D.4: LDS version 1.6, Unicode version 4.0.0, the data groups' tags.
    private static func commonData(_ groups: [Int]) -> [UInt8] {
        let tags: [UInt8] = groups.sorted().map { $0 == 1 ? 0x61 : 0x75 }
        return TLV.encode(
            0x60, TLV.encode(0x5F01, Array("0106".utf8)) + TLV.encode(0x5F36, Array("040000".utf8)) + TLV.encode(0x5C, tags))
    }

    private static func dataGroup1(_ zone: MachineReadableZone) -> [UInt8] {
        TLV.encode(0x61, TLV.encode(0x5F1F, zone.octets))
    }

    /// One face (9303-10 4.7.2): a biometric header of ISO/IEC 7816-11 and a face record of ISO/IEC 19794-5:2005.
    private static func dataGroup2(_ image: [UInt8]) -> [UInt8] {
        let header = TLV.encode(
            0xA1,
            TLV.encode(0x80, [0x01, 0x01]) + TLV.encode(0x81, [0x02]) + TLV.encode(0x87, [0x01, 0x01])
                + TLV.encode(0x88, [0x00, 0x08]))
        let template = TLV.encode(0x7F60, header + TLV.encode(0x5F2E, faceRecord(image)))
        return TLV.encode(0x75, TLV.encode(0x7F61, TLV.encode(0x02, [0x01]) + template))
    }

    private static func faceRecord(_ image: [UInt8]) -> [UInt8] {
        func number(_ value: Int, _ octets: Int) -> [UInt8] {
            (0..<octets).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        // Nothing is said of points, sex, eyes, hair, features, expression and pose.
        let face = number(20 + 12 + image.count, 4) + [UInt8](repeating: 0, count: 16)
        // Full frontal, JPEG, 8-bit grey, source, device and quality unspecified.
        let information = [0x01, 0x00] + number(FaceImage.width, 2) + number(FaceImage.height, 2) + [0x03, 0x00, 0, 0, 0, 0]
        return Array("FAC\0010\0".utf8) + number(14 + 20 + 12 + image.count, 4) + number(1, 2) + face + information + image
    }
}
