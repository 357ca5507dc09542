// SPDX-License-Identifier: MIT

import Glibc
import Octets

/// Standard output for results, standard error for everything else. The text is the same for a terminal and a pipe; only
/// colour, the progress line and prompts depend on a terminal.
struct Terminal: Sendable {
    /// Nothing but results and errors.
    var isQuiet = false

    /// Whether questions can be asked and answered.
    var canAsk: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }
    var errorIsTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    /// A line of the result.
    func result(_ line: String) { Terminal.write(Terminal.visible(line) + "\n", to: STDOUT_FILENO) }

    /// Lines of the result.
    func result(_ text: borrowing TextBuffer) {
        guard Terminal.mayHaveControl(text.octets) else { return Terminal.write(text.octets, to: STDOUT_FILENO) }
        Terminal.write(Terminal.visible(String(decoding: text.octets, as: UTF8.self)), to: STDOUT_FILENO)
    }

    /// A heading, a closing line, a note.
    func note(_ line: String) {
        if !isQuiet { Terminal.write(Terminal.visible(line) + "\n", to: STDERR_FILENO) }
    }

    /// An error: what is not so first, facts and remedies in the lines after it.
    func error(_ lines: [String]) {
        guard let first = lines.first else { return }
        Terminal.write("tapdeck: \(Terminal.visible(first))\n", to: STDERR_FILENO)
        for line in lines.dropFirst() { Terminal.write("  \(Terminal.visible(line))\n", to: STDERR_FILENO) }
    }

    /// One stage of long work. At a terminal the line of the same stage is redrawn; elsewhere a finished stage is one line.
    func stage(_ line: String, isFinished: Bool) {
        if isQuiet { return }
        let line = Terminal.visible(line)
        if errorIsTerminal {
            Terminal.write("\r\u{1B}[K\(line)\(isFinished ? "\n" : "")", to: STDERR_FILENO)
        } else if isFinished {
            Terminal.write(line + "\n", to: STDERR_FILENO)
        }
    }

    /// Asks for a secret; what is typed is not shown.
    func ask(_ prompt: String) -> String? {
        guard canAsk else { return nil }
        Terminal.write(prompt, to: STDERR_FILENO)
        var settings = termios()
        tcgetattr(STDIN_FILENO, &settings)
        let before = settings
        settings.c_lflag &= ~tcflag_t(ECHO)
        tcsetattr(STDIN_FILENO, TCSANOW, &settings)
        defer {
            var restored = before
            tcsetattr(STDIN_FILENO, TCSANOW, &restored)
            Terminal.write("\n", to: STDERR_FILENO)
        }
        return readLine()
    }

    /// Control characters as `\u001B`, which means the same inside a JSON text: what a card or a file says must not steer the terminal.
    static func visible(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        return text.unicodeScalars.reduce(into: "") { shown, scalar in
            if isControl(scalar) {
                shown += "\\u00\(Hex.encode([UInt8(truncatingIfNeeded: scalar.value)]))"
            } else {
                shown.unicodeScalars.append(scalar)
            }
        }
    }

    /// C0 but for tab and the end of a line, DEL, C1 (ISO/IEC 6429).
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 && scalar != "\t" && scalar != "\n" || (0x7F...0x9F).contains(scalar.value)
    }

    /// False where no octet can belong to a control character. Without a way out of the loop, which makes it one of vectors: long
    /// results must not wait for it.
    private static func mayHaveControl(_ octets: [UInt8]) -> Bool {
        octets.withUnsafeBufferPointer { octets in
            var found: UInt8 = 0
            for octet in octets {
                let isAllowed: UInt8 = octet == 0x0A || octet == 0x09 ? 1 : 0
                let isLow: UInt8 = octet < 0x20 ? 1 : 0
                // C1 is C2 80 to C2 9F in UTF-8.
                let isOther: UInt8 = octet == 0x7F || octet == 0xC2 ? 1 : 0
                found |= isLow & (isAllowed ^ 1) | isOther
            }
            return found != 0
        }
    }

    /// Writes all of `text`; a reader that has gone away ends it.
    static func write(_ text: String, to descriptor: Int32) {
        var text = text
        text.withUTF8 { write($0, to: descriptor) }
    }

    static func write(_ octets: [UInt8], to descriptor: Int32) {
        octets.withUnsafeBufferPointer { write($0, to: descriptor) }
    }

    private static func write(_ buffer: UnsafeBufferPointer<UInt8>, to descriptor: Int32) {
        var written = 0
        while written < buffer.count {
            let count = Glibc.write(descriptor, buffer.baseAddress?.advanced(by: written), buffer.count - written)
            if count < 0, errno == EINTR { continue }
            if count <= 0 { return }
            written += count
        }
    }
}

/// Exit statuses of every command.
enum ExitStatus: Int32, Sendable, Comparable {
    case fine = 0
    /// The thing asked about is not so.
    case notSo = 1
    case wrongUsage = 2
    /// The outside failed.
    case outside = 3
    /// A program that was to be started cannot be run, or is not there; as env(1) says it.
    case cannotRun = 126
    case notFound = 127
    case interrupted = 130

    /// Of several results the worst counts: 3 before 1.
    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Why a command ends early: its status and the lines that say so.
struct Failure: Error {
    var status: ExitStatus
    var lines: [String]

    init(_ status: ExitStatus, _ lines: String...) {
        self.status = status
        self.lines = lines
    }

    init(_ status: ExitStatus, lines: [String]) {
        self.status = status
        self.lines = lines
    }

    static func usage(_ lines: String...) -> Failure { Failure(.wrongUsage, lines: lines) }
}
