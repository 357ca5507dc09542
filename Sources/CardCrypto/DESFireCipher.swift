// SPDX-License-Identifier: MIT

/// The cipher of a DESFire key.
public enum DESFireCipher: String, Sendable, Hashable, Codable, CaseIterable {
    /// Single DES, 8 octets; on the card a two-key triple DES key with equal halves.
    case des
    case twoKeyTripleDES = "2k3des"
    case threeKeyTripleDES = "3k3des"
    case aes

    /// Octets of a key.
    public var keyLength: Int {
        switch self {
        case .des: 8
        case .twoKeyTripleDES, .aes: 16
        case .threeKeyTripleDES: 24
        }
    }

    public var blockCipher: BlockCipher { self == .aes ? .aes : .tripleDES }

    /// Octets in a block.
    public var blockLength: Int { blockCipher.blockLength }

    /// Octets of RndA and RndB, but in D40, where they are always eight.
    public var randomLength: Int { self == .aes || self == .threeKeyTripleDES ? 16 : 8 }
}

/// CBC as the D40 channel has it, where the reader's end never enciphers: the card has one direction of DES for each of the two ways.
public enum DecipheringCBC {
    /// What a reader sends for `plaintext`: C = D(P xor the C before), the first with zeros.
    ///
    /// - Parameters:
    ///   - plaintext: whole blocks.
    ///   - key: of DES, or of triple DES.
    public static func seal(_ plaintext: [UInt8], key: [UInt8]) throws(CryptoError) -> [UInt8] {
        try eachBlock(plaintext) { block, previous throws(CryptoError) in
            let sent = try BlockCipher.tripleDES.decrypt(exclusiveOr(block, previous), key: key)
            return (sent, sent)
        }
    }

    /// What a card reads in it: P = E(C) xor the C before.
    public static func open(_ ciphertext: [UInt8], key: [UInt8]) throws(CryptoError) -> [UInt8] {
        try eachBlock(ciphertext) { block, previous throws(CryptoError) in
            (exclusiveOr(try BlockCipher.tripleDES.encrypt(block, key: key), previous), block)
        }
    }

    private static func eachBlock(
        _ data: [UInt8], _ step: ([UInt8], [UInt8]) throws(CryptoError) -> (output: [UInt8], chain: [UInt8])
    ) throws(CryptoError) -> [UInt8] {
        guard data.count % 8 == 0 else {
            throw CryptoError(code: .dataLength, detail: "\(data.count) bytes are not whole blocks of 8")
        }
        var output: [UInt8] = []
        output.reserveCapacity(data.count)
        var chain = [UInt8](repeating: 0, count: 8)
        for start in stride(from: 0, to: data.count, by: 8) {
            let result = try step(Array(data[start..<start + 8]), chain)
            output += result.output
            chain = result.chain
        }
        return output
    }
}

/// The two octet strings, one xor the other, as long as the shorter.
public func exclusiveOr(_ left: some Sequence<UInt8>, _ right: some Sequence<UInt8>) -> [UInt8] {
    zip(left, right).map { $0 ^ $1 }
}
