// SPDX-License-Identifier: MIT

import CZlib

/// A gzip stream (RFC 1952) opened piece by piece; several members follow each other without a seam.
///
/// Sendable because it is never shared: only the source that made it reaches it.
final class Gunzip: @unchecked Sendable {
    private static let pieceSize = 64 * 1024

    private let stream: UnsafeMutablePointer<z_stream>
    private let input: UnsafeMutableRawBufferPointer
    private var isInMember = true
    private var isAtEnd = false

    /// Nil when there is no memory for it. `head` is what was read of the file already.
    init?(head: [UInt8]) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        input = .allocate(byteCount: max(Self.pieceSize, head.count), alignment: 16)
        input.copyBytes(from: head)
        stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_in = UInt32(truncatingIfNeeded: head.count)
        // 15 bits of window, and 16 for "gzip and nothing else".
        let result = inflateInit2_(stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard result == Z_OK else { return nil }
    }

    deinit {
        inflateEnd(stream)
        stream.deinitialize(count: 1)
        stream.deallocate()
        input.deallocate()
    }

    func read(
        into space: UnsafeMutableRawBufferPointer,
        more: (UnsafeMutableRawBufferPointer) throws(OctetSource.Failure) -> Int
    ) throws(OctetSource.Failure) -> Int {
        guard !isAtEnd, let base = space.baseAddress, space.count > 0 else { return 0 }
        let room = min(space.count, 1 << 30)
        stream.pointee.next_out = base.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(truncatingIfNeeded: room)
        while stream.pointee.avail_out == UInt32(truncatingIfNeeded: room) {
            if stream.pointee.avail_in == 0 {
                let count = try more(input)
                if count == 0 {
                    isAtEnd = true
                    if isInMember { throw .badCompression("the compressed file is cut short") }
                    return 0
                }
                stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
                stream.pointee.avail_in = UInt32(truncatingIfNeeded: count)
            }
            if !isInMember {
                guard inflateReset(stream) == Z_OK else { throw .badCompression("the compressed file is damaged") }
                isInMember = true
            }
            switch inflate(stream, Z_NO_FLUSH) {
            case Z_OK: break
            case Z_STREAM_END: isInMember = false
            case Z_BUF_ERROR where stream.pointee.avail_in == 0: break
            default:
                isAtEnd = true
                throw .badCompression("the compressed file is damaged")
            }
        }
        return room - Int(stream.pointee.avail_out)
    }
}
