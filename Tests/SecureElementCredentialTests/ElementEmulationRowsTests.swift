// SPDX-License-Identifier: MIT

import CardSockets
import FoundationEssentials
import GlobalPlatform
import Octets
import TagTransport
import Testing
import VirtualCards

@testable import SecureElementCredential

/// Rows T39 to T57 that need no clock on a GlobalPlatform element, in this process and through pcscd.
@Suite(.serialized) struct ElementEmulationRowsTests {
    private static let points: [UInt8] = [0x80, 0x10, 0x00, 0x00, 0x00]
    private static let add: [UInt8] = [0x80, 0x20, 0x00, 0x00, 0x02, 0x00, 0x05, 0x00]

    @Test(arguments: ElementPlace.available, ["management", "wired"])
    func t39AndT40LetAReaderMeetTheCredential(_ place: ElementPlace, _ state: String) async throws {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.session(in: state)
            try await session.performTransaction(using: credential, over: bench.scene)
            #expect(await session.state == .cardEmulation(credential: credential))
            let card = try #require(bench.reader.card)
            #expect(await card.command(select(ElementBench.head)) == .silence)
            await card.field(isPresent: true)
            guard case .response(let answer) = await card.command(select(ElementBench.head)) else {
                Issue.record("no answer")
                return
            }
            #expect(answer.suffix(2) == [0x90, 0x00])
            #expect(await card.command(Self.points) == .response([0x00, 0x00, 0x00, 0x64, 0x90, 0x00]))
        }
    }

    @Test(arguments: ElementPlace.available) func aReaderReachesContactlessInstancesOfTheCredentialAlone(_ place: ElementPlace)
        async throws
    {
        try await ElementBench.at(place) { bench in
            let (session, _) = try await bench.withCredential(ElementBench.payment)
            let pending = try await bench.pending(session)
            await bench.clock.advance(by: .seconds(2))
            let listed = try await session.listCredentials().first { $0.identifier == pending.identifier }
            try await session.performTransaction(using: try #require(listed), over: bench.scene)
            let card = try #require(bench.reader.card)
            await card.field(isPresent: true)
            #expect(await card.command(Self.points) == .response([0x69, 0x85]))
            let others = [
                ElementBench.member, SpecimenPackage.payment.instanceAID, ElementBench.domain,
                GlobalPlatformHost.contactlessRegistryAID, [0xA0, 0x00, 0x00, 0x01, 0x51, 0x00, 0x00, 0x00],
            ]
            for aid in others { #expect(await card.command(select(aid)) == .response([0x6A, 0x82]), "\(Hex.encode(aid))") }
            #expect(await card.command(select(ElementBench.head)) != .response([0x6A, 0x82]))
            // A reset deselects.
            await card.field(isPresent: true)
            #expect(await card.command(Self.points) == .response([0x69, 0x85]))
        }
    }

    @Test(arguments: ElementPlace.available) func whatIsEmulatedIsActivatedInTheRegistryForThatTime(_ place: ElementPlace)
        async throws
    {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.withCredential()
            let host = GlobalPlatformHost(transport: bench.transport)
            func states() async throws -> [UInt8] {
                try await host.select(GlobalPlatformHost.contactlessRegistryAID)
                return try await host.contactlessRegistry().map(\.activation)
            }
            #expect(try await states() == [0x00, 0x00])
            try await session.performTransaction(using: credential, over: bench.scene)
            // The head, and not the member, which is for the app alone.
            #expect(try await states() == [0x01, 0x00])
            try await session.endCardEmulation()
            #expect(try await states() == [0x00, 0x00])
        }
    }

    @Test func aCardWithoutARegistryIsEmulatedAllTheSame() async throws {
        try await ElementBench.at(.process) { bench in
            let (session, credential) = try await bench.withCredential()
            let hiding = HidingTransport(inner: bench.transport, hidden: GlobalPlatformHost.contactlessRegistryAID)
            let element = GlobalPlatformElement(
                transport: hiding, keys: try GlobalPlatformKeys(single: ElementBench.key),
                configurations: [ElementBench.group], registry: bench.registry)
            try await element.open()
            try await session.invalidate()
            try await element.activateContactless(instances: [ElementBench.head])
            #expect(try await element.contactless(select(ElementBench.head)).response.suffix(2) == [0x90, 0x00])
            try await element.deactivateContactless(instances: [ElementBench.head])
            // It was asked for once.
            #expect(hiding.refusals.count == 1)
            #expect(credential.isInstalled)
        }
    }

    @Test(arguments: ElementPlace.available) func t41T44AndT47RefuseInOtherStates(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.session(in: "cardEmulation")
            await #expect(throws: ErrorCode.invalidSessionState) {
                try await session.performTransaction(using: credential, over: bench.scene)
            }
            await #expect(throws: ErrorCode.invalidSessionState) {
                try await session.performCardEmulationTransactionWithCurrentCredential(over: bench.scene)
            }
            #expect(await session.state == .cardEmulation(credential: credential))
            try await session.endCardEmulation()
            await #expect(throws: ErrorCode.invalidSessionState) { try await session.endCardEmulation() }
            await #expect(throws: ErrorCode.invalidSessionState) {
                try await session.performCardEmulationTransactionWithCurrentCredential(over: bench.scene)
            }
            try await session.enterWiredMode(using: credential)
            await #expect(throws: ErrorCode.invalidSessionState) { try await session.endCardEmulation() }
        }
    }

    @Test(arguments: ElementPlace.available, ["management", "wired"])
    func t42AndT45LeaveWhereTheRowsSay(_ place: ElementPlace, _ state: String) async throws {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.session(in: state)
            let before = await session.state
            func perform(over scene: ProgramScene = ProgramScene()) async throws {
                if state == "wired" {
                    try await session.performCardEmulationTransactionWithCurrentCredential(over: scene)
                } else {
                    try await session.performTransaction(using: credential, over: scene)
                }
            }
            bench.person.will(.decline)
            await #expect(throws: ErrorCode.accessDenied) { try await perform() }
            await #expect(throws: ErrorCode.invalidView) { try await perform(over: ProgramScene(isValid: false)) }
            #expect(await session.state == before)
            bench.person.will(.allow)
            bench.transport.fails(TransportError(.sharingViolation, code: 0x8010_000B))
            await #expect(throws: ErrorCode.resourceUnavailable) { try await perform() }
            #expect(await session.state == .management)
            #expect(bench.reader.card == nil)
            bench.transport.fails(nil)
            bench.person.will(.dismiss)
            if state == "wired" { try await session.enterWiredMode(using: credential) }
            await #expect(throws: ErrorCode.userCanceledAuthorization) { try await perform() }
            #expect(await session.state == .management)
        }
    }

    @Test func t43MemoryThatOnlyAResetClearsLivesThroughTheChange() async throws {
        try await ElementBench.at(.process) { bench in
            let (session, credential) = try await bench.withCredential(ElementBench.payment)
            let aid = try #require(credential.instances.first?.instanceAID)
            try await session.performWiredTransaction(using: credential, over: bench.scene, instanceAID: aid)
            try await session.performCardEmulationTransactionWithCurrentCredential(over: bench.scene)
            let card = try #require(bench.reader.card)
            let options: [UInt8] = [0x80, 0xA8, 0x00, 0x00, 0x02, 0x83, 0x00, 0x00]
            let pay: [UInt8] = [0x80, 0xAE, 0x80, 0x00, 0x03, 0x01, 0x02, 0x03, 0x00]
            func run(_ command: [UInt8]) async -> [UInt8] {
                if case .response(let octets) = await card.command(command) { Array(octets.suffix(2)) } else { [] }
            }
            await card.field(isPresent: true)
            // A payment terminal finds the applet by its environment.
            #expect(await run(select(Array("2PAY.SYS.DDF01".utf8))) == [0x90, 0x00])
            #expect(await run(select(Array(aid))) == [0x90, 0x00])
            // The field may come and go: what the person allowed is in memory that only a reset of the element clears.
            await card.field(isPresent: false)
            await card.field(isPresent: true)
            #expect(await run(select(Array(aid))) == [0x90, 0x00])
            #expect(await run(options) == [0x90, 0x00])
            #expect(await run(pay) == [0x90, 0x00])
            // It paid once.
            #expect(await run(options) == [0x69, 0x85])
        }
    }

    @Test(arguments: ElementPlace.available) func t43DeselectsThenExposesWithoutAReset(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            let (session, _) = try await bench.session(in: "wired")
            _ = bench.transport.takeCommands()
            try await session.performCardEmulationTransactionWithCurrentCredential(over: bench.scene)
            let commands = bench.transport.takeCommands()
            #expect(commands.first == "00A4040000")
            #expect(commands.contains { $0.hasPrefix("80F00101") })
        }
    }

    @Test(arguments: ElementPlace.available) func t46EndsAndTheCardLeavesTheReader(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.session(in: "cardEmulation")
            let card = try #require(bench.reader.card)
            await card.field(isPresent: true)
            _ = await card.command(select(ElementBench.head))
            try await session.endCardEmulation()
            #expect(bench.reader.card == nil)
            #expect(await card.command(Self.points) == .removed)
            // What a reader had selected is free to be deleted.
            try await session.deleteCredential(credential)
            #expect(bench.card.contents().isEmpty)
        }
    }

    @Test(arguments: ElementPlace.available, [false, true])
    func t48EndWiredModeEndsAnEmulationWhereTheRulesSaySo(_ place: ElementPlace, _ isLenient: Bool) async throws {
        var rules = CredentialRules.ios27_1
        rules.endWiredModeEndsEmulation = isLenient
        try await ElementBench.at(place, rules: rules) { bench in
            let (session, credential) = try await bench.session(in: "wired")
            try await session.performCardEmulationTransactionWithCurrentCredential(over: bench.scene)
            if isLenient {
                try await session.endWiredMode()
                #expect(await session.state == .management)
            } else {
                await #expect(throws: ErrorCode.invalidSessionState) { try await session.endWiredMode() }
                #expect(await session.state == .cardEmulation(credential: credential))
            }
        }
    }

    @Test(arguments: ElementPlace.available) func t50AndT51TellOfFieldAndTransaction(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            let (session, _) = try await bench.session(in: "cardEmulation")
            let card = try #require(bench.reader.card)
            await card.field(isPresent: true)
            _ = await card.command(select(ElementBench.head))
            #expect(await card.command(Self.add) == .response([0x00, 0x00, 0x00, 0x69, 0x90, 0x00]))
            await card.field(isPresent: false)
            // The applet's own word where it can be heard; else the instruction and what was answered.
            let event = place == .process ? "connectivity(01000500000069)" : "connectivity(2000000069)"
            #expect(
                try await session.eventsToTheEnd() == [
                    "installed(points)", "fieldAbsent", "fieldPresent", event, "fieldAbsent",
                    "sessionInvalidated(sessionInvalidated)",
                ])
        }
    }

    @Test(arguments: ElementPlace.available, ["management", "wired", "cardEmulation"])
    func t52ToT54EndWithTheIssuersDomainSelected(_ place: ElementPlace, _ state: String) async throws {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.session(in: state)
            try await session.configuration().invalidate()
            #expect(await session.state == .management)
            await bench.scene.transactionTask(try await session.configuration()) { transaction in
                await #expect(throws: Never.self) { try await transaction.performTransaction(using: credential) }
            }
            #expect(await session.state == .management)
            try await session.invalidate()
            let answer = try await bench.transport.sendAPDU(CommandAPDU(bytes: Self.points))
            #expect(!answer.isSuccess)
        }
    }

    @Test(arguments: ElementPlace.available) func t56AndT57NothingIsAskedAfterTheEnd(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.session(in: "cardEmulation")
            let card = try #require(bench.reader.card)
            await card.field(isPresent: true)
            bench.transport.fails(TransportError(.tagConnectionLost))
            await bench.device.elementFailed(.acquiredResourceRelinquished)
            #expect(await session.state == .invalid)
            bench.transport.fails(nil)
            _ = bench.transport.takeCommands()
            await #expect(throws: ErrorCode.sessionInvalidated) { try await session.listCredentials() }
            await #expect(throws: ErrorCode.sessionInvalidated) { try await session.enterWiredMode(using: credential) }
            await #expect(throws: ErrorCode.sessionInvalidated) { try await session.transceive(Data(Self.points)) }
            #expect(bench.transport.takeCommands().isEmpty)
        }
    }
}

/// A card that does not know one name.
private final class HidingTransport: NFCTagTransport {
    let inner: FailingTransport
    let hidden: [UInt8]
    let refusals = Counter()

    init(inner: FailingTransport, hidden: [UInt8]) {
        self.inner = inner
        self.hidden = hidden
    }

    var identifier: Data { inner.identifier }
    func send(_ data: Data) async throws -> Data { try await inner.send(data) }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        guard apdu.ins == 0xA4, Array(apdu.data ?? Data()) == hidden else { return try await inner.sendAPDU(apdu) }
        refusals.add()
        return ResponseAPDU(statusWord: 0x6A82)
    }
}
