// SPDX-License-Identifier: MIT

import Octets

/// What a virtual card does wrong on purpose at one command.
public enum CardFault: Sendable, Hashable {
    /// `remove`: the card is taken out before the command takes effect.
    case remove
    /// `mute`: the card does nothing and answers nothing.
    case mute
    /// `reset`: the card loses its volatile state as at power-on, then answers the command; the count goes on.
    case reset
    /// `short`: the command is done, and the first half of the answer's octets comes, rounded down.
    case short
    /// `flip`: the command is done, and the lowest bit of the last octet before the status word is inverted: in a secured
    /// answer, of the MAC. An answer without data is left as it is.
    case flip
    /// `6C`: the command is not done; the answer is `6Cxx` with the length that the answer would have had. Where that is not 1 to 256,
    /// the command is done and answered.
    case wrongLe
    /// `61`: the command is done; the answer is `61xx`, and its data waits for GET RESPONSE. Without data it is left as it is.
    case getResponse
    /// Four hexadecimal digits: the command is not done and this status word is the answer.
    case status(UInt16)
}

/// The faults of a virtual card, by number of command: `remove@12,6C@3,6A82@7`.
///
/// `@N` is the N-th command APDU since power-on or reset, counted from 1; GET RESPONSE counts.
public struct FaultPlan: Sendable, Equatable {
    public let faults: [Int: CardFault]

    public init(_ faults: [Int: CardFault] = [:]) { self.faults = faults }

    /// - Throws: ``VirtualCardError`` with the code `badFault` and the column, counted from 1, of what cannot be read.
    public init(parsing text: String) throws(VirtualCardError) {
        var faults: [Int: CardFault] = [:]
        var column = 1
        for item in text.split(separator: ",", omittingEmptySubsequences: false) {
            let parts = item.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            guard let fault = Self.fault(named: name) else {
                throw Self.error("'\(name)' is no fault; known are \(Self.names)", column)
            }
            guard parts.count == 2 else {
                throw Self.error("'\(name)' needs the number of a command: \(name)@3", column + name.count)
            }
            let numberColumn = column + name.count + 1
            guard let number = Self.number(parts[1]) else {
                throw Self.error("'\(parts[1])' is no number of a command; they count from 1", numberColumn)
            }
            guard faults.updateValue(fault, forKey: number) == nil else {
                throw Self.error("a second fault for command \(number)", column)
            }
            column += item.count + 1
        }
        self.faults = faults
    }

    public subscript(command: Int) -> CardFault? { faults.isEmpty ? nil : faults[command] }

    /// The known faults as a help text names them.
    public static let names = "remove, mute, reset, short, flip, 6C, 61 and status words such as 6A82"

    private static func fault(named name: String) -> CardFault? {
        switch name {
        case "remove": return .remove
        case "mute": return .mute
        case "reset": return .reset
        case "short": return .short
        case "flip": return .flip
        case "6C", "6c": return .wrongLe
        case "61": return .getResponse
        default:
            guard name.utf8.count == 4, let octets = try? Hex.decode(name), octets.count == 2 else { return nil }
            // SW1 is 61 to 6F or 90 to 9F (ISO/IEC 7816-4 5.6).
            guard octets[0] & 0xF0 == 0x90 || (octets[0] & 0xF0 == 0x60 && octets[0] != 0x60) else { return nil }
            return .status(UInt16(octets[0]) << 8 | UInt16(octets[1]))
        }
    }

    private static func number(_ text: Substring) -> Int? {
        guard text.allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(text), number > 0 else { return nil }
        return number
    }

    private static func error(_ detail: String, _ column: Int) -> VirtualCardError {
        VirtualCardError(.badFault, "fault: column \(column): \(detail)", option: "fault", column: column)
    }
}
