// SPDX-License-Identifier: MIT

import Flows
import Foundation
import Replay
import TagTransport
import TraceFile
import Tracing
import VirtualCards

/// What a replay costs: a session of Basic Access Control with EF.COM, EF.SOD and DG1 in bytes, and an exchange in sessions of
/// different lengths, where the shape of the curve is the result.
enum ReplayBench {
    private static let sizes = [10, 100, 1_000, 10_000, 100_000]
    private static let runs = 200

    static func run(_ report: BenchReport) async throws {
        let folder = NSTemporaryDirectory() + "tapdeck-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        report.figure("replay", try await passport(folder), "ms")
        for size in sizes { report.figure("replay-exchange-\(size)", try await exchange(size, folder), "us") }
    }

    /// The median time of a whole replay, comparison included, the trace in memory.
    private static func passport(_ folder: String) async throws -> Double {
        let arguments =
            #"{"dataGroups":["com","sod","dg1"],"mrzKey":"L898902C<369080619406236","performActiveAuth":false,"trustAnchors":[]}"#
        guard let flow = FlowTable.named("passport") else { throw Failure(.outside, "there is no passport flow") }
        let recording = try Recording(to: "\(folder)/passport.pcapng", secrets: .embedded)
        _ = try await recording.run(
            flow: flow, argumentsJSON: arguments, over: VirtualCardTransport(try VirtualCardCatalog.make(kind: "passport")))
        try recording.close()
        let trace = try Trace.load(path: "\(folder)/passport.pcapng")
        let replay = Replay(of: trace, secrets: SecretStore(trace.secrets))
        var times: [Double] = []
        for _ in 0..<runs {
            let start = ContinuousClock.now
            guard await replay.run().isSame else { throw Failure(.notSo, "the bench's session does not replay") }
            times.append((ContinuousClock.now - start).microseconds / 1000)
        }
        return times.sorted()[times.count / 2]
    }

    /// The mean time of an exchange, the reading of the session and the comparison shared among all.
    private static func exchange(_ count: Int, _ folder: String) async throws -> Double {
        let path = "\(folder)/\(count).pcapng"
        let select = CommandAPDU(cla: 0x00, ins: 0xA4, p1: 0x00, p2: 0x0C, data: Data([0x3F, 0x00]))
        @Sendable func session(_ transport: any NFCTagTransport) async throws {
            for _ in 0..<count { _ = try await transport.sendAPDU(select) }
        }
        let recording = try Recording(to: path, secrets: .embedded)
        let card = recording.wrap(VirtualCardTransport(try VirtualCardCatalog.make(kind: "filesystem")))
        try await recording.run { try await session(card) }
        try recording.close()
        let trace = try Trace.load(path: path)
        // Short sessions are run more often.
        let repeats = max(1, 10_000 / count)
        let start = ContinuousClock.now
        for _ in 0..<repeats { try await Replay(of: trace, secrets: SecretStore(trace.secrets)).run { try await session($0) } }
        return (ContinuousClock.now - start).microseconds / Double(repeats * count)
    }
}
