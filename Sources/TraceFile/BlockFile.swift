// SPDX-License-Identifier: MIT

import Glibc

/// `write(2)`; tests put one in its place that fails.
typealias SystemWrite = @Sendable (Int32, UnsafeRawPointer?, Int) -> Int

/// A file that only grows, block by block: after a failure it ends where the last whole block ended.
///
/// A name that ends with `.gz` is compressed; such a file is good only once it was closed.
struct BlockFile: ~Copyable {
    let path: String
    private(set) var byteCount: UInt64 = 0
    private var descriptor: Int32
    private let put: SystemWrite
    /// For a name that ends with `.gz`.
    private let gzip: Gzip?

    /// Creates the file, readable by its owner alone.
    init(creating path: String, replacing: Bool, put: @escaping SystemWrite = Glibc.write) throws(TraceFileError) {
        self.path = path
        self.put = put
        // A file that is replaced is a new one, so that nobody who has the old one open reads on in the new.
        if replacing, unlink(path) != 0, errno != ENOENT { throw openError(path, errno, "written") }
        let opened = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard opened >= 0 else { throw openError(path, errno, "written") }
        descriptor = opened
        gzip = path.hasSuffix(".gz") ? Gzip() : nil
    }

    deinit {
        if descriptor >= 0 { _ = Glibc.close(descriptor) }
    }

    /// Appends `octets` whole or not at all. `rows` is for the error.
    mutating func append(_ octets: borrowing [UInt8], rows: Int) throws(TraceFileError) {
        guard descriptor >= 0 else { throw TraceFileError(.closed, path: path) }
        if let gzip {
            try writeCompressed(gzip.compress(octets), rows: rows)
        } else {
            try writeAll(octets, rows: rows)
        }
    }

    private mutating func writeCompressed(_ octets: [UInt8], rows: Int) throws(TraceFileError) {
        do throws(TraceFileError) {
            try writeAll(octets, rows: rows)
        } catch {
            // What the compressor has swallowed cannot be taken back: the stream ends here.
            _ = Glibc.close(descriptor)
            descriptor = -1
            throw error
        }
    }

    private mutating func writeAll(_ octets: borrowing [UInt8], rows: Int) throws(TraceFileError) {
        var done = 0
        let count = octets.count
        while done < count {
            let written = octets.withUnsafeBytes { bytes in
                bytes.baseAddress.map { put(descriptor, $0 + done, count - done) } ?? 0
            }
            if written > 0 {
                done += written
            } else if written == 0 || errno != EINTR {
                throw takeBack(written == 0 ? ENOSPC : errno, rows: rows)
            }
        }
        byteCount += UInt64(count)
    }

    /// Closes the file. A second call does nothing.
    mutating func close(rows: Int) throws(TraceFileError) {
        guard descriptor >= 0 else { return }
        if let gzip { try writeCompressed(gzip.finish(), rows: rows) }
        let result = Glibc.close(descriptor)
        descriptor = -1
        // Network file systems tell of a full disk only now.
        if result != 0, errno != EINTR { throw failure(errno, rows: rows) }
    }

    private func takeBack(_ number: Int32, rows: Int) -> TraceFileError {
        _ = ftruncate(descriptor, off_t(byteCount))
        _ = lseek(descriptor, off_t(byteCount), SEEK_SET)
        return failure(number, rows: rows)
    }

    private func failure(_ number: Int32, rows: Int) -> TraceFileError {
        let isFull = number == ENOSPC || number == EDQUOT || number == EFBIG
        return TraceFileError(
            isFull ? .diskFull(bytes: byteCount, rows: rows) : .cannotWrite(errno: number, bytes: byteCount, rows: rows),
            path: path
        )
    }
}
