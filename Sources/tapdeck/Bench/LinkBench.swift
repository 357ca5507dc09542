// SPDX-License-Identifier: MIT

import CardSockets
import Foundation
import PCSC
import TagTransport
import VirtualCards

/// A SELECT through pcscd and our end of the virtual reader's link, and through the link alone.
enum LinkBench {
    static let exchanges = 5_000

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

    static let select: [UInt8] = [0x00, 0xA4, 0x00, 0x0C, 0x02, 0x3F, 0x00]

    /// The median of a SELECT over our end of vpcd's link alone, in microseconds.
    static func bareLink() async throws -> Double {
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
