// SPDX-License-Identifier: MIT

import Octets

/// A card behind lines of text: a command in hex goes in, its answer in hex comes out, one line for one line.
///
/// | line | answer |
/// |---|---|
/// | `00A4040C07A0000002471001` | `9000` |
/// | `!reset` | the answer to reset |
/// | `!atr` | the answer to reset; the card is left as it is |
/// | `!remove` | `!removed`; `!insert` or `!reset` puts the card back |
/// | nothing, or `# a comment` | none |
///
/// What is no answer begins with `!`: `!removed`, `!silent`, `!failed 80100016`, `!error` and what is wrong with the line.
public struct HexLines {
    /// Characters of the longest line that is looked at: an extended command of 65,544 octets with a space between two of them.
    public static let longestLine = 3 * 65_544

    private let card: any CardEnd
    private var isOut = false

    /// - Parameter card: gets power at once.
    public init(card: any CardEnd) {
        self.card = card
        card.powerOn()
    }

    /// The line for a line; nil for an empty one and a comment.
    public mutating func answer(_ line: some StringProtocol) -> String? {
        guard line.utf8.count <= Self.longestLine else { return "!error the line has over \(Self.longestLine) characters" }
        let text = String(line.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).first ?? "")
        let digits = text.filter { !$0.isWhitespace }
        guard !digits.isEmpty else { return nil }
        if digits.hasPrefix("!") { return word(digits) }
        let command: [UInt8]
        do throws(HexError) { command = try Hex.decode(digits) } catch {
            return "!error \(error)"
        }
        guard !isOut else { return "!removed" }
        return said(card.transmit(command))
    }

    private mutating func word(_ word: String) -> String {
        switch word {
        case "!reset", "!insert":
            if isOut {
                isOut = false
                card.powerOn()
                return Hex.encode(card.atr)
            }
            return said(card.reset())
        case "!atr": return isOut ? "!removed" : Hex.encode(card.atr)
        case "!remove":
            if !isOut { card.powerOff() }
            isOut = true
            return "!removed"
        default: return "!error unknown word \(word.prefix(20)); there are !reset, !atr, !remove and !insert"
        }
    }

    private mutating func said(_ answer: ReaderAnswer) -> String {
        switch answer {
        case .octets(let octets):
            if let departure = card.departure(), departure.returnsAfter == nil { isOut = true }
            return octets.isEmpty ? "!silent" : Hex.encode(octets)
        case .failed(ServiceCode.notTransacted): return "!silent"
        case .failed(let code):
            let digits = String(code, radix: 16, uppercase: true)
            return "!failed \(String(repeating: "0", count: 8 - digits.count))\(digits)"
        case .removed:
            isOut = card.departure()?.returnsAfter == nil
            return "!removed"
        }
    }
}
