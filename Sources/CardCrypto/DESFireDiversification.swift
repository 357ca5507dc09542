// SPDX-License-Identifier: MIT

/// A card's own key, derived from a master key and what tells the card from others (NXP AN10922).
public enum DESFireDiversification {
    /// - Parameters:
    ///   - master: a key of `cipher`; single DES cannot be diversified.
    ///   - input: 1 to 31 octets for AES, 1 to 15 for triple DES.
    /// - Returns: the key before a version is put into it.
    public static func key(_ cipher: DESFireCipher, master: [UInt8], input: [UInt8]) throws(CryptoError) -> [UInt8] {
        let constants: [UInt8]
        switch cipher {
        case .aes: constants = [0x01]
        case .twoKeyTripleDES: constants = [0x21, 0x22]
        case .threeKeyTripleDES: constants = [0x31, 0x32, 0x33]
        case .des: throw CryptoError(code: .keyLength, detail: "a single DES key cannot be diversified")
        }
        guard master.count == cipher.keyLength else {
            throw CryptoError(code: .keyLength, detail: "\(master.count) bytes are no \(cipher.rawValue) key")
        }
        let block = cipher.blockLength
        guard (1..<2 * block).contains(input.count) else {
            throw CryptoError(
                code: .dataLength, detail: "a diversification input of \(input.count) bytes; 1 to \(2 * block - 1) can be")
        }
        let (first, second) = try ChainedCMAC.subkeys(key: master, cipher: cipher.blockCipher)
        var key: [UInt8] = []
        for constant in constants {
            // Always two blocks, so that an input shorter than one is padded over both (AN10922 2.2).
            var message = [constant] + input
            let subkey = message.count == 2 * block ? first : second
            if message.count < 2 * block {
                message.append(0x80)
                message += [UInt8](repeating: 0, count: 2 * block - message.count)
            }
            message.replaceSubrange(block..., with: exclusiveOr(message[block...], subkey))
            key += try cipher.blockCipher.encrypt(message, key: master).suffix(block)
        }
        return key
    }
}

/// The version of a DES key of a DESFire card: bit 0 of each of its first eight octets, most significant first.
public enum DESFireKeyVersion {
    public static func of(_ key: [UInt8]) -> UInt8 { key.prefix(8).reduce(0) { $0 << 1 | $1 & 1 } }

    /// The key with `version` in it. The second half of a two-key triple DES key holds the complement, so that the halves stay
    /// different.
    public static func set(_ version: UInt8, in key: [UInt8]) -> [UInt8] {
        var key = key
        for index in 0..<min(8, key.count) {
            let bit = version >> (7 - UInt8(index)) & 1
            key[index] = key[index] & 0xFE | bit
            if key.count == 16 { key[index + 8] = key[index + 8] & 0xFE | (bit ^ 1) }
        }
        return key
    }
}
