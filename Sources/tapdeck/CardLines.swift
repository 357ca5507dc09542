// SPDX-License-Identifier: MIT

import TraceFile

/// Results of the flows `desfire`, `ntag424` and `ndef` as lines.
enum CardLines {
    static func lines(_ flow: String, _ value: JSONValue) -> [String] {
        switch flow {
        case "desfire": desfire(value)
        case "ntag424": ntag424(value)
        default: ndef(value)
        }
    }

    static func ndef(_ value: JSONValue) -> [String] {
        let records = value["records"]?.arrayValue ?? []
        guard !records.isEmpty else { return ["\(pad("ndef", 8)) no message"] }
        return records.map { "\(pad("ndef", 8)) \(pad(text($0["type"]), 14)) \(text($0["value"]))" }
    }

    private static func desfire(_ value: JSONValue) -> [String] {
        var lines = ["\(pad("card", 8)) \(pad("DESFire", 14)) \(text(value["version"]?["uid"]))"]
        for application in value["applications"]?.arrayValue ?? [] {
            let keys = application["keySettings"]?["keyCount"]?.integerValue.map { "\($0) key\($0 == 1 ? "" : "s")" } ?? ""
            lines.append(
                "\(pad("app", 8)) \(pad(text(application["identifier"]), 14)) \(application["refusal"]?.stringValue ?? keys)")
            lines += files(application)
        }
        return lines
    }

    private static func ntag424(_ value: JSONValue) -> [String] {
        var lines = ["\(pad("card", 8)) \(pad("NTAG 424 DNA", 14)) \(text(value["version"]?["uid"]))"]
        if let isOriginal = value["isOriginal"]?.boolValue {
            lines.append("\(pad("card", 8)) \(pad("signature", 14)) \(isOriginal ? "NXP's" : "not NXP's")")
        }
        return lines + files(value)
    }

    private static func files(_ value: JSONValue) -> [String] {
        (value["files"]?.arrayValue ?? []).map { file in
            let number = file["number"]?.integerValue.map { "\($0)" } ?? ""
            return "\(pad("file", 8)) \(pad(number, 14)) \(content(file))"
        }
    }

    private static func content(_ file: JSONValue) -> String {
        if let refusal = file["refusal"]?.stringValue { return refusal }
        if let value = file["value"]?.integerValue { return "value \(value)" }
        guard let hex = file["data"]?.stringValue else { return "" }
        if hex.isEmpty { return "empty" }
        return hex.count <= 36 ? hex : "\(hex.prefix(16))...\(hex.suffix(4)), \(grouped(hex.count / 2)) bytes"
    }

    private static func text(_ value: JSONValue?) -> String { value?.stringValue ?? "" }
}
