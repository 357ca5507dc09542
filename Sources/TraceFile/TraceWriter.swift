// SPDX-License-Identifier: MIT

/// Writes a trace of format 1: one section, little endian, every row in the file when the call that wrote it returns.
///
/// Each call is one `write(2)`, so a process that is killed leaves a file that ends with a whole block, or inside the
/// one being written. After an error the file ends with a whole block and the writer can be used again. Rows are not
/// forced to the disk's surface (`fsync`): a power cut may lose more. A path that ends with `.gz` is compressed, and all
/// this holds for it only once it was closed. Not safe to use from two threads at once.
public struct TraceWriter: ~Copyable, Sendable {
    /// The number of rows written, the parts of one row counted once.
    public private(set) var rowCount = 0
    /// The number of frames written: what Wireshark counts.
    public private(set) var frameCount = 0
    public private(set) var interfaces: [TraceInterface] = []

    private var file: BlockFile
    private var block = BlockBuilder()

    /// Creates the file with mode 0600 and writes its header and interfaces.
    ///
    /// - Throws: ``TraceFileError``: `exists` for a file that is there unless `replacing`.
    public init(
        creating path: String, header: TraceHeader, interfaces: [TraceInterface], replacing: Bool = false
    ) throws(TraceFileError) {
        try self.init(BlockFile(creating: path, replacing: replacing), header: header, interfaces: interfaces)
    }

    init(_ file: consuming BlockFile, header: TraceHeader, interfaces: [TraceInterface]) throws(TraceFileError) {
        self.file = file
        block.sectionHeader(header)
        for interface in interfaces {
            try admit(interface)
            block.interface(interface)
        }
        try flush()
    }

    public var path: String { file.path }

    /// The file's length in octets, compressed where it is.
    public var byteCount: UInt64 { file.byteCount }

    /// Declares an interface that appeared after the first row.
    ///
    /// - Returns: its index in the file.
    public mutating func addInterface(_ interface: TraceInterface) throws(TraceFileError) -> Int {
        try admit(interface)
        block.interface(interface)
        do {
            try flush()
        } catch {
            interfaces.removeLast()
            throw error
        }
        return interfaces.count - 1
    }

    /// Writes a row as it is; its `frame` is not looked at. A row whose dissector is empty has no exported-PDU tags.
    public mutating func write(_ row: TraceRow) throws(TraceFileError) {
        try put(
            row.time, row.interface, row.direction, row.packetID, row.dissector, row.protocolText, row.body[...], row.comments
        )
    }

    /// Writes a row without allocating: `dissector` and `comment` best are literals or kept strings.
    ///
    /// - Parameters:
    ///   - time: nanoseconds since 1970-01-01 00:00 UTC.
    ///   - interface: the index in ``interfaces``.
    ///   - body: the octets after the exported-PDU tags. More than ``TraceLimits/partSize`` are cut into parts.
    public mutating func writeRow(
        time: UInt64, interface: Int, direction: RowDirection?, packetID: UInt64?, dissector: String,
        protocolText: String? = nil, body: [UInt8], comment: String? = nil
    ) throws(TraceFileError) {
        try writeRow(
            time: time, interface: interface, direction: direction, packetID: packetID, dissector: dissector,
            protocolText: protocolText,
            body: body[...], comment: comment
        )
    }

    /// The same for octets that are a piece of others.
    public mutating func writeRow(
        time: UInt64, interface: Int, direction: RowDirection?, packetID: UInt64?, dissector: String,
        protocolText: String? = nil, body: ArraySlice<UInt8>, comment: String? = nil
    ) throws(TraceFileError) {
        try put(
            time, interface, direction, packetID, dissector, protocolText, body, CollectionOfOne(comment).lazy.compactMap { $0 })
    }

    /// Writes secrets into the trace itself, one block for each kind among `records`.
    public mutating func write(secrets records: [SecretRecord]) throws(TraceFileError) {
        try block.secrets(records, path: path)
        try flush()
    }

    /// Closes the file. A second call does nothing; a writer that goes away closes it too, but cannot tell of an error.
    public mutating func close() throws(TraceFileError) { try file.close(rows: rowCount) }

    private mutating func admit(_ interface: TraceInterface) throws(TraceFileError) {
        guard interfaces.count < TraceLimits.interfaces else {
            throw TraceFileError(.tooLarge, path: path, detail: "more than \(TraceLimits.interfaces) interfaces")
        }
        interfaces.append(interface)
    }

    private mutating func put(
        _ time: UInt64, _ interface: Int, _ direction: RowDirection?, _ packetID: UInt64?, _ dissector: String,
        _ protocolText: String?, _ body: ArraySlice<UInt8>, _ comments: some Sequence<String>
    ) throws(TraceFileError) {
        guard interfaces.indices.contains(interface) else {
            throw TraceFileError(.noSuchInterface(interface), path: path)
        }
        guard body.count <= TraceLimits.bodySize else {
            throw TraceFileError(.tooLarge, path: path, detail: "a row of \(body.count) octets")
        }
        var packet = PacketBlock(time: time, interface: interface, direction: direction, packetID: packetID)
        let frames: Int
        if body.count <= TraceLimits.partSize {
            packet.tags = dissector.isEmpty ? nil : (dissector, protocolText)
            block.packet(packet, body, comments)
            frames = 1
        } else {
            frames = (body.count + TraceLimits.partSize - 1) / TraceLimits.partSize
            for part in 1...frames {
                packet.tags = ("data", PartMark(dissector: dissector, protocolText: protocolText, part: part, of: frames).text)
                let slice = body.dropFirst((part - 1) * TraceLimits.partSize).prefix(TraceLimits.partSize)
                if part == 1 { block.packet(packet, slice, comments) } else { block.packet(packet, slice, EmptyCollection()) }
            }
        }
        try flush()
        rowCount += 1
        frameCount += frames
    }

    private mutating func flush() throws(TraceFileError) {
        defer { block.removeAll() }
        try file.append(block.octets, rows: rowCount)
    }
}

/// How the parts of a row over ``TraceLimits/partSize`` are marked: they follow each other with nothing between, are
/// shown as `data`, and their protocol column says `json part 2/3` or, where the row has a protocol text of its own,
/// `data:ISO15693 part 2/3`. Stock tools keep and show it; a reader joins the parts.
struct PartMark: Equatable {
    var dissector: String
    var protocolText: String?
    var part: Int
    var of: Int

    init(dissector: String, protocolText: String?, part: Int, of: Int) {
        self.dissector = dissector
        self.protocolText = protocolText
        self.part = part
        self.of = of
    }

    /// Nil when `text` is no such mark.
    init?(_ text: String) {
        guard let range = text.lastRange(of: " part ") else { return nil }
        let numbers = text[range.upperBound...].split(separator: "/", omittingEmptySubsequences: false)
        guard numbers.count == 2, let part = Int(numbers[0]), let count = Int(numbers[1]), count >= 2, (1...count).contains(part),
            count <= TraceLimits.bodySize / TraceLimits.partSize + 1
        else { return nil }
        let names = text[..<range.lowerBound].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        self.dissector = String(names[0])
        self.protocolText = names.count == 2 ? String(names[1]) : nil
        self.part = part
        self.of = count
    }

    var text: String { "\(dissector)\(protocolText.map { ":\($0)" } ?? "") part \(part)/\(of)" }
}

extension String {
    fileprivate func lastRange(of mark: String) -> Range<String.Index>? {
        let wanted = Array(mark.utf8)
        let units = utf8
        guard units.count >= wanted.count else { return nil }
        var end = units.endIndex
        var start = units.index(end, offsetBy: -wanted.count)
        while true {
            if units[start..<end].elementsEqual(wanted) { return start..<end }
            guard start > units.startIndex else { return nil }
            start = units.index(before: start)
            end = units.index(before: end)
        }
    }
}
