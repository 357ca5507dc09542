// SPDX-License-Identifier: MIT

import CLibCrypto

/// The leakage resilient primitive of NXP AN12304: AES under a key that is used once for each half octet of its input.
public struct LRP: Sendable {
    /// Which updated key is used: 0 for MACs, 1 for enciphering in a session.
    public let updateNumber: Int
    private let plaintexts: [[UInt8]]
    private let updated: [UInt8]

    /// - Parameters:
    ///   - key: 16 octets.
    ///   - updateNumber: 0...15.
    public init(key: [UInt8], updateNumber: Int = 0) throws(CryptoError) {
        guard key.count == 16 else { throw CryptoError(code: .keyLength, detail: "\(key.count) bytes are no LRP key") }
        guard (0..<16).contains(updateNumber) else {
            throw CryptoError(code: .dataLength, detail: "updated key \(updateNumber); there are 16")
        }
        // AN12304 2.1 and 2.2: 55.. goes on to the next, AA.. gives the value.
        var plaintexts: [[UInt8]] = []
        var state = AESBlock.encrypt(Self.fives, key: key)
        for _ in 0..<16 {
            plaintexts.append(AESBlock.encrypt(Self.tens, key: state))
            state = AESBlock.encrypt(Self.fives, key: state)
        }
        state = AESBlock.encrypt(Self.tens, key: key)
        for _ in 0..<updateNumber { state = AESBlock.encrypt(Self.fives, key: state) }
        self.updateNumber = updateNumber
        self.plaintexts = plaintexts
        updated = AESBlock.encrypt(Self.tens, key: state)
    }

    /// The sixteen plaintexts, for a test against published values.
    package var plaintextTable: [[UInt8]] { plaintexts }
    package var updatedKey: [UInt8] { updated }

    /// Algorithm 3 of AN12304.
    ///
    /// - Parameters:
    ///   - nibbles: values 0...15, in order.
    ///   - isFinal: whether one more step over a block of zeros ends it.
    public func evaluate(nibbles: some Sequence<UInt8>, isFinal: Bool = true) -> [UInt8] {
        var state = updated
        for nibble in nibbles { state = AESBlock.encrypt(plaintexts[Int(nibble & 0x0F)], key: state) }
        return isFinal ? AESBlock.encrypt(Self.zeros, key: state) : state
    }

    private func evaluate(octets: [UInt8]) -> [UInt8] { evaluate(nibbles: octets.flatMap { [$0 >> 4, $0 & 0x0F] }) }

    /// CMAC over the primitive, 16 octets.
    public func authenticate(_ data: [UInt8]) -> [UInt8] {
        var subkey = ChainedCMAC.double(evaluate(octets: Self.zeros))
        let lastStart = max(0, data.count - 1) / 16 * 16
        var last = Array(data[lastStart...])
        if last.count < 16 {
            subkey = ChainedCMAC.double(subkey)
            last = Padding.pad(last, to: 16)
        }
        var state = Self.zeros
        for start in stride(from: 0, to: lastStart, by: 16) {
            state = evaluate(octets: exclusiveOr(state, data[start..<start + 16]))
        }
        return evaluate(octets: exclusiveOr(exclusiveOr(last, subkey), state))
    }

    /// LRICB: each block under a key of its own, made of `counter`, which is raised by one a block and wraps at its width.
    ///
    /// - Parameter data: whole blocks of 16 octets.
    public func encrypt(_ data: [UInt8], counter: inout [UInt8]) throws(CryptoError) -> [UInt8] {
        try eachBlock(data, &counter) { AESBlock.encrypt($0, key: $1) }
    }

    public func decrypt(_ data: [UInt8], counter: inout [UInt8]) throws(CryptoError) -> [UInt8] {
        try eachBlock(data, &counter) { AESBlock.decrypt($0, key: $1) }
    }

    private func eachBlock(
        _ data: [UInt8], _ counter: inout [UInt8], _ step: ([UInt8], [UInt8]) -> [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        guard data.count % 16 == 0 else {
            throw CryptoError(code: .dataLength, detail: "\(data.count) bytes are not whole blocks of 16")
        }
        var output: [UInt8] = []
        output.reserveCapacity(data.count)
        for start in stride(from: 0, to: data.count, by: 16) {
            output += step(Array(data[start..<start + 16]), evaluate(octets: counter))
            for index in counter.indices.reversed() {
                counter[index] &+= 1
                if counter[index] != 0 { break }
            }
        }
        return output
    }

    private static let fives = [UInt8](repeating: 0x55, count: 16)
    private static let tens = [UInt8](repeating: 0xAA, count: 16)
    private static let zeros = [UInt8](repeating: 0, count: 16)
}

/// One block of AES-128 under a key that is used once: libcrypto's own functions, which set a key in a tenth of the time that EVP
/// takes for a context.
enum AESBlock {
    /// - Parameters: 16 octets each; a wrong length gives zeros.
    static func encrypt(_ block: [UInt8], key: [UInt8]) -> [UInt8] {
        run(block, key, AES_set_encrypt_key, AES_encrypt)
    }

    static func decrypt(_ block: [UInt8], key: [UInt8]) -> [UInt8] {
        run(block, key, AES_set_decrypt_key, AES_decrypt)
    }

    private static func run(
        _ block: [UInt8], _ key: [UInt8],
        _ prepare: (UnsafePointer<UInt8>?, Int32, UnsafeMutablePointer<AES_KEY>?) -> Int32,
        _ cipher: (UnsafePointer<UInt8>?, UnsafeMutablePointer<UInt8>?, UnsafePointer<AES_KEY>?) -> Void
    ) -> [UInt8] {
        guard block.count == 16, key.count == 16 else { return [UInt8](repeating: 0, count: 16) }
        var schedule = AES_KEY()
        guard prepare(key, 128, &schedule) == 0 else { return [UInt8](repeating: 0, count: 16) }
        return [UInt8](unsafeUninitializedCapacity: 16) { output, initialized in
            cipher(block, output.baseAddress, &schedule)
            initialized = 16
        }
    }
}
