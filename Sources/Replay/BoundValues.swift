// SPDX-License-Identifier: MIT

import Octets

/// Values of a result that are nothing but octets drawn at random. With other random octets they are others, so that they are
/// compared by the draw that they came from.
struct BoundValues: Sendable {
    /// A draw of the run and, when it is at hand, the recorded draw of the same label and number.
    struct Draw: Sendable {
        var recorded: [UInt8]?
        var now: [UInt8]
    }

    /// Of each text that a draw of the run has, what the recorded draw's text was; nil when that draw is not at hand.
    private var texts: [String: String?] = [:]

    init(_ draws: [Draw]) {
        for draw in draws where draw.now.count >= Self.shortest {
            let recorded = draw.recorded.map(Self.forms)
            for (index, text) in Self.forms(draw.now).enumerated() {
                texts[text] = .some(recorded.flatMap { $0.indices.contains(index) ? $0[index] : nil })
            }
        }
    }

    /// Whether a text of the run and a recorded one are the same draw's.
    func areOneDraw(_ recorded: String, _ now: String) -> Bool {
        guard let known = texts[now] else { return false }
        if let known { return known == recorded }
        return recorded.utf8.count == now.utf8.count && zip(recorded.utf8, now.utf8).allSatisfy { ($0 == 0x2D) == ($1 == 0x2D) }
    }

    /// Fewer octets than this may be equal to anything by chance.
    private static let shortest = 8

    /// The ways in which results write octets: hexadecimal digits and, of sixteen, a random UUID (RFC 9562 5.4).
    private static func forms(_ octets: [UInt8]) -> [String] {
        var forms = [Hex.encode(octets)]
        if octets.count == 16 {
            var identifier = octets
            identifier[6] = identifier[6] & 0x0F | 0x40
            identifier[8] = identifier[8] & 0x3F | 0x80
            let digits = Array(Hex.encode(identifier))
            forms.append(
                [digits[0..<8], digits[8..<12], digits[12..<16], digits[16..<20], digits[20..<32]].map { String($0) }
                    .joined(separator: "-"))
        }
        return forms
    }
}
