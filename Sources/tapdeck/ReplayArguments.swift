// SPDX-License-Identifier: MIT

import Replay
import TraceFile

/// The options of `replay` as the library takes them.
enum ReplayArguments {
    /// Arguments of the recorded call that can be given again.
    static let specs = secretSpecs + PassportOptions.specs.filter { $0.name == "--dg" }

    /// Those of them that are passwords and keys.
    static let secretSpecs =
        passwords
        + CardKeyOptions.specs.filter { ["--key", "--key-type"].contains($0.name) }

    private static let passwords = PassportOptions.specs.filter {
        ["--mrz-key", "--number", "--birth", "--expiry", "--can", "--pin", "--puk"].contains($0.name)
    }

    static func options(_ arguments: Arguments, _ terminal: Terminal) throws -> ReplayOptions {
        var options = ReplayOptions()
        if let text = arguments.value("--mode"), text != "each" {
            options.mode = try named(text, "mode", ReplayMode.allCases.map { ($0.rawValue, $0) }, also: ["each"])
        }
        if let text = arguments.value("--order") {
            options.order = try named(text, "order", ReplayOrder.allCases.map { ($0.rawValue, $0) })
        }
        if let text = arguments.value("--entropy") { options.entropy = try entropy(text) }
        if let text = arguments.value("--speed") { options.timeScale = try speed(text) }
        if let text = arguments.value("--unrecorded") {
            guard let policy = UnrecordedPolicy(text) else {
                let known = ["stop", "next", "nearest", "model"]
                throw Failure.usage(
                    "--unrecorded takes stop, next, nearest, model or a status word, not \(text)\(Nearest.suggestion(for: text, among: known))"
                )
            }
            options.unrecorded = policy
        }
        options.grammars = try TraceAccess.grammars(arguments)
        options.arguments = try given(arguments, terminal)
        return options
    }

    private static func named<Value>(
        _ text: String, _ what: String, _ known: [(name: String, value: Value)], also: [String] = []
    ) throws -> Value {
        if let found = known.first(where: { $0.name == text }) { return found.value }
        let names = known.map(\.name) + also
        throw Failure.usage(
            "unknown \(what) \(text)\(Nearest.suggestion(for: text, among: names)); there are \(names.joined(separator: ", "))")
    }

    private static func entropy(_ text: String) throws -> ReplayEntropy {
        switch text {
        case "recorded": return .recorded
        case "fresh": return .fresh
        default:
            guard text.hasPrefix("seed:"), let seed = UInt64(text.dropFirst(5)) else {
                throw Failure.usage("--entropy takes recorded, fresh or seed:N, not \(text)")
            }
            return .seed(seed)
        }
    }

    private static func speed(_ text: String) throws -> Double {
        if text == "recorded" { return 1 }
        guard let scale = Double(text), scale.isFinite, (0...1000).contains(scale) else {
            throw Failure.usage("--speed takes recorded, 0, or how many times as long answers take, not \(text)")
        }
        return scale
    }

    /// What stands in place of recorded arguments, under their names in JSON.
    private static func given(_ arguments: Arguments, _ terminal: Terminal) throws -> [String: JSONValue] {
        var given: [String: JSONValue] = [:]
        if passwords.contains(where: { arguments.has($0.name) }) {
            let values = try JSONValue.parse(PassportOptions.argumentsJSON(arguments, terminal)).objectValue ?? [:]
            for name in ["mrzKey", "can", "pin", "puk"] { given[name] = values[name] }
        }
        if let list = arguments.value("--dg") {
            given["dataGroups"] = .array(list.split(separator: ",").map { .string($0.lowercased()) })
        }
        if arguments.has("--key") {
            let keys = try CardKeyOptions.keys(arguments, terminal)
            // DESFire takes several, NTAG 424 DNA one; a flow passes over what it does not know.
            given["keys"] = .array(keys)
            if let first = keys.first { given["key"] = first }
        }
        return given
    }
}
