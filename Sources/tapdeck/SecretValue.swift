// SPDX-License-Identifier: MIT

import Glibc

/// A secret given as an option: `ask`, `env:NAME`, `file:PATH`, `-` for a line of standard input, or the value itself.
enum SecretValue {
    static func read(_ given: String?, option: String, prompt: String, _ terminal: Terminal) throws -> String {
        switch given {
        case nil, "ask"?:
            guard let answer = terminal.ask(prompt), !answer.isEmpty else {
                throw Failure.usage(
                    "\(option) is wanted and there is no terminal to ask at", "\(option) env:NAME, file:PATH, - or a value")
            }
            return answer
        case "-"?:
            guard let line = readLine(), !line.isEmpty else { throw Failure(.outside, "nothing on standard input for \(option)") }
            return line
        case .some(let text) where text.hasPrefix("env:"):
            let name = String(text.dropFirst(4))
            guard let value = getenv(name) else { throw Failure(.outside, "the variable \(name) is not set: \(option) \(text)") }
            return String(cString: value)
        case .some(let text) where text.hasPrefix("file:"):
            let octets = try FileText.read(String(text.dropFirst(5)), limit: 1 << 16)
            return String(octets.prefix { $0 != "\n" && $0 != "\r" })
        case .some(let text): return text
        }
    }
}

/// Small text files.
enum FileText {
    /// The text of a file, or of standard input for `-`; at most `limit` bytes.
    static func read(_ path: String, limit: Int = 1 << 24) throws -> String {
        String(decoding: try octets(path, limit: limit), as: UTF8.self)
    }

    /// Writes a file of results, in place of one that is there.
    static func write(_ text: String, to path: String) throws {
        let descriptor = path == "-" ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw Failure(.outside, "\(path) cannot be written: \(String(cString: strerror(errno)))") }
        Terminal.write(text, to: descriptor)
        if path != "-" { close(descriptor) }
    }

    static func octets(_ path: String, limit: Int = 1 << 28) throws -> [UInt8] {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure(.outside, "\(path) cannot be read: \(String(cString: strerror(errno)))") }
        defer { if path != "-" { close(descriptor) } }
        var octets: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = Glibc.read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure(.outside, "\(path) cannot be read: \(String(cString: strerror(errno)))") }
            if count == 0 { return octets }
            octets += piece[..<count]
            guard octets.count <= limit else { throw Failure(.outside, "\(path) is larger than \(grouped(limit)) bytes") }
        }
    }
}
