// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Replay
import SessionSupport
import Testing
import TraceFile

/// A card that is taken away at each of its commands, recorded and played back.
@Suite struct DESFireFaultTests {
    private static let key = JSONValue.object([
        "number": .integer(3), "type": .string("aes"), "key": .string(String(repeating: "00", count: 16)),
    ])

    /// Plays back and gives whether the recorded call ended in the fault.
    private func replayed(_ session: Session) async throws -> Bool {
        let report = await Replay(of: session.trace, secrets: session.secrets).run()
        #expect(report.isSame, "\(report.divergence?.description ?? report.blocked?.text ?? "")")
        return session.trace.returns.last?.case == "tagConnectionLost"
    }

    @Test(arguments: ["desfire", "ntag424?blank"], [10, 100]) func aTornNDEFWriteReplays(_ card: String, length: Int) async throws
    {
        let message = NDEFMessage.text(String(repeating: "x", count: length))
        var torn = 0
        for step in 1...30 {
            let session = try await Session(
                "ndef", ["write": .string([UInt8](message.data).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())],
                card: "virtual:\(card)\(card.contains("?") ? "&" : "?")fault=remove%40\(step)")
            guard try await replayed(session) else { break }
            torn += 1
        }
        #expect(torn > 5 && torn < 30)
    }

    @Test(arguments: ["legacy", "aes", "ev2First"]) func aTornSessionReplays(_ method: String) async throws {
        let generation = method == "legacy" ? "d40" : "ev2"
        let key =
            method == "legacy"
            ? JSONValue.object([
                "number": .integer(3), "type": .string("des"), "key": .string(String(repeating: "00", count: 8)),
            ]) : Self.key
        var torn = 0
        for step in 1...60 {
            let session = try await Session(
                "desfire",
                ["application": .string("F00001"), "keys": .array([key]), "method": .string(method)],
                card: "virtual:desfire?generation=\(generation)&fault=remove%40\(step)")
            guard try await replayed(session) else { break }
            torn += 1
        }
        #expect(torn > 10 && torn < 60)
    }
}
