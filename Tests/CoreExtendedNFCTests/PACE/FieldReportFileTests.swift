// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import Testing
import VirtualCards

/// Field reports E17 to E31: what people met in files and keys, each as a whole read with what the caller and the user get.
@Suite struct FieldReportFileTests {
    /// A chip with these groups beside DG1, signed by an issuer, and the issuer's certificate.
    private func read(
        _ extra: [Int: [UInt8]], _ options: SpecimenIssuer.Options = SpecimenIssuer.Options(), lines: Lines? = nil
    ) async throws -> PassportModel {
        let issuer = try SpecimenIssuer.seeded(7, options)
        let files = extra.merging([1: SpecimenFiles.dg1]) { given, _ in given }
        var stored: [DataGroupId: [UInt8]] = [.sod: try issuer.documentSecurityObject(files)]
        for (number, octets) in files { stored[try #require(DataGroupId(number: number))] = octets }
        let groups = [DataGroupId](stored.keys)
        return try await CoreExtendedNFC.readPassport(
            transport: SecuredChip(files: stored), mrzKey: AppendixD.mrzKey, dataGroups: groups,
            trustAnchorsDER: [Data(issuer.cscaCertificateDER)]
        ) { lines?.add($0) }
    }

    /// E17: a number of eight characters without its filler, and O for 0. The chip's refusals differ; the error and the line do not.
    @Test(arguments: [[0x63, 0x00], [0x69, 0x85]] as [[UInt8]])
    func aKeyThatTheChipRefusesIsNamedWithItsStatus(answer: [UInt8]) async throws {
        let chip = SecuredChip(files: SpecimenFiles.all) { _, command, honest in
            command.ins == 0x82 ? .plain(answer) : .plain(honest)
        }
        let lines = Lines()
        let error = await #expect(throws: NFCError.self) {
            try await CoreExtendedNFC.readPassport(
                transport: chip, mrzKey: "L898902C369080619406236", dataGroups: [.com, .dg1]
            ) { lines.add($0) }
        }
        #expect(error == .bacFailed(""))
        #expect(error?.description == "the card refused the key: \(Hex.encode(answer)) to EXTERNAL AUTHENTICATE")
        #expect(lines.all == ["access  BAC: FAILED, the card refused the key: \(Hex.encode(answer)) to EXTERNAL AUTHENTICATE"])
        // Made out of its parts, the number has its filler, and a check digit tells O from 0.
        #expect(try MRZKey(documentNumber: "L898902C", dateOfBirth: "690806", dateOfExpiry: "940623").value == AppendixD.mrzKey)
        #expect(try !MRZKey("L8989O2C<369080619406236").checkDigitsHold)
    }

    /// E19, E21 and E23: an identifier that nobody knows, elements out of the order of DER, octets behind the list. All is kept, and the
    /// hash is that of the octets as they came.
    @Test func strangeSecurityInfosAreKeptAndTheirOctetsHashed() async throws {
        let known = octets("3012060A04007F0007020204020202010202010D")
        let gost = octets("300F060A03007F00070202010201020101")
        let algorithm = octets("300D06082A85030701010101" + "0101FF")
        for trailing in ["", "0000", "0400"] {
            let list = TLV.encode(0x31, known + gost + algorithm)
            let file = TLV.encode(0x6E, list + octets(trailing))
            let lines = Lines()
            let model = try await read([14: file, 13: TLV.encode(0x6D, gost)], lines: lines)
            #expect(model.dataGroupReadStatus == [.sod: .read, .dg1: .read, .dg13: .read, .dg14: .read])
            #expect(model.securityInfos?.count == 3)
            #expect(model.securityInfos?.first?.isPACE == true)
            #expect(model.securityInfos?[1].content == .unknown)
            #expect(model.securityInfos?[1].raw == Data(gost))
            #expect(model.rawDataGroups[.dg14] == Data(file))
            #expect(model.passiveAuthResult == .fullyVerified)
            #expect(model.problems.isEmpty)
            #expect(lines.all.contains("read  DG14, \(file.count) bytes"))
        }
    }

    /// E25: an image with an Exif header is a JPEG.
    @Test func anImageWithExifIsAJPEG() async throws {
        let image = octets("FFD8FFE100184578696600004D4D002A00000008") + [UInt8](repeating: 0x5A, count: 300)
        let model = try await read([7: TLV.encode(0x67, TLV.encode(0x02, [1]) + TLV.encode(0x5F43, image))])
        #expect(model.dataGroupReadStatus[.dg7] == .read)
        #expect(model.signatureImageFormat == .jpeg)
        #expect(model.resolvedSignatureImageData == Data(image))
        #expect(model.problems.isEmpty)
    }

    /// E27 and E29: explicit parameters of curves, which ICAO demands; signatures plain or in DER, told by their identifier.
    @Test(arguments: [true, false], [true, false])
    func curvesAndSignaturesOfEitherFormAreVerified(spells: Bool, plain: Bool) async throws {
        var options = SpecimenIssuer.Options()
        options.authorityKey = .standardized(13)
        options.signerKey = .standardized(13)
        options.spellsCurves = spells
        options.signsPlainECDSA = plain
        let model = try await read([:], options)
        #expect(model.dataGroupReadStatus == [.sod: .read, .dg1: .read])
        #expect(model.passiveAuthResult == .fullyVerified)
        #expect(model.securityReport.passiveAuthentication.status == .succeeded)
    }

    /// E31: what a reader program of the issuers asks for is there: the challenge, the authentication with Le 28, EF.COM first.
    @Test func theVirtualPassportIsComplete() async throws {
        let card = Tampering(try virtualPassport("dg=1,2,3,4,5,7,11,12,13,14,16"))
        let model = try await CoreExtendedNFC.readPassport(
            transport: card, mrzKey: specimenKey, dataGroups: DataGroupId.allCases)
        let notRead = model.dataGroupReadStatus.filter { $0.value != .read }
        #expect(
            notRead == [
                .dg3: .unavailable, .dg4: .unavailable, .dg6: .notPresent, .dg8: .notPresent, .dg9: .notPresent,
                .dg10: .notPresent, .dg15: .notPresent,
            ])
        #expect(model.dataGroupReadStatus.count == 18)
        #expect(model.availableDataGroups == [1, 2, 3, 4, 5, 7, 11, 12, 13, 14, 16].compactMap { DataGroupId(number: $0) })
        #expect(card.exchanges.contains { $0.command.prefix(5) == octets("0082000028")[...] && $0.command.last == 0x28 })
    }
}
