// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Octets
import TraceFile

/// The options of the flows `desfire`, `ntag424` and `ndef`.
enum CardKeyOptions {
    static let specs = [
        OptionSpec("--key", .required("N=VALUE"), "desfire, ntag424: a key in hex; ask, env:NAME, file:PATH or - as VALUE"),
        OptionSpec("--key-type", .required("TYPE"), "of the keys: des, 2k3des, 3k3des, aes or lrp; aes without it"),
        OptionSpec("--aid", .required("HEX"), "desfire: one application, as it travels; all without it"),
        OptionSpec("--method", .required("NAME"), "desfire: legacy, iso, aes or ev2First"),
        OptionSpec("--native", .none, "desfire: commands bare, not inside ISO ones"),
    ]

    static func desfire(_ arguments: Arguments, _ terminal: Terminal) throws -> String {
        try requireNoOperand(arguments)
        var object: [String: JSONValue] = [:]
        if let text = arguments.value("--aid") { object["application"] = .string(Hex.encode(try octets(text, "--aid", 3))) }
        let keys = try keys(arguments, terminal)
        if !keys.isEmpty { object["keys"] = .array(keys) }
        if let name = arguments.value("--method") {
            let known: [DESFireAuthentication] = [.legacy, .iso, .aes, .ev2First, .lrpFirst]
            guard known.map(\.rawValue).contains(name) else {
                throw Failure.usage("--method takes \(known.map(\.rawValue).joined(separator: ", ")), not \(name)")
            }
            object["method"] = .string(name)
        } else if arguments.value("--key-type") == "lrp" {
            object["method"] = .string("lrpFirst")
        }
        if arguments.has("--native") { object["framing"] = .string("native") }
        return JSONValue.object(object).text
    }

    static func ntag424(_ arguments: Arguments, _ terminal: Terminal) throws -> String {
        try requireNoOperand(arguments)
        let keys = try keys(arguments, terminal)
        guard keys.count <= 1 else { throw Failure.usage("ntag424 takes one --key") }
        var object: [String: JSONValue] = [:]
        if let key = keys.first { object["key"] = key }
        object["method"] = .string(arguments.value("--key-type") == "lrp" ? "lrpFirst" : "ev2First")
        return JSONValue.object(object).text
    }

    static func requireNoOperand(_ arguments: Arguments) throws {
        guard arguments.operands.count == 1 else {
            throw Failure.usage("\(arguments.operands[0]) takes no operand: \(arguments.operands[1])")
        }
    }

    /// Hexadecimal of a given length.
    static func octets(_ text: String, _ option: String, _ count: Int) throws -> [UInt8] {
        guard let octets = try? Hex.decode(text), octets.count == count else {
            throw Failure.usage("\(option) takes \(count) bytes in hexadecimal")
        }
        return octets
    }

    static func keys(_ arguments: Arguments, _ terminal: Terminal) throws -> [JSONValue] {
        let types = ["des": 8, "2k3des": 16, "3k3des": 24, "aes": 16, "lrp": 16]
        let type = arguments.value("--key-type") ?? "aes"
        guard let length = types[type] else {
            throw Failure.usage("--key-type takes des, 2k3des, 3k3des, aes or lrp, not \(type)")
        }
        var seen: Set<UInt8> = []
        return try arguments.values("--key").map { text in
            let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2, let number = UInt8(parts[0]), number < 14 else {
                throw Failure.usage("--key takes N=VALUE with a number from 0 to 13")
            }
            guard seen.insert(number).inserted else { throw Failure.usage("--key \(number) is given twice") }
            let value = try SecretValue.read(parts[1], option: "--key", prompt: pad("key \(number)", 9), terminal)
            return .object([
                "number": .integer(Int64(number)), "type": .string(type == "lrp" ? "aes" : type),
                "key": .string(Hex.encode(try octets(value, "--key \(number)", length))),
            ])
        }
    }
}
