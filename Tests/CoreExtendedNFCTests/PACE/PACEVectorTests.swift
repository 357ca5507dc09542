// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Octets
import TestSupport
import Testing

/// The reader sends the commands of the worked examples of ICAO 9303-11 appendices G and H, octet by octet, and comes to their keys.
@Suite struct PACEVectorTests {
    private static let mrzKey = "T22000129364081251010318"

    /// Random octets that make this private key: one more than them modulo the order.
    private func random(_ privateKey: String, _ parameters: DomainParameters) throws -> [UInt8] {
        var octets = try Hex.decode(privateKey)
        guard let last = octets.indices.last, octets[last] > 0 else { return octets }
        octets[last] -= 1
        return [UInt8](repeating: 0, count: parameters.randomLength - octets.count) + octets
    }

    private func run(
        _ example: PACEExamples.Example, _ access: PassportAccess, info: String, selection: String, lastAnswer: String
    ) async throws -> KeyCollector {
        let parameters = try #require(DomainParameters.standardized(example.parameters))
        func general(_ tag: UInt32, _ hex: String, isLast: Bool = false) throws -> String {
            let data = TLV.encode(0x7C, TLV.encode(tag, try Hex.decode(hex)))
            return (isLast ? "00" : "10") + "860000" + Hex.encode([UInt8(data.count)] + data) + "00"
        }
        func answer(_ tag: UInt32, _ hex: String) throws -> String {
            Hex.encode(TLV.encode(0x7C, TLV.encode(tag, try Hex.decode(hex)))) + "9000"
        }
        let file = Hex.encode(TLV.encode(0x31, try Hex.decode(info)))
        let isIntegrated = !example.terminalNonce.isEmpty
        let chip = ScriptedChip(exchanges: [
            ("00A4000C", "9000"), ("00A4020C02011C", "9000"), ("00B0000004", String(file.prefix(8)) + "9000"),
            ("00B00004" + Hex.encode([UInt8(file.count / 2 - 4)]), String(file.dropFirst(8)) + "9000"),
            (selection, "9000"), ("10860000027C0000", try answer(0x80, example.encryptedNonce)),
            (
                try general(0x81, isIntegrated ? example.terminalNonce : example.mappingPublicIFD),
                try answer(0x82, isIntegrated ? "" : example.mappingPublicIC)
            ),
            (try general(0x83, example.publicIFD), try answer(0x84, example.publicIC)),
            (try general(0x85, example.tokenIFD, isLast: true), lastAnswer),
        ])
        var draws = ["pace.skIFD": try random(example.secretIFD, parameters)]
        if isIntegrated {
            draws["pace.nonceIFD"] = try Hex.decode(example.terminalNonce)
        } else {
            draws["pace.mapIFD"] = try random(example.mappingSecretIFD, parameters)
        }
        let keys = KeyCollector()
        // The script ends with the last answer of PACE.
        await #expect(throws: NFCError.tagConnectionLost) {
            try await CardEnvironment.with(CardEnvironment(random: FixedRandom(draws: draws), keySink: keys)) {
                try await CoreExtendedNFC.readPassport(transport: chip, access: access, dataGroups: [.dg1])
            }
        }
        #expect(chip.commands.count == 10)
        return keys
    }

    private func expect(_ keys: KeyCollector, _ example: PACEExamples.Example) {
        #expect(keys["pace.ksEnc"].map { Hex.encode($0) } == example.encryptionKey)
        #expect(keys["pace.ksMac"].map { Hex.encode($0) } == example.macKey)
    }

    @Test func genericMappingOnACurve() async throws {
        let example = PACEExamples.ecdhGeneric
        expect(
            try await run(
                example, .mrz(Self.mrzKey), info: "3012060A04007F0007020204020202010202010D",
                selection: "0022C1A40F800A04007F00070202040202830101", lastAnswer: "7C0A8608\(example.tokenIC)9000"), example)
    }

    @Test func genericMappingModuloAPrime() async throws {
        let example = PACEExamples.dhGeneric
        expect(
            try await run(
                example, .mrz(Self.mrzKey), info: "3012060A04007F00070202040102020102020100",
                selection: "0022C1A40F800A04007F00070202040102830101",
                lastAnswer: "7C1B8608917F37B5C0E6D8D1870F4445544553544356434130303030339000"), example)
    }

    @Test func integratedMappingOnACurve() async throws {
        let example = PACEExamples.ecdhIntegrated
        expect(
            try await run(
                example, .can("123456"), info: "3012060A04007F0007020204040202010202010D",
                selection: "0022C1A40F800A04007F00070202040402830102", lastAnswer: "7C0A8608\(example.tokenIC)9000"), example)
    }
}
