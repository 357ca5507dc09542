// SPDX-License-Identifier: MIT

import Glibc

/// Lines of standard input, as they come, none of them kept beyond a limit.
struct InputLines {
    private let limit: Int
    private var waiting: [UInt8] = []
    private var hasEnded = false
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    /// - Parameter limit: octets of a line; of a longer one, one more than that is given and the rest is passed over.
    init(limit: Int) { self.limit = limit }

    /// The next line without its end; nil after the last one.
    mutating func next() -> String? {
        var line: [UInt8] = []
        while true {
            let end = waiting.firstIndex(of: 0x0A)
            line += waiting[..<(end ?? waiting.count)].prefix(limit + 1 - line.count)
            if let end {
                waiting.removeFirst(end + 1)
                if line.last == 0x0D { line.removeLast() }
                return String(decoding: line, as: UTF8.self)
            }
            waiting.removeAll()
            if hasEnded { return line.isEmpty ? nil : String(decoding: line, as: UTF8.self) }
            let count = read(STDIN_FILENO, &buffer, buffer.count)
            if count > 0 {
                waiting = Array(buffer[..<count])
            } else if count == 0 || errno != EINTR {
                hasEnded = true
            }
        }
    }
}
