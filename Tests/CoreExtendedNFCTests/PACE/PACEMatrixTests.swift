// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Testing
import VirtualCards

/// The reader's PACE against the chip's, which share the arithmetic of CardCrypto and nothing of the protocol.
@Suite struct PACEMatrixTests {
    @Test func theMatrixHasEveryLegalWay() {
        // DH: 2 mappings, 4 ciphers, 3 groups. ECDH: 4 ciphers on 11 curves, on 10 with integrated mapping, 3 with chip authentication.
        #expect(PACEMatrix.all.count == 24 + 44 + 40 + 33)
        #expect(Set(PACEMatrix.all).count == PACEMatrix.all.count)
    }

    @Test(arguments: PACEMatrix.all)
    func everyWayOpensTheChipWithMRZAndWithCAN(way: String) async throws {
        for access in [PassportAccess.mrz(specimenKey), .can("123456")] {
            let keys = KeyCollector()
            let model = try await CardEnvironment.with(CardEnvironment(keySink: keys)) {
                try await CoreExtendedNFC.readPassport(
                    transport: try virtualPassport("pace=\(way)&dg=1"), access: access, dataGroups: [.com, .dg1])
            }
            #expect(model.securityReport.pace.status == .succeeded)
            #expect(model.securityReport.bac.status == .skipped)
            #expect(model.dataGroupReadStatus == [.com: .read, .dg1: .read])
            #expect(model.mrz?.documentNumber == "L898902C")
            #expect(keys["pace.ksEnc"] == keys["secureMessaging.enc"] && keys["pace.ksMac"] == keys["secureMessaging.mac"])
            let length = ["3des": 16, "aes128": 16, "aes192": 24, "aes256": 32][
                way.split(separator: ":")[0].split(separator: "-")[2]]
            #expect(keys["pace.ksEnc"]?.count == length)
            if way.contains("cam") {
                #expect(model.securityReport.chipAuthentication.status == .succeeded)
                #expect(model.securityReport.chipAuthentication.detail?.contains("chip authentication mapping") == true)
            }
        }
    }

    @Test(arguments: [
        "ecdh-gm-aes128:explicit-13", "ecdh-im-aes256:explicit-12", "dh-gm-aes128:explicit-2", "dh-im-3des:explicit-0",
    ])
    func parametersSpelledOutAreUsed(way: String) async throws {
        let model = try await CoreExtendedNFC.readPassport(
            transport: try virtualPassport("pace=\(way)&dg=1"), access: .can("123456"), dataGroups: [.dg1])
        #expect(model.securityReport.pace.status == .succeeded)
        #expect(model.cardAccess?.count == 2)
    }

    /// The keys of Chip Authentication, by agreement and cipher, and on every curve.
    @Test(
        arguments: ["dh-3des:0", "dh-aes128:1", "dh-aes256:2", "ecdh-3des:12", "ecdh-aes192:18", "ecdh-aes128:explicit-13"]
            + (8...18).map { "ecdh-aes128:\($0)" })
    func chipAuthenticationGoesOnUnderNewKeys(way: String) async throws {
        for options in ["", "&pace=ecdh-gm-aes128:13"] {
            let keys = KeyCollector()
            let model = try await CardEnvironment.with(CardEnvironment(keySink: keys)) {
                try await CoreExtendedNFC.readPassport(
                    transport: try virtualPassport("ca=\(way)\(options)"), mrzKey: specimenKey,
                    dataGroups: [.com, .sod, .dg1, .dg2, .dg14])
            }
            #expect(model.securityReport.chipAuthentication.status == .succeeded)
            #expect(model.dataGroupReadStatus.values.allSatisfy { $0 == .read })
            #expect(keys.names.suffix(5).first == "chipAuthentication.ksEnc")
            #expect(keys["chipAuthentication.ksEnc"] != keys["secureMessaging.enc"])
        }
    }

    @Test func severalKeysAreToldApartByTheirNumbers() async throws {
        let model = try await CoreExtendedNFC.readPassport(
            transport: try virtualPassport("ca=ecdh-3des:12,ecdh-aes256:13,dh-3des:2"), mrzKey: specimenKey,
            dataGroups: [.com, .dg1])
        #expect(model.securityReport.chipAuthentication.detail?.hasPrefix("ECDH, AES-256, brainpoolP256r1") == true)
    }

    @Test(arguments: ["rsa", "ecdsa:8", "ecdsa:12", "ecdsa:13", "ecdsa:16", "ecdsa:18"])
    func activeAuthenticationVerifiesTheChip(kind: String) async throws {
        for options in ["", "&ca=ecdh-aes128:13", "&pace=ecdh-cam-aes256:13&ca=ecdh-aes128:13"] {
            let model = try await CoreExtendedNFC.readPassport(
                transport: try virtualPassport("aa=\(kind)\(options)"), mrzKey: specimenKey, dataGroups: [.com, .sod, .dg1])
            #expect(model.activeAuthResult == .verified)
            #expect(model.securityReport.activeAuthentication.status == .succeeded)
        }
    }

    @Test func fingersAreReadByATerminalWithCertificates() async throws {
        let terminals = try SpecimenTerminals()
        let terminal = try TerminalCredentials(
            certificatesDER: terminals.chain.map { Data($0.octets) }, privateKeyDER: Data(terminals.terminalKeyDER))
        for options in ["", "&pace=ecdh-gm-aes128:13", "&pace=dh-gm-aes128:2"] {
            let card = "dg=1,3,4&ta&ca=ecdh-aes128:13\(options)"
            let model = try await CoreExtendedNFC.readPassport(
                transport: try virtualPassport(card), access: .mrz(specimenKey), dataGroups: [.com, .sod, .dg1, .dg3, .dg4],
                terminal: terminal)
            #expect(model.securityReport.terminalAuthentication?.status == .succeeded)
            #expect(model.dataGroupReadStatus.values.allSatisfy { $0 == .read })
            let without = try await CoreExtendedNFC.readPassport(
                transport: try virtualPassport(card), mrzKey: specimenKey, dataGroups: [.com, .sod, .dg1, .dg3, .dg4])
            #expect(without.dataGroupReadStatus[.dg3] == .unavailable)
            #expect(without.dataGroupReadStatus[.dg4] == .unavailable)
            #expect(without.securityReport.terminalAuthentication == nil)
        }
    }
}
