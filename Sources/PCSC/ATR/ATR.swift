// SPDX-License-Identifier: MIT

/// An answer to reset (ISO/IEC 7816-3 8.2), parsed as far as it holds. Nothing in it can fail: what is wrong is in ``faults``.
public struct ATR: Sendable, Equatable {
    /// One group of interface octets; the index in ``groups`` plus 1 is the *i* of TAi.
    public struct Group: Sendable, Equatable {
        public var ta: UInt8?
        public var tb: UInt8?
        public var tc: UInt8?
        /// Announces the next group and names the protocol that it belongs to.
        public var td: UInt8?
    }

    /// The bit order of the card's octets. The octets here always are in direct order.
    public enum Convention: Sendable { case direct, inverse }

    /// The check octet TCK: the exclusive or of everything from T0 on (8.2.5).
    public enum Check: Sendable, Equatable {
        /// Only T=0 is offered: there is none.
        case absent
        case right
        case wrong(expected: UInt8)
        /// It should be there and is not.
        case missing
    }

    /// What is wrong with the octets, and where.
    public struct Fault: Sendable, Equatable, CustomStringConvertible {
        public enum Code: Sendable, Equatable {
            case empty
            case initialCharacter(UInt8)
            case truncated
            case wrongCheck
            case surplus(Int)
            case tooLong(Int)
            case brokenHistoricalTLV
            case looksLikeText
        }

        public let code: Code
        /// The octet at fault, counted from 0 (TS).
        public let offset: Int

        public var description: String {
            switch code {
            case .empty: "there is no answer to reset"
            case .initialCharacter(let octet): "TS is \(twoDigits(octet)), not 3B or 3F"
            case .truncated: "ends at byte \(offset), more is announced"
            case .wrongCheck: "TCK at byte \(offset) is wrong"
            case .surplus(let count): "\(count) bytes too many from byte \(offset) on"
            case .tooLong(let count): "\(count) bytes; 33 are the most"
            case .brokenHistoricalTLV: "the COMPACT-TLV of the historical bytes breaks at byte \(offset)"
            case .looksLikeText: "this is hexadecimal or decimal text, not bytes"
            }
        }
    }

    public let octets: [UInt8]
    /// Nil when TS is neither `3B` nor `3F`.
    public let convention: Convention?
    public let groups: [Group]
    /// At most 15 octets, announced by T0.
    public let historicalBytes: [UInt8]
    public let check: Check
    public let faults: [Fault]

    /// Parses the octets as they came; anything is accepted.
    public init(_ octets: [UInt8]) {
        var parser = ATRParser(octets)
        parser.parse()
        self.octets = octets
        self.convention = parser.convention
        self.groups = parser.groups
        self.historicalBytes = parser.historicalBytes
        self.check = parser.check
        self.faults = parser.faults
    }

    /// Whether the octets are an answer to reset without a fault. A broken COMPACT-TLV inside is the issuer's affair.
    public var isValid: Bool { !faults.contains { $0.code != .brokenHistoricalTLV } }

    /// The protocols offered, T=15 left out, each once, the first offered first. T=0 when no TD1 names one (8.2.3).
    public var protocols: [UInt8] {
        var offered: [UInt8] = []
        for group in groups {
            guard let td = group.td, td & 0x0F != 15, !offered.contains(td & 0x0F) else { continue }
            offered.append(td & 0x0F)
        }
        return offered.isEmpty && groups.first?.td == nil ? [0] : offered
    }

    /// The protocol and its parameters can be fixed by TA2 (specific mode, 8.3); else they are negotiable.
    public var specificProtocol: UInt8? { groups.count > 1 ? groups[1].ta.map { $0 & 0x0F } : nil }

    /// Whether T=1 uses a CRC as its check; an LRC otherwise (11.4.4). The first TC for T=1 from group 3 on says so.
    public var t1UsesCRC: Bool {
        guard groups.count > 2 else { return false }
        for index in 2..<groups.count where groups[index - 1].td.map({ $0 & 0x0F }) == 1 {
            if let tc = groups[index].tc { return tc & 0x01 == 1 }
        }
        return false
    }

    /// Whether a reader made it up for a contactless card (PC/SC part 3, 3.1.3.2.3): `3B 8n 80 01`.
    ///
    /// A card with contacts may, rarely, offer T=0 and T=1 in the same octets.
    public var isContactless: Bool {
        octets.count >= 5 && octets[0] == 0x3B && octets[1] & 0xF0 == 0x80 && octets[2] == 0x80 && octets[3] == 0x01
            && check == .right
    }
}

private func twoDigits(_ octet: UInt8) -> String {
    let text = String(octet, radix: 16, uppercase: true)
    return octet < 16 ? "0" + text : text
}

/// The parser: one pass over the octets.
private struct ATRParser {
    let octets: [UInt8]
    var index = 0
    var convention: ATR.Convention?
    var groups: [ATR.Group] = []
    var historicalBytes: [UInt8] = []
    var check = ATR.Check.absent
    var faults: [ATR.Fault] = []

    init(_ octets: [UInt8]) { self.octets = octets }

    mutating func parse() {
        guard let ts = next() else { return fault(.empty) }
        switch ts {
        case 0x3B: convention = .direct
        case 0x3F: convention = .inverse
        default:
            fault(.initialCharacter(ts), at: 0)
            if octets.count > 3, octets.allSatisfy(Self.isHexText) { fault(.looksLikeText, at: 0) }
            return
        }
        guard let t0 = next() else { return fault(.truncated) }
        guard parseGroups(announcedBy: t0), parseHistoricalBytes(Int(t0 & 0x0F)) else { return fault(.truncated) }
        parseCheck()
        if octets.count > 33 { fault(.tooLong(octets.count), at: 33) }
        if index < octets.count { fault(.surplus(octets.count - index)) }
    }

    /// The high half of T0, and of each TD, says which of TA, TB, TC, TD follow: a mask, not a number (8.2.3).
    private mutating func parseGroups(announcedBy first: UInt8) -> Bool {
        var announcing: UInt8? = first
        while let mask = announcing, mask & 0xF0 != 0 {
            var group = ATR.Group()
            defer { groups.append(group) }
            let places: [(UInt8, WritableKeyPath<ATR.Group, UInt8?>)] = [(0x10, \.ta), (0x20, \.tb), (0x40, \.tc), (0x80, \.td)]
            for (bit, place) in places where mask & bit != 0 {
                guard let octet = next() else { return false }
                group[keyPath: place] = octet
            }
            announcing = group.td
        }
        return true
    }

    private mutating func parseHistoricalBytes(_ count: Int) -> Bool {
        let start = index
        let present = min(count, octets.count - index)
        historicalBytes = Array(octets[index..<index + present])
        index += present
        guard present == count else { return false }
        checkCompactTLV(start)
        return true
    }

    /// Category `00` ends with three octets of status, `80` may hold one in its last object (ISO/IEC 7816-4 8.2).
    private mutating func checkCompactTLV(_ start: Int) {
        guard let category = historicalBytes.first, category == 0x00 || category == 0x80 else { return }
        let end = historicalBytes.count - (category == 0x00 ? 3 : 0)
        guard end >= 1 else { return fault(.brokenHistoricalTLV, at: start) }
        var place = 1
        while place < end {
            // An RID's object may be longer than the rest in the storage-card form of PC/SC part 3 (tag 4F, length apart).
            if historicalBytes[place] == 0x4F, place + 1 < end {
                place += 2 + Int(historicalBytes[place + 1])
            } else {
                place += 1 + Int(historicalBytes[place] & 0x0F)
            }
        }
        if place != end { fault(.brokenHistoricalTLV, at: start + min(place, historicalBytes.count)) }
    }

    private mutating func parseCheck() {
        guard groups.contains(where: { ($0.td ?? 0) & 0x0F != 0 }) else { return }
        let expected = octets[1..<index].reduce(0, ^)
        guard let tck = next() else {
            check = .missing
            return fault(.truncated)
        }
        check = tck == expected ? .right : .wrong(expected: expected)
        if tck != expected { fault(.wrongCheck, at: index - 1) }
    }

    private mutating func next() -> UInt8? {
        guard index < octets.count else { return nil }
        defer { index += 1 }
        return octets[index]
    }

    private mutating func fault(_ code: ATR.Fault.Code, at offset: Int? = nil) {
        faults.append(ATR.Fault(code: code, offset: offset ?? index))
    }

    private static func isHexText(_ octet: UInt8) -> Bool {
        (0x30...0x39).contains(octet) || (0x41...0x46).contains(octet) || (0x61...0x66).contains(octet) || octet == 0x20
    }
}
