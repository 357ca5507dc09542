// SPDX-License-Identifier: MIT

import Octets
import Testing

@testable import CardCrypto

@Suite struct CertificateTests {
    /// Octets that are the same in every run.
    private func key(_ salt: UInt8) throws -> RSAKeyPair {
        var number = salt
        return try RSAKeyPair(bits: 1_024) { count throws(CryptoError) in
            var octets: [UInt8] = []
            while octets.count < count {
                octets += try Digest.sha256.hash([number])
                number &+= 1
            }
            return Array(octets.prefix(count))
        }
    }

    private func content(serialNumber: [UInt8] = [1], notAfter: String = "20491231235959Z") -> Certificate.Content {
        Certificate.Content(
            serialNumber: serialNumber, issuer: [("CN", "A")], subject: [("CN", "A")], notBefore: "20200101000000Z",
            notAfter: notAfter,
            extensions: [])
    }

    private func certificate(_ content: Certificate.Content, _ key: RSAKeyPair) throws -> Certificate {
        try Certificate(content, for: key.publicKeyInfo, signedBy: try SigningKey(key), .rsaPKCS1(.sha256))
    }

    @Test func theSameOctetsGiveTheSameKey() throws {
        let first = try key(1)
        #expect(try first.privateKey == key(1).privateKey)
        #expect(try first.publicKeyInfo != key(2).publicKeyInfo)
        // RSAPrivateKey (RFC 8017 A.1.2): version 0, a modulus of 1,024 bits, exponent 65,537, and six numbers more.
        let parts = try TLV.first(in: first.privateKey[...]).children(TLVRules(allowsFiller: false))
        #expect(parts.map(\.tag) == [UInt32](repeating: 0x02, count: 9))
        #expect(Hex.encode(parts[0].value) == "00" && Hex.encode(parts[2].value) == "010001")
        #expect(parts[1].value.count == 129 && parts[1].value[parts[1].value.startIndex + 1] & 0x80 != 0)
    }

    @Test func aKeyOfAnotherLengthIsRefused() {
        for bits in [-1, 0, 512, 2_047] {
            #expect(throws: CryptoError(code: .keyLength, detail: "")) {
                try RSAKeyPair(bits: bits) { _ throws(CryptoError) in [] }
            }
        }
        #expect(throws: CryptoError(code: .dataLength, detail: "")) {
            try RSAKeyPair(bits: 1_024) { _ throws(CryptoError) in [] }
        }
    }

    @Test func theSameContentGivesTheSameCertificate() throws {
        let key = try key(1)
        let certificate = try certificate(content(), key)
        #expect(try self.certificate(content(), key) == certificate)
        #expect(try self.certificate(content(serialNumber: [2]), key) != certificate)
    }

    @Test func whatNoCertificateCanSayIsRefused() throws {
        let key = try key(1)
        for serialNumber in [[], [0], [UInt8](repeating: 1, count: 21)] {
            #expect(throws: CryptoError(code: .certificate, detail: "")) {
                try certificate(content(serialNumber: serialNumber), key)
            }
        }
        #expect(throws: CryptoError.self) { try certificate(content(notAfter: "tomorrow"), key) }
        var named = content()
        named.subject = [("NoSuchField", "A")]
        #expect(throws: CryptoError.self) { try certificate(named, key) }
        var extended = content()
        extended.extensions = [Certificate.Extension("no.identifier", value: [])]
        #expect(throws: CryptoError.self) { try certificate(extended, key) }
    }

    @Test func theSameArgumentsGiveTheSameSignedData() throws {
        let key = try key(1)
        let certificate = try certificate(content(), key)
        let signingKey = try SigningKey(key)
        func sign(_ time: String, _ type: String = "2.23.136.1.1.1") throws -> SignedData {
            try SignedData(
                content: [1, 2, 3], contentType: type, signer: certificate, key: signingKey, scheme: .rsaPKCS1(.sha256),
                signingTime: time)
        }
        #expect(try sign("200624120000Z") == sign("200624120000Z"))
        #expect(try sign("200624120000Z") != sign("200624120001Z"))
        #expect(throws: CryptoError(code: .encoding, detail: "")) { try sign("noon") }
        #expect(throws: CryptoError.self) { try sign("200624120000Z", "no type") }
        let other = try SigningKey(try self.key(3))
        #expect(throws: CryptoError(code: .signature, detail: "")) {
            try SignedData(
                content: [1], contentType: "2.23.136.1.1.1", signer: certificate, key: other, scheme: .rsaPKCS1(.sha256),
                signingTime: "200624120000Z")
        }
    }

    @Test func smallPiecesOfDERAreWrittenAsX690Says() throws {
        #expect(Hex.encode(DER.integer([])) == "020100")
        #expect(Hex.encode(DER.integer([0, 0, 0x7F])) == "02017F")
        #expect(Hex.encode(DER.integer([0x80])) == "02020080")
        #expect(Hex.encode(try DER.objectIdentifier("2.23.136.1.1.1")) == "060667810801" + "0101")
        #expect(Hex.encode(DER.set([[2, 1, 9], [2, 1, 3]])) == "3106020103020109")
        #expect(throws: CryptoError(code: .encoding, detail: "")) { try DER.objectIdentifier("2.x") }
    }
}
