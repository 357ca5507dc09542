// SPDX-License-Identifier: MIT

import CardCrypto

extension DESFireCardMachine {
    /// How many octets of parameters a command has; more than came when frames are still missing.
    func neededLength(_ code: UInt8, _ parameters: [UInt8]) throws(DESFireRefusal) -> Int {
        let header: Int
        switch code {
        case 0x3D, 0x8D, 0x3B, 0x8B: header = 7
        case 0xDB, 0xBA: header = 10
        default: return parameters.count
        }
        guard parameters.count >= header else { throw .length }
        let length = number(parameters[(header - 3)..<header])
        let protection = try fileProtection(parameters[0], .write)
        let body = channel?.bodyLength(protection, dataLength: length) ?? length
        // Nothing longer than the largest card is gathered.
        guard body <= 65_536 else { throw .boundary }
        guard parameters.count <= header + body else { throw .length }
        return header + body
    }

    /// Tells header and body apart and finds the protection that holds.
    func parse(_ code: UInt8, _ parameters: [UInt8]) throws(DESFireRefusal) -> DESFireCardCommand {
        func command(
            _ header: Int, _ protection: DESFireProtection, data: Int, answers: Bool = false, second: Bool = false,
            writes: Bool = false
        ) throws(DESFireRefusal) -> DESFireCardCommand {
            guard parameters.count >= header else { throw .length }
            return DESFireCardCommand(
                code: code, header: Array(parameters[..<header]), body: Array(parameters[header...]), protection: protection,
                dataLength: data, hasSecondChecksum: second, writes: writes, answers: answers)
        }
        /// A management command: everything but a MAC at the end is its header.
        func management(answers: Bool = false) throws(DESFireRefusal) -> DESFireCardCommand {
            let mac = channel?.bodyLength(.management, dataLength: 0) ?? 0
            guard parameters.count >= mac else { throw .length }
            return try command(parameters.count - mac, .management, data: 0, answers: answers)
        }
        guard let first = parameters.first ?? (Self.withoutParameters.contains(code) ? 0 : nil) else {
            if Self.known.contains(code) { throw .length }
            throw .illegalCommand
        }
        switch code {
        case 0x60, 0x6A, 0x6D, 0x6F, 0x61, 0x6E, 0x45, 0x64, 0xF5: return try management(answers: true)
        case 0xC7: return try management(answers: true)
        // A selection is never part of a session.
        case 0x5A: return try command(parameters.count, .management, data: 0)
        case 0xFC, 0xCA, 0xDA, 0x55, 0x56, 0x57, 0xCD, 0xCB, 0xCC, 0xC1, 0xC0, 0xDF, 0xEB, 0xA7: return try management()
        case 0xC8:
            let mac = channel?.bodyLength(.management, dataLength: 0) ?? 0
            return try command(0, .management, data: max(0, parameters.count - mac), answers: true)
        case 0x51: return try command(0, .secret, data: 0, answers: true)
        case 0x3C: return try command(1, .secret, data: 0, answers: true)
        case 0x5C: return try command(1, .secret, data: first == 1 ? 25 : 1)
        case 0x54: return try command(0, .secret, data: 1)
        case 0xC4, 0xC6: return try changeKey(code, parameters, command: command)
        case 0x5F:
            let file = try file(first)
            let isFree = channel == nil || file.right(.change) == 0x0E
            if isFree { return try management() }
            return try command(1, .secret, data: 3)
        case 0xCE: return try command(5, .secret, data: 17)
        case 0xF6: return try command(1, .secret, data: 0, answers: true)
        case 0xBD, 0xAD, 0xBB, 0xAB: return try command(7, try fileProtection(first, .read), data: 0, answers: true)
        case 0x6C: return try command(1, try valueProtection(first, .read), data: 0, answers: true)
        case 0x3D, 0x8D, 0x3B, 0x8B:
            guard parameters.count >= 7 else { throw .length }
            return try command(7, try fileProtection(first, .write), data: number(parameters[4..<7]), writes: true)
        case 0xDB, 0xBA:
            guard parameters.count >= 10 else { throw .length }
            return try command(10, try fileProtection(first, .write), data: number(parameters[7..<10]), writes: true)
        case 0x0C: return try command(1, try valueProtection(first, .readWrite), data: 4, writes: true)
        case 0x1C: return try command(1, try valueProtection(first, .write), data: 4, writes: true)
        case 0xDC: return try command(1, try valueProtection(first, .read), data: 4, writes: true)
        default: throw .illegalCommand
        }
    }

    private func changeKey(
        _ code: UInt8, _ parameters: [UInt8],
        command: (Int, DESFireProtection, Int, Bool, Bool, Bool) throws(DESFireRefusal) -> DESFireCardCommand
    ) throws(DESFireRefusal) -> DESFireCardCommand {
        let header = code == 0xC6 ? 2 : 1
        guard parameters.count > header, channel != nil else { throw parameters.count > header ? .authentication : .length }
        let octet = parameters[header - 1]
        let cipher = newCipher(octet)
        let isSame = octet & 0x3F == keyInUse && (header == 1 || parameters[0] == 0)
        let length = max(cipher.keyLength, 16) + (cipher == .aes ? 1 : 0)
        return try command(header, .secret, length, false, !isSame, false)
    }

    /// The cipher of a key that ChangeKey brings: the application's, or for the card's master key what bits 7 and 6 say.
    func newCipher(_ octet: UInt8) -> DESFireCipher {
        guard selected == .card else { return application.cipher }
        switch octet & 0xC0 {
        case 0x80: return .aes
        case 0x40: return .threeKeyTripleDES
        default: return .twoKeyTripleDES
        }
    }

    // MARK: - Rights

    func file(_ number: UInt8) throws(DESFireRefusal) -> DESFireFile {
        guard let file = application.files[number] else { throw .fileNotFound }
        return file
    }

    /// How the data of a file travels for whoever is authenticated.
    ///
    /// - Throws: `AE` when another key could do it, `9D` when none can.
    func fileProtection(_ number: UInt8, _ use: DESFireRight) throws(DESFireRefusal) -> DESFireProtection {
        try protection(try file(number), [use, .readWrite])
    }

    /// Any right allows GetValue and Debit, write rights LimitedCredit, and both together alone Credit.
    private func valueProtection(_ number: UInt8, _ use: DESFireRight) throws(DESFireRefusal) -> DESFireProtection {
        switch use {
        case .read: try protection(try file(number), [.read, .write, .readWrite])
        case .write: try protection(try file(number), [.write, .readWrite])
        default: try protection(try file(number), [.readWrite])
        }
    }

    private func protection(_ file: DESFireFile, _ uses: [DESFireRight]) throws(DESFireRefusal) -> DESFireProtection {
        let rights = uses.map { file.right($0) }
        if channel != nil, rights.contains(keyInUse) {
            switch file.options & 0x03 {
            case 1: return .macedFile
            case 3: return .encipheredFile
            default: return .plainFile
            }
        }
        if rights.contains(0x0E) { return .plainFile }
        throw rights.allSatisfy { $0 == 0x0F } ? .permissionDenied : .authentication
    }

    func number(_ octets: some BidirectionalCollection<UInt8>) -> Int { octets.reversed().reduce(0) { $0 << 8 | Int($1) } }

    private static let withoutParameters: Set<UInt8> = [
        0x60, 0x6A, 0x6D, 0x6F, 0x61, 0x6E, 0x45, 0xC7, 0xFC, 0xA7, 0x51, 0x64,
    ]
    private static let known: Set<UInt8> = [
        0x64, 0xF5, 0x5A, 0xCA, 0xDA, 0x55, 0x56, 0x57, 0xCD, 0xCB, 0xCC, 0xC1, 0xC0, 0xDF, 0xEB, 0xC8, 0x3C, 0x5C, 0x54, 0xC4,
        0xC6,
        0x5F, 0xCE, 0xF6, 0xBD, 0xAD, 0xBB, 0xAB, 0x6C, 0x3D, 0x8D, 0x3B, 0x8B, 0xDB, 0xBA, 0x0C, 0x1C, 0xDC,
    ]
}
