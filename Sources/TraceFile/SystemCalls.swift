// SPDX-License-Identifier: MIT

import Glibc
import Octets

/// What the system says about `number`, an `errno`.
func systemText(_ number: Int32) -> String {
    strerror(number).map { String(cString: $0) } ?? "error \(number)"
}

func spelled(_ octets: [UInt8]) -> String { Hex.encode(octets) }

/// The error for a file that could not be opened; `verb` completes "may not be".
func openError(_ path: String, _ number: Int32, _ verb: String) -> TraceFileError {
    switch number {
    case EEXIST: TraceFileError(.exists, path: path)
    case ENOENT, ENOTDIR: TraceFileError(.notFound, path: path)
    case EACCES, EPERM, EROFS: TraceFileError(.noPermission, path: path, detail: verb)
    case EISDIR: TraceFileError(.isDirectory, path: path)
    default:
        verb == "read"
            ? TraceFileError(.cannotRead(errno: number), path: path)
            : TraceFileError(.cannotWrite(errno: number, bytes: 0, rows: 0), path: path)
    }
}
