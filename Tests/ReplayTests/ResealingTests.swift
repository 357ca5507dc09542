// SPDX-License-Identifier: MIT

import Foundation
import Octets
import Synchronization
import TagTransport
import Testing
import TraceFile

@testable import Replay

/// Looks at what passes, and may change a command on its way to the card.
final class WatchedTransport: ISO7816TagTransporting, CardConnection, @unchecked Sendable {
    // Unchecked for the base alone, which is a constant and Sendable.
    private let base: RecordedTransport
    private let change: @Sendable (Int, CommandAPDU) -> CommandAPDU
    let passed = Mutex<[(command: [UInt8], answer: [UInt8])]>([])

    init(_ base: any NFCTagTransport, change: @escaping @Sendable (Int, CommandAPDU) -> CommandAPDU = { $1 }) throws {
        self.base = try #require(base as? RecordedTransport)
        self.change = change
    }

    var identifier: Data { base.identifier }
    var initialAID: String { "" }
    var readerName: String { base.readerName }
    var atr: Data { base.atr }
    var protocolName: String { base.protocolName }

    func send(_ data: Data) async throws -> Data { try await base.send(data) }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let number = passed.withLock { $0.count }
        let sent = change(number, apdu)
        let answer = try await base.sendAPDU(sent)
        passed.withLock { $0.append((sent.octets, answer.octets)) }
        return answer
    }

    func resetCard() async throws -> Data { try await base.resetCard() }
    func removeCard() async throws { try await base.removeCard() }
    func control(code: UInt32, data: Data) async throws -> Data { try await base.control(code: code, data: data) }
}

/// What a run over a recorded card came to.
struct ResealedRun {
    var report: ReplayReport
    var passed: [(command: [UInt8], answer: [UInt8])]

    init(
        _ replay: Replay, seed: UInt64, changed: [String: JSONValue] = [:],
        change: @escaping @Sendable (Int, CommandAPDU) -> CommandAPDU = { $1 }
    ) async throws {
        let watched = Mutex<WatchedTransport?>(nil)
        report = await replay.runResealed(seed: seed, changed: changed) { transport in
            guard let made = try? WatchedTransport(transport, change: change) else { return transport }
            watched.withLock { $0 = made }
            return made
        }
        passed = watched.withLock { $0?.passed.withLock { $0 } ?? [] }
    }

    var text: String { report.divergence?.description ?? report.blocked?.text ?? "same" }
}

/// Mode `resealed` over the traces of `Traces/`.
@Suite struct ResealingTests {
    static let names = [
        "passport-bac", "passport-pace-ecdh-gm-aes128", "passport-pace-dh-im-3des", "passport-pace-6300-then-bac",
        "passport-bac-bare-6700", "desfire-d40", "desfire-ev1-2k3des", "desfire-ev1-3k3des", "desfire-ev1-aes", "desfire-ev2",
        "ntag424-ev2", "ntag424-lrp",
    ]

    static func replay(_ name: String) throws -> Replay {
        try Replay(of: KeptTracesTests.folder.appendingPathComponent("\(name).pcapng").path)
    }

    @Test(arguments: names) func freshRandomBytesGiveTheSame(_ name: String) async throws {
        let replay = try Self.replay(name)
        for seed in 1...20 as ClosedRange<UInt64> {
            let run = try await ResealedRun(replay, seed: seed)
            #expect(run.report.isSame, "\(name), seed \(seed): \(run.text)")
            if !run.report.isSame { break }
        }
    }
}
