// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Octets
import TraceFile

/// The options of the flows `desfire`, `ntag424` and `ndef`.
enum CardKeyOptions {
    static let specs = [
        OptionSpec(
            "--key", .required("N=VALUE"),
            "desfire, ntag424: a key in hex; ask, env:NAME, file:PATH or - as VALUE; N=VALUE:an10922 a master key; "
                + "file:PATH alone a file with a key a line"),
        OptionSpec("--key-type", .required("TYPE"), "of the keys: des, 2k3des, 3k3des, aes or lrp; aes without it"),
        OptionSpec("--aid", .required("HEX"), "desfire: one application, as it travels; all without it"),
        OptionSpec(
            "--method", .required("NAME"), "desfire: legacy, iso, aes, ev2First or lrpFirst; by the key's type without it"),
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
                throw Failure.usage("--method takes legacy, iso, aes, ev2First or lrpFirst, not \(name)")
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
        try requireNone(of: ["--aid", "--method", "--native"], arguments)
        let type = arguments.value("--key-type") ?? "aes"
        guard type == "aes" || type == "lrp" else {
            throw Failure.usage("ntag424 takes --key-type aes or lrp, not \(type)")
        }
        let keys = try keys(arguments, terminal)
        guard keys.count <= 1 else { throw Failure.usage("ntag424 takes one --key") }
        guard keys.first?["diversified"] == nil else {
            throw Failure.usage("--key: what the key of an NTAG 424 DNA is derived from differs; give the tag's own")
        }
        var object: [String: JSONValue] = [:]
        if let key = keys.first { object["key"] = key }
        object["method"] = .string(type == "lrp" ? "lrpFirst" : "ev2First")
        return JSONValue.object(object).text
    }

    static func requireNoOperand(_ arguments: Arguments) throws {
        guard arguments.operands.count == 1 else {
            throw Failure.usage("\(arguments.operands[0]) takes no operand: \(arguments.operands[1])")
        }
    }

    /// Options of other flows would be passed over in silence.
    static func requireNone(of options: [String], _ arguments: Arguments) throws {
        guard let option = options.first(where: arguments.has) else { return }
        throw Failure.usage("\(arguments.operands[0]) takes no \(option)")
    }

    /// Hexadecimal of a given length.
    static func octets(_ text: String, _ option: String, _ count: Int) throws -> [UInt8] {
        guard let octets = try? Hex.decode(text), octets.count == count else {
            throw Failure.usage("\(option) takes \(count) bytes in hexadecimal")
        }
        return octets
    }

    // MARK: - Keys

    private static let types = ["des": 8, "2k3des": 16, "3k3des": 24, "aes": 16, "lrp": 16]
    private static let masterMark = ":an10922"

    private struct Key {
        var number: UInt8
        var type: String
        var octets: [UInt8]
        var isMaster = false
        /// From a file's line that names an application.
        var application: [UInt8]?
    }

    static func keys(_ arguments: Arguments, _ terminal: Terminal) throws -> [JSONValue] {
        let type = arguments.value("--key-type") ?? "aes"
        guard types[type] != nil else {
            throw Failure.usage("--key-type takes des, 2k3des, 3k3des, aes or lrp, not \(type)")
        }
        var keys: [Key] = []
        for text in arguments.values("--key") {
            if text.hasPrefix("file:") {
                keys += try inFile(String(text.dropFirst(5)), type)
            } else {
                keys.append(try key(text, type) { try SecretValue.read($0, option: "--key", prompt: $1, terminal) })
            }
        }
        // Of a file with keys of several applications, those of the one that is looked at.
        let application = arguments.value("--aid").flatMap { try? Hex.decode($0) }
        keys.removeAll { key in key.application.map { $0 != application } ?? false }
        var seen: Set<UInt8> = []
        return try keys.map { key in
            guard seen.insert(key.number).inserted else { throw Failure.usage("--key \(key.number) is given twice") }
            var object: [String: JSONValue] = [
                "number": .integer(Int64(key.number)), "type": .string(key.type == "lrp" ? "aes" : key.type),
                "key": .string(Hex.encode(key.octets)),
            ]
            if key.isMaster { object["diversified"] = .bool(true) }
            return .object(object)
        }
    }

    /// `N=VALUE`, with `:an10922` behind it for a master key.
    private static func key(_ text: String, _ type: String, value: (String, String) throws -> String) throws -> Key {
        let isMaster = text.hasSuffix(masterMark)
        let parts = text.dropLast(isMaster ? masterMark.count : 0).split(separator: "=", maxSplits: 1).map(String.init)
        guard parts.count == 2, let number = UInt8(parts[0]), number < 14 else {
            throw Failure.usage("--key takes N=VALUE with a number from 0 to 13")
        }
        guard !isMaster || type != "des" else { throw Failure.usage("--key \(number): a DES key cannot be diversified") }
        let octets = try octets(
            try value(parts[1], pad("key \(number)", 9)), "--key \(number)", types[type] ?? 16)
        return Key(number: number, type: type, octets: octets, isMaster: isMaster)
    }

    /// A key a line: `N=HEX`, or as among secrets `desfire aid F00001 key N aes HEX`, either with `an10922` behind it; `#` begins a
    /// comment. Lines of other secrets are passed over.
    private static func inFile(_ path: String, _ type: String) throws -> [Key] {
        var keys: [Key] = []
        let text = try FileText.read(path, limit: 1 << 16)
        for (index, raw) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let line = String(raw.prefix { $0 != "#" })
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
            guard let first = words.first else { continue }
            do {
                if first.contains("="), first.first?.isNumber == true {
                    guard words.count == 1 || (words.count == 2 && words[1] == "an10922") else {
                        throw Failure.usage("\(words[1]) after the key; an10922 may stand there")
                    }
                    keys.append(try key(first + (words.count == 2 ? masterMark : ""), type) { value, _ in value })
                } else {
                    for case .desfire(let secret) in try SecretLine.parse(line, name: path) {
                        let isShort = secret.type == "des" && secret.octets.count == 16
                        keys.append(
                            Key(
                                number: secret.keyNumber, type: isShort ? "2k3des" : secret.type, octets: secret.octets,
                                isMaster: secret.isDiversified, application: secret.application))
                    }
                }
            } catch let error as TraceFileError {
                throw Failure(.wrongUsage, "\(path), line \(index + 1): \(error.detail)")
            } catch let error as Failure {
                throw Failure(.wrongUsage, "\(path), line \(index + 1): \(error.lines.first ?? "")")
            }
        }
        guard !keys.isEmpty else { throw Failure.usage("\(path) has no key of a DESFire card: N=HEX a line") }
        return keys
    }
}
