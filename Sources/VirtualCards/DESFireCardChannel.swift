// SPDX-License-Identifier: MIT

import CardCrypto

/// How the parts of a command are protected, as the card sees it.
enum DESFireProtection: Sendable, Equatable {
    case management
    case plainFile, macedFile, encipheredFile
    case secret
}

/// A command after its parameters were told apart.
struct DESFireCardCommand: Sendable {
    var code: UInt8
    var header: [UInt8]
    /// What follows the header: data, MAC, cryptogram.
    var body: [UInt8]
    var protection: DESFireProtection
    /// Octets of data in the body.
    var dataLength: Int
    /// Octets that a checksum of their own covers, behind the first: 0, or those of a key.
    var hasSecondChecksum = false
    /// Whether the command writes into a file.
    var writes = false
    var answers = false
}

/// The card's end of a secure channel.
enum DESFireCardChannel: Sendable {
    /// D40: the session key.
    case d40([UInt8])
    /// EV1: cipher, session key, the vector that runs on.
    case ev1(BlockCipher, key: [UInt8], vector: [UInt8])
    /// EV2: keys, TI, counter.
    case ev2(encryption: [UInt8], authentication: [UInt8], transaction: [UInt8], counter: UInt16)
    /// EV2 with LRP; `blocks` counts what was enciphered.
    case lrp(encryption: LRP, authentication: LRP, transaction: [UInt8], counter: UInt16, blocks: [UInt8])

    /// What the body of a command has to be long.
    func bodyLength(_ protection: DESFireProtection, dataLength: Int) -> Int {
        switch self {
        case .d40:
            switch protection {
            case .management, .plainFile: return dataLength
            case .macedFile: return dataLength + (dataLength > 0 ? 4 : 0)
            case .encipheredFile, .secret: return dataLength == 0 ? 0 : (dataLength + 2 + 7) / 8 * 8
            }
        case .ev1(let cipher, _, _):
            switch protection {
            case .management, .plainFile: return dataLength
            case .macedFile: return dataLength + (dataLength > 0 ? 8 : 0)
            case .encipheredFile, .secret:
                let block = cipher.blockLength
                return dataLength == 0 ? 0 : (dataLength + 4 + block - 1) / block * block
            }
        case .ev2, .lrp:
            switch protection {
            case .plainFile: return dataLength
            case .management, .macedFile: return dataLength + 8
            case .encipheredFile, .secret: return dataLength == 0 ? 8 : (dataLength / 16 + 1) * 16 + 8
            }
        }
    }

    /// The data of a command.
    ///
    /// - Returns: the data, and the checksum of its own that a second value has.
    /// - Throws: `1E` for a wrong MAC or checksum, `7E` for a wrong length.
    mutating func open(
        _ command: DESFireCardCommand
    ) throws(DESFireRefusal) -> (data: [UInt8], second: [UInt8]) {
        switch self {
        case .d40(let key): return try Self.openD40(command, key)
        case .ev1(let cipher, let key, var vector):
            let result = try Self.openEV1(command, cipher, key, &vector)
            self = .ev1(cipher, key: key, vector: vector)
            return result
        case .ev2, .lrp: return try openEV2(command)
        }
    }

    /// The answer as it travels, with the status 00 or `status`.
    mutating func seal(_ data: [UInt8], to command: DESFireCardCommand, status: UInt8 = 0) -> [UInt8] {
        switch self {
        case .d40(let key): return Self.sealD40(data, command, key)
        case .ev1(let cipher, let key, var vector):
            let sealed = Self.sealEV1(data, command, cipher, key, &vector, status)
            self = .ev1(cipher, key: key, vector: vector)
            return sealed
        case .ev2, .lrp: return sealEV2(data, command, status)
        }
    }
}

// MARK: - D40 and EV1

extension DESFireCardChannel {
    private static func openD40(
        _ command: DESFireCardCommand, _ key: [UInt8]
    ) throws(DESFireRefusal) -> (data: [UInt8], second: [UInt8]) {
        let body = command.body
        guard !body.isEmpty else { return ([], []) }
        switch command.protection {
        case .management, .plainFile: return (body, [])
        case .macedFile:
            guard body.count == command.dataLength + 4 else { throw .length }
            let data = Array(body.dropLast(4))
            guard body.suffix(4).elementsEqual(macD40(data, key)) else { throw .integrity }
            return (data, [])
        case .encipheredFile, .secret:
            guard body.count % 8 == 0, let plain = try? DecipheringCBC.open(body, key: key) else { throw .length }
            return try checked(plain, command, 2) { DESFireChecksum.crc16($0) }
        }
    }

    private static func sealD40(_ data: [UInt8], _ command: DESFireCardCommand, _ key: [UInt8]) -> [UInt8] {
        guard command.answers else { return data }
        switch command.protection {
        case .management, .plainFile: return data
        case .macedFile: return data + macD40(data, key)
        case .encipheredFile, .secret:
            let plain = filled(data + DESFireChecksum.crc16(data), command, block: 8)
            return (try? BlockCipher.tripleDES.encrypt(plain, key: key)) ?? []
        }
    }

    private static func macD40(_ data: [UInt8], _ key: [UInt8]) -> [UInt8] {
        let whole = padded(data, block: 8)
        let sealed = (try? BlockCipher.tripleDES.encrypt(whole, key: key)) ?? []
        return Array(sealed.suffix(8).prefix(4))
    }

    private static func openEV1(
        _ command: DESFireCardCommand, _ cipher: BlockCipher, _ key: [UInt8], _ vector: inout [UInt8]
    ) throws(DESFireRefusal) -> (data: [UInt8], second: [UInt8]) {
        let isCiphered = command.protection == .encipheredFile || command.protection == .secret
        guard isCiphered, !command.body.isEmpty else {
            var data = command.body
            var sent: [UInt8] = []
            if command.protection == .macedFile, command.writes {
                guard data.count == command.dataLength + 8 else { throw .length }
                sent = Array(data.suffix(8))
                data.removeLast(8)
            }
            vector = cmac([command.code] + command.header + data, cipher, key, vector)
            guard sent.isEmpty || sent.elementsEqual(vector.prefix(8)) else { throw .integrity }
            return (data, [])
        }
        guard command.body.count % cipher.blockLength == 0,
            let plain = try? cipher.decrypt(command.body, key: key, iv: vector)
        else { throw .length }
        vector = Array(command.body.suffix(cipher.blockLength))
        return try checked(plain, command, 4) { DESFireChecksum.crc32([command.code] + command.header + $0) }
    }

    private static func sealEV1(
        _ data: [UInt8], _ command: DESFireCardCommand, _ cipher: BlockCipher, _ key: [UInt8], _ vector: inout [UInt8],
        _ status: UInt8
    ) -> [UInt8] {
        let isCiphered = command.protection == .encipheredFile || command.protection == .secret
        guard isCiphered, command.answers else {
            vector = cmac(data + [status], cipher, key, vector)
            return data + vector.prefix(8)
        }
        let plain = filled(data + DESFireChecksum.crc32(data + [status]), command, block: cipher.blockLength)
        let sealed = (try? cipher.encrypt(plain, key: key, iv: vector)) ?? []
        vector = Array(sealed.suffix(cipher.blockLength))
        return sealed
    }

    private static func cmac(_ data: [UInt8], _ cipher: BlockCipher, _ key: [UInt8], _ vector: [UInt8]) -> [UInt8] {
        // Lengths are those of the cipher, so that only libcrypto's running out of memory can fail; no MAC is right then.
        (try? ChainedCMAC.authenticate(data, key: key, cipher: cipher, iv: vector)) ?? vector
    }

    /// Data, its checksum, a second checksum when there is one, zeros.
    private static func checked(
        _ plain: [UInt8], _ command: DESFireCardCommand, _ width: Int, _ checksum: ([UInt8]) -> [UInt8]
    ) throws(DESFireRefusal) -> (data: [UInt8], second: [UInt8]) {
        let end = command.dataLength + width
        let last = command.hasSecondChecksum ? end + width : end
        guard command.dataLength >= 0, last <= plain.count else { throw .length }
        let data = Array(plain[..<command.dataLength])
        let rest = plain[last...]
        guard plain[command.dataLength..<end].elementsEqual(checksum(data)),
            rest.allSatisfy({ $0 == 0 }) || (rest.first == 0x80 && rest.dropFirst().allSatisfy { $0 == 0 })
        else { throw .integrity }
        return (data, Array(plain[end..<last]))
    }

    /// An answer whose length the reader did not say is padded with a mark.
    private static func filled(_ data: [UInt8], _ command: DESFireCardCommand, block: Int) -> [UInt8] {
        let isOpenEnded =
            [0xBD, 0xAD, 0xBB, 0xAB].contains(command.code) && command.header.suffix(3).allSatisfy { $0 == 0 }
        return isOpenEnded ? Padding.pad(data, to: block) : padded(data, block: block)
    }

    private static func padded(_ data: [UInt8], block: Int) -> [UInt8] {
        let length = max(block, (data.count + block - 1) / block * block)
        return data + [UInt8](repeating: 0, count: length - data.count)
    }
}

// MARK: - EV2

extension DESFireCardChannel {
    private mutating func openEV2(
        _ command: DESFireCardCommand
    ) throws(DESFireRefusal) -> (data: [UInt8], second: [UInt8]) {
        guard counter < UInt16.max else { throw .integrity }
        var data = command.body
        if command.protection != .plainFile {
            guard data.count >= 8 else { throw .length }
            let sent = data.suffix(8)
            data = Array(data.dropLast(8))
            guard sent.elementsEqual(mac(command.code, command.header + data)) else { throw .integrity }
        }
        if command.protection == .encipheredFile || command.protection == .secret, !data.isEmpty {
            guard data.count % 16 == 0 else { throw .length }
            guard let plain = Padding.unpad(cipher(data, isAnswer: false, encrypting: false)) else { throw .integrity }
            data = plain
        }
        if command.hasSecondChecksum {
            guard data.count == command.dataLength + 4 else { throw .length }
            return (Array(data.dropLast(4)), Array(data.suffix(4)))
        }
        return (data, [])
    }

    private mutating func sealEV2(_ data: [UInt8], _ command: DESFireCardCommand, _ status: UInt8) -> [UInt8] {
        switch self {
        case .ev2(let encryption, let authentication, let transaction, let counter):
            self = .ev2(
                encryption: encryption, authentication: authentication, transaction: transaction, counter: counter &+ 1)
        case .lrp(let encryption, let authentication, let transaction, let counter, let blocks):
            self = .lrp(
                encryption: encryption, authentication: authentication, transaction: transaction, counter: counter &+ 1,
                blocks: blocks)
        case .d40, .ev1: break
        }
        guard command.protection != .plainFile else { return data }
        var sealed = data
        if command.protection == .encipheredFile || command.protection == .secret, !data.isEmpty {
            sealed = cipher(Padding.pad(data, to: 16), isAnswer: true, encrypting: true)
        }
        return sealed + mac(status, sealed)
    }

    private var counter: UInt16 {
        switch self {
        case .ev2(_, _, _, let counter), .lrp(_, _, _, let counter, _): counter
        case .d40, .ev1: 0
        }
    }

    private func mac(_ first: UInt8, _ data: [UInt8]) -> [UInt8] {
        let count = [UInt8(truncatingIfNeeded: counter), UInt8(truncatingIfNeeded: counter >> 8)]
        switch self {
        case .ev2(_, let key, let transaction, _):
            return oddOctets((try? CMAC.authenticate([first] + count + transaction + data, key: key)) ?? [])
        case .lrp(_, let primitive, let transaction, _, _):
            return oddOctets(primitive.authenticate([first] + count + transaction + data))
        case .d40, .ev1: return []
        }
    }

    private mutating func cipher(_ data: [UInt8], isAnswer: Bool, encrypting: Bool) -> [UInt8] {
        switch self {
        case .ev2(let key, _, let transaction, let counter):
            guard
                let iv = try? DESFireSessionKeys.ev2Vector(
                    key: key, isAnswer: isAnswer, transaction: transaction, counter: counter)
            else { return [] }
            let result =
                encrypting
                ? try? BlockCipher.aes.encrypt(data, key: key, iv: iv) : try? BlockCipher.aes.decrypt(data, key: key, iv: iv)
            return result ?? []
        case .lrp(let primitive, let authentication, let transaction, let counter, var blocks):
            let result =
                encrypting ? try? primitive.encrypt(data, counter: &blocks) : try? primitive.decrypt(data, counter: &blocks)
            self = .lrp(
                encryption: primitive, authentication: authentication, transaction: transaction, counter: counter,
                blocks: blocks)
            return result ?? []
        case .d40, .ev1: return []
        }
    }
}
