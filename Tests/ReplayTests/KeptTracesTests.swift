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

    /// A suite takes in what lies below: the samples of every format.
    @Test func theWholeFolderIsASuiteThatIsTheSame() async throws {
        let suite = try ReplaySuite([Self.folder.path])
        #expect(suite.items.contains { $0.name == "format/format-1-passport-bac.pcapng" })
        for result in await suite.run(jobs: 2) { #expect(result.outcome == .same, "\(result.item.name)") }
    }

    @Test(arguments: names) func eachIsTheSameInAnyOrderToo(_ name: String) async throws {
        var options = ReplayOptions()
        (options.mode, options.order) = (.bytes, .loose)
        let report = await (try Replay(of: Self.folder.appendingPathComponent(name).path, options: options)).run()
        #expect(report.isSame, "\(name): \(report.verdict)")
        #expect(report.moved.isEmpty)
    }

    /// With other random bytes in the modes that take them; a mode that cannot be says why, and one at least can.
    @Test(arguments: names) func eachIsTheSameInEveryModeThatItAllows(_ name: String) async throws {
        var held: [ReplayMode] = []
        for mode in ReplayMode.allCases {
            var options = ReplayOptions()
            (options.mode, options.entropy) = (mode, mode == .bytes ? .recorded : .seed(11))
            let report = await (try Replay(of: Self.folder.appendingPathComponent(name).path, options: options)).run()
            switch report.verdict {
            case .same: held.append(mode)
            case .blocked(let blocked): #expect(!blocked.text.isEmpty)
            case .differs: Issue.record("\(name), \(mode): \(report.text)")
            }
        }
        #expect(held.contains(.bytes) && held.contains(.resealed), "\(held)")
    }

    /// Sessions without key agreement hold for any random bytes; the others say at which exchange they do not.
    @Test(arguments: names) func eachReplaysInFieldsOrSaysWhyNot(_ name: String) async throws {
        var options = ReplayOptions()
        options.mode = .fields
        let report = await (try Replay(of: Self.folder.appendingPathComponent(name).path, options: options)).run()
        let isPlain = ["filesystem-verify", "killed-recorder", "ntag424-sun", "removal-mid-read", "wrong-pin"].contains {
            name == "\($0).pcapng"
        }
        if isPlain {
            #expect(report.isSame, "\(report.verdict)")
        } else {
            guard case .blocked(let blocked) = report.verdict, case .boundAnswers = blocked.reason else {
                Issue.record("\(name): \(report.verdict)")
                return
            }
        }
    }

    @Test func aTraceOfALaterFormatIsNotReplayed() async throws {
        var trace = try Trace.load(path: Self.folder.appendingPathComponent("wrong-pin.pcapng").path)
        trace.header.format = 2
        guard case .blocked(let blocked) = await Replay(of: trace, secrets: SecretStore(trace.secrets)).run().verdict else {
            Issue.record("a trace of format 2 was replayed")
            return
        }
        #expect(blocked.reason == .laterFormat(2))
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
