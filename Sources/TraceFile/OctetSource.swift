// SPDX-License-Identifier: MIT

import Glibc

/// Where the octets of a capture come from, in order: a file, or a compressed file.
///
/// A class because it owns a descriptor. Sendable because it is never shared: only the one reader that made it, which
/// cannot be copied, reaches it.
final class OctetSource: @unchecked Sendable {
    enum Failure: Error, Equatable {
        case unreadable(errno: Int32)
        case badCompression(String)
    }

    let path: String
    /// The length of the file in octets, where it is a plain file that is read as it is.
    private(set) var length: UInt64?
    private let descriptor: Int32
    private var gunzip: Gunzip?

    init(path: String) throws(TraceFileError) {
        self.path = path
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw openError(path, errno, "read") }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw TraceFileError(.cannotRead(errno: errno), path: path) }
        let format = status.st_mode & S_IFMT
        guard format != S_IFDIR else { throw TraceFileError(.isDirectory, path: path) }
        if format == S_IFREG { length = UInt64(clamping: status.st_size) }
    }

    deinit {
        if descriptor >= 0 { _ = close(descriptor) }
    }

    /// Treats what follows as gzip, of which `head` was already read.
    func decompress(head: [UInt8]) throws(TraceFileError) {
        guard let stream = Gunzip(head: head) else { throw TraceFileError(.cannotRead(errno: ENOMEM), path: path) }
        gunzip = stream
        length = nil
    }

    /// Fills part of `space`; 0 is the end.
    func read(into space: UnsafeMutableRawBufferPointer) throws(Failure) -> Int {
        guard let gunzip else { return try readRaw(into: space) }
        return try gunzip.read(into: space) { (raw) throws(Failure) in try self.readRaw(into: raw) }
    }

    /// Everything that is left, when it is at most `limit` octets.
    func readAll(limit: Int) throws(TraceFileError) -> [UInt8] {
        var octets: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let result = piece.withUnsafeMutableBytes { bytes -> Result<Int, Failure> in
                do throws(Failure) { return .success(try read(into: bytes)) } catch { return .failure(error) }
            }
            switch result {
            case .success(0): return octets
            case .success(let count): octets += piece[..<count]
            case .failure(.unreadable(let number)): throw TraceFileError(.cannotRead(errno: number), path: path)
            case .failure(.badCompression(let text)): throw TraceFileError(.cannotRead(errno: EIO), path: path, detail: text)
            }
            guard octets.count <= limit else {
                throw TraceFileError(.tooLarge, path: path, detail: "more than \(grouped(UInt64(limit))) bytes")
            }
        }
    }

    private func readRaw(into space: UnsafeMutableRawBufferPointer) throws(Failure) -> Int {
        guard let base = space.baseAddress, space.count > 0 else { return 0 }
        while true {
            let count = Glibc.read(descriptor, base, space.count)
            if count >= 0 { return count }
            if errno != EINTR { throw .unreadable(errno: errno) }
        }
    }
}
