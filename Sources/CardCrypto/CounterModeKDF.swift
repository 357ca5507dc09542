// SPDX-License-Identifier: MIT

/// The KDF in counter mode of NIST SP 800-108 with AES-CMAC, as SCP03 takes it (GlobalPlatform Amendment D 4.1.5).
public enum CounterModeKDF {
    /// - Parameters:
    ///   - key: an AES key of 16, 24 or 32 octets.
    ///   - constant: the derivation constant: 00 card cryptogram, 01 host cryptogram, 02 card challenge, 04 S-ENC, 06 S-MAC,
    ///     07 S-RMAC.
    ///   - context: the host's challenge and the card's, or what stands for them.
    ///   - bits: the length of the result, at most 256; more are not derived.
    /// - Throws: `CryptoError` for a key of another length.
    public static func derive(
        _ key: [UInt8], constant: UInt8, context: [UInt8], bits: Int
    ) throws(CryptoError) -> [UInt8] {
        // Eleven octets of zeros and the constant as label, the separator, L in bits, the block's number.
        let head =
            [UInt8](repeating: 0, count: 11) + [
                constant, 0x00, UInt8(truncatingIfNeeded: bits >> 8), UInt8(truncatingIfNeeded: bits),
            ]
        var result: [UInt8] = []
        for block: UInt8 in 1...2 where result.count < bits / 8 {
            result += try CMAC.authenticate(head + [block] + context, key: key)
        }
        return Array(result.prefix(max(0, bits / 8)))
    }
}
