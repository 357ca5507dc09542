// SPDX-License-Identifier: MIT

import Foundation
import TestSupport
import Testing
import TraceFile

/// Show 6: a recorder that is killed leaves everything but the record that it was writing.
@Suite(.serialized) struct CrashSafetyTests {
    static let tshark = ["/usr/bin/tshark", "/usr/local/bin/tshark"].first { FileManager.default.isExecutableFile(atPath: $0) }

    /// A recorder in mid-session, killed once its trace has grown to `size` octets.
    private func killed(at size: Int, in folder: TemporaryFolder) async throws {
        let script = (0..<20_000).map { $0 % 50 == 49 ? "002000010431323334" : "00B0810010" }.joined(separator: "\n")
        try folder.write("00A40000023F00\n" + script, "script.txt")
        let child = try ChildProcess(
            Binary.path, ["record", "-o", "a.pcapng", "--quiet", "--card", "virtual:filesystem", "apdu", "script.txt"],
            environment: Binary.environment(folder), directory: folder.path)
        child.closeInput()
        let deadline = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < deadline, child.poll() == nil {
            let length = (try? FileManager.default.attributesOfItem(atPath: folder("a.pcapng"))[.size] as? Int) ?? 0
            if length >= size { break }
            usleep(500)
        }
        child.signal(SIGKILL)
        #expect(child.waitForEnd(timeout: .seconds(10)) == .signal(SIGKILL))
    }

    @Test func aKilledRecorderLeavesEveryRowBeforeTheCut() async throws {
        var generator = SeededGenerator(seed: 6)
        var rows = Set<Int>()
        for _ in 0..<20 {
            let folder = try TemporaryFolder()
            // From before the first exchange to some 1,500 of them.
            try await killed(at: Int.random(in: 400...300_000, using: &generator), in: folder)
            let trace = try Trace.load(path: folder("a.pcapng"))
            #expect(trace.damage == nil || trace.damage?.kind == .cutShort)
            rows.insert(trace.rows.count)

            let shown = try await Binary.run("show", "a.pcapng", "--json", in: folder)
            #expect(shown.end == .status(0), "\(shown.errorText)")
            #expect(shown.outputText.split(separator: "\n").count == trace.rows.count)
            let summary = try await Binary.run("show", "a.pcapng", "--all", in: folder)
            #expect(summary.end == .status(0))

            // What is sealed was on disk before the row that it was sealed in.
            let secrets = try SecretStore.load(forTrace: folder("a.pcapng")).store
            for row in trace.rows where !row.comments.isEmpty {
                let records = secrets.sealed(packetID: row.packetID ?? 0, interface: row.interface, direction: .sent)
                #expect(records.map(\.octets) == [Array("1234".utf8)])
            }
            if let tshark = Self.tshark {
                let listed = try await ProcessRunner.run(
                    tshark, ["-r", folder("a.pcapng"), "-T", "fields", "-e", "frame.number"])
                #expect(listed.outputText.split(separator: "\n").count == trace.rows.count)
            }
        }
        #expect(rows.count > 10)
    }

    @Test func aTraceThatIsCutInItsLastRecordIsShownWithStatusZero() async throws {
        let folder = try TemporaryFolder()
        #expect(try await Binary.recordPassport(in: folder).end == .status(0))
        let octets = try folder.octets("demo.pcapng")
        let whole = try Trace.load(path: folder("demo.pcapng")).rows.count
        for missing in [1, 4, 30] {
            try folder.write(Array(octets.dropLast(missing)), "cut.pcapng")
            let shown = try await Binary.run("show", "cut.pcapng", "--json", in: folder)
            #expect(shown.end == .status(0))
            #expect(shown.outputText.split(separator: "\n").count == whole - 1)
            #expect(shown.errorText.hasPrefix("tapdeck: cut.pcapng is cut short in block "))
        }
    }

    /// A limit on the size of files does to a process what a full disk does.
    @Test func aDiskThatFillsUpEndsTheTraceAndNotTheFlow() async throws {
        let folder = try TemporaryFolder()
        try folder.write((0..<400).map { _ in "00B0810010" }.joined(separator: "\n"), "script.txt")
        let words = "tapdeck record -o a.pcapng --quiet --card virtual:filesystem apdu script.txt"
        let outcome = try await ProcessRunner.run(
            "/bin/bash", ["-c", "trap '' XFSZ; ulimit -f 16; PATH=$(dirname \"$0\"):$PATH \(words)", Binary.path],
            environment: Binary.environment(folder), directory: folder.path)
        #expect(outcome.end == .status(3), "\(outcome.errorText)")
        // The flow has gone through to its end: 400 answers are printed.
        #expect(outcome.outputText.split(separator: "\n").count == 400)
        #expect(outcome.errorText.contains("rows are on disk and readable"))
        let trace = try Trace.load(path: folder("a.pcapng"))
        #expect(trace.damage == nil)
        #expect(trace.rows.count > 50)
    }
}
