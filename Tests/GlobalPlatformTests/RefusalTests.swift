// SPDX-License-Identifier: MIT

import CardSockets
import FoundationEssentials
import GlobalPlatform
import Octets
import Synchronization
import TagTransport
import Testing
import VirtualCards

@Suite struct RefusalTests {
    @Test(arguments: [SecureElementConfiguration.Channel.scp02(option: 0x15), .scp03(option: 0x70)])
    func aWrongMACEndsTheSessionUntilANewOne(_ channel: SecureElementConfiguration.Channel) async throws {
        let bench = try Bench { $0.channel = channel }
        let host = try await bench.opened(.mac)
        bench.wire.onCommand.withLock {
            $0 = { octets in octets.dropLast(2) + [octets[octets.count - 2] ^ 0x01, octets[octets.count - 1]] }
        }
        await #expect(throws: GlobalPlatformError(.securityNotSatisfied)) { try await host.getStatus(.applications) }
        // The next command is right by the host's count, and refused all the same (GPC 10.2.3).
        await #expect(throws: GlobalPlatformError(.securityNotSatisfied)) { try await host.getStatus(.applications) }
        try await host.openChannel(level: .mac)
        #expect(try await host.getStatus(.applications).count == 1)
    }

    @Test(arguments: [SecurityLevel.mac, .macAndEncryption, .all])
    func aReplayedCommandIsRefused(_ level: SecurityLevel) async throws {
        let bench = try Bench()
        let host = try await bench.opened(level)
        _ = try await host.getStatus(.applications)
        let last = try #require(bench.wire.commands.withLock { $0.last })
        #expect(try await bench.wire.sendAPDU(CommandAPDU(bytes: last)).statusWord == 0x6982)
    }

    @Test func aReplayedAuthenticationMeetsAnotherCounter() async throws {
        let bench = try Bench()
        _ = try await bench.opened(.mac)
        let recorded = bench.wire.commands.withLock { $0.suffix(2) }
        let first = try await bench.wire.sendAPDU(CommandAPDU(bytes: recorded[recorded.startIndex]))
        #expect([UInt8](first.data.suffix(3)) == [0x00, 0x00, 0x02])
        #expect(try await bench.wire.sendAPDU(CommandAPDU(bytes: recorded[recorded.startIndex + 1])).statusWord == 0x6982)
    }

    /// Amendment D 6.2.2.1 and GPC E.4.
    @Test func scp03CountsAtTheChallengeAndScp02AtTheFirstRightMAC() async throws {
        for (channel, wanted) in [
            (SecureElementConfiguration.Channel.scp03(option: 0x70), [0, 0, 3]), (.scp02(option: 0x55), [0, 0]),
        ] {
            let bench = try Bench { $0.channel = channel }
            let host = GlobalPlatformHost(transport: bench.wire, keys: try Bench.keys())
            for _ in 0..<2 {
                bench.wire.onCommand.withLock { $0 = nil }
                _ = try await bench.wire.sendAPDU(CommandAPDU(bytes: Hex.octets("8050000008010203040506070800")))
            }
            #expect(try await host.openChannel(level: .mac).sequenceCounter == wanted.map { UInt8($0) })
            if case .scp02 = channel { #expect(try await host.openChannel(level: .mac).sequenceCounter == [0, 1]) }
        }
    }

    @Test func aCommandBelowTheLevelIsRefused() async throws {
        let bench = try Bench()
        _ = try await bench.opened(.mac)
        // In clear, in a session with a MAC.
        #expect(try await bench.wire.sendAPDU(CommandAPDU(bytes: Hex.octets("80F24002024F0000"))).statusWord == 0x6982)
        // Without a session at all.
        let host = GlobalPlatformHost(transport: bench.wire)
        try await host.select()
        await #expect(throws: GlobalPlatformError(.securityNotSatisfied)) { try await host.getStatus(.applications) }
        #expect(try await host.getData(0x0042).starts(with: [0x42]))
        await #expect(throws: GlobalPlatformError(.channelNotOpen)) { try await host.putKeys(Bench.keys(version: 0x31)) }
        await #expect(throws: GlobalPlatformError(.channelNotOpen)) { try await host.openChannel() }
    }

    @Test func wrongKeysAreFoundBeforeTheCardCounts() async throws {
        let bench = try Bench()
        let wrong = try GlobalPlatformKeys(single: [UInt8](repeating: 0x77, count: 16))
        let host = GlobalPlatformHost(transport: bench.wire, keys: wrong)
        await #expect(throws: GlobalPlatformError(.cardCryptogramWrong)) { try await host.openChannel() }
        #expect(bench.wire.commands.withLock { $0.map { $0[1] } } == [0x50])
        let absent = GlobalPlatformHost(transport: bench.wire, keys: try Bench.keys(version: 0x44))
        await #expect(throws: GlobalPlatformError(.notFound)) { try await absent.openChannel() }
    }

    @Test func aWrongHostCryptogramIsTold() async throws {
        let bench = try Bench()
        let host = GlobalPlatformHost(transport: bench.wire, keys: try Bench.keys())
        // INITIALIZE UPDATE passes; its answer's challenge is changed, and the host finds that.
        bench.wire.onAnswer.withLock { $0 = { octets in octets.prefix(13) + [octets[13] ^ 0x01] + octets.dropFirst(14) } }
        await #expect(throws: GlobalPlatformError(.cardCryptogramWrong)) { try await host.openChannel() }
        bench.wire.onAnswer.withLock { $0 = nil }
        _ = try await bench.wire.sendAPDU(CommandAPDU(bytes: Hex.octets("8050000008010203040506070800")))
        let answer = try await bench.wire.sendAPDU(
            CommandAPDU(bytes: Hex.octets("8482010010") + [UInt8](repeating: 0, count: 16)))
        #expect(answer.statusWord == 0x6982)
    }

    @Test func aResponseThatIsChangedEndsTheHostsSession() async throws {
        let bench = try Bench()
        let host = try await bench.opened(.all)
        bench.wire.onAnswer.withLock { $0 = { octets in [octets[0] ^ 0x80] + octets.dropFirst() } }
        await #expect(throws: GlobalPlatformError(.responseMACWrong)) { try await host.getStatus(.applications) }
        await #expect(throws: GlobalPlatformError(.channelNotOpen)) { try await host.putKeys(Bench.keys(version: 0x31)) }
    }

    @Test func whatDoesNotFitIsRefusedAndLeavesNothing() async throws {
        let bench = try Bench { $0.nonVolatileMemory = 4_096 }
        let host = try await bench.opened()
        try await host.installForLoad(loadFile: SpecimenPackage.payment.aid)
        await #expect(throws: GlobalPlatformError(.outOfMemory)) {
            try await host.load(SpecimenPackage.payment.loadFileDataBlock)
        }
        #expect(bench.element.contents().map(\.state) == [.failed])
        let free = try await host.freeResources().nonVolatile
        try await host.delete(SpecimenPackage.payment.aid)
        #expect(bench.element.contents().isEmpty)
        #expect(try await host.freeResources().nonVolatile == free)

        try await bench.install(.loyalty, with: host)
        var instances = 1
        await #expect(throws: GlobalPlatformError(.outOfMemory)) {
            for number in UInt8(2)...100 {
                try await host.installForInstall(
                    loadFile: SpecimenPackage.loyalty.aid, module: SpecimenPackage.loyalty.moduleAID,
                    instance: SpecimenPackage.loyalty.moduleAID + [number])
                instances += 1
            }
        }
        #expect(try await host.getStatus(.applications, matching: SpecimenPackage.loyalty.aid).count == instances)
    }

    @Test func anUnknownNameHasItsOwnError() async throws {
        let bench = try Bench()
        let host = try await bench.opened()
        let unknown: [UInt8] = [1, 2, 3, 4, 5, 6]
        await #expect(throws: GlobalPlatformError(.notFound)) { try await host.delete(unknown) }
        await #expect(throws: GlobalPlatformError(.notFound)) { try await host.installForPersonalization(unknown) }
        await #expect(throws: GlobalPlatformError(.notFound)) {
            try await host.setStatus(.application, aid: unknown, state: 0x80)
        }
        await #expect(throws: GlobalPlatformError(.notFound)) {
            try await host.installForInstall(loadFile: unknown, module: unknown, instance: unknown)
        }
        await #expect(throws: GlobalPlatformError(.notFound)) { try await host.getData(0x5F20) }
        let error = await #expect(throws: GlobalPlatformError.self) { try await host.select(unknown) }
        #expect(error?.code == .applicationNotFound)
        #expect(error?.statusWord == 0x6A82)
        #expect(error?.description == "SELECT: the card has no application of that name (6A82)")
    }

    @Test func aLoadOutOfOrderOrOfAnotherFileFails() async throws {
        let bench = try Bench()
        let host = try await bench.opened(.none)
        func send(_ hex: String) async throws -> UInt16 {
            try await bench.wire.sendAPDU(CommandAPDU(bytes: Hex.octets(hex))).statusWord
        }
        #expect(try await send("80E8800004C4020102") == 0x6985)
        try await host.installForLoad(loadFile: SpecimenPackage.loyalty.aid)
        #expect(try await send("80E8000104C4020102") == 0x6A86)
        try await host.installForLoad(loadFile: SpecimenPackage.loyalty.aid)
        // Another package than was announced, and no package at all.
        await #expect(throws: GlobalPlatformError(.wrongData)) { try await host.load(SpecimenPackage.payment.loadFileDataBlock) }
        try await host.installForLoad(loadFile: SpecimenPackage.loyalty.aid)
        await #expect(throws: GlobalPlatformError(.wrongData)) { try await host.load([UInt8](repeating: 0x5A, count: 700)) }
        try await host.installForLoad(loadFile: SpecimenPackage.loyalty.aid, hash: [UInt8](repeating: 0, count: 32))
        await #expect(throws: GlobalPlatformError(.wrongData)) { try await host.load(SpecimenPackage.loyalty.loadFileDataBlock) }
        // A command in between ends a load (GPC 9.3.5).
        try await host.installForLoad(loadFile: SpecimenPackage.loyalty.aid)
        _ = try await host.getStatus(.issuerSecurityDomain)
        await #expect(throws: GlobalPlatformError(.conditionsNotSatisfied)) {
            try await host.load(SpecimenPackage.loyalty.loadFileDataBlock)
        }
        #expect(bench.element.contents().map(\.state) == [.failed])
        try await bench.install(.loyalty, with: host)
        #expect(bench.element.contents().map(\.state) == [.installed, .installed])
        await #expect(throws: GlobalPlatformError(.conditionsNotSatisfied)) {
            try await host.installForLoad(loadFile: SpecimenPackage.loyalty.aid)
        }
    }

    @Test func aPersonalizationThatIsBrokenOffLeavesTheAppletAsItWas() async throws {
        let bench = try Bench()
        let host = try await bench.opened(.mac)
        try await bench.install(.identity, with: host)
        let instance = SpecimenPackage.identity.instanceAID
        try await host.installForPersonalization(instance)
        let block = TLV.encode(0xDF02, [1, 2, 3])
        let answer = try await host.exchange(CommandAPDU(cla: 0x80, ins: 0xE2, p1: 0x00, p2: 0x00, data: Data(block)))
        #expect(answer.isSuccess)
        try await host.select(instance)
        #expect(try await host.exchange(CommandAPDU(cla: 0x00, ins: 0xB0, p1: 0, p2: 0, le: 0)).statusWord == 0x6985)
        #expect(bench.element.contents().first { $0.aid == instance }?.isPersonalized == false)
    }

    @Test func aDamagedKeyIsFoundByItsCheckValue() async throws {
        let bench = try Bench()
        let host = try await bench.opened(.none)
        let keys = try Bench.keys(version: 0x31)
        bench.wire.onCommand.withLock { $0 = { octets in octets.prefix(20) + [octets[20] ^ 0x01] + octets.dropFirst(21) } }
        await #expect(throws: GlobalPlatformError(.securityNotSatisfied)) { try await host.putKeys(keys) }
        #expect(try await host.keyInformation().map(\.version) == [0x30, 0x30, 0x30])
        try await host.putKeys(keys)
    }

    /// A few thousand commands of no sense, most of them to an open session: none stops the element, each has a status word.
    @Test func anyOctetsHaveAnAnswer() async throws {
        let bench = try Bench()
        let host = try await bench.opened(.none)
        let card = bench.wire.card.card
        var random = CardRandom(seed: 6, use: "commands of no sense")
        let instructions: [UInt8] = [0xCA, 0xF2, 0xE6, 0xE8, 0xE2, 0xE4, 0xD8, 0xA4, 0x70, 0x50, 0x82]
        var words = Set<[UInt8]>()
        for round in 0..<6_000 {
            if round % 40 == 0 {
                try await host.select()
                try await host.openChannel(level: .none)
            }
            var octets = random.octets(5 + round % 40)
            octets[0] = round % 10 == 9 ? 0x84 : 0x80
            octets[1] = instructions[round % instructions.count]
            octets[2] &= round % 3 == 0 ? 0xFF : 0x86
            if octets.count > 5 { octets[4] = UInt8(octets.count - 5) }
            // Lengths that come out right half of the time.
            if round % 2 == 0, octets.count > 7 { octets[5] = UInt8(octets.count - 7) }
            guard case .response(let answer) = card.exchange(octets), answer.count >= 2 else {
                Issue.record("no answer to \(Hex.encode(octets))")
                continue
            }
            words.insert(answer.suffix(2))
        }
        #expect(words.count >= 8)
        #expect(bench.element.contents().allSatisfy { $0.state == .failed })
    }
}
