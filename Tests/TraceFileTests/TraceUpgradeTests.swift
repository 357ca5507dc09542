// SPDX-License-Identifier: MIT

import Foundation
import Testing

@testable import TraceFile

/// Old traces, and those of versions to come.
@Suite struct TraceUpgradeTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Traces/format")

    @Test(arguments: 1...TraceUpgrade.current) func aSampleOfEveryFormatIsKeptAndReadAsTheCurrentOne(_ format: Int) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).filter {
            $0.hasPrefix("format-\(format)-") && $0.hasSuffix(".pcapng")
        }
        let name = try #require(names.first, "no sample of format \(format) in Traces/format")
        let trace = try Trace.load(path: Self.folder.appendingPathComponent(name).path)
        #expect(trace.header.format == TraceUpgrade.current)
        #expect(trace.damage == nil)
        #expect(trace.rows.count > 40)
    }

    private func trace(_ format: Int?) -> Trace { Trace(header: TraceHeader(format: format, session: nil)) }

    @Test func stepsAreTakenOneAfterTheOtherFromTheTracesOwnFormat() {
        let upgrade = TraceUpgrade(
            current: 4,
            steps: [
                1: { $0.header.application += "a" }, 2: { $0.header.application += "b" }, 3: { $0.header.application += "c" },
            ])
        for (format, text) in [(1, "abc"), (2, "bc"), (3, "c"), (4, "")] {
            var trace = trace(format)
            #expect(upgrade.apply(to: &trace) == Array(format..<4))
            #expect(trace.header.application == text)
            #expect(trace.header.format == 4)
        }
    }

    @Test func acaptureOfAnotherProgramAndALaterFormatStayAsTheyAre() {
        let upgrade = TraceUpgrade(current: 2, steps: [1: { $0.header.application = "changed" }])
        for format in [nil, 0, 3, .max, .min] as [Int?] {
            var trace = trace(format)
            #expect(upgrade.apply(to: &trace).isEmpty)
            #expect(trace.header.format == format)
            #expect(trace.header.application == "")
        }
        #expect(upgrade.isLater(trace(3)))
        #expect(!upgrade.isLater(trace(2)) && !upgrade.isLater(trace(nil)))
    }
}
