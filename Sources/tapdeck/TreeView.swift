// SPDX-License-Identifier: MIT

import Octets
import TraceDecoding
import TraceFile

/// `show --tree`: the rows of one exchange with every octet and what it means.
///
/// Left is the offset in the frame, in hexadecimal; `=` begins what was made from it. The word at the place of a check is
/// `held`, `FAILED` or `sealed`.
struct TreeView {
    private var start: UInt64?
    private var late: [Annotation] = []
    private static let bytesColumn = 6
    private static let nameColumn = 24
    private static let perLine = 32

    /// Times count from the first row.
    mutating func begin(_ row: DecodedRow) { if start == nil { start = row.row.time } }

    /// The lines of one exchange.
    mutating func lines(_ rows: [DecodedRow]) -> [String] {
        guard let first = rows.first(where: { !$0.isDerived }) else { return [] }
        begin(first)
        let rows = rows.filter { !$0.isTwin && !$0.isDerived && ![.transport, .progress, .clock].contains($0.kind) }
        guard !rows.isEmpty else { return [] }
        // Checks on a command that only the answer decided.
        late = rows.filter { $0.kind == .response }.flatMap(\.annotations).filter { $0.field == nil && $0.isAuthentication }
        var lines = [title(rows)]
        var before: UInt64?
        for row in rows {
            lines += ["", head(row, before)]
            before = row.row.time
            lines += row.meta == nil && row.kind != .reader || !row.fields.isEmpty ? body(row) : ["  \(row.summary)"]
            for annotation in row.annotations where annotation.code != "held" && annotation.code != "sealed" {
                let side = annotation.blame.map { "\($0.rawValue): " } ?? ""
                lines.append("  ! \(side)\(annotation.text)\(annotation.see.map { ", see exchange \($0)" } ?? "")")
            }
        }
        for file in rows.compactMap(\.file) { lines += [""] + contents(file) }
        if let row = rows.last(where: { !$0.sessions.isEmpty }) { lines.append(session(row)) }
        return lines.map { line in String(line.reversed().drop { $0 == " " }.reversed()) }
    }

    // MARK: - Heads

    private func title(_ rows: [DecodedRow]) -> String {
        let main = rows.first { $0.kind == .command || $0.kind == .frame } ?? rows[0]
        var what = main.summary
        if let file = main.fileName { what += " of \(file)" }
        let number = main.row.packetID.map { "exchange \($0)" } ?? "frame \(main.row.frame)"
        return "\(pad("\(number)  \(what)", 56))\(standing(rows))"
    }

    /// `opened, both MACs held`.
    private func standing(_ rows: [DecodedRow]) -> String {
        let codes = rows.flatMap(\.annotations).filter(\.isAuthentication).map(\.code)
        let failed = codes.filter { $0 == "failed" }.count
        let held = codes.filter { $0 == "held" }.count
        if failed > 0 { return failed == 1 ? "a MAC FAILED" : "\(failed) MACs FAILED" }
        let opened = rows.contains { $0.opening == .opened } ? "opened" : ""
        if held == 0 { return rows.contains { $0.opening == .sealed } ? "sealed, no key" : opened }
        return
            "\(opened.isEmpty ? "" : "\(opened), ")\(held == 1 ? "the MAC held" : held == 2 ? "both MACs held" : "\(held) MACs held")"
    }

    private func head(_ row: DecodedRow, _ before: UInt64?) -> String {
        let name =
            row.kind == .response ? "answer" : row.kind == .frame && row.row.direction == .received ? "answer" : row.kind.rawValue
        let time: String
        if let before, row.kind == .response || row.row.direction == .received {
            let step = row.row.time >= before ? row.row.time - before : 0
            time = "+\(SummaryLine.decimal((step / 10_000) + (step % 10_000 >= 5_000 ? 1 : 0), places: 2)) ms"
        } else {
            let elapsed = row.row.time >= (start ?? 0) ? row.row.time - (start ?? 0) : 0
            time = "\(SummaryLine.decimal(elapsed / 1_000, places: 6)) s"
        }
        return
            "\(pad(name, 9)) \(pad("frame \(row.row.frame)", 10)) \(pad(time, 12)) \(pad(row.interface.name, 8)) \(row.row.body.count) bytes"
    }

    private func session(_ row: DecodedRow) -> String {
        var parts = row.sessions.map { session in
            let name =
                session.name.hasSuffix("Session") && session.name.count > 7 ? String(session.name.dropLast(7)) : session.name
            return "\(name == "secureMessaging" ? "secure messaging" : name) \(session.state)"
        }
        parts += row.counters.map { "\($0.name) \(Hex.encode($0.octets))" }
        return "session   \(parts.joined(separator: "; "))"
    }

    // MARK: - Fields

    private func body(_ row: DecodedRow) -> [String] {
        var lines = fields(row, buffer: 0)
        for buffer in row.derived where buffer.origin != .remembered {
            switch buffer.origin {
            case .plain: lines += plain(row, buffer)
            case .opened, .gathered, .remembered:
                lines.append("  = \(pad(buffer.origin.rawValue, Self.nameColumn - 4))\(buffer.count) bytes")
                lines += fields(row, buffer: buffer.number).map { "  " + $0 }
            }
        }
        return lines
    }

    private func fields(_ row: DecodedRow, buffer: Int) -> [String] {
        let fields = row.fields.enumerated().filter { $0.element.buffer == buffer && $0.element.bits > 0 }
        var lines: [String] = []
        var place = 0
        var end = 0
        let isWide = (buffer == 0 ? row.row.body.count : row.derived.first { $0.number == buffer }?.count ?? 0) > 0x100
        while place < fields.count {
            let (number, field) = fields[place]
            place += 1
            // Bits of a group that was shown as a whole.
            if field.start < end { continue }
            let octets = octets(of: field, row)
            if field.shape == .header, place < fields.count, field.path == fields[place].element.path + ".header" {
                let (valueNumber, value) = fields[place]
                place += 1
                let head = value.shape == .leaf ? "\(Hex.encode(octets)) \(hex(value, row))" : Hex.encode(octets)
                lines += line(
                    field.start / 8, head, value,
                    value.shape == .leaf ? words(value, valueNumber, row) : value.label == name(value) ? "" : value.label, isWide)
                if value.shape == .leaf { end = value.start + value.bits }
                continue
            }
            if field.shape == .composite {
                guard case .number = field.value else { continue }
                lines += line(field.start / 8, Hex.encode(octets), field, words(field, number, row), isWide)
                end = field.start + field.bits
                continue
            }
            if let offset = offset(row, field, fields.count > place ? fields[place].element : nil) {
                var both = field
                both.path += "p2"
                lines += line(field.start / 8, offset.hex, both, "offset \(offset.value)", isWide)
                place += 1
                continue
            }
            lines += line(field.start / 8, hex(field, row), field, words(field, number, row), isWide)
        }
        return lines
    }

    /// P1 and P2 together where they are one offset (ISO/IEC 7816-4 11.3.3).
    private func offset(_ row: DecodedRow, _ field: DecodedField, _ next: DecodedField?) -> (hex: String, value: UInt64)? {
        guard row.summary.hasPrefix("READ BINARY") || row.summary.hasPrefix("UPDATE BINARY"), field.path == "iso7816.command.p1",
            case .number(let p1) = field.value,
            p1 < 0x80, let next, next.path == "iso7816.command.p2", case .number(let p2) = next.value
        else { return nil }
        return (Hex.encode([UInt8(truncatingIfNeeded: p1), UInt8(truncatingIfNeeded: p2)]), p1 << 8 | p2)
    }

    private func line(_ offset: Int, _ bytes: String, _ field: DecodedField, _ text: String, _ isWide: Bool) -> [String] {
        let name = name(field)
        let place = padded(offset, isWide ? 4 : 2)
        let tail = "\(pad(name, 6)) \(text)"
        let blank = String(repeating: " ", count: Self.nameColumn)
        if bytes.count <= Self.nameColumn - Self.bytesColumn - (isWide ? 3 : 1) {
            return [pad("  \(place)  \(bytes)", Self.nameColumn) + tail]
        }
        var lines: [String] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Self.perLine * 2)
            rest = rest.dropFirst(piece.count)
            lines.append(lines.isEmpty ? "  \(place)  \(piece)" : "  \(isWide ? "    " : "  ")  \(piece)")
        }
        return lines + [blank + tail]
    }

    private func name(_ field: DecodedField) -> String { field.path.split(separator: ".").last.map(String.init) ?? field.path }

    /// The word of a check at this field, then what the field says.
    private func words(_ field: DecodedField, _ number: Int, _ row: DecodedRow) -> String {
        let checks =
            row.annotations.filter { $0.field == number } + (row.kind == .command ? late.filter { $0.path == field.path } : [])
        var text = field.text
        let own = Hex.encode(octets(of: field, row))
        if text.hasPrefix(own + " ") { text.removeFirst(own.count + 1) }
        if text == own { text = field.label == name(field) ? "" : field.label }
        if field.path.hasSuffix(".le"), case .number(0) = field.value { text = field.bits > 8 ? "65536" : "256" }
        guard
            let check = checks.first(where: { $0.code == "failed" }) ?? checks.first(where: \.isAuthentication)
                ?? checks.first(where: { $0.code == "sealed" })
        else { return text }
        let word = check.code == "failed" ? "FAILED" : check.code
        guard check.isAuthentication || check.code == "sealed" else { return "\(text), \(word)" }
        return "\(pad(word, 6)) \(row.counters.map { "\($0.name) \(Hex.encode($0.octets))" }.joined(separator: ", "))"
    }

    // MARK: - What was opened

    private func plain(_ row: DecodedRow, _ buffer: DerivedBuffer) -> [String] {
        let head = "  = opened"
        guard !buffer.octets.isEmpty else { return [pad(head, Self.nameColumn) + "<sealed \(buffer.count) bytes>"] }
        guard row.kind == .response, buffer.octets.count > 2 else {
            return [pad(head, Self.nameColumn) + Hex.encode(buffer.octets)]
        }
        let data = Array(buffer.octets.dropLast(2))
        return [pad(head, Self.nameColumn) + "\(data.count) bytes, then \(Hex.encode(buffer.octets.suffix(2)))"] + dump(data)
    }

    private func dump(_ octets: [UInt8]) -> [String] {
        stride(from: 0, to: octets.count, by: 16).map { start in
            let piece = octets[start..<min(start + 16, octets.count)]
            let halves = [piece.prefix(8), piece.dropFirst(8)].map { Hex.encode($0) }.filter { !$0.isEmpty }.joined(
                separator: " ")
            let text = String(decoding: piece.map { (0x20..<0x7F).contains($0) ? $0 : 0x2E }, as: UTF8.self)
            return "      \(padded(start, octets.count > 256 ? 4 : 2))  \(pad(halves, 35)) \(text)"
        }
    }

    /// A file that was read to its end, by its data objects.
    private func contents(_ file: DecodedFile) -> [String] {
        let exchanges = file.exchanges.map(String.init)
        let list =
            exchanges.count < 2
            ? exchanges.joined()
            : exchanges.count > 4
                ? "\(exchanges[0]) to \(exchanges[exchanges.count - 1])"
                : "\(exchanges.dropLast().joined(separator: ", ")) and \(exchanges[exchanges.count - 1])"
        var lines = ["\(file.name), \(grouped(file.octets.count)) bytes, from exchange\(exchanges.count == 1 ? "" : "s") \(list)"]
        for (number, field) in file.fields.enumerated() where field.shape == .header && number + 1 < file.fields.count {
            let value = file.fields[number + 1]
            let head = Array(file.octets.dropFirst(field.start / 8).prefix(field.bits / 8))
            let isOpen =
                value.shape == .composite
                && file.fields.dropFirst(number + 2).first.map { $0.shape == .header && $0.start < value.start + value.bits }
                    == true
            let inner = value.shape == .leaf ? value.text : isOpen ? "" : inside(value, file.fields.dropFirst(number + 2))
            let indent = String(repeating: "  ", count: min(field.depth, 12) / 2 + 1)
            lines.append("\(indent)\(pad(tag(head), 6))\(isOpen ? value.label : "\(pad(value.label, 20)) \(inner)")")
        }
        return lines
    }

    /// The fields of a value on one line.
    private func inside(_ value: DecodedField, _ rest: ArraySlice<DecodedField>) -> String {
        let parts = rest.prefix { $0.start < value.start + value.bits }.filter { $0.shape == .leaf && $0.bits > 0 }.map(\.text)
        return parts.joined(separator: "; ")
    }

    /// The tag of a head, without its length (ISO/IEC 7816-4 5.2.2.1).
    private func tag(_ head: [UInt8]) -> String {
        guard let first = head.first else { return "" }
        var count = 1
        if first & 0x1F == 0x1F { while count < head.count, count == 1 || head[count - 1] & 0x80 != 0 { count += 1 } }
        return Hex.encode(head.prefix(count))
    }

    // MARK: - Octets

    private func hex(_ field: DecodedField, _ row: DecodedRow) -> String {
        field.isSealed ? "<sealed \((field.bits + 7) / 8) bytes>" : Hex.encode(octets(of: field, row))
    }

    private func octets(of field: DecodedField, _ row: DecodedRow) -> ArraySlice<UInt8> {
        let all = field.buffer == 0 ? row.row.body : row.derived.first { $0.number == field.buffer }?.octets ?? []
        guard !all.isEmpty else { return ArraySlice(fieldOctets(field)) }
        return all.dropFirst(field.start / 8).prefix((field.start + field.bits + 7) / 8 - field.start / 8)
    }

    /// The field's own value where its buffer is not shown as a whole.
    private func fieldOctets(_ field: DecodedField) -> [UInt8] {
        switch field.value {
        case .octets(let octets): octets
        case .number(let value):
            (0..<(field.bits + 7) / 8).reversed().map { UInt8(truncatingIfNeeded: value >> UInt64(min(63, 8 * $0))) }
        }
    }

    private func padded(_ number: Int, _ width: Int) -> String {
        let text = String(number, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, width - text.count)) + text
    }
}
