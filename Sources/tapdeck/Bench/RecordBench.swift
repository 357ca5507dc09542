// SPDX-License-Identifier: MIT

import Foundation
import TagTransport
import TraceFile
import Tracing
import VirtualCards

/// What recording adds to an exchange.
enum RecordBench {
    private static let exchanges = 100_000

    static func run(_ report: BenchReport) async throws {
        let select = CommandAPDU(cla: 0x00, ins: 0xA4, p1: 0x00, p2: 0x0C, data: Data([0x3F, 0x00]))
        let bare = try await microseconds(over: card(), select)
        let folder = NSTemporaryDirectory() + "tapdeck-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let recording = try Recording(to: "\(folder)/bench.pcapng")
        let recorded = try await microseconds(over: recording.wrap(card()), select)
        try recording.close()
        // No peer: what is added to an exchange and the exchange itself are not two ways to do one thing.
        report.figure("record", recorded - bare, "us")
        report.figure("bare-exchange", bare, "us")
    }

    private static func card() throws -> VirtualCardTransport {
        VirtualCardTransport(try VirtualCardCatalog.make(kind: "filesystem"))
    }

    /// The mean time of an exchange.
    private static func microseconds(over transport: any NFCTagTransport, _ command: CommandAPDU) async throws -> Double {
        for _ in 0..<1_000 { _ = try await transport.sendAPDU(command) }
        let start = ContinuousClock.now
        for _ in 0..<exchanges {
            let response = try await transport.sendAPDU(command)
            guard response.isSuccess else { throw Failure(.outside, "the bench's card answered \(response.statusWord)") }
        }
        return (ContinuousClock.now - start).microseconds / Double(exchanges)
    }
}
