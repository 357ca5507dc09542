// SPDX-License-Identifier: MIT

public import FoundationEssentials
import Octets

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
    public var hashName: String? {
        switch hashAlgorithm {
        case "1.3.14.3.2.26": "SHA-1"
        case "2.16.840.1.101.3.4.2.4": "SHA-224"
        case "2.16.840.1.101.3.4.2.1": "SHA-256"
        case "2.16.840.1.101.3.4.2.2": "SHA-384"
        case "2.16.840.1.101.3.4.2.3": "SHA-512"
        default: nil
        }
    }

    /// Whether the data group has a hash.
    public func lists(_ dataGroup: DataGroupId) -> Bool { dataGroupHashes[dataGroup] != nil }

    /// - Throws: ``LDSError``.
    public init(_ file: [UInt8]) throws(LDSError) {
        let name = "EF.SOD"
        var walk = DERWalk(name: name)
        // 77 { SEQUENCE ContentInfo }; stored copies may lack the outer tag.
        let content: TLV
        if file.first == 0x77 {
            content = try walk.only(0x30, in: try fileObject(file, tag: 0x77, in: name))
        } else {
            content = try fileObject(file, tag: 0x30, in: name)
        }
        // ContentInfo { OID, [0] SignedData { version, digests, EncapsulatedContentInfo { OID, [0] OCTET STRING }, .. } }
        let contentInfo = try walk.sequence(content)
        let signedData = try walk.sequence(try walk.only(0x30, in: try walk.element(1, of: contentInfo, tag: 0xA0)))
        let encapsulated = try walk.sequence(try walk.element(2, of: signedData, tag: 0x30))
        contentType = try walk.objectIdentifier(try walk.element(0, of: encapsulated, tag: 0x06))
        let wrapped = try walk.sequence(try walk.element(1, of: encapsulated, tag: 0xA0))
        let octets = try walk.octetString(try walk.element(0, of: wrapped))

        walk.name = "EF.SOD's list of hashes"
        let list = try walk.sequence(try fileObject(octets, tag: 0x30, in: walk.name))
        let algorithm = try walk.sequence(try walk.element(1, of: list, tag: 0x30))
        hashAlgorithm = try walk.objectIdentifier(try walk.element(0, of: algorithm, tag: 0x06))
        var hashes: [DataGroupId: Data] = [:]
        for entry in try walk.sequence(try walk.element(2, of: list, tag: 0x30)) {
            let pair = try walk.sequence(entry)
            let number = try walk.element(0, of: pair, tag: 0x02).value
            let hash = try walk.element(1, of: pair, tag: 0x04).value
            guard number.count == 1, let value = number.first, let dataGroup = DataGroupId(number: Int(value)) else { continue }
            guard hashes[dataGroup] == nil else {
                throw LDSError(.value, "\(walk.name): \(dataGroup.displayName) stands there twice")
            }
            hashes[dataGroup] = Data(hash)
        }
        guard !hashes.isEmpty else { throw LDSError(.missing, "\(walk.name) is empty") }
        dataGroupHashes = hashes
        let versions = list.count > 3 && list[3].tag == 0x30 ? try walk.sequence(list[3]) : []
        ldsVersion = versions.first.map { text($0.value) }
        unicodeVersion = versions.dropFirst().first.map { text($0.value) }
    }
}

/// Steps through DER with errors that name the file.
private struct DERWalk {
    var name: String

    func sequence(_ object: TLV) throws(LDSError) -> [TLV] { try objects(in: object, of: name) }

    func element(_ index: Int, of list: [TLV], tag: UInt32? = nil) throws(LDSError) -> TLV {
        guard index < list.count else { throw LDSError(.missing, "\(name): element \(index + 1) of \(list.count) is not there") }
        if let tag, list[index].tag != tag {
            throw LDSError(
                .tag, offset: list[index].offset, "\(name): tag \(hex(list[index].tag)) where \(hex(tag)) was expected")
        }
        return list[index]
    }

    func only(_ tag: UInt32, in object: TLV) throws(LDSError) -> TLV { try element(0, of: try sequence(object), tag: tag) }

    func objectIdentifier(_ object: TLV) throws(LDSError) -> String {
        guard let text = objectIdentifierText(object.value) else {
            throw LDSError(.value, offset: object.offset, "\(name): octets that are no object identifier")
        }
        return text
    }

    /// A primitive octet string, or one in parts.
    func octetString(_ object: TLV) throws(LDSError) -> [UInt8] {
        switch object.tag {
        case 0x04: return Array(object.value)
        case 0x24:
            var joined: [UInt8] = []
            for part in try sequence(object) { joined += try element(0, of: [part], tag: 0x04).value }
            return joined
        default: throw LDSError(.tag, offset: object.offset, "\(name): tag \(hex(object.tag)) where octets were expected")
        }
    }

    private func hex(_ tag: UInt32) -> String { String(tag, radix: 16, uppercase: true) }
}
