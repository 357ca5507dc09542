// SPDX-License-Identifier: MIT

import CardSockets
import VirtualCards

/// `virtual`: a virtual card in a slot of the virtual reader vpcd, for any program.
enum VirtualVerb: Verb {
    static let name = "virtual"
    static let summary = "a virtual card in a reader that any program can use"
    static let synopsis = ["virtual KIND [OPTIONS] [--vpcd HOST:PORT]"]
    static let options = [
        OptionSpec("--vpcd", .required("HOST:PORT"), "the slot of the virtual reader; 127.0.0.1:35963 without it")
    ]
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
        lines += [
            "", "--options FILE has an option a line, without dashes: pace ecdh-gm-aes128:13",
            "# begins a comment. Options given beside it win. The same in a reference:",
            "--card 'virtual:passport?options=FILE'",
        ]
        return lines + ["", "It stays until Ctrl-C, or until the card is removed by a fault. Needs pcscd with vsmartcard-vpcd."]
    }

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
        let (host, port) = try address(arguments.value("--vpcd") ?? "127.0.0.1:35963")
        return try serve(card, kind: kind, host: host, port: port, terminal)
    }

    private static func serve(_ card: sending VirtualCard, kind: String, host: String, port: UInt16, _ terminal: Terminal) throws
        -> ExitStatus
    {
        let options = VPCDLink.Options(identifier: card.identifier.isEmpty ? nil : card.identifier)
        let link = VPCDLink(card: card, host: host, port: port, options: options) { event in
            switch event {
            case .inserted: terminal.note("tapdeck: the \(kind) card is in the slot at \(host):\(port); Ctrl-C takes it out")
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

    private static func address(_ text: String) throws -> (host: String, port: UInt16) {
        let parts = text.split(separator: ":")
        guard parts.count == 2, let port = UInt16(parts[1]), port > 0 else {
            throw Failure.usage("--vpcd takes HOST:PORT, not \(text)")
        }
        return (String(parts[0]), port)
    }
}
