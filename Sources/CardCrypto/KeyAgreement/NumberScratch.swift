// SPDX-License-Identifier: MIT

import CLibCrypto

/// Numbers and points of libcrypto and the context that they are computed in; all are wiped and freed together.
///
/// For one computation in one thread.
final class NumberScratch {
    let context: OpaquePointer
    private var numbers: [OpaquePointer] = []
    private var points: [OpaquePointer] = []

    init() throws(CryptoError) {
        guard let context = BN_CTX_secure_new() ?? BN_CTX_new() else { throw CryptoError.fromLibrary("numbers") }
        self.context = context
    }

    deinit {
        for number in numbers { BN_clear_free(number) }
        for point in points { EC_POINT_clear_free(point) }
        BN_CTX_free(context)
    }

    /// The number that `octets` spell, most significant first; 0 when there are none.
    func number(_ octets: [UInt8] = []) throws(CryptoError) -> OpaquePointer {
        guard let length = Int32(exactly: octets.count), let number = BN_bin2bn(octets, length, nil) else {
            throw CryptoError.fromLibrary("number")
        }
        numbers.append(number)
        return number
    }

    func point(on group: OpaquePointer) throws(CryptoError) -> OpaquePointer {
        guard let point = EC_POINT_new(group) else { throw CryptoError.fromLibrary("point") }
        points.append(point)
        return point
    }

    /// The number most significant octet first, in exactly `length` octets with leading zeros kept, or without any when nil.
    ///
    /// - Throws: ``CryptoError`` when it does not fit.
    static func octets(_ number: OpaquePointer, length: Int? = nil) throws(CryptoError) -> [UInt8] {
        let count = length ?? Int(td_bn_num_bytes(number))
        guard count > 0, let size = Int32(exactly: count) else { return [] }
        var written: Int32 = -1
        let octets = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            guard let start = buffer.baseAddress else { return }
            written = BN_bn2binpad(number, start, size)
            initialized = written == size ? count : 0
        }
        guard written == size else { throw CryptoError.fromLibrary("number") }
        return octets
    }
}

/// Throws what libcrypto says when one of its functions did not answer 1.
@inline(__always)
func require(_ answer: Int32, _ operation: String) throws(CryptoError) {
    guard answer == 1 else { throw CryptoError.fromLibrary(operation) }
}
