// SPDX-License-Identifier: MIT

import Octets
import Testing

@testable import CardSockets

/// Waiting for changes: one notice for one wait, never before the table, never two.
@Suite struct ServiceWaitTests {
    private static let wait = ServiceBench.message(.waitForChange, [])
    private static let stop = ServiceBench.message(.stopWaiting, [])
    private static let notice = "0000000000000000"
    private static let cancelled = "0000000002001080"

    @Test(arguments: [4, 5] as [UInt32]) func aWaitIsAnsweredWithTheTableAndOneNotice(_ minor: UInt32) {
        let bench = ServiceBench()
        _ = bench.client(1, minor: minor)
        #expect(bench.say(1, Self.wait).count == 2_944)
        bench.feed(.removed(reader: 0))
        #expect(bench.taken(1) == Self.notice)
        bench.feed(.inserted(reader: 0))
        #expect(bench.taken(1) == "")
        // The notice was the answer to this.
        #expect(bench.say(1, Self.stop).isEmpty)
        #expect(bench.say(1, Self.wait).count == 2_944)
        #expect(Hex.encode(bench.say(1, Self.stop)) == Self.notice)
        bench.feed(.removed(reader: 0))
        #expect(bench.taken(1) == "")
    }

    @Test func aWaitOf46HasNoAnswerOfItsOwnAndNoNoticeBeforeItsTable() {
        let bench = ServiceBench()
        _ = bench.client(1, minor: 6)
        #expect(bench.say(1, Self.wait).isEmpty)
        bench.feed(.removed(reader: 0))
        #expect(bench.say(1, ServiceBench.message(.readerTableSize, [])) == [1, 0, 0, 0])
        bench.feed(.inserted(reader: 0))
        // The table shows what happened until now, so nothing more is told of it.
        let table = bench.say(1, ServiceBench.message(.readerTableArray, []))
        #expect(table.count == 184)
        #expect(ServiceStruct(table)[128] == 3)
        bench.feed(.removed(reader: 0))
        #expect(bench.taken(1) == Self.notice)
        #expect(bench.say(1, Self.stop).isEmpty)
    }

    @Test func aCancelBetweenAWaitOf46AndItsTableFollowsTheTable() {
        let bench = ServiceBench()
        let context = bench.client(1, minor: 6)
        bench.feed(.opened(2))
        bench.say(1, Self.wait)
        #expect(bench.code(2, .cancel, context, 0) == 0)
        #expect(bench.say(1, ServiceBench.message(.readerTableSize, [])).count == 4)
        let table = bench.say(1, ServiceBench.message(.readerTableArray, []))
        #expect(table.count == 184 + 8)
        #expect(Hex.encode(table.suffix(8)) == Self.cancelled)
        bench.feed(.removed(reader: 0))
        #expect(bench.taken(1) == "")
    }

    @Test func aCancelComesOverAConnectionThatSaidNoVersion() {
        // pcscd 1.9.9.
        let bench = ServiceBench(numbers: [0x5914_5C31])
        let context = bench.client(1)
        bench.say(1, Self.wait)
        bench.feed(.opened(2))
        #expect(context == 0x5914_5C31)
        #expect(Hex.encode(bench.say(2, ServiceBench.message(.cancel, [context, 0]))) == "315C145900000000")
        #expect(bench.taken(1) == Self.cancelled)
        // Nothing waits any more: success, as from 2.0.1 on.
        #expect(bench.code(2, .cancel, context, 0) == 0)
        #expect(bench.taken(1) == "")
        #expect(bench.code(2, .cancel, 1, 0) == ServiceCode.invalidHandle)
        #expect(bench.code(2, .cancel, 0, 0) == ServiceCode.invalidHandle)
    }

    @Test func aChangeOfTheNumberOfHandlesIsToldAndAResetIsNot() throws {
        let bench = ServiceBench()
        let context = bench.client(1)
        _ = bench.client(2)
        bench.say(2, Self.wait)
        let handle = try #require(bench.connect(1, context)).handle
        #expect(bench.taken(2) == Self.notice)
        bench.say(2, Self.wait)
        #expect(bench.code(1, .reconnect, handle, 2, 3, 1, 0, 0) == 0)
        #expect(bench.taken(2) == "")
        #expect(bench.code(1, .disconnect, handle, 0, 0) == 0)
        #expect(bench.taken(2) == Self.notice)
    }

    @Test func theCountOfReaderEventsIsAskedFor() {
        let bench = ServiceBench(readers: [ServiceBench.name, "Other 00 00"])
        _ = bench.client(1, minor: 5)
        #expect(Hex.encode(bench.say(1, ServiceBench.message(.readerEvents, []))) == "0200000000000000")
    }
}

/// Octets that no libpcsclite sends.
@Suite struct ServiceHostileTests {
    @Test(arguments: [0x00, 0x03, 0x0C, 0x0E, 0x18, 0xFFFF_FFFF] as [UInt32]) func anUnknownCommandEndsTheConnection(
        _ command: UInt32
    ) {
        let bench = ServiceBench()
        bench.feed(.opened(1))
        #expect(bench.say(1, ServiceStruct(0, command).octets).isEmpty)
        #expect(bench.closed == [1])
    }

    @Test func aStructOfAnotherSizeEndsTheConnection() {
        for size in [0, 11, 13, 0x7FFF_FFFF, 0xFFFF_FFFF] as [UInt32] {
            let bench = ServiceBench()
            bench.feed(.opened(1))
            bench.feed(.received(1, ServiceStruct(size, ServiceCommand.version.rawValue).octets))
            #expect(bench.closed == [1], "\(size)")
        }
    }

    @Test(arguments: [65_549, 0xFFFF_FFFF] as [UInt32]) func moreDataThanACommandHasEndsTheConnection(_ length: UInt32) throws {
        for control in [false, true] {
            let bench = ServiceBench()
            let context = bench.client(1)
            let handle = try #require(bench.connect(1, context)).handle
            let message =
                control
                ? ServiceBench.message(.control, [handle, 1, length, 0, 0, 0])
                : ServiceBench.message(.transmit, [handle, 2, 16, length, 3, 16, 258, 0])
            bench.feed(.received(1, message))
            #expect(bench.closed == [1])
            #expect(bench.machine.handles.isEmpty)
        }
    }

    @Test func theLongestCommandIsTaken() throws {
        let bench = ServiceBench(answer: { work in
            if case .transmit = work { return .octets([0x90, 0x00]) }
            return ServiceBench.echo(work)
        })
        let context = bench.client(1)
        let handle = try #require(bench.connect(1, context)).handle
        #expect(bench.transmit(1, handle, [UInt8](repeating: 1, count: 65_548))?.code == 0)
    }

    @Test func anothersHandleEndsTheConnection() throws {
        for command: ServiceCommand in [
            .status, .beginTransaction, .disconnect, .endTransaction, .reconnect, .transmit, .control,
        ] {
            let bench = ServiceBench()
            let context = bench.client(1)
            _ = bench.client(2)
            let handle = try #require(bench.connect(1, context)).handle
            let numbers = [handle] + [UInt32](repeating: 0, count: command.structSize / 4 - 1)
            bench.feed(.received(2, ServiceBench.message(command, numbers)))
            #expect(bench.closed == [2], "\(command)")
            #expect(bench.code(1, .status, handle, 0) == 0)
        }
    }

    @Test func theEmptyCommandIsNotShownToTheCard() throws {
        let bench = ServiceBench()
        let context = bench.client(1)
        let handle = try #require(bench.connect(1, context)).handle
        #expect(bench.transmit(1, handle, [])?.code == ServiceCode.invalidParameter)
        #expect(bench.works.isEmpty)
    }

    @Test func messagesThatComeOctetByOctetAndAllAtOnceAreTheSame() {
        func run(_ cut: Int) -> [UInt8] {
            let bench = ServiceBench(numbers: [77])
            bench.feed(.opened(1))
            let octets =
                ServiceBench.message(.version, [4, 4, 0]) + ServiceBench.message(.establishContext, [2, 0, 0])
                + ServiceBench.message(.readerTable, []) + ServiceBench.connectMessage(77, share: 2, protocols: 3)
                + ServiceBench.message(.releaseContext, [77, 0])
            var answered: [UInt8] = []
            for start in stride(from: 0, to: octets.count, by: cut) {
                answered += bench.say(1, Array(octets[start..<min(start + cut, octets.count)]))
            }
            return answered
        }
        let whole = run(10_000)
        #expect(whole.count == 12 + 12 + 2_944 + 152 + 8)
        #expect(run(1) == whole)
        #expect(run(7) == whole)
    }

    @Test func anyOctetsAtAllAreNoTrap() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let bench = ServiceBench(answer: { work in Bool.random() ? ServiceBench.echo(work) : .failed(1) })
            let context = bench.client(1)
            _ = bench.client(2)
            var handle = bench.connect(1, context)?.handle ?? 0
            for _ in 0..<20 where bench.closed.isEmpty {
                // Known commands, true handles and lengths now and then, so that the checks behind the first are met too.
                let command = ServiceCommand(rawValue: UInt32.random(in: 1...0x17, using: &generator)) ?? .readerTable
                var numbers = (0..<command.structSize / 4).map { _ in
                    Bool.random() ? UInt32.random(in: 0...4, using: &generator) : UInt32(truncatingIfNeeded: generator.next())
                }
                if !numbers.isEmpty { numbers[0] = command == .connect ? context : handle }
                var data: [UInt8] = []
                if let place = command.dataLengthPlace {
                    data = (0..<UInt8.random(in: 0...9)).map { $0 }
                    numbers[place / 4] = UInt32(data.count)
                }
                if command == .connect, Bool.random() {
                    let message = ServiceBench.connectMessage(context, share: .random(in: 0...4), protocols: .random(in: 0...7))
                    handle = ServiceStruct(bench.say(1, message))[140]
                    continue
                }
                bench.feed(.received(1, ServiceBench.message(command, numbers, data)))
                switch UInt8.random(in: 0...19) {
                case 0: bench.feed(.removed(reader: 0))
                case 1: bench.feed(.inserted(reader: 0))
                case 2: bench.feed(.rested(reader: 0))
                case 3: bench.feed(.received(2, (0..<40).map { _ in UInt8.random(in: 0...255) }))
                default: break
                }
            }
            bench.feed(.closed(1))
            bench.feed(.closed(2))
            // Whatever was said, nothing is left behind.
            #expect(bench.machine.handles.isEmpty)
            #expect(bench.machine.readers[0].sharing == 0)
            #expect(bench.machine.readers[0].owner == 0)
            #expect(bench.machine.readers[0].job == nil)
        }
    }

    @Test func moreHandlesThanAContextMayHaveAreRefused() {
        let bench = ServiceBench()
        let context = bench.client(1)
        for _ in 0..<ServiceLimit.each { #expect(bench.connect(1, context)?.code == 0) }
        #expect(bench.connect(1, context)?.code == ServiceCode.noMemory)
    }
}
