// SPDX-License-Identifier: MIT

import GrammarLibrary
import TraceFile

/// Makes the rows of an annotated copy: the raw rows as they are with comments, and behind each pair the messages inside on
/// `plain:N`, with the same exchange number, for tools that cannot open them.
///
/// Rows of `plain:N` that the trace has already are left out: they are made anew.
public struct AnnotatedRows: Sendable {
    private var decoder: TraceDecoder
    private var plainInterfaces: [Int: Int] = [:]
    private var waiting: [Int: TraceRow] = [:]
    /// How many rows have a comment that says what is known, and how many plain rows were added.
    public private(set) var comments = 0
    public private(set) var plains = 0

    public init(secrets: SecretStore, grammars: GrammarLibrary? = nil) {
        decoder = TraceDecoder(interfaces: [], secrets: secrets, grammars: grammars)
        decoder.triesNearMisses = true
        decoder.hidesPieces = false
    }

    /// The interfaces of the copy for those of the trace so far: the same, then one `plain:N` for each reader that has none.
    public static func interfaces(for interfaces: [TraceInterface]) -> [TraceInterface] {
        var all = interfaces
        for interface in interfaces {
            guard case .apdu(let number) = interface.kind, !all.contains(where: { $0.kind == .plain(number) }) else { continue }
            all.append(TraceInterface(.plain(number), description: interface.description))
        }
        return all
    }

    /// Declares the interfaces of the copy, in order.
    public mutating func add(_ interface: TraceInterface, index: Int) {
        decoder.add(interface)
        if case .plain(let number) = interface.kind { plainInterfaces[number] = index }
    }

    /// The rows of the copy for one row of the trace.
    public mutating func push(_ row: TraceRow) -> [TraceRow] {
        let decoded = decoder.push(row)
        if case .plain = decoded.interface { return [] }
        var raw = row
        if let comment = Self.comment(decoded) {
            if !raw.comments.contains(comment) { raw.comments.append(comment) }
            comments += 1
        }
        var rows = [raw]
        guard case .apdu(let number) = decoded.interface, let interface = plainInterfaces[number] else { return rows }
        let inner = decoded.derived.last { ($0.origin == .plain || $0.origin == .gathered) && !$0.octets.isEmpty }
        let plain = inner.map {
            TraceRow(
                time: row.time, interface: interface, direction: row.direction, packetID: row.packetID, dissector: "iso7816",
                body: $0.octets)
        }
        switch decoded.kind {
        case .command: waiting[number] = plain
        case .response:
            if var command = waiting.removeValue(forKey: number), command.packetID == row.packetID {
                // Behind the raw pair, and not before its last row in time.
                command.time = row.time
                rows.append(command)
                plains += 1
            }
            if let plain {
                rows.append(plain)
                plains += 1
            }
        default: break
        }
        return rows
    }

    /// What there is to say about a row; nil for one without annotations.
    private static func comment(_ row: DecodedRow) -> String? {
        guard !row.annotations.isEmpty else { return nil }
        let lines = row.annotations.map { annotation in
            let side = annotation.blame.map { "\($0.rawValue): " } ?? ""
            let word = annotation.code == "held" || annotation.code == "sealed" ? "" : "\(annotation.severity.rawValue): "
            return "\(word)\(side)\(annotation.text)\(annotation.see.map { " (see exchange \($0))" } ?? "")"
        }
        return ([row.summary] + lines).joined(separator: "\n")
    }
}
