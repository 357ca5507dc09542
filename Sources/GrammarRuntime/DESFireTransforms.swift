// SPDX-License-Identifier: MIT

import CardCrypto

/// The transforms of DESFire's and NTAG 424 DNA's channels (NXP MF3D(H)x2 and NT4H2421Gx, AN12304, AN10922).
///
/// The width of a vector tells the cipher: 8 octets DES or triple DES, 16 AES. An EV2 channel's block counter tells its own: none
/// AES, 4 octets the leakage resilient primitive.
enum DESFireTransforms {
    static let all: [Transform] = channels + checks + keys

    private static let channels: [Transform] = [
        Transform("desfireOpen", [.key, .octets, .octets], .octets, inverse: "desfireSeal") { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try cipher(a[1]).decrypt(a[2], key: a[0], iv: a[1]) }
        },
        Transform("desfireSeal", [.key, .octets, .octets], .octets, inverse: "desfireOpen") { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try cipher(a[1]).encrypt(a[2], key: a[0], iv: a[1]) }
        },
        // D40: the reader deciphers whichever way the data goes, so what it sends is opened by enciphering.
        Transform("legacyOpen", [.key, .octets], .octets, inverse: "legacySeal") { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try DecipheringCBC.open(a[1], key: a[0]) }
        },
        Transform("legacySeal", [.key, .octets], .octets, inverse: "legacyOpen") { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try DecipheringCBC.seal(a[1], key: a[0]) }
        },
        // The first four octets of the last block over data that is filled up with zeros.
        Transform("legacyMAC", [.key, .octets], .octets) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in
                let length = max(8, (a[1].count + 7) / 8 * 8)
                let whole = a[1] + [UInt8](repeating: 0, count: length - a[1].count)
                return Array(try BlockCipher.tripleDES.encrypt(whole, key: a[0]).suffix(8).prefix(4))
            }
        },
        // EV1: the whole block that the chain goes on from; its first eight octets travel.
        Transform("chainedMAC", [.key, .octets, .octets], .octets) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in
                try ChainedCMAC.authenticate(a[2], key: a[0], cipher: try cipher(a[1]), iv: a[1])
            }
        },
        // EV2: key, block counter, then what the MAC covers; the octets that travel.
        Transform("ev2MAC", [.key, .octets, .octets], .octets) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in
                oddOctets(
                    a[1].isEmpty
                        ? try CMAC.authenticate(a[2], key: a[0]) : try LRP(key: a[0]).authenticate(a[2]))
            }
        },
        // EV2: key, block counter, what the vector is made of, data (NT4H2421Gx 9.1.4 and 9.2.4).
        Transform("ev2Open", [.key, .octets, .octets, .octets], .octets, inverse: "ev2Seal") { a throws(TransformError) in
            try wrap { () throws(CryptoError) in
                guard a[1].isEmpty else {
                    var counter = a[1]
                    return try LRP(key: a[0], updateNumber: 1).decrypt(a[3], counter: &counter)
                }
                return try BlockCipher.aes.decrypt(a[3], key: a[0], iv: try vector(a[0], a[2]))
            }
        },
        Transform("ev2Seal", [.key, .octets, .octets, .octets], .octets, inverse: "ev2Open") { a throws(TransformError) in
            try wrap { () throws(CryptoError) in
                guard a[1].isEmpty else {
                    var counter = a[1]
                    return try LRP(key: a[0], updateNumber: 1).encrypt(a[3], counter: &counter)
                }
                return try BlockCipher.aes.encrypt(a[3], key: a[0], iv: try vector(a[0], a[2]))
            }
        },
        // The block counter after data was enciphered under it.
        Transform("ev2Blocks", [.octets, .octets], .octets) { a throws(TransformError) in
            var counter = a[0]
            var carry = a[1].count / 16
            for index in counter.indices.reversed() where carry > 0 {
                carry += Int(counter[index])
                counter[index] = UInt8(truncatingIfNeeded: carry)
                carry >>= 8
            }
            return counter
        },
    ]

    private static let checks: [Transform] = [
        // Of a command's code and parameters: what is never enciphered, what may be, and how long that is when it is not (four
        // octets; all ones when the command does not say).
        Transform("headerPart", [.octets, .octets], .octets) { a throws(TransformError) in
            Array(a[1].prefix(headerLength(a[0].first) ?? a[1].count))
        },
        Transform("cipherPart", [.octets, .octets], .octets) { a throws(TransformError) in
            headerLength(a[0].first).map { Array(a[1].dropFirst($0)) } ?? []
        },
        Transform("declaredLength", [.octets, .octets], .octets) { a throws(TransformError) in
            switch a[0].first {
            case 0x3D, 0x8D, 0x3B, 0x8B, 0xDB, 0xBA:
                let header = headerLength(a[0].first) ?? 0
                guard a[1].count >= header, header >= 3 else { return [0xFF, 0xFF, 0xFF, 0xFF] }
                return [0] + a[1][(header - 3)..<header].reversed()
            case 0x0C, 0xDC, 0x1C: return [0, 0, 0, 4]
            default: return [0xFF, 0xFF, 0xFF, 0xFF]
            }
        },
        // What stands before checksum and padding. Octets before and after the data that the checksum covers too; the plaintext.
        Transform("checked16", [.octets], .octets) { a throws(TransformError) in
            try inside(a[0], width: 2) { DESFireChecksum.crc16($0) }
        },
        Transform("checked32", [.octets, .octets, .octets], .octets) { a throws(TransformError) in
            try inside(a[2], width: 4) { DESFireChecksum.crc32(a[0] + $0 + a[1]) }
        },
        Transform("crc16", [.octets], .octets) { a throws(TransformError) in DESFireChecksum.crc16(a[0]) },
        Transform("crc32", [.octets], .octets) { a throws(TransformError) in DESFireChecksum.crc32(a[0]) },
    ]

    private static let keys: [Transform] = [
        // RndB, RndA and the proofs of each authentication; the code of its command says which.
        Transform("authenticationOpen", [.key, .octets, .octets, .octets], .octets) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in
                let key = a[1].first == 0x0A || a[1].first == 0x1A ? single(a[0]) : a[0]
                switch a[1].first {
                case 0x0A: return try BlockCipher.tripleDES.decrypt(a[3], key: key)
                case 0x1A, 0xAA:
                    let cipher: BlockCipher = a[1].first == 0xAA ? .aes : .tripleDES
                    return try cipher.decrypt(a[3], key: key, iv: a[2].isEmpty ? nil : Array(a[2].suffix(cipher.blockLength)))
                default: return try BlockCipher.aes.decrypt(a[3], key: key)
                }
            }
        },
        // What the reader sends: in D40 it deciphers.
        Transform("tokenOpen", [.key, .octets, .octets, .octets], .octets) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in
                let key = a[1].first == 0x0A || a[1].first == 0x1A ? single(a[0]) : a[0]
                switch a[1].first {
                case 0x0A: return try DecipheringCBC.open(a[3], key: key)
                case 0x1A, 0xAA:
                    let cipher: BlockCipher = a[1].first == 0xAA ? .aes : .tripleDES
                    return try cipher.decrypt(a[3], key: key, iv: Array(a[2].suffix(cipher.blockLength)))
                default: return try BlockCipher.aes.decrypt(a[3], key: key)
                }
            }
        },
        Transform("ev1SessionKey", [.key, .octets, .octets, .octets], .key) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in
                let cipher: DESFireCipher =
                    a[1].first == 0xAA
                    ? .aes : a[0].count == 24 ? .threeKeyTripleDES : single(a[0]).count == 8 ? .des : .twoKeyTripleDES
                return try DESFireSessionKeys.ev1(cipher, rndA: a[2], rndB: a[3])
            }
        },
        Transform("ev2SessionENC", [.key, .octets, .octets], .key) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try DESFireSessionKeys.ev2(key: a[0], rndA: a[1], rndB: a[2]).encryption }
        },
        Transform("ev2SessionMAC", [.key, .octets, .octets], .key) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try DESFireSessionKeys.ev2(key: a[0], rndA: a[1], rndB: a[2]).authentication }
        },
        Transform("lrpSessionKey", [.key, .octets, .octets], .key) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try DESFireSessionKeys.lrp(key: a[0], rndA: a[1], rndB: a[2]) }
        },
        // The whole MAC of LRP, as an authentication has it, and its counter mode.
        Transform("lrpMAC", [.key, .octets], .octets) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in try LRP(key: a[0]).authenticate(a[1]) }
        },
        // AN10922: the command code tells the cipher.
        Transform("diversified", [.key, .octets, .octets], .key) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in
                let isTripleDES = a[1].first == 0x0A || a[1].first == 0x1A
                let cipher: DESFireCipher = !isTripleDES ? .aes : a[0].count == 24 ? .threeKeyTripleDES : .twoKeyTripleDES
                return try DESFireDiversification.key(cipher, master: a[0], input: a[2])
            }
        },
        // Secure Dynamic Messaging (NT4H2421Gx 9.3): UID and counter as they are mirrored.
        Transform("sdmKey", [.key, .octets, .octets], .key) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in
                try DESFireSessionKeys.dynamicMessaging(key: a[0], uid: a[1], counter: a[2]).authentication
            }
        },
        Transform("sdmCipherKey", [.key, .octets, .octets], .key) { a throws(TransformError) in
            try wrap { () throws(CryptoError) in
                try DESFireSessionKeys.dynamicMessaging(key: a[0], uid: a[1], counter: a[2]).encryption
            }
        },
        Transform("oddOctets", [.octets], .octets) { a throws(TransformError) in CardCrypto.oddOctets(a[0]) },
        // UID and counter as they are mirrored: AES, or the leakage resilient primitive whose counter stands before (9.3.4).
        Transform("piccOpen", [.key, .octets], .octets) { a throws(TransformError) in
            let octets = try fromHex(a[1])
            return try wrap { () throws(CryptoError) in
                guard octets.count == 24 else { return try BlockCipher.aes.decrypt(octets, key: a[0]) }
                var counter = Array(octets[..<8])
                return try LRP(key: a[0], updateNumber: 1).decrypt(Array(octets[8...]), counter: &counter)
            }
        },
        // Octets that are mirrored as hexadecimal digits.
        Transform("fromHex", [.octets], .octets) { a throws(TransformError) in try fromHex(a[0]) },
    ]

    private static func fromHex(_ digits: [UInt8]) throws(TransformError) -> [UInt8] {
        guard digits.count % 2 == 0 else { throw TransformError(detail: "an odd number of hexadecimal digits") }
        var octets: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digit(digits[index]), let low = digit(digits[index + 1]) else {
                throw TransformError(detail: "a character that is no hexadecimal digit")
            }
            octets.append(high << 4 | low)
        }
        return octets
    }

    /// Nil for a command of which nothing is ever enciphered.
    private static func headerLength(_ code: UInt8?) -> Int? {
        switch code {
        case 0x3D, 0x8D, 0x3B, 0x8B: 7
        case 0xDB, 0xBA: 10
        case 0x0C, 0xDC, 0x1C, 0xC4, 0x5F, 0x5C: 1
        case 0xC6: 2
        case 0xCE: 5
        case 0x54: 0
        default: nil
        }
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case 0x30...0x39: character - 0x30
        case 0x41...0x46: character - 0x37
        case 0x61...0x66: character - 0x57
        default: nil
        }
    }

    private static func cipher(_ vector: [UInt8]) throws(CryptoError) -> BlockCipher {
        switch vector.count {
        case 8: return .tripleDES
        case 16: return .aes
        default: throw CryptoError(code: .dataLength, detail: "a vector of \(vector.count) bytes")
        }
    }

    /// A triple DES key of equal halves is a DES key.
    private static func single(_ key: [UInt8]) -> [UInt8] {
        key.count == 16 && key.prefix(8) == key.suffix(8) ? Array(key.prefix(8)) : key
    }

    private static func vector(_ key: [UInt8], _ parts: [UInt8]) throws(CryptoError) -> [UInt8] {
        try BlockCipher.aes.encrypt(parts + [UInt8](repeating: 0, count: max(0, 16 - parts.count)), key: key)
    }

    /// The shortest data whose checksum follows it, with zeros or `80` and zeros behind: a checksum over data and its own
    /// checksum is zero, as the padding is. A second checksum, that of a new key, may stand between.
    private static func inside(
        _ plain: [UInt8], width: Int, _ checksum: ([UInt8]) -> [UInt8]
    ) throws(TransformError) -> [UInt8] {
        func isPadding(_ rest: ArraySlice<UInt8>) -> Bool {
            rest.allSatisfy { $0 == 0 } || (rest.first == 0x80 && rest.dropFirst().allSatisfy { $0 == 0 })
        }
        let longest = plain.count - width
        for extra in [0, width] where longest >= extra {
            for count in max(0, longest - extra - 16)...(longest - extra) {
                let end = count + width + extra
                guard end <= plain.count, isPadding(plain[end...]) else { continue }
                let data = Array(plain[..<count])
                if plain[count..<count + width].elementsEqual(checksum(data)) { return data }
            }
        }
        throw TransformError(detail: "the checksum inside the cryptogram is wrong")
    }

    private static func wrap(_ body: () throws(CryptoError) -> [UInt8]) throws(TransformError) -> [UInt8] {
        do { return try body() } catch { throw TransformError(detail: error.detail) }
    }
}
