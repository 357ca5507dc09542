// SPDX-License-Identifier: MIT

import CardSockets
import Octets
import Testing
import VirtualCards

/// Commands and the answers that a card must give, in order, in hexadecimal. A `*` in an answer stands for any data.
func play(
    _ exchanges: [(command: String, answer: String)], on card: VirtualCard, _ location: SourceLocation = #_sourceLocation
) throws {
    for (command, expected) in exchanges {
        let answer = Hex.encode(try card.send(command))
        if let star = expected.firstIndex(of: "*") {
            let tail = String(expected[expected.index(after: star)...])
            #expect(
                answer.hasPrefix(String(expected[..<star])) && answer.hasSuffix(tail), "\(command) -> \(answer)",
                sourceLocation: location)
        } else {
            #expect(answer == expected, "\(command)", sourceLocation: location)
        }
    }
}

struct NoAnswer: Error, Equatable {
    let answer: CardAnswer
}

extension VirtualCard {
    /// The answer to a command in hexadecimal.
    func send(_ command: String) throws -> [UInt8] { try send(try Hex.decode(command)) }

    func send(_ command: [UInt8]) throws -> [UInt8] {
        let answer = exchange(command)
        guard case .response(let octets) = answer else { throw NoAnswer(answer: answer) }
        return octets
    }

    /// The same card, given power.
    func on() -> VirtualCard {
        powerOn()
        return self
    }
}

/// A card from a reference such as `filesystem?seed=7`, given power.
func card(_ reference: String) throws -> VirtualCard {
    try VirtualCardCatalog.make(VirtualCardSpecification(reference: reference)).on()
}
