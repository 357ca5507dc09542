// SPDX-License-Identifier: MIT

import Glibc

/// The options of a virtual card in a file: `--options FILE`.
///
/// An option a line, as on the command line without its dashes: `pace ecdh-gm-aes128:13`, or `pace=ecdh-gm-aes128:13`; a switch stands
/// alone. `#` at the start of a line or after a blank begins a comment. What is given beside the file wins over it.
enum VirtualCardOptionsFile {
    /// Where an option stands in a file; line and column count from 1, in characters.
    struct Place: Sendable, Equatable {
        let path: String
        let line: Int
        /// Of its name.
        let column: Int
        /// Of its value; the end of the name when it has none.
        let valueColumn: Int

        func error(_ error: VirtualCardError, at column: Int) -> VirtualCardError {
            VirtualCardError(
                error.code, "\(path), line \(line), column \(column): \(error.detail)", option: error.option, line: line,
                column: column)
        }
    }

    /// The largest file of options, in octets.
    private static let limit = 1 << 20

    /// - Throws: ``VirtualCardError``: `unreadableFile`; what ``parse(_:path:of:)`` throws.
    static func load(_ path: String, of kind: VirtualCardKind) throws(VirtualCardError) -> VirtualCardOptions {
        try parse(try text(path), path: path, of: kind)
    }

    /// - Parameter path: what an error calls the file.
    /// - Throws: ``VirtualCardError`` with line and column.
    static func parse(_ text: String, path: String, of kind: VirtualCardKind) throws(VirtualCardError) -> VirtualCardOptions {
        var options = VirtualCardOptions()
        var number = 0
        for raw in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            number += 1
            guard let line = Line(raw) else { continue }
            let place = Place(path: path, line: number, column: line.column, valueColumn: line.valueColumn)
            guard line.name != "options" else {
                throw place.error(
                    VirtualCardError(.badValue, "a file of options names no other one", option: "options"), at: line.column)
            }
            do throws(VirtualCardError) {
                try options.set(line.name, line.value, of: kind, column: nil, place: place)
            } catch {
                let isAboutValue = error.code == .badValue || error.code == .missingValue
                throw place.error(error, at: isAboutValue ? line.valueColumn : line.column)
            }
        }
        return options
    }

    /// A line that holds an option.
    private struct Line {
        let name: String
        let value: String?
        let column: Int
        let valueColumn: Int

        /// Nil for a line without one.
        init?(_ raw: Substring) {
            func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }
            var text = raw
            var previous: Character = " "
            for index in raw.indices {
                if raw[index] == "#", isBlank(previous) {
                    text = raw[..<index]
                    break
                }
                previous = raw[index]
            }
            while let last = text.last, isBlank(last) { text.removeLast() }
            let option = text.drop(while: isBlank)
            guard !option.isEmpty else { return nil }
            column = text.count - option.count + 1
            let name = option.prefix { !isBlank($0) && $0 != "=" }
            self.name = String(name)
            var rest = option.dropFirst(name.count)
            let hasSign = rest.first == "="
            rest = hasSign ? rest.dropFirst() : rest.drop(while: isBlank)
            valueColumn = text.count - rest.count + 1
            value = rest.isEmpty && !hasSign ? nil : String(rest)
        }
    }

    private static func text(_ path: String) throws(VirtualCardError) -> String {
        func unreadable(_ detail: String) -> VirtualCardError {
            VirtualCardError(.unreadableFile, detail, option: "options")
        }
        guard let file = fopen(path, "rb") else {
            throw unreadable(
                errno == ENOENT ? "\(path) is not there" : "\(path) cannot be read: \(String(cString: strerror(errno)))")
        }
        defer { fclose(file) }
        var octets = [UInt8](repeating: 0, count: limit + 1)
        let count = fread(&octets, 1, octets.count, file)
        guard ferror(file) == 0 else { throw unreadable("\(path) cannot be read: \(String(cString: strerror(errno)))") }
        guard count <= limit else { throw unreadable("\(path) is longer than \(limit) bytes: no file of options") }
        guard let text = String(validating: octets.prefix(count), as: UTF8.self) else {
            throw unreadable("\(path) is no text: it does not spell UTF-8")
        }
        return text
    }
}
