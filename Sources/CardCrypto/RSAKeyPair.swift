// SPDX-License-Identifier: MIT

import CLibCrypto
import Octets

/// An RSA key pair (RFC 8017) with the public exponent 65,537.
public struct RSAKeyPair: Sendable {
    /// PKCS#1 RSAPrivateKey in DER.
    let privateKey: [UInt8]
    /// SubjectPublicKeyInfo in DER (RFC 5280 4.1.2.7).
    public let publicKeyInfo: [UInt8]

    /// Makes a key pair from `draw`'s octets: the same octets, the same keys.
    ///
    /// Each prime is the first one at or above an odd number of half the bits whose two highest bits are set, so that the modulus has
    /// exactly `bits` bits. Nothing that libcrypto draws for itself changes the result.
    ///
    /// - Parameters:
    ///   - bits: 1024, 2048, 3072 or 4096.
    ///   - draw: gives that many octets, which nobody else knows where the key is to be secret.
    /// - Throws: ``CryptoError``.
    public init(bits: Int, draw: (Int) throws(CryptoError) -> [UInt8]) throws(CryptoError) {
        guard [1024, 2048, 3072, 4096].contains(bits) else {
            throw CryptoError(code: .keyLength, detail: "an RSA key of \(bits) bits; 1024, 2048, 3072 and 4096 are known")
        }
        let scratch = try Scratch()
        let exponent = try scratch.number([0x01, 0x00, 0x01])
        let p = try scratch.prime(from: try draw(bits / 16), coprimeTo: exponent)
        var q = p
        repeat { q = try scratch.prime(from: try draw(bits / 16), coprimeTo: exponent) } while BN_cmp(p, q) == 0
        // qInv is q^-1 mod p, for p > q as for p < q (RFC 8017 3.2).
        let n = try scratch.number()
        let d = try scratch.number()
        let order = try scratch.number()
        let p1 = try scratch.number()
        let q1 = try scratch.number()
        let dP = try scratch.number()
        let dQ = try scratch.number()
        let qInverse = try scratch.number()
        guard BN_mul(n, p, q, scratch.context) == 1,
            BN_copy(p1, p) != nil, BN_sub_word(p1, 1) == 1,
            BN_copy(q1, q) != nil, BN_sub_word(q1, 1) == 1,
            BN_mul(order, p1, q1, scratch.context) == 1,
            BN_mod_inverse(d, exponent, order, scratch.context) != nil,
            BN_div(nil, dP, d, p1, scratch.context) == 1,
            BN_div(nil, dQ, d, q1, scratch.context) == 1,
            BN_mod_inverse(qInverse, q, p, scratch.context) != nil
        else { throw CryptoError.fromLibrary("RSA key") }
        let parts = [n, exponent, d, p, q, dP, dQ, qInverse].map { DER.integer(Scratch.octets($0)) }
        privateKey = TLV.encode(0x30, DER.integer([]) + parts.flatMap { $0 })
        let key = try Self.load(privateKey)
        defer { EVP_PKEY_free(key) }
        publicKeyInfo = try DER.encoding("public key") { i2d_PUBKEY(key, $0) }
    }

    private static func load(_ privateKey: [UInt8]) throws(CryptoError) -> OpaquePointer {
        let key = privateKey.withUnsafeBufferPointer { buffer in
            var place = buffer.baseAddress
            return d2i_PrivateKey(EVP_PKEY_RSA, nil, &place, buffer.count)
        }
        guard let key else { throw CryptoError.fromLibrary("RSA key") }
        return key
    }
}
