// SPDX-License-Identifier: MIT

/// CMAC of NIST SP 800-38B with any block cipher, its chain begun with a given vector: the MAC of DESFire's EV1 channel, whose
/// vector runs on from message to message.
public enum ChainedCMAC {
    /// The whole last block of the chain.
    ///
    /// - Parameters:
    ///   - key: of `cipher`; 8 octets are single DES.
    ///   - iv: a block to begin with; zeros when not given, which is plain CMAC.
    public static func authenticate(
        _ data: [UInt8], key: [UInt8], cipher: BlockCipher, iv: [UInt8]? = nil
    ) throws(CryptoError) -> [UInt8] {
        let block = cipher.blockLength
        // SP 800-38B 6.1: the last block is whole under K1, or padded under K2.
        var subkey = double(try cipher.encrypt([UInt8](repeating: 0, count: block), key: key))
        let lastStart = max(0, data.count - 1) / block * block
        var last = Array(data[lastStart...])
        if last.count < block {
            subkey = double(subkey)
            last = Padding.pad(last, to: block)
        }
        for index in last.indices { last[index] ^= subkey[index] }
        return Array(try cipher.encrypt(data[..<lastStart] + last, key: key, iv: iv).suffix(block))
    }

    /// The subkeys K1 and K2 of SP 800-38B 6.1.
    public static func subkeys(key: [UInt8], cipher: BlockCipher) throws(CryptoError) -> ([UInt8], [UInt8]) {
        let first = double(try cipher.encrypt([UInt8](repeating: 0, count: cipher.blockLength), key: key))
        return (first, double(first))
    }

    /// The double in GF(2^64) or GF(2^128), most significant octet first.
    static func double(_ block: [UInt8]) -> [UInt8] {
        var doubled = block
        var carry: UInt8 = 0
        for index in block.indices.reversed() {
            doubled[index] = block[index] << 1 | carry
            carry = block[index] >> 7
        }
        if carry == 1, let index = doubled.indices.last { doubled[index] ^= block.count == 8 ? 0x1B : 0x87 }
        return doubled
    }
}

/// A MAC cut to the eight octets that travel in DESFire's EV2 channel and in SUN messages: those with odd index
/// (NT4H2421Gx 9.1.3).
public func oddOctets(_ mac: [UInt8]) -> [UInt8] { stride(from: 1, to: mac.count, by: 2).map { mac[$0] } }

/// The checks of DESFire's enciphered messages.
public enum DESFireChecksum {
    /// CRC_A of ISO/IEC 14443-3 Annex B, low octet first: two octets, for D40.
    public static func crc16(_ data: [UInt8]) -> [UInt8] {
        var crc: UInt16 = 0x6363
        for octet in data {
            crc ^= UInt16(octet)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0x8408 : crc >> 1 }
        }
        return [UInt8(truncatingIfNeeded: crc), UInt8(truncatingIfNeeded: crc >> 8)]
    }

    /// The CRC of IEEE 802.3 without its final inversion, low octet first: four octets, for EV1 and key changes of EV2.
    public static func crc32(_ data: [UInt8]) -> [UInt8] {
        var crc: UInt32 = 0xFFFF_FFFF
        for octet in data {
            crc ^= UInt32(octet)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
        }
        return (0..<4).map { UInt8(truncatingIfNeeded: crc >> (8 * UInt32($0))) }
    }
}
