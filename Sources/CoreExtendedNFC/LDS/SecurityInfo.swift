// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials

/// One SecurityInfo of EF.CardAccess, EF.CardSecurity or DG14 (ICAO 9303-11 9.2): what the chip offers.
public struct SecurityInfo: Sendable, Codable, Equatable {
    /// Object identifier of the protocol.
    public let protocolOID: String
    /// The first INTEGER after it, mostly a version.
    public let version: Int?
    /// The second INTEGER, where there is one: a parameter or key identifier.
    public let parameterId: Int?
    /// The whole SEQUENCE as it stands in the file.
    public let raw: Data

    public var securityProtocol: SecurityProtocol { SecurityProtocol(objectIdentifier: protocolOID) }

    /// Whether it offers PACE (PACEInfo; its domain parameters are not meant).
    public var isPACE: Bool { securityProtocol.isPACE }

    /// What it says, by the rules of its kind; ``SecurityInfoContent/unknown`` for identifiers that this library does not know.
    public var content: SecurityInfoContent {
        // Checked when the file was parsed; only one decoded from elsewhere can fail here.
        guard let object = try? DataObject(Array(raw), tag: 0x30) else { return .unknown }
        return (try? SecurityInfoContent(object)) ?? .unknown
    }

    /// The infos of a file: a SET of SEQUENCEs, each beginning with an object identifier. Octets after the SET are filler; unknown
    /// identifiers are kept.
    ///
    /// - Throws: ``LDSError``.
    public static func parse(_ file: [UInt8], name: String = "EF.CardAccess") throws(LDSError) -> [SecurityInfo] {
        try understanding(name) { () throws(DataObjectError) in try parse(try fileObject(file, tag: 0x31)) }
    }

    /// The infos of DG14: `6E` around the SET (9303-10 4.7.14).
    ///
    /// - Throws: ``LDSError``.
    public static func parse(dataGroup14 file: [UInt8]) throws(LDSError) -> [SecurityInfo] {
        try understanding("DG14") { () throws(DataObjectError) in
            let object = try fileObject(file, tag: 0x6E)
            return try parse(try object.children(filler: true).element(0, of: object))
        }
    }

    static func parse(_ set: DataObject) throws(DataObjectError) -> [SecurityInfo] {
        var infos: [SecurityInfo] = []
        for object in try set.elements(of: 0x31) { infos.append(try SecurityInfo(object)) }
        return infos
    }

    private init(_ object: DataObject) throws(DataObjectError) {
        let fields = try object.elements(of: 0x30)
        protocolOID = try fields.element(0, of: object).objectIdentifier()
        let integers = fields.dropFirst().filter { $0.tag == 0x02 }.map { try? $0.smallInteger() }
        version = integers.first ?? nil
        parameterId = integers.dropFirst().first ?? nil
        raw = Data(object.octets)
        _ = try SecurityInfoContent(object)
    }
}
