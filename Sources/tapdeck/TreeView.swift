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
    /// The field of the frame in whose place those of another buffer are written, and how far they are moved, in bits.
    private var inline: (field: Int, buffer: Int, shift: Int)?
    private static let bytesColumn = 6
    private static let nameColumn = 24
    private static let perLine = 32

    /// Times count from the first row.
    mutating func begin(_ row: DecodedRow) { if start == nil { start = row.row.time } }

    /// Puts the lines of one exchange at the end of `text`; false when it has none.
    mutating func write(_ rows: [DecodedRow], to text: inout TextBuffer, isFirst: Bool) -> Bool {
        guard let first = rows.first(where: { !$0.isDerived }) else { return false }
        begin(first)
        let rows = rows.filter { !$0.isTwin && !$0.isDerived && ![.transport, .progress, .clock].contains($0.kind) }
        guard !rows.isEmpty else { return false }
        // Checks on a command that only the answer decided.
        late = rows.filter { $0.kind == .response }.flatMap(\.annotations).filter { $0.field == nil && $0.isAuthentication }
        if !isFirst { text.append(0x0A) }
        let refusal = refusal(rows)
        line(title(rows, refusal), &text)
        var before: UInt64?
        for row in rows {
            text.append(0x0A)
            line(head(row, before), &text)
            before = row.row.time
            if row.meta == nil && row.kind != .reader || !row.fields.isEmpty {
                body(row, &text)
            } else {
                line("  \(row.summary)", &text)
            }
            for annotation in row.annotations where annotation.code != "held" && annotation.code != "sealed" {
                for part in told(annotation) { line(part, &text) }
            }
            if row.kind == .response, refusal != nil { line("  note   card: right to refuse, see the command", &text) }
        }
        for file in rows.compactMap(\.file) {
            text.append(0x0A)
            for content in contents(file) { line(content, &text) }
        }
        if let row = rows.last(where: { !$0.sessions.isEmpty }) { line(session(row), &text) }
        return true
    }

    /// A line without blanks at its end.
    private func line(_ line: String, _ text: inout TextBuffer) {
        let start = text.count
        text.append(text: line)
        text.trim(from: start)
        text.append(0x0A)
    }

    // MARK: - Heads

    /// An annotation, and of a code that failed the one that was sent and the one that had been right.
    private func told(_ annotation: Annotation) -> [String] {
        var text = annotation.text
        if let near = annotation.near, text.hasSuffix("; " + near), annotation.sent != nil { text.removeLast(near.count + 2) }
        let side = annotation.blame.map { "\($0.rawValue): " } ?? ""
        var lines = ["  ! \(side)\(text)\(annotation.see.map { ", see exchange \($0)" } ?? "")"]
        if let sent = annotation.sent, let expected = annotation.expected {
            lines.append("    sent      \(pad(Hex.encode(sent), 18)) \(annotation.near ?? "")")
            lines.append("    expected  \(Hex.encode(expected))")
        }
        return lines
    }

    /// What a card answered to a command whose code is the program's mistake, when it was a refusal for just that: `911E
    /// integrity`.
    private func refusal(_ rows: [DecodedRow]) -> String? {
        let isWrong = rows.contains { row in
            row.kind == .command
                && row.annotations.contains { $0.isAuthentication && $0.code == "failed" && $0.blame == .program }
        }
        guard isWrong, let answer = rows.last(where: { $0.kind == .response }) else { return nil }
        // DESFire's integrity error; secure messaging objects missing or wrong (ISO/IEC 7816-4 5.6).
        guard ["911E", "6987", "6988"].contains(String(answer.summary.prefix(4))) else { return nil }
        return answer.summary.hasSuffix(" error") ? String(answer.summary.dropLast(6)) : answer.summary
    }

    private func title(_ rows: [DecodedRow], _ refusal: String?) -> String {
        let main = rows.first { $0.kind == .command || $0.kind == .frame } ?? rows[0]
        var what = main.summary
        if let file = main.fileName { what += " of \(file)" }
        let number = main.row.packetID.map { "exchange \($0)" } ?? "frame \(main.row.frame)"
        return "\(pad("\(number)  \(what)", 56))\(refusal.map { "REFUSED, \($0)" } ?? standing(rows))"
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
        // The layer of a channel says no more than the session that began it.
        let isTwice = row.sessions.contains { $0.name == "DESFire" }
        var parts = row.sessions.filter { !isTwice || $0.name != "desfire" }.map { session in
            if session.name == "DESFire" {
                return session.state == "lost" ? "DESFire, channel lost" : "DESFire \(session.state.uppercased())"
            }
            let name =
                session.name.hasSuffix("Session") && session.name.count > 7 ? String(session.name.dropLast(7)) : session.name
            return "\(name == "secureMessaging" ? "secure messaging" : name) \(session.state)"
        }
        parts += row.counters.map { "\($0.name) \(Hex.encode($0.octets))" }
        return "session   \(parts.joined(separator: "; "))"
    }

    // MARK: - Fields

    private mutating func body(_ row: DecodedRow, _ text: inout TextBuffer) {
        // What an APDU carries stands where it lies in the frame, read as far as nothing hides it.
        let carried = row.derived.last { $0.origin == .unwrapped && carrier(of: $0, row) != nil }
        if let carried, let field = carrier(of: carried, row) {
            inline = (field: field, buffer: carried.number, shift: row.fields[field].start - 8)
        }
        fields(row, buffer: 0, &text)
        inline = nil
        for buffer in row.derived where buffer.origin != .remembered {
            switch buffer.origin {
            case .unwrapped where carried != nil || buffer.count == 1: continue
            case .plain where row.fields.contains { $0.buffer == buffer.number && $0.path.hasPrefix("desfire.") }:
                line("  = \(pad("opened", Self.nameColumn - 4))\(buffer.count) bytes", &text)
                fields(row, buffer: buffer.number, indent: 2, &text)
            case .plain: for part in plain(row, buffer) { line(part, &text) }
            case .opened, .gathered, .remembered, .unwrapped:
                line("  = \(pad(buffer.origin.rawValue, Self.nameColumn - 4))\(buffer.count) bytes", &text)
                fields(row, buffer: buffer.number, indent: 2, &text)
            }
        }
    }

    /// The field of the frame that is what a buffer holds after its first octet.
    private func carrier(of buffer: DerivedBuffer, _ row: DecodedRow) -> Int? {
        row.fields.firstIndex {
            guard $0.buffer == 0, $0.path.hasSuffix(".data"), $0.bits == 8 * (buffer.count - 1),
                case .octets(let octets) = $0.value
            else { return false }
            return octets.elementsEqual(buffer.octets.dropFirst())
        }
    }

    private mutating func fields(
        _ row: DecodedRow, buffer: Int, indent: Int = 0, from first: Int = 0, shift: Int = 0, _ text: inout TextBuffer
    ) {
        let fields = row.fields
        var place = 0
        var end = first
        let isWide = (buffer == 0 ? row.row.body.count : row.derived.first { $0.number == buffer }?.count ?? 0) > 0x100
        func next() -> Int? {
            while place < fields.count, fields[place].buffer != buffer || fields[place].bits == 0 { place += 1 }
            return place < fields.count ? place : nil
        }
        while let number = next() {
            let field = fields[number]
            place += 1
            // Bits of a group that was shown as a whole.
            if field.start < end || (field.shape == .composite && field.start < first) { continue }
            if let inline, inline.field == number {
                end = field.start + field.bits
                self.inline = nil
                self.fields(row, buffer: inline.buffer, indent: indent, from: 8, shift: inline.shift, &text)
                continue
            }
            if field.shape == .header, let valueNumber = next(), isHead(field, of: fields[valueNumber]) {
                let value = fields[valueNumber]
                place += 1
                let octets = octets(of: field, row)
                let isLeaf = value.shape == .leaf
                let words = isLeaf ? words(value, valueNumber, row) : value.label == name(value) ? "" : value.label
                write(
                    (field.start + shift) / 8, isLeaf ? "\(Hex.encode(octets)) \(hex(value, row))" : Hex.encode(octets),
                    name(value), words,
                    isWide, indent, &text)
                if isLeaf { end = value.start + value.bits }
                continue
            }
            if field.shape == .composite {
                guard case .number = field.value else { continue }
                write(
                    (field.start + shift) / 8, Hex.encode(octets(of: field, row)), name(field), words(field, number, row), isWide,
                    indent,
                    &text)
                end = field.start + field.bits
                continue
            }
            if let following = next(), let offset = offset(row, field, fields[following]) {
                write((field.start + shift) / 8, offset.hex, "p1p2", "offset \(offset.value)", isWide, indent, &text)
                place += 1
                continue
            }
            write((field.start + shift) / 8, hex(field, row), name(field), words(field, number, row), isWide, indent, &text)
        }
    }

    /// Whether `field` is the tag and length of `value`.
    private func isHead(_ field: DecodedField, of value: DecodedField) -> Bool {
        field.path.utf8.count == value.path.utf8.count + 7 && field.path.hasSuffix(".header") && field.path.hasPrefix(value.path)
    }

    /// P1 and P2 together where they are one offset (ISO/IEC 7816-4 11.3.3).
    private func offset(_ row: DecodedRow, _ field: DecodedField, _ next: DecodedField) -> (hex: String, value: UInt64)? {
        guard row.summary.hasPrefix("READ BINARY") || row.summary.hasPrefix("UPDATE BINARY"), field.path == "iso7816.command.p1",
            case .number(let p1) = field.value,
            p1 < 0x80, next.path == "iso7816.command.p2", case .number(let p2) = next.value
        else { return nil }
        return (Hex.encode([UInt8(truncatingIfNeeded: p1), UInt8(truncatingIfNeeded: p2)]), p1 << 8 | p2)
    }

    /// One field: its offset, its octets, its name, what it says; octets that are too many stand on lines of their own.
    private func write(
        _ offset: Int, _ bytes: String, _ name: Substring, _ words: String, _ isWide: Bool, _ indent: Int,
        _ text: inout TextBuffer
    ) {
        let start = text.count
        text.append(blanks: indent + 2)
        text.append(text: padded(offset, isWide ? 4 : 2))
        text.append("  ")
        let room = Self.nameColumn - Self.bytesColumn - (isWide ? 3 : 1)
        if bytes.utf8.count <= room {
            text.append(text: bytes)
            text.append(blanks: Self.nameColumn - (text.count - start - indent))
        } else {
            var rest = Substring(bytes).utf8
            while true {
                let piece = rest.prefix(Self.perLine * 2)
                rest = rest.dropFirst(piece.count)
                text.append(text: String(Substring(piece)))
                text.append(0x0A)
                if rest.isEmpty { break }
                text.append(blanks: indent + 2 + (isWide ? 6 : 4))
            }
            text.append(blanks: indent + Self.nameColumn)
        }
        text.append(text: String(name))
        text.append(blanks: max(0, 6 - name.utf8.count) + 1)
        text.append(text: words)
        text.trim(from: start)
        text.append(0x0A)
    }

    private func name(_ field: DecodedField) -> Substring {
        let path = field.path
        guard let point = path.utf8.lastIndex(of: 0x2E) else { return path[...] }
        return path[path.utf8.index(after: point)...]
    }

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
