// SPDX-License-Identifier: MIT

/// Digital signature scheme 1 of ISO/IEC 9796-2 with partial recovery, as Active Authentication uses it (ICAO 9303-11 6.1).
///
/// The signed block is `6A`, the recovered part M1, the hash of M1 and the rest M2, and a trailer that may name the hash function.
public enum MessageRecovery {
    /// What a signature holds.
    public struct Recovered: Sendable, Equatable {
        public let digest: Digest
        /// M1: what the signer chose.
        public let recovered: [UInt8]
        public let hash: [UInt8]
        /// Whether the trailer has one octet (`BC`) or two (`xx CC`).
        public let trailer: [UInt8]
    }

    /// Opens `signature`; nil when it is no signature of this form under `key`.
    ///
    /// - Throws: ``CryptoError`` when the key is no usable RSA key.
    public static func open(_ signature: [UInt8], with key: PublicKey) throws(CryptoError) -> Recovered? {
        guard case .rsa(let modulus, _) = key, let block = try key.recovered(from: signature) else { return nil }
        if let opened = parse(block) { return opened }
        // Scheme B.4 signs with the smaller of the number and its difference from the modulus.
        return parse(difference(modulus, block))
    }

    /// Whether `signature` is one of `key` over a message that ends with `rest`; nil when its form is wrong.
    public static func verifies(_ signature: [UInt8], rest: [UInt8], with key: PublicKey) throws(CryptoError) -> Bool? {
        guard let opened = try open(signature, with: key) else { return nil }
        return equalInConstantTime(try opened.digest.hash(opened.recovered + rest), opened.hash)
    }

    /// How many octets of M1 fill a key's block.
    public static func recoverableLength(modulusLength: Int, digest: Digest, shortTrailer: Bool = false) -> Int {
        max(0, modulusLength - 1 - digest.length - (shortTrailer ? 1 : 2))
    }

    /// Signs a message of which M1 is recovered and `rest` is not.
    ///
    /// - Parameters:
    ///   - recovered: as many octets as ``recoverableLength(modulusLength:digest:shortTrailer:)`` says, drawn at random.
    ///   - shortTrailer: the trailer `BC`, which is allowed for SHA-1 only.
    /// - Throws: ``CryptoError``.
    public static func sign(
        recovered: [UInt8], rest: [UInt8], digest: Digest, shortTrailer: Bool = false, with key: SigningKey
    ) throws(CryptoError) -> [UInt8] {
        guard case .rsa(let modulus, _) = key.publicKey else {
            throw CryptoError(code: .algorithm, detail: "message recovery with a key of \(key.publicKey.name)")
        }
        guard recovered.count == recoverableLength(modulusLength: modulus.count, digest: digest, shortTrailer: shortTrailer),
            !recovered.isEmpty, !shortTrailer || digest == .sha1
        else { throw CryptoError(code: .dataLength, detail: "\(recovered.count) bytes to be recovered do not fill the block") }
        let trailer: [UInt8] = shortTrailer ? [0xBC] : [identifier(of: digest), 0xCC]
        // 6A begins with a zero bit, so that the block is below the modulus.
        let block = [0x6A] + recovered + (try digest.hash(recovered + rest)) + trailer
        return try key.rawRSA(block)
    }

    private static func parse(_ block: [UInt8]) -> Recovered? {
        guard block.count > 2, block[0] == 0x6A, let last = block.last else { return nil }
        let trailer: [UInt8]
        let digest: Digest
        if last == 0xBC {
            trailer = [last]
            digest = .sha1
        } else if last == 0xCC, let known = Digest.allCases.first(where: { identifier(of: $0) == block[block.count - 2] }) {
            trailer = [block[block.count - 2], last]
            digest = known
        } else {
            return nil
        }
        let hashEnd = block.count - trailer.count
        let hashStart = hashEnd - digest.length
        guard hashStart >= 1 else { return nil }
        return Recovered(
            digest: digest, recovered: Array(block[1..<hashStart]), hash: Array(block[hashStart..<hashEnd]), trailer: trailer)
    }

    /// The hash function's number of ISO/IEC 10118-3.
    private static func identifier(of digest: Digest) -> UInt8 {
        switch digest {
        case .sha1: 0x33
        case .sha256: 0x34
        case .sha512: 0x35
        case .sha384: 0x36
        case .sha224: 0x38
        }
    }

    /// left - right, both of one length, most significant octet first.
    private static func difference(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
        guard left.count == right.count else { return [] }
        var result = left
        var borrow = 0
        for index in left.indices.reversed() {
            let value = Int(left[index]) - Int(right[index]) - borrow
            borrow = value < 0 ? 1 : 0
            result[index] = UInt8(truncatingIfNeeded: value)
        }
        return result
    }
}
