// SPDX-License-Identifier: MIT

import Octets
import TraceDecoding
import TraceFile

/// `show --json`: one object a row, keys in the order in which the documents list them.
struct JSONView {
    let showsSecrets: Bool
    let secrets: SecretStore
    private var start: UInt64?

    init(showsSecrets: Bool, secrets: SecretStore) {
        self.showsSecrets = showsSecrets
        self.secrets = secrets
    }

    /// Times count from the first row.
    mutating func begin(_ decoded: DecodedRow) { if start == nil { start = decoded.row.time } }

    mutating func line(_ decoded: DecodedRow) -> String {
        let row = decoded.row
        begin(decoded)
        let time = row.time >= (start ?? 0) ? row.time - (start ?? 0) : 0
        let body = showsSecrets ? SealedPlaces(row: row, secrets: secrets).octets : row.body
        var members: [(String, JSONValue)] = [("n", .integer(Int64(row.frame)))]
        if let packet = row.packetID { members.append(("packet", number(packet))) }
        members += [
            ("time", .string(SummaryLine.decimal(time, places: 9))), ("interface", .string(decoded.interface.name)),
            ("kind", .string(decoded.kind.rawValue)), ("bytes", .string(Hex.encode(body))),
            ("sealed", .array(decoded.sealed.map { .array([.integer(Int64($0.lowerBound)), .integer(Int64($0.count))]) })),
            ("grammar", .string(decoded.grammar)), ("message", .string(decoded.message)), ("summary", .string(decoded.summary)),
            ("fields", .array(decoded.fields.map(field))), ("annotations", .array(decoded.annotations.map(annotation))),
            (
                "sessions",
                .array(decoded.sessions.map { .object(["name": .string($0.name), "state": .string($0.state)]) })
            ),
        ]
        if let plain = decoded.plain { members.append(("plain", .string(Hex.encode(plain)))) }
        return "{" + members.map { "\(JSONValue.string($0.0).text):\($0.1.text)" }.joined(separator: ",") + "}"
    }

    /// A number up to 53 bits, else hexadecimal text.
    private func number(_ value: UInt64) -> JSONValue {
        value < 1 << 53
            ? .integer(Int64(value))
            : .string(Hex.encode((0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * UInt64($0))) }))
    }

    private func field(_ field: DecodedField) -> JSONValue {
        let value: JSONValue =
            switch field.value {
            case .number(let value): number(value)
            case .octets(let octets): .string(Hex.encode(octets))
            }
        return .object([
            "path": .string(field.path), "value": value, "text": .string(field.text), "buffer": .integer(Int64(field.buffer)),
            "start": .integer(Int64(field.start)), "bits": .integer(Int64(field.bits)),
        ])
    }

    private func annotation(_ annotation: Annotation) -> JSONValue {
        var members: [String: JSONValue] = [
            "code": .string(annotation.code), "severity": .string(annotation.severity.rawValue), "text": .string(annotation.text),
        ]
        if let path = annotation.path { members["path"] = .string(path) }
        if let blame = annotation.blame { members["blame"] = .string(blame.rawValue) }
        if let see = annotation.see { members["see"] = number(see) }
        if let rule = annotation.rule { members["rule"] = .string(rule) }
        return .object(members)
    }
}
