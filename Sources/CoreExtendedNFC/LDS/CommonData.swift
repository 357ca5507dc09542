// SPDX-License-Identifier: MIT

import Octets

/// EF.COM: which data groups there are (ICAO 9303-10 4.6.1). It is not signed.
public struct CommonData: Sendable, Codable, Equatable {
    /// `0107`: version and update level of the logical data structure.
    public let ldsVersion: String?
    /// `040000`.
    public let unicodeVersion: String?
    public let dataGroups: [DataGroupId]
    /// Tags in the list that name no data group.
    public let unknownTags: [UInt8]

    /// - Throws: ``LDSError``.
    public init(_ file: [UInt8]) throws(LDSError) {
        let name = "EF.COM"
        let inner = try objects(in: try fileObject(file, tag: 0x60, in: name), of: name, filler: true)
        func version(_ tag: UInt32) -> String? {
            inner.first { $0.tag == tag }.map { text($0.value.filter { (0x20...0x7E).contains($0) }) }
        }
        guard let list = inner.first(where: { $0.tag == 0x5C }) else {
            throw LDSError(.missing, "\(name) has no list of tags (5C)")
        }
        ldsVersion = version(0x5F01)
        unicodeVersion = version(0x5F36)
        dataGroups = list.value.compactMap { tag in DataGroupId(tag: tag).flatMap { $0.number == nil ? nil : $0 } }
        unknownTags = list.value.filter { tag in DataGroupId(tag: tag)?.number == nil }
    }
}

extension MRZData {
    /// The machine readable zone of DG1: `61 { 5F1F characters }` (ICAO 9303-10 4.7.1).
    ///
    /// - Throws: ``LDSError``.
    public init(dataGroup1 file: [UInt8]) throws(LDSError) {
        let inner = try objects(in: try fileObject(file, tag: 0x61, in: "DG1"), of: "DG1", filler: true)
        guard let zone = inner.first(where: { $0.tag == 0x5F1F }) else { throw LDSError(.missing, "DG1 has no MRZ (5F1F)") }
        do { try self.init(zone.value) } catch {
            throw LDSError(.value, offset: zone.offset + zone.headerLength + error.offset, "DG1: \(error)")
        }
    }
}
