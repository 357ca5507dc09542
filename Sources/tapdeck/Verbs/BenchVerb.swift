// SPDX-License-Identifier: MIT

import CardSockets
import Foundation
import PCSC
import TagTransport
import TraceFile
import Tracing
import VirtualCards

/// `bench`: figures of this machine, each beside what it is compared with, from the same run.
enum BenchVerb: Verb {
    static let name = "bench"
    static let summary = "figures of this machine, each beside its peer"
    static let synopsis = ["bench [record] [--json]"]
    static let options: [OptionSpec] = []
    static let details = [
        "record: what recording adds to an exchange with the card in this process, the trace on disk;",
        "        pcscd-select, a SELECT through pcscd and the virtual reader, where they run, beside the bare link.",
    ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        let wanted = arguments.operands.isEmpty ? ["record"] : arguments.operands
        for name in wanted where name != "record" {
            throw Failure.usage(
                "unknown benchmark \(name)\(Nearest.suggestion(for: name, among: ["record"])); record is the one there is")
        }
        let report = BenchReport(isJSON: arguments.wantsJSON, terminal: terminal)
        try await RecordBench.run(report)
        try await LinkBench.run(report)
        return .fine
    }
}

/// One figure a line: its name, its value, and its peer's beside it.
struct BenchReport: Sendable {
    let isJSON: Bool
    let terminal: Terminal

    func figure(_ name: String, _ value: Double, _ unit: String, peer: String? = nil, peerValue: Double? = nil) {
        if isJSON {
            var members: [String: JSONValue] = ["name": .string(name), "value": .number(rounded(value)), "unit": .string(unit)]
            if let peer, let peerValue {
                members["peer"] = .string(peer)
                members["peerValue"] = .number(rounded(peerValue))
                members["ratio"] = .number(rounded(peerValue / value))
            }
            terminal.result(JSONValue.object(members).text)
        } else {
            let beside = peer.flatMap { peer in peerValue.map { "   \(peer) \(text($0)) \(unit)" } } ?? ""
            terminal.result("\(pad(name, 16)) \(padLeft(text(value), 9)) \(unit)\(beside)")
        }
    }

    private func rounded(_ value: Double) -> Double { (value * 1000).rounded() / 1000 }

    private func text(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        return "\(grouped(hundredths / 100)).\(padLeft("\(hundredths % 100)", 2).replacing(" ", with: "0"))"
    }
}

/// What recording adds to an exchange.
private enum RecordBench {
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

/// A SELECT through pcscd and our end of the virtual reader's link, and through the link alone.
private enum LinkBench {
    private static let exchanges = 5_000

    static func run(_ report: BenchReport) async throws {
        let link = try await bareLink()
        do {
            report.figure("pcscd-select", try await throughService(), "us", peer: "bare link", peerValue: link)
        } catch let error as TransportError {
            report.figure("link-select", link, "us")
            report.terminal.note("pcscd-select was not measured: \(error.detail.isEmpty ? error.case.rawValue : error.detail)")
        } catch let error as LinkError {
            report.figure("link-select", link, "us")
            report.terminal.note("pcscd-select was not measured: no virtual reader at 127.0.0.1:35963: \(error)")
        }
    }

    private static let select: [UInt8] = [0x00, 0xA4, 0x00, 0x0C, 0x02, 0x3F, 0x00]

    private static func bareLink() async throws -> Double {
        let slot = try LoopbackSlot()
        let link = VPCDLink(card: try VirtualCardCatalog.make(kind: "filesystem"), port: slot.port)
        try link.start()
        defer { link.stop() }
        return try slot.medianMicroseconds(of: select, exchanges)
    }

    private static func throughService() async throws -> Double {
        let context = try await PCSCContext.open()
        let link = VPCDLink(card: try VirtualCardCatalog.make(kind: "filesystem"))
        try link.start()
        defer { link.stop() }
        let deadline = ContinuousClock.now + .seconds(3)
        var reader: String?
        while reader == nil {
            reader = try await context.readerStatuses().first { $0.hasCard && $0.reader.hasPrefix("Virtual PCD") }?.reader
            guard ContinuousClock.now < deadline else {
                throw TransportError(.readerUnavailable, detail: "the card did not appear in the virtual reader")
            }
            if reader == nil { try await Task.sleep(for: .milliseconds(50)) }
        }
        let transport = try await PCSCTransport.connect(context, to: reader ?? "", asksForIdentifier: false)
        let command = try CommandAPDU(bytes: select)
        for _ in 0..<100 { _ = try await transport.sendAPDU(command) }
        var times: [Double] = []
        for _ in 0..<exchanges {
            let start = ContinuousClock.now
            _ = try await transport.sendAPDU(command)
            times.append((ContinuousClock.now - start).microseconds)
        }
        try await transport.card.disconnect()
        return times.sorted()[times.count / 2]
    }
}

extension Duration {
    fileprivate var microseconds: Double { Double(components.seconds) * 1e6 + Double(components.attoseconds) / 1e12 }
}
