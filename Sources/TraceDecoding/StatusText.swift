// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets

/// What a status word means, in few words, from the grammar's enumeration of status words.
struct StatusText: Sendable {
    private let words: Enumeration?
    /// The status bytes of native commands after 91.
    private let native: Enumeration?
    private let names: [String]

    init(_ program: Program) {
        words = program.enumeration("iso7816.Status")
        native = program.enumeration("desfire.WrappedStatus")
        names = program.strings
    }

    /// `6A82 not found`, `63C2 2 tries left`; `9000` and `9100` speak for themselves; the bare number when nothing is known about it.
    func text(_ value: UInt16) -> String {
        let hex = Hex.encode([UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)])
        guard value != 0x9000, value != 0x9100, let meaning = meaning(value) else { return hex }
        return "\(hex) \(meaning)"
    }

    /// A sentence that is longer than this gives way to the name that the grammar has for it.
    private static let short = 17

    /// The sentence or the name of an exact word, the part of a masked word's sentence that tells the number.
    private func meaning(_ value: UInt16) -> String? {
        guard let words, let index = words.find(UInt64(value)) else { return nil }
        let entry = words.entries[index]
        if entry.mask & 0xFFFF != 0xFFFF, let native, let known = native.find(UInt64(value)) {
            let entry = native.entries[known]
            return entry.text.count <= Self.short ? entry.text : Self.spoken(names[entry.name])
        }
        if entry.mask & 0xFFFF == 0xFFFF { return entry.text.count <= Self.short ? entry.text : Self.spoken(names[entry.name]) }
        guard let part = entry.text.split(separator: ",").first(where: { $0.contains("{low}") }) else {
            return entry.text.split(separator: ",").first.map(String.init)
        }
        let low = String(UInt64(value) & ~entry.mask & 0xFFFF)
        return part.split(separator: " ").map { $0 == "{low}" ? low : String($0) }.joined(separator: " ")
    }

    /// `notFound` as `not found`.
    static func spoken(_ name: String) -> String {
        var text = ""
        for character in name {
            if character.isUppercase, !text.isEmpty { text += " " }
            text += character.lowercased()
        }
        return text
    }
}
