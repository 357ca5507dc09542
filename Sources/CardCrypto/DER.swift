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

    /// A BIT STRING of whole octets.
    public static func bitString(_ octets: some Collection<UInt8>) -> [UInt8] { TLV.encode(0x03, [0x00] + octets) }

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

    /// The dotted text of an object identifier's octets (X.690 8.19); nil when they are none. An arc has at most 63 bits.
    public static func objectIdentifierText(_ octets: some Collection<UInt8>) -> String? {
        guard !octets.isEmpty, octets.count <= 64 else { return nil }
        var arcs: [UInt64] = []
        var arc: UInt64 = 0
        var inside = false
        for octet in octets {
            guard arc < 1 << 56 else { return nil }
            arc = arc << 7 | UInt64(octet & 0x7F)
            inside = octet & 0x80 != 0
            if inside { continue }
            if arcs.isEmpty {
                let first = min(arc / 40, 2)
                arcs = [first, arc - first * 40]
            } else {
                arcs.append(arc)
            }
            arc = 0
        }
        return inside ? nil : arcs.map(String.init).joined(separator: ".")
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
