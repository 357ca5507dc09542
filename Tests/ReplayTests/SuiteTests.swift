// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Foundation
import SessionSupport
import TestSupport
import Testing
import TraceFile

@testable import Replay

/// Folders of traces with their expectations, and the mistakes that they find.
@Suite struct SuiteTests {
    private func folder(_ files: [String: String]) throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        for (name, text) in files {
            let path = folder(name)
            try FileManager.default.createDirectory(
                atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
            try text.write(toFile: path, atomically: true, encoding: .utf8)
        }
        return folder
    }

    private func path(_ folder: TemporaryFolder) -> String { (folder("x") as NSString).deletingLastPathComponent }

    // MARK: - What is in a suite

    @Test func aFolderIsItsTracesAndThoseBelowItInOrderOfName() throws {
        let folder = try folder([
            "b.pcapng": "", "a.pcapng.gz": "", "a.secrets": "", "README.md": "", "below/c.pcapng": "", ".hidden/d.pcapng": "",
        ])
        let suite = try ReplaySuite([path(folder)])
        #expect(suite.items.map(\.name) == ["a.pcapng.gz", "b.pcapng", "below/c.pcapng"])
    }

    @Test func aListOfExceptionsIsRead() throws {
        let folder = try folder([
            "a.pcapng": "", "b.pcapng": "", "below/c.pcapng": "", "below/suite.txt": "skip c.pcapng needs a key\n",
            "suite.txt": "# exceptions\n\nfails a.pcapng example#457, not mended\nmode b.pcapng resealed\n",
        ])
        let items = try ReplaySuite([path(folder)]).items
        #expect(items[0].expectation == .fails("example#457, not mended"))
        #expect(items[1].mode == .resealed)
        #expect(items[2].expectation == .skip("needs a key"))
    }

    @Test(arguments: [
        ("fails b.pcapng why", ReplaySuiteError.Code.stale), ("fails a.pcapng", .notUnderstood),
        ("mode a.pcapng other", .notUnderstood),
        ("xfail a.pcapng why", .notUnderstood),
    ]) func aLineThatIsStaleOrNotUnderstoodIsAnError(_ line: String, _ code: ReplaySuiteError.Code) throws {
        let folder = try folder(["a.pcapng": "", "suite.txt": "\n\(line)\n"])
        let error = #expect(throws: ReplaySuiteError.self) { try ReplaySuite([path(folder)]) }
        #expect(error?.code == code)
        #expect(error?.detail.contains("suite.txt:2:") == true)
    }

    @Test func aFolderWithoutTracesIsRefused() throws {
        let folder = try folder(["README.md": ""])
        #expect(throws: ReplaySuiteError(.empty, "")) { try ReplaySuite([path(folder)]) }
    }

    @Test func shardsPartTheSuiteByNamesAlone() throws {
        let names = (0..<100).map { "trace-\($0).pcapng" }
        let folder = try folder(Dictionary(uniqueKeysWithValues: names.map { ($0, "") }))
        var seen: [String] = []
        for shard in 1...4 {
            var suite = try ReplaySuite([path(folder)])
            suite.keep(shard: shard, of: 4)
            #expect((10...45).contains(suite.items.count))
            seen += suite.items.map(\.name)
        }
        #expect(seen.sorted() == names.sorted())
        // Machines agree: SHA-256 of "passport-bac.pcapng" by sha256sum begins with the octets that these come from.
        #expect(ReplaySuite.shard(of: "passport-bac.pcapng", 1_000_000) == Self.pinnedShard)
    }

    /// `printf passport-bac.pcapng | sha256sum`: the first sixteen digits modulo a million, plus one.
    private static let pinnedShard = 708052

    // MARK: - Running

    private func kept(_ names: [String]) throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        for name in names {
            try FileManager.default.copyItem(
                atPath: KeptTracesTests.folder.appendingPathComponent(name).path, toPath: folder(name))
        }
        return folder
    }

    @Test func theTraceOfABugIsATestThatTurnsWhenTheBugIsMended() async throws {
        let folder = try kept(["passport-bac.pcapng", "wrong-pin.pcapng"])
        try "fails passport-bac.pcapng Le is 00, example#12\n".write(
            toFile: folder("suite.txt"), atomically: true, encoding: .utf8)
        let suite = try ReplaySuite([path(folder)])
        let withBug = await DeliberateMistake.$made.withValue(.otherLe) { await suite.run() }
        #expect(withBug.map(\.outcome) == [.failsAsExpected, .same])
        #expect(withBug.allSatisfy { $0.isFine })
        let mended = await suite.run()
        #expect(mended.map(\.outcome) == [.passesNow, .same])
        #expect(!mended[0].isFine)
        try FileManager.default.removeItem(atPath: folder("suite.txt"))
        #expect(await (try ReplaySuite([path(folder)])).run().map(\.outcome) == [.same, .same])
    }

    @Test func oneThatCannotBeReadOrTriedHidesNoOther() async throws {
        let folder = try kept(["wrong-pin.pcapng", "passport-bac.pcapng"])
        try "no capture".write(toFile: folder("a.pcapng"), atomically: true, encoding: .utf8)
        try "skip passport-bac.pcapng not now\n".write(toFile: folder("suite.txt"), atomically: true, encoding: .utf8)
        let suite = try ReplaySuite([path(folder)])
        for jobs in [1, 3] {
            #expect(await suite.run(jobs: jobs).map(\.outcome) == [.unreadable, .skipped, .same])
        }
        #expect(await suite.run(stopsAtFirst: true).map(\.outcome) == [.unreadable])
    }

    @Test func theReportForBuildServersHoldsEveryKind() async throws {
        let folder = try kept(["wrong-pin.pcapng", "passport-bac.pcapng"])
        try "no capture & <none>".write(toFile: folder("a.pcapng"), atomically: true, encoding: .utf8)
        let suite = try ReplaySuite([path(folder)])
        let results = await DeliberateMistake.$made.withValue(.otherLe) { await suite.run() }
        let xml = JUnitReport(results, timestamp: "2026-11-30T07:31:15").xml { _ in "1 < 2 & \u{0} \"quoted\"" }
        #expect(xml.contains("tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"0\""))
        #expect(xml.contains("1 &lt; 2 &amp; \u{FFFD} &quot;quoted&quot;"))
        #expect(xml.contains("<failure type=\"differs\" message=\"differs at exchange 8: EXTERNAL AUTHENTICATE, BAC"))
    }

    // MARK: - Mistakes in the library

    struct Found: Sendable, CustomTestStringConvertible {
        var mistake: DeliberateMistake
        var trace: String
        /// The field, or the kind of divergence, that names it.
        var path: String
        var testDescription: String { "\(mistake) in \(trace)" }
    }

    static let mistakes = [
        Found(mistake: .counterOffByOne, trace: "passport-bac.pcapng", path: "iso7816.command.data"),
        Found(mistake: .counterOffByOne, trace: "desfire-ev2.pcapng", path: "iso7816.command.data"),
        Found(mistake: .otherLe, trace: "passport-bac.pcapng", path: "iso7816.command.le"),
        Found(mistake: .fallbackSkipped, trace: "passport-pace-6300-then-bac.pcapng", path: "missing"),
        Found(mistake: .macNotChecked, trace: "passport-bac-wrong-mac.pcapng", path: "extra"),
    ]

    @Test(arguments: mistakes) func aMistakeInTheLibraryIsNamedAtItsField(_ found: Found) async throws {
        let folder = try kept([found.trace])
        let results = try await DeliberateMistake.$made.withValue(found.mistake) { try await ReplaySuite([path(folder)]).run() }
        let divergence = try #require(results.first?.report?.divergence, "\(results.first?.outcome as Any)")
        switch divergence.kind {
        case .command: #expect(divergence.field?.path.hasPrefix(found.path) == true, "\(divergence)")
        case .missing: #expect(found.path == "missing", "\(divergence)")
        case .extra, .again: #expect(found.path == "extra", "\(divergence)")
        case .result: #expect(found.path == "result", "\(divergence)")
        default: Issue.record("\(divergence)")
        }
    }

    @Test func everyMistakeIsFoundByTheSuiteOfThisProject() async throws {
        let suite = try ReplaySuite([KeptTracesTests.folder.path])
        #expect(await suite.run().allSatisfy { $0.isFine })
        for mistake in DeliberateMistake.allCases {
            let results = await DeliberateMistake.$made.withValue(mistake) { await suite.run() }
            #expect(results.contains { $0.outcome == .differs }, "\(mistake)")
        }
    }
}
