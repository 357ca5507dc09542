// SPDX-License-Identifier: MIT

/// How session keys come of the two random numbers of a DESFire authentication.
public enum DESFireSessionKeys {
    /// The one session key of D40 and EV1: parts of RndA and RndB in turn.
    ///
    /// - Parameters:
    ///   - cipher: that of the key in use; `.des` for a key of equal halves.
    ///   - rndA: as drawn, ``DESFireCipher/randomLength`` octets at least.
    public static func ev1(_ cipher: DESFireCipher, rndA: [UInt8], rndB: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard rndA.count >= cipher.randomLength, rndB.count >= cipher.randomLength else {
            throw CryptoError(code: .dataLength, detail: "\(rndA.count) and \(rndB.count) random bytes are too few")
        }
        func both(_ range: Range<Int>) -> [UInt8] { Array(rndA[range]) + rndB[range] }
        return switch cipher {
        case .des: both(0..<4)
        case .twoKeyTripleDES: both(0..<4) + both(4..<8)
        case .threeKeyTripleDES: both(0..<4) + both(6..<10) + both(12..<16)
        case .aes: both(0..<4) + both(12..<16)
        }
    }

    /// The keys for enciphering and for MACs of EV2 (NT4H2421Gx 9.1.7).
    public static func ev2(
        key: [UInt8], rndA: [UInt8], rndB: [UInt8]
    ) throws(CryptoError) -> (encryption: [UInt8], authentication: [UInt8]) {
        let tail = try tail(rndA, rndB)
        return (
            try CMAC.authenticate([0xA5, 0x5A, 0x00, 0x01, 0x00, 0x80] + tail, key: key),
            try CMAC.authenticate([0x5A, 0xA5, 0x00, 0x01, 0x00, 0x80] + tail, key: key)
        )
    }

    /// The one session key of LRP, of which updated key 0 makes MACs and updated key 1 enciphers (NT4H2421Gx 9.2.7).
    public static func lrp(key: [UInt8], rndA: [UInt8], rndB: [UInt8]) throws(CryptoError) -> [UInt8] {
        try LRP(key: key).authenticate([0x00, 0x01, 0x00, 0x80] + tail(rndA, rndB) + [0x96, 0x69])
    }

    /// The keys of Secure Dynamic Messaging (NT4H2421Gx 9.3.9.1).
    ///
    /// - Parameters:
    ///   - uid: when it is mirrored.
    ///   - counter: SDMReadCtr, three octets, least significant first, when it is mirrored.
    public static func dynamicMessaging(
        key: [UInt8], uid: [UInt8]?, counter: [UInt8]?
    ) throws(CryptoError) -> (encryption: [UInt8], authentication: [UInt8]) {
        func vector(_ label: [UInt8]) -> [UInt8] {
            var vector = label + [0x00, 0x01, 0x00, 0x80] + (uid ?? []) + (counter ?? [])
            while vector.count % 16 != 0 { vector.append(0) }
            return vector
        }
        return (
            try CMAC.authenticate(vector([0xC3, 0x3C]), key: key), try CMAC.authenticate(vector([0x3C, 0xC3]), key: key)
        )
    }

    /// The session key of Secure Dynamic Messaging in LRP mode (NT4H2421Gx 9.3.9.2).
    public static func dynamicMessagingLRP(key: [UInt8], uid: [UInt8]?, counter: [UInt8]?) throws(CryptoError) -> [UInt8] {
        var vector: [UInt8] = [0x00, 0x01, 0x00, 0x80] + (uid ?? []) + (counter ?? [])
        while (vector.count + 2) % 16 != 0 { vector.append(0) }
        return try LRP(key: key).authenticate(vector + [0x1E, 0xE1])
    }

    /// The initial vector of an EV2 message: E(SesENC, label | TI | counter | zeros), with `5AA5` for an answer.
    public static func ev2Vector(
        key: [UInt8], isAnswer: Bool, transaction: [UInt8], counter: UInt16
    ) throws(CryptoError) -> [UInt8] {
        let label: [UInt8] = isAnswer ? [0x5A, 0xA5] : [0xA5, 0x5A]
        let count = [UInt8(truncatingIfNeeded: counter), UInt8(truncatingIfNeeded: counter >> 8)]
        return try BlockCipher.aes.encrypt(label + transaction + count + [UInt8](repeating: 0, count: 8), key: key)
    }

    private static func tail(_ rndA: [UInt8], _ rndB: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard rndA.count == 16, rndB.count == 16 else {
            throw CryptoError(code: .dataLength, detail: "\(rndA.count) and \(rndB.count) random bytes; there must be 16 of each")
        }
        return Array(rndA[0..<2]) + exclusiveOr(rndA[2..<8], rndB[0..<6]) + rndB[6..<16] + rndA[8..<16]
    }
}
