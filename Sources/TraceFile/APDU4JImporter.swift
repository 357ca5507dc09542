// SPDX-License-Identifier: MIT

/// Makes traces of apdu4j's dumps: text with a command or an answer in hex a line, and comments after `#`.
///
/// - Times: the trace begins at the date that the dump names, else at 1970-01-01 00:00 UTC. An answer comes as long after
///   its command as the dump says, and the next command at once after it.
/// - Each ATR is a reader's `connect`, with the ATR's own row. Comments that say nothing else are marks.
/// - A command without an answer has none in the trace; the reason, where the dump has one, is an error row.
/// - The session's id is made of the input's octets: the same file becomes the same trace.
///
/// PINs stand in what is imported as they stood in the dump; `ImportedTrace.write(to:replacing:)` of Tracing seals them.
public enum APDU4JImporter {
    /// Imports the octets of a dump.
    ///
    /// - Parameters:
    ///   - name: the file's name, for the interface's description and the marks.
    ///   - application: what the trace's header says made it.
    /// - Throws: ``TraceFileError``: `empty`, and `nothingToImport` for text that holds no APDU and no ATR before its first
    ///   fault.
    public static func importTrace(
        _ octets: [UInt8], name: String, application: String = "tapdeck"
    ) throws(TraceFileError) -> ImportedTrace {
        guard !octets.isEmpty else { throw TraceFileError(.empty, path: name) }
        var reading = APDU4JReading()
        let damage = reading.read(octets)
        let found = reading.found
        guard found.exchangeCount + found.cardCount > 0 else {
            let guess = CaptureGuess.guess([UInt8](octets.prefix(12)))
            let what = damage?.detail ?? "no APDU and no ATR"
            let detail = guess == nil || guess == "text" ? what : "\(what); it begins as \(guess ?? "") does"
            throw TraceFileError(.nothingToImport, path: name, detail: detail)
        }
        var summary = ["imported from apdu4j dump \(name): \(reading.description)"]
        summary += reading.notes
        if let damage { summary.append("\(name) is \(damage)") }
        let header = TraceHeader(session: Proxmark3Importer.sessionID(octets), application: application)
        let source = "apdu4j dump \(name)\(reading.protocolName.map { ", \($0)" } ?? "")"
        let trace = found.trace(header, reader: reading.readerName, source: source, summary: summary)
        return ImportedTrace(trace: trace, protocol: nil, isByContent: false, summary: summary, damage: damage)
    }

    /// Imports a file, compressed with gzip or not. Nothing is written.
    ///
    /// - Throws: as ``importTrace(_:name:application:)``, and `notFound`, `noPermission`, `isDirectory`, `cannotRead`,
    ///   `tooLarge` for one over 64 MiB.
    public static func importFile(_ path: String, application: String = "tapdeck") throws(TraceFileError) -> ImportedTrace {
        try ImportedTrace.ofFile(path, limit: sizeLimit) { octets, name throws(TraceFileError) in
            try importTrace(octets, name: name, application: application)
        }
    }

    private static let sizeLimit = 64 << 20
}

/// What was read of a dump so far: a machine that is fed lines.
private struct APDU4JReading {
    private enum Turn {
        case command
        case answer
    }

    private(set) var found = ImportedExchanges()
    private(set) var readerName = ""
    private(set) var protocolName: String?
    /// Nanoseconds since 1970 at which the next thing happened.
    private var time: UInt64 = 0
    private var hasDate = false
    private var unreadDate: String?
    /// A command whose answer is not there yet.
    private var pending: [UInt8]?
    private var elapsed: UInt64?
    /// What a comment says that the next octets are.
    private var announced: Turn?
    private var unanswered = 0
    private var untimed = 0
    private var answered = 0

    /// Reads a whole dump.
    ///
    /// - Returns: where it stops making sense; what came before that was taken.
    mutating func read(_ octets: [UInt8]) -> TraceDamage? {
        var number = 0
        // A byte-order mark is no part of the first line.
        var start = octets.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        while start < octets.count {
            number += 1
            let end = octets[start...].firstIndex(of: 0x0A) ?? octets.count
            do throws(APDU4JDump.Fault) {
                guard !found.isFull else {
                    throw APDU4JDump.Fault(column: 1, detail: "as many rows as are made; the rest is not imported")
                }
                try take(try APDU4JDump.line(octets[start..<end]))
            } catch {
                settle(reason: nil)
                // Half an octet at the very end is a dump that was cut off while it was written.
                let isCut = end == octets.count && error.isHalf
                return TraceDamage(
                    kind: isCut ? .cutShort : .damaged, block: number, offset: UInt64(start + error.column - 1),
                    rows: found.exchangeCount, detail: "line \(number), column \(error.column): \(error.detail)", unit: "line"
                )
            }
            start = end + 1
        }
        settle(reason: nil)
        return nil
    }

    var description: String {
        var parts = [counted(found.exchangeCount, "exchange")]
        if found.cardCount > 0 { parts.append(counted(found.cardCount, "ATR")) }
        if let protocolName { parts.append(protocolName) }
        return parts.joined(separator: ", ")
    }

    /// What is lost and what was not certain, a line each.
    var notes: [String] {
        var lines = ["lost: the time between an answer and the next command"]
        if !hasDate {
            let why = unreadDate.map { "its date, \($0), is not understood" } ?? "it has no date"
            lines.append("\(why): times begin at 1970-01-01")
        }
        if untimed > 0, untimed < answered { lines.append("\(counted(untimed, "answer has", "answers have")) no time") }
        if untimed > 0, untimed == answered { lines.append("no answer has a time: times tell the order only") }
        if unanswered > 0 { lines.append("\(counted(unanswered, "command has", "commands have")) no answer") }
        return lines
    }

    private mutating func take(_ line: APDU4JDump.Line) throws(APDU4JDump.Fault) {
        switch line {
        case .empty: break
        case .generated(let text): takeDate(text)
        case .reader(let name):
            if readerName.isEmpty { readerName = name } else if readerName != name { mark("reader \(name)") }
        case .protocolName(let name):
            if protocolName == nil { protocolName = name } else if protocolName != name { mark("protocol \(name)") }
        case .identifier(let octets): mark("UID \(spelled(octets))")
        case .atr(let atr):
            settle(reason: nil)
            found.append(.card(event: "connect", atr: atr), at: time)
        case .sent:
            settle(reason: nil)
            (announced, elapsed) = (.command, nil)
        case .received(let nanoseconds):
            announced = .answer
            elapsed = nanoseconds
        case .elapsed(let nanoseconds, let failure):
            guard pending != nil else {
                mark("\(nanoseconds / 1_000_000)ms\(failure.map { " \($0)" } ?? "")")
                return
            }
            elapsed = nanoseconds
            if let failure { settle(reason: failure) }
        case .comment(let text): mark(text)
        case .octets(let octets): try take(octets)
        }
    }

    private mutating func take(_ octets: [UInt8]) throws(APDU4JDump.Fault) {
        defer { announced = nil }
        if let command = pending, announced != .command {
            guard octets.count >= 2 else {
                throw APDU4JDump.Fault(column: 1, detail: "an answer has at least 2 bytes, this is \(octets.count)")
            }
            answered += 1
            if elapsed == nil { untimed += 1 }
            let end = time.addingReportingOverflow(elapsed ?? 0).partialValue
            found.append(.exchange(command: command, answer: octets, answered: end), at: time)
            (pending, elapsed, time) = (nil, nil, end)
            return
        }
        guard announced != .answer else { throw APDU4JDump.Fault(column: 1, detail: "an answer to no command") }
        guard octets.count >= 4 else {
            let isStatus = octets.count == 2 && (octets[0] & 0xF0 == 0x60 || octets[0] & 0xF0 == 0x90)
            let what =
                isStatus
                ? "a status word where a command should stand" : "a command has at least 4 bytes, this is \(octets.count)"
            throw APDU4JDump.Fault(column: 1, detail: what)
        }
        pending = octets
    }

    /// Puts a command that will have no answer into the trace.
    private mutating func settle(reason: String?) {
        guard let command = pending else { return }
        unanswered += 1
        found.append(.exchange(command: command, answer: nil, answered: time), at: time)
        time = time.addingReportingOverflow(elapsed ?? 0).partialValue
        if let reason { found.append(.failure(APDU4JFailure.row(reason)), at: time) }
        (pending, elapsed) = (nil, nil)
    }

    /// A word between a command and its answer stands before both.
    private mutating func mark(_ text: String) { found.append(.mark(text), at: time) }

    private mutating func takeDate(_ text: String) {
        guard let date = APDU4JDump.date(text) else {
            if unreadDate == nil { unreadDate = text }
            return
        }
        // A later connection of the same dump never turns the clock back.
        if found.isEmpty || date > time { time = date }
        hasDate = true
    }
}

/// What apdu4j says in place of an answer, as an error row.
enum APDU4JFailure {
    static func row(_ text: String) -> MetaRow.Failure {
        for (name, code, word) in known where text.utf8.count < 10_000 && text.contains(word: name) {
            return MetaRow.Failure(after: nil, domain: "PCSC", case: word, code: code)
        }
        var row = MetaRow.Failure(after: nil, domain: "apdu4j", case: "noAnswer")
        row.extra["text"] = .string(text)
        return row
    }

    /// Names of PC/SC part 5 with their codes, as apdu4j's texts have them.
    private static let known = [
        ("SCARD_W_REMOVED_CARD", "80100069", "tagConnectionLost"), ("SCARD_E_NO_SMARTCARD", "8010000C", "tagConnectionLost"),
        ("SCARD_W_RESET_CARD", "80100068", "tagReset"), ("SCARD_E_TIMEOUT", "8010000A", "timeout"),
        ("SCARD_E_READER_UNAVAILABLE", "80100017", "readerUnavailable"), ("SCARD_E_NO_SERVICE", "8010001D", "serviceUnavailable"),
    ]
}

extension String {
    /// Whether `word` stands somewhere in the text.
    fileprivate func contains(word: String) -> Bool {
        let wanted = Array(word.utf8)
        let units = Array(utf8)
        guard units.count >= wanted.count else { return false }
        return (0...units.count - wanted.count).contains { units[$0..<$0 + wanted.count].elementsEqual(wanted) }
    }
}
