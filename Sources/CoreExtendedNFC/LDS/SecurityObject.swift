// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials

/// What EF.SOD says about the data groups (ICAO 9303-10 4.6.2), as it stands there: no signature is checked here.
public struct SecurityObject: Sendable, Codable, Equatable {
    /// The content type of what is signed; `2.23.136.1.1.1` in documents of today.
    public let contentType: String
    /// Object identifier of the hash algorithm.
    public let hashAlgorithm: String
    /// The hash of each data group listed.
    public let dataGroupHashes: [DataGroupId: Data]
    /// From version 1 of the structure on, signed versions: `0108`.
    public let ldsVersion: String?
    public let unicodeVersion: String?

    /// `SHA-256`; nil for an algorithm that is none of SHA-1 and SHA-2.
    public var hashName: String? { Digest(objectIdentifier: hashAlgorithm)?.rawValue }

    /// Whether the data group has a hash.
    public func lists(_ dataGroup: DataGroupId) -> Bool { dataGroupHashes[dataGroup] != nil }

    /// - Parameter file: EF.SOD, or the CMS inside alone as stored copies have it.
    /// - Throws: ``LDSError``.
    public init(_ file: [UInt8]) throws(LDSError) {
        let signed = try Self.signedData(of: file)
        do { try self.init(signed) } catch { throw LDSError(error, in: "EF.SOD's list of hashes") }
    }

    /// The CMS of EF.SOD.
    ///
    /// - Throws: ``LDSError``.
    static func signedData(of file: [UInt8]) throws(LDSError) -> SignedData {
        try understanding("EF.SOD") { () throws(DataObjectError) in
            guard file.first == 0x77 else { return try SignedData(der: file) }
            let object = try fileObject(file, tag: 0x77)
            let content = Array(object.value)
            // Some issuers write indefinite lengths inside.
            if content.count > 1, content[1] == 0x80 {
                do throws(DataObjectError) { return try SignedData(der: content) } catch {
                    throw error.moved(by: object.value.startIndex)
                }
            }
            return try SignedData(try object.inner(tag: 0x30))
        }
    }

    /// The LDSSecurityObject that is signed (9303-10 4.6.2.3).
    init(_ signed: SignedData) throws(DataObjectError) {
        do throws(DataObjectError) {
            let list = try DataObject(signed.content)
            let parts = try list.elements(of: 0x30)
            let algorithm = try parts.element(1, of: list, tag: 0x30)
            hashAlgorithm = try algorithm.children().element(0, of: algorithm).objectIdentifier()
            var hashes: [DataGroupId: Data] = [:]
            for entry in try parts.element(2, of: list).elements(of: 0x30) {
                let pair = try entry.elements(of: 0x30)
                let number = try pair.element(0, of: entry, tag: 0x02).value
                let hash = try pair.element(1, of: entry, tag: 0x04).value
                guard number.count == 1, let value = number.first, let dataGroup = DataGroupId(number: Int(value)) else {
                    continue
                }
                guard hashes[dataGroup] == nil else { throw entry.fault(.value, "\(dataGroup.displayName) stands there twice") }
                hashes[dataGroup] = Data(hash)
            }
            guard !hashes.isEmpty else { throw list.fault(.missing, "no hash of any data group") }
            dataGroupHashes = hashes
            let versions = parts.count > 3 && parts[3].tag == 0x30 ? try parts[3].children() : []
            ldsVersion = versions.first.map { text($0.value) }
            unicodeVersion = versions.dropFirst().first.map { text($0.value) }
            contentType = signed.contentType
        } catch { throw error.moved(by: signed.contentOffset ?? 0) }
    }
}
