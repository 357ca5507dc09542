// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// The files of a passport application (ICAO 9303-10 4.6, 4.7), by file identifier.
struct PassportFiles: Sendable {
    static let application: [UInt8] = [0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01]
    static let common: UInt16 = 0x011E
    static let security: UInt16 = 0x011D
    /// EF.CVCA.
    static let authorities: UInt16 = 0x011C
    /// EF.ATR/INFO, in the master file.
    static let attributes: UInt16 = 0x2F01
    /// In the master file.
    static let cardAccess: UInt16 = 0x011C
    /// In the master file.
    static let cardSecurity: UInt16 = 0x011D

    private let contents: [UInt16: [UInt8]]
    /// The files outside the application.
    var masterFile: [UInt16: [UInt8]] = [:]

    init(_ contents: [UInt16: [UInt8]]) { self.contents = contents }

    subscript(identifier: UInt16) -> [UInt8]? { contents[identifier] }

    /// The specimen: EF.COM, EF.SOD signed by `issuer`, and those data groups that `groups` names.
    ///
    /// - Parameter given: the data groups that hold keys: DG14, DG15.
    static func specimen(
        _ zone: MachineReadableZone = .specimen, groups: [Int] = [1, 2], photoLength: Int = 0, given: [Int: [UInt8]] = [:],
        issuer: SpecimenIssuer
    ) throws(CryptoError) -> PassportFiles {
        var random = CardRandom(seed: issuer.seed, use: "files")
        var dataGroups = given
        for group in groups {
            dataGroups[group] =
                dataGroups[group] ?? SpecimenGroups.content(group, zone, photoLength: photoLength, random: &random)
        }
        var contents = [
            common: commonData(dataGroups.keys.sorted()), security: try issuer.documentSecurityObject(dataGroups),
        ]
        for (group, content) in dataGroups { contents[0x0100 | UInt16(group)] = content }
        return PassportFiles(contents)
    }

    /// Card capabilities with extended lengths, and 1,000 octets at most in commands and answers (ICAO 9303-10 3.11.2).
    static let capabilities =
        TLV.encode(0x47, [0x94, 0x01, 0x40]) + TLV.encode(0x7F66, [0x02, 0x02, 0x03, 0xE8, 0x02, 0x02, 0x03, 0xE8])

    /// EF.COM as in ICAO 9303-11 D.4: LDS version 1.6, Unicode version 4.0.0, the data groups' tags.
    private static func commonData(_ groups: [Int]) -> [UInt8] {
        let tags = groups.map { UInt8(truncatingIfNeeded: SpecimenGroups.tag($0)) }
        return TLV.encode(
            0x60, TLV.encode(0x5F01, Array("0106".utf8)) + TLV.encode(0x5F36, Array("040000".utf8)) + TLV.encode(0x5C, tags))
    }
}
