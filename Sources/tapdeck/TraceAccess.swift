// SPDX-License-Identifier: MIT

import CardCrypto
import Glibc
import GrammarLibrary
import TraceDecoding
import TraceFile

/// How commands reach a trace and its secrets, and how they say what is wrong with either.
enum TraceAccess {
    /// The secrets for a trace: those that `--secrets` names; else those inside it or beside it.
    static func secrets(
        for path: String, session: String?, embedded: [SecretRecord]?, _ arguments: Arguments
    ) throws -> (store: SecretStore, whereFound: SecretsPlace) {
        do {
            guard let given = arguments.value("--secrets") else {
                return try SecretStore.load(forTrace: path, session: session, embedded: embedded)
            }
            let store = try load(given)
            // Given secrets stand before those beside the trace, whatever state these are in.
            let found = try? SecretStore.load(forTrace: path, session: session, embedded: embedded)
            if let wanted = session ?? found?.store.session, let of = store.session, wanted.uppercased() != of.uppercased() {
                throw TraceFileError(.otherSession(wanted: wanted, found: of), path: given)
            }
            return (found.map { store.merging($0.store) } ?? store, found?.whereFound ?? .none)
        } catch let error as TraceFileError {
            throw failure(error)
        }
    }

    private static func load(_ given: String) throws -> SecretStore {
        guard given.hasPrefix("env:") else { return withKeysOfPasswords(try SecretStore.load(path: given)) }
        let name = String(given.dropFirst(4))
        guard let value = getenv(name) else { throw Failure(.outside, "the variable \(name) is not set: --secrets \(given)") }
        return withKeysOfPasswords(try SecretStore.load(text: String(cString: value), name: name))
    }

    /// What the grammars call the passwords that people write: the seed of Basic Access Control is the first half of the SHA-1 of the key
    /// of the machine readable zone (ICAO 9303-11 D.2), PACE starts from all of it, or from the digits (9303-11 4.4.3.3).
    private static func withKeysOfPasswords(_ store: SecretStore) -> SecretStore {
        var store = store
        for line in store.lines {
            let password: [UInt8]
            switch line {
            case .mrz(let text):
                guard let hash = try? Digest.sha1.hash([UInt8](text.utf8)) else { continue }
                store.add([SecretRecord(kind: .key, name: "bac.seed", octets: [UInt8](hash.prefix(16)))])
                password = hash
            case .can(let text), .pin(let text), .puk(let text): password = [UInt8](text.utf8)
            case .desfire, .scp03, .given: continue
            }
            store.add([SecretRecord(kind: .key, name: "pace.password", octets: password)])
        }
        return store
    }

    /// The grammars of the folder that `--grammar` names; nil for those built in.
    static func grammars(_ arguments: Arguments) throws -> GrammarLibrary? {
        guard let folder = arguments.value("--grammar") else { return nil }
        do { return try GrammarLibrary(folder: folder) } catch {
            throw Failure(error.code == .mistakes ? .wrongUsage : .outside, lines: error.detail)
        }
    }

    /// The status and text for an error of the file.
    static func failure(_ error: TraceFileError) -> Failure {
        switch error.code {
        case .exists:
            Failure(.wrongUsage, error.description, "\(numbered(error.path)) is free, or --force")
        case .otherSession(let wanted, let found):
            Failure(
                .outside, "\(error.path) holds the secrets of another session", "the trace is \(wanted)",
                "the secrets are \(found)")
        default:
            Failure(.outside, error.description)
        }
    }

    /// The first free name beside one that is taken: `gate-2.pcapng`.
    private static func numbered(_ path: String) -> String {
        let stem = path.hasSuffix(".pcapng") ? String(path.dropLast(7)) : path
        for number in 2...1_000 where access("\(stem)-\(number).pcapng", F_OK) != 0 { return "\(stem)-\(number).pcapng" }
        return "another name"
    }

    /// Says where a file stops being readable.
    ///
    /// - Returns: the status: a file that ends inside its last record is what a killed recorder leaves, and fine.
    static func report(_ damage: TraceDamage?, of path: String, _ terminal: Terminal) -> ExitStatus {
        guard let damage else { return .fine }
        let place = "in block \(grouped(UInt64(clamping: damage.block))), at byte \(grouped(damage.offset))"
        let rows = damage.rows == 1 ? "the row before it is" : "the \(grouped(UInt64(clamping: damage.rows))) rows before it are"
        switch damage.kind {
        case .cutShort:
            let whole = path.hasSuffix(".pcapng") ? "\(path.dropLast(7))-whole.pcapng" : "\(path)-whole"
            terminal.error([
                "\(path) is cut short \(place)", "\(damage.detail); \(rows) whole",
                "this is what a killed recorder or a broken copy leaves",
                "editcap \(path) \(whole)",
            ])
            return .fine
        case .damaged:
            terminal.error([
                "\(path) is damaged \(place)", "trace: \(damage.detail)",
                "\(rows) whole and shown; nothing after it can be trusted",
            ])
            return .outside
        case .unreadable:
            terminal.error(["\(path) cannot be read on \(place)", damage.detail, "\(rows) whole and shown"])
            return .outside
        }
    }
}

/// `18204` as `18,204`.
func grouped(_ number: some BinaryInteger) -> String {
    var text = ""
    let digits = String(number)
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
        text.append(digit)
    }
    return text
}

/// `9 kB`, `1.2 MB`; bytes below a thousand.
func size(_ bytes: UInt64) -> String {
    switch bytes {
    case ..<1_000: "\(bytes) bytes"
    case ..<1_000_000: "\((bytes + 500) / 1_000) kB"
    default: "\(SummaryLine.decimal((bytes + 50_000) / 100_000, places: 1)) MB"
    }
}
