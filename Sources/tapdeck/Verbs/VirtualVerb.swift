// SPDX-License-Identifier: MIT

import CardSockets
import Octets
import Replay
import TraceFile
import VirtualCards

/// `virtual`: a virtual card for any program, in a slot of the virtual reader vpcd or on pcsc-lite's own socket.
enum VirtualVerb: Verb {
    static let name = "virtual"
    static let summary = "a virtual card in a reader that any program can use"
    static let synopsis = [
        "virtual KIND [OPTIONS] [--vpcd HOST:PORT | --socket PATH | --lines]",
        "virtual --from FILE [--seed N] [--vpcd HOST:PORT | --socket PATH | --lines] [--secrets FILE|env:NAME] [--grammar DIR]",
    ]
    static let options =
        CardServing.options + [
            CardServing.linesOption,
            OptionSpec("--from", .required("FILE"), "a card made of what a trace shows"),
        ] + traceOptions + grammarOptions
    static var details: [String] {
        var lines = ["KIND and its own options:"]
        for kind in VirtualCardCatalog.kinds {
            lines.append("  \(pad(kind.name, 14)) \(kind.summary)")
            for option in kind.options {
                lines.append("    \(pad("--\(option.name)\(option.placeholder.map { " \($0)" } ?? "")", 22)) \(option.summary)")
            }
        }
        lines += ["", "Quirks of the passport, --quirk NAME,..:"]
        for quirk in VirtualCardCatalog.passportQuirks { lines.append("    \(pad(quirk.name, 22)) \(quirk.summary)") }
        lines += ["", "Statements of --layout, one a line or ; between them, # begins a comment:"] + layout
        lines += [
            "", "--options FILE has an option a line, without dashes: pace ecdh-gm-aes128:13",
            "# begins a comment. Options given beside it win. The same in a reference:",
            "--card 'virtual:passport?options=FILE'",
        ]
        return lines + [""] + CardServing.ends + [
            "",
            "--from makes a card of what a trace shows: its files as far as they were read, their lengths, rights and refusals. A passport"
                + " that was opened, and whose password is among the secrets, agrees on keys of its own. What it answers beyond the trace is"
                + " guessed, and each guess is a line on standard error.",
            "",
            "It stays until Ctrl-C; in a slot of vpcd until the card is removed by a fault.",
        ]
    }

    private static let layout = [
        "    picc CIPHER KEY        the card's master key; des, 2k3des, 3k3des or aes",
        "    app AID CIPHER keys N  an application; then settings XX, iso ID, name HEX",
        "    key N HEX v XX         a key of the application before, and its version",
        "    file N std SIZE MODE RIGHTS = HEX     or backup SIZE",
        "    file N value LOW..HIGH START MODE RIGHTS limited",
        "    file N linear SIZExMOST MODE RIGHTS   or cyclic SIZExMOST",
        "    file N tmac MODE RIGHTS KEY           the transaction's MAC",
        "MODE plain, mac or full; RIGHTS the keys that read, write, do both, change,",
        "as 1230; E everybody, F nobody.",
        "--layout 'app F00001 aes keys 2; file 1 std 4 full 1110'",
    ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        throw Failure.usage("virtual needs a kind of card: \(VirtualCardCatalog.kinds.map(\.name).joined(separator: ", "))")
    }

    /// Options of the card stand between those of the command, so the words are taken apart by kind.
    static func run(words: [String], _ terminal: Terminal) async throws -> ExitStatus {
        let (own, rest) = try separate(words)
        let arguments = try Arguments(own, options: allOptions)
        if let path = arguments.value("--from") {
            let card = try TracedCard(path, rest, arguments, terminal)
            return try serve(card.card, "the card of \(path)", card.readerName, card.card.identifier, arguments, terminal)
        }
        for option in traceOptions + grammarOptions where arguments.has(option.name) {
            throw Failure.usage("\(option.name) goes with --from FILE")
        }
        guard let kind = rest.first, !kind.hasPrefix("-") else { return try await run(arguments, terminal) }
        let card: VirtualCard
        do {
            card = try VirtualCardCatalog.make(try VirtualCardSpecification(kind: kind, arguments: Array(rest.dropFirst())))
        } catch {
            throw CardSource.failure(error)
        }
        return try serve(card, "the \(kind) card", "Tapdeck \(kind) 00 00", card.identifier, arguments, terminal)
    }

    private static func serve(
        _ card: sending any CardEnd, _ name: String, _ readerName: String, _ uid: [UInt8], _ arguments: Arguments,
        _ terminal: Terminal
    ) throws -> ExitStatus {
        let identifier = uid.isEmpty ? nil : uid
        switch try CardServing.end(arguments) {
        case .vpcd(let host, let port):
            return try CardServing.throughVPCD(card, named: name, identifier: identifier, host: host, port: port, terminal)
        case .socket(let path):
            let reader = ServiceSocket.Reader(name: readerName, card: card, identifier: identifier)
            return try CardServing.onSocket([reader], path: path, arguments, terminal)
        case .lines:
            CardServing.onLines(card, terminal)
            return Interruption.wasAsked ? .interrupted : .fine
        }
    }

    /// Words of the command and words of the card.
    private static func separate(_ words: [String]) throws -> (own: [String], card: [String]) {
        var own: [String] = []
        var card: [String] = []
        var index = 0
        while index < words.count {
            let word = words[index]
            index += 1
            let name = word.split(separator: "=", maxSplits: 1).first.map(String.init) ?? word
            guard let spec = allOptions.first(where: { $0.name == name }) else {
                card.append(word)
                continue
            }
            own.append(word)
            if case .required = spec.value, !word.contains("="), index < words.count {
                own.append(words[index])
                index += 1
            }
        }
        return (own, card)
    }
}

/// The card of `virtual --from FILE`, and the reader that it stands in.
private struct TracedCard {
    let card: TraceCard
    let readerName: String

    /// - Parameter words: those of the card: `--seed N` alone.
    init(_ path: String, _ words: [String], _ arguments: Arguments, _ terminal: Terminal) throws {
        let trace: Trace
        do { trace = try Trace.load(path: path) } catch { throw TraceAccess.failure(error) }
        guard TraceAccess.report(trace.damage, of: path, terminal) == .fine else {
            throw Failure(.outside, "no card is made from a damaged trace")
        }
        let secrets = try TraceAccess.secrets(
            for: path, session: trace.header.session, embedded: trace.secrets, arguments
        ).store
        do {
            card = try TraceCard(
                trace, secrets: secrets, grammars: try TraceAccess.grammars(arguments), seed: try Self.seed(words)
            ) { guess in
                terminal.note("guessed  \(guess.command): \(Self.text(guess.response))")
            }
        } catch let blocked as Blocked {
            throw Failure(.outside, blocked.text)
        }
        let name = path.split(separator: "/").last.map(String.init) ?? path
        readerName = "Tapdeck \(name.prefix { $0 != "." }.prefix(80)) 00 00"
        terminal.note(
            card.opensAfresh
                ? "tapdeck: a passport like that of \(path), with keys of its own"
                : "tapdeck: a card like that of \(path), without what its keys protect")
    }

    private static func seed(_ words: [String]) throws -> UInt64 {
        var words = words.flatMap { $0.hasPrefix("--seed=") ? ["--seed", String($0.dropFirst(7))] : [$0] }[...]
        var seed: UInt64 = 0
        while let word = words.popFirst() {
            guard word == "--seed" else { throw Failure.usage("virtual --from takes no \(word): its card is that of the trace") }
            guard let text = words.popFirst(), let number = UInt64(text) else { throw Failure.usage("--seed takes a number") }
            seed = number
        }
        return seed
    }

    private static func text(_ response: [UInt8]) -> String {
        let status = Hex.encode(response.suffix(2))
        return response.count > 2 ? "\(response.count - 2) bytes and \(status)" : status
    }
}
