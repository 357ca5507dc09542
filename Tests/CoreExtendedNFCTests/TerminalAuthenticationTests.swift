// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import Octets
import TagTransport
import TestSupport
import Testing

@testable import CoreExtendedNFC
@testable import VirtualCards

@Suite struct TerminalAuthenticationTests {
    private static let identity = Array("L898902C<3".utf8)
    private static let key = octets("A9FB57DBA1EEA9BC3E660A909D838D726E3BF623D52620282013481D1F6E5374")

    private struct Refused: Error, Equatable { let word: UInt16 }

    /// Runs the terminal's machine against the chip's side; the commands that went.
    private func run(
        _ credentials: TerminalCredentials, _ chip: inout PassportTerminalAuthentication, compressedKey: [UInt8] = key,
        chipIdentity: [UInt8] = identity
    ) throws -> [String] {
        let references = try TerminalAuthentication.references(inCVCA: chip.fileOfAuthorities())
        var terminal = try TerminalAuthentication(
            credentials: credentials, references: references, chipIdentity: Self.identity, compressedKey: Self.key)
        var random = CardRandom(seed: 4)
        var commands: [String] = []
        var action = try terminal.begin()
        while true {
            switch action {
            case .send(let command):
                commands.append(Hex.encode(command.octets.prefix(4)))
                action = try terminal.received(
                    answer(command, &chip, &random, chipIdentity: chipIdentity, compressedKey: compressedKey))
            case .drawRandom(let count): action = try terminal.drew(random.octets(count))
            case .finished: return commands
            }
        }
    }

    private func answer(
        _ command: CommandAPDU, _ chip: inout PassportTerminalAuthentication, _ random: inout CardRandom, chipIdentity: [UInt8],
        compressedKey: [UInt8]
    ) -> ResponseAPDU {
        let data = Array(command.data ?? Data())
        do throws(StatusWord) {
            switch (command.ins, command.p2) {
            case (0x22, 0xB6): try chip.setAuthority(data)
            case (0x2A, _): try chip.verifyCertificate(data)
            case (0x22, _): try chip.setTerminal(data)
            case (0x84, _):
                let challenge = random.octets(8)
                chip.challenge(challenge)
                return ResponseAPDU(data: Data(challenge), statusWord: 0x9000)
            default: try chip.authenticate(data, chipIdentity: chipIdentity, compressedKey: compressedKey)
            }
            return ResponseAPDU(statusWord: 0x9000)
        } catch { return ResponseAPDU(statusWord: error.rawValue) }
    }

    private func credentials(_ terminals: SpecimenTerminals) throws -> TerminalCredentials {
        try TerminalCredentials(
            certificatesDER: terminals.chain.reversed().map { Data($0.octets) }, privateKeyDER: Data(terminals.terminalKeyDER))
    }

    struct Kind: Sendable { let key: SpecimenIssuer.KeyKind, digest: Digest, usesPSS: Bool }

    static let kinds: [Kind] =
        Digest.allCases.map { Kind(key: .standardized(13), digest: $0, usesPSS: false) }
        + [.sha1, .sha256, .sha512].flatMap { digest in
            [false, true].map { Kind(key: .rsa(bits: 2048), digest: digest, usesPSS: $0) }
        }
        + [8, 11, 12, 15, 17, 18].map { Kind(key: .standardized($0), digest: .sha256, usesPSS: false) }

    /// TR-03110 part 3, A.1.1.3: every algorithm of Terminal Authentication, both sides.
    @Test(arguments: kinds) func aTerminalWithAChainIsTaken(kind: Kind) throws {
        let terminals = try SpecimenTerminals(seed: 2, keyKind: kind.key, digest: kind.digest, usesPSS: kind.usesPSS)
        var chip = PassportTerminalAuthentication(verifier: try terminals.verifier())
        #expect(!chip.mayRead(dataGroup: 3))
        let commands = try run(try credentials(terminals), &chip)
        #expect(commands == ["002281B6", "002A00BE", "002281B6", "002A00BE", "002281A4", "00840000", "00820000"])
        #expect(chip.mayRead(dataGroup: 3) && chip.mayRead(dataGroup: 4) && !chip.mayRead(dataGroup: 2))
    }

    @Test func aChipThatKnowsTheOldKeyGetsTheLinkFirst() throws {
        let terminals = try SpecimenTerminals(fromLink: true)
        var chip = PassportTerminalAuthentication(verifier: try terminals.verifier())
        #expect(try run(try credentials(terminals), &chip).count == 9)
        #expect(chip.mayRead(dataGroup: 3))
        // The link stays: the next session needs two certificates only, and EF.CVCA begins with the new key.
        #expect(String(decoding: chip.fileOfAuthorities()[2..<17], as: UTF8.self) == "UTCVCASPEC00002")
        #expect(chip.fileOfAuthorities().count == 36)
        #expect(try run(try credentials(terminals), &chip).count == 7)
    }

    @Test func rightsAreThoseOfEveryCertificateOfTheChain() throws {
        let terminals = try SpecimenTerminals(rights: SpecimenTerminals.Rights(readsDG3: true, readsDG4: false))
        var chip = PassportTerminalAuthentication(verifier: try terminals.verifier())
        _ = try run(try credentials(terminals), &chip)
        #expect(chip.mayRead(dataGroup: 3) && !chip.mayRead(dataGroup: 4))
    }

    @Test func anotherKeyOrIdentityIsRefused() throws {
        let terminals = try SpecimenTerminals()
        let credentials = try credentials(terminals)
        for (identity, key) in [(Self.identity, [UInt8](Self.key.reversed())), (Array("L898902C<4".utf8), Self.key)] {
            var chip = PassportTerminalAuthentication(verifier: try terminals.verifier())
            #expect(throws: TerminalAuthenticationError(.signatureRefused(0x6300), "")) {
                try run(credentials, &chip, compressedKey: key, chipIdentity: identity)
            }
            #expect(!chip.mayRead(dataGroup: 3))
        }
    }

    @Test func aChipOfAnotherStateHasNoChain() throws {
        let terminals = try SpecimenTerminals(seed: 1)
        let other = try SpecimenTerminals(seed: 2)
        var chip = PassportTerminalAuthentication(verifier: try other.verifier())
        // The names are the same, the keys are not: the chip finds the signature wrong.
        #expect(throws: TerminalAuthenticationError(.certificateRefused(0x6300), "")) {
            try run(try credentials(terminals), &chip)
        }
        #expect(throws: TerminalAuthenticationError(.noChain, "")) {
            try TerminalAuthentication(
                credentials: try credentials(terminals), references: [Array("XXCVCA00001".utf8)], chipIdentity: [],
                compressedKey: [])
        }
    }

    @Test func aKeyThatIsNotTheTerminalsIsRefusedBeforeTheFirstCommand() throws {
        let terminals = try SpecimenTerminals(seed: 1)
        let other = try SpecimenTerminals(seed: 2)
        #expect(throws: CryptoError(code: .publicKey, detail: "")) {
            try TerminalCredentials(
                certificatesDER: terminals.chain.map { Data($0.octets) }, privateKeyDER: Data(other.terminalKeyDER))
        }
        #expect(throws: LDSError.self) {
            try TerminalCredentials(certificatesDER: [Data([0x7F, 0x21, 0x00])], privateKeyDER: Data(other.terminalKeyDER))
        }
        #expect(throws: CryptoError(code: .certificate, detail: "")) {
            try TerminalCredentials(certificatesDER: [], privateKeyDER: Data(other.terminalKeyDER))
        }
    }

    @Test func certificatesEndAndTheCardLearnsTheDate() throws {
        let day = try #require(CalendarDay(year: 2022, month: 6, day: 30))
        let short = try SpecimenTerminals(expiration: day)
        var verifier = try short.verifier()
        try verifier.verify(short.documentVerifier)
        try verifier.verify(short.terminal)
        #expect(verifier.effectiveAuthorization?.role == .terminal)
        // A card that has seen a certificate of 2023 takes no document verifier that ended in 2022, but still a link.
        let later = try #require(CalendarDay(year: 2023, month: 1, day: 1))
        var aged = CVCertificateVerifier(trustPoints: verifier.trustPoints, today: later)
        #expect(throws: CVCertificateRefusal.self) { try aged.verify(short.documentVerifier) }
        do { try aged.verify(short.documentVerifier) } catch { #expect(error.code == .expired) }
        try aged.verify(short.link)
        #expect(aged.trustPoints.count == 2)
    }

    @Test func rolesAreKept() throws {
        let terminals = try SpecimenTerminals()
        var verifier = try terminals.verifier()
        // A terminal's certificate straight away refers to a key that is not there.
        do { try verifier.verify(terminals.terminal) } catch { #expect(error.code == .unknownAuthority) }
        try verifier.verify(terminals.documentVerifier)
        try verifier.verify(terminals.terminal)
        // The terminal's key signs no certificate.
        do {
            try verifier.verify(terminals.documentVerifier)
            try verifier.verify(terminals.documentVerifier)
        } catch { Issue.record("the document verifier's certificate may come again: \(error)") }
    }

    @Test func stepsOutOfOrderAreRefusedByTheChip() throws {
        let terminals = try SpecimenTerminals()
        var chip = PassportTerminalAuthentication(verifier: try terminals.verifier())
        func refusal(_ body: () throws -> Void) -> UInt16? {
            do { try body() } catch { return (error as? StatusWord)?.rawValue }
            return nil
        }
        let reference = TLV.encode(0x83, terminals.authority.holderReference)
        #expect(refusal { try chip.verifyCertificate(terminals.documentVerifier.bodyAndSignature) } == 0x6985)
        #expect(refusal { try chip.setTerminal(TLV.encode(0x83, terminals.terminal.holderReference)) } == 0x6A88)
        #expect(refusal { try chip.authenticate([1], chipIdentity: [], compressedKey: []) } == 0x6985)
        #expect(refusal { try chip.setAuthority(octets("8303585858")) } == 0x6A88)
        #expect(refusal { try chip.setAuthority(octets("8403585858")) } == 0x6A80)
        #expect(refusal { try chip.setAuthority(reference) } == nil)
        #expect(refusal { try chip.verifyCertificate([0x7F]) } == 0x6A80)
        #expect(refusal { try chip.verifyCertificate(terminals.documentVerifier.bodyAndSignature) } == 0x6985)
    }

    @Test func anyOctetChangedInACertificateIsRefused() throws {
        let terminals = try SpecimenTerminals()
        let octets = terminals.documentVerifier.octets
        for index in octets.indices {
            var changed = octets
            changed[index] ^= 0x01
            guard let certificate = try? CVCertificate(changed) else { continue }
            var verifier = try terminals.verifier()
            #expect(throws: CVCertificateRefusal.self, "octet \(index)") { try verifier.verify(certificate) }
        }
    }

    @Test func referencesOfEFCVCAAreReadInOrder() throws {
        let file = octets("420E" + "44455445535465494430303030324207" + "4142434445464700000000")
        #expect(
            try TerminalAuthentication.references(inCVCA: file).map { String(decoding: $0, as: UTF8.self) }
                == ["DETESTeID00002", "ABCDEFG"])
        #expect(throws: LDSError(.missing)) { try TerminalAuthentication.references(inCVCA: [0, 0]) }
        #expect(throws: LDSError(.encoding)) { try TerminalAuthentication.references(inCVCA: [0x42, 5, 1]) }
    }
}

/// Chains that others issued.
@Suite(.enabled(if: SharedData.isPresent, Comment(rawValue: SharedData.absence))) struct SharedTerminalTests {
    private func certificate(_ path: String) throws -> CVCertificate {
        let octets = try SharedDocumentFiles.octets(path)
        guard path.hasSuffix(".hex") else { return try CVCertificate(octets) }
        return try CVCertificate(try Hex.decode(String(decoding: octets, as: UTF8.self).filter { !$0.isWhitespace }))
    }

    private func verifier(_ authority: CVCertificate, _ year: Int) throws -> CVCertificateVerifier {
        let today = try #require(CalendarDay(year: year, month: 1, day: 1))
        return CVCertificateVerifier(trustPoints: [try CVCertificateVerifier.TrustPoint(authority)], today: today)
    }

    @Test func theDutchChainVerifiesAndItsKeySigns() throws {
        let folder = "ElMostafaIdrassi__jmrtd/abandoned/passporthostapi-test/certs/orig/"
        let authority = try certificate(folder + "certCVCA_orig.cvcert")
        let documentVerifier = try certificate(folder + "certDVD_orig.cvcert")
        let terminal = try certificate(folder + "certIS_orig.cvcert")
        var verifier = try verifier(authority, 2009)
        try verifier.verify(documentVerifier)
        try verifier.verify(terminal)
        #expect(verifier.effectiveAuthorization?.terminalType == CVCertificate.Authorization.inspectionSystem)
        #expect(verifier.effectiveAuthorization?.mayReadDG3 == true)
        let credentials = try TerminalCredentials(
            certificatesDER: [terminal, documentVerifier, authority].map { Data($0.octets) },
            privateKeyDER: Data(try SharedDocumentFiles.octets(folder + "keyIS_orig.der")))
        #expect(
            credentials.chain(from: [authority.holderReference])?.map(\.holderReference)
                == [documentVerifier, terminal].map(\.holderReference))
        var chip = PassportTerminalAuthentication(verifier: try self.verifier(authority, 2009))
        _ = chip.fileOfAuthorities()
        try chip.setAuthority(TLV.encode(0x83, authority.holderReference))
        try chip.verifyCertificate(documentVerifier.bodyAndSignature)
    }

    @Test func theSimulatorsChainsVerify() throws {
        let folder = "PersoSim__de.persosim.simulator/de.persosim.simulator/personalization/gtCertificates/"
        for (kind, verifierName, terminalName, keyName) in [
            ("CFG.DFLT.EAC.IS/", "dv_is_cert_1.cvcert", "is_cert_1.cvcert", "IS_Key_01_default.pkcs8"),
            ("CFG.DFLT.EAC.AT/", "dv_at_cert_1.cvcert", "at_cert_1.cvcert", "AT_Key_01_default.pkcs8"),
        ] {
            let authority = try certificate(folder + kind + "CVCA_Cert_01.cvcert")
            let documentVerifier = try certificate(folder + kind + verifierName)
            let terminal = try certificate(folder + kind + terminalName)
            var verifier = try verifier(authority, 2016)
            try verifier.verify(documentVerifier)
            try verifier.verify(terminal)
            #expect(verifier.effectiveAuthorization?.role == .terminal)
            let key = Data(try SharedDocumentFiles.octets(folder + kind + keyName))
            let credentials = try TerminalCredentials(
                certificatesDER: [documentVerifier, terminal].map { Data($0.octets) }, privateKeyDER: key)
            #expect(credentials.holderReference == terminal.holderReference)
        }
    }

    /// RSA certificates of the European test set 19; their authority is not among the files.
    @Test func anRSAChainVerifiesFromItsDocumentVerifier() throws {
        let documentVerifier = try certificate("frankmorgner__openpace/cv_cert/dv_cert_19.cvcert")
        let terminal = try certificate("frankmorgner__openpace/cv_cert/at_cert_19a.cvcert")
        let key = try #require(documentVerifier.publicKey.key)
        #expect(key.name == "RSA 1024")
        #expect(try terminal.isSigned(by: key, .rsaPKCS1(.sha1)))
    }

    @Test func linksOfRealAuthoritiesVerify() throws {
        let folder = "Governikus__AusweisApp/test/fixture/card/cvca-"
        for (old, link) in [
            ("DECVCAeID00102", "DECVCAeID00102_DECVCAeID00103"), ("DETESTeID00001", "DETESTeID00002_DETESTeID00001"),
        ] {
            var verifier = try verifier(try certificate(folder + old + ".hex"), 2010)
            try verifier.verify(try certificate(folder + link + ".hex"))
            #expect(verifier.trustPoints.count == 2)
        }
        var german = try verifier(try certificate(folder + "DECVCAeID00103.hex"), 2014)
        try german.verify(try certificate("Governikus__AusweisApp/test/fixture/card/cvdv-DEDVeIDDTR101415.hex"))
        try german.verify(try certificate("Governikus__AusweisApp/test/fixture/card/cvat-DE0000024001HW.hex"))
        #expect(german.effectiveAuthorization?.role == .terminal)
    }
}
