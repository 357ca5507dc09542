// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets
import TagTransport
import Testing
import VirtualCards

@testable import SecureElementCredential

/// Rows T17 to T38 that need no clock on a GlobalPlatform element, in this process and through pcscd.
@Suite(.serialized) struct ElementWiredRowsTests {
    static let all = ["management", "wired", "cardEmulation"]
    private static let points = Data([0x80, 0x10, 0x00, 0x00, 0x00])

    @Test(arguments: ElementPlace.available, all) func t17T20AndT21EnterWithTheFirstInstanceSelected(
        _ place: ElementPlace, _ state: String
    ) async throws {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.session(in: state)
            _ = bench.transport.takeCommands()
            try await session.enterWiredMode(using: credential)
            #expect(await session.state == .wired(credential: credential))
            #expect(bench.transport.takeCommands().last?.hasPrefix(Hex.encode(select(ElementBench.head))) == true)
            #expect(bench.reader.card == nil)
            #expect(try await session.transceive(Self.points) == Data([0x00, 0x00, 0x00, 0x64, 0x90, 0x00]))
        }
    }

    @Test(arguments: ElementPlace.available) func t18StaysWhenTheCredentialIsNotInstalled(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            let session = try await bench.session()
            let pending = try await bench.pending(session)
            await #expect(throws: ErrorCode.invalidCredentialState) { try await session.enterWiredMode(using: pending) }
            #expect(await session.state == .management)
        }
    }

    @Test(arguments: ElementPlace.available, all) func t19AndT38GoToManagementWhenTheCardIsTaken(
        _ place: ElementPlace, _ state: String
    ) async throws {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.session(in: state)
            bench.transport.fails(TransportError(.sharingViolation, code: 0x8010_000B))
            await #expect(throws: ErrorCode.resourceUnavailable) { try await session.enterWiredMode(using: credential) }
            #expect(await session.state == .management)
            await #expect(throws: ErrorCode.resourceUnavailable) {
                try await session.performWiredTransaction(
                    using: credential, over: bench.scene, instanceAID: Data(ElementBench.head))
            }
            #expect(await session.state == .management)
            bench.transport.fails(nil)
            try await session.enterWiredMode(using: credential)
        }
    }

    @Test(arguments: ElementPlace.available) func t22AndT29HandOutWhateverTheCardAnswers(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.session(in: "wired")
            #expect(try await session.transceive(Self.points) == Data([0x00, 0x00, 0x00, 0x64, 0x90, 0x00]))
            #expect(try await session.transceive(Data([0x80, 0x99, 0x00, 0x00])) == Data([0x6D, 0x00]))
            #expect(try await session.transceive(Data(select(ElementBench.member))).suffix(2) == Data([0x90, 0x00]))
            #expect(await session.state == .wired(credential: credential))
        }
    }

    @Test(arguments: ElementPlace.available, ["management", "cardEmulation"])
    func t23AndT31RefuseInOtherStates(_ place: ElementPlace, _ state: String) async throws {
        try await ElementBench.at(place) { bench in
            let (session, _) = try await bench.session(in: state)
            let before = await session.state
            await #expect(throws: ErrorCode.invalidSessionState) { try await session.transceive(Self.points) }
            await #expect(throws: ErrorCode.invalidSessionState) { try await session.endWiredMode() }
            #expect(await session.state == before)
        }
    }

    @Test(arguments: ElementPlace.available) func t24T25AndT28SendNothing(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.session(in: "wired")
            _ = bench.transport.takeCommands()
            for command in [select([0xA0, 0x00, 0x00, 0x01, 0x51, 0x43, 0x52, 0x53, 0x00]), [0x00, 0x70, 0x00, 0x00, 0x01]] {
                await #expect(throws: ErrorCode.commandNotSupported) { try await session.transceive(Data(command)) }
            }
            await #expect(throws: ErrorCode.invalidInput) { try await session.transceive(Data([0x00, 0xA4, 0x04])) }
            #expect(bench.transport.takeCommands().isEmpty)
            #expect(await session.state == .wired(credential: credential))
        }
    }

    @Test(
        arguments: ElementPlace.available,
        [
            (TransportError.Case.sharingViolation, ErrorCode.resourceUnavailable),
            (.readerUnavailable, .resourceUnavailable), (.serviceUnavailable, .resourceUnavailable),
            (.tagReset, .acquiredResourceRelinquished), (.tagConnectionLost, .acquiredResourceRelinquished),
        ])
    func t26AndT27TheReadersFaultsLeadToManagement(_ place: ElementPlace, _ fault: (TransportError.Case, ErrorCode)) async throws
    {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.session(in: "wired")
            bench.transport.fails(TransportError(fault.0))
            await #expect(throws: fault.1) { try await session.transceive(Self.points) }
            #expect(await session.state == .management)
            bench.transport.fails(nil)
            try await session.enterWiredMode(using: credential)
            #expect(try await session.transceive(Self.points).suffix(2) == Data([0x90, 0x00]))
        }
    }

    @Test(arguments: ElementPlace.available) func t30EndsWithTheInstanceDeselected(_ place: ElementPlace) async throws {
        try await ElementBench.at(place) { bench in
            let (session, _) = try await bench.session(in: "wired")
            try await session.endWiredMode()
            #expect(await session.state == .management)
            let answer = try await bench.transport.sendAPDU(CommandAPDU(bytes: Array(Self.points)))
            #expect(!answer.isSuccess)
        }
    }

    @Test(arguments: ElementPlace.available, all) func t33GivesTheInstanceATokenAndEnters(_ place: ElementPlace, _ state: String)
        async throws
    {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.session(in: state, ElementBench.payment)
            let aid = try #require(credential.instances.first?.instanceAID)
            try await session.performWiredTransaction(using: credential, over: bench.scene, instanceAID: aid)
            #expect(await session.state == .wired(credential: credential))
            // GET PROCESSING OPTIONS: the applet goes on only when it is authorized.
            let options = Data([0x80, 0xA8, 0x00, 0x00, 0x02, 0x83, 0x00, 0x00])
            #expect(try await session.transceive(options).suffix(2) == Data([0x90, 0x00]))
        }
    }

    @Test(arguments: ElementPlace.available, all) func t34ToT37LeaveWhereTheRowsSay(_ place: ElementPlace, _ state: String)
        async throws
    {
        try await ElementBench.at(place) { bench in
            let (session, credential) = try await bench.session(in: state)
            let before = await session.state
            func perform(_ credential: Session.Credential, _ aid: [UInt8], over scene: ProgramScene = ProgramScene()) async throws
            {
                try await session.performWiredTransaction(using: credential, over: scene, instanceAID: Data(aid))
            }
            await #expect(throws: ErrorCode.credentialDoesNotExist) {
                try await perform(ElementBench.unknown, ElementBench.head)
            }
            await #expect(throws: ErrorCode.instanceDoesNotExist) { try await perform(credential, [0xF0, 0x00]) }
            await #expect(throws: ErrorCode.instanceDoesNotExist) { try await perform(credential, ElementBench.member) }
            await #expect(throws: ErrorCode.invalidView) {
                try await perform(credential, ElementBench.head, over: ProgramScene(isValid: false))
            }
            bench.person.will(.decline)
            await #expect(throws: ErrorCode.accessDenied) { try await perform(credential, ElementBench.head) }
            #expect(await session.state == before)
            bench.person.will(.dismiss)
            await #expect(throws: ErrorCode.userCanceledAuthorization) { try await perform(credential, ElementBench.head) }
            #expect(await session.state == .management)
        }
    }
}
