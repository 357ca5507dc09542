// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import GlobalPlatform
import Octets
import Synchronization
import TagTransport
import Testing
import VirtualCards

@Suite struct ContactlessTests {
    private func registry(_ bench: Bench) async throws -> GlobalPlatformHost {
        let host = GlobalPlatformHost(transport: bench.wire)
        try await host.select(GlobalPlatformHost.contactlessRegistryAID)
        return host
    }

    @Test func availabilityAndPriorityAreThoseOfTheRegistry() async throws {
        let bench = try Bench()
        let host = try await bench.opened()
        for package in SpecimenPackage.all {
            try await host.installForLoad(loadFile: package.aid)
            try await host.load(package.loadFileDataBlock)
            try await host.installForInstall(
                loadFile: package.aid, module: package.moduleAID, instance: package.instanceAID,
                parameters: InstallParameters(contactless: package == .identity ? .nonActivatable : nil))
        }
        let names = SpecimenPackage.all.map(\.instanceAID)
        let control = try await registry(bench)
        #expect(try await control.contactlessRegistry().map(\.aid) == names)
        #expect(try await control.contactlessRegistry().map(\.activation) == [0x00, 0x80, 0x00])
        // Non-activatable stays; the others are changed all the same.
        #expect(try await control.setContactlessAvailability(true, of: names) == [names[1]])
        #expect(try await control.contactlessRegistry().map(\.activation) == [0x01, 0x80, 0x01])
        #expect(try await control.contactlessRegistry(matching: names[0]).first?.updateCounter == 1)
        try await control.setContactlessPriority(true, of: names[2])
        #expect(try await control.contactlessRegistry().map(\.aid) == [names[2], names[0], names[1]])
        #expect(try await control.setContactlessAvailability(false, of: [names[2]]).isEmpty)
        #expect(try await control.contactlessRegistry().first?.activation == 0x00)
    }

    @Test func aReaderMeetsOnlyWhatIsExposedAndActivated() async throws {
        let bench = try Bench()
        let host = try await bench.opened()
        try await bench.install(.loyalty, with: host)
        try await bench.install(.payment, with: host)
        let instance = SpecimenPackage.loyalty.instanceAID
        let reader = GlobalPlatformHost(transport: VirtualCardTransport(bench.element.contactlessCard(instances: [instance])))
        await #expect(throws: GlobalPlatformError(.applicationNotFound)) { try await reader.select(instance) }
        try await registry(bench).setContactlessAvailability(true, of: [instance, SpecimenPackage.payment.instanceAID])
        #expect(try await reader.select(instance).starts(with: [0x6F]))
        for name in [
            nil, SpecimenPackage.payment.instanceAID, GlobalPlatformHost.contactlessRegistryAID, Array("2PAY.SYS.DDF01".utf8),
        ] {
            await #expect(throws: GlobalPlatformError(.applicationNotFound)) { try await reader.select(name) }
        }
        let paying = GlobalPlatformHost(
            transport: VirtualCardTransport(bench.element.contactlessCard(instances: [SpecimenPackage.payment.instanceAID])))
        let environment = try await paying.select(Array("2PAY.SYS.DDF01".utf8))
        #expect(TLV.find(0x4F, in: environment[...]).map { Array($0.value) } == SpecimenPackage.payment.instanceAID)
    }

    @Test func aLoyaltyTransactionRaisesAnEventWithItsPoints() async throws {
        let bench = try Bench()
        try await bench.install(.loyalty, with: try await bench.opened())
        let events = Mutex<[SecureElementEvent]>([])
        bench.element.onEvent { event in events.withLock { $0.append(event) } }
        let instance = SpecimenPackage.loyalty.instanceAID
        try await registry(bench).setContactlessAvailability(true, of: [instance])
        let reader = GlobalPlatformHost(transport: VirtualCardTransport(bench.element.contactlessCard(instances: [instance])))
        try await reader.select(instance)
        func run(_ ins: UInt8, _ points: UInt16) async throws -> ResponseAPDU {
            let data = Data([UInt8(points >> 8), UInt8(points & 0xFF)])
            return try await reader.exchange(CommandAPDU(cla: 0x80, ins: ins, p1: 0, p2: 0, data: data, le: 0))
        }
        #expect([UInt8](try await run(0x20, 300).data) == [0, 0, 0x01, 0x2C])
        #expect([UInt8](try await run(0x30, 100).data) == [0, 0, 0, 200])
        // Nothing happens when there are not enough.
        #expect(try await run(0x30, 201).statusWord == 0x6985)
        #expect(
            events.withLock { $0.map(\.data) } == [Hex.octets("01012C0000012C"), Hex.octets("020064000000C8")])
        #expect(events.withLock { $0.allSatisfy { $0.instanceAID == instance } })
    }

    @Test func aPaymentNeedsAnAuthorizationAndUsesItUp() async throws {
        let bench = try Bench()
        let host = try await bench.opened()
        try await bench.install(.payment, with: host)
        let instance = SpecimenPackage.payment.instanceAID
        let key = SecureElementConfiguration.testKey(16)
        try await host.installForPersonalization(instance)
        try await host.storeData([TLV.encode(0x5A, [0x47, 0x61, 0x73, 0x90, 0x01, 0x01, 0x00, 0x10]), TLV.encode(0xDF01, key)])
        try await registry(bench).setContactlessAvailability(true, of: [instance])
        let transport = VirtualCardTransport(bench.element.contactlessCard(instances: [instance]))
        let reader = GlobalPlatformHost(transport: transport)
        func options() async throws -> UInt16 {
            try await reader.select(instance)
            return try await reader.exchange(
                CommandAPDU(cla: 0x80, ins: 0xA8, p1: 0, p2: 0, data: Data([0x83, 0x00]), le: 0)
            ).statusWord
        }
        func pay() async throws -> ResponseAPDU {
            try await reader.exchange(CommandAPDU(cla: 0x80, ins: 0xAE, p1: 0x80, p2: 0, data: Data([1, 2, 3]), le: 0))
        }
        #expect(try await options() == 0x6985)
        #expect(bench.element.deliver(authorization: [0x01], to: instance))
        // The field going off and on is no reset of the element: the authorization lives through it.
        _ = try await transport.resetCard()
        #expect(try await options() == 0x9000)
        let answer = try await pay()
        let mac = try CMAC.authenticate([1, 2, 3, 0, 1], key: key)
        #expect(TLV.find(0x9F26, in: [UInt8](answer.data)[...]).map { Array($0.value) } == Array(mac.prefix(8)))
        #expect(try await options() == 0x6985)
        #expect(bench.element.deliver(authorization: [0x01], to: instance))
        // A reset of the element is.
        _ = try await bench.wire.card.resetCard()
        #expect(try await options() == 0x6985)
        #expect(!bench.element.deliver(authorization: [0x01], to: GlobalPlatformHost.contactlessRegistryAID))
    }

    @Test func aGroupHasAHeadThatStaysWhileItHasMembers() async throws {
        let bench = try Bench()
        let host = try await bench.opened()
        try await bench.install(.loyalty, with: host)
        let head = SpecimenPackage.loyalty.instanceAID
        let member = SpecimenPackage.loyalty.moduleAID + [0x02]
        try await host.installForInstall(
            loadFile: SpecimenPackage.loyalty.aid, module: SpecimenPackage.loyalty.moduleAID, instance: member,
            parameters: InstallParameters(head: head))
        await #expect(throws: GlobalPlatformError(.conditionsNotSatisfied)) { try await host.delete(head) }
        #expect(try await registry(bench).contactlessRegistry().map(\.head) == [nil, head])
        try await host.select()
        try await host.openChannel(level: .all)
        try await host.delete(member)
        try await host.delete(head)
        await #expect(throws: GlobalPlatformError(.notFound)) { try await host.delete(head) }
    }
}
