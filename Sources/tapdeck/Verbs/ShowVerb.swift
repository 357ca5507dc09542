// SPDX-License-Identifier: MIT

import GrammarLibrary
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
        "Status 0, also for a file that ends inside its last record; 3 for one that is damaged.",
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
        return try view.run(path)
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

private struct View {
    let terminal: Terminal
    let arguments: Arguments
    let ranges: [ClosedRange<UInt64>]
    let form: Form
    let withFrames: Bool
    let filter: FieldFilter?

    enum Form { case summary, tree, json }

    mutating func run(_ path: String) throws -> ExitStatus {
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
        var groups = ExchangeGroups()
        while let item = reader.next() {
            switch item {
            case .interface(_, let interface): decoder.add(interface)
            case .row(let row):
                let decoded = decoder.push(row)
                if form == .tree || filter != nil {
                    for group in groups.push(decoded) { output.take(group) }
                } else {
                    output.push(decoded)
                }
            case .header, .secrets: break
            }
        }
        for group in groups.end() { output.take(group) }
        output.end(decoder.authentication)
        return TraceAccess.report(reader.damage, of: path, terminal)
    }

    func isWanted(_ packet: UInt64?) -> Bool {
        ranges.isEmpty || ranges.contains { range in packet.map(range.contains) ?? false }
    }
}

/// Where rows go: lines, trees or objects.
private struct Output {
    let view: View
    var json: JSONView
    var summary: TraceSummary
    var tree = TreeView()
    private var isHeaded = false
    private var notes: [SummaryLine] = []

    init(view: View, json: JSONView, summary: TraceSummary) {
        self.view = view
        self.json = json
        self.summary = summary
    }

    /// One exchange, if the filter takes it.
    mutating func take(_ rows: [DecodedRow]) {
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
        let lines = tree.lines(rows)
        guard !lines.isEmpty, view.isWanted(rows.first?.row.packetID) else { return }
        if isHeaded { view.terminal.result("") }
        isHeaded = true
        for line in lines { view.terminal.result(line) }
    }

    mutating func push(_ row: DecodedRow) {
        if view.form == .json {
            let line = json.line(row)
            if view.isWanted(row.row.packetID) { view.terminal.result(line) }
            return
        }
        if !isHeaded {
            view.terminal.note(SummaryLine.heading(withFrames: view.withFrames))
            isHeaded = true
        }
        print(summary.push(row))
    }

    mutating func end(_ authentication: (checked: Int, held: Int)) {
        guard view.form == .summary else { return }
        print(summary.end())
        for line in notes.prefix(20) { explain(line) }
        if isHeaded {
            view.terminal.note(SummaryLine.legend)
            view.terminal.note(summary.closing(authentication: authentication))
        }
    }

    private mutating func print(_ lines: [SummaryLine]) {
        for line in lines where view.ranges.isEmpty || view.ranges.contains(where: { $0.overlaps(line.numbers) }) {
            view.terminal.result(line.text(withFrames: view.withFrames))
            if !line.annotations.isEmpty, notes.count < 20 { notes.append(line) }
        }
    }

    /// What there is to say about a line: whose fault, and what.
    private func explain(_ line: SummaryLine) {
        for annotation in line.annotations {
            let side = annotation.blame.map { "\($0.rawValue): " } ?? ""
            view.terminal.note("     ! \(line.number)  \(side)\(annotation.text)")
        }
    }
}
