// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import FoundationEssentials
import Octets
import TraceFile

/// `sun`: verifies the address that an NTAG 424 DNA made.
enum SUNVerb: Verb {
    static let name = "sun"
    static let summary = "verify the address that an NTAG 424 DNA made"
    static let synopsis = ["sun URL --key HEX [--meta-key HEX] [--lrp] [--mac-start TEXT]"]
    static let options = [
        OptionSpec("--key", .required("HEX"), "the key of the MAC; ask, env:NAME, file:PATH, - or 16 bytes in hex"),
        OptionSpec("--meta-key", .required("HEX"), "the key of UID and counter; the same without it"),
        OptionSpec("--lrp", .none, "the card is in LRP mode"),
        OptionSpec("--mac-start", .required("TEXT"), "the text of the address that the MAC begins at"),
    ]
    static let details = [
        "Parameters are found by their common names: picc_data or e, uid, ctr, enc or c, cmac or m.",
        "A copied address stays right: whether the counter is newer than the last one is for the caller to see.",
        "Status 0 when the message is right, 1 when it is not.",
    ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        guard arguments.operands.count == 1, let url = arguments.operands.first else {
            throw Failure.usage("sun needs one URL", "tapdeck sun --help")
        }
        guard arguments.has("--key") else { throw Failure.usage("sun needs --key: 16 bytes in hexadecimal") }
        let key = try self.key("--key", arguments, terminal)
        let metaKey = arguments.has("--meta-key") ? try self.key("--meta-key", arguments, terminal) : nil
        let message: SUNMessage
        do {
            message = try SUNMessage.verify(
                url: url,
                SUNConfiguration(
                    metaReadKey: metaKey, fileReadKey: key, usesLRP: arguments.has("--lrp"),
                    macInputStart: arguments.value("--mac-start")))
        } catch {
            terminal.error([error.detail])
            return error.code == .key ? .wrongUsage : .notSo
        }
        lines(message, arguments.wantsJSON).forEach(terminal.result)
        return .fine
    }

    private static func key(_ option: String, _ arguments: Arguments, _ terminal: Terminal) throws -> Data {
        let text = try SecretValue.read(arguments.value(option), option: option, prompt: "key      ", terminal)
        return Data(try CardKeyOptions.octets(text, option, 16))
    }

    private static func lines(_ message: SUNMessage, _ isJSON: Bool) -> [String] {
        let uid = message.uid.map { Hex.encode($0) }
        let data = message.fileData.map { Hex.encode($0) }
        if isJSON {
            var object: [String: JSONValue] = ["covered": .string(message.coveredText)]
            if let uid { object["uid"] = .string(uid) }
            if let counter = message.counter { object["counter"] = .integer(Int64(counter)) }
            if let data { object["fileData"] = .string(data) }
            return [JSONValue.object(object).text]
        }
        var lines: [String] = []
        if let uid { lines.append("\(pad("uid", 8)) \(uid)") }
        if let counter = message.counter { lines.append("\(pad("counter", 8)) \(counter)") }
        if let fileData = message.fileData { lines.append("\(pad("data", 8)) \(String(decoding: fileData, as: UTF8.self))") }
        let covered = message.coveredText.isEmpty ? "uid and counter alone" : message.coveredText
        return lines + ["\(pad("mac", 8)) right, over \(covered)"]
    }
}
