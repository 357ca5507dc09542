// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets

/// The page of one grammar in Markdown: what it cites, byte tables, tag trees, values, states and examples.
///
/// The text depends on the grammar's text alone, so that a page under version control changes only when its grammar does.
public struct GrammarPage: Sendable {
    /// The grammar's name.
    public let name: String
    public let text: String

    /// A page for each source, in the order of their names.
    ///
    /// - Parameter sources: without mistakes; what cannot be understood is left out.
    public static func pages(_ sources: [GrammarSource]) -> [GrammarPage] {
        var diagnostics = Diagnostics(sources: sources)
        let files = sources.indices.map { Parser.parse(sources[$0], file: $0, &diagnostics) }
        return zip(files, sources).map { file, source in
            // A name is the grammar's own before it is that of one that it uses.
            let near = [file] + file.uses.compactMap { use in files.first { $0.grammar?.text == use.text } }
            var sizes: [String: Int] = [:]
            for other in near.reversed() {
                for case .enumeration(let it) in other.declarations where it.bits % 8 == 0 { sizes[it.name.text] = it.bits / 8 }
            }
            var writer = PageWriter(words: SyntaxText(source: source), sizes: sizes)
            writer.page(file)
            return GrammarPage(name: file.grammar?.text ?? source.name, text: writer.lines.joined(separator: "\n") + "\n")
        }.sorted { $0.name < $1.name }
    }
}

struct PageWriter {
    let words: SyntaxText
    let sizes: [String: Int]
    var lines: [String] = []

    init(words: SyntaxText, sizes: [String: Int]) { (self.words, self.sizes) = (words, sizes) }

    mutating func page(_ file: SyntaxFile) {
        lines += ["# \(file.grammar?.text ?? "grammar")", ""]
        if !file.uses.isEmpty {
            lines += ["Uses \(file.uses.map { "[\($0.text)](\($0.text).md)" }.joined(separator: ", ")).", ""]
        }
        if !file.citations.isEmpty { lines += file.citations.map { "- \($0.text)" } + [""] }
        section("Messages", file.declarations) { writer, declaration in
            switch declaration {
            case .message(let it): writer.message(it)
            case .choice(let it): writer.choice(it)
            default: break
            }
        }
        section("Tagged objects", file.declarations) { writer, declaration in
            if case .tags(let it) = declaration { writer.tags(it) }
        }
        section("Values", file.declarations) { writer, declaration in
            if case .enumeration(let it) = declaration { writer.enumeration(it) }
        }
        exchanges(file.declarations)
        section("Messages in parts", file.declarations) { writer, declaration in
            if case .gather(let it) = declaration { writer.gather(it) }
        }
        section("Layers", file.declarations) { writer, declaration in
            if case .layer(let it) = declaration { writer.layer(it) }
        }
        section("Sessions", file.declarations) { writer, declaration in
            if case .session(let it) = declaration { writer.session(it) }
        }
        section("Examples", file.declarations) { writer, declaration in
            if case .example(let it) = declaration { writer.example(it) }
        }
        while lines.last == "" { lines.removeLast() }
    }

    private mutating func section(_ title: String, _ list: [Declaration], _ body: (inout PageWriter, Declaration) -> Void) {
        let start = lines.count
        for declaration in list { body(&self, declaration) }
        if lines.count > start { lines.insert(contentsOf: ["## \(title)", ""], at: start) }
    }

    private mutating func heading(_ name: Name, _ label: String? = nil) {
        lines += ["### \(name.text)" + (label.map { ": \($0)" } ?? ""), ""]
        let comment = words.comment(above: name.place)
        if !comment.isEmpty { lines += [comment.joined(separator: " "), ""] }
    }

    /// A cell of a table.
    func cell(_ text: String) -> String {
        text.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|")
    }

    func code(_ text: String) -> String { text.isEmpty ? "" : "`\(cell(text))`" }

    // MARK: Bytes

    mutating func message(_ syntax: MessageSyntax) {
        heading(syntax.name)
        byteTable(syntax.items)
        if let ok = syntax.ok { lines += ["Means success when \(code(words.expression(ok))).", ""] }
    }

    private mutating func byteTable(_ items: [ItemSyntax]) {
        let fields = items.compactMap { if case .field(let it) = $0 { it } else { nil } }
        if !fields.isEmpty {
            lines += ["| byte | field | type | meaning |", "| --- | --- | --- | --- |"]
            var offset: Int? = 0
            for field in fields { row(field, &offset) }
            lines.append("")
        }
        let checks = items.compactMap { if case .check(let it) = $0 { it } else { nil } }
        for check in checks { lines.append("- \(sentence(check))") }
        if !checks.isEmpty { lines.append("") }
    }

    private mutating func row(_ field: FieldSyntax, _ offset: inout Int?) {
        let size = field.condition == nil ? words.size(field.type, sizes) : nil
        var place = "…"
        if let start = offset {
            place = size.map { $0 > 1 ? "\(start)-\(start + $0 - 1)" : "\(start)" } ?? "\(start)…"
        }
        offset = offset.flatMap { start in size.map { start + $0 } }
        lines.append("| \(place) | \(cell(field.name.text)) | \(code(words.type(field.type))) | \(cell(meaning(field))) |")
        if case .bits(_, let bits, _) = field.type {
            var high = bits.reduce(0) { $0 + $1.width }
            for bit in bits {
                let range = bit.width == 1 ? "b\(high)" : "b\(high)-b\(high - bit.width + 1)"
                high -= bit.width
                let text = (bit.label?.text ?? "") + (bit.value.map { " = " + words.expression($0) } ?? "")
                lines.append("| | \(range) \(cell(bit.name.text)) | \(code(bit.type?.text ?? "")) | \(cell(text)) |")
            }
        }
        if case .inline(let items, _) = field.type {
            for case .field(let inner) in items {
                lines.append("| | . \(cell(inner.name.text)) | \(code(words.type(inner.type))) | \(cell(meaning(inner))) |")
            }
        }
    }

    private func meaning(_ field: FieldSyntax) -> String {
        var parts: [String] = []
        if let label = field.label { parts.append(label.text) }
        if let value = field.value { parts.append("= " + code(words.expression(value))) }
        if let condition = field.condition { parts.append("when " + code(words.expression(condition))) }
        if field.isNonce { parts.append("drawn at random") }
        if field.isSecret { parts.append("secret") }
        return parts.joined(separator: "; ")
    }

    func sentence(_ check: CheckSyntax) -> String {
        "\(code(words.expression(check.predicate))), else \(check.severity.name)"
            + (check.text.map { ": \($0.text)" } ?? "") + (check.blame.map { " (fault of the \($0.rawValue))" } ?? "")
    }

    mutating func choice(_ syntax: ChoiceSyntax) {
        heading(syntax.name)
        lines += ["| when | alternative | fields |", "| --- | --- | --- |"]
        for alternative in syntax.alternatives {
            let condition = alternative.condition.map { code(words.expression($0)) } ?? "otherwise"
            let remark = alternative.remark.map { " (\($0.severity.name): \($0.text.text))" } ?? ""
            lines.append("| \(condition) | \(alternative.name.text) | \(cell(fields(alternative.type) + remark)) |")
        }
        lines.append("")
        // Long alternatives have tables of their own.
        for alternative in syntax.alternatives {
            guard case .inline(let items, _) = alternative.type, items.count > 4 else { continue }
            lines += ["**\(alternative.name.text)**", ""]
            byteTable(items)
        }
    }

    private func fields(_ type: TypeSyntax) -> String {
        guard case .inline(let items, _) = type else { return words.type(type) }
        if items.count > 4 { return "\(items.count) fields, below" }
        return items.compactMap { item -> String? in
            guard case .field(let field) = item else { return nil }
            if case .bits(_, let bits, _) = field.type {
                return bits.map { "\($0.name.text):\($0.width)" }.joined(separator: " ")
            }
            return "\(field.name.text) : \(words.type(field.type))"
        }.joined(separator: ", ")
    }

    // MARK: Tags and values

    mutating func tags(_ syntax: TagsSyntax) {
        heading(syntax.name, syntax.dialect == .ber ? nil : "\(syntax.dialect) TLV")
        for entry in syntax.entries { tag(entry, depth: 0) }
        lines.append("")
    }

    private mutating func tag(_ entry: TagSyntax, depth: Int) {
        var text = "\(String(repeating: "  ", count: depth))- `\(hex(entry.tag))` **\(entry.name.text)**"
        if let label = entry.label { text += " \(label.text)" }
        guard depth < 16 else { return lines.append(text) }
        if case .tags(let inner, _)? = entry.type {
            lines.append(text)
            for inside in inner { tag(inside, depth: depth + 1) }
            return
        }
        if let type = entry.type {
            if case .inline(let items, _) = type {
                text += ": "
                text += items.compactMap {
                    if case .field(let it) = $0 { "\(it.name.text) `\(words.type(it.type))`" } else { nil }
                }
                .joined(separator: ", ")
            } else {
                text += ": `\(words.type(type))`"
            }
        }
        if entry.isNonce { text += ", drawn at random" }
        if entry.isSecret { text += ", secret" }
        lines.append(text)
    }

    private func hex(_ value: UInt32) -> String {
        let digits = String(value, radix: 16, uppercase: true)
        return digits.count % 2 == 1 ? "0" + digits : digits
    }

    mutating func enumeration(_ syntax: EnumSyntax) {
        heading(syntax.name, "\(syntax.bits) bits" + (syntax.isClosed ? ", no others" : ""))
        lines += ["| value | name | meaning |", "| --- | --- | --- |"]
        for entry in syntax.entries {
            lines.append("| \(spelled(entry, syntax.bits)) | \(entry.name.text) | \(cell(entry.text?.text ?? "")) |")
        }
        lines.append("")
    }

    private func spelled(_ entry: EnumSyntax.Entry, _ bits: Int) -> String {
        let digits = max(1, (bits + 3) / 4)
        if bits < 8 { return String(entry.value) }
        return (0..<digits).reversed().map { position in
            let shift = UInt64(position * 4)
            return entry.mask >> shift & 0xF == 0 ? "?" : String(entry.value >> shift & 0xF, radix: 16, uppercase: true)
        }.joined()
    }
}
