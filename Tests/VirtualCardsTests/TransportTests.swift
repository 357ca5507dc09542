// SPDX-License-Identifier: MIT

import Foundation
import Octets
import TagTransport
import Testing
import VirtualCards

@Suite struct VirtualCardTransportTests {
    private func transport(_ reference: String) throws -> VirtualCardTransport {
        VirtualCardTransport(try VirtualCardCatalog.make(VirtualCardSpecification(reference: reference)))
    }

    private let read = CommandAPDU(cla: 0, ins: 0xB0, p1: 0x81, p2: 0, le: 4)

    @Test func aCommandIsAnswered() async throws {
        let transport = try transport("filesystem")
        let response = try await transport.sendAPDU(read)
        #expect(response.data.count == 4 && response.isSuccess)
        #expect(transport.readerName == "virtual:filesystem" && transport.protocolName == "T=1" && transport.initialAID.isEmpty)
        #expect(transport.identifier.isEmpty && transport.atr.first == 0x3B)
    }

    @Test func chainingFollows61() async throws {
        let plain = try await transport("filesystem").sendAPDU(read)
        let chained = try await transport("filesystem?fault=61@1").sendAPDUWithChaining(read)
        #expect(chained == plain)
        let select = try CommandAPDU(cla: 0, ins: 0xA4, p1: 0, p2: 0, data: Data([0x50, 0x00]), ne: 1)
        let answer = try await transport("filesystem").sendAPDUWithChaining(select)
        #expect(answer.data.count == 23 && answer.isSuccess)
    }

    @Test func aRemovedCardFailsForGoodAsPCSCWould() async throws {
        let transport = try transport("filesystem?fault=remove@2")
        _ = try await transport.sendAPDU(read)
        let removed = TransportError(.tagConnectionLost, code: 0x8010_0069)
        await #expect(throws: removed) { try await transport.sendAPDU(read) }
        await #expect(throws: removed) { try await transport.sendAPDU(read) }
        await #expect(throws: removed) { try await transport.resetCard() }
        await #expect(throws: removed) { try await transport.removeCard() }
    }

    @Test func removeCardTakesItOut() async throws {
        let transport = try transport("filesystem")
        try await transport.removeCard()
        await #expect(throws: TransportError(.tagConnectionLost, code: 0x8010_0069)) { try await transport.sendAPDU(read) }
    }

    @Test func aMuteCardTimesOutOnce() async throws {
        let transport = try transport("filesystem?fault=mute@1")
        await #expect(throws: TransportError(.timeout)) { try await transport.sendAPDU(read) }
        #expect(try await transport.sendAPDU(read).isSuccess)
    }

    @Test func halfAStatusWordIsNoResponse() async throws {
        let transport = try transport("filesystem?fault=short@1")
        await #expect(throws: TransportError(.malformedResponse)) {
            try await transport.sendAPDU(CommandAPDU(cla: 0, ins: 0xA4, p1: 0, p2: 0x0C))
        }
    }

    @Test func aResetForgetsTheSelectedFile() async throws {
        let transport = try transport("filesystem")
        let select = CommandAPDU(cla: 0, ins: 0xA4, p1: 0, p2: 0x0C, data: Data([0x00, 0x01]))
        let current = CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: 0, le: 1)
        _ = try await transport.sendAPDU(select)
        #expect(try await transport.sendAPDU(current).isSuccess)
        #expect(try await transport.resetCard() == transport.atr)
        #expect(try await transport.sendAPDU(current).statusWord == 0x6986)
    }

    @Test func framesAndReaderCommandsAreNotThere() async throws {
        let transport = try transport("filesystem")
        await #expect(throws: TransportError(.unsupportedOperation)) { try await transport.send(Data([0x26])) }
        await #expect(throws: TransportError(.unsupportedOperation)) { try await transport.control(code: 1, data: Data()) }
    }
}
