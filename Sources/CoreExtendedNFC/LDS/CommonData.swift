// SPDX-License-Identifier: MIT

import CardCrypto

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
        self = try understanding("EF.COM") { () throws(DataObjectError) in try CommonData(try fileObject(file, tag: 0x60)) }
    }

    private init(_ object: DataObject) throws(DataObjectError) {
        let inner = try object.children(filler: true)
        func version(_ tag: UInt32) -> String? {
            inner.first(tag).map { text($0.value.filter { (0x20...0x7E).contains($0) }) }
        }
        guard let list = inner.first(0x5C) else { throw object.fault(.missing, "no list of tags (5C)") }
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
        self = try understanding("DG1") { () throws(DataObjectError) in
            let object = try fileObject(file, tag: 0x61)
            guard let zone = try object.children(filler: true).first(0x5F1F) else {
                throw object.fault(.missing, "no MRZ (5F1F)")
            }
            do throws(MRZError) { return try MRZData(zone.value) } catch {
                throw DataObjectError(.value, path: zone.path, offset: zone.value.startIndex + error.offset, "\(error)")
            }
        }
    }
}
