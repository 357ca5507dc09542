// SPDX-License-Identifier: MIT

import CardSockets
import Glibc
import Replay

/// `replay FILE -- PROGRAM`: the recorded card for a program that is not changed, through the reader service's own socket.
enum ProgramReplay {
    static let details = [
        "With -- PROGRAM the recorded card is for that program: PCSCLITE_CSOCK_NAME leads",
        "it to a reader service of its own, with the recorded readers and no others. Its",
        "output passes; one line, or where the two part, follows on standard error. The",
        "status is never the program's; 126 and 127 when it cannot be run. A program draws",
        "its own random bytes: without --mode it is compared in fields, or resealed where",
        "the answers are bound to them.",
    ]

    static func run(_ program: [String], _ arguments: Arguments, _ terminal: Terminal) throws -> ExitStatus {
        guard !program.isEmpty else { throw Failure.usage("-- needs a program: tapdeck replay FILE -- PROGRAM") }
        guard arguments.operands.count == 1, let path = arguments.operands.first else {
            throw Failure.usage("replay -- PROGRAM takes one trace: tapdeck replay FILE -- \(program.joined(separator: " "))")
        }
        let served = try ServedTrace(path, .program(program.joined(separator: " ")), arguments, terminal)
        let cards = try served.cards(.stays)
        served.caution(cards, terminal)
        let folder = try PrivateFolder()
        defer { folder.remove() }
        let socket = "\(folder.path)/pcscd.comm"
        let service = ServiceSocket(
            readers: ServedTrace.readers(of: cards), path: socket, options: try CardServing.serviceOptions(arguments))
        do { try service.start() } catch { throw CardServing.failure(error, path: socket) }
        defer { service.stop() }

        let child = try ProgramRun(program, variables: ["PCSCLITE_CSOCK_NAME": socket])
        let end = Interruption.calling({ child.interrupt() }, during: { child.wait() })
        var worst = ExitStatus.fine
        for card in cards {
            let report = card.report()
            // Not a note: it is the result, and stands on standard error because standard output is the program's.
            for line in served.verdict(report) { Terminal.write("\(Terminal.visible(line))\n", to: STDERR_FILENO) }
            worst = max(worst, ServedTrace.status(of: report))
        }
        terminal.note("program  \(program[0]) \(end)")
        return Interruption.wasAsked || end == .signal(SIGINT) ? .interrupted : worst
    }
}

/// A folder of mode 0700 for a socket whose path is short enough.
struct PrivateFolder {
    let path: String

    init() throws {
        let wanted = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        // sun_path has 107 characters.
        for base in [wanted, "/tmp"] where base.hasPrefix("/") && base.utf8.count < 70 {
            var template = Array("\(base)/tapdeck-XXXXXX".utf8CString)
            if let made = mkdtemp(&template) {
                path = String(cString: made)
                return
            }
        }
        throw Failure(.outside, "no folder can be made in \(wanted): \(String(cString: strerror(errno)))")
    }

    func remove() { rmdir(path) }
}

/// A program that runs beside us, in a process group of its own, with our own standard streams.
final class ProgramRun: Sendable {
    enum End: Equatable, CustomStringConvertible {
        case status(Int32)
        case signal(Int32)

        var description: String {
            switch self {
            case .status(let status): "ended with status \(status)"
            case .signal(let number): "was ended by signal \(number)"
            }
        }
    }

    private let process: pid_t
    private let hasTerminal: Bool

    /// - Throws: ``Failure`` with status 127 when it is not found, 126 when it cannot be run.
    init(_ words: [String], variables: [String: String]) throws {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        // We ignore SIGPIPE, and this thread lets no signal through; both would be inherited.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for number in [SIGPIPE, SIGINT, SIGTERM] { sigaddset(&signals, number) }
        posix_spawnattr_setsigdefault(&attributes, &signals)

        var environment: [String] = []
        var entry = environ
        while let text = entry.pointee {
            let variable = String(cString: text)
            if !variables.keys.contains(where: { variable.hasPrefix("\($0)=") }) { environment.append(variable) }
            entry += 1
        }
        environment += variables.map { "\($0.key)=\($0.value)" }
        var identifier = pid_t()
        let result = Self.withStrings(words) { arguments in
            Self.withStrings(environment) { posix_spawnp(&identifier, words[0], nil, &attributes, arguments, $0) }
        }
        guard result == 0 else {
            let status: ExitStatus = result == ENOENT ? .notFound : .cannotRun
            throw Failure(status, "\(words[0]) cannot be run: \(String(cString: strerror(result)))")
        }
        process = identifier
        hasTerminal = isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp()
        // It reads from the terminal and gets Ctrl-C from it, as it would without us.
        if hasTerminal {
            signal(SIGTTOU, SIG_IGN)
            tcsetpgrp(STDIN_FILENO, identifier)
        }
    }

    /// Waits for its end.
    func wait() -> End {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        if hasTerminal { tcsetpgrp(STDIN_FILENO, getpgrp()) }
        return status & 0x7F == 0 ? .status(status >> 8 & 0xFF) : .signal(status & 0x7F)
    }

    /// Asks it and what it started to end; after two seconds they are ended.
    func interrupt() {
        kill(-process, SIGTERM)
        let process = process
        Task {
            try await Task.sleep(for: .seconds(2))
            kill(-process, SIGKILL)
        }
    }

    private static func withStrings<Value>(_ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Value) -> Value {
        let copies = strings.map { strdup($0) }
        defer { for copy in copies { free(copy) } }
        return body(copies + [nil])
    }
}
