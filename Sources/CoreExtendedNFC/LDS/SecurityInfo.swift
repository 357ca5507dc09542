// SPDX-License-Identifier: MIT

public import FoundationEssentials
import Octets

/// One SecurityInfo of EF.CardAccess or DG14 (ICAO 9303-11 9.2): what the chip offers.
public struct SecurityInfo: Sendable, Codable, Equatable {
    /// Object identifier of the protocol.
    public let protocolOID: String
    /// The first INTEGER after it, mostly a version.
    public let version: Int?
    /// The second INTEGER, where there is one: a parameter or key identifier.
    public let parameterId: Int?
    /// The whole SEQUENCE as it stands in the file.
    public let raw: Data

    /// Whether it offers PACE (PACEInfo; its domain parameters are not meant).
    public var isPACE: Bool {
        let prefix = "0.4.0.127.0.7.2.2.4."
        guard protocolOID.hasPrefix(prefix) else { return false }
        return protocolOID.dropFirst(prefix.count).split(separator: ".").count == 2
    }

    /// The infos of a file: a SET of SEQUENCEs, each beginning with an object identifier. Octets after the SET are filler; unknown
    /// identifiers are kept.
    ///
    /// - Throws: ``LDSError``.
    public static func parse(_ file: [UInt8], name: String = "EF.CardAccess") throws(LDSError) -> [SecurityInfo] {
        var infos: [SecurityInfo] = []
        for object in try objects(in: try fileObject(file, tag: 0x31, in: name), of: name) {
            guard object.tag == 0x30 else {
                throw LDSError(.tag, offset: object.offset, "\(name): tag \(String(object.tag, radix: 16)) where 30 was expected")
            }
            let fields = try objects(in: object, of: name)
            guard let first = fields.first, first.tag == 0x06, let identifier = objectIdentifierText(first.value) else {
                throw LDSError(.value, offset: object.offset, "\(name): a SecurityInfo without object identifier")
            }
            let integers = fields.dropFirst().filter { $0.tag == 0x02 }.map { integer($0.value) }
            infos.append(
                SecurityInfo(
                    protocolOID: identifier, version: integers.first ?? nil, parameterId: integers.dropFirst().first ?? nil,
                    raw: Data(TLV.encode(0x30, object.value))))
        }
        return infos
    }

    private static func integer(_ octets: ArraySlice<UInt8>) -> Int? {
        guard (1...7).contains(octets.count) else { return nil }
        return octets.reduce(0) { $0 << 8 | Int($1) }
    }
}
