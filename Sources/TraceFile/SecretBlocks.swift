// SPDX-License-Identifier: MIT

import Octets

/// Decryption secrets blocks: each holds records of one kind, one after the other, unpadded, little endian.
///
/// A record is `u32 packet id, u16 interface, u8 direction, u8 zero, u16 name length, u32 offset, u32 length`, then the
/// name and the octets.
extension BlockBuilder {
    /// A block is begun anew when it would grow past this.
    private static let blockGoal = 1 << 20
    static let recordHeader = 18

    /// One block for each kind among `records`, in the order in which the kinds first appear.
    mutating func secrets(_ records: [SecretRecord], path: String) throws(TraceFileError) {
        for record in records {
            guard record.name.utf8.count <= Int(UInt16.max) else {
                throw TraceFileError(.tooLarge, path: path, detail: "a secret's name of \(record.name.utf8.count) octets")
            }
            guard record.octets.count <= TraceLimits.bodySize else {
                throw TraceFileError(.tooLarge, path: path, detail: "a secret of \(record.octets.count) octets")
            }
        }
        var kinds: [SecretKind] = []
        for record in records where !kinds.contains(record.kind) { kinds.append(record.kind) }
        for kind in kinds { blocks(of: kind, records) }
    }

    private mutating func blocks(of kind: SecretKind, _ records: [SecretRecord]) {
        var start: Int?
        for record in records where record.kind == kind {
            let size = Self.recordHeader + record.name.utf8.count + record.octets.count
            if let open = start, octets.count - open + size > Self.blockGoal {
                endSecrets(open)
                start = nil
            }
            if start == nil {
                begin(Pcapng.secrets)
                u32(kind.rawValue)
                u32(0)
                start = octets.count
            }
            append(record)
        }
        if let start { endSecrets(start) }
    }

    private mutating func endSecrets(_ start: Int) {
        let length = octets.count - start
        setU32(UInt32(truncatingIfNeeded: length), at: start - 4)
        pad(length)
        end()
    }

    private mutating func append(_ record: SecretRecord) {
        u32(record.packetID)
        u16(record.interface)
        u8(record.direction.rawValue)
        u8(0)
        u16(UInt16(truncatingIfNeeded: record.name.utf8.count))
        u32(record.offset)
        u32(UInt32(truncatingIfNeeded: record.octets.count))
        raw(record.name.utf8)
        raw(record.octets)
    }
}

extension SecretRecord {
    /// The records of one block, little endian whatever the section's byte order is.
    ///
    /// - Throws: ``OutOfOctets`` when the last record is not whole.
    static func parse(_ kind: SecretKind, _ octets: ArraySlice<UInt8>) throws(OutOfOctets) -> [SecretRecord] {
        var cursor = ByteCursor(octets)
        var records: [SecretRecord] = []
        while !cursor.isAtEnd {
            let packetID = try cursor.u32le()
            let interface = try cursor.u16le()
            let direction = try cursor.u8()
            _ = try cursor.u8()
            let nameLength = Int(try cursor.u16le())
            let offset = try cursor.u32le()
            let length = Int(try cursor.u32le())
            let name = try cursor.take(nameLength)
            let value = try cursor.take(length)
            records.append(
                SecretRecord(
                    kind: kind, packetID: packetID, interface: interface, direction: direction == 1 ? .received : .sent,
                    name: String(decoding: name, as: UTF8.self), offset: offset, octets: [UInt8](value)
                )
            )
        }
        return records
    }
}

/// Writes the side file of secrets that stands beside a trace: the trace's session in its header, one interface, and
/// secrets blocks. Every call is one `write(2)`, so what it was given outlives the process once it returns.
public struct SecretsWriter: ~Copyable, Sendable {
    private var file: BlockFile
    private var block = BlockBuilder()

    /// Creates the file with mode 0600.
    ///
    /// - Throws: ``TraceFileError``: `exists` for a file that is there unless `replacing`.
    public init(creating path: String, session: String, application: String = "", replacing: Bool = false) throws(TraceFileError)
    {
        try self.init(BlockFile(creating: path, replacing: replacing), session: session, application: application)
    }

    init(_ file: consuming BlockFile, session: String, application: String) throws(TraceFileError) {
        self.file = file
        block.sectionHeader(TraceHeader(session: session, application: application))
        block.interface(TraceInterface(.meta, description: "secrets of the trace of this session"))
        try flush()
    }

    public var path: String { file.path }

    public var byteCount: UInt64 { file.byteCount }

    /// Writes `records`, one block for each kind among them; none writes nothing.
    public mutating func write(_ records: [SecretRecord]) throws(TraceFileError) {
        guard !records.isEmpty else { return }
        try block.secrets(records, path: path)
        try flush()
    }

    public mutating func close() throws(TraceFileError) { try file.close(rows: 0) }

    private mutating func flush() throws(TraceFileError) {
        defer { block.removeAll() }
        try file.append(block.octets, rows: 0)
    }
}
