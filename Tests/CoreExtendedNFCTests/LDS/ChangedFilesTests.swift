// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import Testing

@testable import VirtualCards

/// Files of the specimen with octets changed: whatever comes, nothing traps, and nothing changed passes as whole.
@Suite struct ChangedFilesTests {
    private static let today = CertificateTime(seconds: 1_795_996_800)

    private static func change(_ octets: [UInt8], _ random: inout SplitMix) -> [UInt8] {
        var octets = octets
        for _ in 0...random.below(3) where octets.count > 4 {
            switch random.below(5) {
            case 0: octets[random.below(octets.count)] = UInt8(truncatingIfNeeded: random.next())
            case 1: octets[random.below(min(octets.count, 80))] ^= 1 << UInt8(random.below(8))
            case 2: octets.removeLast(random.below(octets.count - 3))
            case 3: octets.insert(contentsOf: octets.prefix(random.below(40)), at: random.below(octets.count))
            default: octets[random.below(octets.count)] = [0x00, 0x7F, 0x80, 0x84, 0xFF][random.below(5)]
            }
        }
        return octets
    }

    @Test func twentyThousandModelsOutOfChangedFiles() throws {
        let files = try PassportFiles.specimen(issuer: try SpecimenIssuer.seeded())
        var groups: [DataGroupId: [UInt8]] = [:]
        for id in DataGroupId.allCases { groups[id] = files[id.fileIdentifier] }
        let curve = SpecimenIssuer.KeyKind.standardized(13)
        var keys = CardRandom(seed: 1, use: "changed")
        let chip = try PassportActiveAuthentication(
            key: try SigningKey(curve, &keys), algorithm: .ecdsa(.sha256), spellsCurve: true)
        groups[.dg14] = TLV.encode(
            0x6E, DER.set([try #require(try chip.securityInfo()), octets("3012060A04007F0007020204020202010202010D")]))
        groups[.dg15] = try chip.dataGroup15()
        groups[.dg7] = octets("670A0201015F4304FFD8FFE0")
        groups[.dg11] = octets("6B135C045F0E5F2B5F0E0141" + "5F2B0419711017")
        groups[.dg12] = octets("6C0B5F190155" + "5F260420020531")
        groups[.dg16] = octets("700A020101A1055F51024142")
        let cardAccess = octets("31143012060A04007F00070202040204020102020112")
        let whole = groups
        var random = SplitMix(state: 11)
        var failed = 0
        for _ in 0..<20_000 {
            let id = DataGroupId.allCases[random.below(DataGroupId.allCases.count)]
            guard let original = whole[id] else { continue }
            // DG2 with its image is long; the head of it is what is parsed.
            let changed = Self.change(id == .dg2 ? Array(original.prefix(2_000)) : original, &random)
            let model = PassportModel(
                rawDataGroups: [id: Data(changed)], cardAccessRaw: Data(Self.change(cardAccess, &random)),
                performPassiveAuthentication: false)
            if model.dataGroupReadStatus[id] == .failed { failed += 1 }
        }
        #expect(failed > 5_000)
    }

    @Test func changedSecurityObjectsAndListsNeverPassAsWhole() throws {
        let issuer = try SpecimenIssuer.seeded()
        let files: [Int: [UInt8]] = [1: [0x61, 0x00], 2: [0x75, 0x00]]
        let data: [DataGroupId: Data] = [.dg1: Data([0x61, 0x00]), .dg2: Data([0x75, 0x00])]
        let sod = try issuer.documentSecurityObject(files)
        let list = try issuer.masterList()
        let anchors = try TrustAnchors(files: [issuer.cscaCertificateDER])
        var random = SplitMix(state: 12)
        for _ in 0..<3_000 {
            let changed = Self.change(sod, &random)
            let report = PassiveAuthentication.verify(sod: changed, dataGroups: data, anchors: anchors, today: Self.today)
            // What passes differs at most in what nobody signs: both hashes and the signature were right.
            if report.status == .fullyVerified { #expect(report.dataGroups == [.dg1: .matches, .dg2: .matches]) }
            _ = try? MasterList(der: Self.change(list, &random))
            _ = try? TrustAnchors(files: [Self.change(issuer.cscaCertificateDER, &random)])
        }
    }

    @Test func changedCVCertificatesAndKeysNeverTrap() throws {
        let terminals = try SpecimenTerminals()
        var random = SplitMix(state: 13)
        var taken = 0
        for _ in 0..<5_000 {
            let original = [terminals.authority, terminals.documentVerifier, terminals.terminal][random.below(3)]
            let changed = Self.change(original.octets, &random)
            if let certificate = try? CVCertificate(changed),
                certificate.body != original.body || certificate.signature != original.signature
            {
                var verifier = try terminals.verifier()
                if (try? verifier.verify(certificate)) != nil { taken += 1 }
            }
            _ = try? SigningKey(der: Self.change(terminals.terminalKeyDER, &random))
            _ = try? TerminalAuthenticationReferences.read(
                Self.change(octets("420B555443564341303030303142054142434445"), &random))
        }
        #expect(taken == 0)
    }
}

private enum TerminalAuthenticationReferences {
    static func read(_ file: [UInt8]) throws -> Int { try TerminalAuthentication.references(inCVCA: file).count }
}
