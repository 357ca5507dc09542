// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials

/// DG11: more about the holder (ICAO 9303-10 4.7.11). Texts are as stored: `<` stands between parts, `<<` between names.
public struct AdditionalPersonalDetails: Sendable, Codable, Equatable {
    /// `5F0E`, in the document's own script.
    public let fullName: String?
    /// `5F0F`, one text for each.
    public let otherNames: [String]
    public let personalNumber: String?
    /// `YYYYMMDD`.
    public let dateOfBirth: String?
    public let placeOfBirth: String?
    public let address: String?
    public let telephone: String?
    public let profession: String?
    public let title: String?
    public let personalSummary: String?
    /// `5F16`: proof of citizenship.
    public let proofOfCitizenship: DocumentImage?
    public let otherTravelDocNumbers: String?
    public let custodyInfo: String?

    /// - Throws: ``LDSError``.
    public init(dataGroup11 file: [UInt8]) throws(LDSError) {
        self = try understanding("DG11") { () throws(DataObjectError) in try Self(try DetailFields(file, tag: 0x6B)) }
    }

    private init(_ fields: DetailFields) throws(DataObjectError) {
        fullName = fields.text(0x5F0E)
        otherNames = try fields.group(of: 0x5F0F)
        personalNumber = fields.text(0x5F10)
        dateOfBirth = try fields.date(0x5F2B)
        placeOfBirth = fields.text(0x5F11)
        address = fields.text(0x5F42)
        telephone = fields.text(0x5F12)
        profession = fields.text(0x5F13)
        title = fields.text(0x5F14)
        personalSummary = fields.text(0x5F15)
        proofOfCitizenship = fields.image(0x5F16)
        otherTravelDocNumbers = fields.text(0x5F17)
        custodyInfo = fields.text(0x5F18)
    }

    /// What is there of it in text, by name.
    public var texts: [String: String] {
        [
            "fullName": fullName, "otherNames": otherNames.isEmpty ? nil : otherNames.joined(separator: ", "),
            "personalNumber": personalNumber, "dateOfBirth": dateOfBirth, "placeOfBirth": placeOfBirth, "address": address,
            "telephone": telephone, "profession": profession, "title": title, "personalSummary": personalSummary,
            "otherTravelDocNumbers": otherTravelDocNumbers, "custodyInfo": custodyInfo,
        ].compactMapValues { $0 }
    }
}

/// DG12: more about the document (ICAO 9303-10 4.7.12).
public struct AdditionalDocumentDetails: Sendable, Codable, Equatable {
    public let issuingAuthority: String?
    /// `YYYYMMDD`.
    public let dateOfIssue: String?
    /// `5F1A`, one text for each person.
    public let otherPersons: [String]
    public let endorsements: String?
    public let taxExitRequirements: String?
    /// `5F1D`.
    public let frontImage: DocumentImage?
    /// `5F1E`.
    public let rearImage: DocumentImage?
    /// `YYYYMMDDHHMMSS`.
    public let dateOfPersonalization: String?
    public let personalizationDeviceSerial: String?

    /// - Throws: ``LDSError``.
    public init(dataGroup12 file: [UInt8]) throws(LDSError) {
        self = try understanding("DG12") { () throws(DataObjectError) in try Self(try DetailFields(file, tag: 0x6C)) }
    }

    private init(_ fields: DetailFields) throws(DataObjectError) {
        issuingAuthority = fields.text(0x5F19)
        dateOfIssue = try fields.date(0x5F26)
        otherPersons = try fields.group(of: 0x5F1A)
        endorsements = fields.text(0x5F1B)
        taxExitRequirements = fields.text(0x5F1C)
        frontImage = fields.image(0x5F1D)
        rearImage = fields.image(0x5F1E)
        dateOfPersonalization = try fields.date(0x5F55, digits: 14)
        personalizationDeviceSerial = fields.text(0x5F56)
    }

    /// What is there of it in text, by name.
    public var texts: [String: String] {
        [
            "issuingAuthority": issuingAuthority, "dateOfIssue": dateOfIssue,
            "otherPersons": otherPersons.isEmpty ? nil : otherPersons.joined(separator: ", "), "endorsements": endorsements,
            "taxExitRequirements": taxExitRequirements, "dateOfPersonalization": dateOfPersonalization,
            "personalizationDeviceSerial": personalizationDeviceSerial,
        ].compactMapValues { $0 }
    }
}

/// A person of DG16 to be told when something happens to the holder (ICAO 9303-10 4.7.16).
public struct PersonToNotify: Sendable, Codable, Equatable {
    /// `YYYYMMDD`: when it was written down.
    public let dateRecorded: String?
    public let name: String?
    public let telephone: String?
    public let address: String?

    /// - Throws: ``LDSError``.
    public static func parse(dataGroup16 file: [UInt8]) throws(LDSError) -> [PersonToNotify] {
        try understanding("DG16") { () throws(DataObjectError) in
            var persons: [PersonToNotify] = []
            // A1, A2 and so on, one for each person.
            for part in try fileObject(file, tag: 0x70).children(filler: true) where (0xA1...0xAF).contains(part.tag) {
                let fields = DetailFields(try part.children(filler: true))
                persons.append(
                    PersonToNotify(
                        dateRecorded: try fields.date(0x5F50), name: fields.text(0x5F51), telephone: fields.text(0x5F52),
                        address: fields.text(0x5F53)))
            }
            return persons
        }
    }
}

/// The data objects of DG11, DG12 and DG16, whose fields have one form.
private struct DetailFields {
    let objects: [DataObject]

    init(_ file: [UInt8], tag: UInt32) throws(DataObjectError) {
        objects = try fileObject(file, tag: tag).children(filler: true)
    }

    init(_ objects: [DataObject]) { self.objects = objects }

    /// The text of a field; of one that is no UTF-8, as ISO 8859-1, in which some states write.
    func text(_ tag: UInt32) -> String? { objects.first(tag).map { Self.text($0.value) } }

    /// Each text of a group `A0 { 02 n, field .. }`, or the field alone where there is no group.
    func group(of tag: UInt32) throws(DataObjectError) -> [String] {
        var fields = objects.filter { $0.tag == tag }
        for part in objects where part.tag == 0xA0 { fields += try part.children(filler: true).filter { $0.tag == tag } }
        return fields.map { Self.text($0.value) }
    }

    /// A date of ASCII digits, or of half as many octets in BCD.
    func date(_ tag: UInt32, digits: Int = 8) throws(DataObjectError) -> String? {
        guard let object = objects.first(tag), !object.value.isEmpty else { return nil }
        if object.value.count == digits, object.value.allSatisfy({ (0x30...0x39).contains($0) }) {
            return Self.text(object.value)
        }
        let nibbles = object.value.flatMap { [$0 >> 4, $0 & 0x0F] }
        guard nibbles.count == digits, nibbles.allSatisfy({ $0 <= 9 }) else {
            throw object.fault(.value, "a date that is neither \(digits) digits nor \(digits / 2) octets of BCD")
        }
        return String(decoding: nibbles.map { 0x30 + $0 }, as: UTF8.self)
    }

    func image(_ tag: UInt32) -> DocumentImage? { objects.first(tag).map { DocumentImage($0.value) } }

    private static func text(_ octets: ArraySlice<UInt8>) -> String {
        String(validating: octets, as: UTF8.self) ?? String(String.UnicodeScalarView(octets.map { Unicode.Scalar($0) }))
    }
}
