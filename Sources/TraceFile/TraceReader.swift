// SPDX-License-Identifier: MIT

/// What a reader finds in a trace, in the order of the file.
public enum TraceItem: Sendable, Equatable {
    /// A section begins; our own files have one.
    case header(TraceHeader)
    /// An interface was declared; the number is its index in the file.
    case interface(Int, TraceInterface)
    case row(TraceRow)
    /// The records of one decryption secrets block of ours.
    case secrets([SecretRecord])
}

/// Reads a pcapng file from its start to its end, in pieces: memory does not grow with the file's length.
///
/// It takes both byte orders, several sections, every link type, enhanced, simple and old packet blocks; blocks that it
/// does not know are passed over by their length. Gzip is opened on the way. Whatever is in the file, reading ends, with
/// ``damage`` saying where and why when that was before the file's end.
public struct TraceReader: ~Copyable, Sendable {
    /// The file's name as it was given; empty for octets.
    public let path: String
    /// The first section's header.
    public private(set) var header: TraceHeader?
    /// The interfaces declared so far, over all sections.
    public private(set) var interfaces: [TraceInterface] = []
    /// The rows read so far.
    public private(set) var rowCount = 0
    /// The frames that Wireshark would have numbered so far.
    public private(set) var frameCount = 0
    /// Where and why the reading ended early; nil until then.
    public private(set) var damage: TraceDamage?

    private var blocks: BlockReader
    private var scales: [TimeScale] = []
    private var sectionBase = 0
    private var parts = PartJoiner()
    private var isAtEnd = false

    /// Opens a capture, compressed with gzip or not.
    ///
    /// - Throws: ``TraceFileError``: `notFound`, `noPermission`, `isDirectory`, `empty`, `notACapture`, `cannotRead`.
    public init(path: String) throws(TraceFileError) {
        try self.init(BlockReader(source: OctetSource(path: path)), path: path)
    }

    /// Reads a capture out of memory; gzip is not opened.
    public init(octets: [UInt8]) throws(TraceFileError) { try self.init(BlockReader(octets: octets), path: "") }

    private init(_ reader: consuming BlockReader, path: String) throws(TraceFileError) {
        var blocks = reader
        if !path.isEmpty, blocks.head(2) == [0x1F, 0x8B] { try blocks.decompress() }
        let head = blocks.head(12)
        if let error = CaptureGuess.refusal(head, path: path, failure: blocks.readFailure) { throw error }
        self.path = path
        self.blocks = blocks
    }

    /// The next item, or nil at the end or at damage.
    public mutating func next() -> TraceItem? {
        switch pull() {
        case .header(let header): .header(header)
        case .interface(let index, let interface): .interface(index, interface)
        case .row(let view): .row(view.row)
        case .secrets(let records): .secrets(records)
        case nil: nil
        }
    }

    /// The next row where it stands in the buffer; other items are taken note of and passed over.
    public mutating func nextRow() -> RowView? {
        while let found = pull() {
            if case .row(let view) = found { return view }
        }
        return nil
    }

    /// Calls `body` for each row that is left. This is the fast way: no allocation for a row.
    public mutating func forEachRow<Failure: Error>(_ body: (RowView) throws(Failure) -> Void) throws(Failure) {
        while let view = nextRow() { try body(view) }
    }

    /// Lets the reading go on where it ended, for a file that may have grown in the meantime. A block that was not
    /// there whole is looked at again; damage of another kind stays.
    public mutating func resume() {
        guard isAtEnd, damage == nil || damage?.kind == .cutShort else { return }
        isAtEnd = false
        damage = nil
    }

    mutating func pull() -> Found? {
        if parts.isIdle {
            guard let found = readItem() else { return nil }
            guard case .row(let view) = found, view.mayBePart else { return found }
            if let settled = settle(found) { return settled }
        } else if let waiting = parts.pop() {
            return waiting
        }
        while true {
            guard let found = readItem() else { return parts.flush() }
            if let settled = settle(found) { return settled }
        }
    }

    /// What is given out instead of `found`; nil while more of a row's parts must come.
    private mutating func settle(_ found: Found) -> Found? {
        switch parts.take(found) {
        case .pass(let found): return found
        case .held: return nil
        case .joined(let view, let count):
            rowCount -= count - 1
            return .row(view)
        }
    }

    private mutating func readItem() -> Found? {
        guard !isAtEnd else { return nil }
        while true {
            let block: BlockReader.Block?
            do throws(BlockReader.Fault) {
                block = try blocks.next(wanted: Self.isWanted)
            } catch {
                note(judged(error), blocks.blocks + 1, blocks.offset)
                return nil
            }
            guard let block else {
                isAtEnd = true
                return nil
            }
            do throws(BlockReader.Fault) {
                if let found = try interpret(block) { return found }
            } catch {
                note(error, block.number, block.offset)
                return nil
            }
        }
    }

    private static func isWanted(_ type: UInt32) -> Bool {
        switch type {
        case Pcapng.sectionHeader, Pcapng.interface, Pcapng.oldPacket, Pcapng.simplePacket, Pcapng.enhancedPacket, Pcapng.secrets:
            true
        default: false
        }
    }

    private mutating func interpret(_ block: BlockReader.Block) throws(BlockReader.Fault) -> Found? {
        switch block.type {
        case Pcapng.enhancedPacket, Pcapng.oldPacket, Pcapng.simplePacket: return .row(try row(block))
        case Pcapng.sectionHeader:
            return .header(try block.octets.withFields { (fields) throws(BlockReader.Fault) in try sectionHeader(fields) })
        case Pcapng.interface:
            let interface = try block.octets.withFields { (fields) throws(BlockReader.Fault) in try declare(fields) }
            return .interface(interfaces.count - 1, interface)
        case Pcapng.secrets:
            return try secrets(block.octets).map { .secrets($0) }
        default:
            if Pcapng.takesFrameNumber(block.type) { frameCount += 1 }
            return nil
        }
    }

    private mutating func row(_ block: BlockReader.Block) throws(BlockReader.Fault) -> RowView {
        try block.octets.withFields { (fields) throws(BlockReader.Fault) in
            let packet = try PacketFields(block.type, fields)
            let index = sectionBase + packet.interface
            guard index < interfaces.count else {
                let known = interfaces.count - sectionBase
                throw BlockReader.Fault(
                    "its interface is \(grouped(UInt64(packet.interface))), \(grouped(UInt64(known))) are declared")
            }
            frameCount += 1
            rowCount += 1
            let tags = interfaces[index].linkType == Pcapng.exportedPDU ? ExportedPDUTags(fields, packet.packet) : nil
            return RowView(
                frame: frameCount, time: packet.stamp.map { scales[index].nanoseconds($0) } ?? 0, interface: index,
                direction: packet.direction ?? tags?.direction, packetID: packet.packetID, hasComments: packet.hasComments,
                block: block.octets, bodyExtent: Extent(tags?.body ?? packet.packet),
                dissectorExtent: Extent(tags?.dissector ?? 0..<0),
                protocolExtent: Extent(tags?.protocolText ?? 0..<0), options: Extent(packet.options)
            )
        }
    }

    private mutating func sectionHeader(_ fields: BlockFields) throws(BlockReader.Fault) -> TraceHeader {
        guard fields.count >= 28 else { throw BlockReader.Fault("a section header of \(fields.count) bytes is too short") }
        var found = TraceHeader(format: nil, session: nil)
        let areWhole = fields.forEachOption(from: 24, to: fields.count - 4) { code, range in
            switch code {
            case Pcapng.Option.comment: found.read(comment: fields.text(range))
            case Pcapng.Option.sectionHardware: found.hardware = fields.text(range)
            case Pcapng.Option.sectionSystem: found.system = fields.text(range)
            case Pcapng.Option.sectionApplication: found.application = fields.text(range)
            default: break
            }
        }
        guard areWhole else { throw BlockReader.Fault("an option runs past the block's end") }
        sectionBase = interfaces.count
        if header == nil { header = found }
        return found
    }

    private mutating func declare(_ fields: BlockFields) throws(BlockReader.Fault) -> TraceInterface {
        guard fields.count >= 20, let linkType = fields.u16(8) else {
            throw BlockReader.Fault("an interface block of \(fields.count) bytes is too short")
        }
        guard interfaces.count < TraceLimits.interfaces else {
            throw BlockReader.Fault("more than \(grouped(UInt64(TraceLimits.interfaces))) interfaces")
        }
        var interface = TraceInterface(.other(""), linkType: linkType)
        var scale = TimeScale()
        let areWhole = fields.forEachOption(from: 16, to: fields.count - 4) { code, range in
            switch code {
            case Pcapng.Option.interfaceName: interface.kind = InterfaceKind(name: fields.text(range))
            case Pcapng.Option.interfaceDescription: interface.description = fields.text(range)
            case Pcapng.Option.timeResolution: if let octet = fields.slice(range).first { scale.resolution = octet }
            case Pcapng.Option.timeOffset:
                if range.count == 8, let value = fields.u64(range.lowerBound) { scale.offset = Int64(bitPattern: value) }
            default: break
            }
        }
        guard areWhole else { throw BlockReader.Fault("an option runs past the block's end") }
        interfaces.append(interface)
        scales.append(scale)
        return interface
    }

    /// The records of a block of ours; nil for secrets of another kind, such as a TLS key log.
    private func secrets(_ block: BlockOctets) throws(BlockReader.Fault) -> [SecretRecord]? {
        let (type, length) = block.withFields { ($0.u32(8) ?? 0, $0.u32(12).map(Int.init) ?? 0) }
        guard block.count >= 20 else { throw BlockReader.Fault("a secrets block of \(block.count) bytes is too short") }
        guard length <= block.count - 20 else {
            throw BlockReader.Fault(
                "its secrets say \(grouped(UInt64(length))) bytes, \(grouped(UInt64(block.count - 20))) are there")
        }
        guard let kind = SecretKind(rawValue: type) else { return nil }
        do {
            return try SecretRecord.parse(kind, block.slice(Extent(16..<16 + length)))
        } catch {
            throw BlockReader.Fault("a secret in it is cut off: \(error)")
        }
    }

    /// A block that ends early is damaged, not cut short, when what is there of it contradicts its length.
    private func judged(_ fault: BlockReader.Fault) -> BlockReader.Fault {
        guard fault.kind == .cutShort, let said = fault.said else { return fault }
        guard let why = blocks.rest.withFields({ $0.contradiction(said: Int(clamping: said)) }) else { return fault }
        return BlockReader.Fault(why, said: said, present: fault.present)
    }

    private mutating func note(_ fault: BlockReader.Fault, _ block: Int, _ offset: UInt64) {
        isAtEnd = true
        damage = TraceDamage(
            kind: fault.kind, block: block, offset: offset, said: fault.said, present: fault.present, rows: rowCount,
            detail: fault.detail
        )
    }
}

/// An item before it is copied out of the reader's buffer.
enum Found {
    case header(TraceHeader)
    case interface(Int, TraceInterface)
    case row(RowView)
    case secrets([SecretRecord])

    /// The same, independent of the reader's buffer.
    var detached: Found {
        if case .row(let view) = self { return .row(view.detached) }
        return self
    }
}
