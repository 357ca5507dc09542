// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets
import TagTransport

/// An NFC Forum Type 4 tag: its NDEF application, capability container and NDEF file, over ISO/IEC 7816-4 commands.
struct Type4Tag {
    let transport: any NFCTagTransport
    /// Mapping version 1 selects with P1-P2 `0000` and answers with file control information.
    private var isVersion1 = false

    init(transport: any NFCTagTransport) { self.transport = transport }

    /// Selects the NDEF application and reads the capability container.
    mutating func open() async throws -> Type4CC {
        do {
            _ = try await send(0xA4, 0x04, 0x00, data: Self.application, le: 0)
        } catch NFCError.unexpectedStatusWord(0x6A, 0x82) {
            do {
                _ = try await send(0xA4, 0x04, 0x00, data: Self.oldApplication, le: 0)
                isVersion1 = true
            } catch NFCError.unexpectedStatusWord {
                throw NFCError.applicationNotFound(aid: Data(Self.application))
            }
        }
        do {
            try await select(0xE103)
        } catch NFCError.unexpectedStatusWord(0x6A, 0x82) where isVersion1 {
            // On a DESFire card the old name is that of the card itself, which has no files.
            throw NFCError.applicationNotFound(aid: Data(Self.application))
        }
        let head = try await read(0, 15)
        guard head.count >= 2 else { throw NFCError.invalidResponse(Data(head)) }
        let length = Int(head[0]) << 8 | Int(head[1])
        var container = head
        // What is longer holds the controls of further files.
        if length > 15, length <= 255, head.count == 15 { container += (try? await read(15, length - 15)) ?? [] }
        return try Type4CC(bytes: container)
    }

    mutating func message() async throws -> Data {
        let container = try await open()
        guard container.readAccess == 0 else { throw NFCError.tagLocked }
        try await select(container.fileID)
        let field = try await read(0, container.lengthFieldSize)
        guard field.count == container.lengthFieldSize else { throw NFCError.invalidResponse(Data(field)) }
        let length = field.reduce(0) { $0 << 8 | Int($1) }
        guard length <= container.capacity, length <= Self.longestMessage else { throw NFCError.invalidResponse(Data(field)) }
        var message: [UInt8] = []
        message.reserveCapacity(min(length, 65_536))
        while message.count < length {
            let piece = try await read(
                container.lengthFieldSize + message.count,
                min(length - message.count, container.maxReadLength, 255))
            guard !piece.isEmpty else { throw NFCError.invalidResponse(Data()) }
            message += piece
        }
        return Data(message.prefix(length))
    }

    /// Writes the message in an order that a card taken away meanwhile survives.
    ///
    /// A message that fits into one command with its length is written by one: the card holds the old message or the new one. A longer
    /// one takes several commands, and no order of them can keep the old message until the new one is whole, since both lie in the
    /// same place of one file; so the length is zero from before the first octet to after the last (NFC Forum Type 4 Tag Operation 2.0, 5.4.7), and the card holds
    /// the old message, none, or the new one. Never half of one, never the length of one with the octets of the other.
    mutating func write(_ message: Data) async throws {
        let container = try await open()
        guard container.writeAccess == 0 else { throw NFCError.tagLocked }
        guard message.count <= container.capacity else {
            throw NFCError.unsupportedOperation("a message of \(message.count) bytes; \(container.capacity) fit")
        }
        try await select(container.fileID)
        let field = container.lengthFieldSize
        let octets = [UInt8](message)
        let length = (0..<field).map { UInt8(truncatingIfNeeded: octets.count >> (8 * (field - 1 - $0))) }
        if field + octets.count <= min(container.maxWriteLength, 255) { return try await update(0, length + octets) }
        try await update(0, [UInt8](repeating: 0, count: field))
        var written = 0
        while written < octets.count {
            let piece = octets[written..<min(octets.count, written + min(container.maxWriteLength, 255))]
            try await update(field + written, Array(piece))
            written += piece.count
        }
        try await update(0, length)
    }

    // MARK: - Commands

    private func select(_ file: UInt16) async throws {
        let id = [UInt8(truncatingIfNeeded: file >> 8), UInt8(truncatingIfNeeded: file)]
        if isVersion1 {
            _ = try await send(0xA4, 0x00, 0x00, data: id)
        } else {
            _ = try await send(0xA4, 0x00, 0x0C, data: id)
        }
    }

    private func read(_ offset: Int, _ length: Int) async throws -> [UInt8] {
        if offset <= 0x7FFF {
            return try await send(
                0xB0, UInt8(truncatingIfNeeded: offset >> 8), UInt8(truncatingIfNeeded: offset),
                le: UInt8(truncatingIfNeeded: length))
        }
        // Further on, the offset is a data object, and so is the answer (ISO/IEC 7816-4 11.3.3).
        let place = [0x54, 0x03] + [16, 8, 0].map { UInt8(truncatingIfNeeded: offset >> $0) }
        let answer = try await send(0xB1, 0x00, 0x00, data: place, le: UInt8(truncatingIfNeeded: min(length, 250) + 4))
        guard let object = (try? TLV.parse(answer))?.first, object.tag == 0x53 else {
            throw NFCError.invalidResponse(Data(answer))
        }
        return Array(object.value.prefix(length))
    }

    private func update(_ offset: Int, _ data: [UInt8]) async throws {
        if offset <= 0x7FFF {
            _ = try await send(
                0xD6, UInt8(truncatingIfNeeded: offset >> 8), UInt8(truncatingIfNeeded: offset), data: data)
            return
        }
        let place = [0x54, 0x03] + [16, 8, 0].map { UInt8(truncatingIfNeeded: offset >> $0) }
        // A discretionary data object of up to 127, 255 octets.
        let length: [UInt8] = data.count < 128 ? [UInt8(data.count)] : [0x81, UInt8(truncatingIfNeeded: data.count)]
        _ = try await send(0xD7, 0x00, 0x00, data: place + [0x53] + length + data)
    }

    /// One command; `61xx` is followed, a wrong Le is put right once.
    private func send(
        _ ins: UInt8, _ p1: UInt8, _ p2: UInt8, data: [UInt8]? = nil, le: UInt8? = nil
    ) async throws -> [UInt8] {
        var response = try await transport.sendAPDU(
            CommandAPDU(cla: 0, ins: ins, p1: p1, p2: p2, data: data.map { Data($0) }, le: le))
        if response.sw1 == 0x6C {
            response = try await transport.sendAPDU(
                CommandAPDU(cla: 0, ins: ins, p1: p1, p2: p2, data: data.map { Data($0) }, le: response.sw2))
        }
        var octets = [UInt8](response.data)
        var parts = 0
        while response.needsGetResponse, parts < 64 {
            parts += 1
            response = try await transport.sendAPDU(CommandAPDU(cla: 0, ins: 0xC0, p1: 0, p2: 0, le: response.sw2))
            octets += response.data
        }
        guard response.isSuccess else { throw NFCError.unexpectedStatusWord(response.sw1, response.sw2) }
        return octets
    }

    static let application: [UInt8] = [0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x01]
    private static let oldApplication: [UInt8] = [0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x00]
    /// No memory of a tag is larger.
    private static let longestMessage = 1 << 20
}
