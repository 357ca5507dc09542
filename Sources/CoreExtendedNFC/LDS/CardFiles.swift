// SPDX-License-Identifier: MIT

public import CardCrypto
public import FoundationEssentials

/// EF.CardSecurity: SecurityInfos signed by the issuer (ICAO 9303-11 9.2.11, BSI TR-03110 part 3 A.1.2).
public struct CardSecurity: Sendable, Equatable {
    public static let contentType = "0.4.0.127.0.7.3.2.1"

    public let securityInfos: [SecurityInfo]
    public let signedData: SignedData

    /// - Throws: ``LDSError``. No signature is verified here: see ``PassiveAuthentication``.
    public init(_ file: [UInt8]) throws(LDSError) {
        let signed = try understanding("EF.CardSecurity") { () throws(DataObjectError) in try SignedData(der: file) }
        signedData = signed
        securityInfos = try understanding("EF.CardSecurity") { () throws(DataObjectError) in
            guard signed.contentType == Self.contentType else {
                throw DataObjectError(.value, path: [0x30], offset: 0, "signed data of type \(signed.contentType)")
            }
            do throws(DataObjectError) { return try SecurityInfo.parse(try DataObject(signed.content)) } catch {
                throw error.moved(by: signed.contentOffset ?? 0)
            }
        }
    }
}

/// An application of EF.DIR (ISO/IEC 7816-4 12.2.3): `61 { 4F name, 50 label, .. }`.
public struct ApplicationTemplate: Sendable, Codable, Equatable {
    public let identifier: Data
    public let label: String?
    /// The whole template.
    public let raw: Data

    /// - Throws: ``LDSError``.
    public static func parse(directory file: [UInt8]) throws(LDSError) -> [ApplicationTemplate] {
        try understanding("EF.DIR") { () throws(DataObjectError) in
            var templates: [ApplicationTemplate] = []
            var rest = file[...]
            // Zeros and FF fill the records of a file that is not full.
            while let first = rest.first(where: { $0 != 0 && $0 != 0xFF }), first == 0x61 || first == 0x4F {
                guard let start = rest.firstIndex(of: first) else { break }
                let object = try DataObject(inFile: rest[start...])
                rest = rest[object.octets.endIndex...]
                let parts = object.tag == 0x61 ? try object.children(filler: true) : [object]
                guard let identifier = parts.first(0x4F) else { throw object.fault(.missing, "no application identifier (4F)") }
                templates.append(
                    ApplicationTemplate(
                        identifier: Data(identifier.value), label: parts.first(0x50).map { text($0.value) },
                        raw: Data(object.octets)))
            }
            if let index = rest.firstIndex(where: { $0 != 0 && $0 != 0xFF }) {
                throw DataObjectError(.tag, path: [], offset: index, "octets that are no application template (61)")
            }
            return templates
        }
    }
}

/// EF.ATR/INFO: what the card says of lengths and chaining (ICAO 9303-10 3.11.2, ISO/IEC 7816-4 12.7.1).
public struct CardCapabilities: Sendable, Codable, Equatable {
    /// The three octets of card capabilities (`47`); nil when not there.
    public let capabilities: [UInt8]?
    /// `7F66`: octets of a command APDU and of a response APDU at most, in the extended form.
    public let longestCommand: Int?
    public let longestResponse: Int?

    /// Whether extended lengths may be used.
    public var supportsExtendedLength: Bool { third & 0x40 != 0 || longestCommand != nil }
    /// Whether commands may be chained.
    public var supportsChaining: Bool { third & 0x80 != 0 }

    private var third: UInt8 { capabilities.flatMap { $0.count >= 3 ? $0[2] : nil } ?? 0 }

    /// - Throws: ``LDSError``.
    public init(attributes file: [UInt8]) throws(LDSError) {
        self = try understanding("EF.ATR/INFO") { () throws(DataObjectError) in
            var objects: [DataObject] = []
            var rest = file[...]
            while let start = rest.firstIndex(where: { $0 != 0 }), !rest[start...].allSatisfy({ $0 == 0xFF }) {
                let object = try DataObject(inFile: rest[start...])
                objects.append(object)
                rest = rest[object.octets.endIndex...]
            }
            let lengths = try objects.first(0x7F66)?.children(filler: true).filter { $0.tag == 0x02 } ?? []
            return CardCapabilities(
                capabilities: objects.first(0x47).map { Array($0.value) },
                longestCommand: try lengths.first?.smallInteger(), longestResponse: try lengths.dropFirst().first?.smallInteger())
        }
    }

    private init(capabilities: [UInt8]?, longestCommand: Int?, longestResponse: Int?) {
        self.capabilities = capabilities
        self.longestCommand = longestCommand
        self.longestResponse = longestResponse
    }
}

/// A data group whose contents are the issuer's own or are not used by any state: DG6, DG8 to DG10 and DG13 (ICAO 9303-10 4.7).
public struct OptionalDataGroup: Sendable, Codable, Equatable {
    /// The data objects inside, whole; empty for contents that are no TLV, as DG13's may be.
    public let objects: [Data]
    /// What stands inside the outer tag.
    public let content: Data

    /// - Throws: ``LDSError`` when the outer tag is not that of `group`.
    public init(_ file: [UInt8], of group: DataGroupId) throws(LDSError) {
        self = try understanding(group.displayName) { () throws(DataObjectError) in
            let object = try fileObject(file, tag: UInt32(group.tag))
            return OptionalDataGroup(
                objects: ((try? object.children(filler: true)) ?? []).map { Data($0.octets) }, content: Data(object.value))
        }
    }

    private init(objects: [Data], content: Data) {
        self.objects = objects
        self.content = content
    }
}
