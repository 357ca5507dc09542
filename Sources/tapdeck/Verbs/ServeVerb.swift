// SPDX-License-Identifier: MIT

import CardSockets
import Glibc
import Replay
import Synchronization
import TraceFile

/// `serve`: a recorded card for any program, over a socket, a slot of vpcd, or lines of hex.
enum ServeVerb: Verb {
    static let name = "serve"
    static let summary = "a recorded card for any program, at a socket or as lines of hex"
    static let synopsis = ["serve FILE [--vpcd HOST:PORT | --socket PATH | --lines] [--secrets FILE|env:NAME]"]
    static let options =
        CardServing.options + [
            OptionSpec("--lines", .none, "a command in hex a line on standard input, its answer on standard output")
        ] + traceOptions
    static let details =
        CardServing.ends + [
            "--lines answers !removed, !silent, !failed CODE or !error TEXT where there is no",
            "answer in hex; !reset, !atr, !remove and !insert are words; # begins a comment.",
            "",
            "Commands are compared with the recorded ones, in order. After the first that",
            "differs the card is out. At a socket the recording begins again when the last",
            "program has gone, and a line says how it went; Ctrl-C ends.",
            "With --lines and --vpcd the status is 0 when all was the same, 1 when not, 3",
            "when it cannot be tried.",
        ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        guard arguments.operands.count == 1, let path = arguments.operands.first else {
            throw Failure.usage("serve needs one trace: tapdeck serve FILE")
        }
        let end = try CardServing.end(arguments)
        let served = try ServedTrace(path, arguments, terminal)
        switch end {
        case .socket(let socket):
            let cards = try served.cards(
                .beginsAgain { report in
                    served.verdict(report).forEach(arguments.wantsJSON ? terminal.result : terminal.note)
                })
            return try CardServing.onSocket(ServedTrace.readers(of: cards), path: socket, arguments, terminal)
        case .vpcd(let host, let port):
            let card = try first(of: try served.cards(.stays), terminal)
            let status = try CardServing.throughVPCD(
                card, named: "the recorded card", identifier: nil, host: host, port: port, terminal)
            return max(status, told(card, served, terminal))
        case .lines:
            let card = try first(of: try served.cards(.stays), terminal)
            var lines = HexLines(card: card)
            var input = InputLines(limit: HexLines.longestLine)
            while let line = input.next() {
                if let answer = lines.answer(line) { terminal.result(answer) }
            }
            return Interruption.wasAsked ? .interrupted : told(card, served, terminal)
        }
    }

    /// One slot and one pair of streams have room for one card.
    private static func first(of cards: [ServedCard], _ terminal: Terminal) throws -> ServedCard {
        guard let card = cards.first else { throw Failure(.outside, "no card was recorded") }
        if cards.count > 1 { terminal.note("tapdeck: \(cards.count) cards were recorded; this is the one of \(card.readerName)") }
        return card
    }

    private static func told(_ card: ServedCard, _ served: ServedTrace, _ terminal: Terminal) -> ExitStatus {
        let report = card.report()
        served.verdict(report).forEach(terminal.note)
        return ServedTrace.status(of: report)
    }
}

/// A trace whose cards are served, and how its verdicts are said.
struct ServedTrace: Sendable {
    let path: String
    private let replay: Replay
    private let wantsJSON: Bool

    /// - Throws: ``Failure`` when the file or its secrets cannot be read.
    init(_ path: String, _ arguments: Arguments, _ terminal: Terminal) throws {
        let trace: Trace
        do { trace = try Trace.load(path: path) } catch { throw TraceAccess.failure(error) }
        guard TraceAccess.report(trace.damage, of: path, terminal) == .fine else {
            throw Failure(.outside, "a damaged trace is not served")
        }
        let secrets = try TraceAccess.secrets(for: path, session: trace.header.session, embedded: trace.secrets, arguments).store
        self.path = path
        wantsJSON = arguments.wantsJSON
        replay = Replay(of: trace, secrets: secrets)
    }

    func cards(_ afterwards: ServedCard.Afterwards) throws -> [ServedCard] {
        do { return try replay.servedCards(afterwards) } catch {
            throw Failure(.outside, lines: ReplayText.lines(error, path: path))
        }
    }

    /// The recorded readers; a name that two of them have is told apart by a number, as the reader service does.
    static func readers(of cards: [ServedCard]) -> [ServiceSocket.Reader] {
        var seen: [String: Int] = [:]
        return cards.map { card in
            let name = card.readerName
            let number = seen[name, default: 0]
            seen[name] = number + 1
            return ServiceSocket.Reader(name: number == 0 ? name : "\(name) \(number)", card: card)
        }
    }

    func verdict(_ report: ReplayReport) -> [String] {
        if wantsJSON { return [ReplayText.json(report, path: path)] }
        switch report.verdict {
        case .same: return [ReplayText.same(report, path: path)]
        case .differs(let divergence): return ReplayText.lines(divergence, report, path: path)
        case .blocked(let blocked): return ReplayText.lines(blocked, path: path)
        }
    }

    static func status(of report: ReplayReport) -> ExitStatus {
        switch report.verdict {
        case .same: .fine
        case .differs: .notSo
        case .blocked: .outside
        }
    }
}
