// SPDX-License-Identifier: MIT

import Octets
import Testing

@testable import CardSockets

/// Sharing, transactions, resets and removals: what pcscd 1.9.9 answered.
@Suite struct ServiceSharingTests {
    /// Two clients with a shared handle each.
    private func pair(
        answer: @escaping (ServiceMachine.Work) -> ReaderAnswer? = ServiceBench.echo
    ) throws -> (bench: ServiceBench, first: UInt32, second: UInt32, contexts: [UInt32]) {
        let bench = ServiceBench(answer: answer)
        let contexts = [bench.client(1), bench.client(2)]
        let first = try #require(bench.connect(1, contexts[0]))
        let second = try #require(bench.connect(2, contexts[1]))
        #expect(first.code == 0 && second.code == 0 && first.handle != second.handle)
        return (bench, first.handle, second.handle, contexts)
    }

    // MARK: - Connect

    @Test func theFirstCheckThatFailsAnswersAConnect() {
        let bench = ServiceBench(readers: [ServiceBench.name, "Empty 00 00"])
        let context = bench.client(1)
        #expect(bench.connect(1, context, share: 9, protocols: 0)?.code == ServiceCode.protocolMismatch)
        #expect(bench.connect(1, context, share: 9)?.code == ServiceCode.invalidValue)
        #expect(bench.connect(1, context, share: 0)?.code == ServiceCode.invalidValue)
        #expect(bench.connect(1, context, name: "Other 00 00")?.code == ServiceCode.unknownReader)
        #expect(bench.connect(1, context, name: "")?.code == ServiceCode.unknownReader)
        #expect(bench.connect(1, context, name: "Empty 00 00")?.code == ServiceCode.noSmartcard)
        #expect(bench.connect(1, context, protocols: 8)?.code == ServiceCode.protocolMismatch)
        let direct = bench.connect(1, context, share: ShareMode.direct, protocols: 0, name: "Empty 00 00")
        #expect(direct?.code == 0)
        #expect(direct?.protocol == 0)
        #expect(bench.transmit(1, direct?.handle ?? 0, protocol: 0)?.code == ServiceCode.noSmartcard)
    }

    @Test func anExclusiveHandleShutsOthersOut() throws {
        let bench = ServiceBench()
        let contexts = [bench.client(1), bench.client(2)]
        let exclusive = try #require(bench.connect(1, contexts[0], share: ShareMode.exclusive))
        #expect(exclusive.code == 0)
        for share in [ShareMode.shared, ShareMode.exclusive, ShareMode.direct] {
            let refused = try #require(bench.connect(2, contexts[1], share: share))
            #expect(refused.code == ServiceCode.sharingViolation)
            #expect(refused.handle == 0)
        }
        #expect(bench.code(1, .disconnect, exclusive.handle, 0, 0) == 0)
        #expect(bench.connect(2, contexts[1])?.code == 0)
        #expect(bench.connect(1, contexts[0], share: ShareMode.exclusive)?.code == ServiceCode.sharingViolation)
    }

    @Test func aConnectWaitsForTheLock() throws {
        let (bench, first, _, contexts) = try pair()
        #expect(bench.code(1, .beginTransaction, first, 0) == 0)
        let third = bench.client(3)
        #expect(bench.connect(3, third) == nil)
        #expect(bench.code(1, .endTransaction, first, 0, 0) == 0)
        #expect(ServiceStruct(bench.sent[3] ?? [])[148] == 0)
        #expect(contexts.count == 2)
    }

    @Test func leavingExclusiveModeByReconnectDropsTheLock() throws {
        let bench = ServiceBench()
        let contexts = [bench.client(1), bench.client(2)]
        let handle = try #require(bench.connect(1, contexts[0], share: ShareMode.exclusive)).handle
        #expect(bench.code(1, .reconnect, handle, ShareMode.shared, 3, 0, 0, 0) == 0)
        #expect(bench.connect(2, contexts[1])?.code == 0)
        #expect(bench.code(1, .reconnect, handle, ShareMode.exclusive, 3, 0, 0, 0) == ServiceCode.sharingViolation)
    }

    // MARK: - Transactions

    @Test func transactionsNestAndBelongToTheHandle() throws {
        let (bench, first, second, _) = try pair()
        #expect(bench.code(1, .endTransaction, first, 0, 0) == ServiceCode.notTransacted)
        #expect(bench.code(1, .beginTransaction, first, 0) == 0)
        #expect(bench.code(1, .beginTransaction, first, 0) == 0)
        #expect(bench.code(2, .beginTransaction, second, 0) == ServiceCode.sharingViolation)
        #expect(bench.transmit(2, second)?.code == ServiceCode.sharingViolation)
        #expect(bench.code(2, .status, second, 0) == ServiceCode.sharingViolation)
        #expect(bench.code(2, .endTransaction, second, 1, 0) == ServiceCode.sharingViolation)
        #expect(bench.code(2, .control, second, 0x42000D48, 0, 300, 0, 0) == ServiceCode.sharingViolation)
        #expect(bench.code(1, .endTransaction, first, 0, 0) == 0)
        #expect(bench.code(2, .beginTransaction, second, 0) == ServiceCode.sharingViolation)
        #expect(bench.code(1, .endTransaction, first, 0, 0) == 0)
        #expect(bench.code(2, .beginTransaction, second, 0) == 0)
        #expect(bench.code(1, .endTransaction, first, 0, 0) == ServiceCode.sharingViolation)
    }

    @Test func anExclusiveHandleMayBeginAndEndInside() throws {
        let bench = ServiceBench()
        let context = bench.client(1)
        let handle = try #require(bench.connect(1, context, share: ShareMode.exclusive)).handle
        #expect(bench.code(1, .beginTransaction, handle, 0) == 0)
        #expect(bench.code(1, .endTransaction, handle, 0, 0) == 0)
        #expect(bench.code(1, .endTransaction, handle, 0, 0) == ServiceCode.notTransacted)
        #expect(bench.transmit(1, handle)?.code == 0)
    }

    @Test func anEndWithResetTellsItsOwnCallerToo() throws {
        let (bench, first, second, _) = try pair()
        #expect(bench.code(1, .beginTransaction, first, 0) == 0)
        #expect(bench.code(1, .endTransaction, first, 1, 0) == 0)
        #expect(bench.works.last == .reset)
        #expect(bench.code(1, .status, first, 0) == ServiceCode.resetCard)
        #expect(bench.transmit(2, second)?.code == ServiceCode.resetCard)
        #expect(bench.code(1, .reconnect, first, 2, 3, 0, 0, 0) == 0)
        #expect(bench.transmit(1, first)?.code == 0)
        // It stays with the other until that one reconnects, even without a reset.
        #expect(bench.code(2, .beginTransaction, second, 0) == ServiceCode.resetCard)
        #expect(bench.code(2, .reconnect, second, 2, 3, 0, 0, 0) == 0)
        #expect(bench.code(2, .beginTransaction, second, 0) == 0)
    }

    @Test(arguments: [(1, ServiceMachine.Work.reset), (2, .powerOff), (3, .eject)] as [(UInt32, ServiceMachine.Work)])
    func aDisconnectThatDoesMoreThanLeaveIsToldToTheOthers(_ case: (disposition: UInt32, work: ServiceMachine.Work)) throws {
        let (bench, first, second, contexts) = try pair()
        #expect(bench.code(1, .disconnect, first, `case`.disposition, 0) == 0)
        #expect(bench.works.last == `case`.work)
        #expect(bench.transmit(2, second)?.code == ServiceCode.resetCard)
        #expect(bench.connect(1, contexts[0])?.code == 0)
    }

    @Test func aDisconnectWithResetWaitsForAnothersLockAndOneThatLeavesDoesNot() throws {
        let (bench, first, second, contexts) = try pair()
        let third = try #require(bench.connect(2, contexts[1])).handle
        #expect(bench.code(1, .beginTransaction, first, 0) == 0)
        #expect(bench.code(2, .disconnect, third, 0, 0) == 0)
        #expect(bench.code(2, .disconnect, second, 1, 0) == nil)
        #expect(bench.code(1, .endTransaction, first, 0, 0) == 0)
        #expect(ServiceStruct(bench.sent[2] ?? [])[8] == 0)
        #expect(bench.sent[2]?.count == 12)
        #expect(bench.transmit(1, first)?.code == ServiceCode.resetCard)
    }

    @Test func unknownDispositionsAndInitializationsAreRefused() throws {
        let (bench, first, _, _) = try pair()
        #expect(bench.code(1, .disconnect, first, 4, 0) == ServiceCode.invalidValue)
        #expect(bench.code(1, .endTransaction, first, 4, 0) == ServiceCode.invalidValue)
        #expect(bench.code(1, .reconnect, first, 2, 3, 3, 0, 0) == ServiceCode.invalidValue)
        #expect(bench.code(1, .reconnect, first, 4, 3, 0, 0, 0) == ServiceCode.invalidValue)
        #expect(bench.code(1, .reconnect, first, 2, 0, 0, 0, 0) == ServiceCode.protocolMismatch)
        #expect(bench.code(1, .reconnect, first, 2, 1, 0, 0, 0) == ServiceCode.protocolMismatch)
        // A reset lets the protocol be chosen anew.
        #expect(bench.code(1, .reconnect, first, 2, 1, 1, 0, 0) == 0)
        #expect(bench.transmit(1, first, protocol: 1)?.code == 0)
    }

    // MARK: - Transmit

    @Test func anAnswerThatIsTooLongForItsRoomIsNotSentThoughTheCardHasExecuted() throws {
        // Card 1.9.9 with vpcd: 10 octets, room for 2.
        let bench = ServiceBench(numbers: [7, 0x582E_EF5A], answer: { _ in .octets([UInt8](repeating: 1, count: 10)) })
        let context = bench.client(1)
        let handle = try #require(bench.connect(1, context)).handle
        let message = ServiceBench.message(.transmit, [handle, 2, 16, 5, 3, 16, 2, 0], [0, 0x84, 0, 0, 8])
        let reply = bench.say(1, message)
        #expect(reply.count == 32)
        #expect(ServiceStruct(reply)[24] == 10)
        #expect(ServiceStruct(reply)[28] == ServiceCode.insufficientBuffer)
        #expect(bench.works.last == .transmit([0, 0x84, 0, 0, 8]))
    }

    @Test func theWrongProtocolIsRefusedWithoutAskingTheCard() throws {
        let bench = ServiceBench(numbers: [7, 0x582E_EF5A])
        let context = bench.client(1)
        let handle = try #require(bench.connect(1, context)).handle
        let reply = bench.say(1, ServiceBench.message(.transmit, [handle, 1, 16, 5, 3, 16, 0x11170, 0], [0, 0x84, 0, 0, 8]))
        #expect(
            Hex.encode(reply) == "5AEF2E58" + "01000000" + "10000000" + "05000000" + "03000000" + "10000000" + "00000000"
                + "0F001080")
        #expect(bench.works.isEmpty)
    }

    @Test func sixtyFourKilobytesPassBothWays() throws {
        let (bench, first, _, _) = try pair()
        let command = [UInt8](repeating: 0x5A, count: 65_535)
        let answer = try #require(bench.transmit(1, first, command))
        #expect(answer.code == 0)
        #expect(answer.octets.count == 65_537)
    }

    @Test func otherClientsGoOnWhileACardThinks() throws {
        let (bench, first, second, contexts) = try pair(answer: { work in
            if case .transmit(let command) = work, command[1] == 0x88 { return nil }
            return ServiceBench.echo(work)
        })
        #expect(bench.transmit(1, first, [0, 0x88, 0, 0]) == nil)
        #expect(bench.say(2, ServiceBench.message(.readerTable, [])).count == 2_944)
        #expect(bench.code(2, .status, second, 0) == 0)
        #expect(bench.transmit(2, second) == nil)
        let third = bench.client(3)
        #expect(bench.connect(3, third) == nil)
        bench.finish(.octets([0x90, 0x00]))
        #expect(bench.sent[1]?.suffix(2) == [0x90, 0x00])
        #expect(bench.sent[2]?.count == 32 + 6)
        #expect(bench.sent[3]?.count == 152)
        #expect(contexts.count == 2)
    }

    // MARK: - Ends

    @Test func aClientThatDiesInMidTransmitLeavesTheReaderWell() throws {
        let (bench, first, second, _) = try pair(answer: { work in
            if case .transmit(let command) = work, command[1] == 0x88 { return nil }
            return ServiceBench.echo(work)
        })
        #expect(bench.code(1, .beginTransaction, first, 0) == 0)
        #expect(bench.transmit(1, first, [0, 0x88, 0, 0]) == nil)
        bench.feed(.closed(1))
        #expect(bench.transmit(2, second) == nil)
        bench.finish(.octets([0x90, 0x00]))
        // It held the lock: the card was reset behind it, and the other is told.
        #expect(bench.works.suffix(1) == [.reset])
        #expect(ServiceStruct(bench.sent.removeValue(forKey: 2) ?? [])[28] == ServiceCode.resetCard)
        #expect(bench.sent[1] == nil)
        #expect(bench.code(2, .reconnect, second, 2, 3, 0, 0, 0) == 0)
        #expect(bench.transmit(2, second)?.code == 0)
        #expect(bench.machine.readers[0].sharing == 1)
    }

    @Test func aClientThatGoesWithoutALockLeavesTheCardAsItIs() throws {
        let (bench, _, second, contexts) = try pair()
        #expect(bench.code(1, .releaseContext, contexts[0], 0) == 0)
        #expect(bench.works.isEmpty)
        #expect(bench.transmit(2, second)?.code == 0)
    }

    @Test func aCardRestsAfterItsGraceAndAConnectWakesIt() throws {
        let bench = ServiceBench()
        let context = bench.client(1)
        let first = try #require(bench.connect(1, context)).handle
        bench.feed(.rested(reader: 0))
        #expect(bench.works.isEmpty)
        #expect(bench.code(1, .disconnect, first, 0, 0) == 0)
        #expect(bench.others.contains(.rest(reader: 0)))
        bench.feed(.rested(reader: 0))
        #expect(bench.works == [.powerOff])
        // The table shows nothing of it.
        #expect(ServiceStruct(bench.say(1, ServiceBench.message(.readerTable, [])).prefix(184))[132] == 0x34)
        #expect(bench.connect(1, context)?.code == 0)
        #expect(bench.works == [.powerOff, .powerOn])
    }

    // MARK: - Removal

    @Test func aRemovalIsToldUntilTheHandleReconnects() throws {
        let (bench, first, second, contexts) = try pair()
        #expect(bench.code(1, .beginTransaction, first, 0) == 0)
        bench.feed(.removed(reader: 0))
        #expect(bench.transmit(1, first)?.code == ServiceCode.removedCard)
        // The lock is gone with the card.
        #expect(bench.code(2, .status, second, 0) == ServiceCode.removedCard)
        #expect(bench.code(2, .reconnect, second, 2, 3, 0, 0, 0) == ServiceCode.noSmartcard)
        #expect(bench.connect(1, contexts[0])?.code == ServiceCode.noSmartcard)
        bench.feed(.inserted(reader: 0))
        #expect(bench.transmit(1, first)?.code == ServiceCode.removedCard)
        #expect(bench.code(1, .reconnect, first, 2, 3, 0, 0, 0) == 0)
        #expect(bench.transmit(1, first)?.code == 0)
        // The reader itself can be spoken to by a handle that has not.
        #expect(bench.code(2, .control, second, 0x42000D48, 0, 300, 0, 0) == 0)
    }

    @Test func aCardThatLeavesInMidExchangeIsGoneForEverybody() throws {
        let (bench, first, second, _) = try pair(answer: { work in
            if case .transmit = work { return .removed(ServiceCode.removedCard) }
            return ServiceBench.echo(work)
        })
        #expect(bench.transmit(1, first)?.code == ServiceCode.removedCard)
        #expect(bench.code(2, .status, second, 0) == ServiceCode.removedCard)
        #expect(bench.others.contains(.left(reader: 0)))
        #expect(ServiceStruct(bench.say(1, ServiceBench.message(.readerTable, [])).prefix(184))[132] == 2)
    }

    @Test func anErrorOfTheReaderGoesToItsCallerAlone() throws {
        let (bench, first, second, _) = try pair(answer: { work in
            if case .transmit(let command) = work, command[1] == 0x88 { return .failed(ServiceCode.notTransacted) }
            return ServiceBench.echo(work)
        })
        #expect(bench.transmit(1, first, [0, 0x88, 0, 0])?.code == ServiceCode.notTransacted)
        #expect(bench.transmit(1, first)?.code == 0)
        #expect(bench.transmit(2, second)?.code == 0)
    }

    // MARK: - Attributes and control

    @Test func attributesOfTheReaderAreAnswered() throws {
        let (bench, first, _, _) = try pair()
        func attribute(_ identifier: UInt32) -> (code: UInt32, octets: [UInt8]) {
            var message = ServiceBench.message(.getAttribute, [first, identifier])
            // As libpcsclite sends it: its code is preset, and its length is always 264.
            message += [UInt8](repeating: 0, count: 264) + ServiceStruct(264, 0x8010_001D).octets
            message.replaceSubrange(0..<4, with: ServiceStruct.octets(of: 280))
            let reply = ServiceStruct(bench.say(1, message))
            return (reply[276], Array(reply.octets.dropFirst(8).prefix(Int(reply[272]))))
        }
        #expect(attribute(0x0009_0303).octets == ServiceBench.atr)
        #expect(attribute(0x7FFF_0003).octets == Array(ServiceBench.name.utf8) + [0])
        #expect(attribute(0x1234_5678).code == ServiceCode.unsupportedFeature)
        #expect(attribute(0x1234_5678).octets.isEmpty)
    }

    @Test func aReaderWithoutFeaturesSaysSo() throws {
        let (bench, first, _, _) = try pair()
        #expect(bench.code(1, .control, first, 0x4200_0D48, 0, 300, 0, 0) == 0)
        #expect(bench.code(1, .control, first, 0x4200_0001, 0, 300, 0, 0) == ServiceCode.unsupportedFeature)
        #expect(bench.works.suffix(2) == [.control(0x4200_0D48, []), .control(0x4200_0001, [])])
    }
}
