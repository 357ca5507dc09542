// SPDX-License-Identifier: MIT

import CLibCrypto
import Octets

/// A signature algorithm with everything that its identifier says.
public enum SignatureScheme: Sendable, Hashable {
    /// RSASSA-PKCS1-v1_5 (RFC 8017 8.2).
    case rsaPKCS1(Digest)
    /// RSASSA-PSS with MGF1 (RFC 8017 8.1); the salt's length in octets.
    case rsaPSS(Digest, mask: Digest, saltLength: Int)
    /// ECDSA, the signature a SEQUENCE of r and s.
    case ecdsa(Digest)
    /// ECDSA, the signature r and s in as many octets as the order has each (BSI TR-03111 5.2.1).
    case ecdsaPlain(Digest)

    public var digest: Digest {
        switch self {
        case .rsaPKCS1(let digest), .rsaPSS(let digest, _, _), .ecdsa(let digest), .ecdsaPlain(let digest): digest
        }
    }

    /// `RSA-PSS, SHA-256`.
    public var name: String {
        switch self {
        case .rsaPKCS1: "RSA v1.5, \(digest.rawValue)"
        case .rsaPSS: "RSA-PSS, \(digest.rawValue)"
        case .ecdsa: "ECDSA, \(digest.rawValue)"
        case .ecdsaPlain: "plain ECDSA, \(digest.rawValue)"
        }
    }

    /// What an AlgorithmIdentifier says.
    ///
    /// - Parameters:
    ///   - object: a SEQUENCE of object identifier and parameters.
    ///   - digest: the hash function where the identifier names only a kind of key: issuers write `rsaEncryption` and
    ///     `id-ecPublicKey` into signers' infos, where the digest algorithm stands beside it.
    /// - Throws: ``DataObjectError`` with the code `value` for an algorithm that is none of those that ICAO 9303-12 4.4 allows.
    public init(algorithm object: DataObject, digest: Digest? = nil) throws(DataObjectError) {
        let parts = try object.elements(of: 0x30)
        let identifier = try parts.element(0, of: object).objectIdentifier()
        if identifier == Self.pss {
            self = try Self.pss(parts.count > 1 ? parts[1] : nil)
        } else if let known = Self.known.first(where: { $0.identifier == identifier }) {
            self = known.scheme
        } else if let digest, identifier == "1.2.840.113549.1.1.1" {
            self = .rsaPKCS1(digest)
        } else if let digest, identifier == "1.2.840.10045.2.1" {
            self = .ecdsa(digest)
        } else {
            throw object.fault(.value, "signature algorithm \(identifier) is not known")
        }
    }

    /// The AlgorithmIdentifier.
    public func algorithmIdentifier() throws(CryptoError) -> [UInt8] {
        if case .rsaPSS(let digest, let mask, let saltLength) = self {
            let mgf = DER.sequence(try DER.objectIdentifier(Self.mgf1), try mask.algorithmIdentifier())
            let salt = withUnsafeBytes(of: UInt32(clamping: saltLength).bigEndian) { DER.integer(Array($0)) }
            return DER.sequence(
                try DER.objectIdentifier(Self.pss),
                DER.sequence(
                    TLV.encode(0xA0, try digest.algorithmIdentifier()), TLV.encode(0xA1, mgf), TLV.encode(0xA2, salt)))
        }
        guard let known = Self.known.first(where: { $0.scheme == self }) else {
            throw CryptoError(code: .algorithm, detail: "\(name) has no object identifier")
        }
        let identifier = try DER.objectIdentifier(known.identifier)
        // RFC 4055 wants the NULL, RFC 5758 forbids it.
        if case .rsaPKCS1 = self { return DER.sequence(identifier, DER.null) }
        return DER.sequence(identifier)
    }

    /// Octets that signing draws: the salt of PSS; for ECDSA eight more than the curve's order has.
    public func randomLength(for key: PublicKey) -> Int {
        switch (self, key) {
        case (.rsaPSS(_, _, let saltLength), _): saltLength
        case (.ecdsa, .elliptic(let curve, _)), (.ecdsaPlain, .elliptic(let curve, _)): curve.orderLength + 8
        default: 0
        }
    }

    /// RSASSA-PSS-params (RFC 4055 3.1), all of which may be left out.
    private static func pss(_ object: DataObject?) throws(DataObjectError) -> SignatureScheme {
        var digest = Digest.sha1
        var mask = Digest.sha1
        var saltLength = 20
        if let object {
            for part in try object.elements(of: 0x30) {
                switch part.tag {
                case 0xA0: digest = try Digest(algorithm: try part.inner())
                case 0xA1:
                    let mgf = try part.inner()
                    let parts = try mgf.elements(of: 0x30)
                    guard try parts.element(0, of: mgf).objectIdentifier() == mgf1 else {
                        throw mgf.fault(.value, "a mask generation that is not MGF1")
                    }
                    mask = try Digest(algorithm: try parts.element(1, of: mgf))
                case 0xA2: saltLength = try part.inner().smallInteger()
                case 0xA3: break
                default: throw part.fault(.tag, "no parameter of RSA-PSS")
                }
            }
            guard saltLength <= 512 else { throw object.fault(.value, "a salt of \(saltLength) octets") }
        }
        return .rsaPSS(digest, mask: mask, saltLength: saltLength)
    }

    private static let pss = "1.2.840.113549.1.1.10"
    private static let mgf1 = "1.2.840.113549.1.1.8"

    private static let known: [(identifier: String, scheme: SignatureScheme)] = [
        ("1.2.840.113549.1.1.5", .rsaPKCS1(.sha1)), ("1.2.840.113549.1.1.14", .rsaPKCS1(.sha224)),
        ("1.2.840.113549.1.1.11", .rsaPKCS1(.sha256)), ("1.2.840.113549.1.1.12", .rsaPKCS1(.sha384)),
        ("1.2.840.113549.1.1.13", .rsaPKCS1(.sha512)),
        ("1.2.840.10045.4.1", .ecdsa(.sha1)), ("1.2.840.10045.4.3.1", .ecdsa(.sha224)),
        ("1.2.840.10045.4.3.2", .ecdsa(.sha256)), ("1.2.840.10045.4.3.3", .ecdsa(.sha384)),
        ("1.2.840.10045.4.3.4", .ecdsa(.sha512)),
        ("0.4.0.127.0.7.1.1.4.1.1", .ecdsaPlain(.sha1)), ("0.4.0.127.0.7.1.1.4.1.2", .ecdsaPlain(.sha224)),
        ("0.4.0.127.0.7.1.1.4.1.3", .ecdsaPlain(.sha256)), ("0.4.0.127.0.7.1.1.4.1.4", .ecdsaPlain(.sha384)),
        ("0.4.0.127.0.7.1.1.4.1.5", .ecdsaPlain(.sha512)),
    ]
}

extension Digest {
    /// Dotted decimal (RFC 8017 B.1).
    public var objectIdentifier: String {
        switch self {
        case .sha1: "1.3.14.3.2.26"
        case .sha224: "2.16.840.1.101.3.4.2.4"
        case .sha256: "2.16.840.1.101.3.4.2.1"
        case .sha384: "2.16.840.1.101.3.4.2.2"
        case .sha512: "2.16.840.1.101.3.4.2.3"
        }
    }

    public init?(objectIdentifier: String) {
        guard let digest = Self.allCases.first(where: { $0.objectIdentifier == objectIdentifier }) else { return nil }
        self = digest
    }

    /// What an AlgorithmIdentifier says.
    public init(algorithm object: DataObject) throws(DataObjectError) {
        let identifier = try object.elements(of: 0x30).element(0, of: object).objectIdentifier()
        guard let digest = Digest(objectIdentifier: identifier) else {
            throw object.fault(.value, "hash algorithm \(identifier) is not known")
        }
        self = digest
    }

    /// The AlgorithmIdentifier, without parameters as RFC 5754 2 prefers.
    public func algorithmIdentifier() throws(CryptoError) -> [UInt8] {
        DER.sequence(try DER.objectIdentifier(objectIdentifier))
    }

    var nid: Int32 {
        switch self {
        case .sha1: NID_sha1
        case .sha224: NID_sha224
        case .sha256: NID_sha256
        case .sha384: NID_sha384
        case .sha512: NID_sha512
        }
    }

    var libraryForm: OpaquePointer? {
        switch self {
        case .sha1: EVP_sha1()
        case .sha224: EVP_sha224()
        case .sha256: EVP_sha256()
        case .sha384: EVP_sha384()
        case .sha512: EVP_sha512()
        }
    }
}
