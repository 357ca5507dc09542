// SPDX-License-Identifier: MIT

import CLibCrypto

/// NXP's originality signature: ECDSA on secp224r1 over the UID itself, which is not hashed (AN12196 7.2).
public enum DESFireOriginality {
    /// Whether `signature` is that of the chip with this UID.
    ///
    /// - Parameters:
    ///   - signature: r and s, 28 octets each.
    ///   - publicKey: an uncompressed point, 57 octets.
    public static func verify(signature: [UInt8], uid: [UInt8], publicKey: [UInt8]) throws(CryptoError) -> Bool {
        guard signature.count == 56 else {
            throw CryptoError(code: .signature, detail: "an originality signature has 56 bytes, not \(signature.count)")
        }
        guard let key = EC_KEY_new_by_curve_name(NID_secp224r1) else { throw CryptoError.fromLibrary("EC_KEY") }
        defer { EC_KEY_free(key) }
        guard EC_KEY_oct2key(key, publicKey, publicKey.count, nil) == 1 else { throw CryptoError.fromLibrary("public key") }
        guard let pair = ECDSA_SIG_new() else { throw CryptoError.fromLibrary("ECDSA_SIG") }
        defer { ECDSA_SIG_free(pair) }
        let r = BN_bin2bn(Array(signature[..<28]), 28, nil)
        let s = BN_bin2bn(Array(signature[28...]), 28, nil)
        guard r != nil, s != nil, ECDSA_SIG_set0(pair, r, s) == 1 else {
            BN_free(r)
            BN_free(s)
            throw CryptoError.fromLibrary("ECDSA_SIG")
        }
        let result = ECDSA_do_verify(uid, Int32(truncatingIfNeeded: uid.count), pair, key)
        // A value out of range is an error to libcrypto and a wrong signature here; its queue must not keep it.
        ERR_clear_error()
        return result == 1
    }
}
