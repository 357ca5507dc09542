// SPDX-License-Identifier: MIT

import CardCrypto

extension PassportActiveAuthentication {
    /// Reads `rsa`, a key of 1024 bits with SHA-1, or `ecdsa:13`, a curve by its number.
    ///
    /// - Throws: ``VirtualCardError`` with the code `badValue`, `CryptoError`.
    init(parsing text: String, random: inout CardRandom) throws {
        let halves = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        switch (halves[0], halves.count == 2 ? Int(halves[1]) : 13) {
        case ("rsa", _) where halves.count == 1:
            try self.init(
                key: try SigningKey(try RSAKeyPair(bits: 1024) { random.octets($0) }), algorithm: .rsa(.sha1, shortTrailer: true))
        case ("ecdsa", .some(let number)) where (8...18).contains(number):
            let curve = try EllipticCurve(standardized: number)
            let digest: Digest =
                switch curve.orderLength {
                case ...28: .sha224
                case ...32: .sha256
                case ...48: .sha384
                default: .sha512
                }
            try self.init(
                key: try SigningKey(curve: curve, random: random.octets(curve.orderLength + 8)), algorithm: .ecdsa(digest))
        default:
            throw VirtualCardError(.badValue, "--aa takes rsa, or ecdsa with the number of a curve: ecdsa:13", option: "aa")
        }
    }
}
