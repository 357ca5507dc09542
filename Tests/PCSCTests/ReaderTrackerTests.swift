// SPDX-License-Identifier: MIT

import Testing

@testable import PCSC

@Suite struct ReaderTrackerTests {
    private let atr: [UInt8] = [0x3B, 0x80, 0x01, 0x81]

    private func status(_ flags: ReaderStatus.Flags, events: UInt16 = 0, atr: [UInt8] = [], reader: String = "A") -> ReaderStatus
    {
        ReaderStatus(reader: reader, flags: flags, cardEvents: events, atr: atr)
    }

    @Test func theCountOfCardEventsIsNoFlag() {
        // 000B0022: present and changed, after eleven card events.
        let status = ReaderStatus(RawReaderState(name: "A", flags: 0x000B_0022))
        #expect(status.flags == .present)
        #expect(status.cardEvents == 11)
        #expect(status.raw.flags == 0x000B_0020)
    }

    @Test func readersAndCardsThatAreThereComeFirst() {
        var tracker = ReaderTracker()
        let there = status(.present, events: 1, atr: atr)
        #expect(tracker.update([there]) == [.readerAdded(there), .cardInserted(reader: "A", atr: atr)])
        #expect(tracker.update([there]).isEmpty)
    }

    @Test func aCardThatWasOutAndInBetweenTwoLooksIsTwoEvents() {
        var tracker = ReaderTracker()
        _ = tracker.update([status(.present, events: 1, atr: atr)])
        #expect(
            tracker.update([status(.present, events: 3, atr: atr)]) == [
                .cardRemoved(reader: "A"), .cardInserted(reader: "A", atr: atr),
            ]
        )
    }

    @Test func anotherAnswerWithoutARemovalIsAReset() {
        var tracker = ReaderTracker()
        _ = tracker.update([status(.present, events: 1, atr: atr)])
        let other: [UInt8] = [0x3B, 0x00]
        #expect(tracker.update([status(.present, events: 1, atr: other)]) == [.cardReset(reader: "A", atr: other)])
    }

    @Test func aReaderThatIsUnpluggedTakesItsCardAlong() {
        var tracker = ReaderTracker()
        _ = tracker.update([status(.present, atr: atr), status(.empty, reader: "B")])
        #expect(
            tracker.update([status(.unknown), status(.empty, reader: "B")]) == [
                .cardRemoved(reader: "A"), .readerRemoved(reader: "A"),
            ])
    }

    @Test func useByOthersIsAChangeOfItsOwn() {
        var tracker = ReaderTracker()
        _ = tracker.update([status(.present, events: 1, atr: atr)])
        let used = status([.present, .inUse], events: 1, atr: atr)
        #expect(tracker.update([used]) == [.statusChanged(used)])
        let empty = status(.empty, events: 2)
        #expect(tracker.update([empty]) == [.cardRemoved(reader: "A"), .statusChanged(empty)])
    }
}
