// SPDX-License-Identifier: MIT

public import Octets

/// Why a trace or a file of secrets could not be made, written or read. Equality is on the code.
///
/// Damage inside a file is no error of this kind: see ``TraceDamage``.
public struct TraceFileError: CodedError {
    public enum Code: Sendable, Equatable {
        /// The file is there, and replacing it was not asked for.
        case exists
        case notFound
        case noPermission
        case isDirectory
        /// The file has no octets.
        case empty
        /// The file begins with something else. `guess` names what, where that is known: `JPEG`.
        case notACapture(firstBytes: [UInt8], guess: String?)
        /// The system could not read. `errno` is its reason.
        case cannotRead(errno: Int32)
        /// The system could not write. What is on disk ends with a whole block.
        case cannotWrite(errno: Int32, bytes: UInt64, rows: Int)
        /// No room was left. What is on disk ends with a whole block.
        case diskFull(bytes: UInt64, rows: Int)
        /// The writer was closed.
        case closed
        /// A row names an interface that was not declared.
        case noSuchInterface(Int)
        /// More than a block may hold: ``TraceLimits``.
        case tooLarge
        /// The file of secrets belongs to another session.
        case otherSession(wanted: String, found: String)
        /// A file of another program in which there is nothing for a trace. The detail says what there is.
        case nothingToImport
        /// A line of secrets that nothing can be made of. Line and column count from 1.
        case malformedSecret(line: Int, column: Int)
    }

    public let code: Code
    /// The file, as it was named; for text of a variable, the variable.
    public let path: String
    /// What more is known, for people; empty where the code says it all.
    public let detail: String

    public init(_ code: Code, path: String, detail: String = "") {
        self.code = code
        self.path = path
        self.detail = detail
    }

    public var description: String {
        switch code {
        case .exists: "\(path) exists; a capture is never overwritten"
        case .notFound: "\(path) is not there"
        case .noPermission: "\(path) may not be \(detail.isEmpty ? "opened" : detail)"
        case .isDirectory: "\(path) is a directory"
        case .empty: "\(path) is empty"
        case .notACapture(let firstBytes, let guess):
            "\(path) is not a capture: it starts with \(spelled(firstBytes))\(guess.map { " (\($0))" } ?? "")"
        case .cannotRead(let number): "\(path) cannot be read: \(systemText(number))"
        case .cannotWrite(let number, let bytes, let rows):
            "\(path) cannot be written: \(systemText(number)); \(kept(bytes, rows))"
        case .diskFull(let bytes, let rows): "disk full after \(grouped(bytes)) bytes; \(rowsOnDisk(rows))"
        case .closed: "\(path) was closed"
        case .noSuchInterface(let index): "\(path) has no interface \(index)"
        case .tooLarge: "\(path): \(detail)"
        case .otherSession(let wanted, let found): "\(path) belongs to session \(found), not to \(wanted)"
        case .nothingToImport: "nothing to import in \(path): \(detail)"
        case .malformedSecret(let line, let column): "\(path), line \(line), column \(column): \(detail)"
        }
    }

    private func kept(_ bytes: UInt64, _ rows: Int) -> String { "\(grouped(bytes)) bytes, \(rowsOnDisk(rows))" }

    private func rowsOnDisk(_ rows: Int) -> String {
        rows == 1 ? "1 row is on disk and readable" : "\(grouped(UInt64(clamping: rows))) rows are on disk and readable"
    }
}

/// Sizes that format 1 keeps to.
public enum TraceLimits {
    /// The largest body of one row in octets; a larger one is cut into parts of this size.
    public static let partSize = 200_000
    /// The largest body that is cut into parts: what a reader keeps of one row is bounded by it.
    public static let bodySize = 16_000_000
    /// The largest block that is read or written: libpcap refuses more.
    public static let blockSize = 16 * 1024 * 1024
    /// How many interfaces a file may have: secrets name them in 16 bits.
    public static let interfaces = 65_536
}

/// `18204` as `18,204`.
func grouped(_ number: UInt64) -> String {
    var text: [UInt8] = []
    for (place, digit) in String(number).utf8.reversed().enumerated() {
        if place > 0, place % 3 == 0 { text.append(0x2C) }
        text.append(digit)
    }
    return String(decoding: text.reversed(), as: UTF8.self)
}
