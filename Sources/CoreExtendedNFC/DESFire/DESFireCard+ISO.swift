// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials
import TagTransport

/// The ISO/IEC 7816-4 commands of a DESFire card. They have no secure channel, so while one is open they are not sent.
extension DESFireCard {
    /// What ISO SELECT selects.
    public enum ISOName: Sendable, Equatable {
        /// An application's name, 1...16 octets.
        case name(Data)
        /// An application or the card (`3F00`) by its file identifier.
        case directory(UInt16)
        /// A file of the application that is selected.
        case file(UInt16)
    }

    /// ISO SELECT. To select an application so ends the native session and selection; to select a file does not.
    ///
    /// - Throws: ``NFCError/unexpectedStatusWord(_:_:)``; `6A82` when there is no such application or file.
    public mutating func isoSelect(_ name: ISOName) async throws {
        let (p1, p2, data): (UInt8, UInt8, [UInt8]) =
            switch name {
            case .name(let octets): (0x04, 0x0C, [UInt8](octets))
            case .directory(let id): (0x00, 0x0C, [UInt8(truncatingIfNeeded: id >> 8), UInt8(truncatingIfNeeded: id)])
            case .file(let id): (0x02, 0x0C, [UInt8(truncatingIfNeeded: id >> 8), UInt8(truncatingIfNeeded: id)])
            }
        let isApplication: Bool
        if case .file = name { isApplication = false } else { isApplication = true }
        try await facing { card in
            if !isApplication { try card.requireNoSession("ISO SELECT of a file") }
            let response = try await card.link.transport.sendAPDU(
                CommandAPDU(cla: 0, ins: 0xA4, p1: p1, p2: p2, data: Data(data), le: p1 == 0x04 ? 0 : nil))
            guard response.isSuccess else { throw NFCError.unexpectedStatusWord(response.sw1, response.sw2) }
            guard isApplication else { return }
            card.state = .open
            card.knownSettings = [:]
            card.selectedApplication = nil
        }
    }

    /// READ BINARY of the file that ISO SELECT selected.
    ///
    /// - Parameters:
    ///   - offset: up to 32767.
    ///   - length: 1...256.
    public mutating func isoReadBinary(offset: Int, length: Int) async throws -> Data {
        let place = try Self.isoOffset(offset)
        guard (1...256).contains(length) else { throw NFCError.unsupportedOperation("a length of \(length)") }
        return try await iso(0xB0, place.0, place.1, le: UInt8(truncatingIfNeeded: length))
    }

    /// UPDATE BINARY of the file that ISO SELECT selected.
    public mutating func isoUpdateBinary(offset: Int, _ data: Data) async throws {
        let place = try Self.isoOffset(offset)
        guard (1...255).contains(data.count) else { throw NFCError.unsupportedOperation("\(data.count) bytes to write") }
        _ = try await iso(0xD6, place.0, place.1, data: data)
    }

    /// READ RECORDS of the file that ISO SELECT selected.
    ///
    /// - Parameters:
    ///   - record: 1 is the newest.
    ///   - all: whether to read on to the oldest.
    public mutating func isoReadRecords(record: UInt8, all: Bool = false) async throws -> Data {
        try await iso(0xB2, record, all ? 0x05 : 0x04, le: 0)
    }

    /// APPEND RECORD to the file that ISO SELECT selected.
    public mutating func isoAppendRecord(_ data: Data) async throws {
        guard (1...255).contains(data.count) else { throw NFCError.unsupportedOperation("\(data.count) bytes to write") }
        _ = try await iso(0xE2, 0x00, 0x00, data: data)
    }

    /// Authenticates by GET CHALLENGE, EXTERNAL and INTERNAL AUTHENTICATE; the channel is that of EV1.
    ///
    /// No real exchange of it is published. Each cryptogram has a vector of zeros of its own; the session key comes of the reader's
    /// first and the card's second random number.
    public mutating func isoAuthenticate(keyNumber: UInt8, key: DESFireKey) async throws {
        try await facing { card in
            card.state = .open
            card.knownSettings = [:]
            let cipher = key.effectiveCipher
            let length = cipher.randomLength
            let algorithm: UInt8 =
                switch key.cipher {
                case .des, .twoKeyTripleDES: 0x02
                case .threeKeyTripleDES: 0x04
                case .aes: 0x09
                }
            let reference = card.selectedApplication == Data([0, 0, 0]) ? keyNumber : 0x80 | keyNumber
            let challenge = [UInt8](try await card.iso(0x84, 0, 0, le: UInt8(truncatingIfNeeded: length)))
            guard challenge.count == length else { throw NFCError.invalidResponse(Data(challenge)) }
            let first = try CardEnvironment.current.randomOctets(length, label: "desfire.isoRndA1")
            let second = try CardEnvironment.current.randomOctets(length, label: "desfire.isoRndA2")
            let sent = try crypto { () throws(CryptoError) in
                try cipher.blockCipher.encrypt(first + challenge, key: key.effectiveOctets)
            }
            do {
                _ = try await card.iso(0x82, algorithm, reference, data: Data(sent))
            } catch NFCError.unexpectedStatusWord(let sw1, let sw2) where sw1 == 0x63 || (sw1, sw2) == (0x69, 0x82) {
                throw NFCError.authenticationFailed
            }
            let answer = [UInt8](
                try await card.iso(0x88, algorithm, reference, data: Data(second), le: UInt8(truncatingIfNeeded: 2 * length)))
            guard answer.count == 2 * length else { throw NFCError.invalidResponse(Data(answer)) }
            let plain = try crypto { () throws(CryptoError) in
                try cipher.blockCipher.decrypt(answer, key: key.effectiveOctets)
            }
            guard equalInConstantTime(Array(plain.suffix(length)), second) else { throw NFCError.authenticationFailed }
            let session = try crypto { () throws(CryptoError) in
                try DESFireSessionKeys.ev1(cipher, rndA: first, rndB: Array(plain.prefix(length)))
            }
            CardEnvironment.current.logKey("desfire.key", key.octets)
            CardEnvironment.current.logKey("desfire.sessionKey", session)
            card.state = .secured(
                .ev1(EV1Channel(cipher: cipher.blockCipher, key: session)),
                Session(keyNumber: keyNumber, method: key.cipher == .aes ? .aes : .iso, capabilities: Data()))
        }
    }

    private mutating func iso(
        _ ins: UInt8, _ p1: UInt8, _ p2: UInt8, data: Data? = nil, le: UInt8? = nil
    ) async throws -> Data {
        try await facing { card in
            try card.requireNoSession("an ISO command")
            let response = try await card.link.transport.sendAPDU(
                CommandAPDU(cla: 0, ins: ins, p1: p1, p2: p2, data: data, le: le))
            guard response.isSuccess else { throw NFCError.unexpectedStatusWord(response.sw1, response.sw2) }
            return response.data
        }
    }

    private func requireNoSession(_ what: String) throws {
        switch state {
        case .open: return
        case .secured: throw NFCError.unsupportedOperation("\(what) has no secure channel, and one is open")
        case .lost, .interrupted: throw lostChannel
        }
    }

    private static func isoOffset(_ offset: Int) throws -> (UInt8, UInt8) {
        guard (0..<0x8000).contains(offset) else { throw NFCError.unsupportedOperation("an offset of \(offset)") }
        return (UInt8(truncatingIfNeeded: offset >> 8), UInt8(truncatingIfNeeded: offset))
    }
}
