// SPDX-License-Identifier: MIT

import CLibCrypto
import Octets

/// What became of a signature.
public enum SignatureVerdict: Sendable, Equatable {
    case valid
    /// The mathematics or the signed attributes say no; why.
    case invalid(String)
    /// Nothing can be said: the algorithm or the key is not known.
    case unsupported(String)
}

extension SignedData {
    /// Whether `signer`, whose certificate is `certificate`, signed the content (RFC 5652 5.4, 5.6). Whether the certificate is to be
    /// trusted is another question: ``TrustAnchors``.
    ///
    /// The attributes are compared here; the signature is verified here with the key, and by libcrypto's CMS as a whole where that has
    /// the algorithm. Both must hold.
    public func verify(_ signer: Signer, certificate: Certificate) -> SignatureVerdict {
        guard let digest = signer.digest else { return .unsupported("hash algorithm \(signer.digestAlgorithm)") }
        guard let scheme = signer.scheme else { return .unsupported("signature algorithm \(signer.signatureAlgorithm)") }
        guard let key = certificate.publicKey else {
            return .unsupported("a key of algorithm \(certificate.publicKeyInfo.algorithm)")
        }
        do {
            let signed: [UInt8]
            if let attributes = signer.signedAttributes {
                guard signer.contentType == contentType else { return .invalid("the signed content type is another") }
                guard signer.messageDigest == (try digest.hash(content)) else {
                    return .invalid("the signed digest is not that of the content")
                }
                signed = attributes
            } else {
                // Only plain data may be signed without attributes (5.3).
                guard contentType == "1.2.840.113549.1.7.1" else { return .invalid("there are no signed attributes") }
                signed = content
            }
            let form = Self.form(of: signer.signature, scheme, key)
            var isRight = try key.verifies(signer.signature, over: signed, by: form)
            if !isRight { isRight = try verifies(signer, signed, form, digest, key) }
            guard isRight else { return .invalid("the signature is wrong") }
            // libcrypto wants the signer named and the form of the algorithm, which some issuers do not write.
            if form == scheme, scheme.digest == digest, Self.isKnownToLibrary(signer.signatureAlgorithm), signers.count == 1,
                signer.isIdentified(by: certificate), !verifiedByLibrary(certificate)
            {
                return .invalid("libcrypto's CMS refuses the signature")
            }
            return .valid
        } catch {
            return error.code == .algorithm || error.code == .publicKey
                ? .unsupported(error.detail) : .invalid(error.detail)
        }
    }

    /// Whether the signature was made with the hash function that stands beside the algorithm, where the algorithm names another: some
    /// issuers' software writes one identifier for all lengths.
    private func verifies(
        _ signer: Signer, _ signed: [UInt8], _ scheme: SignatureScheme, _ digest: Digest, _ key: PublicKey
    ) throws(CryptoError) -> Bool {
        let other: SignatureScheme
        switch scheme {
        case .rsaPKCS1: other = .rsaPKCS1(digest)
        case .ecdsa: other = .ecdsa(digest)
        case .ecdsaPlain: other = .ecdsaPlain(digest)
        // The parameters of PSS say everything.
        case .rsaPSS: return false
        }
        guard digest != scheme.digest, digest != .sha1 else { return false }
        return try key.verifies(signer.signature, over: signed, by: other)
    }

    /// The scheme in the form that a signature has: r and s alone come under the identifier of the SEQUENCE too.
    private static func form(of signature: [UInt8], _ scheme: SignatureScheme, _ key: PublicKey) -> SignatureScheme {
        guard case .ecdsa(let digest) = scheme, case .elliptic(let curve, _) = key, signature.count == 2 * curve.orderLength,
            ECDSASignature.plain(fromDER: signature, curve) == nil
        else { return scheme }
        return .ecdsaPlain(digest)
    }

    /// libcrypto's verdict over the whole message, with `certificate` taken as the signer's whoever issued it.
    private func verifiedByLibrary(_ certificate: Certificate) -> Bool {
        defer { ERR_clear_error() }
        let message = der.withUnsafeBufferPointer { buffer in
            var place = buffer.baseAddress
            return d2i_CMS_ContentInfo(nil, &place, buffer.count)
        }
        guard let message else { return false }
        defer { CMS_ContentInfo_free(message) }
        let form = certificate.der.withUnsafeBufferPointer { buffer in
            var place = buffer.baseAddress
            return d2i_X509(nil, &place, buffer.count)
        }
        guard let form else { return false }
        defer { X509_free(form) }
        guard let list = OPENSSL_sk_new_null() else { return false }
        defer { OPENSSL_sk_free(list) }
        guard OPENSSL_sk_push(list, UnsafeRawPointer(form)) > 0 else { return false }
        let flags = UInt32(CMS_NO_SIGNER_CERT_VERIFY | CMS_BINARY | CMS_NOCRL)
        return CMS_verify(message, list, nil, nil, nil, flags) == 1
    }

    /// libcrypto has no plain ECDSA, and takes `id-ecPublicKey` for no signature algorithm.
    private static func isKnownToLibrary(_ algorithm: String) -> Bool {
        algorithm != "1.2.840.10045.2.1" && !algorithm.hasPrefix("0.4.0.127.")
    }
}

extension SignedData {
    /// Signs `content` as one signer; the signer's certificate goes along.
    ///
    /// The signed attributes are content type, message digest and signing time. The same arguments give the same octets.
    ///
    /// - Parameters:
    ///   - contentType: dotted decimal.
    ///   - signingTime: `YYMMDDHHMMSSZ` (UTCTime).
    ///   - random: see ``SigningKey/sign(_:by:random:)``.
    /// - Throws: ``CryptoError``: `signature` when `key` is not that of `signer`.
    public init(
        content: [UInt8], contentType: String, signer: Certificate, key: SigningKey, scheme: SignatureScheme, signingTime: String,
        random: [UInt8] = []
    ) throws(CryptoError) {
        guard signer.publicKey == key.publicKey else {
            throw CryptoError(code: .signature, detail: "the key is not that of the signer's certificate")
        }
        let type = try DER.objectIdentifier(contentType)
        let digest = scheme.digest
        func attribute(_ identifier: String, _ value: [UInt8]) throws(CryptoError) -> [UInt8] {
            DER.sequence(try DER.objectIdentifier(identifier), DER.set([value]))
        }
        let attributes = DER.set([
            try attribute("1.2.840.113549.1.9.3", type),
            try attribute("1.2.840.113549.1.9.4", DER.octetString(try digest.hash(content))),
            try attribute("1.2.840.113549.1.9.5", try CertificateTime(signingTime).der),
        ])
        let signature = try key.sign(attributes, by: scheme, random: random)
        let algorithm = try digest.algorithmIdentifier()
        // libcrypto and others write the kind of key for RSA v1.5, where the digest stands beside it (RFC 3370 3.2).
        let signatureAlgorithm: [UInt8] =
            if case .rsaPKCS1 = scheme { DER.sequence(try DER.objectIdentifier(SubjectPublicKeyInfo.rsa), DER.null) } else {
                try scheme.algorithmIdentifier()
            }
        let info = DER.sequence(
            DER.integer([1]), DER.sequence(signer.issuer.der, TLV.encode(0x02, signer.serialNumber)), algorithm,
            [0xA0] + attributes.dropFirst(), signatureAlgorithm, DER.octetString(signature))
        let message = DER.sequence(
            DER.integer([contentType == "1.2.840.113549.1.7.1" ? 1 : 3]), DER.set([algorithm]),
            DER.sequence(type, TLV.encode(0xA0, DER.octetString(content))), TLV.encode(0xA0, signer.der), DER.set([info]))
        let whole = DER.sequence(try DER.objectIdentifier(Self.signedData), TLV.encode(0xA0, message))
        do { self = try SignedData(der: whole) } catch {
            throw CryptoError(code: .encoding, detail: "signed data: \(error)")
        }
    }
}
