// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets
import TestSupport
import Testing

/// The transforms of PACE on the worked examples of ICAO 9303-11, appendices G.1, G.2 and H.1.
@Suite struct PassportTransformTests {
    private func run(_ name: String, _ arguments: String...) throws -> String {
        let transform = try #require(StandardTransforms().transform(named: name))
        return Hex.encode(try transform(try arguments.map { try Hex.decode($0) }))
    }

    /// What the password key follows from: SHA-1 of the MRZ's key in appendix G, the CAN's characters in appendix H.
    private static func seed(_ example: PACEExamples.Example) -> String {
        example.name.hasPrefix("H") ? "313233343536" : "7E2D2A41C74EA0B38CD36F863939BFA8E9032AAD"
    }

    @Test(arguments: PACEExamples.all.indices) func theKeysAndTokensOfAnExampleAreThePrintedOnes(_ number: Int) throws {
        let example = PACEExamples.all[number]
        let oid = example.protocolOID
        #expect(try run("paceKey", Self.seed(example), oid, "00000003") == example.passwordKey)
        #expect(try run("paceOpen", Self.seed(example), oid, example.encryptedNonce) == example.nonce)
        #expect(try run("paceSeal", Self.seed(example), oid, example.nonce) == example.encryptedNonce)
        #expect(try run("paceKey", example.sharedSecret, oid, "00000001") == example.encryptionKey)
        #expect(try run("paceKey", example.sharedSecret, oid, "00000002") == example.macKey)
        // Each side's token is over the other's key.
        #expect(try run("paceToken", example.macKey, oid, example.publicIC) == example.tokenIFD)
        #expect(try run("paceToken", example.macKey, oid, example.publicIFD) == example.tokenIC)
        #expect(try run("paceCounter", oid) == String(repeating: "0", count: 32))
    }

    @Test(arguments: PACEExamples.all.indices) func theSharedSecretOfAnExampleFollowsFromTheTerminalsSecrets(_ number: Int) throws
    {
        let example = PACEExamples.all[number]
        let isIntegrated = !example.terminalNonce.isEmpty
        let secret = try run(
            "paceSecret", Self.seed(example), example.protocolOID, example.encryptedNonce,
            isIntegrated ? "00" : example.mappingSecretIFD, isIntegrated ? example.terminalNonce : example.mappingPublicIFD,
            isIntegrated ? "" : example.mappingPublicIC, example.secretIFD, example.publicIFD, example.publicIC)
        #expect(secret == example.sharedSecret)
    }
}
