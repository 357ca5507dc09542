// SPDX-License-Identifier: MIT

import CLibCrypto
import Octets

/// A public key that signatures are verified with.
public enum PublicKey: Sendable, Hashable {
    /// Unsigned, most significant octet first, without leading zeros.
    case rsa(modulus: [UInt8], exponent: [UInt8])
    /// `04`, x, y.
    case elliptic(EllipticCurve, point: [UInt8])

    /// `RSA 2048`, `EC 256`.
    public var name: String {
        switch self {
        case .rsa(let modulus, _): "RSA \(bits(modulus))"
        case .elliptic(let curve, _): "EC \(bits(curve.order))"
        }
    }

    /// Whether `signature` is one of this key over `message`. False also for a signature whose form is wrong.
    ///
    /// - Throws: ``CryptoError``: `algorithm` when the scheme is for another kind of key, `publicKey` when this is no usable key.
    public func verifies(_ signature: [UInt8], over message: [UInt8], by scheme: SignatureScheme) throws(CryptoError) -> Bool {
        try verifies(signature, overHash: try scheme.digest.hash(message), by: scheme)
    }

    /// As ``verifies(_:over:by:)``, over a hash value that was computed before.
    public func verifies(_ signature: [UInt8], overHash hash: [UInt8], by scheme: SignatureScheme) throws(CryptoError) -> Bool {
        defer { ERR_clear_error() }
        guard hash.count == scheme.digest.length else {
            throw CryptoError(code: .dataLength, detail: "\(hash.count) bytes are no \(scheme.digest.rawValue)")
        }
        switch (self, scheme) {
        case (.rsa, .rsaPKCS1(let digest)):
            return try withRSA { key throws(CryptoError) in
                RSA_verify(digest.nid, hash, UInt32(hash.count), signature, UInt32(clamping: signature.count), key) == 1
            }
        case (.rsa, .rsaPSS(let digest, let mask, let saltLength)):
            guard let encoded = try recovered(from: signature) else { return false }
            return try withRSA { key throws(CryptoError) in
                RSA_verify_PKCS1_PSS_mgf1(key, hash, digest.libraryForm, mask.libraryForm, encoded, Int32(clamping: saltLength))
                    == 1
            }
        case (.elliptic(let curve, let point), .ecdsa):
            return try Self.verify(signature, hash, curve, point)
        case (.elliptic(let curve, let point), .ecdsaPlain):
            guard let spelled = ECDSASignature.der(fromPlain: signature, curve) else { return false }
            return try Self.verify(spelled, hash, curve, point)
        default: throw CryptoError(code: .algorithm, detail: "\(scheme.name) with a key of \(name)")
        }
    }

    /// `signature` to the power of the exponent (RSAVP1 of RFC 8017 5.2.2), as long as the modulus; nil when it is no number below the
    /// modulus of that length.
    ///
    /// - Throws: ``CryptoError``: `publicKey` for a key that is not RSA or not usable.
    public func recovered(from signature: [UInt8]) throws(CryptoError) -> [UInt8]? {
        try withRSA { key throws(CryptoError) in
            let length = Int(RSA_size(key))
            guard signature.count == length else { return nil }
            var written: Int32 = -1
            let octets = [UInt8](unsafeUninitializedCapacity: length) { buffer, initialized in
                written = RSA_public_decrypt(Int32(length), signature, buffer.baseAddress, key, RSA_NO_PADDING)
                initialized = written == Int32(length) ? length : 0
            }
            ERR_clear_error()
            return written == Int32(length) ? octets : nil
        }
    }

    private func withRSA<Result>(_ body: (OpaquePointer) throws(CryptoError) -> Result) throws(CryptoError) -> Result {
        guard case .rsa(let modulus, let exponent) = self else {
            throw CryptoError(code: .publicKey, detail: "a key of \(name) where an RSA key was expected")
        }
        // A modulus of more than 16,384 bits and a long exponent would let a hostile file take seconds.
        guard (64...2_048).contains(modulus.count), modulus.last.map({ $0 & 1 == 1 }) == true, (1...8).contains(exponent.count),
            exponent.last.map({ $0 & 1 == 1 }) == true, exponent != [1]
        else { throw CryptoError(code: .publicKey, detail: "numbers that are no RSA key") }
        guard let key = RSA_new() else { throw CryptoError.fromLibrary("RSA key") }
        defer { RSA_free(key) }
        guard let n = BN_bin2bn(modulus, Int32(modulus.count), nil), let e = BN_bin2bn(exponent, Int32(exponent.count), nil),
            RSA_set0_key(key, n, e, nil) == 1
        else { throw CryptoError.fromLibrary("RSA key") }
        return try body(key)
    }

    private static func verify(
        _ signature: [UInt8], _ hash: [UInt8], _ curve: EllipticCurve, _ octets: [UInt8]
    ) throws(CryptoError) -> Bool {
        try curve.withGroup { group throws(CryptoError) in
            let scratch = try Scratch()
            return try curve.withPoint(octets, on: group, scratch) { point throws(CryptoError) in
                guard let key = EC_KEY_new() else { throw CryptoError.fromLibrary("EC key") }
                defer { EC_KEY_free(key) }
                guard EC_KEY_set_group(key, group) == 1, EC_KEY_set_public_key(key, point) == 1 else {
                    throw CryptoError.fromLibrary("EC key")
                }
                return ECDSA_verify(0, hash, Int32(hash.count), signature, Int32(clamping: signature.count), key) == 1
            }
        }
    }
}

/// The two forms of an ECDSA signature.
public enum ECDSASignature {
    /// SEQUENCE of r and s, out of r and s in half of the octets each; nil for another length than twice the order's.
    public static func der(fromPlain octets: [UInt8], _ curve: EllipticCurve) -> [UInt8]? {
        let half = curve.orderLength
        guard octets.count == 2 * half else { return nil }
        return DER.sequence(DER.integer(octets[..<half]), DER.integer(octets[half...]))
    }

    /// r and s, each as long as the curve's order, out of a SEQUENCE; nil when it is none.
    public static func plain(fromDER octets: [UInt8], _ curve: EllipticCurve) -> [UInt8]? {
        guard let object = try? DataObject(octets, tag: 0x30), let parts = try? object.children(), parts.count == 2 else {
            return nil
        }
        var plain: [UInt8] = []
        for part in parts {
            guard let number = try? part.unsignedInteger(), number.count <= curve.orderLength else { return nil }
            plain += [UInt8](repeating: 0, count: curve.orderLength - number.count) + number
        }
        return plain
    }
}

/// The number of bits of a number most significant octet first.
func bits(_ number: [UInt8]) -> Int {
    let octets = number.drop { $0 == 0 }
    return octets.count * 8 - (octets.first?.leadingZeroBitCount ?? 0)
}
