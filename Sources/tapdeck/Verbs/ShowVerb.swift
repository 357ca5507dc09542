// SPDX-License-Identifier: MIT

import GrammarLibrary
import Octets
import TraceDecoding
import TraceFile

/// `show`: a trace on the terminal, an exchange a line.
enum ShowVerb: Verb {
    static let name = "show"
    static let summary = "a trace on the terminal, an exchange a line"
    static let synopsis = [
        "show FILE [N|N-M ...] [--tree|--json] [--all] [--frames] [--filter EXPR] [--secrets FILE|env:NAME]"
    ]
    static let options =
        traceOptions + grammarOptions + [
            OptionSpec("--tree", .none, "every octet and what it means, what was opened, files that were read whole"),
            OptionSpec("--filter", .required("EXPR"), "exchanges whose fields are so: 'iso7816.response.sw != 0x9000'"),
            OptionSpec("--all", .none, "every exchange on its own line; runs of equal reads are not folded"),
            OptionSpec("--frames", .none, "a column with Wireshark's frame numbers"),
            OptionSpec("--show-secrets", .none, "print sealed bytes as they are"),
        ]
    static let details = [
        "EXPR: a field's path, == != < <= > >= contains, && || !, parentheses; a name may leave out middle parts.",
        "N is an exchange's number; 8-11 is a range, 31- all from there on.",
        "Status 0, also for a file that ends inside its last record; 1 when it has no exchange N, 3 for one that is damaged.",
    ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        guard let path = arguments.operands.first else { throw Failure.usage("show needs a trace: tapdeck show FILE") }
        let ranges = try arguments.operands.dropFirst().map(range)
        if arguments.has("--show-secrets") { terminal.note("secrets are shown") }
        if arguments.has("--tree"), arguments.wantsJSON { throw Failure.usage("show prints a tree or objects: --tree or --json") }
        var filter: FieldFilter?
        if let text = arguments.value("--filter") {
            do { filter = try FieldFilter(text, grammars: try TraceAccess.grammars(arguments)) } catch let error
                as FieldFilterError
            {
                throw Failure.usage(error.description)
            }
        }
        var view = View(
            terminal: terminal, arguments: arguments, ranges: Array(ranges),
            form: arguments.wantsJSON ? .json : arguments.has("--tree") ? .tree : .summary, withFrames: arguments.has("--frames"),
            filter: filter
        )
        return try await view.run(path)
    }

    /// `8`, `8-11`, `31-`.
    private static func range(_ text: String) throws -> ClosedRange<UInt64> {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        let first = UInt64(parts[0])
        if parts.count == 1, let first { return first...first }
        if parts.count == 2, let first, parts[1].isEmpty { return first...UInt64.max }
        if parts.count == 2, let first, let last = UInt64(parts[1]), first <= last { return first...last }
        throw Failure.usage("\(text) is no exchange number; 11, 8-11 and 31- are")
    }
}

private struct View: Sendable {
    let terminal: Terminal
    let arguments: Arguments
    let ranges: [ClosedRange<UInt64>]
    let form: Form
    let withFrames: Bool
    let filter: FieldFilter?

    enum Form: Sendable { case summary, tree, json }

    /// Rows that are decoded before they are written.
    private static let piece = 256

    mutating func run(_ path: String) async throws -> ExitStatus {
        var reader: TraceReader
        do { reader = try TraceReader(path: path) } catch { throw TraceAccess.failure(error) }
        let secrets = try TraceAccess.secrets(for: path, session: nil, embedded: nil, arguments).store
        let showsSecrets = arguments.has("--show-secrets")
        var decoder = TraceDecoder(
            interfaces: [], secrets: secrets, showsSecrets: showsSecrets, grammars: try TraceAccess.grammars(arguments))
        decoder.triesNearMisses = true
        decoder.wantsFields = form != .summary || filter != nil
        var output = Output(
            view: self, json: JSONView(showsSecrets: showsSecrets, secrets: secrets),
            summary: TraceSummary(folds: !arguments.has("--all")))
        // While one piece of the trace is written, the next is decoded.
        var batch: [DecodedRow] = []
        var slots = SlotNames()
        var writing: Task<Output, Never>?
        var unmet = ranges
        while let item = reader.next() {
            switch item {
            case .interface(_, let interface):
                decoder.add(interface)
                slots.add(interface)
            case .row(let row):
                if !unmet.isEmpty, let packet = row.packetID { unmet.removeAll { $0.contains(packet) } }
                batch.append(decoder.push(row))
            case .header, .secrets: break
            }
            guard batch.count >= View.piece else { continue }
            if let writing { output = await writing.value }
            writing = Task { [output, batch, slots] in output.taking(batch, slots) }
            batch = []
        }
        if let writing { output = await writing.value }
        output = output.taking(batch, slots)
        output.end(decoder.authentication)
        let status = TraceAccess.report(reader.damage, of: path, terminal)
        guard !unmet.isEmpty else { return status }
        terminal.error(["\(path) has no exchange \(unmet.map(View.text).joined(separator: ", "))"])
        return max(status, .notSo)
    }

    private static func text(_ range: ClosedRange<UInt64>) -> String {
        if range.lowerBound == range.upperBound { return "\(range.lowerBound)" }
        return range.upperBound == .max ? "\(range.lowerBound)-" : "\(range.lowerBound)-\(range.upperBound)"
    }

    func isWanted(_ packet: UInt64?) -> Bool {
        ranges.isEmpty || ranges.contains { range in packet.map(range.contains) ?? false }
    }
}

/// What the slots of a trace with several cards are called in its summary: `sam` for one whose reader says so, `tap` for what a
/// reader says to an emulated card, else `card`.
private struct SlotNames: Sendable {
    private var readers: [(number: Int, name: String)] = []

    mutating func add(_ interface: TraceInterface) {
        guard case .apdu(let number) = interface.kind, !readers.contains(where: { $0.number == number }) else { return }
        let words = interface.description.lowercased().split { !$0.isLetter }
        readers.append((number, words.contains("sam") ? "sam" : words.contains("emulated") ? "tap" : "card"))
    }

    /// Commands with their slot before them, where there are several.
    func named(_ rows: [DecodedRow]) -> [DecodedRow] {
        guard readers.count > 1 else { return rows }
        var texts: [Int: String] = [:]
        for reader in readers {
            let isAlone = !readers.contains { $0.name == reader.name && $0.number != reader.number }
            texts[reader.number] = isAlone ? reader.name : "\(reader.name) \(reader.number)"
        }
        let width = max(6, (texts.values.map(\.count).max() ?? 0) + 1)
        texts = texts.mapValues { pad($0, width) }
        return rows.map { row in
            guard row.kind == .command || (row.kind == .frame && row.row.direction == .sent),
                let text = row.interface.readerNumber.flatMap({ texts[$0] })
            else { return row }
            var row = row
            row.summary = text + row.summary
            return row
        }
    }
}

/// Where rows go: lines, trees or objects.
private struct Output: Sendable {
    let view: View
    var json: JSONView
    var summary: TraceSummary
    var tree = TreeView()
    private var missing = MissingSecrets()
    private var isHeaded = false
    /// Lines before there is a heading.
    private var first: [SummaryLine] = []
    private var notes: [SummaryLine] = []
    private var groups = ExchangeGroups()
    /// What is still to be written.
    private var text = TextBuffer(capacity: Output.piece * 2)
    private static let piece = 1 << 16

    init(view: View, json: JSONView, summary: TraceSummary) {
        self.view = view
        self.json = json
        self.summary = summary
    }

    /// The same output, further by these rows.
    func taking(_ rows: [DecodedRow], _ slots: SlotNames) -> Output {
        var further = self
        let rows = view.form == .summary ? slots.named(rows) : rows
        let byExchange = view.form == .tree || view.filter != nil
        for row in rows {
            further.missing.see(row, isShown: view.isWanted(row.row.packetID))
            guard byExchange else {
                further.push(row)
                continue
            }
            for group in further.groups.push(row) { further.take(group) }
        }
        return further
    }

    /// One exchange, if the filter takes it.
    private mutating func take(_ rows: [DecodedRow]) {
        guard view.filter?.matches(rows) != false else {
            // Times count from the first row, whether it is shown or not.
            if let first = rows.first {
                json.begin(first)
                tree.begin(first)
                summary.begin(first)
            }
            return
        }
        guard view.form == .tree else {
            for row in rows { push(row) }
            return
        }
        if let first = rows.first(where: { !$0.isDerived }) { tree.begin(first) }
        guard view.isWanted(rows.first?.row.packetID) else { return }
        if tree.write(rows, to: &text, isFirst: !isHeaded) { isHeaded = true }
        flush(from: Output.piece)
    }

    private mutating func push(_ row: DecodedRow) {
        if view.form == .json {
            json.begin(row)
            guard view.isWanted(row.row.packetID) else { return }
            json.write(row, to: &text)
            return flush(from: Output.piece)
        }
        if !isHeaded {
            // What the first rows say of the trace stands above its first line.
            first += summary.push(row)
            guard !first.isEmpty else { return }
            head()
            print(first)
            first = []
            return
        }
        print(summary.push(row))
    }

    private mutating func head() {
        let last = summary.sessionClosing == nil ? "answer" : "state"
        view.terminal.note(SummaryLine.heading(withFrames: view.withFrames, last: last))
        isHeaded = true
    }

    mutating func end(_ authentication: (checked: Int, held: Int)) {
        for group in groups.end() { take(group) }
        guard view.form == .summary else {
            flush()
            if view.form == .tree { missing.notes.forEach(view.terminal.note) }
            return
        }
        let rest = summary.end()
        if !isHeaded, !rest.isEmpty { head() }
        print(rest)
        flush()
        for line in notes.prefix(20) { explain(line) }
        missing.notes.forEach(view.terminal.note)
        if isHeaded {
            view.terminal.note(summary.sessionClosing == nil ? SummaryLine.legend : SummaryLine.sessionLegend)
            view.terminal.note(summary.closing(authentication: authentication))
            if let closing = summary.sessionClosing { view.terminal.note(closing) }
        }
    }

    private mutating func print(_ lines: [SummaryLine]) {
        for line in lines where view.ranges.isEmpty || view.ranges.contains(where: { $0.overlaps(line.numbers) }) {
            line.write(to: &text, withFrames: view.withFrames)
            text.append(0x0A)
            if !line.annotations.isEmpty, notes.count < 20 { notes.append(line) }
        }
        flush(from: Output.piece)
    }

    /// Writes what is there, once it is `size` octets.
    private mutating func flush(from size: Int = 1) {
        guard text.count >= size else { return }
        view.terminal.result(text)
        text.removeAll()
    }

    /// What there is to say about a line: whose fault, and what.
    private func explain(_ line: SummaryLine) {
        for annotation in line.annotations {
            let side = annotation.blame.map { "\($0.rawValue): " } ?? ""
            let text = "     ! \(line.number)  \(side)\(annotation.text)"
            let lines = line.state == nil ? [text] : TextWrap.lines(text, indent: 10)
            lines.forEach(view.terminal.note)
        }
    }
}
