// SPDX-License-Identifier: MIT

import Octets

/// The two rows of one event of a reader: a `syslog` line that stock Wireshark shows in its list, and its `json` twin for
/// programs. They follow each other and share time and packet id.
public enum ReaderRows {
    /// Both rows for `interface`, the index of a `reader:N`. `reader` is the reader's name, for the line.
    public static func rows(
        for row: MetaRow, reader: String, time: UInt64, interface: Int, packetID: UInt64
    ) -> [TraceRow] {
        [
            TraceRow(
                time: time, interface: interface, direction: nil, packetID: packetID, dissector: "syslog",
                body: [UInt8](line(for: row, reader: reader).utf8)
            ),
            TraceRow(time: time, interface: interface, direction: nil, packetID: packetID, dissector: "json", body: row.body),
        ]
    }

    /// The line: `<13>` (user, notice) or for failures `<11>` (user, error) as RFC 5424 6.2.1 counts, then the reader and
    /// what happened. It shows no octets that went in or came out.
    public static func line(for row: MetaRow, reader: String) -> String {
        let (isError, text) = words(row)
        return "<\(isError ? 11 : 13)>\(reader.isEmpty ? "" : "\(oneLine(reader)): ")\(oneLine(text))"
    }

    private static func words(_ row: MetaRow) -> (isError: Bool, text: String) {
        switch row {
        case .reader(let row):
            let isError = row.name == "removal" || row.code.map { $0.contains { $0 != "0" } } ?? false
            var words = [row.name]
            if let control = row.control { words.append("\(control)") }
            if let input = row.input { words.append("in \(size(input))") }
            if let output = row.output { words.append("out \(size(output))") }
            if let atr = row.atr { words.append("ATR \(Hex.encode(atr))") }
            if let code = row.code { words.append("code \(code)") }
            return (isError, words.joined(separator: " "))
        case .error(let row):
            let code = row.code.map { " \($0)" } ?? ""
            return (true, "error \(row.domain) \(row.case)\(code)\(row.after.map { " after exchange \($0)" } ?? "")")
        case .return(let row): return (!row.ok, row.ok ? "return" : "return \(row.domain ?? "") \(row.case ?? "")")
        case .mark(let row): return (false, row.text)
        case .state(let row): return (false, "state \(row.machine) \(row.from) -> \(row.to)")
        case .event(let row): return (false, "event \(row.name)")
        case .call(let row): return (false, "call \(row.function)")
        case .transport(let row): return (false, "transport \(row.id) \(row.kind.rawValue)")
        case .progress: return (false, "progress")
        case .entropy(let row): return (false, "entropy \(row.label) \(row.index), \(row.length) bytes")
        case .clock(let row): return (false, "clock \(row.kind.rawValue)")
        case .unknown(let members): return (false, members["td"]?.stringValue ?? "")
        }
    }

    private static func size(_ octets: Sealable<[UInt8]>) -> String {
        octets.plainValue.map { "\($0.count) bytes" } ?? "sealed"
    }

    private static func oneLine(_ text: String) -> String {
        String(text.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : Character($0) })
    }
}
