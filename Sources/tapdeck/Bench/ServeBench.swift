// SPDX-License-Identifier: MIT

import CardSockets
import Glibc
import PCSC
import TagTransport
import VirtualCards

/// What a program pays for an exchange through our socket, with libpcsclite on its side.
enum ServeBench {
    /// - Parameter isAlone: no other benchmark runs in this process. libpcsclite keeps to the socket that it saw first, so beside others
    ///   a process of its own is started.
    static func run(_ report: BenchReport, isAlone: Bool) async throws {
        guard isAlone else {
            let words = ["bench", "serve"] + (report.isJSON ? ["--json"] : [])
            let child = try ChildRun("/proc/self/exe", words) { piece in Terminal.write([UInt8](piece), to: STDOUT_FILENO) }
            guard child.status == 0 else { throw Failure(.outside, "the benchmark of the socket ended with \(child.status)") }
            return
        }
        let link = try await LinkBench.bareLink()
        let card = try inProcess()
        do {
            report.figure("serve-added", try await throughSocket() - card, "us", peer: "bare vpcd link", peerValue: link - card)
        } catch let error as TransportError {
            report.terminal.note("serve-added was not measured: \(error.detail.isEmpty ? error.case.rawValue : error.detail)")
        }
    }

    /// The median time of the card itself.
    private static func inProcess() throws -> Double {
        let card = try VirtualCardCatalog.make(kind: "filesystem")
        card.powerOn()
        return median { _ = card.exchange(LinkBench.select) }
    }

    private static func throughSocket() async throws -> Double {
        let folder = try PrivateFolder()
        defer { folder.remove() }
        let path = "\(folder.path)/pcscd.comm"
        let card = try VirtualCardCatalog.make(kind: "filesystem")
        let service = ServiceSocket(readers: [.init(name: "Tapdeck 00 00", card: card)], path: path)
        do { try service.start() } catch { throw CardServing.failure(error, path: path) }
        defer { service.stop() }
        setenv("PCSCLITE_CSOCK_NAME", path, 1)
        let context = try await PCSCContext.open()
        let transport = try await PCSCTransport.connect(context, to: "Tapdeck 00 00", asksForIdentifier: false)
        let command = try CommandAPDU(bytes: LinkBench.select)
        var times: [Double] = []
        for number in 0..<LinkBench.exchanges + 100 {
            let start = ContinuousClock.now
            let answer = try await transport.sendAPDU(command)
            guard answer.isSuccess else { throw Failure(.outside, "the bench's card answered \(answer.statusWord)") }
            if number >= 100 { times.append((ContinuousClock.now - start).microseconds) }
        }
        try await transport.card.disconnect()
        return times.sorted()[times.count / 2]
    }

    private static func median(_ body: () -> Void) -> Double {
        var times: [Double] = []
        for _ in 0..<LinkBench.exchanges {
            let start = ContinuousClock.now
            body()
            times.append((ContinuousClock.now - start).microseconds)
        }
        return times.sorted()[times.count / 2]
    }
}
