// SPDX-License-Identifier: MIT

import Octets

/// A dump of apdu4j, line by line: text in which each line is a comment after `#` or the octets of one APDU in hex.
///
/// Commands and answers take turns. Three comments stand for more than words:
///
/// - `# Sent`, `# Received`, `# Received in 40ms`, `# Received in 1s5ms` say what the next line is (up to 2025);
/// - `# 40ms` gives the answer's time, `# 40ms TEXT` says that there was none (since 2026);
/// - `# Generated on DATE by apdu4j`, `# Using READER`, `# ATR: HEX`, `# PROTOCOL: T=1`, `# UID: HEX` stand at the start of
///   each connection.
struct APDU4JDump {
    enum Line: Equatable {
        case generated(String)
        case reader(String)
        case atr([UInt8])
        case protocolName(String)
        case identifier([UInt8])
        /// The next octets are a command's.
        case sent
        /// The next octets are an answer's. Nanoseconds since the command, where they are said.
        case received(UInt64?)
        /// `# 40ms`, with what went wrong where no answer came.
        case elapsed(UInt64, failure: String?)
        case comment(String)
        case octets([UInt8])
        case empty
    }

    /// What is wrong with a line, and the column, from 1, at which it is.
    struct Fault: Error {
        var column: Int
        var detail: String
        /// The line ends inside an octet.
        var isHalf = false
    }

    /// The longest comment that is kept whole, in octets.
    private static let commentLimit = 4_096

    /// The octets of an extended command or answer at most: header, Lc, 65,535 octets, Le.
    private static let octetLimit = 7 + 65_535 + 2

    /// Takes one line apart, without its end.
    static func line(_ units: ArraySlice<UInt8>) throws(Fault) -> Line {
        let text = trimmed(units)
        guard let first = text.first else { return .empty }
        let column = text.startIndex - units.startIndex + 1
        if first == 0x23 { return try comment(text, column: column) }
        return .octets(try octets(text, column: column))
    }

    private static func comment(_ units: ArraySlice<UInt8>, column: Int) throws(Fault) -> Line {
        let words = trimmed(units.dropFirst())
        let more = words.count > commentLimit ? " [and \(grouped(UInt64(words.count - commentLimit))) bytes more]" : ""
        let text = String(decoding: words.prefix(commentLimit), as: UTF8.self) + more
        if text.isEmpty { return .empty }
        if text == "Sent" { return .sent }
        if text == "Received" { return .received(nil) }
        if let rest = text.after("Received in ") {
            guard let time = duration(rest) else { return .comment(text) }
            return .received(time)
        }
        if let rest = text.after("Generated on ") { return .generated(rest.before(" by apdu4j") ?? rest) }
        if let rest = text.after("Using ") { return .reader(rest) }
        if let rest = text.after("PROTOCOL:") { return .protocolName(rest.trimmingSpaces) }
        for (mark, make) in [("ATR:", Line.atr), ("UID:", Line.identifier)] where text.hasPrefix(mark) {
            let value = words.dropFirst(mark.utf8.count)
            let octets = try octets(trimmed(value), column: column + trimmed(value).startIndex - units.startIndex)
            guard !octets.isEmpty else { return .comment(text) }
            return make(octets)
        }
        let pieces = text.split(separator: " ", maxSplits: 1).map(String.init)
        if let time = duration(pieces[0]) { return .elapsed(time, failure: pieces.count == 2 ? pieces[1] : nil) }
        return .comment(text)
    }

    private static func octets(_ units: ArraySlice<UInt8>, column: Int) throws(Fault) -> [UInt8] {
        guard units.count <= octetLimit * 3 else {
            throw Fault(column: column, detail: "\(grouped(UInt64(units.count))) characters are no APDU")
        }
        do throws(HexError) {
            return try Hex.decode(String(decoding: units, as: UTF8.self))
        } catch {
            switch error.code {
            case .notADigit: throw Fault(column: column + error.offset, detail: "not a hexadecimal digit")
            case .halfAnOctet:
                throw Fault(
                    column: column + max(error.offset - 1, 0), detail: "an odd number of hexadecimal digits", isHalf: true)
            }
        }
    }

    /// Nanoseconds of `40ms`, `1s5ms`: seconds, then the milliseconds past them.
    static func duration(_ text: String) -> UInt64? {
        guard let number = text.before("ms"), text.hasSuffix("ms"), number.utf8.count + 2 == text.utf8.count else { return nil }
        let parts = number.split(separator: "s", omittingEmptySubsequences: false)
        guard parts.count <= 2, parts.allSatisfy({ !$0.isEmpty && $0.utf8.count <= 9 && $0.utf8.allSatisfy(isDigit) }) else {
            return nil
        }
        let numbers = parts.compactMap { UInt64($0) }
        guard numbers.count == parts.count, let last = numbers.last else { return nil }
        return ((numbers.count == 2 ? numbers[0] * 1_000 : 0) + last) * 1_000_000
    }

    /// Nanoseconds since 1970-01-01 00:00 UTC of `Sun, 25 Jan 2015 19:11:03 +0200` (RFC 5322 3.3); nil for another form.
    static func date(_ text: String) -> UInt64? {
        let words = text.split(separator: " ")
        guard words.count == 6, let day = number(words[1], 1...31), let year = number(words[3], 1970...2261),
            let month = months.firstIndex(of: String(words[2]))
        else { return nil }
        let clock = words[4].split(separator: ":", omittingEmptySubsequences: false)
        guard clock.count == 3, let hour = number(clock[0], 0...23), let minute = number(clock[1], 0...59),
            let second = number(clock[2], 0...60)
        else { return nil }
        let zone = words[5]
        guard zone.utf8.count == 5, let sign = zone.first, sign == "+" || sign == "-",
            let hours = number(zone.dropFirst().prefix(2), 0...23), let minutes = number(zone.suffix(2), 0...59)
        else { return nil }
        let offset = (hours * 60 + minutes) * (sign == "-" ? -60 : 60)
        let seconds = daysSince1970(year, month + 1, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset
        return seconds < 0 ? nil : UInt64(seconds) * 1_000_000_000
    }

    /// Days of the Gregorian calendar, counted in years that begin with March.
    private static func daysSince1970(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let shifted = month > 2 ? year : year - 1
        let monthOfYear = (month + 9) % 12
        return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + (monthOfYear * 153 + 2) / 5 + day - 1 - 719_468
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func number(_ text: Substring, _ range: ClosedRange<Int>) -> Int? {
        guard text.utf8.count <= 4, text.utf8.allSatisfy(isDigit), let value = Int(text), range.contains(value) else {
            return nil
        }
        return value
    }

    private static func isDigit(_ unit: UInt8) -> Bool { (0x30...0x39).contains(unit) }

    private static func trimmed(_ units: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var units = units
        while let first = units.first, first == 0x20 || first == 0x09 { units.removeFirst() }
        while let last = units.last, last == 0x20 || last == 0x09 || last == 0x0D { units.removeLast() }
        return units
    }
}

extension String {
    fileprivate func after(_ start: String) -> String? { hasPrefix(start) ? String(dropFirst(start.count)) : nil }

    /// What stands before the first `mark`.
    fileprivate func before(_ mark: String) -> String? {
        let wanted = Array(mark.utf8)
        let units = Array(utf8)
        guard units.count >= wanted.count else { return nil }
        for place in 0...units.count - wanted.count where units[place..<place + wanted.count].elementsEqual(wanted) {
            return String(decoding: units[..<place], as: UTF8.self)
        }
        return nil
    }

    fileprivate var trimmingSpaces: String {
        String(drop { $0 == " " || $0 == "\t" })
    }
}
