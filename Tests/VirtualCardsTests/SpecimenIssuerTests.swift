// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import Octets
import Testing

@testable import VirtualCards

/// What libcrypto wrote, read by the `openssl` command.
@Suite struct SpecimenIssuerTests {
    private static let groups: [Int: [UInt8]] = [1: [0x61, 0x00], 2: [0x75, 0x00]]

    @Test func theSameSeedGivesTheSameOctets() throws {
        let first = try SpecimenIssuer(seed: 0)
        let second = try SpecimenIssuer(seed: 0)
        #expect(first.cscaCertificateDER == second.cscaCertificateDER)
        #expect(try first.documentSecurityObject(Self.groups) == second.documentSecurityObject(Self.groups))
        // Pinned, so that neither a change here nor another libcrypto makes a new authority without a word.
        #expect(
            Hex.encode(try Digest.sha256.hash(first.cscaCertificateDER))
                == "6D2F511EC654BFE15A49514C25A9390CAB2BD0540A484E4365A8CD26FBB7F99C")
        #expect(
            Hex.encode(try Digest.sha256.hash(try first.documentSecurityObject(Self.groups)))
                == "3A77B3DC2B3FE3B41941F644F34154AF36F7921C998A2745DC33FBED6590C8C1")
    }

    @Test func anotherSeedIsAnotherAuthorityOfTheSameName() throws {
        let other = try SpecimenIssuer.seeded(1)
        #expect(try other.cscaCertificateDER != SpecimenIssuer.seeded().cscaCertificateDER)
    }

    @Test func opensslVerifiesTheSecurityObjectUnderTheAuthority() throws {
        let issuer = try SpecimenIssuer.seeded()
        let folder = try Folder()
        try folder.write("csca.der", issuer.cscaCertificateDER)
        let object = try issuer.documentSecurityObject(Self.groups)
        try folder.write("sod.der", Array(try TLV.first(in: object[...]).value))
        try folder.openssl("x509", "-inform", "DER", "-in", "csca.der", "-out", "csca.pem")
        try folder.openssl(
            "cms", "-verify", "-inform", "DER", "-in", "sod.der", "-CAfile", "csca.pem", "-purpose", "any", "-out", "content.der")
        let content = try folder.read("content.der")
        // LDSSecurityObject version 0, SHA-256, two hashes (9303-10 4.6.2.3).
        let parts = try TLV.first(in: content[...]).children()
        #expect(Hex.encode(parts[0].value) == "00")
        #expect(Hex.encode(parts[1].value) == "0609608648016503040201")
        let hashes = try parts[2].children().map { try $0.children().map { Hex.encode($0.value) } }
        #expect(
            hashes == [
                ["01", Hex.encode(try Digest.sha256.hash([0x61, 0x00]))],
                ["02", Hex.encode(try Digest.sha256.hash([0x75, 0x00]))],
            ])
        try folder.write("other.der", try SpecimenIssuer.seeded(1).cscaCertificateDER)
        try folder.openssl("x509", "-inform", "DER", "-in", "other.der", "-out", "other.pem")
        #expect(throws: Folder.Failed.self) {
            try folder.openssl(
                "cms", "-verify", "-inform", "DER", "-in", "sod.der", "-CAfile", "other.pem", "-purpose", "any", "-out", "no.der")
        }
    }

    private static let kinds: [SpecimenIssuer.Options] = {
        var all: [SpecimenIssuer.Options] = []
        for (authority, signer, digest, usesPSS) in [
            (SpecimenIssuer.KeyKind.rsa(bits: 2048), SpecimenIssuer.KeyKind.rsa(bits: 1024), Digest.sha1, false),
            (.rsa(bits: 2048), .rsa(bits: 2048), .sha256, true), (.rsa(bits: 3072), .rsa(bits: 2048), .sha512, true),
            (.standardized(13), .standardized(12), .sha224, false), (.standardized(16), .standardized(15), .sha384, false),
            (.standardized(17), .standardized(18), .sha512, false), (.rsa(bits: 2048), .standardized(14), .sha256, false),
        ] {
            var options = SpecimenIssuer.Options()
            options.authorityKey = authority
            options.signerKey = signer
            options.digest = digest
            options.usesPSS = usesPSS
            all.append(options)
        }
        return all
    }()

    /// What is written here without libcrypto's writers is read by libcrypto's readers, certificates and path included.
    @Test(arguments: kinds) func opensslVerifiesEveryKindOfKey(options: SpecimenIssuer.Options) throws {
        let issuer = try SpecimenIssuer.seeded(3, options)
        let folder = try Folder()
        try folder.write("csca.der", issuer.cscaCertificateDER)
        try folder.openssl("x509", "-inform", "DER", "-in", "csca.der", "-out", "csca.pem")
        for (name, octets) in [
            ("sod", Array(try TLV.first(in: try issuer.documentSecurityObject(Self.groups)[...]).value)),
            ("list", try issuer.masterList()), ("security", try issuer.cardSecurity([0x31, 0x00])),
        ] {
            try folder.write("\(name).der", octets)
            try folder.openssl(
                "cms", "-verify", "-inform", "DER", "-in", "\(name).der", "-CAfile", "csca.pem", "-purpose", "any", "-out",
                "content.der")
        }
    }

    @Test func theSignedAttributesAreTypeDigestAndTime() throws {
        let folder = try Folder()
        let object = try SpecimenIssuer.seeded().documentSecurityObject(Self.groups)
        try folder.write("sod.der", Array(try TLV.first(in: object[...]).value))
        let text = try folder.openssl("cms", "-cmsout", "-print", "-noout", "-inform", "DER", "-in", "sod.der")
        #expect(text.contains("eContentType: undefined (2.23.136.1.1.1)"))
        #expect(text.contains("UTCTIME:Jun 24 12:00:00 2020 GMT"))
        #expect(text.contains("messageDigest") && text.contains("contentType") && !text.contains("S/MIME Capabilities"))
    }

    @Test func opensslReadsTheCertificates() throws {
        let issuer = try SpecimenIssuer.seeded()
        let folder = try Folder()
        try folder.write("csca.der", issuer.cscaCertificateDER)
        try folder.write("ds.der", issuer.documentSignerCertificateDER)
        let authority = try folder.openssl("x509", "-inform", "DER", "-in", "csca.der", "-noout", "-text")
        #expect(authority.contains("CA:TRUE, pathlen:0") && authority.contains("Certificate Sign, CRL Sign"))
        #expect(
            authority.contains(
                "Issuer: C = UT, O = Utopia Ministry of the Interior, OU = Specimens only, CN = CSCA Utopia Specimen"))
        #expect(authority.contains("Not After : Dec 31 23:59:59 2049 GMT") && authority.contains("Public-Key: (2048 bit)"))
        let signer = try folder.openssl("x509", "-inform", "DER", "-in", "ds.der", "-noout", "-text")
        #expect(signer.contains("Digital Signature") && signer.contains("Not Before: May  1 00:00:00 2020 GMT"))
        #expect(signer.contains("Signature Algorithm: sha256WithRSAEncryption"))
    }
}

@Suite struct FaceImageTests {
    @Test func theImageIsTheOneThatWasLookedAt() throws {
        // djpeg of libjpeg-turbo 2.1.5 opens these octets without a warning and gives the shades that were drawn.
        let hash = try Digest.sha256.hash(FaceImage.jpeg())
        #expect(Hex.encode(hash) == "7F30FCC2422AF54579D4A443FA5F022F440110DD8C4546E77F1E043010713425")
    }

    @Test(arguments: [0, 1, 500, 701, 702, 703, 704, 705, 40_000, 65_537, 66_240, 140_000])
    func theImageHasAtLeastTheLengthAskedFor(length: Int) throws {
        let image = FaceImage.jpeg(length: length)
        let shortest = FaceImage.jpeg().count
        #expect(image.count >= length && image.count <= max(shortest, length + 4))
        #expect(image.prefix(3) == [0xFF, 0xD8, 0xFF] && image.suffix(2) == [0xFF, 0xD9])
        // Every segment's length leads to the next marker (ITU-T T.81 B.1.1.4).
        var index = 2
        while index + 4 <= image.count, image[index] == 0xFF, image[index + 1] != 0xDA {
            index += 2 + (Int(image[index + 2]) << 8 | Int(image[index + 3]))
        }
        #expect(image[index..<index + 2] == [0xFF, 0xDA])
    }
}

/// A temporary folder in which the `openssl` command runs.
private final class Folder {
    struct Failed: Error {
        let text: String
    }

    private let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("issuer-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func write(_ name: String, _ octets: [UInt8]) throws { try Data(octets).write(to: url.appendingPathComponent(name)) }
    func read(_ name: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: url.appendingPathComponent(name))) }

    @discardableResult
    func openssl(_ arguments: String...) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments
        process.currentDirectoryURL = url
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failed(text: text) }
        return text
    }
}
