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
    static let synopsis = [
        "serve FILE [--vpcd HOST:PORT | --socket PATH | --lines] [--mode bytes|fields|resealed] [--order strict|loose]"
            + " [--unrecorded stop|SW|next|nearest|model] [--speed recorded|0|X] [--mrz-key KEY | --can CAN | --pin PIN | --key N=VALUE]"
    ]
    static let options =
        CardServing.options + [CardServing.linesOption] + ServedTrace.options + traceOptions + grammarOptions
        + ReplayArguments.secretSpecs
    static let details =
        CardServing.ends + [
            "",
            "Commands are compared with the recorded ones. Programs have an order of their"
                + " own: each command is answered that meets the file, the application and the"
                + " rights that it met in the recording, unless --order strict is given."
                + " After the first that was not recorded the card is out, or --unrecorded"
                + " says what it gets.",
            "Without --mode the commands are compared in fields, what was drawn at random"
                + " apart; where the answers are bound to that, as after BAC, they are resealed:"
                + " the card agrees on keys of its own with the program.",
            "At a socket the recording begins again when the last program has gone, and a"
                + " line says how it went; Ctrl-C ends.",
            "With --lines and --vpcd the status is 0 when all was the same, 1 when not, 3",
            "when it cannot be tried.",
        ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        guard arguments.operands.count == 1, let path = arguments.operands.first else {
            throw Failure.usage("serve needs one trace: tapdeck serve FILE")
        }
        let end = try CardServing.end(arguments)
        let served = try ServedTrace(path, .serving, arguments, terminal)
        switch end {
        case .socket(let socket):
            let cards = try served.cards(
                .beginsAgain { report in
                    served.verdict(report).forEach(arguments.wantsJSON ? terminal.result : terminal.note)
                })
            served.announce(cards, terminal)
            return try CardServing.onSocket(ServedTrace.readers(of: cards), path: socket, arguments, terminal)
        case .vpcd(let host, let port):
            let card = try first(of: try served.cards(.stays), terminal)
            served.announce([card], terminal)
            let status = try CardServing.throughVPCD(
                card, named: "the recorded card", identifier: nil, host: host, port: port, terminal)
            return max(status, told(card, served, terminal))
        case .lines:
            let card = try first(of: try served.cards(.stays), terminal)
            served.announce([card], terminal)
            CardServing.onLines(card, terminal)
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
    /// Whom the card is for.
    enum Audience: Sendable {
        /// Whoever comes, in an order of its own.
        case serving
        /// One program, whose commands are put to the test.
        case program(String)
    }

    static let options = [
        OptionSpec("--mode", .required("MODE"), "what must be equal: bytes, fields or resealed"),
        OptionSpec("--order", .required("ORDER"), "loose, as programs have their own; strict: as recorded"),
        OptionSpec("--unrecorded", .required("POLICY"), "what a command gets that is not in the trace; stop without it"),
        OptionSpec("--speed", .required("X"), "0 waits for nothing; recorded answers when the card did; X in X times that"),
    ]

    let path: String
    private let typed: ReplayText.Typed
    private let replay: Replay
    private let wantsJSON: Bool

    /// - Throws: ``Failure`` when the file or its secrets cannot be read.
    init(_ path: String, _ audience: Audience, _ arguments: Arguments, _ terminal: Terminal) throws {
        if arguments.value("--mode") == "each" { throw Failure.usage("--mode each is not for programs: they meet the card once") }
        var options = try ReplayArguments.options(arguments, terminal)
        switch audience {
        case .serving:
            if !arguments.has("--order") { options.order = .loose }
            typed = ReplayText.Typed(before: "tapdeck serve")
        case .program(let program): typed = ReplayText.Typed(after: " -- \(program)")
        }
        let trace: Trace
        do { trace = try Trace.load(path: path) } catch { throw TraceAccess.failure(error) }
        guard TraceAccess.report(trace.damage, of: path, terminal) == .fine else {
            throw Failure(.outside, "a damaged trace is not served")
        }
        let secrets = try TraceAccess.secrets(for: path, session: trace.header.session, embedded: trace.secrets, arguments).store
        self.path = path
        wantsJSON = arguments.wantsJSON
        replay = Replay(of: trace, secrets: secrets, options: options)
    }

    func cards(_ afterwards: ServedCard.Afterwards) throws -> [ServedCard] {
        do { return try replay.servedCards(afterwards) } catch {
            throw Failure(.outside, lines: ReplayText.lines(error, path: path, typed: typed))
        }
    }

    /// Says how the cards play, and what they cannot make anew, before a program meets them.
    func announce(_ cards: [ServedCard], _ terminal: Terminal) {
        guard let first = cards.first else { return }
        terminal.note("tapdeck: plays \(path) in mode \(first.mode.rawValue)")
        caution(cards, terminal)
    }

    func caution(_ cards: [ServedCard], _ terminal: Terminal) {
        for caution in cards.flatMap(\.cautions) { terminal.note("\(path): \(caution)") }
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
        case .same: return [ReplayText.same(report, path: path)] + ReplayText.notes(report)
        case .differs(let divergence): return ReplayText.lines(divergence, report, path: path, typed: typed)
        case .blocked(let blocked): return ReplayText.lines(blocked, path: path, typed: typed)
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
