// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import Octets
import TestSupport
import Testing

@testable import CoreExtendedNFC

@Suite(.enabled(if: SharedData.isPresent, Comment(rawValue: SharedData.absence))) struct SharedDocumentTests {
    @Test func everySharedFileIsReadToTheEndOrFailsWithItsPlace() throws {
        let lines = try SharedDocumentFiles.entries().map(SharedDocumentFiles.line)
        #expect(lines == SharedDocumentResults.lines)
    }

    @Test func securityObjectsVerifyUnderTheirAuthorities() throws {
        let folder = "zkpassport__circuits/src/ts/tests/fixtures/zkr/"
        func file(_ name: String) throws -> [UInt8] { try SharedDocumentFiles.octets(folder + name) }
        let anchors = try TrustAnchors(files: [
            try file("zkr-csca-ecdsa-p256-sha256.pem"), try file("zkr-csca-rsa-2048-sha256.pem"),
        ])
        var lines: [String] = []
        for name in ["ecdsa-p256-sha256", "ecdsa-p384-sha384", "rsa-2048-sha256", "rsa-4096-sha512"] {
            let sod = try file("johnny-silverhand-\(name).sod")
            let report = PassiveAuthentication.verify(
                sod: sod, dataGroups: [:], anchors: anchors, today: SharedDocumentFiles.today)
            let own = try TrustAnchors(files: [try file("zkr-dsc-\(name).pem")])
            let pinned = PassiveAuthentication.verify(sod: sod, dataGroups: [:], anchors: own, today: SharedDocumentFiles.today)
            lines.append(
                "\(name): \(report.signature.rawValue), \(report.trust.rawValue) in \(report.path.count), \(report.signatureAlgorithm ?? "-")"
            )
            #expect(report.detail == "EF.SOD is genuine, and no data group that it lists was read")
            // The signer is named by zeros, and the time of signing lies before the certificate's.
            #expect(report.findings.contains(.signerNamedWrongly))
            #expect(report.findings.contains(.signedOutsideValidity(day: "2024-05-01")))
            // The signer's certificate that is published beside is another one of the same name.
            #expect(pinned.trust == .untrusted)
        }
        #expect(
            lines == [
                "ecdsa-p256-sha256: valid, trusted in 2, ECDSA, SHA-256",
                "ecdsa-p384-sha384: valid, trusted in 2, ECDSA, SHA-256",
                "rsa-2048-sha256: valid, trusted in 2, RSA v1.5, SHA-256",
                "rsa-4096-sha512: valid, trusted in 2, RSA v1.5, SHA-256",
            ])
    }

    @Test func theGermanMasterListIsSignedByWhomTheGermanAuthorityVouchesFor() throws {
        let list = try MasterList(
            der: try SharedDocumentFiles.octets("gmrtd__gmrtd/cms/master_list/DE_ML_2026-05-28-08-28-45.ml"))
        let root = try SharedDocumentFiles.octets("gmrtd__gmrtd/cms/master_list/DE_ROOT_CA_CSCA07.cer")
        let report = PassiveAuthentication.verify(
            masterList: list, anchors: try TrustAnchors(files: [root]), today: SharedDocumentFiles.today)
        #expect(report.status == .fullyVerified, "\(report.detail)")
        #expect(
            report.path == [
                "C=DE, O=bund, OU=bsi, serialNumber=0039, CN=CSCA Master List Signer", "C=DE, O=bund, OU=bsi, CN=csca-germany",
            ])
    }

    /// A link certificate leads from a new key of an authority to the old one.
    @Test func aLinkLeadsFromTheNewKeyToTheOld() throws {
        let folder = "gmrtd__gmrtd/cms/master_list/IDN_2010_SERIES_CSCA_CERT/"
        func certificate(_ name: String) throws -> Certificate {
            try Certificate(der: try SharedDocumentFiles.octets(folder + name))
        }
        let old = try certificate("2010-12_CSCA.cer")
        let new = try certificate("2016-01_CSCA.cer")
        let link = try certificate("2016-01_CSCA_LINK.cer")
        #expect(try link.isSigned(by: old) && link.publicKey == new.publicKey)
        #expect(TrustAnchors([old]).verdict(on: link) == .trusted(path: [link, old]))
        #expect(TrustAnchors([old]).verdict(on: new) == .unknownIssuer(new.issuer))
    }

    /// Every file, cut short and with octets changed, ends with an error that has a place inside it, or is read; nothing traps.
    @Test func changedFilesEndWithAnErrorAndItsPlace() throws {
        var random = SplitMix(state: 3)
        var runs = 0
        var misplaced: [String] = []
        let entries = try SharedDocumentFiles.entries().filter { $0.octets.count < 20_000 }
        while runs < 20_000 {
            for entry in entries {
                var octets = entry.octets
                for _ in 0...random.below(3) {
                    switch random.below(4) {
                    case 0: octets[random.below(octets.count)] = UInt8(truncatingIfNeeded: random.next())
                    case 1: octets[random.below(min(octets.count, 64))] ^= 1 << UInt8(random.below(8))
                    case 2 where octets.count > 8: octets.removeLast(random.below(octets.count - 4))
                    default: octets.insert(UInt8(truncatingIfNeeded: random.next()), at: random.below(octets.count))
                    }
                }
                do { _ = try SharedDocumentFiles.summary(of: octets, entry.kind) } catch let error as LDSError {
                    if !(0...octets.count).contains(error.offset) { misplaced.append("\(entry.name): \(error)") }
                } catch let error as DataObjectError {
                    if !(0...octets.count).contains(error.offset) { misplaced.append("\(entry.name): \(error)") }
                }
                runs += 1
            }
        }
        #expect(misplaced.isEmpty)
        #expect(runs >= 20_000)
    }

}
