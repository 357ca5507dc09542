// SPDX-License-Identifier: MIT

import Foundation
import TestSupport
import Testing
import TraceFile

@testable import Replay

/// The recordings of `Traces/`, which are samples of the format as well.
@Suite struct KeptTracesTests {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Traces")

    static let names: [String] = {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return files.filter { $0.hasSuffix(".pcapng") }.sorted()
    }()

    @Test func eachIsListedWithWhatItShows() throws {
        let page = try String(contentsOf: Self.folder.appendingPathComponent("README.md"), encoding: .utf8)
        #expect(Self.names.count >= 5)
        for name in Self.names { #expect(page.contains("| `\(name)` |"), "\(name) is not in Traces/README.md") }
    }

    @Test(arguments: names.filter { $0 != "killed-recorder.pcapng" }) func eachReplaysToTheSame(_ name: String) async throws {
        let replay = try Replay(of: Self.folder.appendingPathComponent(name).path)
        let report = await replay.run()
        #expect(report.isSame, "\(name): \(report.verdict)")
        #expect(report.notCompared == 0)
    }

    @Test func aKilledRecordersTraceIsTheSameAsFarAsItGoes() async throws {
        let path = Self.folder.appendingPathComponent("killed-recorder.pcapng").path
        let trace = try Trace.load(path: path)
        #expect(trace.damage?.kind == .cutShort)
        let report = await Replay(of: trace, secrets: SecretStore(trace.secrets)).run()
        #expect(report.isSame)
        #expect(report.endsEarly)
        #expect(report.exchanges == 3)
    }
}
