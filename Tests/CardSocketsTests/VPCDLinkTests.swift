// SPDX-License-Identifier: MIT

import CardSockets
import Foundation
import Synchronization
import Testing

/// The reader's side of vpcd's protocol on a port of its own, driven by the test.
private final class FakeReader: Sendable {
    let port: UInt16
    private let listener: Int32

    struct Failure: Error {}

    init() throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listener
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, size) == 0 && listen(descriptor, 4) == 0 && getsockname(descriptor, address, &size) == 0
            }
        }
        guard bound else { throw Failure() }
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit { close(listener) }

    /// The next connection; waits at most ten seconds.
    func accept() throws -> Connection {
        var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, 10_000) == 1 else { throw Failure() }
        let descriptor = Foundation.accept(listener, nil, nil)
        guard descriptor >= 0 else { throw Failure() }
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        return Connection(descriptor)
    }

    final class Connection: Sendable {
        private let descriptor: Int32
        init(_ descriptor: Int32) { self.descriptor = descriptor }
        deinit { close(descriptor) }

        func write(_ octets: [UInt8]) { _ = Foundation.send(descriptor, octets, octets.count, Int32(MSG_NOSIGNAL)) }

        func command(_ octets: [UInt8]) throws -> [UInt8] {
            write([UInt8(octets.count >> 8), UInt8(octets.count & 0xFF)] + octets)
            return try read()
        }

        /// One message; throws at the end of the stream.
        func read() throws -> [UInt8] {
            let head = try octets(2)
            return try octets(Int(head[0]) << 8 | Int(head[1]))
        }

        var isAtEnd: Bool {
            var octet: UInt8 = 0
            return recv(descriptor, &octet, 1, 0) <= 0
        }

        private func octets(_ count: Int) throws -> [UInt8] {
            var octets = [UInt8](repeating: 0, count: count)
            var filled = 0
            while filled < count {
                let more = recv(descriptor, &octets[filled], count - filled, 0)
                guard more > 0 else { throw Failure() }
                filled += more
            }
            return octets
        }
    }
}

private final class Card: CardEnd, Sendable {
    let atr: [UInt8] = [0x3B, 0x80, 0x01, 0x81]
    let power = Mutex<[String]>([])
    func powerOn() { power.withLock { $0.append("on") } }
    func powerOff() { power.withLock { $0.append("off") } }

    private let leaving = Mutex(false)

    /// After INS 50 the card leaves for a moment.
    func departure() -> Departure? {
        leaving.withLock { leaving in
            defer { leaving = false }
            return leaving ? Departure(returnsAfter: .milliseconds(1)) : nil
        }
    }

    /// INS 10: an answer of 65,536 octets; 20: silence; 30: removal; 40: nothing; else the command's own octets.
    func exchange(_ command: [UInt8]) -> CardAnswer {
        if command.count > 1, command[1] == 0x50 { leaving.withLock { $0 = true } }
        return switch command.count > 1 ? command[1] : 0 {
        case 0x10: .response([UInt8](repeating: 0, count: 65_536))
        case 0x20: .silence
        case 0x30: .removed
        case 0x40: .response([])
        default: .response(command + [0x90, 0x00])
        }
    }
}

@Suite struct VPCDLinkTests {
    private func serve(
        _ options: VPCDLink.Options = .init(),
        _ body: (FakeReader, VPCDLink, Card, borrowing Mutex<[VPCDLink.Event]>) throws -> Void
    ) throws {
        let reader = try FakeReader()
        let card = Card()
        let events = EventList()
        let link = VPCDLink(card: card, port: reader.port, options: options) { event in
            events.list.withLock { $0.append(event) }
        }
        try link.start()
        defer { link.stop() }
        try body(reader, link, card, events.list)
    }

    private final class EventList: Sendable {
        let list = Mutex<[VPCDLink.Event]>([])
    }

    private func wait(_ place: SourceLocation = #_sourceLocation, until condition: () -> Bool) {
        let deadline = ContinuousClock.now + .seconds(10)
        while !condition(), ContinuousClock.now < deadline { usleep(1_000) }
        #expect(condition(), sourceLocation: place)
    }

    // vsmartcard#253
    @Test func aResetAndAnATRRequestInOneSegmentAreBothServed() throws {
        try serve { reader, _, card, _ in
            let connection = try reader.accept()
            connection.write([0x00, 0x01, 0x01])
            connection.write([0x00, 0x01, 0x02, 0x00, 0x01, 0x04])
            #expect(try connection.read() == card.atr)
            #expect(card.power.withLock { $0 } == ["on", "on"])
        }
    }

    @Test func commandsAreAnsweredOneByOneHoweverTheyAreCut() throws {
        try serve { reader, _, _, _ in
            let connection = try reader.accept()
            #expect(try connection.command([0x00, 0xA4, 0x04, 0x00]) == [0x00, 0xA4, 0x04, 0x00, 0x90, 0x00])
            let long = [0x00] + [UInt8](repeating: 0x55, count: 65_000)
            #expect(try connection.command(long) == long + [0x90, 0x00])
            for octet: UInt8 in [0x00, 0x04, 0x00, 0xB0, 0x00, 0x00] { connection.write([octet]) }
            #expect(try connection.read() == [0x00, 0xB0, 0x00, 0x00, 0x90, 0x00])
            // No octets are no command.
            #expect(try connection.command([]) == [0x67, 0x00])
        }
    }

    @Test func theReadersOwnCommandIsNotTheCards() throws {
        try serve(.init(identifier: [0x04, 0x05])) { reader, _, _, _ in
            let connection = try reader.accept()
            #expect(try connection.command([0xFF, 0xCA, 0x00, 0x00, 0x00]) == [0x04, 0x05, 0x90, 0x00])
            #expect(try connection.command([0xFF, 0xCA, 0x01, 0x00, 0x00]) == [0xFF, 0xCA, 0x01, 0x00, 0x00, 0x90, 0x00])
        }
    }

    @Test func stopEndsAnIdleLinkAtOnce() throws {
        try serve { reader, link, card, events in
            let connection = try reader.accept()
            _ = try connection.command([0x00, 0xA4])
            let start = ContinuousClock.now
            link.stop()
            #expect(ContinuousClock.now - start < .seconds(2))
            #expect(connection.isAtEnd)
            #expect(card.power.withLock { $0.last } == "off")
            wait { events.withLock { $0.last } == .ended(.stopped) }
        }
    }

    @Test func stopEndsASilenceAndAWaitForTheCard() throws {
        try serve(.init(silence: .seconds(600))) { reader, link, _, _ in
            let connection = try reader.accept()
            connection.write([0x00, 0x02, 0x00, 0x20])
            usleep(50_000)
            let start = ContinuousClock.now
            link.stop()
            #expect(ContinuousClock.now - start < .seconds(2))
        }
        try serve(.init(afterRemoval: .whenTold)) { reader, link, _, events in
            let connection = try reader.accept()
            connection.write([0x00, 0x02, 0x00, 0x30])
            wait { events.withLock { $0.contains(.removed) } }
            link.stop()
            wait { events.withLock { $0.last } == .ended(.stopped) }
        }
    }

    @Test func aCardThatLeavesWithItsAnswerComesBackWhenItSays() throws {
        try serve { reader, _, card, events in
            do {
                let connection = try reader.accept()
                #expect(try connection.command([0x00, 0x50]) == [0x00, 0x50, 0x90, 0x00])
                #expect(connection.isAtEnd)
            }
            let connection = try reader.accept()
            #expect(try connection.command([0x00, 0xA4]) == [0x00, 0xA4, 0x90, 0x00])
            #expect(card.power.withLock { $0 } == ["off"])
            wait { events.withLock { $0 } == [.inserted, .removed, .inserted] }
        }
    }

    @Test func aCardThatWasTakenOutComesBackWhenTold() throws {
        try serve(.init(afterRemoval: .whenTold)) { reader, link, card, events in
            do {
                let connection = try reader.accept()
                _ = try connection.command([0x00, 0xA4])
                link.remove()
                #expect(connection.isAtEnd)
            }
            wait { events.withLock { $0.last } == .removed }
            #expect(card.power.withLock { $0.last } == "off")
            link.insert()
            let connection = try reader.accept()
            #expect(try connection.command([0x00, 0xA4]) == [0x00, 0xA4, 0x90, 0x00])
            #expect(events.withLock { $0 } == [.inserted, .removed, .inserted])
        }
    }

    @Test func aCardThatLeavesByItselfComesBackAfterItsTime() throws {
        try serve(.init(afterRemoval: .after(.milliseconds(30)))) { reader, _, _, events in
            let first = try reader.accept()
            first.write([0x00, 0x02, 0x00, 0x30])
            #expect(first.isAtEnd)
            let second = try reader.accept()
            #expect(try second.command([0x00, 0xA4]) == [0x00, 0xA4, 0x90, 0x00])
            #expect(events.withLock { $0 } == [.inserted, .removed, .inserted])
        }
    }

    @Test(arguments: [0x20, 0x40] as [UInt8])
    func aSilentCardIsConnectedAgainWithoutLosingItsPower(_ ins: UInt8) throws {
        try serve(.init(silence: .milliseconds(20))) { reader, _, card, events in
            let first = try reader.accept()
            first.write([0x00, 0x01, 0x01])
            first.write([0x00, 0x02, 0x00, ins])
            #expect(first.isAtEnd)
            let second = try reader.accept()
            #expect(try second.command([0x00, 0xA4]) == [0x00, 0xA4, 0x90, 0x00])
            #expect(card.power.withLock { $0 } == ["on"])
            #expect(events.withLock { $0 } == [.inserted, .silent, .inserted])
        }
    }

    @Test func anAnswerThatDoesNotFitEndsTheLinkAndIsNotCut() throws {
        try serve { reader, _, _, events in
            let connection = try reader.accept()
            connection.write([0x00, 0x02, 0x00, 0x10])
            #expect(connection.isAtEnd)
            wait { events.withLock { $0.last } == .ended(.failed(LinkError(.answerTooLong, detail: ""))) }
        }
    }

    @Test func aPortThatAsksNothingIsReported() throws {
        try serve(.init(patience: .milliseconds(20))) { _, _, _, events in
            wait { events.withLock { $0.contains(.notServed) } }
        }
    }

    @Test func theReadersEndIsTold() throws {
        try serve { reader, _, _, events in
            do { _ = try reader.accept() }
            wait { events.withLock { $0.last } == .ended(.readerClosed) }
        }
    }

    @Test func aPortThatNobodyHasIsNotReachable() throws {
        let port = try FakeReader().port
        let link = VPCDLink(card: Card(), port: port)
        #expect(throws: LinkError(.notReachable, detail: "")) { try link.start() }
        #expect(throws: LinkError(.notReachable, detail: "")) { try link.run() }
    }

    @Test func oneLinkServesOnce() throws {
        try serve { _, link, _, _ in
            #expect(throws: LinkError(.servesAlready, detail: "")) { try link.start() }
        }
    }
}
