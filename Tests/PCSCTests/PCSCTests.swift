// SPDX-License-Identifier: MIT

import CardCrypto
import CardSockets
import Foundation
import TagTransport
import TestSupport
import Testing

@testable import PCSC

extension PrivatePCSCD {
    func waitUntil(_ slot: Int, hasCard: Bool) async throws {
        let context = try await PCSCContext.open()
        let deadline = ContinuousClock.now + .seconds(20)
        while ContinuousClock.now < deadline {
            let statuses = try await context.readerStatuses()
            guard let status = statuses.first(where: { $0.reader == readers[slot] }) else {
                try await Task.sleep(for: .milliseconds(50))
                continue
            }
            if status.hasCard == hasCard { return }
            _ = try? await context.statusChange(from: [status], timeout: .seconds(5))
        }
        throw ProcessRunner.Failure(description: "slot \(slot): card \(hasCard ? "not seen" : "still there")")
    }
}

@Suite(.enabled(if: PrivatePCSCD.isAvailable, Comment(rawValue: PrivatePCSCD.reason)))
struct PCSCTests {
    private func expect(
        _ expected: TransportError.Case, _ codes: Set<UInt32>, _ place: SourceLocation = #_sourceLocation,
        _ body: () async throws -> Void
    ) async {
        do {
            try await body()
            Issue.record("no error, \(expected) was expected", sourceLocation: place)
        } catch let error as TransportError {
            #expect(error.case == expected, "\(error)", sourceLocation: place)
            #expect(error.code.map { codes.contains($0) } ?? codes.isEmpty, "\(error)", sourceLocation: place)
        } catch {
            Issue.record("\(error)", sourceLocation: place)
        }
    }

    @Test func bothSlotsOfTheVirtualReaderAreListed() async throws {
        try await PrivatePCSCD.use { service in
            let context = try await PCSCContext.open()
            #expect(try await context.readers() == service.readers)
        }
    }

    @Test func shortAndExtendedCommandsPassWhole() async throws {
        try await PrivatePCSCD.use { service in
            let card = TestCard()
            try await service.withCard(card) { _ in
                let context = try await PCSCContext.open()
                let transport = try await PCSCTransport.connect(context, to: service.readers[0])
                #expect(transport.protocolName == "T=1")
                #expect(Array(transport.atr) == card.atr)
                #expect(transport.identifier.isEmpty)
                let select = CommandAPDU(cla: 0, ins: 0xA4, p1: 4, p2: 0, data: Data([0x3F, 0x00]))
                #expect(try await transport.sendAPDU(select) == ResponseAPDU(statusWord: 0x9000))
                let long = try CommandAPDU(cla: 0x80, ins: 0x10, p1: 0x9C, p2: 0x40, ne: 65_536)
                let answer = try await transport.sendAPDU(long)
                #expect(answer.data.count == 40_000)
                #expect(answer.data.last == UInt8(truncatingIfNeeded: 39_999))
                // A command of 65,012 octets; vpcd carries 65,535 in one message.
                let big = try CommandAPDU(
                    cla: 0x00, ins: 0xD6, p1: 0, p2: 0, data: Data(repeating: 0x5A, count: 65_003), ne: 65_536)
                #expect(try await transport.sendAPDU(big).isSuccess)
                #expect(card.commands == [select.octets, long.octets, big.octets])
                try await transport.card.disconnect()
            }
        }
    }

    @Test func theIdentifierOfAContactlessCardIsAskedOfTheReaderOnly() async throws {
        try await PrivatePCSCD.use { service in
            let card = TestCard(atr: TestCard.contactlessATR)
            let uid: [UInt8] = [0x04, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66]
            try await service.withCard(card, options: VPCDLink.Options(identifier: uid)) { _ in
                let transport = try await PCSCTransport.connect(try await PCSCContext.open(), to: service.readers[0])
                #expect(Array(transport.identifier) == uid)
                #expect(transport.protocolName == "T=CL")
                #expect(card.commands.isEmpty)
            }
        }
    }

    @Test func aRefusedIdentifierIsEmpty() async throws {
        try await PrivatePCSCD.use { service in
            // The card answers 9000 without data: no UID.
            let card = TestCard(atr: TestCard.contactlessATR)
            try await service.withCard(card) { _ in
                let transport = try await PCSCTransport.connect(try await PCSCContext.open(), to: service.readers[0])
                #expect(transport.identifier.isEmpty)
                #expect(card.commands == [[0xFF, 0xCA, 0x00, 0x00, 0x00]])
            }
        }
    }

    @Test func aResetReachesTheCardAndOtherConnectionsAreTold() async throws {
        try await PrivatePCSCD.use { service in
            let card = TestCard()
            try await service.withCard(card) { _ in
                let context = try await PCSCContext.open()
                let one = try await PCSCTransport.connect(context, to: service.readers[0])
                let other = try await PCSCTransport.connect(context, to: service.readers[0])
                let before = card.powerOns
                #expect(Array(try await one.resetCard()) == card.atr)
                #expect(card.powerOns > before)
                await expect(.tagReset, [0x8010_0068]) {
                    _ = try await other.sendAPDU(CommandAPDU(cla: 0, ins: 0x84, p1: 0, p2: 0, le: 8))
                }
                try await other.card.reconnect()
                _ = try await other.sendAPDU(CommandAPDU(cla: 0, ins: 0x84, p1: 0, p2: 0, le: 8))
            }
        }
    }

    // e-Contract/commons-eid#12, pyscard#63, bluetech/pcsc-rust#19: removal in mid-read.
    @Test func aRemovalInMidExchangeLosesTheConnection() async throws {
        try await PrivatePCSCD.use { service in
            let removed: Set<UInt32> = [0x8010_0016, 0x8010_0069]
            try await service.withCard(TestCard(), options: .init(afterRemoval: .after(.seconds(4)))) { _ in
                let context = try await PCSCContext.open()
                let transport = try await PCSCTransport.connect(context, to: service.readers[0])
                await expect(.tagConnectionLost, removed) {
                    _ = try await transport.sendAPDU(CommandAPDU(cla: 0x80, ins: 0x30, p1: 0, p2: 0))
                }
                // Whether pcscd has seen the empty slot by now or not, the connection stays lost.
                await expect(.tagConnectionLost, removed) {
                    _ = try await transport.sendAPDU(CommandAPDU(cla: 0, ins: 0x84, p1: 0, p2: 0, le: 8))
                }
                try await service.waitUntil(0, hasCard: false)
                try await service.waitUntil(0, hasCard: true)
                await expect(.tagConnectionLost, [0x8010_0069]) {
                    _ = try await transport.sendAPDU(CommandAPDU(cla: 0, ins: 0x84, p1: 0, p2: 0, le: 8))
                }
                let again = try await PCSCTransport.connect(context, to: service.readers[0])
                #expect(try await again.sendAPDU(CommandAPDU(cla: 0, ins: 0x84, p1: 0, p2: 0, le: 8)).isSuccess)
            }
        }
    }

    // vpcd cannot say that a card is silent: the exchange ends as a success without octets, which must not pass as one.
    @Test(arguments: [0x20, 0x40] as [UInt8])
    func aSilentCardEndsTheExchangeAndStaysInItsSlot(_ ins: UInt8) async throws {
        try await PrivatePCSCD.use { service in
            try await service.withCard(TestCard(), options: .init(silence: .milliseconds(300))) { _ in
                let context = try await PCSCContext.open()
                let transport = try await PCSCTransport.connect(context, to: service.readers[0])
                let error = await #expect(throws: TransportError.self) {
                    _ = try await transport.sendAPDU(CommandAPDU(cla: 0x80, ins: ins, p1: 0, p2: 0))
                }
                // Which of the two depends on whether vpcd looked at the slot while the link was made again.
                #expect(error?.case == .malformedResponse || error?.case == .tagConnectionLost, "\(error as Any)")
                let deadline = ContinuousClock.now + .seconds(20)
                var answered = false
                while !answered, ContinuousClock.now < deadline {
                    try await service.waitUntil(0, hasCard: true)
                    if let again = try? await PCSCTransport.connect(context, to: service.readers[0]) {
                        answered = (try? await again.sendAPDU(CommandAPDU(cla: 0, ins: 0x84, p1: 0, p2: 0)).isSuccess) ?? false
                    }
                    if !answered { try await Task.sleep(for: .milliseconds(50)) }
                }
                #expect(answered)
            }
        }
    }

    // mwalle/neopgp#3: cheap readers give nothing for an answer of 256 octets.
    @Test func anAnswerWithoutAStatusWordIsMalformedNeverEmpty() async throws {
        try await PrivatePCSCD.use { service in
            try await service.withCard(TestCard()) { _ in
                let transport = try await PCSCTransport.connect(try await PCSCContext.open(), to: service.readers[0])
                await expect(.malformedResponse, []) {
                    _ = try await transport.sendAPDU(CommandAPDU(cla: 0x80, ins: 0x50, p1: 0, p2: 0))
                }
            }
        }
    }

    @Test func anExclusiveConnectionShutsOthersOut() async throws {
        try await PrivatePCSCD.use { service in
            try await service.withCard(TestCard()) { _ in
                let context = try await PCSCContext.open()
                let alone = try await context.connect(to: service.readers[0], sharing: .exclusive)
                await expect(.sharingViolation, [0x8010_000B]) { _ = try await context.connect(to: service.readers[0]) }
                let status = try await context.readerStatuses().first
                #expect(status?.flags.contains(.exclusive) == true)
                try await alone.disconnect()
                _ = try await context.connect(to: service.readers[0])
            }
        }
    }

    @Test func aTransactionKeepsOthersOutAndAWaitForItCanBeGivenUp() async throws {
        try await PrivatePCSCD.use { service in
            let card = TestCard()
            try await service.withCard(card) { _ in
                let context = try await PCSCContext.open()
                let one = try await context.connect(to: service.readers[0])
                let other = try await context.connect(to: service.readers[0])
                try await one.withTransaction {
                    let waiting = Task { try await other.beginTransaction() }
                    try await Task.sleep(for: .milliseconds(150))
                    waiting.cancel()
                    await #expect(throws: CancellationError.self) { try await waiting.value }
                    _ = try await one.transmit([0x00, 0x84, 0x00, 0x00, 0x08])
                }
                // The abandoned transaction, had it come, would shut this one out for ever.
                let third = try await context.connect(to: service.readers[0])
                try await third.withTransaction { _ = try await third.transmit([0x00, 0x84, 0x00, 0x00, 0x08]) }
                #expect(card.commands.count == 2)
            }
        }
    }

    @Test func aWaitForAChangeEndsWhenItsTaskIsCancelled() async throws {
        try await PrivatePCSCD.use { service in
            try await service.waitUntil(0, hasCard: false)
            try await service.waitUntil(1, hasCard: false)
            let context = try await PCSCContext.open()
            let known = try await context.readerStatuses()
            let waiting = Task { try await context.statusChange(from: known) }
            try await Task.sleep(for: .milliseconds(100))
            let start = ContinuousClock.now
            waiting.cancel()
            await expect(.cancelled, [0x8010_0002]) { _ = try await waiting.value }
            #expect(ContinuousClock.now - start < .seconds(2))
            // Cancelled before it begins to wait.
            let early = Task { try await context.statusChange(from: known) }
            early.cancel()
            await expect(.cancelled, [0x8010_0002]) { _ = try await early.value }
            await expect(.timeout, [0x8010_000A]) {
                _ = try await context.statusChange(from: known, timeout: .milliseconds(20))
            }
        }
    }

    @Test func manyWaitsLeaveTheTasksOfTheProgramRunning() async throws {
        try await PrivatePCSCD.use { service in
            try await service.waitUntil(0, hasCard: false)
            try await service.waitUntil(1, hasCard: false)
            let context = try await PCSCContext.open()
            let known = try await context.readerStatuses()
            let waits = (0..<8).map { _ in Task { try await context.statusChange(from: known) } }
            try await Task.sleep(for: .milliseconds(100))
            #expect(try await context.readers().count == 2)
            waits.forEach { $0.cancel() }
            for wait in waits { await expect(.cancelled, [0x8010_0002]) { _ = try await wait.value } }
        }
    }

    @Test func twoSlotsAreUsedAtOnce() async throws {
        try await PrivatePCSCD.use { service in
            let cards = [TestCard(), TestCard(atr: [0x3B, 0x80, 0x01, 0x81])]
            try await service.withCard(cards[0], slot: 0) { _ in
                try await service.withCard(cards[1], slot: 1) { _ in
                    let context = try await PCSCContext.open()
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for slot in 0..<2 {
                            group.addTask {
                                let transport = try await PCSCTransport.connect(context, to: service.readers[slot])
                                for number in 0..<200 {
                                    let command = CommandAPDU(
                                        cla: 0x80, ins: 0x10, p1: 0, p2: UInt8(number), le: 0
                                    )
                                    let answer = try await transport.sendAPDU(command)
                                    #expect(answer.data.count == number)
                                }
                            }
                        }
                        try await group.waitForAll()
                    }
                    #expect(cards.map { $0.commands.count } == [200, 200])
                }
            }
        }
    }

    @Test func readerEventsTellOfCardsComingInUseAndLeaving() async throws {
        try await PrivatePCSCD.use { service in
            try await service.waitUntil(0, hasCard: false)
            try await service.waitUntil(1, hasCard: false)
            let context = try await PCSCContext.open()
            var events = try context.readerEvents().makeAsyncIterator()
            var added: [String] = []
            while added.count < 2, let event = await events.next() {
                if case .readerAdded(let status) = event { added.append(status.reader) }
            }
            #expect(added == service.readers)
            let card = TestCard()
            var inUse = false
            try await service.withCard(card) { _ in
                #expect(await events.next() == .cardInserted(reader: service.readers[0], atr: card.atr))
                let connection = try await context.connect(to: service.readers[0])
                while !inUse, let event = await events.next() {
                    if case .statusChanged(let status) = event { inUse = status.flags.contains(.inUse) }
                }
                try await connection.disconnect()
            }
            #expect(inUse)
            var removed = false
            while !removed, let event = await events.next() {
                removed = event == .cardRemoved(reader: service.readers[0])
            }
            #expect(removed)
        }
    }

    @Test func aReaderWithoutTheControlCodeRefusesIt() async throws {
        try await PrivatePCSCD.use { service in
            try await service.withCard(TestCard()) { _ in
                let transport = try await PCSCTransport.connect(try await PCSCContext.open(), to: service.readers[0])
                await #expect(throws: TransportError.self) { try await transport.control(code: 0x4200_0001, data: Data([0xE0])) }
                let direct = try await PCSCContext.open().connect(to: service.readers[1], sharing: .direct)
                #expect(direct.activeProtocol == [])
                await expect(.unsupportedOperation, [0x8010_001F]) { _ = try await transport.card.attribute(.vendorName) }
            }
        }
    }

    @Test func nothingReachesAReaderWhereReadersAreForbidden() async throws {
        try await PrivatePCSCD.use { service in
            let card = TestCard()
            try await service.withCard(card) { _ in
                let context = try await PCSCContext.open()
                let transport = try await PCSCTransport.connect(context, to: service.readers[0])
                await CardEnvironment.with(CardEnvironment(readersAllowed: false)) {
                    let forbidden = TransportError.Case.readersForbidden
                    await expect(forbidden, []) { _ = try await PCSCContext.open() }
                    await expect(forbidden, []) { _ = try await context.readers() }
                    await expect(forbidden, []) { _ = try await context.readerStatuses() }
                    await expect(forbidden, []) { _ = try await context.statusChange(from: []) }
                    await expect(forbidden, []) { _ = try context.readerEvents() }
                    await expect(forbidden, []) { _ = try await context.connect(to: service.readers[0]) }
                    await expect(forbidden, []) { _ = try await transport.sendAPDU(CommandAPDU(cla: 0, ins: 0x84, p1: 0, p2: 0)) }
                    await expect(forbidden, []) { _ = try await transport.send(Data([0x60])) }
                    await expect(forbidden, []) { _ = try await transport.resetCard() }
                    await expect(forbidden, []) { _ = try await transport.removeCard() }
                    await expect(forbidden, []) { _ = try await transport.control(code: 1, data: Data()) }
                    await expect(forbidden, []) { try await transport.card.beginTransaction() }
                    await expect(forbidden, []) { try await transport.card.disconnect() }
                    await expect(forbidden, []) { _ = try await transport.card.attribute(.atr) }
                }
                #expect(card.commands.isEmpty)
            }
        }
    }

    @Test func aServiceThatEndsIsToldToEverybodyWhoUsesIt() async throws {
        try await PrivatePCSCD.use { service in
            let card = TestCard()
            try await service.withCard(card) { _ in
                let context = try await PCSCContext.open()
                let transport = try await PCSCTransport.connect(context, to: service.readers[0])
                let known = try await context.readerStatuses()
                var events = try context.readerEvents().makeAsyncIterator()
                _ = await events.next()
                let waiting = Task { try await context.statusChange(from: known) }
                try await Task.sleep(for: .milliseconds(100))
                try service.endService()
                defer { try? service.startAgain() }
                // Which code each call meets first is the library's affair; that it ends, and is no success, is ours.
                await #expect(throws: TransportError.self) { try await waiting.value }
                await #expect(throws: TransportError.self) {
                    try await transport.sendAPDU(CommandAPDU(cla: 0, ins: 0x84, p1: 0, p2: 0, le: 8))
                }
                await #expect(throws: TransportError.self) { try await context.readers() }
                var failed = false
                while !failed, let event = await events.next() {
                    if case .failed(let error) = event { failed = error.transportCase == .serviceUnavailable }
                }
                #expect(failed)
                await expect(.serviceUnavailable, [0x8010_001D]) { _ = try await PCSCContext.open() }
                #expect(ServiceCall.ask(service.socketPath) == .nothingThere)
                try service.startAgain()
                #expect(try await PCSCContext.open().readers() == service.readers)
            }
        }
    }

    @Test func aSelectThroughTheServiceTakesFarLessThanADelayedAcknowledgement() async throws {
        try await PrivatePCSCD.use { service in
            try await service.withCard(TestCard()) { _ in
                let transport = try await PCSCTransport.connect(try await PCSCContext.open(), to: service.readers[0])
                let select = CommandAPDU(cla: 0, ins: 0xA4, p1: 4, p2: 0, data: Data([0x3F, 0x00]))
                var times: [Duration] = []
                for _ in 0..<500 {
                    let start = ContinuousClock.now
                    _ = try await transport.sendAPDU(select)
                    times.append(ContinuousClock.now - start)
                }
                // Nagle's rule against delayed acknowledgements costs 44 ms a command, every one; a busy machine slows some alone.
                #expect(times.sorted()[50] < .milliseconds(20))
            }
        }
    }
}
