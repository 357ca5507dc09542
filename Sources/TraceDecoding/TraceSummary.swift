// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets
import TraceFile

/// One line of the summary: an exchange, a card event, a call, a return, a run of draws.
public struct SummaryLine: Sendable, Equatable {
    /// What stands in the mark column.
    public enum Mark: String, Sendable {
        case none = " "
        case opened = "o"
        case sealed = "s"
        case lookHere = "!"
        case reader = "-"
        case call = ">"
        case returned = "<"
        case drawn = "~"
        case happened = "*"
    }

    /// The exchange's number.
    public var number: UInt64
    /// Nanoseconds since the trace's first row.
    public var time: UInt64
    /// Nanoseconds from the command to the answer, over a folded run all of them together; nil for other rows.
    public var duration: UInt64?
    public var mark: Mark
    public var what: String
    public var answer: String
    /// The end of `what` where that is too long for one line.
    var tail = ""
    /// Wireshark's frame numbers.
    public var frames: ClosedRange<Int>
    /// How many exchanges the line stands for.
    public var exchanges = 1
    /// What there is to say about it, errors and warnings.
    public var annotations: [Annotation] = []
    /// The state that the session is in after it; nil outside credential sessions.
    public var state: String?
    /// A call or an event that something is wrong with.
    var isWrong = false
    var isExchange = false
    var read: ReadPlace?

    /// The exchange numbers that the line stands for; those of a folded run follow each other.
    public var numbers: ClosedRange<UInt64> { number...max(number, lastNumber) }
    var lastNumber: UInt64 = 0

    /// The line as `show` prints it: number, time, milliseconds, mark, what, answer.
    public func text(withFrames: Bool = false) -> String {
        var text = TextBuffer()
        write(to: &text, withFrames: withFrames)
        return text.text
    }

    /// Puts the line at the end of `text`, without a line feed.
    public func write(to text: inout TextBuffer, withFrames: Bool = false) {
        let start = text.count
        text.append(number: number, width: 4)
        if withFrames {
            text.append(0x20)
            let span = frames.count == 1 ? "\(frames.lowerBound)" : "\(frames.lowerBound)-\(frames.upperBound)"
            text.append(text: span, right: 7)
        }
        text.append(0x20)
        let microseconds = time / 1000
        text.append(number: microseconds / 1_000_000)
        text.append(0x2E)
        text.append(number: microseconds % 1_000_000, width: 6, fill: 0x30)
        text.append(0x20)
        if let duration {
            let hundredths = SummaryLine.rounded(duration, 10_000)
            text.append(number: hundredths / 100, width: 2)
            text.append(0x2E)
            text.append(number: hundredths % 100, width: 2, fill: 0x30)
        } else {
            // Beside a state the marks stand below each other, whatever the time is.
            let digits = state == nil ? 1 : min(4, String(microseconds / 1_000_000).count)
            text.append(blanks: 6 - digits)
        }
        text.append(isWrong ? "! " : "  ")
        text.append(text: mark.rawValue)
        text.append(0x20)
        text.append(text: what)
        if let state { return append(state, to: &text, lineStart: start, width: Self.width + (withFrames ? 8 : 0)) }
        let room = SummaryLine.answerColumn - SummaryLine.whatColumn
        let columns = what.columns
        text.append(blanks: columns >= room && !answer.isEmpty ? 2 : room - columns)
        text.append(text: answer)
        text.trim(from: start)
    }

    /// Answer and state, each in its column, or as far beside it as they need; on a line of their own where they do not fit.
    private func append(_ state: String, to text: inout TextBuffer, lineStart: Int, width: Int) {
        let shift = width - Self.width
        var column = text.count - lineStart - what.utf8.count + what.columns
        func next(_ indent: Int) {
            text.trim(from: lineStart)
            text.append(0x0A)
            text.append(blanks: indent)
            column = indent
        }
        if !tail.isEmpty {
            next(shift + Self.whatColumn + 2)
            text.append(text: tail)
            column += tail.columns
        }
        let stateColumn = min(shift + Self.answerColumn, max(0, width - state.columns))
        var place = stateColumn
        if !answer.isEmpty {
            let last = max(0, stateColumn - 1 - answer.columns)
            place = min(shift + Self.stateAnswerColumn, max(0, last - 1))
            if column >= place { place = min(column + 1, last) }
        }
        if column >= place { next(0) }
        text.append(blanks: place - column)
        if !answer.isEmpty {
            text.append(text: answer)
            text.append(blanks: max(1, stateColumn - place - answer.columns))
        }
        text.append(text: state)
    }

    /// Columns of a terminal.
    private static let width = 80
    static let whatColumn = 23
    static let answerColumn = 65
    /// Where an answer stands beside a state.
    static let stateAnswerColumn = 53

    /// The heading over the lines.
    ///
    /// - Parameter last: what the last column has.
    public static func heading(withFrames: Bool = false, last: String = "answer") -> String {
        withFrames
            ? " No.  frames     time    ms    what                                      \(last)"
            : " No.     time    ms    what                                      \(last)"
    }

    /// What the marks mean.
    public static let legend = "o opened  s sealed  ! look here  - reader  > call  < result  ~ drawn"
    /// The same for a credential session.
    public static let sessionLegend = "o opened  s sealed  ! look here  - reader  > call  * happened by itself"

    /// `number / unit`, rounded; never past the largest number.
    static func rounded(_ number: UInt64, _ unit: UInt64) -> UInt64 { number / unit + (number % unit >= unit / 2 ? 1 : 0) }

    /// A number of units of 10 to the minus `places`, with a point.
    public static func decimal(_ number: UInt64, places: Int) -> String {
        var digits = String(number)
        if digits.count <= places { digits = String(repeating: "0", count: places - digits.count + 1) + digits }
        let point = digits.index(digits.endIndex, offsetBy: -places)
        return "\(digits[..<point]).\(digits[point...])"
    }
}

/// Makes the summary of a trace from its decoded rows, an exchange a line, runs of equal reads folded.
public struct TraceSummary: Sendable {
    public private(set) var exchanges = 0
    public private(set) var errors = 0
    public private(set) var warnings = 0
    public private(set) var notes = 0
    /// Secure messages opened, and those there are.
    public private(set) var protected = (opened: 0, all: 0)
    /// Nanoseconds from the first row to the last.
    public private(set) var duration: UInt64 = 0

    private let folds: Bool
    private var session = SessionLines()
    private var start: UInt64?
    private var current: SummaryLine?
    /// A run of reads that may go on.
    private var run: Run?

    private struct Run: Sendable {
        var line: SummaryLine
        var first: ReadPlace
        var last: ReadPlace
        var total: Int
        var isOver = false
    }

    public init(folds: Bool = true) { self.folds = folds }

    /// Times count from this row, whether it is taken in or not.
    public mutating func begin(_ row: DecodedRow) { if start == nil { start = row.row.time } }

    /// Takes in a row and gives the lines that are finished by it. Views that were made from other rows have no line.
    public mutating func push(_ row: DecodedRow) -> [SummaryLine] {
        begin(row)
        guard !row.isDerived else { return [] }
        let time = row.row.time >= (start ?? 0) ? row.row.time - (start ?? 0) : 0
        duration = max(duration, time)
        count(row)
        if row.isTwin || [.transport, .progress, .clock].contains(row.kind) { return [] }
        let isAnswer = row.kind == .response || (row.kind == .frame && row.row.direction == .received)
        if isAnswer, var line = current, line.number == row.row.packetID, line.isExchange, line.duration == nil {
            finish(&line, with: row, time)
            current = line
            return []
        }
        if row.kind == .entropy, var line = current, line.mark == .drawn, line.number == row.row.packetID {
            merge(&line, row)
            current = line
            return []
        }
        if row.kind == .reader, row.message == "atr", let line = current, line.number == row.row.packetID {
            current?.frames = line.frames.lowerBound...max(line.frames.lowerBound, row.row.frame)
            return []
        }
        if folds, let lines = session.push(row, begin(row, time)) {
            // What an emulated card passes on to the element stands between a command and its answer.
            let isBetween = row.meta == nil && lines.isEmpty && current.map { $0.isExchange && $0.duration == nil } ?? false
            return isBetween ? [] : settle() + flushRun() + lines
        }
        var lines = session.flush() + settle()
        if row.kind == .error, let line = lines.last, case .error(let failure)? = row.meta, failure.after == line.number {
            lines[lines.count - 1].mark = .lookHere
            lines[lines.count - 1].answer = "no answer"
        }
        current = begin(row, time)
        return lines
    }

    /// Gives the lines that are left.
    public mutating func end() -> [SummaryLine] {
        var lines = settle()
        if let run { lines.append(run.line) }
        lines += session.flush()
        run = nil
        return lines
    }

    /// `21 exchanges, 1.8 ms; 34 of 34 MACs held; 0 errors, 0 warnings, 0 notes`.
    public func closing(authentication: (checked: Int, held: Int)) -> String {
        var text = "\(grouped(exchanges)) exchange\(exchanges == 1 ? "" : "s"), \(SummaryLine.span(duration))"
        if authentication.checked > 0 { text += "; \(authentication.held) of \(authentication.checked) MACs held" }
        text += "; \(errors) error\(errors == 1 ? "" : "s"), \(warnings) warning\(warnings == 1 ? "" : "s")"
        return text + ", \(notes) note\(notes == 1 ? "" : "s")"
    }

    /// What a credential session came to, by the rules that it followed; nil for other traces, and where nothing is folded.
    public var sessionClosing: String? { session.isActive ? session.closing : nil }

    // MARK: - Lines

    private mutating func count(_ row: DecodedRow) {
        for annotation in row.annotations {
            switch annotation.severity {
            case .error: errors += 1
            case .warn: warnings += 1
            case .note where annotation.code != "held" && annotation.code != "sealed": notes += 1
            case .note: break
            }
        }
        if row.kind == .command || (row.kind == .frame && row.row.direction != .received) { exchanges += 1 }
        if row.kind == .command, row.isProtected {
            protected.all += 1
            if row.opening == .opened { protected.opened += 1 }
        }
    }

    private func begin(_ row: DecodedRow, _ time: UInt64) -> SummaryLine {
        var line = SummaryLine(
            number: row.row.packetID ?? 0, time: time, duration: nil, mark: .none, what: row.summary, answer: "",
            frames: row.row.frame...row.row.frame
        )
        line.annotations = row.annotations.filter { $0.code != "held" && $0.code != "sealed" }
        if session.isActive { line.state = session.state }
        switch row.kind {
        case .command:
            line.isExchange = true
            line.read = row.read
            line.mark = mark(row, before: .none)
        case .frame:
            // A frame that answers none before it stands on its own line, in the answer's column.
            line.isExchange = row.row.direction != .received
            if row.row.direction == .received { (line.what, line.answer) = ("", row.answer) }
        case .response: line.answer = row.summary
        case .reader:
            line.mark = .reader
            line.answer = row.answer
        case .call:
            line.mark = .call
            if case .call(let call)? = row.meta { line.answer = MetaText.sealedArguments(call) }
        case .returned: line.mark = .returned
        case .entropy:
            line.mark = .drawn
            line.answer = "in secrets"
        case .error:
            line.mark = .lookHere
            if case .error(let failure)? = row.meta { line.answer = failure.code ?? "" }
        case .event, .state, .mark, .transport, .progress, .clock: break
        }
        return line
    }

    private func mark(_ row: DecodedRow, before: SummaryLine.Mark) -> SummaryLine.Mark {
        if before == .lookHere || row.annotations.contains(where: { $0.severity == .error }) { return .lookHere }
        switch row.opening {
        case .opened where row.plain != nil || before == .opened: return .opened
        case .sealed where row.isProtected: return .sealed
        default: return before
        }
    }

    private func finish(_ line: inout SummaryLine, with row: DecodedRow, _ time: UInt64) {
        line.duration = time >= line.time ? time - line.time : 0
        line.answer = row.kind == .frame ? row.answer : row.summary
        line.frames = line.frames.lowerBound...max(line.frames.lowerBound, row.row.frame)
        line.mark = mark(row, before: line.mark)
        line.annotations += row.annotations.filter { $0.code != "held" && $0.code != "sealed" }
        if !row.isSuccess { line.read = nil }
    }

    /// Draws of one run on one line: `24 random bytes: RND.IFD, K.IFD`.
    private func merge(_ line: inout SummaryLine, _ row: DecodedRow) {
        guard case .entropy(let draw)? = row.meta else { return }
        let parts = line.what.split(separator: " ", maxSplits: 1)
        guard let first = parts.first, let count = Int(first), parts.count == 2 else { return }
        let (sum, isTooLong) = count.addingReportingOverflow(draw.length)
        line.what = "\(isTooLong ? .max : sum) \(parts[1]), \(MetaText.label(draw.label))"
        line.frames = line.frames.lowerBound...max(line.frames.lowerBound, row.row.frame)
    }

    /// Ends the current line: it joins the run of reads, or the run's line and it are finished.
    private mutating func settle() -> [SummaryLine] {
        guard let line = current else { return [] }
        current = nil
        guard folds, let place = line.read, line.duration != nil, line.annotations.isEmpty else {
            return flushRun() + [line]
        }
        if var run, !run.isOver, run.line.mark == line.mark, place.offset == run.last.offset + run.last.length,
            place.length <= run.first.length
        {
            run.isOver = place.length < run.first.length
            run.last = place
            run.total += place.length
            run.line.exchanges += 1
            run.line.lastNumber = line.number
            let (sum, isTooLong) = (run.line.duration ?? 0).addingReportingOverflow(line.duration ?? 0)
            run.line.duration = isTooLong ? .max : sum
            run.line.answer = line.answer
            run.line.frames = run.line.frames.lowerBound...max(run.line.frames.lowerBound, line.frames.upperBound)
            run.line.what =
                "READ BINARY \(grouped(run.total)) at \(run.first.offset), \(run.line.exchanges) times"
            self.run = run
            return []
        }
        let lines = flushRun()
        run = Run(line: line, first: place, last: place, total: place.length)
        return lines
    }

    private mutating func flushRun() -> [SummaryLine] {
        defer { run = nil }
        return run.map { [$0.line] } ?? []
    }
}

extension SummaryLine {
    /// `1.8 ms`, `4.2 s`.
    public static func span(_ nanoseconds: UInt64) -> String {
        if nanoseconds < 1_000_000_000 { return "\(decimal(rounded(nanoseconds, 100_000), places: 1)) ms" }
        return "\(decimal(rounded(nanoseconds, 100_000_000), places: 1)) s"
    }
}
