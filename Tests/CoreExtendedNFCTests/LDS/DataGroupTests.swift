// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import Testing
import VirtualCards

@Suite struct DataGroupTests {
    private func group(_ tag: UInt32, _ fields: [(UInt32, [UInt8])]) -> [UInt8] {
        TLV.encode(tag, fields.flatMap { TLV.encode($0.0, $0.1) })
    }

    /// The example of ICAO 9303-10 4.7.11, with the dates of both forms and two other names.
    @Test func dg11IsReadFieldByField() throws {
        let names =
            octets("020102") + TLV.encode(0x5F0F, Array("BROWN<<MARY".utf8)) + TLV.encode(0x5F0F, Array("SMITH<<MARY".utf8))
        let file = group(
            0x6B,
            [
                (0x5C, octets("5F0E5F0F5F2B5F42")), (0x5F0E, Array("SMITH<<JOHN<J".utf8)), (0xA0, names),
                (0x5F2B, octets("19711017")), (0x5F42, Array("123 MAPLE RD<ANYTOWN<MN".utf8)), (0x5F16, octets("FFD8FFE0")),
                (0x5F10, [0xC4]),
            ])
        let details = try AdditionalPersonalDetails(dataGroup11: file)
        #expect(details.fullName == "SMITH<<JOHN<J")
        #expect(details.otherNames == ["BROWN<<MARY", "SMITH<<MARY"])
        #expect(details.dateOfBirth == "19711017")
        #expect(details.proofOfCitizenship?.format == .jpeg)
        // No UTF-8, so ISO 8859-1.
        #expect(details.personalNumber == "Ä")
        #expect(
            details.texts == [
                "fullName": "SMITH<<JOHN<J", "otherNames": "BROWN<<MARY, SMITH<<MARY", "dateOfBirth": "19711017",
                "address": "123 MAPLE RD<ANYTOWN<MN", "personalNumber": "Ä",
            ])
        let ascii = try AdditionalPersonalDetails(dataGroup11: group(0x6B, [(0x5F2B, Array("19711017".utf8))]))
        #expect(ascii.dateOfBirth == "19711017")
    }

    @Test func aDateOfAnotherFormIsFoundAtItsPlace() {
        for date in ["1971", "1971101A", "1971101700", "AA711017"] {
            let file = group(0x6B, [(0x5F0E, Array("A".utf8)), (0x5F2B, octets(date))])
            let error = #expect(throws: LDSError.self) { try AdditionalPersonalDetails(dataGroup11: file) }
            // 6B, length, then 5F0E 01 41.
            #expect(error?.offset == 6 && error?.path == "6B/5F2B" && error?.file == "DG11")
        }
    }

    @Test func dg12IsReadFieldByField() throws {
        let persons = octets("020101") + TLV.encode(0x5F1A, Array("SMITH<<BRENDA<P".utf8))
        let file = group(
            0x6C,
            [
                (0x5C, octets("5F195F26")), (0x5F19, Array("UNITED STATES OF AMERICA".utf8)), (0x5F26, Array("20020531".utf8)),
                (0xA0, persons), (0x5F1D, octets("0000000C6A502020")), (0x5F1E, octets("89504E470D0A1A0A")),
                (0x5F55, octets("20020531235959")), (0x5F56, Array("X1".utf8)),
            ])
        let details = try AdditionalDocumentDetails(dataGroup12: file)
        #expect(details.dateOfPersonalization == "20020531235959")
        #expect(details.frontImage?.format == .jpeg2000 && details.rearImage?.format == .png)
        #expect(
            details.texts == [
                "issuingAuthority": "UNITED STATES OF AMERICA", "dateOfIssue": "20020531", "otherPersons": "SMITH<<BRENDA<P",
                "dateOfPersonalization": "20020531235959", "personalizationDeviceSerial": "X1",
            ])
        #expect(throws: LDSError(.tag)) { try AdditionalDocumentDetails(dataGroup12: group(0x6B, [])) }
    }

    /// ICAO 9303-10 4.7.16.
    @Test func dg16NamesPersons() throws {
        func person(_ name: String) -> [UInt8] {
            TLV.encode(0x5F50, Array("20020101".utf8)) + TLV.encode(0x5F51, Array(name.utf8))
                + TLV.encode(0x5F52, Array("5551".utf8)) + TLV.encode(0x5F53, Array("A<B".utf8))
        }
        let file = group(0x70, [(0x02, [2]), (0xA1, person("SMITH<<CHARLES")), (0xA2, person("BROWN<<MARY"))])
        let persons = try PersonToNotify.parse(dataGroup16: file)
        #expect(persons.map(\.name) == ["SMITH<<CHARLES", "BROWN<<MARY"])
        #expect(persons.first?.dateRecorded == "20020101" && persons.first?.address == "A<B")
    }

    @Test func displayedImagesAreCounted() throws {
        let wsq = octets("FFA0FFA4003A")
        let images = try DocumentImage.signatures(
            dataGroup7: group(0x67, [(0x02, [2]), (0x5F43, octets("FFD8FFE1")), (0x5F43, wsq)]))
        #expect(images.map(\.format) == [.jpeg, .wsq])
        #expect(images.last?.data == Data(wsq))
        #expect(
            try DocumentImage.portraits(dataGroup5: group(0x65, [(0x02, [1]), (0x5F40, octets("FF4FFF51"))])).first?.format
                == .jpeg2000)
        let error = #expect(throws: LDSError.self) {
            try DocumentImage.portraits(dataGroup5: group(0x65, [(0x02, [2]), (0x5F40, octets("FF4FFF51"))]))
        }
        #expect(error?.code == .value && error?.path == "65/02" && error?.offset == 2)
    }

    private func template(_ group: UInt32, _ header: String, _ block: [UInt8], tag: UInt32 = 0x5F2E) -> [UInt8] {
        TLV.encode(
            group,
            TLV.encode(0x7F61, octets("020101") + TLV.encode(0x7F60, TLV.encode(0xA1, octets(header)) + TLV.encode(tag, block))))
    }

    private func big(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - $0))) }
    }

    /// ISO/IEC 19794-4:2005: a header of 32 octets, 14 before each image.
    @Test func fingersAreTakenOutOfTheirRecord() throws {
        let images = [octets("FFA0FFA80001"), octets("FFA0FFA5000203")]
        let views = images.flatMap { big(14 + $0.count, 4) + [UInt8](repeating: 0, count: 10) + $0 }
        var header = Array("FIR\0010\0".utf8) + [UInt8](repeating: 0, count: 24)
        header[18] = 2
        let file = template(0x63, "800201018101088201058702010188020007", header + views)
        let templates = try BiometricTemplate.parse(file, of: .dg3)
        #expect(templates.count == 1 && templates[0].format == .finger && templates[0].subtype == 5)
        #expect(templates[0].images.map(\.data) == images.map { Data($0) })
        #expect(templates[0].images.allSatisfy { $0.format == .wsq && $0.headerFollowed })
    }

    /// ISO/IEC 19794-6:2005: a header of 45 octets, three before each eye, 11 before each image.
    @Test func irisesAreTakenOutOfTheirRecord() throws {
        var header = Array("IIR\0010\0".utf8) + [UInt8](repeating: 0, count: 37)
        header[14] = 2
        let image = octets("FF4FFF510102")
        let eye = [0x02] + big(1, 2) + [UInt8](repeating: 0, count: 7) + big(image.count, 4) + image
        let templates = try BiometricTemplate.parse(template(0x76, "81011088020009", header + eye + eye), of: .dg4)
        #expect(templates.first?.format == .iris)
        #expect(templates.first?.images.map(\.format) == [.jpeg2000, .jpeg2000])
    }

    /// ICAO 9303-10 4.7.3.2: a group without fingers holds random filler, so that its hash tells nothing.
    @Test func aGroupWithoutTemplatesIsEmptyAndNoError() throws {
        let file = TLV.encode(0x63, TLV.encode(0x7F61, octets("020100") + TLV.encode(0x53, [1, 2, 3])))
        #expect(try BiometricTemplate.parse(file, of: .dg3).isEmpty)
        let missing = TLV.encode(0x63, TLV.encode(0x7F61, octets("020101")))
        #expect(throws: LDSError(.missing)) { try BiometricTemplate.parse(missing, of: .dg3) }
    }

    @Test func whatTheFaceRecordSaysIsKept() throws {
        let image = octets("FFD8FFE000104A464946")
        let face =
            big(20 + 8 + 12 + image.count, 4) + big(1, 2) + [0x02, 0x03, 0x04] + octets("000005") + octets("0001")
            + octets("010203") + octets("000000") + [UInt8](repeating: 0, count: 8)
        let information = [0x01, 0x00] + big(337, 2) + big(449, 2) + [0x01, 0x02] + big(7, 2) + big(90, 2)
        let record =
            Array("FAC\0010\0".utf8) + big(14 + face.count + information.count + image.count, 4) + big(1, 2) + face + information
            + image
        let found = try FaceImage(dataGroup2: template(0x75, "88020008", record))
        #expect(found.details?.sex == 2 && found.details?.eyeColour == 3 && found.details?.hairColour == 4)
        #expect(found.details?.features == 5 && found.details?.expression == 1 && found.details?.pose == [1, 2, 3])
        #expect(found.details?.featurePoints == 1 && found.details?.width == 337 && found.details?.height == 449)
        #expect(found.details?.quality == 90 && found.details?.source == 2 && found.details?.imageType == 1)
    }

    @Test func theDirectoryListsApplications() throws {
        let file = octets("61094F07A0000002471001" + "0000" + "61124F0AA000000167455349474E50044142434400" + "FFFF")
        // The second template has one octet too many inside: filler.
        let applications = try ApplicationTemplate.parse(
            directory: octets("61094F07A0000002471001" + "0000" + "61124F0AA000000167455349474E500441424344" + "FFFF"))
        #expect(applications.map { Hex.encode($0.identifier) } == ["A0000002471001", "A000000167455349474E"])
        #expect(applications.map(\.label) == [nil, "ABCD"])
        #expect(throws: LDSError(.tag)) { try ApplicationTemplate.parse(directory: file + [0x33]) }
        #expect(try ApplicationTemplate.parse(directory: []).isEmpty)
    }

    /// ICAO 9303-10 3.11.2: chaining, extended lengths and their limits.
    @Test func attributesTellLengths() throws {
        let capabilities = try CardCapabilities(
            attributes: octets("4303B08080" + "47039401C0" + "7F6608" + "0202055A" + "0202020A" + "0000"))
        #expect(capabilities.longestCommand == 1370 && capabilities.longestResponse == 522)
        #expect(capabilities.supportsExtendedLength && capabilities.supportsChaining)
        #expect(try !CardCapabilities(attributes: octets("4703940100")).supportsExtendedLength)
        #expect(throws: LDSError(.encoding)) { try CardCapabilities(attributes: octets("4705940100")) }
    }

    @Test func groupsOfTheIssuersOwnAreKept() throws {
        let optional = try OptionalDataGroup(octets("6D05040300112233"), of: .dg13)
        #expect(optional.content == data("0403001122"))
        #expect(optional.objects == [data("0403001122")])
        #expect(try OptionalDataGroup(octets("6D0311FFFF"), of: .dg13).objects.isEmpty)
        #expect(throws: LDSError(.tag)) { try OptionalDataGroup(octets("6D00"), of: .dg8) }
    }

    @Test func anErrorNamesFilePathAndOctet() {
        let error = #expect(throws: LDSError.self) { try SecurityInfo.parse(dataGroup14: octets("6E063104300206055A")) }
        #expect(
            error?.detail == "DG14: a value of 5 octets at offset 8, 1 are there, at octet 8 (6E/31/30)"
                || error?.path.hasPrefix("6E") == true)
        #expect(error?.file == "DG14")
    }
}

@Suite struct SecurityInfoTests {
    private func infos(_ hex: String) throws -> [SecurityInfo] { try SecurityInfo.parse(octets(hex)) }

    /// ICAO 9303-11 9.2.3: every mapping, key agreement and cipher that there is.
    @Test func everyPACEIdentifierIsNamed() throws {
        let names: [(String, String)] = [("1", "DH-GM"), ("2", "ECDH-GM"), ("3", "DH-IM"), ("4", "ECDH-IM"), ("6", "ECDH-CAM")]
        let ciphers = ["3DES", "AES-128", "AES-192", "AES-256"]
        for (arc, name) in names {
            for (index, cipher) in ciphers.enumerated() {
                let known = SecurityProtocol(objectIdentifier: "0.4.0.127.0.7.2.2.4.\(arc).\(index + 1)")
                if arc == "6", index == 0 { #expect(!known.isPACE) } else { #expect(known.name == "PACE \(name), \(cipher)") }
            }
        }
        #expect(!SecurityProtocol(objectIdentifier: "0.4.0.127.0.7.2.2.4.2").isPACE)
        #expect(SecurityProtocol(objectIdentifier: "0.4.0.127.0.7.2.2.4.5.1") == .unknown("0.4.0.127.0.7.2.2.4.5.1"))
        #expect(SecurityProtocol(objectIdentifier: "0.4.0.127.0.7.2.2.3.2.4").name == "Chip Authentication ECDH, AES-256")
        // Terminal Authentication is never Active Authentication.
        #expect(!SecurityProtocol(objectIdentifier: "0.4.0.127.0.7.2.2.2").isActiveAuthentication)
        #expect(SecurityProtocol(objectIdentifier: "2.23.136.1.1.5").isActiveAuthentication)
    }

    /// TR-03110 part 3 A.1.1.3 and row 41 of the corrections: .1 is SHA-1.
    @Test func terminalAuthenticationNamesItsSchemes() {
        #expect(SecurityProtocol(objectIdentifier: "0.4.0.127.0.7.2.2.2.2.1") == .terminalAuthentication(.ecdsaPlain(.sha1)))
        #expect(SecurityProtocol(objectIdentifier: "0.4.0.127.0.7.2.2.2.2.3") == .terminalAuthentication(.ecdsaPlain(.sha256)))
        #expect(
            SecurityProtocol(objectIdentifier: "0.4.0.127.0.7.2.2.2.1.4")
                == .terminalAuthentication(.rsaPSS(.sha256, mask: .sha256, saltLength: 32)))
    }

    @Test func aFaultyInfoLeavesTheOthersUsable() throws {
        // ActiveAuthenticationInfo without its algorithm, then a PACEInfo.
        let list = try infos("3121" + "300B0606678108010105020101" + "3012060A04007F0007020204020202010202010D")
        #expect(list.count == 2)
        #expect(list[0].fault == "element 3 is not there, of 2, at octet 2 in 31/30")
        #expect(list[0].content == .unknown)
        #expect(list[1].fault == nil && list[1].isPACE)
    }

    @Test func explicitParametersAreTheNamedCurve() throws {
        let curve = try EllipticCurve(standardized: 13)
        let parameters = DER.sequence(try DER.objectIdentifier("1.2.840.10045.2.1"), try curve.ecParameters())
        let info = DER.sequence(try DER.objectIdentifier("0.4.0.127.0.7.2.2.4.2"), parameters, DER.integer([13]))
        guard case .paceDomainParameters(let found)? = try SecurityInfo.parse(DER.set([info])).first?.content else {
            Issue.record("no domain parameters")
            return
        }
        #expect(found.parameters == .curve(curve) && found.parameterId == 13)
        #expect(curve.objectIdentifier == "1.3.36.3.3.2.8.1.1.7")
    }
}
