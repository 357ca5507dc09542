// SPDX-License-Identifier: MIT

import CardCrypto

/// The channel of EV2 (authentications `71` and `77`), with AES or with the leakage resilient primitive (NT4H2421Gx 9.1 and 9.2).
struct EV2Channel: Sendable {
    enum Cipher: Sendable {
        case aes(encryption: [UInt8], authentication: [UInt8])
        /// The counter of enciphered blocks runs on over commands and answers.
        case lrp(encryption: LRP, authentication: LRP, counter: [UInt8])
    }

    var cipher: Cipher
    /// TI: four octets that both ends agreed on.
    let transaction: [UInt8]
    /// CmdCtr: commands done since the first authentication of the transaction.
    var counter: UInt16

    mutating func seal(_ request: DESFireRequest) throws(DESFireChannelError) -> [UInt8] {
        guard counter < UInt16.max else { throw DESFireChannelError(.counterExhausted, "65535 commands in one session") }
        var data = request.data
        if let checked = request.checked { data += DESFireChecksum.crc32(checked) }
        let mode = request.ev2Mode
        guard mode != .plain else { return request.header + data }
        if mode == .enciphered, !data.isEmpty { data = try encipher(Padding.pad(data, to: 16)) }
        let number = DeliberateMistake.made == .counterOffByOne ? counter + 1 : counter
        return request.header + data + (try mac(request.code.rawValue, number, request.header + data))
    }

    mutating func open(_ request: DESFireRequest, _ answer: [UInt8], status: UInt8) throws(DESFireChannelError) -> [UInt8] {
        counter &+= 1
        let mode = request.ev2Mode
        var data = answer
        if mode != .plain {
            let (sent, mac) = try split(answer, macLength: 8)
            try requireEqual(mac, try self.mac(status, counter, sent))
            data = sent
        }
        guard request.answers || data.isEmpty else {
            throw DESFireChannelError(.surplusData, "\(data.count) bytes in an empty answer")
        }
        if mode == .enciphered, !data.isEmpty {
            guard data.count % 16 == 0 else {
                throw DESFireChannelError(.cryptogramLength, "a cryptogram of \(data.count) bytes")
            }
            guard let plain = Padding.unpad(try decipher(data)) else {
                throw DESFireChannelError(.checksumWrong, "the padding inside the cryptogram is wrong")
            }
            data = plain
        }
        if let length = request.answerLength, data.count != length {
            throw DESFireChannelError(.dataLength, "\(data.count) bytes came, \(length) were asked for")
        }
        return data
    }

    private func mac(_ code: UInt8, _ counter: UInt16, _ data: [UInt8]) throws(DESFireChannelError) -> [UInt8] {
        let count = [UInt8(truncatingIfNeeded: counter), UInt8(truncatingIfNeeded: counter >> 8)]
        let input = [code] + count + transaction + data
        switch cipher {
        case .aes(_, let key): return oddOctets(try crypto { () throws(CryptoError) in try CMAC.authenticate(input, key: key) })
        case .lrp(_, let primitive, _): return oddOctets(primitive.authenticate(input))
        }
    }

    private mutating func encipher(_ plain: [UInt8]) throws(DESFireChannelError) -> [UInt8] {
        switch cipher {
        case .aes(let key, _):
            let (transaction, counter) = (transaction, counter)
            return try crypto { () throws(CryptoError) in
                let iv = try DESFireSessionKeys.ev2Vector(
                    key: key, isAnswer: false, transaction: transaction, counter: counter)
                return try BlockCipher.aes.encrypt(plain, key: key, iv: iv)
            }
        case .lrp(let primitive, let authentication, var count):
            do {
                let sealed = try primitive.encrypt(plain, counter: &count)
                cipher = .lrp(encryption: primitive, authentication: authentication, counter: count)
                return sealed
            } catch {
                throw DESFireChannelError(.cryptography, error.detail)
            }
        }
    }

    private mutating func decipher(_ sealed: [UInt8]) throws(DESFireChannelError) -> [UInt8] {
        switch cipher {
        case .aes(let key, _):
            let (transaction, counter) = (transaction, counter)
            return try crypto { () throws(CryptoError) in
                let iv = try DESFireSessionKeys.ev2Vector(key: key, isAnswer: true, transaction: transaction, counter: counter)
                return try BlockCipher.aes.decrypt(sealed, key: key, iv: iv)
            }
        case .lrp(let primitive, let authentication, var count):
            do {
                let plain = try primitive.decrypt(sealed, counter: &count)
                cipher = .lrp(encryption: primitive, authentication: authentication, counter: count)
                return plain
            } catch {
                throw DESFireChannelError(.cryptography, error.detail)
            }
        }
    }
}

extension DESFireRequest {
    fileprivate var ev2Mode: DESFireCommunicationMode {
        switch protection {
        case .management: .maced
        case .file(let mode): mode
        case .secret: .enciphered
        case .none: .plain
        }
    }
}
