// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// The transforms of PACE, Chip Authentication and Terminal Authentication (ICAO 9303-11 4.4, 6.2, 7.1).
///
/// A protocol is its object identifier, whose last two arcs name mapping (or key agreement) and cipher.
enum PassportTransforms {
    static let all: [Transform] = [
        // 9303-11 9.7.1: from a secret by the protocol's cipher; counter 1 encryption, 2 authentication, 3 password.
        Transform("paceKey", [.octets, .octets, .octets], .key) { a throws(TransformError) in
            let algorithm = try algorithm(a[1])
            let counter = a[2].reduce(0) { $0 << 8 | UInt32($1) }
            return try wrap { () throws(CryptoError) in try KeyDerivation.key(from: a[0], counter: counter, for: algorithm) }
        },
        // 9303-11 4.4.3.4 and 9.4.5: over 7F49 with the protocol and the other side's key.
        Transform("paceToken", [.key, .octets, .octets], .octets) { a throws(TransformError) in
            let algorithm = try algorithm(a[1])
            let mapping = try mapping(a[1])
            let isModular = mapping == 1 || mapping == 3
            let inner = TLV.encode(0x06, a[1]) + TLV.encode(isModular ? 0x84 : 0x86, a[2])
            return try wrap { () throws(CryptoError) in
                try algorithm.authenticationToken(TLV.encode(0x7F49, inner), key: a[0])
            }
        },
        // 9303-11 9.8.2: the counter starts from zero, as wide as a block.
        Transform("paceCounter", [.octets], .octets) { a throws(TransformError) in
            [UInt8](repeating: 0, count: try algorithm(a[0]).blockCipher.blockLength)
        },
        // 9303-11 4.4.3.3: the chip's nonce under the password's key, in CBC mode without an initial vector.
        Transform("paceOpen", [.octets, .octets, .octets], .octets, inverse: "paceSeal") { a throws(TransformError) in
            try nonce(a[0], a[1], a[2])
        },
        Transform("paceSeal", [.octets, .octets, .octets], .octets, inverse: "paceOpen") { a throws(TransformError) in
            let algorithm = try algorithm(a[1])
            return try wrap { () throws(CryptoError) in
                let key = try KeyDerivation.key(from: a[0], counter: 3, for: algorithm)
                return try algorithm.blockCipher.encrypt(a[2], key: key)
            }
        },
        // Password seed, protocol, encrypted nonce, the terminal's secret, key and the chip's key of the mapping, and the same
        // three of the agreement: gives K.
        Transform("paceSecret", [.octets, .octets, .octets, .octets, .octets, .octets, .octets, .octets, .octets], .key) {
            a throws(TransformError) in
            try secret(a)
        },
    ]

    private static func mapping(_ identifier: [UInt8]) throws(TransformError) -> UInt8 {
        guard identifier.count == 10 else {
            throw TransformError(detail: "an object identifier of \(identifier.count) bytes is not PACE's")
        }
        return identifier[8]
    }

    private static func algorithm(_ identifier: [UInt8]) throws(TransformError) -> KeyDerivation.Algorithm {
        switch identifier.last {
        case 1: return .tripleDES
        case 2: return .aes128
        case 3: return .aes192
        case 4: return .aes256
        default: throw TransformError(detail: "the protocol names no cipher")
        }
    }

    private static func nonce(
        _ seed: [UInt8], _ identifier: [UInt8], _ cryptogram: [UInt8]
    ) throws(TransformError) -> [UInt8] {
        let algorithm = try algorithm(identifier)
        return try wrap { () throws(CryptoError) in
            let key = try KeyDerivation.key(from: seed, counter: 3, for: algorithm)
            return try algorithm.blockCipher.decrypt(cryptogram, key: key)
        }
    }

    /// The parameters are those in which the terminal's secret makes the key that it sent: a command need not name them.
    private static func secret(_ a: [[UInt8]]) throws(TransformError) -> [UInt8] {
        let algorithm = try algorithm(a[1])
        let mapping = try mapping(a[1])
        let nonce = try nonce(a[0], a[1], a[2])
        let isModular = mapping == 1 || mapping == 3
        for identifier in DomainParameters.standardizedIdentifiers {
            guard let parameters = DomainParameters.standardized(identifier), (parameters.kind == .multiplicative) == isModular,
                isModular ? a[7].count <= parameters.fieldLength : a[7].count == 2 * parameters.fieldLength + 1
            else { continue }
            let found = try? wrap { () throws(CryptoError) in
                let mapped: DomainParameters
                if mapping == 3 || mapping == 4 {
                    mapped = try parameters.integratedMapping(nonce: nonce, terminalNonce: a[4], algorithm: algorithm)
                } else {
                    let own = try pair(parameters, a[3])
                    guard own.publicKey == a[4] else { return [] }
                    mapped = try parameters.genericMapping(nonce: nonce, keyPair: own, publicKey: a[5])
                }
                let own = try pair(mapped, a[6])
                return own.publicKey == a[7] ? try own.sharedSecret(with: a[8]) : []
            }
            if let found, !found.isEmpty { return found }
        }
        throw TransformError(detail: "in no standardized parameters do the drawn bytes make the keys that were sent")
    }

    /// From the octets that were drawn, or from a private key itself.
    private static func pair(_ parameters: DomainParameters, _ octets: [UInt8]) throws(CryptoError) -> KeyAgreementKeyPair {
        octets.count >= parameters.randomLength
            ? try KeyAgreementKeyPair(parameters, random: octets) : try KeyAgreementKeyPair(parameters, privateKey: octets)
    }

    private static func wrap(_ body: () throws(CryptoError) -> [UInt8]) throws(TransformError) -> [UInt8] {
        do { return try body() } catch { throw TransformError(detail: error.detail) }
    }
}
