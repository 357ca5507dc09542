// SPDX-License-Identifier: MIT

import Glibc

/// Times of day for people, always UTC.
enum UTC {
    /// `2026-11-30 07:41 UTC`.
    static func text(_ nanoseconds: UInt64) -> String {
        let time = broken(nanoseconds)
        return "\(date(time)) \(two(time.tm_hour)):\(two(time.tm_min)) UTC"
    }

    /// `2026-11-30-073115`, for file names.
    static func fileStamp(_ nanoseconds: UInt64) -> String {
        let time = broken(nanoseconds)
        return "\(date(time))-\(two(time.tm_hour))\(two(time.tm_min))\(two(time.tm_sec))"
    }

    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec)
    }

    private static func broken(_ nanoseconds: UInt64) -> tm {
        var seconds = time_t(clamping: nanoseconds / 1_000_000_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        return parts
    }

    private static func date(_ time: tm) -> String { "\(Int(time.tm_year) + 1900)-\(two(time.tm_mon + 1))-\(two(time.tm_mday))" }

    private static func two(_ number: Int32) -> String { padLeft("\(number)", 2).replacing(" ", with: "0") }
}
