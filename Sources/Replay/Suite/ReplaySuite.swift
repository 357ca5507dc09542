// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import Octets

/// Traces that are replayed together, with what is expected of each.
///
/// A folder is a suite: every `*.pcapng` and `*.pcapng.gz` in it and below, in order of name, with the exceptions of its
/// `suite.txt`. A trace that is given by itself expects nothing but to be the same.
public struct ReplaySuite: Sendable {
    /// One trace of a suite.
    public struct Item: Sendable, Equatable {
        public var path: String
        /// The path below the suite's folder; as it was given for a trace that was given by itself. It says what the test is.
        public var name: String
        /// The suite's folder; empty for a trace that was given by itself.
        public var suite: String
        /// What `suite.txt` says of it.
        public var expectation: Expectation?
        public var mode: ReplayMode?
    }

    public enum Expectation: Sendable, Equatable {
        /// It differs, for this reason; that it is the same is an error.
        case fails(String)
        /// It is not replayed, for this reason.
        case skip(String)
    }

    public private(set) var items: [Item] = []
    /// The folders that were given.
    public private(set) var folders: [String] = []

    /// Finds the traces of `paths`: files as they are, folders as suites.
    ///
    /// - Throws: ``ReplaySuiteError``: a folder that cannot be read or holds no trace, and each line of a `suite.txt` that cannot be
    ///   understood or matches no trace.
    public init(_ paths: [String]) throws(ReplaySuiteError) {
        for path in paths {
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
                items.append(Item(path: path, name: path, suite: ""))
                continue
            }
            var folder = path
            while folder.count > 1, folder.hasSuffix("/") { folder.removeLast() }
            folders.append(folder)
            items += try Self.traces(of: folder)
        }
    }

    private static func traces(of folder: String) throws(ReplaySuiteError) -> [Item] {
        var names: [String] = []
        var rules: [(place: String, rule: SuiteRule)] = []
        try walk(folder, "", 0, &names, &rules)
        guard !names.isEmpty else { throw ReplaySuiteError(.empty, "\(folder) holds no trace") }
        var items = names.sorted().map { Item(path: "\(folder)/\($0)", name: $0, suite: folder) }
        for (place, rule) in rules {
            guard let index = items.firstIndex(where: { $0.name == rule.name }) else {
                throw ReplaySuiteError(.stale, "\(place): no trace is called \(rule.name)\(nearest(rule.name, names))")
            }
            switch rule.kind {
            case .fails(let reason): items[index].expectation = .fails(reason)
            case .skip(let reason): items[index].expectation = .skip(reason)
            case .mode(let mode): items[index].mode = mode
            }
        }
        return items
    }

    /// Files of secrets have another ending; links to folders are not followed, since they may lead back.
    private static func walk(
        _ root: String, _ below: String, _ depth: Int, _ names: inout [String], _ rules: inout [(place: String, rule: SuiteRule)]
    ) throws(ReplaySuiteError) {
        let folder = below.isEmpty ? root : "\(root)/\(below)"
        let entries: [String]
        do { entries = try FileManager.default.contentsOfDirectory(atPath: folder) } catch {
            throw ReplaySuiteError(.unreadable, "\(folder) cannot be read")
        }
        for entry in entries.sorted() where !entry.hasPrefix(".") {
            let name = below.isEmpty ? entry : "\(below)/\(entry)"
            let path = "\(root)/\(name)"
            if entry == "suite.txt" {
                guard let octets = FileManager.default.contents(atPath: path), octets.count <= longestList else {
                    throw ReplaySuiteError(.unreadable, "\(path) cannot be read")
                }
                rules += try SuiteRule.parse(String(decoding: octets, as: UTF8.self), path: path, below: below)
            } else if entry.hasSuffix(".pcapng") || entry.hasSuffix(".pcapng.gz") {
                names.append(name)
            } else if depth < deepest, isFolder(path) {
                try walk(root, name, depth + 1, &names, &rules)
            }
        }
    }

    private static func isFolder(_ path: String) -> Bool {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return attributes?[.type] as? FileAttributeType == .typeDirectory
    }

    private static func nearest(_ name: String, _ names: [String]) -> String {
        let best = names.map { ($0, EditDistance.between(name, $0)) }.min { $0.1 < $1.1 }
        guard let (nearest, edits) = best, edits <= max(2, name.count / 3) else { return "" }
        return "; did you mean \(nearest)"
    }

    private static let longestList = 1 << 20
    private static let deepest = 16

    // MARK: - Parts of a suite

    /// Keeps the traces whose name contains `text`.
    public mutating func keep(containing text: String) { items.removeAll { !$0.name.contains(text) } }

    /// Keeps one of `count` parts, from 1. Which part a trace is in depends on its name alone, so that machines agree.
    public mutating func keep(shard number: Int, of count: Int) {
        guard count > 0 else { return }
        items.removeAll { Self.shard(of: $0.name, count) != number }
    }

    /// The part of `count` that a name belongs to, from 1: the first eight octets of its SHA-256, modulo.
    public static func shard(of name: String, _ count: Int) -> Int {
        guard count > 0, let hash = try? Digest.sha256.hash(Array(name.utf8)) else { return 1 }
        let number = hash.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int(number % UInt64(count)) + 1
    }
}

/// A line of `suite.txt`.
struct SuiteRule: Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        case fails(String)
        case skip(String)
        case mode(ReplayMode)
    }

    var name: String
    var kind: Kind

    /// - Parameter below: the folder of the list below the suite's, whose names it uses.
    static func parse(
        _ text: String, path: String, below: String = ""
    ) throws(ReplaySuiteError) -> [(place: String, rule: SuiteRule)] {
        var rules: [(place: String, rule: SuiteRule)] = []
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" || $0 == "\r" }).map(String.init)
            guard let first = words.first, !first.hasPrefix("#") else { continue }
            let place = "\(path):\(number + 1)"
            func mistake(_ text: String) -> ReplaySuiteError { ReplaySuiteError(.notUnderstood, "\(place): \(text)") }
            guard words.count >= 3 else {
                throw mistake(first == "mode" ? "mode NAME bytes, fields or resealed" : "\(first) NAME and why")
            }
            let name = below.isEmpty ? words[1] : "\(below)/\(words[1])"
            let kind: Kind
            switch first {
            case "fails": kind = .fails(words.dropFirst(2).joined(separator: " "))
            case "skip": kind = .skip(words.dropFirst(2).joined(separator: " "))
            case "mode":
                guard words.count == 3, let mode = ReplayMode(rawValue: words[2]) else {
                    throw mistake("mode NAME bytes, fields or resealed")
                }
                kind = .mode(mode)
            default: throw mistake("a line begins with fails, skip or mode, not \(first)")
            }
            rules.append((place, SuiteRule(name: name, kind: kind)))
        }
        return rules
    }
}

/// Why a suite cannot be run. Equality is on the code.
public struct ReplaySuiteError: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Code: String, Sendable {
        case unreadable
        /// No trace is in the folder.
        case empty
        /// A line of `suite.txt` is none of those there are.
        case notUnderstood
        /// A line of `suite.txt` matches no trace.
        case stale
    }

    public let code: Code
    public let detail: String

    init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    public static func == (left: Self, right: Self) -> Bool { left.code == right.code }
    public var description: String { detail }
}
