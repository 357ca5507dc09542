// SPDX-License-Identifier: MIT

import Foundation
import GrammarLanguage
import GrammarLibrary
import GrammarRuntime
import TestSupport
import Testing
import TraceFile

/// The laws of the grammars, from what was recorded.
@Suite struct TraceLaws {
    @Test func framesOfTheKeptTracesAndChangesOfThemKeepTheLaws() throws {
        let program = GrammarLibrary.standard.program
        let command = try #require(program.entry(named: "iso7816.Command"))
        let response = try #require(program.entry(named: "iso7816.Response"))
        var frames: [(octets: [UInt8], entry: Int, isRequest: Bool)] = []
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Traces")
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() where name.hasSuffix(".pcapng") {
            var reader = try TraceReader(path: folder.appendingPathComponent(name).path)
            while let item = reader.next() {
                guard case .row(let row) = item, row.dissector == "iso7816", row.body.first != 0x3B else { continue }
                let isRequest = row.direction != .received
                frames.append((row.body, isRequest ? command : response, isRequest))
            }
        }
        try #require(frames.count > 50)
        let breach = GrammarLaws(program, frames: frames).firstBreach(among: 20_000, seed: 7)
        #expect(breach == nil)
    }
}
