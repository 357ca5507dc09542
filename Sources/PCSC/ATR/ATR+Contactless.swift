// SPDX-License-Identifier: MIT

import Octets

extension ATR {
    /// How a card is reached, as far as its answer to reset tells.
    public enum Technology: Sendable, Hashable {
        case contact
        case iso14443A
        case iso14443B
        case felica
        case iso15693
        /// Contactless in another way: low frequency, or nothing is said.
        case otherContactless
    }

    /// A storage card behind a PC/SC reader (PC/SC part 3, 3.1.3.2.3.2): the registered numbers that stand in its place.
    public struct StorageCard: Sendable, Hashable {
        /// SS: the standard and its part.
        public let standard: UInt8
        /// NN: the card's registered number.
        public let name: UInt16

        public var technology: Technology {
            switch standard {
            case 0x01...0x03: .iso14443A
            case 0x05...0x07: .iso14443B
            case 0x09...0x0C: .iso15693
            case 0x0D...0x10: .contact
            case 0x11: .felica
            default: Self.names[name]?.technology ?? .otherContactless
            }
        }

        /// The registered name; nil when it is not known here.
        public var text: String? {
            if let known = Self.names[name] { return known.text }
            return name >> 8 == 0xFF ? "unknown card, SAK \(Hex.encode([UInt8(truncatingIfNeeded: name)]))" : nil
        }

        private static let names: [UInt16: (text: String, technology: Technology)] = [
            0x0001: ("MIFARE Classic 1K", .iso14443A),
            0x0002: ("MIFARE Classic 4K", .iso14443A),
            0x0003: ("MIFARE Ultralight or NTAG", .iso14443A),
            0x0012: ("Tag-it", .iso15693),
            0x0013: ("LRI512", .iso15693),
            0x0014: ("ICODE SLI", .iso15693),
            0x0016: ("ICODE 1", .iso15693),
            0x0022: ("ICODE UID", .iso15693),
            0x0023: ("ICODE EPC", .iso15693),
            0x0026: ("MIFARE Mini", .iso14443A),
            0x002F: ("Jewel", .iso14443A),
            0x0030: ("Topaz", .iso14443A),
            0x0035: ("ICODE SLI-L", .iso15693),
            0x0036: ("MIFARE Plus SL1 2K", .iso14443A),
            0x0037: ("MIFARE Plus SL1 4K", .iso14443A),
            0x0038: ("MIFARE Plus SL2 2K", .iso14443A),
            0x0039: ("MIFARE Plus SL2 4K", .iso14443A),
            0x003A: ("MIFARE Ultralight C", .iso14443A),
            0x003B: ("FeliCa", .felica),
            0x003D: ("MIFARE Ultralight EV1", .iso14443A),
            0xF004: ("Topaz", .iso14443A),
            0xF011: ("FeliCa 212 kbit/s", .felica),
            0xF012: ("FeliCa 424 kbit/s", .felica),
        ]
    }

    /// The storage card that a reader made the answer for: `3B 8F 80 01 80 4F 0C A0 00 00 03 06 SS NN NN 00 00 00 00 TCK`.
    public var storageCard: StorageCard? {
        guard isContactless, historicalBytes.starts(with: [0x80, 0x4F, 0x0C, 0xA0, 0x00, 0x00, 0x03, 0x06]),
            historicalBytes.count >= 11
        else { return nil }
        return StorageCard(
            standard: historicalBytes[8], name: UInt16(historicalBytes[9]) << 8 | UInt16(historicalBytes[10])
        )
    }

    /// The IDm that some readers put into the answer for a FeliCa card: `3B 8C 80 01 04 43 FD`, then at least eight octets.
    public var felicaIdentifier: [UInt8]? {
        guard isContactless, historicalBytes.count == 12, historicalBytes.starts(with: [0x04, 0x43, 0xFD]) else { return nil }
        return Array(historicalBytes[4..<12])
    }

    /// How the card is reached.
    ///
    /// For an ISO/IEC 14443-4 card the eight octets that stand for type B (application data, protocol information, MBLI) may also be
    /// eight historical bytes of type A: they are type B when they say ISO/IEC 14443-4 and end in a zero half octet.
    public var technology: Technology {
        guard isContactless else { return .contact }
        if let storageCard { return storageCard.technology }
        if felicaIdentifier != nil { return .felica }
        guard historicalBytes.count == 8, historicalBytes[7] & 0x0F == 0 else { return .iso14443A }
        let saysLayer4 = historicalBytes[5] & 0x0F == 0x01
        return saysLayer4 || historicalBytes.allSatisfy { $0 == 0 } ? .iso14443B : .iso14443A
    }

    /// Whether the card takes command APDUs itself: every card with contacts, and ISO/IEC 14443-4.
    public var takesCommandAPDUs: Bool { storageCard == nil && felicaIdentifier == nil }

    /// Whether the one historical byte is the one of MIFARE DESFire and NTAG 424 DNA (`3B 81 80 01 80 80`).
    public var looksLikeDESFire: Bool { isContactless && historicalBytes == [0x80] }

    /// The card's name as far as the answer tells it: `MIFARE Classic 1K`, `DESFire or NTAG 424 DNA`; nil when it does not.
    public var cardName: String? {
        if let storageCard { return storageCard.text }
        if felicaIdentifier != nil { return "FeliCa" }
        return looksLikeDESFire ? "DESFire or NTAG 424 DNA" : nil
    }

    /// The standard by which the card is reached: `ISO 14443-4 type A`; nil for a card with contacts.
    public var technologyText: String? {
        switch technology {
        case .contact: nil
        case .iso14443A: takesCommandAPDUs ? "ISO 14443-4 type A" : "ISO 14443-3 type A"
        case .iso14443B: takesCommandAPDUs ? "ISO 14443-4 type B" : "ISO 14443-3 type B"
        case .felica: "JIS X 6319-4"
        case .iso15693: "ISO 15693"
        case .otherContactless: "contactless"
        }
    }

    /// The longest run of at least four printable ASCII characters in the historical bytes, inside one object where they are
    /// COMPACT-TLV; nil when there is none.
    public var historicalText: String? {
        let places = historicalObjects ?? [historicalBytes[...]]
        let runs = places.flatMap { $0.split { !(0x20...0x7E).contains($0) } }
        guard let longest = runs.max(by: { $0.count < $1.count }) else { return nil }
        let text = longest.drop { $0 == 0x20 }.reversed().drop { $0 == 0x20 }.reversed()
        return text.count >= 4 ? String(decoding: text, as: UTF8.self) : nil
    }

    /// The values of the COMPACT-TLV objects after the category indicator (ISO/IEC 7816-4 8.2); nil when there are none or they break.
    private var historicalObjects: [ArraySlice<UInt8>]? {
        guard let category = historicalBytes.first, category == 0x00 || category == 0x80,
            !faults.contains(where: { $0.code == .brokenHistoricalTLV })
        else { return nil }
        var rest = historicalBytes.dropFirst().dropLast(category == 0x00 ? 3 : 0)
        var values: [ArraySlice<UInt8>] = []
        while let tag = rest.popFirst() {
            values.append(rest.prefix(Int(tag & 0x0F)))
            rest = rest.dropFirst(Int(tag & 0x0F))
        }
        return values
    }
}
