// SPDX-License-Identifier: MIT

/// What the service says of a reader and of what is in it.
public struct ReaderStatus: Sendable, Equatable {
    /// The flags of `SCARD_READERSTATE`, without the count of card events above them.
    public struct Flags: OptionSet, Sendable {
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        static let changed = Flags(rawValue: 0x0002)
        /// The service does not know the reader.
        public static let unknown = Flags(rawValue: 0x0004)
        /// The reader's state cannot be had.
        public static let unavailable = Flags(rawValue: 0x0008)
        public static let empty = Flags(rawValue: 0x0010)
        public static let present = Flags(rawValue: 0x0020)
        /// One program holds the card for itself alone.
        public static let exclusive = Flags(rawValue: 0x0080)
        /// At least one program is connected to the card.
        public static let inUse = Flags(rawValue: 0x0100)
        /// The card does not answer to a reset.
        public static let mute = Flags(rawValue: 0x0200)
        public static let unpowered = Flags(rawValue: 0x0400)
    }

    public let reader: String
    public let flags: Flags
    /// How many times a card was put in or taken out since the service started, modulo 65,536.
    public let cardEvents: UInt16
    /// The answer to reset of the card; empty when there is none.
    public let atr: [UInt8]

    public init(reader: String, flags: Flags, cardEvents: UInt16 = 0, atr: [UInt8] = []) {
        self.reader = reader
        self.flags = flags
        self.cardEvents = cardEvents
        self.atr = atr
    }

    public var hasCard: Bool { flags.contains(.present) }

    init(_ raw: RawReaderState) {
        self.init(
            reader: raw.name,
            flags: Flags(rawValue: UInt16(truncatingIfNeeded: raw.flags)).subtracting(.changed),
            cardEvents: UInt16(truncatingIfNeeded: raw.flags >> 16),
            atr: raw.atr
        )
    }

    /// The value that the service wants back as the state already known.
    var raw: RawReaderState {
        RawReaderState(name: reader, flags: UInt32(cardEvents) << 16 | UInt32(flags.rawValue), atr: atr)
    }
}

/// A row of `SCardGetStatusChange`: flags in the low 16 bits, the count of card events in the high 16.
struct RawReaderState: Sendable, Equatable {
    var name: String
    var flags: UInt32
    var atr: [UInt8] = []

    /// The name under which the service reports that readers came or went.
    static let readersChanged = "\\\\?PnP?\\Notification"
}

/// Something that happened to a reader or a card.
public enum ReaderEvent: Sendable, Equatable {
    /// A reader is there: also one that was there when watching began. Its card, if any, follows as an event of its own.
    case readerAdded(ReaderStatus)
    case readerRemoved(reader: String)
    case cardInserted(reader: String, atr: [UInt8])
    case cardRemoved(reader: String)
    /// The card in the reader answered to a reset again, and otherwise than before.
    ///
    /// A reset with the same answer cannot be seen from outside; a program that is connected meets it as
    /// the transport error `tagReset`.
    case cardReset(reader: String, atr: [UInt8])
    /// Who uses the card, or whether it answers, changed.
    case statusChanged(ReaderStatus)
    /// The service is gone. Nothing follows.
    case failed(PCSCError)
}

/// Turns the states of all readers, as they are seen one after the other, into events.
struct ReaderTracker: Sendable {
    private(set) var known: [ReaderStatus] = []

    mutating func update(_ seen: [ReaderStatus]) -> [ReaderEvent] {
        var events: [ReaderEvent] = []
        let there = seen.filter { !$0.flags.contains(.unknown) }
        for old in known where !there.contains(where: { $0.reader == old.reader }) {
            if old.hasCard { events.append(.cardRemoved(reader: old.reader)) }
            events.append(.readerRemoved(reader: old.reader))
        }
        for new in there {
            if let old = known.first(where: { $0.reader == new.reader }) {
                events += Self.events(from: old, to: new)
            } else {
                events.append(.readerAdded(new))
                if new.hasCard { events.append(.cardInserted(reader: new.reader, atr: new.atr)) }
            }
        }
        known = there
        return events
    }

    private static func events(from old: ReaderStatus, to new: ReaderStatus) -> [ReaderEvent] {
        var events: [ReaderEvent] = []
        switch (old.hasCard, new.hasCard) {
        case (false, true): events.append(.cardInserted(reader: new.reader, atr: new.atr))
        case (true, false): events.append(.cardRemoved(reader: new.reader))
        case (true, true) where old.cardEvents != new.cardEvents:
            // It was out and in again between two looks.
            events += [.cardRemoved(reader: new.reader), .cardInserted(reader: new.reader, atr: new.atr)]
        case (true, true) where old.atr != new.atr && !new.atr.isEmpty && !old.atr.isEmpty:
            events.append(.cardReset(reader: new.reader, atr: new.atr))
        default: break
        }
        let use: ReaderStatus.Flags = [.exclusive, .inUse, .mute, .unavailable]
        if old.flags.intersection(use) != new.flags.intersection(use) { events.append(.statusChanged(new)) }
        return events
    }
}
