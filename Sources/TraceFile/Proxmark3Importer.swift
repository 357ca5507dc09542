// SPDX-License-Identifier: MIT

/// A capture of another program, made a trace.
public struct ImportedTrace: Sendable {
    public var trace: Trace
    /// The air interface, and whether the frames told it or the caller did; nil when nothing tells.
    public var `protocol`: RFProtocol?
    public var isByContent: Bool
    /// What was found, what is lost, for people: a line each. The trace's first marks say the same.
    public var summary: [String]
    /// Where the input stops making sense; what came before it is in ``trace``.
    public var damage: TraceDamage?
}

extension ImportedTrace {
    /// Loads a file, compressed with gzip or not, and makes a trace of its octets and name. What is thrown has the path.
    static func ofFile(
        _ path: String, limit: Int, _ make: (_ octets: [UInt8], _ name: String) throws(TraceFileError) -> ImportedTrace
    ) throws(TraceFileError) -> ImportedTrace {
        let octets = try OctetSource.load(path, limit: limit)
        let name = path.split(separator: "/").last.map(String.init) ?? path
        do throws(TraceFileError) {
            return try make(octets, name)
        } catch {
            throw TraceFileError(error.code, path: path, detail: error.detail)
        }
    }
}

/// Makes traces of what a Proxmark3 saved with `trace save`.
///
/// - Times: the device counts from the start of the capture and knows no time of day, so the trace's times begin at
///   1970-01-01 00:00 UTC with the device's count. The count turns over after 2^32; that is undone. 125 kHz captures
///   count 8-microsecond periods anew for each command; there each command follows the answer before it at once.
/// - A command and the first answer after it share a packet id.
/// - The session's id is made of the input's octets: the same file becomes the same trace.
public enum Proxmark3Importer {
    /// Imports the octets of a `.trace` file.
    ///
    /// - Parameters:
    ///   - rf: the air interface; nil lets the frames tell.
    ///   - name: the file's name, for the interface's description and the marks.
    ///   - application: what the trace's header says made it.
    public static func importTrace(
        _ octets: [UInt8], protocol rf: RFProtocol?, name: String, application: String = "tapdeck"
    ) -> ImportedTrace {
        let (records, damage) = Proxmark3Record.parse(octets)
        let found = rf ?? RFProtocol.guess(records)
        let interfaces = [TraceInterface(.rf(0), description: "Proxmark3 trace \(name)"), TraceInterface(.meta)]
        let frames = rows(records, found)
        let summary = summary(records, found, isForced: rf != nil, name: name, damage: damage)
        let start = frames.lazy.map(\.time).min() ?? 0
        var rows: [TraceRow] = []
        for (index, line) in summary.enumerated() {
            rows.append(
                TraceRow(
                    frame: index + 1, time: start, interface: 1, direction: nil, packetID: UInt64(index + 1), dissector: "json",
                    body: MetaRow.mark(MetaRow.Mark(text: line)).body
                )
            )
        }
        for var row in frames {
            row.frame = rows.count + 1
            row.packetID = row.packetID.map { $0 + UInt64(summary.count) }
            rows.append(row)
        }
        let header = TraceHeader(session: sessionID(octets), hardware: "Proxmark3", application: application)
        return ImportedTrace(
            trace: Trace(header: header, interfaces: interfaces, rows: rows), protocol: found, isByContent: rf == nil,
            summary: summary,
            damage: damage
        )
    }

    /// Imports a file.
    ///
    /// - Throws: ``TraceFileError`` for a file that cannot be read and one without octets.
    public static func importFile(
        _ path: String, protocol rf: RFProtocol?, application: String = "tapdeck"
    ) throws(TraceFileError) -> ImportedTrace {
        let octets = try OctetSource(path: path).readAll(limit: sizeLimit)
        guard !octets.isEmpty else { throw TraceFileError(.empty, path: path) }
        let name = path.split(separator: "/").last.map(String.init) ?? path
        return importTrace(octets, protocol: rf, name: name, application: application)
    }

    /// The device keeps at most a megabyte; a file past this is none of its.
    private static let sizeLimit = 64 << 20

    private static func rows(_ records: [Proxmark3Record], _ rf: RFProtocol?) -> [TraceRow] {
        var sorter = FrameSorter(rf)
        var clock = DeviceClock(rf)
        var rows: [TraceRow] = []
        var packetID: UInt64 = 0
        var isAwaited = false
        for record in records {
            if !record.isAnswer || !isAwaited { packetID += 1 }
            isAwaited = !record.isAnswer
            let sorted = sorter.sort(record.frame, isAnswer: record.isAnswer)
            rows.append(
                TraceRow(
                    time: clock.nanoseconds(record), interface: 0, direction: record.isAnswer ? .received : .sent,
                    packetID: packetID,
                    dissector: sorted.dissector, protocolText: sorted.protocolText, body: sorted.body
                )
            )
        }
        return rows
    }

    private static func summary(
        _ records: [Proxmark3Record], _ rf: RFProtocol?, isForced: Bool, name: String, damage: TraceDamage?
    ) -> [String] {
        let how = isForced ? "as told" : "by content"
        let count = "\(grouped(UInt64(records.count))) frame\(records.count == 1 ? "" : "s")"
        var lines = [
            "imported from Proxmark3 trace \(name): \(count), \(rf.map { "\($0.name) \(how)" } ?? "protocol not recognised")"
        ]
        var lost = ["parity bits", "durations"]
        if rf == .felica { lost.append("sync, length and checksum of FeliCa frames") }
        if rf == .lowFrequency { lost = ["parity bits, which hold the number of bits in the last octet", "durations"] }
        lines.append("lost: \(lost.joined(separator: "; "))")
        if rf == .iso14443A {
            let odd = records.filter { $0.frame.count > 1 && !$0.hasOddParity }.count
            if odd > 0 {
                lines.append("\(grouped(UInt64(odd))) of the frames had other than odd parity, as encrypted MIFARE Classic has")
            }
        }
        let overflown = records.filter { isTooLong($0, rf) }
        if let first = overflown.first {
            let frames = overflown.count == 1 ? "1 frame" : "\(grouped(UInt64(overflown.count))) frames"
            lines.append(
                "\(frames) lasted longer than the device's 16 bits can say, the first at byte \(grouped(UInt64(first.offset))): when they ended is not known"
            )
        }
        if rf != .lowFrequency {
            let early = zip(records, records.dropFirst()).filter {
                $1.isAnswer && $1.ticks < $0.ticks && $0.ticks - $1.ticks < 1 << 31
            }.count
            if early > 0 { lines.append("the device stamped \(grouped(UInt64(early))) answers earlier than their commands") }
        }
        if let damage { lines.append("\(name) is \(damage)") }
        return lines
    }

    /// Whether a frame lasts longer than 65,535 carrier periods at 106 kbit/s: 9 bits an octet for type A with its
    /// parity bit, 10 for type B with start and stop bit, of 128 periods each.
    private static func isTooLong(_ record: Proxmark3Record, _ rf: RFProtocol?) -> Bool {
        switch rf {
        case .iso14443A: record.frame.count * 9 * 128 > 0xFFFF
        case .iso14443B: record.frame.count * 10 * 128 > 0xFFFF
        default: false
        }
    }

    /// A UUID of version 8 (RFC 9562 5.8) out of the 128-bit FNV-1a hash of `octets`.
    static func sessionID(_ octets: [UInt8]) -> String {
        var hash: UInt128 = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D
        for octet in octets { hash = (hash ^ UInt128(octet)) &* 0x0000_0000_0100_0000_0000_0000_0000_013B }
        var digits: [UInt8] = []
        for index in 0..<16 {
            var octet = UInt8(truncatingIfNeeded: hash >> UInt128(8 * (15 - index)))
            if index == 6 { octet = octet & 0x0F | 0x80 }
            if index == 8 { octet = octet & 0x3F | 0x80 }
            digits.append(octet)
        }
        let parts = [digits[0..<4], digits[4..<6], digits[6..<8], digits[8..<10], digits[10..<16]]
        return parts.map { spelled([UInt8]($0)) }.joined(separator: "-")
    }
}

/// Turns the device's counts into nanoseconds.
private struct DeviceClock {
    private let restarts: Bool
    private var last: UInt32 = 0
    private var base: UInt64 = 0

    init(_ rf: RFProtocol?) { restarts = rf == .lowFrequency }

    mutating func nanoseconds(_ record: Proxmark3Record) -> UInt64 {
        if record.ticks < last {
            if restarts {
                base += UInt64(last)
            } else if last - record.ticks > 1 << 31 {
                base += 1 << 32
            }
        }
        // A small step back stays: answers of type B are stamped earlier than their commands by some firmware.
        last = record.ticks
        let ticks = base + UInt64(record.ticks)
        // 125 kHz: 8 microseconds. 13.56 MHz: 25,000 / 339 nanoseconds.
        return restarts ? ticks.multipliedReportingOverflow(by: 8_000).partialValue : scaled(ticks)
    }

    private func scaled(_ ticks: UInt64) -> UInt64 { UInt64(truncatingIfNeeded: UInt128(ticks) * 25_000 / 339) }
}
