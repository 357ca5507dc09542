// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import Octets
import TagTransport
import Testing

@testable import CoreExtendedNFC
@testable import VirtualCards

@Suite struct ActiveAuthenticationTests {
    private static let challenge = octets("F173589974BF40C6")

    /// A chip's side with the key of a seed.
    private func chip(
        _ kind: SpecimenIssuer.KeyKind, _ algorithm: PassportActiveAuthentication.Algorithm, spellsCurve: Bool = false
    ) throws -> PassportActiveAuthentication {
        var random = CardRandom(seed: 5, use: "aa")
        return try PassportActiveAuthentication(
            key: try SigningKey(kind, &random), algorithm: algorithm, spellsCurve: spellsCurve)
    }

    private func answer(_ chip: PassportActiveAuthentication, _ challenge: [UInt8] = challenge) throws -> [UInt8] {
        var random = CardRandom(seed: 9)
        return try chip.sign(challenge) { random.octets($0) }
    }

    private func algorithm(of chip: PassportActiveAuthentication) throws -> String? {
        guard let info = try chip.securityInfo() else { return nil }
        let infos = try SecurityInfo.parse(dataGroup14: TLV.encode(0x6E, TLV.encode(0x31, info)))
        guard case .activeAuthentication(let info)? = infos.first?.content else { return nil }
        return info.signatureAlgorithm
    }

    /// Runs the terminal's machine against the chip's side.
    private func run(_ chip: PassportActiveAuthentication, algorithm: String?) throws -> ActiveAuthentication.Outcome? {
        let key = try ActiveAuthenticationPublicKey.publicKeyInfo(dataGroup15: try chip.dataGroup15())
        var terminal = ActiveAuthentication(key: key, algorithm: algorithm, longestShortAnswer: 223)
        var action = terminal.begin()
        while true {
            switch action {
            case .drawRandom: action = terminal.drew(Self.challenge)
            case .send(let command):
                #expect(command.octets.prefix(4) == [0x00, 0x88, 0x00, 0x00])
                action = terminal.received(
                    ResponseAPDU(data: Data(try answer(chip, Array(command.data ?? Data()))), statusWord: 0x9000))
            case .finished(let outcome): return outcome
            }
        }
    }

    @Test(arguments: Digest.allCases, [false, true]) func rsaChipsProveThemselvesWithEveryTrailer(digest: Digest, short: Bool)
        throws
    {
        guard !short || digest == .sha1 else { return }
        let chip = try chip(.rsa(bits: 1024), .rsa(digest, shortTrailer: short))
        let outcome = try run(chip, algorithm: nil)
        #expect(
            outcome == ActiveAuthentication.Outcome(status: .verified, detail: "RSA 1024, ISO 9796-2 with \(digest.rawValue)"))
        // ISO/IEC 9796-2: header, M1, hash, trailer.
        let opened = try #require(try chip.key.publicKey.recovered(from: try answer(chip)))
        #expect(opened.first == 0x6A)
        let trailers: [Digest: String] = [.sha1: "33CC", .sha224: "38CC", .sha256: "34CC", .sha384: "36CC", .sha512: "35CC"]
        #expect(Hex.encode(opened).hasSuffix(short ? "BC" : trailers[digest] ?? "-"))
    }

    /// Scheme B.4 answers with the smaller of the number and its difference from the modulus.
    @Test func theDifferenceFromTheModulusIsASignatureToo() throws {
        let chip = try chip(.rsa(bits: 1024), .rsa(.sha256, shortTrailer: false))
        guard case .rsa(let modulus, _) = chip.key.publicKey else { return }
        var borrow = 0
        var other = modulus
        for (index, octet) in try answer(chip).enumerated().reversed() {
            let value = Int(modulus[index]) - Int(octet) - borrow
            borrow = value < 0 ? 1 : 0
            other[index] = UInt8(truncatingIfNeeded: value)
        }
        let key = try ActiveAuthenticationPublicKey.publicKeyInfo(dataGroup15: try chip.dataGroup15())
        #expect(ActiveAuthentication.verify(other, challenge: Self.challenge, key: key, algorithm: nil).status == .verified)
    }

    @Test(arguments: Digest.allCases, [8, 12, 13, 15, 17, 18])
    func ellipticChipsProveThemselves(digest: Digest, curve: Int) throws {
        for algorithm in [PassportActiveAuthentication.Algorithm.ecdsa(digest), .ecdsaSequence(digest)] {
            let chip = try chip(.standardized(curve), algorithm, spellsCurve: curve == 13)
            #expect(
                try self.algorithm(of: chip)
                    == "0.4.0.127.0.7.1.1.4.1.\([Digest.sha1, .sha224, .sha256, .sha384, .sha512].firstIndex(of: digest).map { $0 + 1 } ?? 0)"
            )
            let outcome = try run(chip, algorithm: try self.algorithm(of: chip))
            #expect(outcome?.status == .verified, "\(outcome?.detail ?? "")")
        }
    }

    /// Point 3.8 of the field reports: without DG14 the hash function is tried by the key's length, and said.
    @Test func withoutAnAlgorithmTheHashFunctionIsFoundAndSaid() throws {
        let outcome = try run(try chip(.standardized(15), .ecdsa(.sha384)), algorithm: nil)
        #expect(outcome?.status == .verified)
        #expect(outcome?.detail == "EC 384, ECDSA with SHA-384, DG14 names no algorithm")
    }

    @Test func anotherChallengeOrKeyFails() throws {
        for (kind, algorithm) in [
            (SpecimenIssuer.KeyKind.rsa(bits: 1024), PassportActiveAuthentication.Algorithm.rsa(.sha1, shortTrailer: true)),
            (.standardized(13), .ecdsa(.sha256)),
        ] {
            let chip = try chip(kind, algorithm)
            let key = try ActiveAuthenticationPublicKey.publicKeyInfo(dataGroup15: try chip.dataGroup15())
            let oid = try self.algorithm(of: chip)
            var signature = try answer(chip, octets("0000000000000000"))
            #expect(ActiveAuthentication.verify(signature, challenge: Self.challenge, key: key, algorithm: oid).status == .failed)
            signature = try answer(chip)
            for index in signature.indices {
                var changed = signature
                changed[index] ^= 1
                #expect(
                    ActiveAuthentication.verify(changed, challenge: Self.challenge, key: key, algorithm: oid).status == .failed)
            }
            for length in [0, 1, signature.count - 1] {
                let cut = Array(signature.prefix(length))
                #expect(ActiveAuthentication.verify(cut, challenge: Self.challenge, key: key, algorithm: oid).status == .failed)
            }
        }
    }

    @Test func aKeyOfAnotherKindIsNotSupported() throws {
        let file = octets("6F13" + "3011300C06072A8648CE3D0201060152030100")
        #expect(throws: LDSError.self) { try ActiveAuthenticationPublicKey(dataGroup15: file) }
        // An Ed25519 key (RFC 8410 10.1).
        let edwards = octets("302A300506032B6570032100" + "19BF44096984CDFE8541BAC167DC3B96C85086AA30B6B6CB0C5C38AD703166E1")
        let key = try ActiveAuthenticationPublicKey(dataGroup15: TLV.encode(0x6F, edwards))
        #expect(key == .unknown(edwards))
        var terminal = ActiveAuthentication(
            key: try SubjectPublicKeyInfo(der: edwards), algorithm: nil, longestShortAnswer: 223)
        guard case .finished(let outcome) = terminal.begin() else {
            Issue.record("a key of no known kind was used")
            return
        }
        #expect(outcome.status == .unsupportedKeyType)
    }

    @Test func aRefusalIsTheCardsAndNamed() throws {
        let chip = try chip(.standardized(13), .ecdsa(.sha256))
        let key = try ActiveAuthenticationPublicKey.publicKeyInfo(dataGroup15: try chip.dataGroup15())
        var terminal = ActiveAuthentication(key: key, algorithm: nil, longestShortAnswer: 223)
        _ = terminal.begin()
        _ = terminal.drew(Self.challenge)
        guard case .finished(let outcome) = terminal.received(ResponseAPDU(statusWord: 0x6985)) else {
            Issue.record("a refusal was not the end")
            return
        }
        #expect(outcome.status == .commandFailed && outcome.detail.hasPrefix("6985"))
    }

    /// A signature longer than a short protected answer is asked for in the extended form.
    @Test func aLongSignatureIsAskedForInTheExtendedForm() throws {
        for (bits, form) in [(1024, CommandAPDU.Form.short), (2048, .extended)] {
            let chip = try chip(.rsa(bits: bits), .rsa(.sha256, shortTrailer: false))
            let key = try ActiveAuthenticationPublicKey.publicKeyInfo(dataGroup15: try chip.dataGroup15())
            var terminal = ActiveAuthentication(key: key, algorithm: nil, longestShortAnswer: 223)
            _ = terminal.begin()
            guard case .send(let command) = terminal.drew(Self.challenge) else {
                Issue.record("no command")
                continue
            }
            #expect(command.form == form)
        }
    }
}
