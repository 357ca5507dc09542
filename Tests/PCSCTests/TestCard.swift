// SPDX-License-Identifier: MIT

import CardSockets
import Synchronization
import TestSupport

/// A card that answers `80 10 NN NN` with that many octets and a status word, `80 20` with silence, `80 30` by leaving,
/// `80 40` with nothing, and everything else with `9000`. It counts what it meets.
final class TestCard: CardEnd, Sendable {
    struct Seen: Sendable {
        var powerOns = 0
        var commands: [[UInt8]] = []
    }

    let atr: [UInt8]
    let seen = Mutex(Seen())

    /// - Parameter atr: by default that of a card with contacts that offers T=1 alone: `3B 80 01` and its TCK.
    init(atr: [UInt8] = [0x3B, 0x80, 0x01, 0x81]) { self.atr = atr }

    var commands: [[UInt8]] { seen.withLock { $0.commands } }
    var powerOns: Int { seen.withLock { $0.powerOns } }

    func powerOn() { seen.withLock { $0.powerOns += 1 } }
    func powerOff() {}

    func exchange(_ command: [UInt8]) -> CardAnswer {
        seen.withLock { $0.commands.append(command) }
        guard command.count >= 4, command[0] == 0x80 else { return .response([0x90, 0x00]) }
        switch command[1] {
        case 0x10:
            let count = Int(command[2]) << 8 | Int(command[3])
            return .response((0..<count).map { UInt8(truncatingIfNeeded: $0) } + [0x90, 0x00])
        case 0x20: return .silence
        case 0x30: return .removed
        case 0x40: return .response([])
        case 0x50: return .response([0x90])
        default: return .response([0x90, 0x00])
        }
    }

    /// A contactless card of ISO/IEC 14443-4 type A without historical bytes (PC/SC part 3, 3.1.3.2.3).
    static let contactlessATR: [UInt8] = [0x3B, 0x80, 0x80, 0x01, 0x01]
}

extension PrivatePCSCD {
    /// Puts `card` into a slot for the length of `body`, and waits for the slot to be empty afterwards.
    func withCard<Value>(
        _ card: TestCard, slot: Int = 0, options: VPCDLink.Options = VPCDLink.Options(),
        isolation: isolated (any Actor)? = #isolation, _ body: (VPCDLink) async throws -> Value
    ) async throws -> Value {
        let link = VPCDLink(card: card, port: ports[slot], options: options)
        try await waitUntil(slot, hasCard: false)
        try link.start()
        do {
            try await waitUntil(slot, hasCard: true)
            let value = try await body(link)
            link.stop()
            return value
        } catch {
            link.stop()
            throw error
        }
    }
}
