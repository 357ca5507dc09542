// SPDX-License-Identifier: MIT

/// MAC algorithm 3 of ISO/IEC 9797-1 with DES ("retail MAC"), as BAC and 3DES secure messaging use it (ICAO 9303-11 9.8.6.1).
public enum RetailMAC {
    /// The MAC of 8 octets over `data`, which is padded here by method 2.
    ///
    /// - Parameter key: 16 octets.
    public static func authenticate(_ data: [UInt8], key: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard key.count == 16 else {
            throw CryptoError(code: .keyLength, detail: "a retail MAC key has 16 bytes, not \(key.count)")
        }
        return DES.retailMAC(data, key: key)
    }
}

/// CMAC of NIST SP 800-38B with AES. Written over AES-CBC: libcrypto's `EVP_MAC` looks its cipher up again for every message.
public enum CMAC {
    /// The whole MAC of 16 octets over `data`.
    ///
    /// - Parameter key: 16, 24 or 32 octets.
    public static func authenticate(_ data: [UInt8], key: [UInt8]) throws(CryptoError) -> [UInt8] {
        let cipher = try AES(key: key, encrypting: true)
        let zero = [UInt8](repeating: 0, count: AES.blockLength)
        // The last block is whole under K1, or padded under K2 (SP 800-38B 6.1 and 6.2).
        var subkey = double(try cipher.run(zero))
        let lastStart = max(0, data.count - 1) / AES.blockLength * AES.blockLength
        var last = Array(data[lastStart...])
        if last.count < AES.blockLength {
            subkey = double(subkey)
            last = Padding.pad(last, to: AES.blockLength)
        }
        for index in last.indices { last[index] ^= subkey[index] }
        try cipher.start(zero)
        _ = try cipher.run(Array(data[..<lastStart]))
        return try cipher.run(last)
    }

    /// The double of a number in GF(2^128), most significant octet first.
    private static func double(_ block: [UInt8]) -> [UInt8] {
        var doubled = block
        var carry: UInt8 = 0
        for index in block.indices.reversed() {
            doubled[index] = block[index] << 1 | carry
            carry = block[index] >> 7
        }
        if carry == 1, let index = doubled.indices.last { doubled[index] ^= 0x87 }
        return doubled
    }
}

/// Whether two octet strings are equal, in a time that depends on their length alone.
public func equalInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for index in left.indices { difference |= left[index] ^ right[index] }
    return difference == 0
}
