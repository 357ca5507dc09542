// SPDX-License-Identifier: MIT

public import CardCrypto

/// The public key of DG15.
public enum ActiveAuthenticationPublicKey: Sendable, Codable, Equatable {
    /// Unsigned, most significant octet first, without leading zeros.
    case rsa(modulus: [UInt8], exponent: [UInt8])
    /// The curve's object identifier, also where the file spells its numbers out; `unknown` for a curve without one.
    case ecdsa(curveOID: String, publicPoint: [UInt8])
    /// The SubjectPublicKeyInfo of another kind of key.
    case unknown([UInt8])

    /// - Parameter file: DG15, `6F` around a SubjectPublicKeyInfo (ICAO 9303-10 4.7.15).
    /// - Throws: ``LDSError``.
    public init(dataGroup15 file: [UInt8]) throws(LDSError) { self.init(try Self.publicKeyInfo(dataGroup15: file)) }

    init(_ info: SubjectPublicKeyInfo) {
        self =
            switch info.signatureKey {
            case .rsa(let modulus, let exponent): .rsa(modulus: modulus, exponent: exponent)
            case .elliptic(let curve, let point): .ecdsa(curveOID: curve.objectIdentifier ?? "unknown", publicPoint: point)
            case nil: .unknown(info.der)
            }
    }

    /// The key of DG15 as it stands, explicit parameters included.
    ///
    /// - Throws: ``LDSError``.
    public static func publicKeyInfo(dataGroup15 file: [UInt8]) throws(LDSError) -> SubjectPublicKeyInfo {
        try understanding("DG15") { () throws(DataObjectError) in
            let object = try fileObject(file, tag: 0x6F)
            return try SubjectPublicKeyInfo(try object.inner(tag: 0x30))
        }
    }
}
