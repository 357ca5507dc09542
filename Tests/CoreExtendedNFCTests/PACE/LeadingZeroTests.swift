// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import Testing
import VirtualCards

/// Secrets that begin with zeros: one run in 256, and the usual way in which implementations fail now and then.
@Suite struct LeadingZeroTests {
    private struct Way: Sendable {
        let option: String
        let parameters: Int
        let runs: Int
    }

    /// A thousand runs in all, the random octets of both sides following from the number of the run.
    @Test func aThousandSeededRunsSucceed() async throws {
        var zeros = 0
        for way in [
            Way(option: "ecdh-gm-aes128:13", parameters: 13, runs: 700), Way(option: "dh-gm-aes128:0", parameters: 0, runs: 300),
        ] {
            let card = Tampering(try virtualPassport("pace=\(way.option)&dg=1"))
            for run in 0..<way.runs {
                _ = try await card.resetCard()
                card.forget()
                let model = try await CardEnvironment.with(CardEnvironment(random: SeededRandom(seed: run))) {
                    try await CoreExtendedNFC.readPassport(transport: card, access: .can("123456"), dataGroups: [.com])
                }
                #expect(model.securityReport.pace.status == .succeeded, "run \(run) of \(way.option)")
                if try sharedSecret(card, way.parameters, SeededRandom(seed: run)).first == 0 { zeros += 1 }
            }
        }
        // One in 256: some of a thousand do begin with a zero, or this test shows nothing.
        #expect((1...20).contains(zeros))
    }

    /// K, worked out once more from what passed and the reader's random octets.
    private func sharedSecret(_ card: Tampering, _ identifier: Int, _ random: SeededRandom) throws -> [UInt8] {
        let parameters = try #require(DomainParameters.standardized(identifier))
        let steps = try card.exchanges.filter { $0.command[1] == 0x86 }.map { exchange in
            try TLV.first(in: exchange.answer.dropLast(2)[...]).children()[0].value
        }
        let key = try KeyDerivation.key(from: Array("123456".utf8), counter: KeyDerivation.password, for: .aes128)
        let nonce = try BlockCipher.aes.decrypt(Array(steps[0]), key: key)
        func pair(_ parameters: DomainParameters, _ label: String) throws -> KeyAgreementKeyPair {
            try KeyAgreementKeyPair(parameters, random: try random.octets(parameters.randomLength, label: label))
        }
        let mapped = try parameters.genericMapping(
            nonce: nonce, keyPair: try pair(parameters, "pace.mapIFD"), publicKey: Array(steps[1]))
        return try pair(mapped, "pace.skIFD").sharedSecret(with: Array(steps[2]))
    }
}
