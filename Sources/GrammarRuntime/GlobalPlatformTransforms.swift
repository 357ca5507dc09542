// SPDX-License-Identifier: MIT

import CardCrypto

/// The transforms of the secure channels SCP02 (GPC appendix E) and SCP03 (Amendment D).
///
/// The width of the chaining value tells the protocol: 8 octets for SCP02, 16 for SCP03.
enum GlobalPlatformTransforms {
    static let all: [Transform] = [
        // Static key, answer to INITIALIZE UPDATE, host challenge, use: 4 S-ENC, 6 S-MAC, 7 S-RMAC.
        Transform("gpKey", [.key, .octets, .octets, .octets], .key) { a throws(TransformError) in
            try key(a[0], offer: a[1], challenge: a[2], use: a[3].last ?? 0)
        },
        // S-ENC, S-MAC, answer to INITIALIZE UPDATE, host challenge, side: 0 card, 1 host.
        Transform("gpCryptogram", [.key, .key, .octets, .octets, .octets], .octets) { a throws(TransformError) in
            try cryptogram(a[0], a[1], offer: a[2], challenge: a[3], side: a[4].last ?? 0)
        },
        // The card's own cryptogram in its answer to INITIALIZE UPDATE.
        Transform("gpCardCryptogram", [.octets], .octets) { a throws(TransformError) in
            Array(try isSCP03(a[0]) ? a[0][21..<29] : a[0][20..<28])
        },
        // The chaining value before the first command.
        Transform("gpStart", [.octets], .octets) { a throws(TransformError) in
            [UInt8](repeating: 0, count: try isSCP03(a[0]) ? 16 : 8)
        },
        // S-MAC, chaining value, class to P2, data as it travels, data in clear: the next chaining value, whose first octets are the MAC.
        Transform("gpChain", [.key, .octets, .octets, .octets, .octets], .octets) { a throws(TransformError) in
            try chain(a[0], before: a[1], header: a[2], sent: a[3], clear: a[4])
        },
        // S-RMAC, chaining value, data as it travels and status word.
        Transform("gpAnswerMAC", [.key, .octets, .octets], .octets) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in Array(try CMAC.authenticate(a[1] + a[2], key: a[0]).prefix(8)) }
        },
        // S-ENC, counter, level, data of a command; as it is where the level does not encrypt.
        Transform("gpOpen", [.key, .octets, .octets, .octets], .octets, inverse: "gpSeal") { a throws(TransformError) in
            try run(a, bit: 0x02, first: 0x00, encrypting: false)
        },
        Transform("gpSeal", [.key, .octets, .octets, .octets], .octets, inverse: "gpOpen") { a throws(TransformError) in
            try run(a, bit: 0x02, first: 0x00, encrypting: true)
        },
        // The same for the data of an answer, whose counter block begins with 80.
        Transform("gpOpenAnswer", [.key, .octets, .octets, .octets], .octets, inverse: "gpSealAnswer") {
            a throws(TransformError) in
            try run(a, bit: 0x20, first: 0x80, encrypting: false)
        },
        Transform("gpSealAnswer", [.key, .octets, .octets, .octets], .octets, inverse: "gpOpenAnswer") {
            a throws(TransformError) in
            try run(a, bit: 0x20, first: 0x80, encrypting: true)
        },
    ]

    private static func isSCP03(_ offer: [UInt8]) throws(TransformError) -> Bool {
        guard offer.count >= 29 && offer[11] == 3 || offer.count == 28 && offer[11] == 2 else {
            throw TransformError(detail: "\(offer.count) bytes are no answer to INITIALIZE UPDATE")
        }
        return offer[11] == 3
    }

    private static func key(
        _ key: [UInt8], offer: [UInt8], challenge: [UInt8], use: UInt8
    ) throws(TransformError) -> [UInt8] {
        if try isSCP03(offer) {
            return try derive(key, use, challenge + offer[13..<21], octets: key.count)
        }
        // GPC E.4.1. SCP02 with these options has no R-MAC; the key of that use is never asked for.
        let constant: UInt8 = use == 0x04 ? 0x82 : 0x01
        let input = [0x01, constant] + offer[12..<14] + [UInt8](repeating: 0, count: 12)
        return try wrap { () throws(CryptoError) in try BlockCipher.tripleDES.encrypt(input, key: key) }
    }

    private static func cryptogram(
        _ encryption: [UInt8], _ mac: [UInt8], offer: [UInt8], challenge: [UInt8], side: UInt8
    ) throws(TransformError) -> [UInt8] {
        if try isSCP03(offer) { return try derive(mac, side, challenge + offer[13..<21], octets: 8) }
        let card = Array(offer[12..<20])
        let input = side == 0 ? challenge + card : card + challenge
        return try wrap { () throws(CryptoError) in
            Array(try BlockCipher.tripleDES.encrypt(Padding.pad(input, to: 8), key: encryption).suffix(8))
        }
    }

    /// Amendment D 4.1.5.
    private static func derive(
        _ key: [UInt8], _ constant: UInt8, _ context: [UInt8], octets count: Int
    ) throws(TransformError) -> [UInt8] {
        try wrap { () throws(CryptoError) in
            try CounterModeKDF.derive(key, constant: constant, context: context, bits: count * 8)
        }
    }

    private static func chain(
        _ key: [UInt8], before: [UInt8], header: [UInt8], sent: [UInt8], clear: [UInt8]
    ) throws(TransformError) -> [UInt8] {
        guard header.count == 4, before.count == 8 || before.count == 16 else {
            throw TransformError(detail: "a header of \(header.count) bytes after a chaining value of \(before.count)")
        }
        // Channel 0 whatever the channel (GPC E.4.4); Lc with the MAC.
        let body = before.count == 16 ? sent : clear
        let input = [(header[0] & 0xFC) | 0x04] + header[1...] + [UInt8(truncatingIfNeeded: body.count + 8)] + body
        return try wrap { () throws(CryptoError) in
            if before.count == 16 { return try CMAC.authenticate(before + input, key: key) }
            guard before.contains(where: { $0 != 0 }) else { return try RetailMAC.authenticate(input, key: key) }
            let single = Array(key.prefix(8))
            let vector = try BlockCipher.tripleDES.encrypt(before, key: single)
            let padded = Padding.pad(input, to: 8)
            let first = Array(padded.dropLast(8))
            let state =
                first.isEmpty ? vector : Array(try BlockCipher.tripleDES.encrypt(first, key: single, iv: vector).suffix(8))
            return try BlockCipher.tripleDES.encrypt(Array(padded.suffix(8)), key: key, iv: state)
        }
    }

    private static func run(
        _ a: [[UInt8]], bit: UInt8, first: UInt8, encrypting: Bool
    ) throws(TransformError) -> [UInt8] {
        guard let level = a[2].last, level & bit != 0, !a[3].isEmpty else { return a[3] }
        let isAES = a[1].count == 16
        let cipher: BlockCipher = isAES ? .aes : .tripleDES
        var counter = a[1]
        if isAES { counter[0] |= first }
        let block = counter
        let result = try wrap { () throws(CryptoError) in
            let vector = isAES ? try cipher.encrypt(block, key: a[0]) : nil
            if encrypting { return try cipher.encrypt(Padding.pad(a[3], to: cipher.blockLength), key: a[0], iv: vector) }
            return try cipher.decrypt(a[3], key: a[0], iv: vector)
        }
        if encrypting { return result }
        guard let clear = Padding.unpad(result) else { throw TransformError(detail: "no padding at the end") }
        return clear
    }

    private static func wrap(_ body: () throws(CryptoError) -> [UInt8]) throws(TransformError) -> [UInt8] {
        do { return try body() } catch { throw TransformError(detail: error.detail) }
    }
}
