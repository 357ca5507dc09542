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

    /// Puts one line at the end of `text`.
    mutating func write(_ decoded: DecodedRow, to text: inout TextBuffer) {
        let row = decoded.row
        begin(decoded)
        text.append("{\"n\":")
        text.append(number: UInt64(clamping: row.frame))
        if let packet = row.packetID {
            text.append(",\"packet\":")
            number(packet, &text)
        }
        text.append(",\"time\":\"")
        text.append(decimal: row.time >= (start ?? 0) ? row.time - (start ?? 0) : 0, places: 9)
        text.append("\",\"interface\":")
        text.append(json: decoded.interface.name)
        text.append(",\"kind\":")
        text.append(json: decoded.kind.rawValue)
        text.append(",\"bytes\":\"")
        text.append(hex: showsSecrets ? SealedPlaces(row: row, secrets: secrets).octets : row.body)
        text.append("\",\"sealed\":[")
        list(decoded.sealed, &text) { place, text in
            text.append(0x5B)
            text.append(number: UInt64(clamping: place.lowerBound))
            text.append(0x2C)
            text.append(number: UInt64(clamping: place.count))
            text.append(0x5D)
        }
        text.append("],\"grammar\":")
        text.append(json: decoded.grammar)
        text.append(",\"message\":")
        text.append(json: decoded.message)
        text.append(",\"summary\":")
        text.append(json: decoded.summary)
        text.append(",\"fields\":[")
        list(decoded.fields, &text, field)
        text.append("],\"annotations\":[")
        list(decoded.annotations, &text, annotation)
        text.append("],\"sessions\":[")
        list(decoded.sessions, &text) { session, text in
            text.append("{\"name\":")
            text.append(json: session.name)
            text.append(",\"state\":")
            text.append(json: session.state)
            text.append(0x7D)
        }
        text.append(0x5D)
        if let plain = decoded.plain {
            text.append(",\"plain\":\"")
            text.append(hex: plain)
            text.append(0x22)
        }
        text.append("}\n")
    }

    private func list<Element>(
        _ elements: [Element], _ text: inout TextBuffer, _ write: (Element, inout TextBuffer) -> Void
    ) {
        for index in elements.indices {
            if index > 0 { text.append(0x2C) }
            write(elements[index], &text)
        }
    }

    /// A number up to 53 bits, else hexadecimal text.
    private func number(_ value: UInt64, _ text: inout TextBuffer) {
        guard value >= 1 << 53 else { return text.append(number: value) }
        text.append(0x22)
        text.append(hex: (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * UInt64($0))) })
        text.append(0x22)
    }

    private func field(_ field: DecodedField, _ text: inout TextBuffer) {
        text.append("{\"bits\":")
        text.append(number: UInt64(clamping: field.bits))
        text.append(",\"buffer\":")
        text.append(number: UInt64(clamping: field.buffer))
        text.append(",\"path\":")
        text.append(json: field.path)
        text.append(",\"start\":")
        text.append(number: UInt64(clamping: field.start))
        text.append(",\"text\":")
        text.append(json: field.text)
        text.append(",\"value\":")
        switch field.value {
        case .number(let value): number(value, &text)
        case .octets(let octets):
            text.append(0x22)
            text.append(hex: octets)
            text.append(0x22)
        }
        text.append(0x7D)
    }

    private func annotation(_ annotation: Annotation, _ text: inout TextBuffer) {
        text.append(0x7B)
        if let blame = annotation.blame {
            text.append("\"blame\":")
            text.append(json: blame.rawValue)
            text.append(0x2C)
        }
        text.append("\"code\":")
        text.append(json: annotation.code)
        if let path = annotation.path {
            text.append(",\"path\":")
            text.append(json: path)
        }
        if let rule = annotation.rule {
            text.append(",\"rule\":")
            text.append(json: rule)
        }
        if let see = annotation.see {
            text.append(",\"see\":")
            number(see, &text)
        }
        text.append(",\"severity\":")
        text.append(json: annotation.severity.rawValue)
        text.append(",\"text\":")
        text.append(json: annotation.text)
        text.append(0x7D)
    }
}
