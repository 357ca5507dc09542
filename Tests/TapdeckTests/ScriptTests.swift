// SPDX-License-Identifier: MIT

import Foundation
import TestSupport
import Testing

/// What people type and see, as files of commands and expected text in `Tests/Scripts`.
@Suite struct ScriptTests {
    static let scripts: [String] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: Script.folder)) ?? []
        return names.filter { $0.hasSuffix(".txt") }.sorted()
    }()

    @Test func thereAreScriptsToRun() { #expect(Self.scripts.count >= 5) }

    @Test(arguments: scripts) func whatIsTypedGivesWhatTheScriptSays(_ name: String) async throws {
        try await Script(name).run()
    }
}

/// One script: lines that begin with `$ ` are typed to a shell; what stands below them is standard output, lines that begin
/// with `2> ` standard error, and `? N` the exit status, 0 without it. `#` begins a comment.
///
/// Times, sizes, dates and drawn values are masked on both sides. Standard error is compared only where a script names some.
struct Script {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Scripts").path

    struct Step {
        var line: Int
        var command: String
        var output: [String] = []
        var errors: [String] = []
        var status: Int32 = 0
    }

    let name: String
    let steps: [Step]

    init(_ name: String) throws {
        self.name = name
        var steps: [Step] = []
        let text = try String(contentsOfFile: "\(Self.folder)/\(name)", encoding: .utf8)
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init).enumerated() {
            if line.hasPrefix("#") { continue }
            if line.hasPrefix("$ ") {
                steps.append(Step(line: index + 1, command: String(line.dropFirst(2))))
            } else if !steps.isEmpty {
                if line.hasPrefix("2> ") || line == "2>" {
                    steps[steps.count - 1].errors.append(String(line.dropFirst(3)))
                } else if line.hasPrefix("? "), let status = Int32(line.dropFirst(2)) {
                    steps[steps.count - 1].status = status
                } else {
                    steps[steps.count - 1].output.append(line)
                }
            }
        }
        self.steps = steps
    }

    func run() async throws {
        #expect(!steps.isEmpty, "\(name) types nothing")
        let folder = NSTemporaryDirectory() + "tapdeck-script-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try SpecimenTraces.write(for: name, to: folder)
        let path = "\(Self.binaries):\(ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")"
        for step in steps {
            let outcome = try await ProcessRunner.run(
                "/bin/sh", ["-c", step.command],
                environment: ["PATH": path, "PCSCLITE_CSOCK_NAME": "\(folder)/no-such-socket", "TRACES": Self.traces],
                directory: folder
            )
            let place = "\(name):\(step.line): \(step.command)"
            #expect(outcome.end == .status(step.status), "\(place): \(outcome.errorText)")
            Self.compare(step.output, outcome.outputText, place)
            if !step.errors.isEmpty { Self.compare(step.errors, outcome.errorText, "\(place), standard error") }
        }
    }

    private static func compare(_ expected: [String], _ actual: String, _ place: String) {
        var expected = expected.map(mask)
        while expected.last == "" { expected.removeLast() }
        var lines = actual.split(separator: "\n", omittingEmptySubsequences: false).map { mask(String($0)) }
        while lines.last == "" { lines.removeLast() }
        #expect(lines == expected, "\(place)\n\(difference(expected, lines))")
    }

    private static func difference(_ expected: [String], _ actual: [String]) -> String {
        (0..<max(expected.count, actual.count)).compactMap { index in
            let left = expected.indices.contains(index) ? expected[index] : nil
            let right = actual.indices.contains(index) ? actual[index] : nil
            if left == right { return nil }
            return "- \(left ?? "(nothing)")\n+ \(right ?? "(nothing)")"
        }.joined(separator: "\n")
    }

    /// Times, sizes, dates and identifiers as words, so that only what matters is compared.
    static func mask(_ line: String) -> String {
        var line = line
        for (pattern, replacement) in masks {
            line = line.replacingOccurrences(of: pattern, with: replacement, options: .regularExpression)
        }
        while line.hasSuffix(" ") { line.removeLast() }
        return line
    }

    private static let masks: [(String, String)] = [
        ("[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12}", "UUID"),
        ("\\d{4}-\\d\\d-\\d\\d[- ]\\d\\d:?\\d\\d(:?\\d\\d)?( UTC)?", "DATE"),
        // The columns of show: seconds, then milliseconds where there are any.
        ("^( *\\d+(?: +\\d+(?:-\\d+)?)?) +\\d+\\.\\d{6} +\\d+\\.\\d\\d(?= )", "$1 T.TTTTTT  M.MM"),
        ("^( *\\d+(?: +\\d+(?:-\\d+)?)?) +\\d+\\.\\d{6}(?= )", "$1 T.TTTTTT"),
        ("\"time\":\"\\d+\\.\\d{9}\"", "\"time\":\"T\""),
        // With what pads the column behind it.
        (" +\\d+(\\.\\d+)? (ms|s)\\b *", " TIME "),
        ("\\d+(\\.\\d+)? (kB|MB)\\b", "SIZE"),
        ("\\b[\\d,]+ bytes\\)", "SIZE)"),
        ("\"seconds\":[-0-9.e]+", "\"seconds\":S"),
        ("at byte [\\d,]+", "at byte N"),
        ("\\btapdeck 1.0, Linux \\w+", "tapdeck 1.0, Linux MACHINE"),
        // Counters and cryptograms come from drawn numbers.
        ("\\bSSC [0-9A-F]{16}", "SSC"),
        ("\\b[0-9A-F]{16}\\.\\.\\.", "HEX..."),
        ("\\S*/no-such-socket", "no-such-socket"),
    ]

    /// Where this build's programs are.
    private static let binaries = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().path
    private static let traces = URL(fileURLWithPath: folder).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Traces").path
}
