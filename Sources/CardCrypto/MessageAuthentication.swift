// SPDX-License-Identifier: MIT

import CLibCrypto

/// MAC algorithm 3 of ISO/IEC 9797-1 with DES ("retail MAC"), as BAC and 3DES secure messaging use it (ICAO 9303-11 9.8.6.1).
public enum RetailMAC {
    /// The MAC of 8 octets over `data`, which is padded here by method 2.
    ///
    /// - Parameter key: 16 octets.
    public static func authenticate(_ data: [UInt8], key: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard key.count == 16 else { throw CryptoError(code: .keyLength, detail: "a retail MAC key has 16 bytes, not \(key.count)") }
        let first = Array(key[..<8])
        let second = Array(key[8...])
        let chain = try BlockCipher.tripleDES.encrypt(Padding.pad(data, to: 8), key: first)
        let last = Array(chain.suffix(8))
        let decrypted = try BlockCipher.tripleDES.decrypt(last, key: second)
        return try BlockCipher.tripleDES.encrypt(decrypted, key: first)
    }
}

/// CMAC of NIST SP 800-38B with AES.
public enum CMAC {
    /// The whole MAC of 16 octets over `data`.
    ///
    /// - Parameter key: 16, 24 or 32 octets.
    public static func authenticate(_ data: [UInt8], key: [UInt8]) throws(CryptoError) -> [UInt8] {
        let name: String
        switch key.count {
        case 16: name = "AES-128-CBC"
        case 24: name = "AES-192-CBC"
        case 32: name = "AES-256-CBC"
        default: throw CryptoError(code: .keyLength, detail: "\(key.count) bytes are no AES key")
        }
        guard let mac = EVP_MAC_fetch(nil, "CMAC", nil) else { throw CryptoError.fromLibrary("CMAC") }
        defer { EVP_MAC_free(mac) }
        guard let context = EVP_MAC_CTX_new(mac) else { throw CryptoError.fromLibrary("CMAC") }
        defer { EVP_MAC_CTX_free(context) }
        var value = [UInt8](repeating: 0, count: 16)
        var written = 0
        var characters = Array(name.utf8CString)
        let done = characters.withUnsafeMutableBufferPointer { buffer in
            let parameters = [
                OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CIPHER, buffer.baseAddress, 0),
                OSSL_PARAM_construct_end(),
            ]
            return EVP_MAC_init(context, key, key.count, parameters) == 1
                && EVP_MAC_update(context, data, data.count) == 1
                && EVP_MAC_final(context, &value, &written, value.count) == 1
        }
        guard done, written == 16 else { throw CryptoError.fromLibrary("CMAC") }
        return value
    }
}

/// Whether two octet strings are equal, in a time that depends on their length alone.
public func equalInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for index in left.indices { difference |= left[index] ^ right[index] }
    return difference == 0
}
