// SPDX-License-Identifier: MIT

import Octets
import Testing

@testable import CardCrypto

/// Every step of the worked examples of ICAO 9303-11 appendices G and H, from both sides.
@Suite struct MappingVectorTests {
    private func parameters(_ example: PACEExamples.Example) throws -> DomainParameters {
        try #require(DomainParameters.standardized(example.parameters))
    }

    private func mapped(_ example: PACEExamples.Example) throws -> DomainParameters {
        let nonce = try Hex.decode(example.nonce)
        guard example.terminalNonce.isEmpty else {
            return try parameters(example).integratedMapping(
                nonce: nonce, terminalNonce: try Hex.decode(example.terminalNonce), algorithm: .aes128)
        }
        let pair = try KeyAgreementKeyPair(parameters(example), privateKey: try Hex.decode(example.mappingSecretIFD))
        return try parameters(example).genericMapping(
            nonce: nonce, keyPair: pair, publicKey: try Hex.decode(example.mappingPublicIC))
    }

    @Test(arguments: PACEExamples.all)
    func theNonceIsDecryptedUnderThePasswordKey(example: PACEExamples.Example) throws {
        let plain = try BlockCipher.aes.decrypt(
            try Hex.decode(example.encryptedNonce), key: try Hex.decode(example.passwordKey))
        #expect(Hex.encode(plain) == example.nonce)
    }

    @Test(arguments: [PACEExamples.ecdhGeneric, PACEExamples.dhGeneric])
    func mappingKeysFollowFromThePrivateKeys(example: PACEExamples.Example) throws {
        let reader = try KeyAgreementKeyPair(parameters(example), privateKey: try Hex.decode(example.mappingSecretIFD))
        let chip = try KeyAgreementKeyPair(parameters(example), privateKey: try Hex.decode(example.mappingSecretIC))
        #expect(Hex.encode(reader.publicKey) == example.mappingPublicIFD)
        #expect(Hex.encode(chip.publicKey) == example.mappingPublicIC)
        let nonce = try Hex.decode(example.nonce)
        let bySide = try [(reader, chip), (chip, reader)].map {
            try parameters(example).genericMapping(nonce: nonce, keyPair: $0.0, publicKey: $0.1.publicKey)
        }
        #expect(try bySide[0] == mapped(example))
        #expect(bySide[0] == bySide[1])
    }

    @Test(arguments: PACEExamples.all)
    func theMappedGeneratorIsThatOfTheStandard(example: PACEExamples.Example) throws {
        #expect(Hex.encode(try mapped(example).generator()) == example.generator)
    }

    @Test(arguments: PACEExamples.all)
    func keysAndSecretFollowFromTheMappedGenerator(example: PACEExamples.Example) throws {
        let generator = try mapped(example)
        let reader = try KeyAgreementKeyPair(generator, privateKey: try Hex.decode(example.secretIFD))
        let chip = try KeyAgreementKeyPair(generator, privateKey: try Hex.decode(example.secretIC))
        #expect(Hex.encode(reader.publicKey) == example.publicIFD)
        #expect(Hex.encode(chip.publicKey) == example.publicIC)
        let secret = try reader.sharedSecret(with: chip.publicKey)
        #expect(Hex.encode(secret) == example.sharedSecret)
        #expect(try chip.sharedSecret(with: reader.publicKey) == secret)
        #expect(Hex.encode(try KeyDerivation.key(from: secret, counter: 1, for: .aes128)) == example.encryptionKey)
        #expect(Hex.encode(try KeyDerivation.key(from: secret, counter: 2, for: .aes128)) == example.macKey)
    }

    @Test(arguments: PACEExamples.all)
    func tokensAreMACsOverTheOtherSidesKey(example: PACEExamples.Example) throws {
        let tag: UInt32 = example.parameters < 3 ? 0x84 : 0x86
        func token(over key: String) throws -> String {
            let object = TLV.encode(
                0x7F49, TLV.encode(0x06, try Hex.decode(example.protocolOID)) + TLV.encode(tag, try Hex.decode(key)))
            return Hex.encode(
                try KeyDerivation.Algorithm.aes128.authenticationToken(object, key: try Hex.decode(example.macKey)))
        }
        #expect(try token(over: example.publicIC) == example.tokenIFD)
        #expect(try token(over: example.publicIFD) == example.tokenIC)
    }

    /// ICAO 9303-11 appendix H.1.
    @Test func thePseudorandomNumberIsThatOfTheStandard() throws {
        let example = PACEExamples.ecdhIntegrated
        let (s, t) = (try Hex.decode(example.nonce), try Hex.decode(example.terminalNonce))
        let octets = try PseudorandomFunction.octets(nonce: s, terminalNonce: t, algorithm: .aes128, bits: 256 + 64)
        #expect(
            Hex.encode(octets)
                == "E4447E2DFB3586BAC05DDB00156B57FBB2179A3949294C97254189800C517BAA8DA0FF397ED8C445D3E421E4FEB57322")
        #expect(
            Hex.encode(try parameters(example).pseudorandomNumber(nonce: s, terminalNonce: t, algorithm: .aes128))
                == "A2F8FF2DF50E52C6599F386ADCB595D229F6A167ADE2BE5F2C3296ADD5B7430E")
    }
}
