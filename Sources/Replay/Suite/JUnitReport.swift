// SPDX-License-Identifier: MIT

/// The results of a suite in the XML that build servers read: a suite a folder, a case a trace.
///
/// Attributes and their order are those of the schema of Ant's JUnit task, which servers agree on.
public struct JUnitReport: Sendable {
    /// For a case that is not fine: what is shown of it.
    public typealias Text = @Sendable (ReplaySuite.Result) -> String

    private let results: [ReplaySuite.Result]
    private let timestamp: String
    private let hostname: String

    /// - Parameters:
    ///   - timestamp: when the suite began, `2026-11-30T07:31:15`.
    ///   - hostname: whatever the server is to show; nothing that names a person's machine without need.
    public init(_ results: [ReplaySuite.Result], timestamp: String, hostname: String = "localhost") {
        self.results = results
        self.timestamp = timestamp
        self.hostname = hostname
    }

    public func xml(_ text: Text) -> String {
        var lines = [#"<?xml version="1.0" encoding="UTF-8"?>"#]
        lines.append("<testsuites\(attributes("tapdeck replay", results))>")
        var suites: [(name: String, results: [ReplaySuite.Result])] = []
        for result in results {
            let name = result.item.suite.isEmpty ? "traces" : result.item.suite
            if let index = suites.firstIndex(where: { $0.name == name }) {
                suites[index].results.append(result)
            } else {
                suites.append((name, [result]))
            }
        }
        for (number, suite) in suites.enumerated() {
            let place =
                " id=\"\(number)\" package=\"tapdeck\" timestamp=\"\(escaped(timestamp))\" hostname=\"\(escaped(hostname))\""
            lines.append("  <testsuite\(attributes(suite.name, suite.results))\(place)>")
            lines.append("    <properties/>")
            for result in suite.results { lines += self.lines(of: result, suite.name, text) }
            lines += ["    <system-out/>", "    <system-err/>", "  </testsuite>"]
        }
        lines.append("</testsuites>")
        return lines.joined(separator: "\n") + "\n"
    }

    private func attributes(_ name: String, _ results: [ReplaySuite.Result]) -> String {
        let failures = results.count { $0.outcome == .differs || $0.outcome == .passesNow }
        let errors = results.count { $0.outcome == .blocked || $0.outcome == .unreadable }
        let skipped = results.count { $0.outcome == .skipped }
        let seconds = results.reduce(0) { $0 + ($1.report?.seconds ?? 0) }
        return
            " name=\"\(escaped(name))\" tests=\"\(results.count)\" failures=\"\(failures)\" errors=\"\(errors)\" skipped=\"\(skipped)\" time=\"\(time(seconds))\""
    }

    private func lines(of result: ReplaySuite.Result, _ suite: String, _ text: Text) -> [String] {
        let head =
            "    <testcase name=\"\(escaped(result.item.name))\" classname=\"\(escaped(suite))\" time=\"\(time(result.report?.seconds ?? 0))\""
        func inside(_ element: String, _ type: String, _ message: String) -> [String] {
            [
                "\(head)>",
                "      <\(element) type=\"\(type)\" message=\"\(escaped(message))\">\(escaped(text(result)))</\(element)>",
                "    </testcase>",
            ]
        }
        switch result.outcome {
        case .same, .failsAsExpected: return ["\(head)/>"]
        case .differs:
            guard case .differs(let divergence)? = result.report?.verdict else { return ["\(head)/>"] }
            return inside("failure", "differs", divergence.description)
        case .passesNow: return inside("failure", "passesNow", "passes now: take its line out of suite.txt")
        case .blocked:
            guard case .blocked(let blocked)? = result.report?.verdict else { return ["\(head)/>"] }
            return inside("error", "blocked", blocked.text)
        case .unreadable: return inside("error", "unreadable", result.problem.first ?? "unreadable")
        case .skipped:
            let reason = if case .skip(let reason)? = result.item.expectation { reason } else { "" }
            return ["\(head)>", "      <skipped message=\"\(escaped(reason))\"/>", "    </testcase>"]
        }
    }

    /// Seconds with three digits, whatever the language of the machine.
    private func time(_ seconds: Double) -> String {
        let milliseconds = UInt64(max(0, min(seconds, 1e9)) * 1000)
        let rest = String(milliseconds % 1000)
        return "\(milliseconds / 1000).\(String(repeating: "0", count: 3 - rest.count))\(rest)"
    }

    /// XML 1.0 2.2 and 2.4: five characters have names, and most control characters may not stand at all.
    private func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&apos;"
            case "\n", "\t", "\r": result.unicodeScalars.append(scalar)
            case _ where scalar.value < 0x20 || scalar.value == 0xFFFE || scalar.value == 0xFFFF: result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
