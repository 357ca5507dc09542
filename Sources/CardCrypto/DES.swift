// SPDX-License-Identifier: MIT

import CLibCrypto

/// Single and triple DES (FIPS 46-3) by libcrypto's own DES functions instead of its EVP layer.
///
/// They are deprecated since OpenSSL 3.0 and part of every 3.x. Three reasons to use them: single DES, the chain of a retail
/// MAC, is in EVP only with the legacy provider, which need not be installed; a first use of EVP takes 1 to 2 ms, for providers
/// and `openssl.cnf`, more than a whole replay may; and each EVP call adds a microsecond and more, as much as the cipher takes
/// for two blocks. A key is set in 0.1 microseconds, so nothing need be kept for a session.
enum DES {
    /// CBC over whole blocks.
    ///
    /// - Parameters:
    ///   - key: 8 octets for single DES, 16 (K1|K2|K1) or 24.
    ///   - iv: 8 octets.
    static func cbc(_ data: [UInt8], key: [UInt8], iv: [UInt8], encrypting: Bool) -> [UInt8] {
        var keys = Schedules(key)
        defer { keys.wipe() }
        var chain = block(iv[...])
        return [UInt8](unsafeUninitializedCapacity: data.count) { output, initialized in
            let direction = encrypting ? DES_ENCRYPT : DES_DECRYPT
            if key.count == 8 {
                DES_ncbc_encrypt(data, output.baseAddress, data.count, &keys.first, &chain, direction)
            } else {
                DES_ede3_cbc_encrypt(
                    data, output.baseAddress, data.count, &keys.first, &keys.second, &keys.third, &chain, direction)
            }
            initialized = data.count
        }
    }

    /// MAC algorithm 3 of ISO/IEC 9797-1 with padding method 2: CBC by single DES with K1, the last block by K1|K2|K1.
    ///
    /// - Parameter key: 16 octets.
    static func retailMAC(_ data: [UInt8], key: [UInt8]) -> [UInt8] {
        var keys = Schedules(key)
        defer { keys.wipe() }
        let whole = data.count & ~7
        var start = block([])
        var chain = start
        if whole > 0 { DES_cbc_cksum(data, &chain, whole, &keys.first, &start) }
        // What is left is shorter than a block, so the padding's 80 always fits.
        let last = data[whole...] + [0x80] + [UInt8](repeating: 0, count: 7 - data.count & 7)
        return [UInt8](unsafeUninitializedCapacity: 8) { output, initialized in
            DES_ede3_cbc_encrypt(Array(last), output.baseAddress, 8, &keys.first, &keys.second, &keys.third, &chain, DES_ENCRYPT)
            initialized = 8
        }
    }

    /// Up to 8 octets as libcrypto has a block; zeros stand for those that are not there.
    private static func block(_ octets: ArraySlice<UInt8>) -> DES_cblock {
        var block: DES_cblock = (0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &block) { $0.copyBytes(from: octets.prefix(8)) }
        return block
    }

    private struct Schedules {
        var first = DES_key_schedule()
        var second = DES_key_schedule()
        var third = DES_key_schedule()

        init(_ key: [UInt8]) {
            var part = block(key[...])
            DES_set_key_unchecked(&part, &first)
            if key.count > 8 {
                part = block(key.dropFirst(8))
                DES_set_key_unchecked(&part, &second)
            }
            if key.count > 16 {
                part = block(key.dropFirst(16))
                DES_set_key_unchecked(&part, &third)
            } else {
                third = first
            }
        }

        mutating func wipe() { OPENSSL_cleanse(&self, MemoryLayout<Self>.size) }
    }
}
