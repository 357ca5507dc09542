// SPDX-License-Identifier: MIT

import CLibCrypto
import Octets

/// A private key for signatures. Nothing random comes from inside libcrypto: what a scheme needs is handed in.
public struct SigningKey: Sendable {
    private enum Material: Sendable {
        /// PKCS#1 RSAPrivateKey in DER.
        case rsa([UInt8])
        /// Most significant octet first, as long as the curve's order.
        case elliptic(EllipticCurve, scalar: [UInt8])
    }

    private let material: Material
    public let publicKey: PublicKey

    public init(_ pair: RSAKeyPair) throws(CryptoError) { try self.init(rsaPrivateKey: pair.privateKey) }

    /// A key on `curve` out of random octets: at least eight more than the order has, for every key to be as likely as any other.
    public init(curve: EllipticCurve, random: [UInt8]) throws(CryptoError) {
        guard random.count >= curve.orderLength, random.count <= curve.orderLength + 64 else {
            throw CryptoError(code: .dataLength, detail: "\(random.count) bytes to make a key from")
        }
        let scratch = try Scratch()
        let scalar = try scratch.scalar(from: random, below: try scratch.number(curve.order))
        try self.init(curve: curve, scalar: try Scratch.octets(scalar, length: curve.orderLength))
    }

    /// A key on `curve` of a known scalar, most significant octet first.
    ///
    /// - Throws: ``CryptoError`` with the code `keyLength` when it is zero or not below the order.
    public init(curve: EllipticCurve, scalar octets: [UInt8]) throws(CryptoError) {
        let refused = CryptoError(code: .keyLength, detail: "a number that is no private key of the curve")
        guard octets.count <= curve.orderLength + 8 else { throw refused }
        let scratch = try Scratch()
        let scalar = try scratch.number(octets)
        guard BN_is_zero(scalar) == 0, BN_cmp(scalar, try scratch.number(curve.order)) < 0 else { throw refused }
        let point = try curve.withGroup { group throws(CryptoError) in
            guard let point = EC_POINT_new(group) else { throw CryptoError.fromLibrary("point") }
            defer { EC_POINT_free(point) }
            guard EC_POINT_mul(group, point, scalar, nil, nil, scratch.context) == 1 else {
                throw CryptoError.fromLibrary("public key")
            }
            return try EllipticCurve.octets(of: point, on: group, scratch)
        }
        material = .elliptic(curve, scalar: try Scratch.octets(scalar, length: curve.orderLength))
        publicKey = .elliptic(curve, point: point)
    }

    private init(rsaPrivateKey der: [UInt8]) throws(CryptoError) {
        guard let object = try? DataObject(der), let parts = try? object.elements(of: 0x30), parts.count >= 9,
            let modulus = try? parts[1].unsignedInteger(), let exponent = try? parts[2].unsignedInteger()
        else { throw CryptoError(code: .encoding, detail: "octets that are no RSA private key") }
        material = .rsa(der)
        publicKey = .rsa(modulus: modulus, exponent: exponent)
    }

    /// A key out of a PKCS#8 PrivateKeyInfo (RFC 5208), not encrypted, or a bare RSAPrivateKey or ECPrivateKey, in DER.
    ///
    /// - Throws: ``CryptoError`` with the code `encoding` or `curve`.
    public init(der: [UInt8]) throws(CryptoError) {
        do {
            let object = try DataObject(der)
            let parts = try object.elements(of: 0x30)
            switch try parts.element(1, of: object).tag {
            case 0x30:
                let algorithm = try parts[1].children()
                let inner = try parts.element(2, of: object, tag: 0x04).inner(tag: 0x30)
                if try algorithm.element(0, of: parts[1]).objectIdentifier() == SubjectPublicKeyInfo.rsa {
                    try self.init(rsaPrivateKey: Array(inner.octets))
                } else {
                    try self.init(ecPrivateKey: inner, parameters: try algorithm.element(1, of: parts[1]))
                }
            case 0x04:
                guard let parameters = parts.first(0xA0) else { throw object.fault(.missing, "an EC key without its curve") }
                try self.init(ecPrivateKey: object, parameters: try parameters.inner())
            default: try self.init(rsaPrivateKey: Array(object.octets))
            }
        } catch let error as DataObjectError {
            throw CryptoError(code: .encoding, detail: "private key: \(error)")
        } catch let error as CryptoError {
            throw error
        } catch {
            throw CryptoError(code: .encoding, detail: "private key: \(error)")
        }
    }

    private init(ecPrivateKey object: DataObject, parameters: DataObject) throws {
        let curve =
            parameters.tag == 0x06
            ? try EllipticCurve(named: parameters.objectIdentifier()) : try EllipticCurve(ecParameters: parameters)
        let scalar = Array(try object.children().element(1, of: object, tag: 0x04).value)
        try self.init(curve: curve, scalar: scalar)
    }

    /// The SubjectPublicKeyInfo of ``publicKey``, a curve by its name.
    public func publicKeyInfo() throws(CryptoError) -> [UInt8] { try publicKey.subjectPublicKeyInfo() }

    /// PKCS#8 PrivateKeyInfo (RFC 5208) in DER, not encrypted.
    public func pkcs8() throws(CryptoError) -> [UInt8] {
        let identifier: [UInt8]
        let inner: [UInt8]
        switch material {
        case .rsa(let der):
            identifier = DER.sequence(try DER.objectIdentifier(SubjectPublicKeyInfo.rsa), DER.null)
            inner = der
        case .elliptic(let curve, let scalar):
            let parameters =
                if let name = curve.objectIdentifier { try DER.objectIdentifier(name) } else { try curve.ecParameters() }
            identifier = DER.sequence(try DER.objectIdentifier("1.2.840.10045.2.1"), parameters)
            guard case .elliptic(_, let point) = publicKey else { throw CryptoError(code: .publicKey, detail: "no point") }
            inner = DER.sequence(DER.integer([1]), DER.octetString(scalar), TLV.encode(0xA1, DER.bitString(point)))
        }
        return DER.sequence(DER.integer([]), identifier, DER.octetString(inner))
    }

    /// Signs `message`.
    ///
    /// - Parameter random: as many octets as ``SignatureScheme/randomLength(for:)`` says, drawn for this signature alone: ECDSA under
    ///   one number twice gives the private key away.
    /// - Throws: ``CryptoError``.
    public func sign(_ message: [UInt8], by scheme: SignatureScheme, random: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard random.count == scheme.randomLength(for: publicKey) else {
            throw CryptoError(code: .dataLength, detail: "\(random.count) random bytes for \(scheme.name)")
        }
        let hash = try scheme.digest.hash(message)
        switch (material, scheme) {
        case (.rsa(let der), .rsaPKCS1(let digest)):
            let info = DER.sequence(
                DER.sequence(try DER.objectIdentifier(digest.objectIdentifier), DER.null), DER.octetString(hash))
            return try Self.privateOperation(der, info, RSA_PKCS1_PADDING)
        case (.rsa(let der), .rsaPSS(let digest, let mask, let saltLength)):
            guard case .rsa(let modulus, _) = publicKey else { break }
            let encoded = try Self.pss(hash, salt: random, digest, mask, bits: bits(modulus) - 1)
            _ = saltLength
            return try Self.privateOperation(der, Self.padded(encoded, to: modulus.count), RSA_NO_PADDING)
        case (.elliptic(let curve, let scalar), .ecdsa):
            return try Self.ecdsa(hash, curve, scalar, random)
        case (.elliptic(let curve, let scalar), .ecdsaPlain):
            guard let plain = ECDSASignature.plain(fromDER: try Self.ecdsa(hash, curve, scalar, random), curve) else { break }
            return plain
        default: break
        }
        throw CryptoError(code: .algorithm, detail: "\(scheme.name) with a key of \(publicKey.name)")
    }

    /// `block` to the power of the private exponent (RSASP1 of RFC 8017 5.2.1).
    ///
    /// - Parameter block: as long as the modulus, and below it.
    public func rawRSA(_ block: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard case .rsa(let der) = material else {
            throw CryptoError(code: .algorithm, detail: "an RSA operation with a key of \(publicKey.name)")
        }
        return try Self.privateOperation(der, block, RSA_NO_PADDING)
    }

    private static func privateOperation(_ der: [UInt8], _ block: [UInt8], _ padding: Int32) throws(CryptoError) -> [UInt8] {
        let key = der.withUnsafeBufferPointer { buffer in
            var place = buffer.baseAddress
            return d2i_RSAPrivateKey(nil, &place, buffer.count)
        }
        guard let key else { throw CryptoError.fromLibrary("RSA key") }
        defer { RSA_free(key) }
        let length = Int(RSA_size(key))
        guard block.count <= length else { throw CryptoError(code: .dataLength, detail: "\(block.count) bytes for an RSA key") }
        var written: Int32 = -1
        let octets = [UInt8](unsafeUninitializedCapacity: length) { buffer, initialized in
            written = RSA_private_encrypt(Int32(block.count), block, buffer.baseAddress, key, padding)
            initialized = written == Int32(length) ? length : 0
        }
        guard written == Int32(length) else { throw CryptoError.fromLibrary("RSA signature") }
        return octets
    }

    /// EMSA-PSS-ENCODE (RFC 8017 9.1.1) with a salt from outside.
    private static func pss(
        _ hash: [UInt8], salt: [UInt8], _ digest: Digest, _ mask: Digest, bits: Int
    ) throws(CryptoError) -> [UInt8] {
        let length = (bits + 7) / 8
        let dataLength = length - digest.length - 1
        guard dataLength >= salt.count + 1 else {
            throw CryptoError(code: .keyLength, detail: "a key too short for RSA-PSS with \(digest.rawValue)")
        }
        let proof = try digest.hash([UInt8](repeating: 0, count: 8) + hash + salt)
        var data = [UInt8](repeating: 0, count: dataLength - salt.count - 1) + [0x01] + salt
        var stream = [UInt8](repeating: 0, count: dataLength)
        guard PKCS1_MGF1(&stream, dataLength, proof, proof.count, mask.libraryForm) == 0 else {
            throw CryptoError.fromLibrary("MGF1")
        }
        for index in data.indices { data[index] ^= stream[index] }
        data[0] &= 0xFF >> UInt8(truncatingIfNeeded: 8 * length - bits)
        return data + proof + [0xBC]
    }

    private static func padded(_ octets: [UInt8], to length: Int) -> [UInt8] {
        [UInt8](repeating: 0, count: max(0, length - octets.count)) + octets
    }

    /// ECDSA (FIPS 186-5 6.4.1) with the secret number out of `random`; a SEQUENCE of r and s.
    private static func ecdsa(
        _ hash: [UInt8], _ curve: EllipticCurve, _ scalar: [UInt8], _ random: [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        try curve.withGroup { group throws(CryptoError) in
            let scratch = try Scratch()
            let order = try scratch.number(curve.order)
            let secret = try scratch.scalar(from: random, below: order)
            let inverse = try scratch.number()
            let x = try scratch.number()
            let r = try scratch.number()
            let d = try scratch.number(scalar)
            guard let point = EC_POINT_new(group), let key = EC_KEY_new() else { throw CryptoError.fromLibrary("ECDSA") }
            defer {
                EC_POINT_free(point)
                EC_KEY_free(key)
            }
            guard EC_POINT_mul(group, point, secret, nil, nil, scratch.context) == 1,
                EC_POINT_get_affine_coordinates(group, point, x, nil, scratch.context) == 1,
                BN_div(nil, r, x, order, scratch.context) == 1, BN_is_zero(r) == 0,
                BN_mod_inverse(inverse, secret, order, scratch.context) != nil,
                EC_KEY_set_group(key, group) == 1, EC_KEY_set_private_key(key, d) == 1,
                let signature = ECDSA_do_sign_ex(hash, Int32(hash.count), inverse, r, key)
            else { throw CryptoError.fromLibrary("ECDSA") }
            defer { ECDSA_SIG_free(signature) }
            return try DER.encoding("ECDSA") { i2d_ECDSA_SIG(signature, $0) }
        }
    }
}
