// SPDX-License-Identifier: MIT

/// Gives the blocks of a pcapng file one by one out of one buffer, which grows only as far as octets are there.
struct BlockReader {
    struct Block {
        var type: UInt32
        /// The whole block, both length fields included; empty when it was passed over.
        var octets: BlockOctets
        var number: Int
        var offset: UInt64
    }

    private static let pieceSize = 256 * 1024

    private var buffer: [UInt8]
    private var start = 0
    private var end = 0
    private let source: OctetSource?
    /// The offset in the file of `buffer[start]`.
    private(set) var offset: UInt64 = 0
    private(set) var blocks = 0
    private(set) var isBigEndian = false
    private var failure: OctetSource.Failure?

    /// Why the source gave no more, when that was not its end.
    var readFailure: OctetSource.Failure? { failure }

    init(octets: [UInt8]) {
        buffer = octets
        end = octets.count
        source = nil
    }

    init(source: OctetSource) {
        self.source = source
        buffer = [UInt8](repeating: 0, count: Self.pieceSize)
    }

    /// The first octets without taking them, for looking at what kind of file this is.
    mutating func head(_ count: Int) -> [UInt8] {
        fill(count)
        return [UInt8](buffer[start..<min(end, start + count)])
    }

    /// Begins anew with a compressed stream whose first octets are in the buffer.
    mutating func decompress() throws(TraceFileError) {
        guard let source else { return }
        try source.decompress(head: [UInt8](buffer[start..<end]))
        start = 0
        end = 0
        failure = nil
    }

    /// The next block, or nil at the end of the file or at damage.
    ///
    /// Blocks for which `wanted` says no are passed over without being held; only their lengths are checked.
    mutating func next(wanted: (UInt32) -> Bool) throws(Fault) -> Block? {
        fill(12)
        let there = end - start
        if there == 0, failure == nil { return nil }
        let type = u32(at: start)
        // A section's byte order, and with it its length, is told by its third word only.
        guard there >= 12 else {
            throw short(said: there >= 8 && type != Pcapng.sectionHeader ? UInt64(u32(at: start + 4)) : nil)
        }
        if type == Pcapng.sectionHeader {
            switch u32(at: start + 8, bigEndian: false) {
            case Pcapng.byteOrderMagic: isBigEndian = false
            case Pcapng.byteOrderMagic.byteSwapped: isBigEndian = true
            default: throw Fault("its byte-order mark is neither 1A2B3C4D nor 4D3C2B1A")
            }
        }
        let length = Int(u32(at: start + 4))
        guard length >= 12, length & 3 == 0 else {
            throw Fault("its length, \(grouped(UInt64(length))) bytes, is not that of a block", said: UInt64(length))
        }
        guard length <= TraceLimits.blockSize else { throw tooLong(UInt64(length)) }

        let block: Block
        if wanted(type) {
            fill(length)
            guard end - start >= length else { throw short(said: UInt64(length)) }
            try checkTrailer(u32(at: start + length - 4), length)
            let octets = BlockOctets(buffer: buffer, start: start, count: length, isBigEndian: isBigEndian)
            block = Block(type: type, octets: octets, number: blocks + 1, offset: offset)
            start += length
        } else {
            block = Block(type: type, octets: BlockOctets([]), number: blocks + 1, offset: offset)
            try skip(length)
        }
        offset += UInt64(length)
        blocks += 1
        return block
    }

    /// What is left of the block that could not be read, for judging whether it is a sound beginning.
    var rest: BlockOctets { BlockOctets(buffer: buffer, start: start, count: end - start, isBigEndian: isBigEndian) }

    func u32(at index: Int) -> UInt32 { u32(at: index, bigEndian: isBigEndian) }

    /// What is wrong with the block that begins at ``BlockReader/offset``.
    struct Fault: Error {
        var kind: TraceDamage.Kind
        var detail: String
        var said: UInt64?
        var present: UInt64?

        init(_ detail: String, kind: TraceDamage.Kind = .damaged, said: UInt64? = nil, present: UInt64? = nil) {
            self.kind = kind
            self.detail = detail
            self.said = said
            self.present = present
        }
    }

    private func u32(at index: Int, bigEndian: Bool) -> UInt32 {
        guard index >= 0, index + 4 <= end else { return 0 }
        let value = buffer.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: index, as: UInt32.self) }
        return bigEndian ? UInt32(bigEndian: value) : UInt32(littleEndian: value)
    }

    private func checkTrailer(_ trailer: UInt32, _ length: Int) throws(Fault) {
        guard Int(trailer) == length else {
            throw Fault(
                "it says \(grouped(UInt64(length))) bytes at its start and \(grouped(UInt64(trailer))) at its end",
                said: UInt64(length)
            )
        }
    }

    /// Sees to it that `count` octets are in the buffer, as far as the source has them.
    private mutating func fill(_ count: Int) {
        guard end - start < count, source != nil, failure == nil else { return }
        if start > 0 {
            // A piece of the buffer may still be held by a row's view; writing then copies it, and nobody sees a change.
            let kept = end - start
            buffer.withUnsafeMutableBytes { bytes in
                if let base = bytes.baseAddress { base.copyMemory(from: base + start, byteCount: kept) }
            }
            start = 0
            end = kept
        }
        while end < count {
            // The buffer grows only after it was filled, at most twofold: a length that lies costs no memory.
            if end == buffer.count {
                let size = max(min(buffer.count * 2, count), buffer.count + Self.pieceSize)
                buffer.reserveCapacity(size)
                buffer.append(contentsOf: repeatElement(0, count: size - buffer.count))
            }
            guard readMore() else { return }
        }
    }

    private mutating func readMore() -> Bool {
        guard let source else { return false }
        let from = end
        let result = buffer.withUnsafeMutableBytes { bytes -> Result<Int, OctetSource.Failure> in
            do throws(OctetSource.Failure) {
                return .success(try source.read(into: UnsafeMutableRawBufferPointer(rebasing: bytes[from...])))
            } catch {
                return .failure(error)
            }
        }
        switch result {
        case .success(let count):
            end += count
            return count > 0
        case .failure(let error):
            failure = error
            return false
        }
    }

    /// Passes over a block of `length` octets without holding it.
    private mutating func skip(_ length: Int) throws(Fault) {
        if length <= end - start {
            try checkTrailer(u32(at: start + length - 4), length)
            start += length
            return
        }
        guard let source else { throw short(said: UInt64(length)) }
        if let total = source.length, total >= offset, UInt64(length) > total - offset { throw short(said: UInt64(length)) }
        var left = length - 4
        var dropped = 0
        while left > 0 {
            fill(1)
            let step = min(left, end - start)
            guard step > 0 else {
                throw cut(said: UInt64(length), present: UInt64(dropped))
            }
            start += step
            left -= step
            dropped += step
        }
        fill(4)
        guard end - start >= 4 else { throw cut(said: UInt64(length), present: UInt64(dropped + end - start)) }
        try checkTrailer(u32(at: start), length)
        start += 4
    }

    private mutating func short(said: UInt64?) -> Fault {
        let present = UInt64(end - start)
        if let said, said > UInt64(TraceLimits.blockSize) { return tooLong(said) }
        return cut(said: said, present: present)
    }

    private func cut(said: UInt64?, present: UInt64) -> Fault {
        switch failure {
        case .unreadable(let number):
            return Fault(systemText(number), kind: .unreadable(errno: number), said: said, present: present)
        case .badCompression(let text): return Fault(text, said: said, present: present)
        case nil: break
        }
        let what = said.map { "the block says \(grouped($0)) bytes, \(grouped(present)) are there" }
        return Fault(
            what ?? "a block begins, \(grouped(present)) of its bytes are there", kind: .cutShort, said: said, present: present
        )
    }

    private mutating func tooLong(_ said: UInt64) -> Fault {
        var present: UInt64?
        if let source {
            if let total = source.length, total >= offset { present = total - offset }
        } else {
            present = UInt64(end - start)
        }
        let follow = present.map { "does not fit the \(grouped($0)) that follow" } ?? "is more than a block may have"
        let fits = present.map { said <= $0 } ?? false
        return Fault(
            "its length, \(grouped(said)) bytes, \(fits ? "is more than a block may have" : follow)", said: said, present: present
        )
    }
}

/// The octets of one block where they stand in a reader's buffer.
struct BlockOctets: Sendable {
    private let buffer: [UInt8]
    private let start: Int
    let count: Int
    let isBigEndian: Bool

    init(buffer: [UInt8], start: Int, count: Int, isBigEndian: Bool) {
        self.buffer = buffer
        self.start = min(max(start, 0), buffer.count)
        self.count = min(max(count, 0), buffer.count - self.start)
        self.isBigEndian = isBigEndian
    }

    init(_ octets: [UInt8]) { self.init(buffer: octets, start: 0, count: octets.count, isBigEndian: false) }

    func withFields<Result, Failure: Error>(_ body: (BlockFields) throws(Failure) -> Result) throws(Failure) -> Result {
        try buffer.withUnsafeBufferPointer { (all) throws(Failure) in
            let octets = UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: all[start..<start + count]))
            return try body(BlockFields(octets: octets, isBigEndian: isBigEndian))
        }
    }

    func slice(_ extent: Extent) -> ArraySlice<UInt8> {
        let low = min(Int(extent.start), count)
        let high = min(max(Int(extent.end), low), count)
        return buffer[start + low..<start + high]
    }

    /// The same in an array of its own.
    var detached: BlockOctets {
        BlockOctets(buffer: [UInt8](buffer[start..<start + count]), start: 0, count: count, isBigEndian: isBigEndian)
    }
}

/// A range inside a block, small because every row has several.
struct Extent: Sendable, Equatable {
    var start: UInt32 = 0
    var end: UInt32 = 0

    init() {}

    init(_ range: Range<Int>) {
        start = UInt32(clamping: range.lowerBound)
        end = UInt32(clamping: range.upperBound)
    }

    var range: Range<Int> { Int(start)..<Int(max(start, end)) }
    var isEmpty: Bool { end <= start }
    var count: Int { Int(end) - Int(start) }
}
