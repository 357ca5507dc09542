// SPDX-License-Identifier: MIT

/// Exchanges that an importer found, in the order of its input, before they have numbers.
struct ImportedExchanges {
    enum Item {
        /// A card answered to a reset: the reader's event and the ATR's own row.
        case card(event: String, atr: [UInt8])
        /// A command with its answer, which is nil where the input has none.
        case exchange(command: [UInt8], answer: [UInt8]?, answered: UInt64)
        /// Why the exchange before it has no answer.
        case failure(MetaRow.Failure)
        /// What is neither command nor answer, shown under the text in the protocol column.
        case other(body: [UInt8], direction: RowDirection, text: String)
        case mark(String)
    }

    /// More rows than this are not made: each costs some 250 octets of memory, whatever its input costs.
    static let rowLimit = 1_000_000

    private(set) var items: [(time: UInt64, item: Item)] = []
    /// Exchanges, answered or not.
    private(set) var exchangeCount = 0
    private(set) var cardCount = 0

    var isFull: Bool { items.count >= Self.rowLimit / 2 }
    var isEmpty: Bool { items.isEmpty }

    mutating func append(_ item: Item, at time: UInt64) {
        switch item {
        case .card: cardCount += 1
        case .exchange: exchangeCount += 1
        case .failure, .other, .mark: break
        }
        items.append((time, item))
    }

    /// The trace: `summary` as marks, then what was found. All are numbered through.
    ///
    /// - Parameters:
    ///   - reader: the reader's name; empty where the input has none.
    ///   - source: what the rows are from, for the description of `apdu:0`.
    func trace(_ header: TraceHeader, reader: String, source: String, summary: [String]) -> Trace {
        let description = reader.isEmpty ? source : "\(reader), from \(source)"
        let interfaces = [
            TraceInterface(.apdu(0), description: description), TraceInterface(.reader(0), description: reader),
            TraceInterface(.meta, description: "marks"),
        ]
        var numbering = Numbering(reader: reader)
        let start = items.lazy.map(\.time).min() ?? 0
        for line in summary { numbering.mark(line, at: start) }
        for (time, item) in items { numbering.add(item, at: time) }
        return Trace(header: header, interfaces: interfaces, rows: numbering.rows)
    }
}

/// Makes rows of items.
private struct Numbering {
    private static let (apdu, events, meta) = (0, 1, 2)

    let reader: String
    var rows: [TraceRow] = []
    private var packetID: UInt64 = 0
    private var lastExchange: UInt64?

    init(reader: String) { self.reader = reader }

    mutating func mark(_ text: String, at time: UInt64) {
        packetID += 1
        put(time, Self.meta, nil, "json", MetaRow.mark(MetaRow.Mark(text: text)).body)
    }

    mutating func add(_ item: ImportedExchanges.Item, at time: UInt64) {
        switch item {
        case .mark(let text): mark(text, at: time)
        case .card(let event, let atr):
            packetID += 1
            twins(.reader(MetaRow.Reader(name: event, atr: atr)), at: time)
            put(time, Self.apdu, .received, "iso7816", atr)
        case .exchange(let command, let answer, let answered):
            packetID += 1
            lastExchange = packetID
            put(time, Self.apdu, .sent, "iso7816", command)
            if let answer { put(answered, Self.apdu, .received, "iso7816", answer) }
        case .failure(var failure):
            packetID += 1
            failure.after = lastExchange
            twins(.error(failure), at: time)
        case .other(let body, let direction, let text):
            packetID += 1
            put(time, Self.apdu, direction, "data", body, text)
        }
    }

    private mutating func twins(_ row: MetaRow, at time: UInt64) {
        for var twin in ReaderRows.rows(for: row, reader: reader, time: time, interface: Self.events, packetID: packetID) {
            twin.frame = rows.count + 1
            rows.append(twin)
        }
    }

    private mutating func put(
        _ time: UInt64, _ interface: Int, _ direction: RowDirection?, _ dissector: String, _ body: [UInt8],
        _ text: String? = nil
    ) {
        rows.append(
            TraceRow(
                frame: rows.count + 1, time: time, interface: interface, direction: direction, packetID: packetID,
                dissector: dissector, protocolText: text, body: body
            )
        )
    }
}

/// `1 exchange`, `2,000 exchanges`.
func counted(_ number: Int, _ noun: String, _ plural: String? = nil) -> String {
    "\(grouped(UInt64(clamping: number))) \(number == 1 ? noun : plural ?? "\(noun)s")"
}
