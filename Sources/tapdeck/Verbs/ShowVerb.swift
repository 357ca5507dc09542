// SPDX-License-Identifier: MIT

import TraceDecoding
import TraceFile

/// `show`: a trace on the terminal, an exchange a line.
enum ShowVerb: Verb {
    static let name = "show"
    static let summary = "a trace on the terminal, an exchange a line"
    static let synopsis = ["show FILE [N|N-M ...] [--all] [--frames] [--json] [--secrets FILE|env:NAME]"]
    static let options =
        traceOptions + [
            OptionSpec("--all", .none, "every exchange on its own line; runs of equal reads are not folded"),
            OptionSpec("--frames", .none, "a column with Wireshark's frame numbers"),
            OptionSpec("--show-secrets", .none, "print sealed bytes as they are"),
        ]
    static let details = [
        "N is an exchange's number; 8-11 is a range, 31- all from there on.",
        "Status 0, also for a file that ends inside its last record; 3 for one that is damaged.",
    ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        guard let path = arguments.operands.first else { throw Failure.usage("show needs a trace: tapdeck show FILE") }
        let ranges = try arguments.operands.dropFirst().map(range)
        if arguments.has("--show-secrets") { terminal.note("secrets are shown") }
        var view = View(
            terminal: terminal, arguments: arguments, ranges: Array(ranges), isJSON: arguments.wantsJSON, withFrames: arguments.has("--frames")
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
    let isJSON: Bool
    let withFrames: Bool

    mutating func run(_ path: String) throws -> ExitStatus {
        var reader: TraceReader
        do { reader = try TraceReader(path: path) } catch { throw TraceAccess.failure(error) }
        let secrets = try TraceAccess.secrets(for: path, session: nil, embedded: nil, arguments).store
        var decoder = TraceDecoder(interfaces: [], secrets: secrets, showsSecrets: arguments.has("--show-secrets"))
        var summary = TraceSummary(folds: !arguments.has("--all"))
        var json = JSONView(showsSecrets: arguments.has("--show-secrets"), secrets: secrets)
        var isHeaded = false
        var notes: [SummaryLine] = []
        while let item = reader.next() {
            switch item {
            case .interface(_, let interface): decoder.add(interface)
            case .row(let row):
                let decoded = decoder.push(row)
                if isJSON {
                    let line = json.line(decoded)
                    if isWanted(row.packetID) { terminal.result(line) }
                    continue
                }
                if !isHeaded {
                    terminal.note(SummaryLine.heading(withFrames: withFrames))
                    isHeaded = true
                }
                print(summary.push(decoded), &notes)
            case .header, .secrets: break
            }
        }
        if !isJSON {
            print(summary.end(), &notes)
            for line in notes.prefix(20) { explain(line) }
            if isHeaded {
                terminal.note(SummaryLine.legend)
                terminal.note(summary.closing(authentication: decoder.authentication))
            }
        }
        return TraceAccess.report(reader.damage, of: path, terminal)
    }

    private func isWanted(_ packet: UInt64?) -> Bool {
        ranges.isEmpty || ranges.contains { range in packet.map(range.contains) ?? false }
    }

    private func print(_ lines: [SummaryLine], _ notes: inout [SummaryLine]) {
        for line in lines where ranges.isEmpty || ranges.contains(where: { $0.overlaps(line.numbers) }) {
            terminal.result(line.text(withFrames: withFrames))
            if !line.annotations.isEmpty, notes.count < 20 { notes.append(line) }
        }
    }

    /// What there is to say about a line: whose fault, and what.
    private func explain(_ line: SummaryLine) {
        for annotation in line.annotations {
            let side = annotation.blame.map { "\($0.rawValue): " } ?? ""
            terminal.note("     ! \(line.number)  \(side)\(annotation.text)")
        }
    }
}
