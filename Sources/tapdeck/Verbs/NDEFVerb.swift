// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Flows
import Octets
import PCSC
import TraceFile

/// `ndef`: reads or writes the NDEF message of a tag, without a trace.
enum NDEFVerb: Verb {
    static let name = "ndef"
    static let summary = "read or write the NDEF message of a tag"
    static let synopsis = [
        "ndef read [--reader NAME|N | --card virtual:KIND[?OPTIONS]] [--wait S]",
        "ndef write --uri URI | --text TEXT | --hex HEX [--reader NAME|N | --card virtual:KIND[?OPTIONS]] [--wait S]",
    ]
    static let options = [
        OptionSpec("--uri", .required("URI"), "a message with this address"),
        OptionSpec("--text", .required("TEXT"), "a message with this text"),
        OptionSpec("--language", .required("CODE"), "the text's language; en without it"),
        OptionSpec("--hex", .required("HEX"), "the octets of a whole message"),
        OptionSpec("--reader", .required("NAME|N"), "a reader by its number or a part of its name"),
        OptionSpec("--card", .required("virtual:KIND"), "a virtual card in this process: virtual:ntag424"),
        OptionSpec("--wait", .required("S"), "seconds to wait for a card; 60 at a terminal, else 0"),
    ]
    static let details = [
        "A tag that is taken away while it is written has the old message or the new one;",
        "or none, when the new one is longer than the tag takes in one command.",
        "Status 0 when it is done, 1 when the tag refused or holds no message, 3 when reader or card went away.",
    ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        guard arguments.operands.count == 1, let verb = arguments.operands.first, ["read", "write"].contains(verb) else {
            throw Failure.usage("ndef needs read or write", "tapdeck ndef --help")
        }
        let message = try message(arguments)
        guard (verb == "write") == (message != nil) else {
            throw Failure.usage(verb == "write" ? "ndef write needs --uri, --text or --hex" : "ndef read writes nothing")
        }
        guard let flow = FlowTable.named("ndef") else { throw Failure.usage("there is no flow ndef") }
        let object = message.map { JSONValue.object(["write": .string(Hex.encode($0.data))]) } ?? .object([:])
        let transport = try await CardSource.open(arguments, terminal)
        do {
            let outcome = try await Interruption.cancelling {
                guard let reader = transport as? PCSCTransport else {
                    return try await flow.run(argumentsJSON: object.text, over: transport)
                }
                return try await reader.withTransaction { try await flow.run(argumentsJSON: object.text, over: reader) }
            }
            let value = (try? JSONValue.parse(outcome)) ?? .null
            (arguments.wantsJSON ? [outcome] : CardLines.ndef(value)).forEach(terminal.result)
            return (value["records"]?.arrayValue ?? []).isEmpty ? .notSo : .fine
        } catch {
            if Interruption.wasAsked { return .interrupted }
            let failure = FlowFailure.describe(error)
            terminal.error(["\(failure.blame.rawValue): \(failure.detail)"])
            return ExitStatus(rawValue: failure.exitStatus) ?? .outside
        }
    }

    private static func message(_ arguments: Arguments) throws -> NDEFMessage? {
        let given = ["--uri", "--text", "--hex"].filter(arguments.has)
        guard given.count <= 1 else { throw Failure.usage("\(given.joined(separator: " and ")) exclude each other") }
        if arguments.value("--uri") == "" { throw Failure.usage("--uri is empty") }
        if let uri = arguments.value("--uri") { return .uri(uri) }
        if let text = arguments.value("--text") { return .text(text, languageCode: arguments.value("--language") ?? "en") }
        guard let hex = arguments.value("--hex") else { return nil }
        guard let octets = try? Hex.decode(hex), let message = try? NDEFMessage(data: octets) else {
            throw Failure.usage("--hex is no NDEF message")
        }
        return message
    }
}
