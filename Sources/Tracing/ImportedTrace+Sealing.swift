// SPDX-License-Identifier: MIT

import Glibc
import TraceFile

extension ImportedTrace {
    /// The trace with what is secret in its APDUs and frames set to `00`, as ``SealTable`` says, and those octets as records.
    ///
    /// A row that a packet id joins to a command before it is its answer.
    public func sealed() -> (trace: Trace, secrets: [SecretRecord]) {
        var sealed = trace
        var secrets: [SecretRecord] = []
        for index in sealed.rows.indices {
            let row = sealed.rows[index]
            guard row.direction == .sent else { continue }
            let next = index + 1
            let answer = sealed.rows.indices.contains(next) ? sealed.rows[next] : nil
            let isAnswered = answer?.direction == .received && answer?.packetID == row.packetID
            let places = Self.places(trace.kind(of: row), row, isAnswered ? answer?.body ?? [] : [])
            guard !places.isEmpty else { continue }
            secrets += Self.seal(places.command, in: &sealed.rows[index])
            if isAnswered { secrets += Self.seal(places.answer, in: &sealed.rows[next]) }
        }
        return (sealed, secrets)
    }

    /// Writes the trace sealed, and beside it a file of what was sealed where there is any.
    ///
    /// - Returns: how many rows are sealed.
    /// - Throws: ``TraceFileError``: `exists` for either file that is there unless `replacing`.
    public func write(to path: String, replacing: Bool = false) throws(TraceFileError) -> Int {
        let (trace, secrets) = sealed()
        let side = SecretStore.sidePath(forTrace: path)
        // Another trace's secrets beside this one would make it unreadable, so they are replaced together.
        guard !secrets.isEmpty || (replacing && access(side, F_OK) == 0) else {
            try trace.write(to: path, replacing: replacing)
            return 0
        }
        if !replacing, access(path, F_OK) == 0 { throw TraceFileError(.exists, path: path) }
        var writer = try SecretsWriter(
            creating: side, session: trace.header.session ?? "", application: trace.header.application, replacing: replacing
        )
        if !secrets.isEmpty { try writer.write(secrets) }
        try writer.close()
        try trace.write(to: path, replacing: replacing)
        return Set(secrets.map { "\($0.packetID) \($0.direction)" }).count
    }

    /// Frames under `iso14443` have four octets before them, whose second says whether a checksum follows (link type 264);
    /// other frames are as the capture had them, with a checksum or without.
    private static func places(_ kind: InterfaceKind, _ row: TraceRow, _ answer: [UInt8]) -> SealTable.Places {
        switch kind {
        case .apdu: return SealTable.places(command: row.body, answer: answer)
        case .rf where row.dissector == "iso14443":
            guard row.body.count > 4 else { return SealTable.Places() }
            let checksum = row.body[1] >= 0xFE ? 2 : 0
            return SealTable.places(frame: Array(row.body.dropFirst(4)), answer: Array(answer.dropFirst(4)), checksum: checksum)
                .moved(command: 4, answer: 4)
        case .rf:
            let checked = SealTable.places(frame: row.body, answer: answer, checksum: 2)
            return checked.isEmpty ? SealTable.places(frame: row.body, answer: answer, checksum: 0) : checked
        default: return SealTable.Places()
        }
    }

    private static func seal(_ places: [Range<Int>], in row: inout TraceRow) -> [SecretRecord] {
        let inside = places.filter { $0.upperBound <= row.body.count && !$0.isEmpty }
        guard !inside.isEmpty else { return [] }
        var records: [SecretRecord] = []
        for place in inside {
            records.append(
                SecretRecord(
                    kind: .sealed, packetID: UInt32(truncatingIfNeeded: row.packetID ?? 0),
                    interface: UInt16(truncatingIfNeeded: row.interface), direction: row.direction ?? .sent,
                    offset: UInt32(truncatingIfNeeded: place.lowerBound), octets: [UInt8](row.body[place])
                )
            )
            for index in place { row.body[index] = 0 }
        }
        row.comments.append(SealedRange.comment(inside.map { SealedRange(offset: $0.lowerBound, length: $0.count) }))
        return records
    }
}
