// SPDX-License-Identifier: MIT

import CardCrypto

/// The transforms that the grammars of this package call, over CardCrypto.
public struct StandardTransforms: TransformRegistry {
    public init() {}

    public func transform(named name: String) -> Transform? { Self.table[name] }

    /// Every transform by name.
    public static let table: [String: Transform] = Dictionary(
        uniqueKeysWithValues: (all + PassportTransforms.all + DESFireTransforms.all + GlobalPlatformTransforms.all).map {
            ($0.name, $0)
        })

    private static let all: [Transform] = [
        // ICAO 9303-11 9.7.1: the key for the 32-bit counter.
        Transform("kdf", [.octets, .octets], .key) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try KeyDerivation.key(from: a[0], counter: number(a[1]), for: .tripleDES) }
        },
        Transform("kdfAES128", [.octets, .octets], .key) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try KeyDerivation.key(from: a[0], counter: number(a[1]), for: .aes128) }
        },
        Transform("kdfAES192", [.octets, .octets], .key) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try KeyDerivation.key(from: a[0], counter: number(a[1]), for: .aes192) }
        },
        Transform("kdfAES256", [.octets, .octets], .key) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try KeyDerivation.key(from: a[0], counter: number(a[1]), for: .aes256) }
        },
        // CBC with a zero initial vector: decryption, and encryption as its inverse.
        Transform("tdes", [.key, .octets], .octets, inverse: "tdesSeal") { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try BlockCipher.tripleDES.decrypt(a[1], key: a[0]) }
        },
        Transform("tdesSeal", [.key, .octets], .octets, inverse: "tdes") { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try BlockCipher.tripleDES.encrypt(a[1], key: a[0]) }
        },
        Transform("aes", [.key, .octets, .octets], .octets, inverse: "aesSeal") { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try BlockCipher.aes.decrypt(a[2], key: a[0], iv: a[1]) }
        },
        Transform("aesSeal", [.key, .octets, .octets], .octets, inverse: "aes") { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try BlockCipher.aes.encrypt(a[2], key: a[0], iv: a[1]) }
        },
        // ISO/IEC 9797-1 MAC algorithm 3 over data that is padded inside.
        Transform("retail", [.key, .octets], .octets) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try RetailMAC.authenticate(a[1], key: a[0]) }
        },
        Transform("cmac", [.key, .octets], .octets) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try CMAC.authenticate(a[1], key: a[0]) }
        },
        // ICAO 9303-11 9.8.6: the suite follows from the counter's width, 8 octets for 3DES and 16 for AES. The AES
        // suite pads here, as 9.8.6.2 has the secure messaging layer pad before CMAC.
        Transform("smMAC", [.key, .octets, .octets], .octets) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in
                let message = a[1] + a[2]
                if a[1].count == 8 { return try RetailMAC.authenticate(message, key: a[0]) }
                return Array(try CMAC.authenticate(Padding.pad(message, to: 16), key: a[0])[..<8])
            }
        },
        // ICAO 9303-11 9.8.6.1: 3DES with a zero initial vector; AES with the encrypted counter.
        Transform("smOpen", [.key, .octets, .octets], .octets, inverse: "smSeal") { a throws(TransformError) in
            try wrap { () throws(CryptoError) in
                if a[1].count == 8 { return try BlockCipher.tripleDES.decrypt(a[2], key: a[0]) }
                return try BlockCipher.aes.decrypt(a[2], key: a[0], iv: try BlockCipher.aes.encrypt(a[1], key: a[0]))
            }
        },
        Transform("smSeal", [.key, .octets, .octets], .octets, inverse: "smOpen") { a throws(TransformError) in
            try wrap { () throws(CryptoError) in
                if a[1].count == 8 { return try BlockCipher.tripleDES.encrypt(a[2], key: a[0]) }
                return try BlockCipher.aes.encrypt(a[2], key: a[0], iv: try BlockCipher.aes.encrypt(a[1], key: a[0]))
            }
        },
        Transform("sha1", [.octets], .octets) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try Digest.sha1.hash(a[0]) }
        },
        Transform("sha256", [.octets], .octets) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try Digest.sha256.hash(a[0]) }
        },
        // ISO/IEC 14443-3 6.2.4 and 7.2; ISO/IEC 13239. Least significant octet first, as they travel.
        Transform("crcA", [.octets], .octets) { a throws(TransformError) in reflected(a[0], start: 0x6363, final: 0) },
        Transform("crcB", [.octets], .octets) { a throws(TransformError) in reflected(a[0], start: 0xFFFF, final: 0xFFFF) },
        // ISO/IEC 7816-3 11.3.4 and 8.2.5: every octet exclusive-ored.
        Transform("lrc", [.octets], .octets) { a throws(TransformError) in [a[0].reduce(0, ^)] },
    ]

    private static func number(_ octets: [UInt8]) -> UInt32 { octets.reduce(0) { $0 << 8 | UInt32($1) } }

    private static func wrap(_ body: () throws(CryptoError) -> [UInt8]) throws(TransformError) -> [UInt8] {
        do { return try body() } catch { throw TransformError(detail: error.detail) }
    }

    private static func reflected(_ octets: [UInt8], start: UInt16, final: UInt16) -> [UInt8] {
        var crc = start
        for octet in octets {
            crc ^= UInt16(octet)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0x8408 : crc >> 1 }
        }
        crc ^= final
        return [UInt8(truncatingIfNeeded: crc), UInt8(truncatingIfNeeded: crc >> 8)]
    }
}
