// SPDX-License-Identifier: MIT

import CLibCrypto

/// A CMS SignedData (RFC 5652 5) with its content inside, in DER.
public struct SignedData: Sendable, Equatable {
    /// The ContentInfo.
    public let der: [UInt8]

    /// Signs `content` as one signer with SHA-256 and RSASSA-PKCS1-v1_5; the signer's certificate goes along.
    ///
    /// The signed attributes are content type, message digest and signing time. The same arguments give the same octets.
    ///
    /// - Parameters:
    ///   - contentType: dotted decimal.
    ///   - signingTime: `YYMMDDHHMMSSZ` (UTCTime).
    /// - Throws: ``CryptoError``.
    public init(
        content: [UInt8], contentType: String, signer: Certificate, key: RSAKeyPair, signingTime: String
    ) throws(CryptoError) {
        // Without smimecap, and unfinished until type and time are set.
        let flags = UInt32(CMS_BINARY | CMS_NOSMIMECAP | CMS_PARTIAL)
        guard let type = OBJ_txt2obj(contentType, 1) else { throw CryptoError.fromLibrary("content type") }
        defer { ASN1_OBJECT_free(type) }
        guard let message = CMS_sign(nil, nil, nil, nil, flags) else { throw CryptoError.fromLibrary("signed data") }
        defer { CMS_ContentInfo_free(message) }
        guard CMS_set1_eContentType(message, type) == 1 else { throw CryptoError.fromLibrary("content type") }
        try Self.add(signer, key, signingTime, to: message, flags)
        // A copy inside libcrypto: BIO_new_mem_buf would keep a pointer that ends with the call.
        guard let source = BIO_new(BIO_s_mem()), content.count <= Int(Int32.max) else { throw CryptoError.fromLibrary("content") }
        defer { BIO_free(source) }
        guard BIO_write(source, content, Int32(content.count)) == Int32(content.count) else {
            throw CryptoError.fromLibrary("content")
        }
        guard CMS_final(message, source, nil, UInt32(CMS_BINARY)) == 1 else { throw CryptoError.fromLibrary("signed data") }
        der = try DER.encoding("signed data") { i2d_CMS_ContentInfo(message, $0) }
    }

    private static func add(
        _ signer: Certificate, _ key: RSAKeyPair, _ signingTime: String, to message: OpaquePointer, _ flags: UInt32
    ) throws(CryptoError) {
        guard let time = ASN1_UTCTIME_new() else { throw CryptoError.fromLibrary("signing time") }
        defer { ASN1_UTCTIME_free(time) }
        guard ASN1_UTCTIME_set_string(time, signingTime) == 1 else {
            throw CryptoError(code: .encoding, detail: "'\(signingTime)' is no UTCTime")
        }
        try signer.withLibraryForm { certificate throws(CryptoError) in
            try key.withPrivateKey { key throws(CryptoError) in
                guard let information = CMS_add1_signer(message, certificate, key, EVP_sha256(), flags) else {
                    throw CryptoError.fromLibrary("signer")
                }
                // libcrypto puts in the system's time only where there is none.
                guard CMS_signed_add1_attr_by_NID(information, NID_pkcs9_signingTime, V_ASN1_UTCTIME, time, -1) == 1 else {
                    throw CryptoError.fromLibrary("signing time")
                }
            }
        }
    }
}
