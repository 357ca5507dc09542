// SPDX-License-Identifier: MIT

import CLibCrypto

/// A subgroup of the integers modulo a prime (RFC 5114 2, X9.42). Constant once it is made, so that all threads may share it.
final class ModularGroup: @unchecked Sendable {
    // Unchecked: the numbers are only read after `init`.
    private let owner: NumberScratch
    private let montgomery: OpaquePointer
    let p: OpaquePointer
    let g: OpaquePointer
    /// The order of g; nil where the parameters do not tell (PKCS #3).
    let q: OpaquePointer?
    /// Octets of p.
    let fieldLength: Int

    /// Group 0, 1 or 2 of ICAO 9303-11 9.5.1: RFC 5114 2.1, 2.2 and 2.3. Nil for any other number.
    ///
    /// From libcrypto's own table. Its functions are called deprecated since OpenSSL 3.0; what replaces them gives the same numbers by
    /// way of a key that has to be made first.
    convenience init?(rfc5114 index: Int) throws(CryptoError) {
        let table: OpaquePointer?
        switch index {
        case 0: table = DH_get_1024_160()
        case 1: table = DH_get_2048_224()
        case 2: table = DH_get_2048_256()
        default: return nil
        }
        guard let table else { throw CryptoError.fromLibrary("group \(index)") }
        defer { DH_free(table) }
        var p: OpaquePointer?
        var q: OpaquePointer?
        var g: OpaquePointer?
        DH_get0_pqg(table, &p, &q, &g)
        guard let p, let q, let g else { throw CryptoError.fromLibrary("group \(index)") }
        try self.init(
            trusted: try NumberScratch.octets(p), g: try NumberScratch.octets(g), q: try NumberScratch.octets(q))
    }

    /// A group with parameters from outside. They are checked: p and q prime, g of order q.
    ///
    /// - Throws: ``CryptoError`` with the code `domainParameters`.
    convenience init(p: [UInt8], g: [UInt8], q: [UInt8]?) throws(CryptoError) {
        let numbers = try NumberScratch()
        let prime = try numbers.number(p)
        guard (1024...4096).contains(Int(BN_num_bits(prime))), BN_check_prime(prime, numbers.context, nil) == 1 else {
            throw Self.bad("a modulus of \(BN_num_bits(prime)) bits that is no prime of 1,024 to 4,096")
        }
        try self.init(trusted: p, g: g, q: q)
        guard isInside(self.g) else { throw Self.bad("the generator is not between 1 and p - 1") }
        guard let order = self.q else { return }
        let power = try numbers.number()
        try raise(self.g, to: order, into: power, in: numbers)
        guard BN_num_bits(order) >= 160, BN_cmp(order, prime) < 0, BN_check_prime(order, numbers.context, nil) == 1,
            BN_is_one(power) == 1
        else { throw Self.bad("the order is no prime of 160 bits or more, or not that of the generator") }
    }

    private init(trusted p: [UInt8], g: [UInt8], q: [UInt8]?) throws(CryptoError) {
        let owner = try NumberScratch()
        let prime = try owner.number(p)
        guard let montgomery = BN_MONT_CTX_new() else { throw CryptoError.fromLibrary("group") }
        guard BN_MONT_CTX_set(montgomery, prime, owner.context) == 1 else {
            BN_MONT_CTX_free(montgomery)
            throw CryptoError.fromLibrary("group")
        }
        do {
            self.g = try owner.number(g)
            self.q = try q.map { octets throws(CryptoError) in try owner.number(octets) }
        } catch {
            BN_MONT_CTX_free(montgomery)
            throw error
        }
        self.p = prime
        self.owner = owner
        self.montgomery = montgomery
        fieldLength = Int(td_bn_num_bytes(prime))
    }

    deinit { BN_MONT_CTX_free(montgomery) }

    func isSame(as other: ModularGroup) -> Bool {
        guard self !== other else { return true }
        guard BN_cmp(p, other.p) == 0, BN_cmp(g, other.g) == 0 else { return false }
        switch (q, other.q) {
        case (nil, nil): return true
        case (let mine?, let others?): return BN_cmp(mine, others) == 0
        default: return false
        }
    }

    /// The public value that `octets` spell; leading zeros are put up with.
    ///
    /// - Throws: ``CryptoError`` with the code `publicKey` when it is not between 1 and p - 1, or not in the subgroup of order q.
    func value(_ octets: [UInt8], in numbers: NumberScratch) throws(CryptoError) -> OpaquePointer {
        guard !octets.isEmpty, octets.count <= fieldLength + 1 else {
            throw CryptoError(
                code: .publicKey, detail: "a public value of \(octets.count) bytes; 1 to \(fieldLength) were expected")
        }
        let value = try numbers.number(octets)
        guard isInside(value) else {
            throw CryptoError(code: .publicKey, detail: "the public value is not between 1 and p - 1")
        }
        if let q {
            let power = try numbers.number()
            try raise(value, to: q, into: power, in: numbers)
            guard BN_is_one(power) == 1 else {
                throw CryptoError(code: .publicKey, detail: "the public value is not in the subgroup of order q")
            }
        }
        return value
    }

    /// `result` = `base` ^ `exponent` mod p, in a time that does not depend on the exponent's bits.
    func raise(
        _ base: OpaquePointer, to exponent: OpaquePointer, into result: OpaquePointer, in numbers: NumberScratch
    ) throws(CryptoError) {
        try require(
            BN_mod_exp_mont_consttime(result, base, exponent, p, numbers.context, montgomery), "modular exponentiation")
    }

    /// Whether 1 < value < p - 1.
    func isInside(_ value: OpaquePointer) -> Bool {
        guard BN_num_bits(value) > 1, BN_cmp(value, p) < 0 else { return false }
        guard let next = BN_dup(value) else { return false }
        defer { BN_clear_free(next) }
        return BN_add_word(next, 1) == 1 && BN_cmp(next, p) < 0
    }

    private static func bad(_ detail: String) -> CryptoError {
        ERR_clear_error()
        return CryptoError(code: .domainParameters, detail: "Diffie-Hellman group: \(detail)")
    }
}
