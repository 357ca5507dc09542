// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets

/// A grammar file: its name, as it appears in messages, and its text.
public struct GrammarSource: Sendable {
    public let name: String
    public let text: String
    let octets: [UInt8]
    private let lineStarts: [Int]

    public init(name: String, text: String) {
        self.name = name
        self.text = text
        octets = Array(text.utf8)
        var starts = [0]
        for (index, octet) in octets.enumerated() where octet == 0x0A { starts.append(index + 1) }
        lineStarts = starts
    }

    /// Line and column, each from 1, of a place in the text; columns count characters.
    func position(_ offset: Int) -> (line: Int, column: Int) {
        var low = 0
        var high = lineStarts.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if lineStarts[middle] <= offset { low = middle } else { high = middle }
        }
        let before = octets[lineStarts[low]..<min(max(offset, lineStarts[low]), octets.count)]
        return (low + 1, String(decoding: before, as: UTF8.self).count + 1)
    }

    /// The text of line `line`, without its end.
    func line(_ line: Int) -> String {
        guard lineStarts.indices.contains(line - 1) else { return "" }
        let start = lineStarts[line - 1]
        let end = octets[start...].firstIndex(of: 0x0A) ?? octets.count
        return String(decoding: octets[start..<end], as: UTF8.self)
    }
}

/// A stretch of a grammar file.
struct Place: Sendable, Equatable {
    var file = 0
    var start = 0
    var end = 0
}

/// One mistake, or one doubtful point, in a grammar. Equality is on the code.
public struct GrammarDiagnostic: Error, Sendable, Equatable {
    public enum Code: String, Sendable {
        case syntax, unclosedString, noOtherwise, unknownName, duplicate, unreachable, size, type, keyInText, notEncodable,
            unusedState
        case shadowed, noExample, example, tooLarge, uncited
    }

    public let code: Code
    public let severity: Severity
    /// What was expected, what was found.
    public let message: String
    /// File name, line and column, each from 1.
    public let file: String
    public let line: Int
    public let column: Int
    /// How many characters are at fault.
    public let length: Int
    /// A second place that helps: what it says, and where.
    public let related: [Related]
    let sourceLine: String

    public struct Related: Sendable, Equatable {
        public let message: String
        public let file: String
        public let line: Int
        public let column: Int
    }

    public static func == (left: Self, right: Self) -> Bool { left.code == right.code }

    /// `file:line:column: message`, the line, a caret under the place, and the second place.
    public var description: String {
        let kind = severity == .error ? "" : "\(severity.name): "
        var text = "\(file):\(line):\(column): \(kind)\(message)\n"
        let blanks = sourceLine.prefix(max(0, column - 1)).map { $0 == "\t" ? "\t" : " " }.joined()
        text += "    \(sourceLine)\n    \(blanks)\(String(repeating: "^", count: max(1, min(length, 120))))\n"
        for place in related { text += "\(place.file):\(place.line):\(place.column): note: \(place.message)\n" }
        return text
    }
}

/// Where mistakes are collected. Past the bound they are counted only, so that a hostile file cannot fill memory.
struct Diagnostics {
    let sources: [GrammarSource]
    private(set) var list: [GrammarDiagnostic] = []
    private static let most = 200

    init(sources: [GrammarSource]) { self.sources = sources }

    var hasErrors: Bool { list.contains { $0.severity == .error } }

    mutating func add(
        _ code: GrammarDiagnostic.Code, _ place: Place, _ message: String, severity: Severity = .error,
        see: (message: String, place: Place)? = nil
    ) {
        guard list.count < Self.most, sources.indices.contains(place.file) else { return }
        let source = sources[place.file]
        let (line, column) = source.position(place.start)
        var related: [GrammarDiagnostic.Related] = []
        if let see, sources.indices.contains(see.place.file) {
            let (line, column) = sources[see.place.file].position(see.place.start)
            related.append(.init(message: see.message, file: sources[see.place.file].name, line: line, column: column))
        }
        // A type that is used in many places is wrong once.
        if list.contains(where: { $0.line == line && $0.column == column && $0.file == source.name && $0.message == message }) {
            return
        }
        let text = source.line(line)
        list.append(
            GrammarDiagnostic(
                code: code, severity: severity, message: message, file: source.name, line: line, column: column,
                length: min(max(1, place.end - place.start), max(1, text.count - column + 1)), related: related,
                sourceLine: String(text.prefix(400))))
    }

    mutating func sort() {
        list.sort { ($0.file, $0.line, $0.column) < ($1.file, $1.line, $1.column) }
    }
}

/// The name among `candidates` that `name` was probably meant to be: at most a third of its letters differ.
func nearest(_ name: String, _ candidates: some Sequence<String>) -> String? {
    let wanted = name.lowercased()
    let limit = max(1, min(64, wanted.utf8.count) / 3)
    var best: (name: String, distance: Int)?
    for candidate in candidates where candidate != name {
        let distance = EditDistance.between(wanted, candidate.lowercased())
        if distance <= limit, distance < best?.distance ?? .max { best = (candidate, distance) }
    }
    return best?.name
}
