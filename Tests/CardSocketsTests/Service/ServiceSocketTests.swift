// SPDX-License-Identifier: MIT

import Foundation
import Octets
import Synchronization
import TestSupport
import Testing

@testable import CardSockets

/// A client's end of the socket, without libpcsclite.
private final class RawClient {
    struct Failure: Error {}
    let descriptor: Int32

    init(_ path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard connected == 0 else { throw Failure() }
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    func write(_ octets: [UInt8]) { _ = send(descriptor, octets, octets.count, Int32(MSG_NOSIGNAL)) }

    func read(_ count: Int) throws -> [UInt8] {
        var octets = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let more = octets.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress?.advanced(by: filled), count - filled, 0) }
            guard more > 0 else { throw Failure() }
            filled += more
        }
        return octets
    }

    /// 0 when the other side closed in order; -1 with errno when it broke the connection.
    func end() -> Int {
        var octet: UInt8 = 0
        return recv(descriptor, &octet, 1, 0)
    }

    func context() throws -> UInt32 {
        write(ServiceBench.message(.version, [4, 4, 0]) + ServiceBench.message(.establishContext, [2, 0, 0]))
        return ServiceStruct(try read(24).suffix(12))[4]
    }

    func connect(_ context: UInt32, name: String = ServiceBench.name) throws -> UInt32 {
        write(ServiceBench.connectMessage(context, share: 2, protocols: 3, name: name))
        let reply = ServiceStruct(try read(152))
        guard reply[148] == 0 else { throw Failure() }
        return reply[140]
    }

    func transmit(_ handle: UInt32, _ command: [UInt8]) throws -> (code: UInt32, octets: [UInt8]) {
        write(ServiceBench.transmitMessage(handle, command))
        let reply = ServiceStruct(try read(32))
        return (reply[28], try read(reply[28] == 0 ? Int(reply[24]) : 0))
    }
}

/// A command comes back with `9000`; INS 88 waits for ``release()``; INS 30 takes the card out.
private final class SlowCard: CardEnd, Sendable {
    let atr: [UInt8] = ServiceBench.atr
    private let gate = DispatchSemaphore(value: 0)
    let isThinking = Mutex(false)
    let log = Mutex<[String]>([])

    func release() { gate.signal() }
    func powerOn() { log.withLock { $0.append("on") } }
    func powerOff() { log.withLock { $0.append("off") } }

    func exchange(_ command: [UInt8]) -> CardAnswer {
        if command.count > 1, command[1] == 0x88 {
            isThinking.withLock { $0 = true }
            gate.wait()
        }
        return command.count > 1 && command[1] == 0x30 ? .removed : .response(command + [0x90, 0x00])
    }
}

@Suite struct ServiceSocketTests {
    private func serve(_ options: ServiceSocket.Options = .init(), _ body: (String, ServiceSocket, SlowCard) throws -> Void)
        throws
    {
        let folder = try TemporaryFolder()
        let card = SlowCard()
        let other = SlowCard()
        let service = ServiceSocket(
            readers: [
                .init(name: ServiceBench.name, card: card), .init(name: "Other 00 00", card: other, identifier: [1, 2, 3, 4]),
            ], path: folder("s"), options: options)
        try service.start()
        defer {
            card.release()
            service.stop()
        }
        try body(folder("s"), service, card)
    }

    private func wait(_ place: SourceLocation = #_sourceLocation, until condition: () -> Bool) {
        let deadline = ContinuousClock.now + .seconds(20)
        while !condition(), ContinuousClock.now < deadline { usleep(1_000) }
        #expect(condition(), sourceLocation: place)
    }

    @Test func onlyTheOwnerReachesTheSocketAndItGoesWithTheService() throws {
        let folder = try TemporaryFolder()
        let service = ServiceSocket(readers: [.init(name: "Empty", card: nil)], path: folder("s"))
        try service.start()
        var information = stat()
        #expect(stat(folder("s"), &information) == 0)
        #expect(information.st_mode & 0o7777 == 0o600)
        let second = ServiceSocket(readers: [], path: folder("s"))
        #expect(throws: LinkError(.notListening, detail: "")) { try second.start() }
        #expect(access(folder("s"), F_OK) == 0)
        service.stop()
        #expect(access(folder("s"), F_OK) != 0)
        service.stop()
        #expect(throws: LinkError(.servesAlready, detail: "")) { try service.start() }
    }

    @Test func aPathThatClientsWouldCutIsRefused() {
        let service = ServiceSocket(readers: [], path: "/tmp/" + String(repeating: "x", count: 103))
        #expect(throws: LinkError(.notListening, detail: "")) { try service.start() }
    }

    @Test func aCommandReachesItsCardAndTheReaderKnowsTheUID() throws {
        try serve { path, _, card in
            let client = try RawClient(path)
            let context = try client.context()
            #expect(try client.transmit(try client.connect(context), [0, 1, 2, 3]).octets == [0, 1, 2, 3, 0x90, 0])
            let other = try client.connect(context, name: "Other 00 00")
            #expect(try client.transmit(other, [0xFF, 0xCA, 0, 0, 0]).octets == [1, 2, 3, 4, 0x90, 0])
            #expect(card.log.withLock { $0 } == ["on"])
        }
    }

    @Test func oneClientsSlowCardDoesNotHoldTheOthers() throws {
        try serve { path, _, card in
            let slow = try RawClient(path)
            let handle = try slow.connect(try slow.context())
            slow.write(ServiceBench.transmitMessage(handle, [0, 0x88, 0, 0]))
            wait { card.isThinking.withLock { $0 } }
            let quick = try RawClient(path)
            let other = try quick.connect(try quick.context(), name: "Other 00 00")
            #expect(try quick.transmit(other, [0, 1, 0, 0]).code == 0)
            card.release()
            #expect(try slow.read(32 + 6).suffix(2) == [0x90, 0])
        }
    }

    @Test func aClientThatDiesInMidTransmitLeavesTheServerWell() throws {
        try serve { path, _, card in
            do {
                let dying = try RawClient(path)
                let handle = try dying.connect(try dying.context())
                dying.write(ServiceBench.message(.beginTransaction, [handle, 0]))
                _ = try dying.read(8)
                dying.write(ServiceBench.transmitMessage(handle, [0, 0x88, 0, 0]))
                wait { card.isThinking.withLock { $0 } }
            }
            let next = try RawClient(path)
            let context = try next.context()
            next.write(ServiceBench.connectMessage(context, share: 2, protocols: 3))
            card.release()
            let handle = ServiceStruct(try next.read(152))[140]
            #expect(try next.transmit(handle, [0, 1, 0, 0]).octets == [0, 1, 0, 0, 0x90, 0])
            // The lock's owner left a reset behind.
            #expect(card.log.withLock { $0 } == ["on", "on"])
        }
    }

    @Test func halfAMessageAndAnEndAreForgotten() throws {
        try serve { path, _, _ in
            for cut in [1, 7, 8, 9, 30] {
                let client = try RawClient(path)
                client.write(Array(ServiceBench.transmitMessage(5, [0, 1, 2, 3]).prefix(cut)))
            }
            let client = try RawClient(path)
            #expect(try client.transmit(try client.connect(try client.context()), [1, 1]).code == 0)
        }
    }

    @Test func aViolationIsClosedInOrderWhateverStandsUnread() throws {
        try serve { path, _, _ in
            let client = try RawClient(path)
            client.write(ServiceStruct(0, 0x99).octets + [UInt8](repeating: 1, count: 100_000))
            // Not broken: libpcsclite would call that a violation of security.
            #expect(client.end() == 0)
        }
    }

    @Test func aClientThatNeverReadsIsNotReadWithoutEnd() throws {
        try serve { path, _, _ in
            let client = try RawClient(path)
            _ = fcntl(client.descriptor, F_SETFL, O_NONBLOCK)
            let tables = (0..<4_096).flatMap { _ in ServiceBench.message(.readerTable, []) }
            var taken = 0
            // What the kernel and the service hold is bounded: the service stops reading.
            for _ in 0..<200 {
                let count = send(client.descriptor, tables, tables.count, Int32(MSG_NOSIGNAL))
                if count > 0 { taken += count } else { usleep(1_000) }
            }
            #expect(taken < 2_000_000)
            let other = try RawClient(path)
            #expect(try other.context() != 0)
        }
    }

    @Test func removalAndReturnAreSeenByWhoWaits() throws {
        try serve { path, service, _ in
            let client = try RawClient(path)
            _ = try client.context()
            client.write(ServiceBench.message(.waitForChange, []))
            #expect(ServiceStruct(try client.read(2_944))[132] == 0x34)
            service.remove()
            #expect(try client.read(8) == [UInt8](repeating: 0, count: 8))
            client.write(ServiceBench.message(.waitForChange, []))
            #expect(ServiceStruct(try client.read(2_944))[132] == 0x02)
            service.insert()
            #expect(try client.read(8) == [UInt8](repeating: 0, count: 8))
        }
    }

    @Test func theCardLosesItsPowerAfterTheGrace() throws {
        try serve(.init(grace: .milliseconds(1))) { path, _, card in
            let client = try RawClient(path)
            let context = try client.context()
            let handle = try client.connect(context)
            client.write(ServiceBench.message(.disconnect, [handle, 0, 0]))
            _ = try client.read(12)
            wait { card.log.withLock { $0 } == ["on", "off"] }
            _ = try client.connect(context)
            #expect(card.log.withLock { $0 } == ["on", "off", "on"])
        }
    }

    @Test func twoHundredAreServedAndTheNextWaitsForAPlace() throws {
        try serve { path, _, _ in
            var clients = try (0..<ServiceLimit.each).map { _ in try RawClient(path) }
            for client in clients { #expect(try client.context() != 0) }
            let waiting = try RawClient(path)
            waiting.write(ServiceBench.message(.version, [4, 4, 0]))
            clients.removeFirst()
            #expect(try waiting.read(12).count == 12)
        }
    }
}

@Suite struct HexLinesTests {
    @Test func aLineOfHexIsACommandAndItsAnswerIsALine() {
        var lines = HexLines(card: SlowCard())
        #expect(lines.answer("00a4 0400") == "00A404009000")
        #expect(lines.answer("  ") == nil)
        #expect(lines.answer("# a comment") == nil)
        #expect(lines.answer("00B0 # behind it") == "00B09000")
        #expect(lines.answer("!atr") == "3B80800101")
    }

    @Test func whatIsNoAnswerIsSaid() {
        var lines = HexLines(card: SlowCard())
        #expect(lines.answer("0") == "!error an odd number of hexadecimal digits")
        #expect(lines.answer("0x")?.hasPrefix("!error not a hexadecimal digit") == true)
        #expect(lines.answer("!what")?.hasPrefix("!error unknown word") == true)
        #expect(lines.answer(String(repeating: "0", count: 200_000))?.hasPrefix("!error") == true)
        #expect(lines.answer("0030") == "!removed")
        #expect(lines.answer("00A4") == "!removed")
        #expect(lines.answer("!atr") == "!removed")
        #expect(lines.answer("!reset") == "3B80800101")
        #expect(lines.answer("00A4") == "00A49000")
        #expect(lines.answer("!remove") == "!removed")
        #expect(lines.answer("!insert") == "3B80800101")
    }
}
