// SPDX-License-Identifier: MIT

import Octets
import TraceFile

/// The trace's own rows on one line each.
enum MetaText {
    static func describe(_ meta: MetaRow, _ decoded: inout DecodedRow, secrets: SecretStore) {
        decoded.meta = meta
        switch meta {
        case .transport(let row):
            decoded.kind = .transport
            decoded.message = "transport"
            decoded.summary = "transport \(row.id), \(row.kind.rawValue)"
        case .call(let row):
            decoded.kind = .call
            decoded.message = "call"
            decoded.summary = call(row)
        case .progress:
            decoded.kind = .progress
            decoded.message = "progress"
            decoded.summary = "progress"
        case .entropy(let row):
            decoded.kind = .entropy
            decoded.message = "entropy"
            decoded.summary = "\(row.length) random bytes: \(label(row.label))"
        case .clock(let row):
            decoded.kind = .clock
            decoded.message = "clock"
            decoded.summary = "\(row.kind.rawValue) time read"
        case .state(let row):
            decoded.kind = .state
            decoded.message = "state"
            decoded.summary = "\(row.machine): \(row.from) -> \(row.to)"
            decoded.sessions.append((row.machine, row.to))
        case .event(let row):
            decoded.kind = .event
            decoded.message = "event"
            decoded.summary = row.name
        case .error(let row): error(row, &decoded)
        case .return(let row): outcome(row, &decoded, secrets: secrets)
        case .reader(let row): reader(row, &decoded)
        case .mark(let row):
            decoded.kind = .mark
            decoded.message = "mark"
            decoded.summary = row.text
        case .unknown:
            decoded.kind = .event
            decoded.message = "unknown"
            decoded.summary = "a row of a later version"
        }
    }

    /// `readPassport com, sod, dg1`: the function's base name and the arguments that are lists of names.
    private static func call(_ row: MetaRow.Call) -> String {
        var text = baseName(row.function)
        for (_, value) in row.args.sorted(by: { $0.key < $1.key }) {
            let names = (value.arrayValue ?? []).compactMap(\.stringValue)
            if !names.isEmpty { text += " " + names.joined(separator: ", ") }
        }
        return text
    }

    /// What the answer column says of a call: which arguments are sealed.
    static func sealedArguments(_ row: MetaRow.Call) -> String {
        let names = row.args.filter { $0.value.sealedName != nil }.keys.sorted()
        guard let first = names.first else { return "" }
        return first.hasSuffix("Key") ? "key sealed" : "\(first) sealed"
    }

    /// `readPassport` of `readPassport(transport:mrzKey:)`.
    static func baseName(_ function: String) -> String { String(function.prefix { $0 != "(" }) }

    /// `RND.IFD` for `bac.rndIFD`: the standard's own name where there is one.
    static func label(_ label: String) -> String {
        switch label {
        case "bac.rndIFD": "RND.IFD"
        case "bac.kIFD": "K.IFD"
        default: label
        }
    }

    private static func error(_ row: MetaRow.Failure, _ decoded: inout DecodedRow) {
        decoded.kind = .error
        decoded.message = "error"
        let what: String
        let blame: Annotation.Blame
        switch row.case {
        case "tagConnectionLost": (what, blame) = ("card removed", .outside)
        case "tagReset": (what, blame) = ("card reset by another program", .outside)
        case "timeout": (what, blame) = ("no answer in time", .card)
        case "readerUnavailable", "serviceUnavailable":
            (what, blame) = (row.case == "readerUnavailable" ? "reader gone" : "service gone", .outside)
        default: (what, blame) = (row.case, .reader)
        }
        let isOwn = row.after == nil || row.after == decoded.row.packetID
        decoded.summary = isOwn ? what : "\(what); exchange \(row.after ?? 0) has no answer"
        decoded.annotations.append(
            Annotation(
                code: row.case, severity: .error, text: decoded.summary, path: "pcscReader.code", blame: blame,
                see: isOwn ? nil : row.after
            )
        )
        if let code = row.code {
            decoded.fields.append(
                DecodedField(
                    path: "pcscReader.code", value: .octets((try? Hex.decode(code)) ?? []), text: code, buffer: 0, start: 0,
                    bits: decoded.row.body.count * 8
                )
            )
        }
    }

    private static func outcome(_ row: MetaRow.Return, _ decoded: inout DecodedRow, secrets: SecretStore) {
        decoded.kind = .returned
        decoded.message = "return"
        if row.ok {
            let result = secrets.value(named: "call:\(row.call):result").flatMap { try? JSONValue.parse($0) }
            decoded.summary = result.flatMap(readGroups).map { "read \($0)" } ?? "returned"
        } else {
            decoded.summary = "threw \(row.case ?? "an error")"
        }
    }

    /// The data groups that a passport's result says were read.
    private static func readGroups(_ result: JSONValue) -> String? {
        guard case .object(let fields) = result, case .object(let status)? = fields["dataGroupReadStatus"] else { return nil }
        let read = status.filter { $0.value == .string("read") }.keys
        // COM and SOD stand before the data groups, these by number.
        let order = read.sorted { (rank($0), $0) < (rank($1), $1) }
        return order.isEmpty ? nil : order.joined(separator: ", ")
    }

    private static func rank(_ group: String) -> Int {
        switch group {
        case "com": 0
        case "sod": 1
        default: UInt8(group.drop { !$0.isNumber }).map { 1 + Int($0) } ?? 999
        }
    }

    private static func reader(_ row: MetaRow.Reader, _ decoded: inout DecodedRow) {
        decoded.kind = .reader
        decoded.message = row.name
        let atr = row.atr.map { $0.isEmpty ? "" : ", ATR \(Hex.encode($0))" } ?? ""
        switch row.name {
        case "connect": decoded.summary = "card in\(atr)"
        case "reset": decoded.summary = "card reset\(atr)"
        case "removal": decoded.summary = "card taken out"
        case "powerOff": decoded.summary = "power off"
        case "control":
            decoded.summary =
                "reader control \(row.control.map { Hex.encode([UInt8(truncatingIfNeeded: $0 >> 24), UInt8(truncatingIfNeeded: $0 >> 16), UInt8(truncatingIfNeeded: $0 >> 8), UInt8(truncatingIfNeeded: $0)]) } ?? "")"
        default: decoded.summary = row.name
        }
    }
}
