// SPDX-License-Identifier: MIT

import CardSockets
import Testing

@testable import VirtualCards

/// Whatever a reader sends, a card answers at least a status word, and goes on.
@Suite struct FuzzTests {
    /// A short generator of its own, so that a failure can be had again from the seed in its message.
    private struct Numbers: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            // splitmix64.
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }

    private static let seed = UInt64.random(in: 0...UInt64.max)

    private static let instructions: [UInt8] = [
        0xA4, 0xB0, 0xB1, 0xB2, 0xD6, 0xD7, 0x20, 0x24, 0x2C, 0x84, 0x82, 0xC0, 0xCA, 0x88, 0x22, 0x86,
    ]
    private static let parameters: [UInt8] = [0x00, 0x01, 0x02, 0x04, 0x08, 0x0C, 0x80, 0x81, 0x82, 0x9E, 0xFF]
    private static let bodies: [[UInt8]] = [
        [], [0x3F, 0x00], [0x01, 0x1E], [0x01, 0x02], [0x50, 0x00], [0x00, 0x02], [0x50, 0x00, 0x01, 0x04],
        [0xA0, 0, 0, 2, 0x47, 0x10, 1],
        [0xF0, 0x54, 0x41, 0x50], [0x54, 0x02, 0x80, 0x00], [0x54, 0x01, 0x02, 0x53, 0x01, 0xAA],
        [0x54, 0x84, 0xFF, 0xFF, 0xFF, 0xFF],
        [0x31, 0x32, 0x33, 0x34], [UInt8](repeating: 0x31, count: 16), [UInt8](repeating: 0, count: 40),
        [0x97, 0x01, 0x00, 0x8E, 0x08],
        [0x54, 0x04, 0xFF, 0xFF, 0xFF, 0xFF],
    ]

    /// Commands that the cards know, so that what follows them is met in more states than the first.
    private static let known: [[UInt8]] = [
        [0x00, 0xA4, 0x04, 0x0C, 0x07, 0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01], [0x00, 0x84, 0x00, 0x00, 0x08],
        [0x00, 0xA4, 0x00, 0x0C, 0x02, 0x3F, 0x00],
    ]

    /// A command that a card knows or nearly knows, or none at all.
    private static func command(_ numbers: inout Numbers) -> [UInt8] {
        if Int.random(in: 0..<16, using: &numbers) == 0, let command = known.randomElement(using: &numbers) { return command }
        if Int.random(in: 0..<8, using: &numbers) == 0 {
            return (0..<Int.random(in: 0...40, using: &numbers)).map { _ in UInt8.random(in: 0...255, using: &numbers) }
        }
        let cla: UInt8 = ([0x00, 0x00, 0x00, 0x00, 0x0C, 0x0C, 0x10, 0x80] as [UInt8]).randomElement(using: &numbers) ?? 0
        func parameter() -> UInt8 {
            Bool.random(using: &numbers)
                ? parameters.randomElement(using: &numbers) ?? 0
                : UInt8.random(in: 0...255, using: &numbers)
        }
        var octets = [cla, instructions.randomElement(using: &numbers) ?? 0, parameter(), parameter()]
        let body = bodies.randomElement(using: &numbers) ?? []
        if Bool.random(using: &numbers) {
            if !body.isEmpty { octets += [UInt8(body.count)] + body }
            if Bool.random(using: &numbers) { octets.append(UInt8.random(in: 0...255, using: &numbers)) }
        } else {
            octets += body.isEmpty ? [0] : [0, 0, UInt8(body.count)] + body
            if Bool.random(using: &numbers) { octets += [UInt8.random(in: 0...255, using: &numbers), 0] }
        }
        return mutated(octets, &numbers, one: 10)
    }

    private static func mutated(_ octets: [UInt8], _ numbers: inout Numbers, one inN: Int) -> [UInt8] {
        var octets = octets
        guard !octets.isEmpty, Int.random(in: 0..<inN, using: &numbers) == 0 else { return octets }
        let index = Int.random(in: 0..<octets.count, using: &numbers)
        switch Int.random(in: 0..<4, using: &numbers) {
        case 0: octets[index] ^= 1 << UInt8.random(in: 0...7, using: &numbers)
        case 1: octets.remove(at: index)
        case 2: octets.insert(UInt8.random(in: 0...255, using: &numbers), at: index)
        default: octets.removeLast(octets.count - index)
        }
        return octets
    }

    @Test(arguments: [
        "filesystem", "passport", "passport?strict&chunk=7",
        "passport?pace=ecdh-gm-aes128:13,dh-im-3des:0&ca=ecdh-aes128:13&aa=rsa&ta",
        "filesystem?fault=6C@3,61@5,reset@7,flip@9",
    ])
    func noCommandStopsACard(reference: String) throws {
        var numbers = Numbers(state: Self.seed)
        let card = try card(reference)
        var statusWords: Set<UInt16> = []
        for step in 0..<50_000 {
            if step % 50 == 0 { card.powerOn() }
            let command = Self.command(&numbers)
            let answer = try card.send(command)
            guard (2...65_535).contains(answer.count) else {
                Issue.record("seed \(Self.seed), step \(step), command \(command)")
                return
            }
            statusWords.insert(UInt16(answer[answer.count - 2]) << 8 | UInt16(answer[answer.count - 1]))
        }
        // The commands reach into the card, and are not all refused at its door.
        #expect(statusWords.count > 10 && statusWords.contains(0x9000))
    }

    @Test func noSecuredCommandStopsAPassport() throws {
        var numbers = Numbers(state: Self.seed)
        var terminal = Terminal(try card("passport?photo=40000"))
        var isOpen = false
        var held = 0
        for step in 0..<20_000 {
            if !isOpen { isOpen = try terminal.open() == "9000" }
            // Any plain command behind a right MAC, one in four changed on its way.
            let inner = Self.command(&numbers)
            guard inner.count >= 4 else { continue }
            let ne = Bool.random(using: &numbers) ? Int.random(in: 1...65_535, using: &numbers) : nil
            let isExtended = Bool.random(using: &numbers)
            let data = (Self.bodies.randomElement(using: &numbers) ?? [])
            var command = try terminal.wrap(Array(inner.prefix(4)), data: data, ne: ne, isExtended: isExtended)
            command[0] = inner[0] | 0x0C
            let answer = try terminal.card.send(Self.mutated(command, &numbers, one: 4))
            guard (2...65_535).contains(answer.count) else {
                Issue.record("seed \(Self.seed), step \(step), command \(command)")
                return
            }
            // What is bare, or the answer to a command that the change made a plain one, has ended the session.
            isOpen = answer.count > 2 && (try? terminal.unwrap(answer))?.hasPrefix("bare") == false
            if isOpen { held += 1 }
        }
        #expect(held > 1_000, "\(held) held; seed \(Self.seed)")
    }
}
