// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import Testing
import VirtualCards

@Suite struct PassiveAuthenticationTests {
    private static let files: [Int: [UInt8]] = [1: [0x61, 0x01, 0x11], 2: [0x75, 0x02, 0x22, 0x33]]
    private static let today = CertificateTime(seconds: 1_795_996_800)

    private static func groups(_ files: [Int: [UInt8]] = files) -> [DataGroupId: Data] {
        var groups: [DataGroupId: Data] = [:]
        for (number, octets) in files { groups[DataGroupId(number: number) ?? .dg1] = Data(octets) }
        return groups
    }

    private func verify(
        _ issuer: SpecimenIssuer, sod: [UInt8]? = nil, files: [Int: [UInt8]] = files, anchors: [[UInt8]]? = nil,
        today: CertificateTime = today
    ) throws -> PassiveAuthenticationReport {
        PassiveAuthentication.verify(
            sod: try sod ?? issuer.documentSecurityObject(Self.files), dataGroups: Self.groups(files),
            anchors: try TrustAnchors(files: anchors ?? [issuer.cscaCertificateDER]), today: today)
    }

    /// Every kind of key and signature that ICAO 9303-12 4.4 allows, the digest, and whether curves are spelled out.
    static let kinds: [SpecimenIssuer.Options] = {
        var all: [SpecimenIssuer.Options] = []
        func add(
            _ authority: SpecimenIssuer.KeyKind, _ signer: SpecimenIssuer.KeyKind, _ digest: Digest,
            _ change: (inout SpecimenIssuer.Options) -> Void = { _ in }
        ) {
            var options = SpecimenIssuer.Options()
            options.authorityKey = authority
            options.signerKey = signer
            options.digest = digest
            change(&options)
            all.append(options)
        }
        for digest in Digest.allCases {
            add(.rsa(bits: 2048), .rsa(bits: 1024), digest)
            add(.rsa(bits: 2048), .rsa(bits: 2048), digest) { $0.usesPSS = true }
            add(.standardized(13), .standardized(12), digest)
            add(.standardized(16), .standardized(14), digest) { $0.spellsCurves = true }
            add(.standardized(13), .standardized(13), digest) { $0.signsPlainECDSA = true }
        }
        for number in 8...18 { add(.standardized(number), .standardized(number), .sha256) { $0.spellsCurves = number % 2 == 0 } }
        add(.rsa(bits: 2048), .standardized(13), .sha256)
        return all
    }()

    @Test(arguments: kinds) func whatAnAuthoritySignedIsFullyVerified(options: SpecimenIssuer.Options) throws {
        let issuer = try SpecimenIssuer.seeded(7, options)
        let report = try verify(issuer)
        #expect(report.status == .fullyVerified, "\(report.detail)")
        #expect(report.signature == .valid && report.trust == .trusted && report.isTrusted)
        #expect(report.dataGroups == [.dg1: .matches, .dg2: .matches])
        #expect(report.hashAlgorithm == options.digest.rawValue)
        #expect(report.path.count == 2)
        #expect(report.stage.status == .succeeded)
        #expect(report.findings.contains(.weakHash("SHA-1 of the signature")) == (options.digest == .sha1))
    }

    /// One octet wrong anywhere in the signature, the signed attributes or the list of hashes never passes.
    @Test(arguments: kinds) func aChangedSecurityObjectNeverPasses(options: SpecimenIssuer.Options) throws {
        let issuer = try SpecimenIssuer.seeded(7, options)
        let sod = try issuer.documentSecurityObject(Self.files)
        // Beside these stand lists of algorithms and version numbers, which no signature covers.
        let message = try TLV.first(in: sod[...]).children()[0].children()[1].children()[0].children()
        let info = try message[4].children()[0].children()
        let covered = [message[2].value, message[3].value, info[3].value, info[5].value].flatMap(\.indices)
        var passed: [Int] = []
        for index in covered.enumerated().filter({ $0.offset % 23 == 0 }).map(\.element) {
            var changed = sod
            changed[index] ^= 0x04
            let report = try verify(issuer, sod: changed)
            // The certificate's own octets matter only where the signature or the way to the anchor depends on them; all do.
            if report.status == .fullyVerified { passed.append(index) }
        }
        #expect(passed.isEmpty)
    }

    @Test func withoutAnchorsTrustIsUnknownAndTheStepAFallback() throws {
        let report = try verify(SpecimenIssuer.seeded(), anchors: [])
        #expect(report.status == .signatureVerified)
        #expect(report.trust == .unknown && report.signature == .valid)
        #expect(report.stage == PassportStage(.fallback, "no trust anchors were given"))
    }

    @Test func anAuthorityOfTheSameNameIsNotTrusted() throws {
        // Key identifiers differ, so that the other key is no candidate at all.
        let report = try verify(SpecimenIssuer.seeded(), anchors: [SpecimenIssuer.seeded(1).cscaCertificateDER])
        #expect(report.status == .trustChainInvalid && report.trust == .untrusted)
        #expect(report.stage.status == .failed)
        #expect(report.detail.contains("no trust anchor is the issuer"))
    }

    @Test func aSignerIsNoAuthorityForOthers() throws {
        let issuer = try SpecimenIssuer.seeded()
        let signer = try Certificate(der: issuer.documentSignerCertificateDER)
        #expect(TrustAnchors([signer]).verdict(on: signer) == .trusted(path: [signer]))
        let authority = try Certificate(der: issuer.cscaCertificateDER)
        #expect(TrustAnchors([signer]).verdict(on: authority) == .unknownIssuer(authority.issuer))
    }

    @Test func aChangedDataGroupIsAMismatchAndNamed() throws {
        var files = Self.files
        files[2] = [0x75, 0x02, 0x22, 0x34]
        let report = try verify(SpecimenIssuer.seeded(), files: files)
        #expect(report.status == .hashMismatch)
        #expect(report.dataGroups == [.dg1: .matches, .dg2: .differs])
        #expect(report.detail == "DG2 is not what the issuer signed")
        #expect(report.stage.status == .failed)
    }

    @Test func aGroupThatIsNotListedIsVouchedForByNobody() throws {
        var files = Self.files
        files[2] = nil
        files[7] = [0x67, 0x00]
        let report = try verify(SpecimenIssuer.seeded(), files: files)
        #expect(report.dataGroups == [.dg1: .matches, .dg2: .notRead, .dg7: .notListed])
        #expect(report.status == .fullyVerified)
    }

    @Test func aGenuineListComparedWithNothingIsNoFullProof() throws {
        let report = try verify(SpecimenIssuer.seeded(), files: [:])
        #expect(report.status == .signatureVerified && report.trust == .trusted)
        #expect(report.stage.status == .fallback)
    }

    /// Filler after the data object counts where the issuer hashed it, and not where it did not (point 3.19 of the field reports).
    @Test func fillerAfterAFileIsJudgedBothWays() throws {
        var files = Self.files
        files[1] = (files[1] ?? []) + [0, 0]
        let issuer = try SpecimenIssuer.seeded()
        #expect(try verify(issuer, files: files).dataGroups[.dg1] == .matches)
        let whole = try issuer.documentSecurityObject(files)
        #expect(try verify(issuer, sod: whole, files: files).dataGroups[.dg1] == .matchesWithFiller)
    }

    @Test func nothingToVerifyAndNothingReadableAreSaid() throws {
        let none = PassiveAuthentication.verify(sod: nil, dataGroups: [:], anchors: TrustAnchors([]), today: Self.today)
        #expect(none.status == .sodNotAvailable && none.stage.status == .skipped)
        let broken = PassiveAuthentication.verify(
            sod: octets("7703300106"), dataGroups: [:], anchors: TrustAnchors([]), today: Self.today)
        #expect(broken.status == .sodParseFailed && broken.stage.status == .failed)
        #expect(broken.detail == "EF.SOD: truncated, at octet 5 (77/30)")
    }

    /// An algorithm that is none of the standard's is never taken for another (the hash is MD5, 1.2.840.113549.2.5).
    @Test func anUnknownHashAlgorithmIsNeitherPassedNorReplaced() throws {
        let issuer = try SpecimenIssuer.seeded()
        let sod = try issuer.documentSecurityObject(Self.files)
        // The object identifier of SHA-256 in the list of hashes, which stands first after the content type.
        let sha256 = octets("0609608648016503040201")
        let places = sod.indices.filter { sod[$0...].starts(with: sha256) }
        var changed = sod
        changed[places[1] + 10] = 0x7F
        #expect(try verify(issuer, sod: changed).status == .signatureInvalid)
        let object = try SecurityObject(changed)
        #expect(object.hashName == nil && object.hashAlgorithm == "2.16.840.1.101.3.4.2.127")
    }

    @Test func certificatesAreJudgedAtTheCalendarOfTheEnvironment() throws {
        let issuer = try SpecimenIssuer.seeded()
        // 2051, after every certificate of the specimen has ended: a warning, for documents outlive their signers.
        let late = try verify(issuer, today: CertificateTime("20510101000000Z"))
        #expect(late.status == .fullyVerified)
        #expect(
            late.findings == [
                .expired(
                    certificate:
                        "C=UT, O=Utopia Ministry of the Interior, OU=Specimens only, CN=Document Signer Utopia Specimen 1",
                    day: "2049-12-31"),
                .expired(
                    certificate: "C=UT, O=Utopia Ministry of the Interior, OU=Specimens only, CN=CSCA Utopia Specimen",
                    day: "2049-12-31"),
            ])
        // Before they began: such a document cannot exist yet.
        let early = try verify(issuer, today: CertificateTime("20191231235959Z"))
        #expect(early.status == .trustChainInvalid)
        #expect(early.stage.status == .failed)
    }

    @Test func masterListsAndPEMAreTrustAnchors() throws {
        let issuer = try SpecimenIssuer.seeded()
        let other = try SpecimenIssuer.seeded(1)
        let list = try other.masterList(others: [issuer.cscaCertificateDER])
        #expect(try verify(issuer, anchors: [list]).status == .fullyVerified)
        let pem =
            "# Utopia\n-----BEGIN CERTIFICATE-----\n" + Data(issuer.cscaCertificateDER).base64EncodedString()
            + "\n-----END CERTIFICATE-----\n"
        #expect(try verify(issuer, anchors: [Array(pem.utf8)]).status == .fullyVerified)
        let master = try MasterList(der: list)
        #expect(master.certificates.count == 2 && master.faults.isEmpty)
        let report = PassiveAuthentication.verify(
            masterList: master, anchors: try TrustAnchors(files: [other.cscaCertificateDER]), today: Self.today)
        #expect(report.status == .fullyVerified)
        #expect(throws: CryptoError(code: .certificate, detail: "")) { try TrustAnchors(files: [list, [0x30, 0x00]]) }
    }

    @Test func cardSecurityIsVerifiedLikeASecurityObject() throws {
        let issuer = try SpecimenIssuer.seeded()
        let infos = octets("31143012060A04007F0007020204020202010202010D")
        let security = try CardSecurity(try issuer.cardSecurity(infos))
        #expect(security.securityInfos.map(\.securityProtocol.name) == ["PACE ECDH-GM, AES-128"])
        let anchors = try TrustAnchors(files: [issuer.cscaCertificateDER])
        #expect(
            PassiveAuthentication.verify(cardSecurity: security, anchors: anchors, today: Self.today).status == .fullyVerified)
        #expect(
            PassiveAuthentication.verify(cardSecurity: security, anchors: TrustAnchors([]), today: Self.today).status
                == .signatureVerified)
        #expect(throws: LDSError(.value)) { try CardSecurity(try issuer.masterList()) }
    }

    /// Some issuers write EF.SOD with indefinite lengths.
    @Test func indefiniteLengthsAreRead() throws {
        let issuer = try SpecimenIssuer.seeded()
        let sod = try issuer.documentSecurityObject(Self.files)
        let content = try TLV.first(in: sod[...]).value
        let inner = try TLV.first(in: content)
        let parts = try inner.children()
        let message = try parts[1].children()[0]
        let type = TLV.encode(0x06, parts[0].value)
        let indefinite = [0x30, 0x80] + type + [0xA0, 0x80, 0x30, 0x80] + message.value + [0, 0, 0, 0, 0, 0]
        #expect(try verify(issuer, sod: TLV.encode(0x77, indefinite)).status == .fullyVerified)
        #expect(try verify(issuer, sod: TLV.encode(0x77, indefinite.dropLast(2))).status == .sodParseFailed)
    }

    @Test func aModelOutOfStoredFilesIsVerified() async throws {
        let issuer = try SpecimenIssuer.seeded()
        var groups = Self.groups()
        groups[.sod] = Data(try issuer.documentSecurityObject(Self.files))
        let trusted = PassportModel(rawDataGroups: groups, trustAnchorsDER: [Data(issuer.cscaCertificateDER)])
        #expect(trusted.passiveAuthResult == .fullyVerified)
        #expect(trusted.securityReport.passiveAuthentication.status == .succeeded)
        #expect(PassportModel(rawDataGroups: groups).passiveAuthResult == .signatureVerified)
        #expect(PassportModel(rawDataGroups: groups, performPassiveAuthentication: false).passiveAuthResult == nil)
        let unreadable = PassportModel(rawDataGroups: groups, trustAnchorsDER: [Data([1, 2, 3])])
        #expect(unreadable.passiveAuthResult == nil)
        #expect(unreadable.securityReport.passiveAuthentication.status == .failed)
        let copy = try JSONDecoder().decode(PassportModel.self, from: try JSONEncoder().encode(trusted))
        #expect(copy == trusted)
    }
}
