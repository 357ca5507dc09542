// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Foundation
import Octets
import TestSupport
import Testing

@Suite struct LDSTests {
    /// EF.COM of ICAO 9303-11 D.4.
    @Test func commonDataListsVersionsAndGroups() throws {
        let common = try CommonData(octets("60145F0104303130365F36063034303030305C026175"))
        #expect(common.ldsVersion == "0106")
        #expect(common.unicodeVersion == "040000")
        #expect(common.dataGroups == [.dg1, .dg2])
        #expect(common.unknownTags.isEmpty)
    }

    @Test func unknownTagsOfCommonDataAreKept() throws {
        let common = try CommonData(octets("60055C03617799"))
        #expect(common.dataGroups == [.dg1])
        #expect(common.unknownTags == [0x77, 0x99])
    }

    @Test func theTagAndIdentifierOfEachFileAreThoseOfTheStandard() {
        #expect(
            DataGroupId.allCases.map(\.tag).sorted()
                == (0x60...0x77).filter { ![0x62, 0x64, 0x71, 0x72, 0x73, 0x74].contains($0) })
        #expect(DataGroupId.dg16.fileIdentifier == 0x0110)
        #expect(DataGroupId.com.fileIdentifier == 0x011E)
        #expect(DataGroupId.sod.fileIdentifier == 0x011D)
        #expect(DataGroupId(tag: 0x75) == .dg2)
        #expect(DataGroupId.allCases.filter(\.needsExtendedAccessControl) == [.dg3, .dg4])
    }

    @Test func filesOfAnotherTagAreRefused() {
        #expect(throws: LDSError(.tag)) { try CommonData(octets("61005F01")) }
        #expect(throws: LDSError(.tag)) { try MRZData(dataGroup1: octets("6000")) }
        #expect(throws: LDSError(.tag)) { try SecurityObject(octets("6100")) }
        #expect(throws: LDSError(.missing)) { try CommonData(octets("6000")) }
        #expect(throws: LDSError(.missing)) { try MRZData(dataGroup1: octets("6100")) }
    }

    /// A list of two hashes inside the least CMS that can hold it.
    @Test func theHashListOfASecurityObjectIsFound() throws {
        func wrap(_ tag: UInt32, _ parts: [UInt8]...) -> [UInt8] { TLV.encode(tag, parts.flatMap { $0 }) }
        let sha256 = octets("0609608648016503040201")
        let hash1 = [UInt8](repeating: 0x11, count: 32)
        let hash2 = [UInt8](repeating: 0x22, count: 32)
        let list = wrap(
            0x30, octets("020101"), wrap(0x30, sha256),
            wrap(0x30, wrap(0x30, octets("020101"), wrap(0x04, hash1)), wrap(0x30, octets("020102"), wrap(0x04, hash2))),
            wrap(0x30, wrap(0x13, Array("0108".utf8)), wrap(0x13, Array("040000".utf8))))
        for content in [wrap(0x04, list), wrap(0x24, wrap(0x04, Array(list[..<20])), wrap(0x04, Array(list[20...])))] {
            let signed = wrap(
                0x30, octets("020103"), wrap(0x31, wrap(0x30, sha256)),
                wrap(0x30, octets("0606678108010101"), wrap(0xA0, content)))
            let file = wrap(0x77, wrap(0x30, octets("06092A864886F70D010702"), wrap(0xA0, signed)))
            let object = try SecurityObject(file)
            #expect(object.contentType == "2.23.136.1.1.1")
            #expect(object.hashName == "SHA-256")
            #expect(object.dataGroupHashes == [.dg1: Data(hash1), .dg2: Data(hash2)])
            #expect(object.ldsVersion == "0108")
            #expect(object.lists(.dg1) && !object.lists(.dg3))
            for cut in 0..<file.count {
                #expect(throws: LDSError.self) { try SecurityObject(Array(file[..<cut])) }
            }
        }
    }

    /// Field report E7: PACE with integrated mapping, AES-256, parameters 18.
    @Test func cardAccessNamesItsProtocols() throws {
        let infos = try SecurityInfo.parse(octets("31143012060A04007F00070202040404020102020112"))
        #expect(infos.map(\.protocolOID) == ["0.4.0.127.0.7.2.2.4.4.4"])
        #expect(infos.first?.version == 2)
        #expect(infos.first?.parameterId == 18)
        #expect(infos.first?.isPACE == true)
        #expect(infos.first?.raw == data("3012060A04007F00070202040404020102020112"))
    }

    /// Field report E19: unknown identifiers are kept.
    @Test func unknownSecurityInfosAreKept() throws {
        let infos = try SecurityInfo.parse(octets("3109300706052A03040506"))
        #expect(infos.map(\.protocolOID) == ["1.2.3.4.5.6"])
        #expect(infos.first?.isPACE == false)
    }

    @Test(arguments: [("FFD8FFE1", ImageFormat.jpeg), ("0000000C6A5020200D0A870A", .jpeg2000), ("FF4FFF5100290000", .jpeg2000)])
    func aFaceIsTakenOutByItsHeader(image: String, format: ImageFormat) throws {
        let picture = octets(image) + [UInt8](repeating: 0x5A, count: 40)
        for points in [0, 2] {
            let length = UInt32(20 + 8 * points + 12 + picture.count)
            let record =
                octets("4641430030313000") + big(UInt32(14) + length) + [0, 1] + big(length) + [0, UInt8(points)]
                + [UInt8](repeating: 0, count: 14 + 8 * points + 12) + picture
            let face = try FaceImage(dataGroup2: dataGroup2(record + [0, 0, 0]))
            #expect(face.data == Data(picture))
            #expect(face.format == format)
            #expect(face.headerFollowed)
        }
    }

    @Test func aFaceWithoutAHeaderIsFoundByItsFirstOctets() throws {
        let face = try FaceImage(dataGroup2: dataGroup2(octets("0102030405FFD8FFE000104A464946")))
        #expect(face.data == data("FFD8FFE000104A464946"))
        #expect(!face.headerFollowed)
    }

    @Test func aRecordWhoseLengthsLieIsNotFollowed() throws {
        let record = octets("4641430030313000FFFFFFFF0001FFFFFFFFFFFF") + [UInt8](repeating: 0, count: 26)
        #expect(throws: LDSError(.value)) { try FaceImage(dataGroup2: dataGroup2(record)) }
        #expect(throws: LDSError(.value)) { try FaceImage(dataGroup2: dataGroup2([])) }
    }

    @Test func anyOctetsAtAllEndWithAnErrorAndNotATrap() {
        var generator = SystemRandomNumberGenerator()
        for length in 0..<400 {
            for tag in [0x60, 0x61, 0x75, 0x77, 0x31] as [UInt8] {
                var noise = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
                noise = [tag, 0x82, UInt8(length >> 8), UInt8(length & 0xFF)] + noise
                _ = try? CommonData(noise)
                _ = try? MRZData(dataGroup1: noise)
                _ = try? FaceImage(dataGroup2: noise)
                _ = try? SecurityObject(noise)
                _ = try? SecurityInfo.parse(noise)
                let id = DataGroupId(tag: tag) ?? .dg1
                let model = PassportModel(rawDataGroups: [id: Data(noise)], cardAccessRaw: Data(noise))
                #expect(model.rawDataGroups.count == 1)
            }
        }
    }

    private func big(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }

    private func dataGroup2(_ block: [UInt8]) -> [UInt8] {
        let header = TLV.encode(0xA1, octets("800201018702010188020008"))
        let template = TLV.encode(0x7F60, header + TLV.encode(0x5F2E, block))
        return TLV.encode(0x75, TLV.encode(0x7F61, octets("020101") + template))
    }
}

/// Files that others published.
@Suite(.enabled(if: SharedData.isPresent, Comment(rawValue: SharedData.absence))) struct SharedLDSTests {
    @Test func theHashListsOfSharedSecurityObjectsAreRead() throws {
        let folder = try #require(SharedData.folder)
        var algorithms: [String?] = []
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
        while let url = files?.nextObject() as? URL {
            guard url.pathExtension == "sod" else { continue }
            let object = try SecurityObject(Array(try Data(contentsOf: url)))
            #expect(object.lists(.dg1), "\(url.lastPathComponent)")
            #expect(object.contentType == "2.23.136.1.1.1")
            algorithms.append(object.hashName)
        }
        #expect(Set(algorithms) == ["SHA-256", "SHA-384", "SHA-512"])
        #expect(algorithms.count == 4)
    }

    @Test func aSharedCardAccessNamesPACE() throws {
        let folder = try #require(SharedData.folder)
        let file = folder.appendingPathComponent("data/Governikus__AusweisApp/test/fixture/card/efCardAccess.hex")
        let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        let infos = try SecurityInfo.parse(try Hex.decode(text.filter { !$0.isNewline }))
        #expect(infos.contains { $0.isPACE })
        #expect(infos.count > 3)
    }
}
