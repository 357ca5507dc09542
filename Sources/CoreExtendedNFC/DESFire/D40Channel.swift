// SPDX-License-Identifier: MIT

import CardCrypto

/// The channel of the first DESFire (authentication `0A`): MACs of four octets over data alone, and a reader that only deciphers.
struct D40Channel: Sendable {
    let key: [UInt8]

    func seal(_ request: DESFireRequest) throws(DESFireChannelError) -> [UInt8] {
        guard !request.data.isEmpty else { return request.header }
        switch request.protection {
        case .management, .none, .file(.plain): return request.header + request.data
        case .file(.maced): return request.header + request.data + (try mac(request.data))
        case .file(.enciphered), .secret:
            var plain = request.data + DESFireChecksum.crc16(request.data)
            if let checked = request.checked { plain += DESFireChecksum.crc16(checked) }
            let sealed = try crypto { () throws(CryptoError) in
                try DecipheringCBC.seal(zeroPadded(plain, to: 8), key: key)
            }
            return request.header + sealed
        }
    }

    func open(_ request: DESFireRequest, _ answer: [UInt8]) throws(DESFireChannelError) -> [UInt8] {
        guard request.answers else {
            guard answer.isEmpty else { throw DESFireChannelError(.surplusData, "\(answer.count) bytes in an empty answer") }
            return []
        }
        switch request.protection {
        case .management, .none, .file(.plain): return answer
        case .file(.maced):
            let (data, mac) = try split(answer, macLength: 4)
            try requireEqual(mac, try self.mac(data))
            return data
        case .file(.enciphered), .secret:
            guard !answer.isEmpty, answer.count % 8 == 0 else {
                throw DESFireChannelError(.cryptogramLength, "a cryptogram of \(answer.count) bytes")
            }
            let plain = try crypto { () throws(CryptoError) in try BlockCipher.tripleDES.decrypt(answer, key: key) }
            return try checkedData(plain, request.answerLength, blockLength: 8, checksumLength: 2) { DESFireChecksum.crc16($0) }
        }
    }

    /// The first four octets of the last block of an enciphering CBC over the data, padded with zeros.
    private func mac(_ data: [UInt8]) throws(DESFireChannelError) -> [UInt8] {
        let sealed = try crypto { () throws(CryptoError) in
            try BlockCipher.tripleDES.encrypt(zeroPadded(data, to: 8), key: key)
        }
        return Array(sealed.suffix(8).prefix(4))
    }
}

/// The channel of EV1 (authentications `1A` and `AA`): one chain of ciphers and MACs over everything since the authentication.
struct EV1Channel: Sendable {
    let cipher: BlockCipher
    let key: [UInt8]
    private(set) var vector: [UInt8]

    init(cipher: BlockCipher, key: [UInt8]) {
        self.cipher = cipher
        self.key = key
        vector = [UInt8](repeating: 0, count: cipher.blockLength)
    }

    mutating func seal(_ request: DESFireRequest) throws(DESFireChannelError) -> [UInt8] {
        let block = cipher.blockLength
        let isEnciphered = request.protection == .secret || request.protection == .file(.enciphered)
        guard isEnciphered, !request.data.isEmpty else {
            let mac = try mac([request.code.rawValue] + request.header + request.data)
            let sent = request.header + request.data
            return request.writes && request.protection == .file(.maced) ? sent + mac.prefix(8) : sent
        }
        var plain = request.data + DESFireChecksum.crc32([request.code.rawValue] + request.header + request.data)
        if let checked = request.checked { plain += DESFireChecksum.crc32(checked) }
        let iv = vector
        let sealed = try crypto { () throws(CryptoError) in
            try cipher.encrypt(zeroPadded(plain, to: block), key: key, iv: iv)
        }
        vector = Array(sealed.suffix(block))
        return request.header + sealed
    }

    mutating func open(_ request: DESFireRequest, _ answer: [UInt8], status: UInt8) throws(DESFireChannelError) -> [UInt8] {
        let isEnciphered = request.protection == .secret || request.protection == .file(.enciphered)
        if isEnciphered, request.answers {
            guard !answer.isEmpty, answer.count % cipher.blockLength == 0 else {
                throw DESFireChannelError(.cryptogramLength, "a cryptogram of \(answer.count) bytes")
            }
            let iv = vector
            let plain = try crypto { () throws(CryptoError) in try cipher.decrypt(answer, key: key, iv: iv) }
            vector = Array(answer.suffix(cipher.blockLength))
            return try checkedData(plain, request.answerLength, blockLength: cipher.blockLength, checksumLength: 4) {
                DESFireChecksum.crc32($0 + [status])
            }
        }
        let (data, mac) = try split(answer, macLength: 8)
        try requireEqual(mac, Array(try self.mac(data + [status]).prefix(8)))
        guard request.answers || data.isEmpty else {
            throw DESFireChannelError(.surplusData, "\(data.count) bytes in an empty answer")
        }
        return data
    }

    private mutating func mac(_ data: [UInt8]) throws(DESFireChannelError) -> [UInt8] {
        let iv = vector
        vector = try crypto { () throws(CryptoError) in
            try ChainedCMAC.authenticate(data, key: key, cipher: cipher, iv: iv)
        }
        return vector
    }
}
