// SPDX-License-Identifier: MIT

import Octets
public import TagTransport

/// The readers of this machine and what is in them: the data behind `tapdeck readers`.
public struct ReaderSurvey: Sendable, Equatable {
    public let readers: [Entry]

    public init(readers: [Entry]) { self.readers = readers }

    /// One reader, or one slot of a reader.
    public struct Entry: Sendable, Equatable {
        public var index: Int
        public var name: String
        public var flags: ReaderStatus.Flags
        /// The card's answer to reset; nil when there is none.
        public var atr: ATR?
        public var slot: SlotKind
        /// What the card said when it was asked; nil when it was not, or said nothing that is known.
        public var askedName: String?
        /// Whether the reader's driver lets escape commands through; nil when that is not known.
        public var escapeCommands: Bool?

        public init(
            index: Int, name: String, flags: ReaderStatus.Flags, atr: ATR? = nil, slot: SlotKind? = nil, askedName: String? = nil,
            escapeCommands: Bool? = nil
        ) {
            self.index = index
            self.name = name
            self.flags = flags
            self.atr = atr
            self.slot = slot ?? SlotKind.guess(from: name, atr: atr)
            self.askedName = askedName
            self.escapeCommands = escapeCommands
        }

        /// Whether another program is connected to the card.
        public var isInUse: Bool { !flags.isDisjoint(with: [.inUse, .exclusive]) }

        /// The card's name: what it said, else what its answer to reset tells.
        public var cardName: String? { askedName ?? atr?.cardName }
    }

    /// What goes into a slot, guessed from the reader's name, or known from the card that is in it.
    public enum SlotKind: String, Sendable {
        case contact, contactless, virtual, unknown

        public static func guess(from name: String, atr: ATR? = nil) -> SlotKind {
            let name = name.lowercased()
            if name.hasPrefix("virtual pcd") { return .virtual }
            if let atr, atr.isContactless { return .contactless }
            let words = name.split { !$0.isLetter && !$0.isNumber }
            let isContactless = words.contains { word in
                ["picc", "contactless", "nfc", "rfid", "cl"].contains(word)
                    || word.hasSuffix("cl") && word.dropLast(2).allSatisfy(\.isNumber)
            }
            if isContactless { return .contactless }
            if words.contains(where: { ["sam", "icc", "contact"].contains($0) }) { return .contact }
            return atr == nil ? .unknown : .contact
        }
    }

    /// The lines that `tapdeck readers` prints, at most 80 columns where a name allows it.
    public var lines: [String] { readers.flatMap(\.lines) }
}

extension ReaderSurvey.Entry {
    /// The reader's own lines: its number and name, then its card and slot.
    public var lines: [String] {
        var lines = ["\(index)  \(name)"]
        if flags.contains(.mute) {
            lines.append("     card    does not answer to a reset")
        } else if let atr {
            lines += cardLines(atr)
        } else {
            return lines + [flags.contains(.unavailable) ? "     its state cannot be had" : "     empty"]
        }
        let slotText = slotText
        if !slotText.isEmpty { lines.append("     slot    \(slotText)") }
        return lines
    }

    private func cardLines(_ atr: ATR) -> [String] {
        let first = "     card    \(Hex.encode(atr.octets))"
        let text = cardText(atr)
        if text.isEmpty { return [first] }
        let joined = "\(first)   \(text)"
        return joined.count <= 80 ? [joined] : [first, "             \(text)"]
    }

    private func cardText(_ atr: ATR) -> String {
        if let technology = atr.technologyText {
            return [cardName, technology].compactMap { $0 }.joined(separator: ", ")
        }
        var parts: [String] = []
        if let name = cardName { parts.append(name) }
        if let text = atr.historicalText { parts.append("\"\(text)\" in its historical bytes") }
        switch atr.check {
        case .right: parts.append("TCK right")
        case .wrong(let expected): parts.append("TCK wrong, \(Hex.encode([expected])) expected")
        case .missing, .absent: break
        }
        parts += atr.faults.filter { $0.code != .wrongCheck }.map(\.description)
        return parts.joined(separator: "; ")
    }

    private var slotText: String {
        var parts: [String] = []
        if slot != .unknown { parts.append(slot.rawValue) }
        if slot == .contactless, escapeCommands == false {
            parts.append("no frames below APDUs (escape commands are off)")
        }
        if flags.contains(.exclusive) {
            parts.append("held by another program alone, not asked")
        } else if flags.contains(.inUse) {
            parts.append("in use by another program, not asked")
        }
        return parts.joined(separator: "; ")
    }
}

extension ReaderSurvey {
    /// Looks at all readers.
    ///
    /// - Parameters:
    ///   - probe: whether cards that no other program uses are asked what they are; see ``CardProbe``.
    ///   - escapeCommands: what the readers' driver is set to, as ``DoctorFacts`` finds it.
    /// - Throws: ``TransportError``.
    public static func gather(probe: Bool, escapeCommands: Bool? = nil) async throws(TransportError) -> ReaderSurvey {
        let context = try await PCSCContext.open()
        var entries: [Entry] = []
        for (index, status) in try await context.readerStatuses().enumerated() {
            let atr = status.hasCard && !status.atr.isEmpty ? ATR(status.atr) : nil
            var entry = Entry(
                index: index, name: status.reader, flags: status.flags, atr: atr, escapeCommands: escapeCommands
            )
            if probe, let atr, !entry.isInUse, !status.flags.contains(.mute) {
                entry.askedName = await CardProbe.name(of: atr, in: status.reader, context)
            }
            entries.append(entry)
        }
        return ReaderSurvey(readers: entries)
    }
}
