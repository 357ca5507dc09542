// SPDX-License-Identifier: MIT

import CLibCrypto

/// AES (FIPS 197) in CBC mode under one key and in one direction, by libcrypto's EVP layer, which alone has the processor's own
/// AES instructions.
struct AES: ~Copyable {
    static let blockLength = 16

    private let context: OpaquePointer

    /// - Parameter key: 16, 24 or 32 octets.
    init(key: [UInt8], encrypting: Bool) throws(CryptoError) { context = try Self.context(key, encrypting) }

    deinit { EVP_CIPHER_CTX_free(context) }

    /// Begins a message.
    ///
    /// - Parameter iv: 16 octets.
    func start(_ iv: [UInt8]) throws(CryptoError) {
        guard iv.count == Self.blockLength, EVP_CipherInit_ex(context, nil, nil, nil, iv, -1) == 1 else {
            throw CryptoError.fromLibrary("AES")
        }
    }

    /// Goes on with whole blocks of the message; at first with an initial vector of zeros.
    func run(_ data: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard data.count % Self.blockLength == 0, let length = Int32(exactly: data.count) else {
            throw CryptoError(code: .dataLength, detail: "\(data.count) bytes are not whole blocks of \(Self.blockLength)")
        }
        var written: Int32 = 0
        var isDone = false
        let output = [UInt8](unsafeUninitializedCapacity: data.count) { output, initialized in
            isDone = EVP_CipherUpdate(context, output.baseAddress, &written, data, length) == 1 && written == length
            initialized = isDone ? data.count : 0
        }
        guard isDone else { throw CryptoError.fromLibrary("AES") }
        return output
    }

    private static func context(_ key: [UInt8], _ encrypting: Bool) throws(CryptoError) -> OpaquePointer {
        let cipher: OpaquePointer?
        switch key.count {
        case 16: cipher = aes128
        case 24: cipher = aes192
        case 32: cipher = aes256
        default: throw CryptoError(code: .keyLength, detail: "\(key.count) bytes are no AES key")
        }
        guard let cipher, let context = EVP_CIPHER_CTX_new() else { throw CryptoError.fromLibrary("AES") }
        let zero = [UInt8](repeating: 0, count: blockLength)
        guard EVP_CipherInit_ex(context, cipher, nil, key, zero, encrypting ? 1 : 0) == 1,
            EVP_CIPHER_CTX_set_padding(context, 0) == 1
        else {
            EVP_CIPHER_CTX_free(context)
            throw CryptoError.fromLibrary("AES")
        }
        return context
    }

    // Fetched once: libcrypto counts the uses of a fetched cipher and never changes it, so that all threads may have it.
    nonisolated(unsafe) private static let aes128 = EVP_CIPHER_fetch(nil, "AES-128-CBC", nil)
    nonisolated(unsafe) private static let aes192 = EVP_CIPHER_fetch(nil, "AES-192-CBC", nil)
    nonisolated(unsafe) private static let aes256 = EVP_CIPHER_fetch(nil, "AES-256-CBC", nil)
}
