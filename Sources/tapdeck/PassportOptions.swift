// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Octets
import TraceFile

/// The passport flow's options.
enum PassportOptions {
    static let specs = [
        OptionSpec(
            "--mrz-key", .asked("KEY"), "passport: number, birth and expiry with check digits; ask, env:NAME, file:PATH, -"),
        OptionSpec("--number", .asked("TEXT"), "passport: the document number, with --birth and --expiry (YYMMDD)"),
        OptionSpec("--birth", .asked("YYMMDD"), "passport: the date of birth"),
        OptionSpec("--expiry", .asked("YYMMDD"), "passport: the date of expiry"),
        OptionSpec("--can", .asked("DIGITS"), "passport: the card access number, for PACE"),
        OptionSpec("--pin", .asked("DIGITS"), "passport: the holder's PIN, for PACE; wrong tries are counted"),
        OptionSpec("--puk", .asked("DIGITS"), "passport: what unblocks the PIN, for PACE"),
        OptionSpec("--dg", .required("LIST"), "passport: the files to read, com,sod,dg1 without it"),
        OptionSpec("--csca", .required("FILE"), "passport: a certificate or master list to trust; may be repeated"),
        OptionSpec("--terminal-cert", .required("FILE"), "passport: a terminal's CV certificate; may be repeated"),
        OptionSpec("--terminal-key", .required("FILE"), "passport: the terminal's private key in DER"),
    ]

    static func argumentsJSON(_ arguments: Arguments, _ terminal: Terminal) throws -> String {
        let names = (arguments.value("--dg") ?? "com,sod,dg1").split(separator: ",").map { $0.lowercased() }
        let known = DataGroupId.allCases.map(\.rawValue)
        for name in names where !known.contains(name) {
            throw Failure.usage("no file \(name)\(Nearest.suggestion(for: name, among: known)): --dg com,sod,dg1")
        }
        guard !names.isEmpty else { throw Failure.usage("--dg names no file") }
        let certificates = arguments.values("--terminal-cert")
        let key = arguments.value("--terminal-key")
        guard certificates.isEmpty == (key == nil) else {
            throw Failure.usage("--terminal-cert and --terminal-key belong together")
        }
        let (name, password) = try access(arguments, terminal)
        var object = flowArguments(name, password, dataGroups: names)
        object["trustAnchors"] = .array(try arguments.values("--csca").map(hex))
        if let key {
            object["terminalCertificates"] = .array(try certificates.map(hex))
            object["terminalKey"] = try hex(key)
        }
        return JSONValue.object(object).text
    }

    /// The arguments of the flow without trust anchors and terminal.
    static func flowArguments(_ name: String, _ password: String, dataGroups: [String]) -> [String: JSONValue] {
        [
            name: .string(password), "dataGroups": .array(dataGroups.map { .string($0) }), "performActiveAuth": .bool(true),
            "trustAnchors": .array([]),
        ]
    }

    private static func hex(_ path: String) throws -> JSONValue {
        .string(Hex.encode(try FileText.octets(path, limit: 1 << 26)))
    }

    /// The password's JSON key and its text.
    private static func access(_ arguments: Arguments, _ terminal: Terminal) throws -> (String, String) {
        let isApart = ["--number", "--birth", "--expiry"].contains { arguments.has($0) }
        let given = ["--mrz-key", "--can", "--pin", "--puk"].filter { arguments.has($0) } + (isApart ? ["--number"] : [])
        guard given.count <= 1 else { throw Failure.usage("\(given.joined(separator: " and ")) exclude each other") }
        func secret(_ option: String, _ prompt: String) throws -> String {
            try SecretValue.read(arguments.value(option), option: option, prompt: prompt, terminal)
        }
        switch given.first {
        case "--can": return ("can", try secret("--can", "CAN      "))
        case "--pin": return ("pin", try secret("--pin", "PIN      "))
        case "--puk": return ("puk", try secret("--puk", "PUK      "))
        case "--mrz-key": return ("mrzKey", try secret("--mrz-key", "key      "))
        case "--number": return ("mrzKey", try key(try secret("--number", "number   "), secret))
        default:
            let text = try SecretValue.read(
                nil, option: "--mrz-key", prompt: "key      second MRZ line, or document number, or CAN: ", terminal)
            return try guess(text, secret)
        }
    }

    /// What was typed at the prompt: a line of the zone or a key, six digits of a CAN, or a document number, whose dates are asked for.
    private static func guess(_ text: String, _ secret: (String, String) throws -> String) throws -> (String, String) {
        if let key = try? MRZKey(text) { return ("mrzKey", key.value) }
        if text.utf8.count == 6, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) { return ("can", text) }
        return ("mrzKey", try key(text, secret))
    }

    private static func key(_ number: String, _ secret: (String, String) throws -> String) throws -> String {
        do {
            return try MRZKey(
                documentNumber: number, dateOfBirth: try secret("--birth", "         date of birth  YYMMDD: "),
                dateOfExpiry: try secret("--expiry", "         date of expiry YYMMDD: ")
            ).value
        } catch let error as MRZError {
            throw Failure(.wrongUsage, "\(error)")
        }
    }
}
