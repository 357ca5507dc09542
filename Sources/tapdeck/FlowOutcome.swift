// SPDX-License-Identifier: MIT

import Flows
import Octets
import TagTransport
import TraceDecoding
import TraceFile

/// What a flow that returned a result could not get all the same.
struct FlowLoss {
    var status: ExitStatus
    var text: String
}

/// The results of flows as lines.
enum FlowOutcome {
    /// What a read could not get although a result came back: the first of its problems, one of the outside before others; nil when
    /// there was none. A file that the document does not have is no problem.
    static func loss(_ flow: String, _ outcome: String) -> FlowLoss? {
        guard flow == "passport", let problems = (try? JSONValue.parse(outcome))?["problems"]?.arrayValue else { return nil }
        let losses = problems.compactMap { problem -> FlowLoss? in
            guard let kind = problem["kind"]?.stringValue else { return nil }
            let text = "\(problem["side"]?.stringValue ?? "card"): \(problem["detail"]?.stringValue ?? kind)"
            return FlowLoss(status: kind == "lost" ? .outside : .notSo, text: text)
        }
        return losses.first { $0.status == .outside } ?? losses.first
    }

    static func lines(_ flow: String, _ outcome: String, argumentsJSON: String, isJSON: Bool) -> [String] {
        if isJSON { return [outcome] }
        guard let value = try? JSONValue.parse(outcome) else { return [outcome] }
        switch flow {
        case "passport": return passport(value)
        case "apdu": return script(value, argumentsJSON)
        // Its steps were shown as they happened.
        case "credential": return []
        case "desfire", "ntag424", "ndef": return CardLines.lines(flow, value)
        default: return [outcome]
        }
    }

    /// What became of each file that was asked for, and what was checked.
    private static func passport(_ value: JSONValue) -> [String] {
        let status = value["dataGroupReadStatus"]?.objectValue ?? [:]
        let read = status.values.count { $0.stringValue == "read" }
        var lines: [String] = []
        for (group, state) in status.sorted(by: { $0.key < $1.key }) where state.stringValue != "read" {
            lines.append("\(pad("read", 8)) \(pad(group.uppercased(), 14)) \(words(state))")
        }
        let report = value["securityReport"]
        lines += chip(report, isKnown: status["sod"] != nil)
        if let stage = report?["terminalAuthentication"] { lines.append(line("terminal", stage)) }
        if let stage = report?["passiveAuthentication"] {
            lines.append(line("passive", stage, holds: held(value["passiveAuthentication"]), isKnown: status["sod"] != nil))
        }
        lines.append("\(pad("result", 8)) \(read) of \(status.count) files read")
        return lines
    }

    /// What the chip proved of itself: one line when it offers nothing, else one for each way.
    private static func chip(_ report: JSONValue?, isKnown: Bool) -> [String] {
        let (chip, active) = (report?["chipAuthentication"], report?["activeAuthentication"])
        func isNotOffered(_ stage: JSONValue?) -> Bool { stage?["status"]?.stringValue == "notAdvertised" }
        if isNotOffered(chip), isNotOffered(active) {
            return ["\(pad("chip", 8)) \(pad("not offered", 14)) EF.SOD lists neither DG14 nor DG15"]
        }
        return [("chip", chip), ("active", active)].compactMap { name, stage in stage.map { line(name, $0, isKnown: isKnown) } }
    }

    /// - Parameters:
    ///   - holds: what was checked and is right, before what is to be said besides.
    ///   - isKnown: whether EF.SOD was read, without which nobody knows what the document offers.
    private static func line(_ name: String, _ stage: JSONValue, holds: String = "", isKnown: Bool = true) -> String {
        var detail = stage["detail"]?.stringValue ?? ""
        if !isKnown, detail == "not performed" { detail = "EF.SOD was not asked for" }
        return "\(pad(name, 8)) \(pad(words(stage["status"]), 14)) \(holds)\(detail)"
    }

    /// What Passive Authentication found right when it could not go to its end for want of trust.
    private static func held(_ result: JSONValue?) -> String {
        guard let result, ["unknown", "notVerified"].contains(result["trust"]?.stringValue) else { return "" }
        let hashes = result["dataGroups"]?.objectValue.map { $0.values.compactMap(\.stringValue) } ?? []
        var parts: [String] = []
        if hashes.contains(where: { $0.hasPrefix("matches") }), !hashes.contains("differs") { parts.append("hashes right") }
        if result["signature"]?.stringValue == "valid" { parts.append("signature right") }
        return parts.isEmpty ? "" : "\(parts.joined(separator: ", ")); "
    }

    /// A state's name in words: `notPresent` is `not present`.
    private static func words(_ state: JSONValue?) -> String {
        switch state?.stringValue {
        case "notPresent": "not present"
        case "notRead": "not read"
        case "notAdvertised": "not offered"
        case "notSupported": "not supported"
        case let text: text ?? ""
        }
    }

    /// Each command of a script with its answer; secret bytes of commands are not printed.
    private static func script(_ value: JSONValue, _ argumentsJSON: String) -> [String] {
        guard let text = (try? JSONValue.parse(argumentsJSON))?["script"]?.stringValue, let script = try? APDUScript(text) else {
            return []
        }
        let answers = value["answers"]?.arrayValue ?? value.arrayValue ?? []
        return zip(script.commands, answers).map { command, answer in
            let octets = (answer.stringValue).flatMap { try? Hex.decode($0) } ?? []
            return "\(pad(APDUFields.standard.name(of: command.octets), 42)) \(shown(octets))"
        }
    }

    private static func shown(_ octets: [UInt8]) -> String {
        if octets.count <= 18 { return Hex.encode(octets) }
        return "\(Hex.encode(octets.prefix(8)))...\(Hex.encode(octets.suffix(2))), \(grouped(octets.count)) bytes"
    }
}
