// SPDX-License-Identifier: MIT

import CLibCrypto

/// Numbers and the context that they are computed in; all are freed together.
final class Scratch {
    let context: OpaquePointer
    private var numbers: [OpaquePointer] = []

    init() throws(CryptoError) {
        guard let context = BN_CTX_secure_new() ?? BN_CTX_new() else { throw CryptoError.fromLibrary("numbers") }
        self.context = context
    }

    deinit {
        for number in numbers { BN_clear_free(number) }
        BN_CTX_free(context)
    }

    func number(_ octets: [UInt8] = []) throws(CryptoError) -> OpaquePointer {
        guard let number = BN_bin2bn(octets, Int32(octets.count), nil) else { throw CryptoError.fromLibrary("number") }
        numbers.append(number)
        return number
    }

    /// The first prime p at or above the number that `seed` spells, odd and with its two highest bits set, with p - 1 and `exponent`
    /// having no common divisor.
    func prime(from seed: [UInt8], coprimeTo exponent: OpaquePointer) throws(CryptoError) -> OpaquePointer {
        var octets = seed
        guard octets.count >= 2 else { throw CryptoError(code: .dataLength, detail: "no octets to make a prime from") }
        octets[0] |= 0xC0
        octets[octets.count - 1] |= 0x01
        let candidate = try number(octets)
        let less = try number()
        let divisor = try number()
        while true {
            let answer = BN_check_prime(candidate, context, nil)
            guard answer >= 0 else { throw CryptoError.fromLibrary("prime") }
            if answer == 1 {
                guard BN_copy(less, candidate) != nil, BN_sub_word(less, 1) == 1, BN_gcd(divisor, less, exponent, context) == 1
                else { throw CryptoError.fromLibrary("prime") }
                if BN_is_one(divisor) == 1 { return candidate }
            }
            guard BN_add_word(candidate, 2) == 1 else { throw CryptoError.fromLibrary("prime") }
        }
    }

    /// The number that `octets` spell, reduced to 1 ..< `order`. Eight octets more than the order's make every value as likely as any other.
    func scalar(from octets: [UInt8], below order: OpaquePointer) throws(CryptoError) -> OpaquePointer {
        let wide = try number(octets)
        let limit = try number()
        let scalar = try number()
        guard BN_copy(limit, order) != nil, BN_sub_word(limit, 1) == 1, BN_div(nil, scalar, wide, limit, context) == 1,
            BN_add_word(scalar, 1) == 1
        else { throw CryptoError.fromLibrary("scalar") }
        return scalar
    }

    /// Most significant octet first, in exactly `length` octets.
    static func octets(_ number: OpaquePointer, length: Int) throws(CryptoError) -> [UInt8] {
        var written: Int32 = -1
        let octets = [UInt8](unsafeUninitializedCapacity: length) { buffer, initialized in
            written = BN_bn2binpad(number, buffer.baseAddress, Int32(length))
            initialized = written == Int32(length) ? length : 0
        }
        guard written == Int32(length) else { throw CryptoError.fromLibrary("number") }
        return octets
    }

    /// Most significant octet first, without leading zeros.
    static func octets(_ number: OpaquePointer) -> [UInt8] {
        let count = Int(td_bn_num_bytes(number))
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            guard let start = buffer.baseAddress else { return }
            initialized = Int(BN_bn2bin(number, start))
        }
    }
}
