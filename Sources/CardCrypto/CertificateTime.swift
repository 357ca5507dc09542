// SPDX-License-Identifier: MIT

import Octets

/// A moment in a certificate or signature: UTCTime or GeneralizedTime (X.690 11.7, 11.8).
public struct CertificateTime: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Seconds since 1970-01-01 00:00 UTC.
    public let seconds: Int64

    public init(seconds: Int64) { self.seconds = seconds }

    public init(nanoseconds: Int64) { self.init(seconds: nanoseconds / 1_000_000_000) }

    public init(_ object: DataObject) throws(DataObjectError) {
        let yearDigits: Int
        switch object.tag {
        case 0x17: yearDigits = 2
        case 0x18: yearDigits = 4
        default: throw object.fault(.tag, "tag \(DataObject.hex(object.tag)) where a time was expected")
        }
        guard let time = Self.parse(Array(object.value), yearDigits: yearDigits) else {
            throw object.fault(.value, "a time that is in no calendar")
        }
        self = time
    }

    /// The time of `YYYYMMDDHHMMSSZ` or, with two digits for the year, `YYMMDDHHMMSSZ`.
    ///
    /// - Throws: ``CryptoError`` with the code `encoding`.
    public init(_ text: String) throws(CryptoError) {
        let octets = Array(text.utf8)
        guard let time = Self.parse(octets, yearDigits: octets.count >= 15 ? 4 : 2) else {
            throw CryptoError(code: .encoding, detail: "'\(text)' is no time")
        }
        self = time
    }

    /// UTCTime until 2049, GeneralizedTime after (RFC 5280 4.1.2.5).
    public var der: [UInt8] {
        let day = CalendarDay(seconds: seconds)
        var rest = seconds % 86_400
        if rest < 0 { rest += 86_400 }
        let parts = [day.month, day.day, Int(rest / 3_600), Int(rest / 60 % 60), Int(rest % 60)]
        let tail = parts.map(Self.twoDigits).joined() + "Z"
        let short = Self.twoDigits(day.year % 100) + tail
        if (1_950...2_049).contains(day.year) { return TLV.encode(0x17, Array(short.utf8)) }
        return TLV.encode(0x18, Array((Self.twoDigits(day.year / 100) + short).utf8))
    }

    public var day: CalendarDay { CalendarDay(seconds: seconds) }

    public static func < (left: Self, right: Self) -> Bool { left.seconds < right.seconds }

    /// The day, `2026-11-30`.
    public var description: String { day.description }

    private static func parse(_ octets: [UInt8], yearDigits: Int) -> CertificateTime? {
        var index = 0
        func number(_ digits: Int) -> Int? {
            guard index + digits <= octets.count else { return nil }
            let part = octets[index..<index + digits]
            guard part.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            index += digits
            return part.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }
        guard var year = number(yearDigits), let month = number(2), let day = number(2), let hour = number(2),
            let minute = number(2)
        else { return nil }
        if yearDigits == 2 { year += year < 50 ? 2_000 : 1_900 }
        let second = number(2) ?? 0
        // A fraction of a second, which DER forbids in certificates but signing times have.
        if index < octets.count, octets[index] == 0x2E {
            index += 1
            while index < octets.count, (0x30...0x39).contains(octets[index]) { index += 1 }
        }
        var offset = 0
        guard index < octets.count else { return nil }
        let zone = octets[index]
        index += 1
        switch zone {
        case 0x5A: break
        case 0x2B, 0x2D:
            guard let hours = number(2), let minutes = number(2), hours < 24, minutes < 60 else { return nil }
            offset = (hours * 60 + minutes) * (zone == 0x2B ? 60 : -60)
        default: return nil
        }
        guard index == octets.count, hour < 24, minute < 60, second <= 60,
            let date = CalendarDay(year: year, month: month, day: day)
        else { return nil }
        let seconds = date.daysSince1970 * 86_400 + hour * 3_600 + minute * 60 + second - offset
        return CertificateTime(seconds: Int64(seconds))
    }

    private static func twoDigits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
