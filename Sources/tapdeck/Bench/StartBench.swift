// SPDX-License-Identifier: MIT

import Foundation

/// How long the tool takes to begin, as a whole process.
enum StartBench {
    private static let runs = 50

    static func run(_ report: BenchReport) throws {
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let folder = NSTemporaryDirectory() + "tapdeck-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let demo = "\(folder)/demo.pcapng"
        let recorded = try ChildRun(
            own,
            [
                "record", "--quiet", "-o", demo, "--card", "virtual:passport", "passport", "--mrz-key",
                "L898902C<369080619406236", "--dg", "com,sod,dg1",
            ])
        guard recorded.status == 0 else { throw Failure(.outside, "the bench's trace could not be recorded") }
        report.figure("start-version", try median(own, ["--version"]), "ms")
        let hasPeer = ChildRun.isInstalled("tshark")
        report.figure(
            "start-show", try median(own, ["show", demo]), "ms", peer: hasPeer ? "tshark" : nil,
            peerValue: hasPeer ? try median("tshark", ["-n", "-r", demo], runs: 5) : nil)
    }

    /// The median time of a whole run, in milliseconds.
    private static func median(_ program: String, _ arguments: [String], runs: Int = runs) throws -> Double {
        var times: [Double] = []
        for _ in 0..<runs {
            let run = try ChildRun(program, arguments)
            guard run.status == 0 else { throw Failure(.outside, "\(program) ended with another status than 0") }
            times.append(run.seconds * 1000)
        }
        return times.sorted()[times.count / 2]
    }
}
