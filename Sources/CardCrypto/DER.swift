// SPDX-License-Identifier: MIT

import CLibCrypto
import Octets

/// The few pieces of DER (X.690) that certificates and signed data are put together from.
public enum DER {
    public static func sequence(_ elements: [UInt8]...) -> [UInt8] { TLV.encode(0x30, elements.flatMap { $0 }) }

    /// A SET OF, its elements in ascending order of their octets (X.690 11.6).
    public static func set(_ elements: [[UInt8]]) -> [UInt8] {
        TLV.encode(0x31, elements.sorted { $0.lexicographicallyPrecedes($1) }.flatMap { $0 })
    }

    /// A number that is not negative, given most significant octet first.
    public static func integer(_ magnitude: some Collection<UInt8>) -> [UInt8] {
        var octets = Array(magnitude.drop { $0 == 0 })
        if octets.first.map({ $0 & 0x80 != 0 }) ?? true { octets.insert(0, at: 0) }
        return TLV.encode(0x02, octets)
    }

    public static func octetString(_ octets: some Collection<UInt8>) -> [UInt8] { TLV.encode(0x04, octets) }

    public static var null: [UInt8] { [0x05, 0x00] }

    /// An object identifier in dotted decimal.
    ///
    /// - Throws: ``CryptoError`` with the code `encoding`.
    public static func objectIdentifier(_ dotted: String) throws(CryptoError) -> [UInt8] {
        guard let object = OBJ_txt2obj(dotted, 1) else {
            ERR_clear_error()
            throw CryptoError(code: .encoding, detail: "'\(dotted)' is no object identifier")
        }
        defer { ASN1_OBJECT_free(object) }
        return try encoding("object identifier") { i2d_ASN1_OBJECT(object, $0) }
    }

    /// What a function of libcrypto's `i2d_` family writes.
    static func encoding(
        _ operation: String, _ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
    ) throws(CryptoError) -> [UInt8] {
        let count = write(nil)
        guard count > 0 else { throw CryptoError.fromLibrary(operation) }
        var written: Int32 = 0
        let octets = [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, initialized in
            var place = buffer.baseAddress
            written = write(&place)
            initialized = written == count ? Int(count) : 0
        }
        guard written == count else { throw CryptoError.fromLibrary(operation) }
        return octets
    }
}
