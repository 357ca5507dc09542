// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import GlobalPlatform
import Octets
import Synchronization
import TagTransport
import Testing
import VirtualCards

/// Every management command, host against element.
@Suite struct ManagementTests {
    static let channels: [(SecureElementConfiguration.Channel, Int, [SecurityLevel])] = {
        let three: [SecurityLevel] = [.none, .mac, .macAndEncryption]
        let five = three + [[.commandMAC, .responseMAC], [.commandMAC, .commandEncryption, .responseMAC]]
        var cases: [(SecureElementConfiguration.Channel, Int, [SecurityLevel])] = [
            (.scp02(option: 0x15), 16, three), (.scp02(option: 0x55), 16, three),
        ]
        for length in [16, 24, 32] {
            for option: UInt8 in [0x00, 0x10] { cases.append((.scp03(option: option), length, three)) }
            for option: UInt8 in [0x20, 0x30] { cases.append((.scp03(option: option), length, five)) }
            for option: UInt8 in [0x60, 0x70] { cases.append((.scp03(option: option), length, five + [.all])) }
        }
        return cases
    }()

    @Test(arguments: channels.indices) func everyProtocolAndLevelCarriesTheRegistry(_ place: Int) async throws {
        let (channel, length, levels) = Self.channels[place]
        let bench = try Bench { configuration in
            configuration.channel = channel
            let key = SecureElementConfiguration.testKey(length)
            (configuration.encryptionKey, configuration.macKey, configuration.dataKey) = (key, key, key)
        }
        for level in levels {
            let host = try await bench.opened(level, keys: Bench.keys(length))
            let issuer = try await host.getStatus(.issuerSecurityDomain)
            #expect(issuer.map(\.aid) == [Hex.octets("A000000151000000")])
            #expect(issuer.first?.lifeCycle == 0x0F)
            try await host.storeData([TLV.encode(0x45, [0x01, 0x02, level.rawValue])])
            #expect(try await host.getData(0x0045) == [0x45, 0x03, 0x01, 0x02, level.rawValue])
            let answer = try await host.exchange(CommandAPDU(cla: 0x80, ins: 0xCA, p1: 0x00, p2: 0xD3, le: 0))
            #expect([UInt8](answer.data) == [0xD3, 0x01, 0x80 | level.rawValue])
        }
        // A level that the options do not have is never asked for.
        guard !levels.contains(.all) else { return }
        await #expect(throws: GlobalPlatformError(.levelNotSupported)) { try await bench.opened(.all, keys: Bench.keys(length)) }
    }

    @Test func longMACsOfS16GoBothWays() async throws {
        let bench = try Bench { $0.channel = .scp03(option: 0x71) }
        let host = GlobalPlatformHost(transport: bench.wire, keys: try Bench.keys())
        try await host.select()
        try await host.openChannel(level: .all, wantsLongMAC: true)
        try await bench.install(.loyalty, with: host)
        #expect(try await host.getStatus(.applications).count == 2)
        // A host that does not know S16 is told by the card, and then counts nothing.
        await #expect(throws: GlobalPlatformError(.wrongLength)) { try await host.openChannel(level: .all) }
    }

    @Test(arguments: [SecurityLevel.none, .mac, .macAndEncryption, .all])
    func aPackageIsLoadedInstalledPersonalizedUsedAndDeleted(_ level: SecurityLevel) async throws {
        let bench = try Bench()
        let host = try await bench.opened(level)
        let package = SpecimenPackage.identity
        let free = try await host.freeResources()
        let block = package.loadFileDataBlock
        try await host.installForLoad(loadFile: package.aid, hash: try Digest.sha256.hash(block))
        #expect(bench.element.contents().map(\.state) == [.pending])
        let steps = Mutex<[Int]>([])
        try await host.load(block) { done, _ in steps.withLock { $0.append(done) } }
        #expect(steps.withLock { $0 == Array(1...$0.count) })

        let files = try await host.getStatus(.loadFilesAndModules, matching: package.aid)
        #expect(files.map(\.aid) == [package.aid])
        #expect(files[0].moduleAIDs == [package.moduleAID])
        #expect(files[0].version == [0x01, 0x00])
        #expect(try await host.getStatus(.loadFiles, matching: package.aid)[0].moduleAIDs.isEmpty)

        try await host.installForInstall(
            loadFile: package.aid, module: package.moduleAID, instance: package.instanceAID, selectable: false)
        #expect(try await host.getStatus(.applications, matching: package.instanceAID)[0].lifeCycle == 0x03)
        try await host.installForMakeSelectable(package.instanceAID)
        let entry = try await host.getStatus(.applications, matching: package.instanceAID)[0]
        #expect(entry.lifeCycle == 0x07)
        #expect(entry.loadFileAID == package.aid)
        #expect(entry.securityDomainAID == Hex.octets("A000000151000000"))
        #expect(try await host.freeResources().nonVolatile < free.nonVolatile - block.count)

        let text = Array("the holder's data, in more than one block".utf8)
        try await host.installForPersonalization(package.instanceAID)
        try await host.storeData([
            TLV.encode(0xDF02, text.prefix(20)), TLV.encode(0xDF02, text.dropFirst(20)),
            TLV.encode(0xDF01, SecureElementConfiguration.testKey(16)),
        ])
        #expect(bench.element.contents().allSatisfy { $0.state == .installed && $0.isPersonalized })
        try await host.select(package.instanceAID)
        let read = try await host.exchange(CommandAPDU(cla: 0x00, ins: 0xB0, p1: 0x00, p2: 0x00, le: 0))
        #expect([UInt8](read.data) == text)
        let challenge = [UInt8](repeating: 0x11, count: 16)
        let signed = try await host.exchange(CommandAPDU(cla: 0x00, ins: 0x88, p1: 0, p2: 0, data: Data(challenge), le: 0))
        #expect([UInt8](signed.data) == (try CMAC.authenticate(challenge, key: SecureElementConfiguration.testKey(16))))

        try await host.select()
        try await host.openChannel(level: level)
        await #expect(throws: GlobalPlatformError(.conditionsNotSatisfied)) { try await host.delete(package.aid) }
        try await host.delete(package.aid, related: true)
        #expect(bench.element.contents().isEmpty)
        #expect(try await host.freeResources() == free)
        await #expect(throws: GlobalPlatformError(.applicationNotFound)) { try await host.select(package.instanceAID) }
    }

    @Test func theRegistryGoesOnOverSeveralAnswers() async throws {
        let bench = try Bench()
        let host = try await bench.opened()
        let package = SpecimenPackage.loyalty
        try await bench.install(package, with: host)
        for number in UInt8(2)...20 {
            try await host.installForInstall(
                loadFile: package.aid, module: package.moduleAID, instance: package.moduleAID + [number])
        }
        let before = bench.wire.commands.withLock { $0.count }
        let entries = try await host.getStatus(.applications, matching: package.aid)
        #expect(entries.map(\.aid) == [package.instanceAID] + (UInt8(2)...20).map { package.moduleAID + [$0] })
        #expect(bench.wire.commands.withLock { $0.count } - before > 3)
        #expect(try await host.getStatus(.applications, matching: [0x01, 0x02]).isEmpty)
    }

    @Test func aSupplementaryDomainHasItsParentsKeysUntilItHasItsOwn() async throws {
        let bench = try Bench()
        let host = try await bench.opened()
        let domain = Hex.octets("F0544453443101")
        try await host.installForInstall(
            loadFile: Hex.octets("A0000001515350"), module: Hex.octets("A000000151535041"), instance: domain,
            privileges: [.securityDomain, .authorizedManagement])
        let own = try GlobalPlatformKeys(
            version: 0x31, enc: (0..<32).map { $0 }, mac: (32..<64).map { $0 }, dek: (64..<96).map { $0 })
        try await host.select(domain)
        try await host.openChannel(level: .all)
        try await host.putKeys(own)
        #expect(try await host.keyInformation().map(\.version) == [0x31, 0x31, 0x31])
        #expect(try await host.keyInformation().map(\.length) == [32, 32, 32])

        // From now on its own, and its counter begins at zero.
        await #expect(throws: GlobalPlatformError(.cardCryptogramWrong)) { try await host.openChannel(level: .all) }
        let owner = GlobalPlatformHost(transport: bench.wire, keys: own)
        try await owner.select(domain)
        #expect(try await owner.openChannel(level: .all).sequenceCounter == [0, 0, 2])
        try await bench.install(.payment, with: owner)
        #expect(try await owner.getStatus(.applications).map(\.aid) == [domain, SpecimenPackage.payment.instanceAID])
        // It cannot see or touch what is not below it.
        await #expect(throws: GlobalPlatformError(.wrongParameters)) { try await owner.getStatus(.issuerSecurityDomain) }
        await #expect(throws: GlobalPlatformError(.conditionsNotSatisfied)) {
            try await owner.delete(GlobalPlatformHost.contactlessRegistryAID)
        }

        try await host.select()
        try await host.openChannel(level: .all)
        await #expect(throws: GlobalPlatformError(.conditionsNotSatisfied)) { try await host.delete(domain) }
        try await host.installForExtradition(SpecimenPackage.payment.instanceAID, to: Hex.octets("A000000151000000"))
        try await host.installForExtradition(SpecimenPackage.payment.aid, to: Hex.octets("A000000151000000"))
        try await host.setStatus(.securityDomainAndApplications, aid: domain, state: 0x80)
        await #expect(throws: GlobalPlatformError(.locked)) { try await owner.select(domain) }
        try await host.select()
        try await host.openChannel(level: .all)
        try await host.delete(domain)
        #expect(bench.element.contents().map(\.aid) == [SpecimenPackage.payment.instanceAID, SpecimenPackage.payment.aid])
    }

    @Test(arguments: [(SecureElementConfiguration.Channel.scp02(option: 0x55), 2), (.scp03(option: 0x70), 3)])
    func keysAreAddedReplacedAndDeleted(_ channel: SecureElementConfiguration.Channel, _ counterLength: Int) async throws {
        let bench = try Bench {
            $0.channel = channel
            $0.keyVersion = 0xFF
        }
        var host = try await bench.opened(.mac)
        let first = try GlobalPlatformKeys(version: 0x30, single: (1...16).map { $0 * 2 })
        try await host.putKeys(first)
        // The set that the card was delivered with is gone.
        #expect(try await host.keyInformation().map(\.version) == [0x30, 0x30, 0x30])
        host = try await bench.opened(.mac, keys: first)
        let second = try GlobalPlatformKeys(version: 0x31, single: (1...16).map { $0 * 4 })
        try await host.putKeys(second)
        await #expect(throws: GlobalPlatformError(.conditionsNotSatisfied)) { try await host.deleteKey(version: 0x30) }
        await #expect(throws: GlobalPlatformError(.notFound)) { try await host.putKeys(second, replacing: 0x55) }
        host = try await bench.opened(.mac, keys: second)
        try await host.deleteKey(version: 0x30)
        await #expect(throws: GlobalPlatformError(.notFound)) { try await host.deleteKey(version: 0x30) }
        let counter = try await host.getData(0x00C1)
        #expect(counter == [0xC1, UInt8(counterLength)] + [UInt8](repeating: 0, count: counterLength - 1) + [0x01])
        let third = try GlobalPlatformKeys(version: 0x31, single: (1...16).map { $0 * 6 })
        try await host.putKeys(third, replacing: 0x31)
        #expect(try await host.sequenceCounter() == 0)
        await #expect(throws: GlobalPlatformError(.cardCryptogramWrong)) { try await bench.opened(.mac, keys: second) }
        _ = try await bench.opened(.mac, keys: third)
    }

    @Test func statesGoOnlyWhereTheStandardLetsThem() async throws {
        let bench = try Bench()
        var host = try await bench.opened()
        try await bench.install(.loyalty, with: host)
        let instance = SpecimenPackage.loyalty.instanceAID
        try await host.setStatus(.application, aid: instance, state: 0x80)
        #expect(try await host.getStatus(.applications, matching: instance)[0].isLocked)
        await #expect(throws: GlobalPlatformError(.conditionsNotSatisfied)) {
            try await host.setStatus(.application, aid: instance, state: 0x80)
        }
        await #expect(throws: GlobalPlatformError(.locked)) { try await host.select(instance) }
        host = try await bench.opened()
        try await host.setStatus(.application, aid: instance, state: 0x00)
        #expect(try await host.getStatus(.applications, matching: instance)[0].lifeCycle == 0x07)

        await #expect(throws: GlobalPlatformError(.conditionsNotSatisfied)) { try await host.setStatus(.card, state: 0x0F) }
        try await host.setStatus(.card, state: 0x7F)
        await #expect(throws: GlobalPlatformError(.conditionsNotSatisfied)) { try await host.getStatus(.applications) }
        await #expect(throws: GlobalPlatformError(.locked)) { try await host.select(instance) }
        // Its answer is valid although it is locked, and its issuer gets it back.
        #expect(try await host.select().starts(with: [0x6F]))
        try await host.openChannel(level: .mac)
        try await host.setStatus(.card, state: 0x0F)
        try await host.select(instance)
        host = try await bench.opened()
        try await host.setStatus(.card, state: 0xFF)
        await #expect(throws: GlobalPlatformError(.locked)) { try await host.select(instance) }
        await #expect(throws: GlobalPlatformError(.locked)) { try await host.openChannel(level: .mac) }
    }

    @Test func privilegesAndParametersOfTheRegistryAreUpdated() async throws {
        let bench = try Bench()
        let host = try await bench.opened()
        try await bench.install(.loyalty, with: host)
        let instance = SpecimenPackage.loyalty.instanceAID
        try await host.installForRegistryUpdate(instance, privileges: [.contactlessSelfActivation])
        #expect(try await host.getStatus(.applications, matching: instance)[0].privileges == [.contactlessSelfActivation])
        // All of it or nothing: the domain is not there, so the privileges stay.
        await #expect(throws: GlobalPlatformError(.notFound)) {
            try await host.installForRegistryUpdate(instance, securityDomain: [1, 2, 3, 4, 5], privileges: [.cardReset])
        }
        #expect(try await host.getStatus(.applications, matching: instance)[0].privileges == [.contactlessSelfActivation])
    }

    @Test func logicalChannelsHaveASelectionAndASecureChannelOfTheirOwn() async throws {
        let bench = try Bench()
        let basic = try await bench.opened()
        try await bench.install(.loyalty, with: basic)
        let number = try await basic.openLogicalChannel()
        #expect(number == 1)
        let second = GlobalPlatformHost(transport: bench.wire, keys: try Bench.keys(), logicalChannel: number)
        try await second.select(SpecimenPackage.loyalty.instanceAID)
        // The application is in use there.
        await #expect(throws: GlobalPlatformError(.conditionsNotSatisfied)) {
            try await basic.delete(SpecimenPackage.loyalty.instanceAID)
        }
        try await second.select()
        try await second.openChannel(level: .all)
        #expect(try await second.getStatus(.applications).count == 2)
        #expect(try await basic.getStatus(.applications).count == 2)
        try await basic.closeLogicalChannel(number)
        await #expect(throws: GlobalPlatformError(.classNotSupported)) { try await second.select() }
        _ = try await basic.openLogicalChannel()
        _ = try await basic.openLogicalChannel()
        _ = try await basic.openLogicalChannel()
        await #expect(throws: GlobalPlatformError(.locked)) { _ = try await basic.openLogicalChannel() }
    }

    @Test func theSessionKeysAreToldByTheirNamesInTheGrammar() async throws {
        let log = KeyLog()
        let bench = try Bench()
        try await CardEnvironment.with(CardEnvironment(random: FixedRandom(), keySink: log)) { _ = try await bench.opened() }
        let names = log.keys.withLock { $0.map(\.0) }
        #expect(names == ["globalPlatform.sEnc", "globalPlatform.sMac", "globalPlatform.sRmac", "globalPlatform.dek"])
        #expect(log.keys.withLock { $0.last?.1 } == SecureElementConfiguration.testKey(16))
    }
}
