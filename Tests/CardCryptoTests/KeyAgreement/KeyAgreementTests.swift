// SPDX-License-Identifier: MIT

import Octets
import Testing

@testable import CardCrypto

@Suite struct KeyAgreementTests {
    private func octets(_ count: Int, _ seed: UInt64) throws -> [UInt8] {
        var result: [UInt8] = []
        var counter: UInt64 = 0
        while result.count < count {
            result += try Digest.sha256.hash(Array("\(seed) \(counter)".utf8))
            counter += 1
        }
        return Array(result.prefix(count))
    }

    private func pair(_ parameters: DomainParameters, _ seed: UInt64) throws -> KeyAgreementKeyPair {
        try KeyAgreementKeyPair(parameters, random: try octets(parameters.randomLength, seed))
    }

    @Test(arguments: DomainParameters.standardizedIdentifiers)
    func bothSidesAgreeInEveryStandardGroup(identifier: Int) throws {
        let parameters = try #require(DomainParameters.standardized(identifier))
        let (one, other) = (try pair(parameters, 1), try pair(parameters, 2))
        let secret = try one.sharedSecret(with: other.publicKey)
        #expect(secret.count == parameters.fieldLength)
        #expect(try other.sharedSecret(with: one.publicKey) == secret)
        #expect(one.publicKey != other.publicKey)
        #expect(try pair(parameters, 1).publicKey == one.publicKey)
    }

    @Test(arguments: DomainParameters.standardizedIdentifiers.filter { $0 != 10 })
    func integratedMappingGivesAGeneratorOfTheGroup(identifier: Int) throws {
        let parameters = try #require(DomainParameters.standardized(identifier))
        let algorithms: [KeyDerivation.Algorithm] = [.tripleDES, .aes128, .aes192, .aes256]
        var generators: Set<[UInt8]> = []
        for algorithm in algorithms {
            let nonce = try octets(algorithm.keyLength > 16 ? 32 : 16, 3)
            let mapped = try parameters.integratedMapping(
                nonce: nonce, terminalNonce: try octets(algorithm.keyLength, 4), algorithm: algorithm)
            let generator = try mapped.generator()
            // Inside the subgroup: validate multiplies by the order where the group is larger.
            try parameters.validate(publicKey: generator)
            generators.insert(generator)
            let (one, other) = (try pair(mapped, 5), try pair(mapped, 6))
            #expect(try one.sharedSecret(with: other.publicKey) == other.sharedSecret(with: one.publicKey))
        }
        #expect(generators.count == algorithms.count)
    }

    @Test func integratedMappingWantsNoncesOfTheRightLength() throws {
        let parameters = try #require(DomainParameters.standardized(13))
        for (s, t, algorithm) in [
            (32, 16, KeyDerivation.Algorithm.aes128), (16, 24, .aes192), (32, 16, .aes192), (32, 31, .aes256), (0, 16, .aes128),
        ] {
            #expect(throws: CryptoError(code: .dataLength, detail: "")) {
                try parameters.integratedMapping(
                    nonce: [UInt8](repeating: 1, count: s), terminalNonce: [UInt8](repeating: 1, count: t), algorithm: algorithm)
            }
        }
    }

    @Test func sharedSecretsKeepTheirLeadingZeros() throws {
        // P-521 has 66 octets for 521 bits: seven of eight secrets begin with a zero octet, one of 512 with nine zero bits more.
        let parameters = try #require(DomainParameters.standardized(18))
        let one = try pair(parameters, 1)
        let secrets = try (2..<10).map { try one.sharedSecret(with: try pair(parameters, $0).publicKey) }
        #expect(secrets.allSatisfy { $0.count == 66 && $0[0] <= 1 })
        #expect(secrets.contains { $0[0] == 0 })
    }

    @Test func privateKeysOutsideTheirRangeAreRefused() throws {
        let parameters = try #require(DomainParameters.standardized(13))
        let order = try Hex.decode(StandardGroups.curves[5].order)
        for key in [[], [0], order, [1] + order] {
            #expect(throws: CryptoError(code: .keyLength, detail: "")) { try KeyAgreementKeyPair(parameters, privateKey: key) }
        }
        #expect(try KeyAgreementKeyPair(parameters, privateKey: [1]).publicKey == parameters.generator())
        #expect(throws: CryptoError(code: .keyLength, detail: "")) {
            try KeyAgreementKeyPair(parameters, random: [UInt8](repeating: 0, count: 32))
        }
    }

    @Test func aPrivateKeyIsNeverRendered() throws {
        let parameters = try #require(DomainParameters.standardized(12))
        let pair = try pair(parameters, 1)
        #expect("\(pair)" == "a key pair in P-256")
        #expect(!String(reflecting: pair).contains("\(pair.privateKey[0]), \(pair.privateKey[1])"))
    }

    @Test(arguments: [8, 11, 13, 18])
    func chipAuthenticationDataProvesTheStaticKey(identifier: Int) throws {
        let parameters = try #require(DomainParameters.standardized(identifier))
        let (fixed, mapping) = (try pair(parameters, 1), try pair(parameters, 2))
        var data = try fixed.chipAuthenticationData(for: mapping)
        #expect(data.count == parameters.orderLength)
        func holds() throws -> Bool {
            try parameters.verifiesChipAuthentication(
                data: data, staticKey: fixed.publicKey, mappingKey: mapping.publicKey)
        }
        #expect(try holds())
        data[data.count - 1] ^= 1
        #expect(try !holds())
        data = [UInt8](repeating: 0, count: data.count)
        #expect(try !holds())
        data = [UInt8](repeating: 0xFF, count: data.count)
        #expect(try !holds())
    }

    @Test func publicKeysAreReadFromTheirInfo() throws {
        for identifier in [0, 2, 12, 13] {
            let parameters = try #require(DomainParameters.standardized(identifier))
            let key = KeyAgreementPublicKey(parameters, try pair(parameters, 3).publicKey)
            for standardized in [true, false] {
                let info = try key.subjectPublicKeyInfo(standardized: standardized)
                #expect(try KeyAgreementPublicKey(subjectPublicKeyInfo: info) == key)
                for count in stride(from: 0, to: info.count, by: 7) {
                    #expect(throws: CryptoError.self) {
                        try KeyAgreementPublicKey(subjectPublicKeyInfo: Array(info.prefix(count)))
                    }
                }
            }
        }
    }
}
