// SPDX-License-Identifier: MIT

import Glibc

/// Where the secrets of a trace were found.
public enum SecretsPlace: Sendable, Equatable {
    case none
    /// In blocks of the trace itself.
    case inside
    /// In a side file, by its name or by its session.
    case beside(path: String)
}

extension SecretStore {
    /// How many side files of one folder are looked into for a session.
    private static let searchLimit = 10_000
    /// The largest text of secrets that is read, in octets.
    private static let textLimit = 1 << 20

    /// The secrets of a trace: those inside it; else `X.secrets` beside `X.pcapng` or `X.pcapng.gz`; else the `*.secrets`
    /// of the same folder that bears the trace's session.
    ///
    /// - Parameters:
    ///   - session: the trace's session; nil takes it from the file.
    ///   - embedded: the secrets inside the trace, when they were read already; nil reads them.
    /// - Throws: ``TraceFileError``: `otherSession` for a side file with the right name and another session.
    public static func load(
        forTrace path: String, session: String? = nil, embedded: [SecretRecord]? = nil
    ) throws(TraceFileError) -> (store: SecretStore, whereFound: SecretsPlace) {
        var session = session
        var inside = embedded
        if inside == nil || session == nil {
            let trace = try secretsInside(path)
            inside = inside ?? trace.records
            session = session ?? trace.session
        }
        if let inside, !inside.isEmpty { return (SecretStore(inside, session: session), .inside) }

        let named = sidePath(forTrace: path)
        if access(named, F_OK) == 0 {
            let store = try load(path: named)
            if let session, let found = store.session, !isSame(session, found) {
                throw TraceFileError(.otherSession(wanted: session, found: found), path: named)
            }
            return (store, .beside(path: named))
        }
        if let session, let found = sideFile(inFolderOf: path, session: session) {
            return (try binary(found), .beside(path: found))
        }
        return (SecretStore(session: session), .none)
    }

    /// The side file's name: `X.secrets` for `X.pcapng` and `X.pcapng.gz`.
    public static func sidePath(forTrace path: String) -> String {
        var stem = path[...]
        for ending in [".gz", ".pcapng"] where stem.hasSuffix(ending) { stem = stem.dropLast(ending.count) }
        return "\(stem).secrets"
    }

    /// Reads a file of secrets: blocks, or text that has a secret a line. Of a damaged one everything before the damage
    /// is kept, and the store's ``damage`` says where that is.
    ///
    /// - Throws: ``TraceFileError``; for text `malformedSecret` with line and column.
    public static func load(path: String) throws(TraceFileError) -> SecretStore {
        do throws(TraceFileError) {
            return try binary(path)
        } catch {
            guard case .notACapture = error.code else { throw error }
        }
        return try load(text: text(of: path), name: path)
    }

    /// Reads the text form. `name` is what an error calls it.
    public static func load(text: String, name: String = "secrets") throws(TraceFileError) -> SecretStore {
        SecretStore(lines: try SecretLine.parse(text, name: name))
    }

    private static func isSame(_ left: String, _ right: String) -> Bool { left.uppercased() == right.uppercased() }

    private static func binary(_ path: String) throws(TraceFileError) -> SecretStore {
        let found = try secretsInside(path)
        var store = SecretStore(found.records, session: found.session)
        store.damage = found.damage
        return store
    }

    private static func secretsInside(
        _ path: String
    ) throws(TraceFileError) -> (records: [SecretRecord], session: String?, damage: TraceDamage?) {
        var reader = try TraceReader(path: path)
        let records = reader.secrets()
        return (records, reader.header?.session, reader.damage)
    }

    private static func sideFile(inFolderOf path: String, session: String) -> String? {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        guard let directory = opendir(folder.isEmpty ? "." : folder) else { return nil }
        defer { closedir(directory) }
        var names: [String] = []
        while names.count < searchLimit, let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            if name.hasSuffix(".secrets") { names.append(name) }
        }
        return names.sorted().map { folder + $0 }.first { candidate in
            guard var reader = try? TraceReader(path: candidate) else { return false }
            _ = reader.next()
            return reader.header?.session.map { isSame($0, session) } ?? false
        }
    }

    private static func text(of path: String) throws(TraceFileError) -> String {
        let octets = try OctetSource(path: path).readAll(limit: textLimit)
        if let place = octets.firstIndex(where: { $0 == 0 }) {
            throw TraceFileError(
                .notACapture(firstBytes: [UInt8](octets.prefix(4)), guess: nil), path: path, detail: "byte \(place) is no text")
        }
        return String(decoding: octets, as: UTF8.self)
    }
}

extension TraceReader {
    /// Reads to the end and gives the secrets that were met.
    public mutating func secrets() -> [SecretRecord] {
        var records: [SecretRecord] = []
        while let found = pull() {
            if case .secrets(let more) = found { records += more }
        }
        return records
    }
}
