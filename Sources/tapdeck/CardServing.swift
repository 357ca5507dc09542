// SPDX-License-Identifier: MIT

import CardSockets
import Glibc

/// What `virtual`, `serve` and `replay -- PROGRAM` share: the ends at which programs meet a card.
enum CardServing {
    enum End {
        case vpcd(host: String, port: UInt16)
        case socket(String)
        case lines
    }

    static let options = [
        OptionSpec("--socket", .required("PATH"), "be the reader service of programs that find PATH in PCSCLITE_CSOCK_NAME"),
        OptionSpec("--vpcd", .required("HOST:PORT"), "the slot of the virtual reader; 127.0.0.1:35963 without either"),
        tableOption,
    ]

    static let tableOption = OptionSpec(
        "--table", .required("N"), "readers in the table of the programs' libpcsclite before 2.5 (16; Fedora 48)")

    static let linesOption = OptionSpec(
        "--lines", .none, "a command in hex a line on standard input, its answer on standard output")

    static let ends = [
        "--socket needs no pcscd, no reader and no root: PCSCLITE_CSOCK_NAME=PATH PROGRAM",
        "--vpcd needs pcscd with vsmartcard-vpcd.",
        "--lines answers !removed, !silent, !failed CODE or !error TEXT where there is no",
        "answer in hex; !reset, !atr, !remove and !insert are words; # begins a comment.",
    ]

    /// The end that the options name.
    static func end(_ arguments: Arguments) throws -> End {
        let named = ["--socket", "--vpcd", "--lines"].filter(arguments.has)
        guard named.count < 2 else { throw Failure.usage("\(named[0]) and \(named[1]) exclude each other") }
        if arguments.has("--lines") { return .lines }
        if let path = arguments.value("--socket") { return .socket(path) }
        let (host, port) = try address(arguments.value("--vpcd") ?? "127.0.0.1:35963")
        return .vpcd(host: host, port: port)
    }

    static func serviceOptions(_ arguments: Arguments) throws -> ServiceSocket.Options {
        guard let text = arguments.value("--table") else { return ServiceSocket.Options() }
        guard let size = Int(text), (1...1_024).contains(size) else {
            throw Failure.usage("--table takes a number of readers from 1 to 1024, not \(text)")
        }
        return ServiceSocket.Options(tableSize: size)
    }

    /// Answers lines of hex until there are no more.
    static func onLines(_ card: any CardEnd, _ terminal: Terminal) {
        var lines = HexLines(card: card)
        var input = InputLines(limit: HexLines.longestLine)
        while let line = input.next() {
            if let answer = lines.answer(line) { terminal.result(answer) }
        }
    }

    /// Serves at a path until Ctrl-C.
    static func onSocket(
        _ readers: sending [ServiceSocket.Reader], path: String, _ arguments: Arguments, _ terminal: Terminal
    ) throws -> ExitStatus {
        let names = readers.map(\.name)
        let service = ServiceSocket(readers: readers, path: path, options: try serviceOptions(arguments)) { event in
            switch event {
            case .inserted(let reader): terminal.note("tapdeck: a card is in the reader \(names[reader])")
            case .removed(let reader): terminal.note("tapdeck: the card is out of the reader \(names[reader])")
            }
        }
        do { try service.start() } catch { throw failure(error, path: path) }
        terminal.note("tapdeck: PCSCLITE_CSOCK_NAME=\(absolute(path)) leads programs here; Ctrl-C ends")
        Interruption.waiting { service.stop() }
        return .interrupted
    }

    static func failure(_ error: LinkError, path: String) -> Failure {
        let isThere = access(path, F_OK) == 0
        return Failure(.outside, lines: ["no socket: \(error.detail)"] + (isThere ? ["rm \(path)"] : []))
    }

    /// A card in a slot of vpcd until it leaves, or until Ctrl-C.
    static func throughVPCD(
        _ card: sending any CardEnd, named name: String, identifier: [UInt8]?, host: String, port: UInt16, _ terminal: Terminal
    ) throws -> ExitStatus {
        let link = VPCDLink(card: card, host: host, port: port, options: VPCDLink.Options(identifier: identifier)) { event in
            switch event {
            case .inserted: terminal.note("tapdeck: \(name) is in the slot at \(host):\(port); Ctrl-C takes it out")
            case .removed: terminal.note("tapdeck: the card is out")
            case .silent: terminal.note("tapdeck: the card gave no answer")
            case .notServed: terminal.note("tapdeck: another card is in the slot at \(host):\(port); this one waits")
            case .ended: break
            }
        }
        do {
            let outcome = try Interruption.calling({ link.stop() }, during: { try link.run() })
            switch outcome {
            case .stopped: return Interruption.wasAsked ? .interrupted : .fine
            case .removed: return .fine
            case .readerClosed: throw Failure(.outside, "reader: pcscd closed the slot at \(host):\(port)")
            case .failed(let error): throw Failure(.outside, "reader: \(error)")
            }
        } catch let error as LinkError {
            throw Failure(
                .outside, "no virtual reader: \(error.detail)", "sudo apt install pcscd vsmartcard-vpcd", "tapdeck doctor"
            )
        }
    }

    private static func address(_ text: String) throws -> (host: String, port: UInt16) {
        let parts = text.split(separator: ":")
        guard parts.count == 2, let port = UInt16(parts[1]), port > 0 else {
            throw Failure.usage("--vpcd takes HOST:PORT, not \(text)")
        }
        return (String(parts[0]), port)
    }

    private static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let folder = realpath(".", nil) else { return path }
        defer { free(folder) }
        return "\(String(cString: folder))/\(path)"
    }
}
