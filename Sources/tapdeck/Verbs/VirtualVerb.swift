// SPDX-License-Identifier: MIT

import CardSockets
import VirtualCards

/// `virtual`: a virtual card for any program, in a slot of the virtual reader vpcd or on pcsc-lite's own socket.
enum VirtualVerb: Verb {
    static let name = "virtual"
    static let summary = "a virtual card in a reader that any program can use"
    static let synopsis = ["virtual KIND [OPTIONS] [--vpcd HOST:PORT | --socket PATH]"]
    static let options = CardServing.options
    static var details: [String] {
        var lines = ["KIND and its own options:"]
        for kind in VirtualCardCatalog.kinds {
            lines.append("  \(pad(kind.name, 12)) \(kind.summary)")
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
            "It stays until Ctrl-C; in a slot of vpcd until the card is removed by a fault."
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
        guard let kind = rest.first, !kind.hasPrefix("-") else { return try await run(arguments, terminal) }
        let card: VirtualCard
        do {
            card = try VirtualCardCatalog.make(try VirtualCardSpecification(kind: kind, arguments: Array(rest.dropFirst())))
        } catch {
            throw CardSource.failure(error)
        }
        let identifier = card.identifier.isEmpty ? nil : card.identifier
        switch try CardServing.end(arguments) {
        case .vpcd(let host, let port):
            return try CardServing.throughVPCD(
                card, named: "the \(kind) card", identifier: identifier, host: host, port: port, terminal)
        case .socket(let path):
            let reader = ServiceSocket.Reader(name: "Tapdeck \(kind) 00 00", card: card, identifier: identifier)
            return try CardServing.onSocket([reader], path: path, arguments, terminal)
        case .lines: throw Failure.usage("virtual has no --lines")
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
