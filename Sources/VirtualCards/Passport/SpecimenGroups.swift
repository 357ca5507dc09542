// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// The data groups of the specimen, each with a little of what its standard allows (ICAO 9303-10 4.7).
enum SpecimenGroups {
    /// The numbers that can be asked for; DG14 and DG15 come with what they tell.
    static let numbers: Set<Int> = [1, 2, 3, 4, 5, 7, 11, 12, 13, 14, 15, 16]

    /// The tag of a data group's file (9303-10 table 38).
    static func tag(_ number: Int) -> UInt32 {
        let tags: [UInt32] = [
            0x61, 0x75, 0x63, 0x76, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x6B, 0x6C, 0x6D, 0x6E, 0x6F, 0x70,
        ]
        return tags.indices.contains(number - 1) ? tags[number - 1] : 0x53
    }

    /// DG1, DG2 and those without keys.
    static func content(_ number: Int, _ zone: MachineReadableZone, photoLength: Int, random: inout CardRandom) -> [UInt8]? {
        let value: [UInt8]
        switch number {
        case 1: value = TLV.encode(0x5F1F, zone.octets)
        case 2: value = face(FaceImage.jpeg(length: photoLength))
        // No finger and no iris; random octets make two documents' hashes differ (4.7.3.2).
        case 3, 4: value = TLV.encode(0x7F61, TLV.encode(0x02, [0x00]) + TLV.encode(0x53, random.octets(8)))
        case 5: value = TLV.encode(0x02, [0x01]) + TLV.encode(0x5F40, FaceImage.jpeg())
        case 7: value = TLV.encode(0x02, [0x01]) + TLV.encode(0x5F43, FaceImage.jpeg())
        case 11: value = details([(0x5F0E, "ERIKSSON<<ANNA<MARIA"), (0x5F2B, "19690806"), (0x5F11, "ZENITH<UTOPIA")])
        case 12: value = details([(0x5F19, "UTOPIA<PASSPORT<OFFICE"), (0x5F26, "20200624")])
        case 13: value = TLV.encode(0x53, Array("SPECIMEN".utf8))
        case 16: value = person()
        default: return nil
        }
        return TLV.encode(tag(number), value)
    }

    /// DG14: a SET of SecurityInfos (9303-11 9.2).
    static func securityOptions(_ infos: [[UInt8]]) -> [UInt8] { TLV.encode(tag(14), DER.set(infos)) }

    private static func details(_ fields: [(tag: UInt32, text: String)]) -> [UInt8] {
        let tags = fields.flatMap { [UInt8(truncatingIfNeeded: $0.tag >> 8), UInt8(truncatingIfNeeded: $0.tag)] }
        return TLV.encode(0x5C, tags) + fields.flatMap { TLV.encode($0.tag, Array($0.text.utf8)) }
    }

    private static func person() -> [UInt8] {
        let fields: [(UInt32, String)] = [
            (0x5F50, "20200624"), (0x5F51, "ERIKSSON<<SVEN"), (0x5F52, "00<555<0100"), (0x5F53, "ZENITH<1"),
        ]
        return TLV.encode(0x02, [0x01]) + TLV.encode(0xA1, fields.flatMap { TLV.encode($0.0, Array($0.1.utf8)) })
    }

    /// One face (4.7.2): a biometric header of ISO/IEC 7816-11 and a face record of ISO/IEC 19794-5:2005.
    private static func face(_ image: [UInt8]) -> [UInt8] {
        let header = TLV.encode(
            0xA1,
            TLV.encode(0x80, [0x01, 0x01]) + TLV.encode(0x81, [0x02]) + TLV.encode(0x87, [0x01, 0x01])
                + TLV.encode(0x88, [0x00, 0x08]))
        let template = TLV.encode(0x7F60, header + TLV.encode(0x5F2E, faceRecord(image)))
        return TLV.encode(0x7F61, TLV.encode(0x02, [0x01]) + template)
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
