// SPDX-License-Identifier: MIT

public import FoundationEssentials
import Octets

/// An NDEF message: at least one record (NDEF 1.0, 2.3.1).
public struct NDEFMessage: Sendable, Hashable, Codable {
    public var records: [NDEFRecord]

    public init(records: [NDEFRecord]) { self.records = records }

    /// A message with one text record.
    public static func text(_ text: String, languageCode: String = "en") -> NDEFMessage {
        NDEFMessage(records: [.text(text, languageCode: languageCode)])
    }

    /// A message with one URI record.
    public static func uri(_ uri: String) -> NDEFMessage { NDEFMessage(records: [.uri(uri)]) }

    /// Parses a message. Chunked records are joined; what follows the record with the end mark is passed over.
    ///
    /// - Throws: ``NFCError/invalidResponse(_:)`` when the octets are no message: no begin or end mark where one must be, a length
    ///   that goes past the end, a chunk without a beginning.
    public init(data: some Collection<UInt8>) throws {
        do {
            records = try Self.parse(Array(data))
        } catch {
            throw NFCError.invalidResponse(Data(data))
        }
    }

    private struct NotAMessage: Error {}

    private static func parse(_ octets: [UInt8]) throws -> [NDEFRecord] {
        var cursor = ByteCursor(octets)
        var records: [NDEFRecord] = []
        /// A record whose last chunk has not come.
        var open: NDEFRecord?
        var isFirst = true
        while true {
            let header = try cursor.u8()
            let isBegin = header & 0x80 != 0
            let isEnd = header & 0x40 != 0
            let isChunk = header & 0x20 != 0
            guard isBegin == isFirst, let format = NDEFTypeNameFormat(rawValue: header & 0x07) else { throw NotAMessage() }
            isFirst = false
            let typeLength = Int(try cursor.u8())
            let payloadLength = header & 0x10 != 0 ? Int(try cursor.u8()) : Int(try cursor.u32())
            let identifierLength = header & 0x08 != 0 ? Int(try cursor.u8()) : 0
            let type = try cursor.take(typeLength)
            let identifier = try cursor.take(identifierLength)
            let payload = try cursor.take(payloadLength)
            if var joined = open {
                // The chunks that follow have neither type nor identifier (NDEF 1.0, 2.3.3).
                guard format == .unchanged, typeLength == 0, identifierLength == 0 else { throw NotAMessage() }
                joined.payload += payload
                open = isChunk ? joined : nil
                if !isChunk { records.append(joined) }
            } else {
                guard format != .unchanged else { throw NotAMessage() }
                let record = NDEFRecord(
                    typeNameFormat: format, type: Data(type), identifier: Data(identifier), payload: Data(payload))
                if isChunk { open = record } else { records.append(record) }
            }
            if isEnd {
                guard open == nil else { throw NotAMessage() }
                return records
            }
        }
    }

    /// The octets of the message: short records where they fit, never chunks. Without a record it is that of one empty record.
    public var data: Data {
        let records = records.isEmpty ? [NDEFRecord.empty] : records
        var octets = Data()
        for (index, record) in records.enumerated() {
            let (type, identifier) = (record.type.prefix(255), record.identifier.prefix(255))
            let isShort = record.payload.count < 256
            var header = record.typeNameFormat.rawValue
            if index == 0 { header |= 0x80 }
            if index == records.count - 1 { header |= 0x40 }
            if isShort { header |= 0x10 }
            if !identifier.isEmpty { header |= 0x08 }
            octets.append(header)
            octets.append(UInt8(type.count))
            if isShort {
                octets.append(UInt8(record.payload.count))
            } else {
                for shift in [24, 16, 8, 0] { octets.append(UInt8(truncatingIfNeeded: record.payload.count >> shift)) }
            }
            if !identifier.isEmpty { octets.append(UInt8(identifier.count)) }
            octets += type
            octets += identifier
            octets += record.payload
        }
        return octets
    }
}
