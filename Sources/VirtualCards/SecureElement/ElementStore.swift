// SPDX-License-Identifier: MIT

import CardCrypto
import Glibc
import Octets

/// The directory that keeps an element's records.
///
/// It has a `snapshot` of every record, and a `journal` of what changed since. A change is one entry of the journal, with its length and hash, on
/// the disk before the card answers the command that made it: after a crash at any moment each change is there whole or not at all. A snapshot is
/// written beside the old one and then takes its name; only then is the journal begun again, and its entries, being whole records, may be read
/// over a snapshot that has them already.
final class ElementStore: Sendable {
    let path: String
    private let lock: FileHandleOwner

    /// Opens the directory, makes it where it is not there, and keeps others out until this ends.
    init(path: String) throws(SecureElementStoreError) {
        self.path = path
        if mkdir(path, 0o700) != 0, errno != EEXIST { throw Self.systemError(path) }
        let descriptor = open(path + "/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.systemError(path) }
        lock = FileHandleOwner(descriptor)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw SecureElementStoreError(code: .inUse, path: path, detail: "another process has this secure element open")
        }
    }

    /// Every record; empty in a directory that is new.
    func load() throws(SecureElementStoreError) -> [String: [UInt8]] {
        var records: [String: [UInt8]] = [:]
        if let snapshot = try Self.read(path + "/snapshot") {
            var cursor = ByteCursor(snapshot)
            guard let entry = Self.entry(&cursor), cursor.isAtEnd else {
                throw SecureElementStoreError(code: .damaged, path: path, detail: "its snapshot is damaged")
            }
            Self.apply(entry, to: &records)
        }
        guard let journal = try Self.read(path + "/journal") else { return records }
        var cursor = ByteCursor(journal)
        // The first entry that is not whole is the one that was being written: nobody had an answer that rests on it.
        while let entry = Self.entry(&cursor) { Self.apply(entry, to: &records) }
        return records
    }

    /// Writes a snapshot and begins the journal again.
    func compact(_ records: [String: [UInt8]]) throws(SecureElementStoreError) {
        try write(Self.encode(records, removed: []), to: "/snapshot.new", flags: O_CREAT | O_TRUNC)
        guard rename(path + "/snapshot.new", path + "/snapshot") == 0 else { throw Self.systemError(path) }
        try syncFolder()
        try write([], to: "/journal", flags: O_CREAT | O_TRUNC)
        try syncFolder()
    }

    /// Adds one change to the journal; it is on the disk when this returns.
    ///
    /// - Returns: the journal's length.
    func append(_ changed: [String: [UInt8]], removed: [String]) throws(SecureElementStoreError) -> Int {
        try write(Self.encode(changed, removed: removed), to: "/journal", flags: O_CREAT | O_APPEND)
    }

    // MARK: - Octets

    /// Length of the body, the first eight octets of its SHA-256, the body: names and records, a removed one with the length FFFFFFFF.
    private static func encode(_ records: [String: [UInt8]], removed: [String]) -> [UInt8] {
        func number(_ value: Int) -> [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) } }
        var body: [UInt8] = []
        for (name, record) in records.sorted(by: { $0.key < $1.key }) {
            body += number(name.utf8.count) + Array(name.utf8) + number(record.count) + record
        }
        for name in removed.sorted() { body += number(name.utf8.count) + Array(name.utf8) + [0xFF, 0xFF, 0xFF, 0xFF] }
        return number(body.count) + hash(body) + body
    }

    private static func hash(_ body: [UInt8]) -> [UInt8] {
        Array(((try? Digest.sha256.hash(body)) ?? [UInt8](repeating: 0, count: 8)).prefix(8))
    }

    private static func entry(_ cursor: inout ByteCursor) -> [(String, [UInt8]?)]? {
        guard let length = try? cursor.u32(), let sum = try? cursor.take(8), let body = try? cursor.take(Int(length)),
            Array(sum) == hash(Array(body))
        else { return nil }
        var inner = ByteCursor(body)
        var records: [(String, [UInt8]?)] = []
        while !inner.isAtEnd {
            guard let nameLength = try? inner.u32(), let name = try? inner.take(Int(nameLength)),
                let recordLength = try? inner.u32()
            else { return nil }
            let text = String(decoding: name, as: UTF8.self)
            if recordLength == 0xFFFF_FFFF {
                records.append((text, nil))
            } else {
                guard let record = try? inner.take(Int(recordLength)) else { return nil }
                records.append((text, Array(record)))
            }
        }
        return records
    }

    private static func apply(_ entry: [(String, [UInt8]?)], to records: inout [String: [UInt8]]) {
        for (name, record) in entry { records[name] = record }
    }

    // MARK: - Files

    private static func read(_ path: String) throws(SecureElementStoreError) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw systemError(path)
        }
        let owner = FileHandleOwner(descriptor)
        var octets: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(owner.descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw systemError(path) }
            if count == 0 { return octets }
            octets += buffer[..<count]
            guard octets.count <= 64 << 20 else {
                throw SecureElementStoreError(code: .damaged, path: path, detail: "it is larger than an element can be")
            }
        }
    }

    @discardableResult
    private func write(_ octets: [UInt8], to name: String, flags: Int32) throws(SecureElementStoreError) -> Int {
        let descriptor = open(path + name, O_WRONLY | O_CLOEXEC | flags, 0o600)
        guard descriptor >= 0 else { throw Self.systemError(path + name) }
        let owner = FileHandleOwner(descriptor)
        var rest = octets[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(owner.descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Self.systemError(path + name) }
            rest = rest.dropFirst(count)
        }
        guard fdatasync(owner.descriptor) == 0 else { throw Self.systemError(path + name) }
        return Int(lseek(owner.descriptor, 0, SEEK_END))
    }

    private func syncFolder() throws(SecureElementStoreError) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.systemError(path) }
        let owner = FileHandleOwner(descriptor)
        guard fsync(owner.descriptor) == 0 else { throw Self.systemError(path) }
    }

    private static func systemError(_ path: String) -> SecureElementStoreError {
        SecureElementStoreError(code: .system, path: path, detail: String(cString: strerror(errno)))
    }
}

/// Closes a file descriptor when nobody uses it any more.
private final class FileHandleOwner: Sendable {
    let descriptor: Int32
    init(_ descriptor: Int32) { self.descriptor = descriptor }
    deinit { close(descriptor) }
}
