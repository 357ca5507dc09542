// SPDX-License-Identifier: MIT

import CZlib

/// Makes a gzip stream (RFC 1952) of what it is given piece by piece.
///
/// Sendable because it is never shared: the one file that writes through it cannot be copied.
final class Gzip: @unchecked Sendable {
    private let stream: UnsafeMutablePointer<z_stream>
    private var isFinished = false

    /// Nil when there is no memory for it.
    init?() {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // 15 bits of window, and 16 for a gzip header instead of one of zlib.
        let result = deflateInit2_(
            stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size)
        )
        guard result == Z_OK else { return nil }
    }

    deinit {
        deflateEnd(stream)
        stream.deinitialize(count: 1)
        stream.deallocate()
    }

    /// What the stream gives out for `octets`: often nothing until more has come.
    func compress(_ octets: borrowing [UInt8]) -> [UInt8] { run(octets, Z_NO_FLUSH) }

    /// The rest of the stream. A second call gives nothing.
    func finish() -> [UInt8] {
        guard !isFinished else { return [] }
        isFinished = true
        return run([], Z_FINISH)
    }

    private func run(_ octets: borrowing [UInt8], _ flush: Int32) -> [UInt8] {
        var result: [UInt8] = []
        octets.withUnsafeBufferPointer { bytes in
            // zlib takes a pointer that it may not write through, but whose type does not say so.
            stream.pointee.next_in = UnsafeMutablePointer(mutating: bytes.baseAddress)
            stream.pointee.avail_in = UInt32(clamping: bytes.count)
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32 * 1024) { room in
                repeat {
                    stream.pointee.next_out = room.baseAddress
                    stream.pointee.avail_out = UInt32(room.count)
                    guard deflate(stream, flush) >= Z_OK else { return }
                    result.append(contentsOf: room[..<(room.count - Int(stream.pointee.avail_out))])
                } while stream.pointee.avail_out == 0
            }
        }
        return result
    }
}
