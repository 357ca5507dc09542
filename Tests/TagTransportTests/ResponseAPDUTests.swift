// SPDX-License-Identifier: MIT

import Foundation
import Octets
import TagTransport
import Testing

@Suite struct ResponseAPDUTests {
    @Test(arguments: [0, 1, 255, 256, 257, 65_536])
    func aResponseRoundTrips(count: Int) throws {
        let octets = [UInt8](repeating: 0x5A, count: count) + [0x62, 0x82]
        let response = try ResponseAPDU(bytes: octets)
        #expect(response.data.count == count && response.statusWord == 0x6282)
        #expect(response.octets == octets && response.bytes == Data(octets))
        #expect(ResponseAPDU(rawResponse: Data(octets)) == response)
    }

    @Test func lessThanAStatusWordIsNone() {
        #expect(ResponseAPDU(rawResponse: Data()) == nil)
        let error = #expect(throws: APDUError.self) { try ResponseAPDU(bytes: [0x90]) }
        #expect(error?.code == .statusTruncated(present: 1) && error?.offset == 1)
    }

    @Test func aSliceThatDoesNotBeginAtZeroIsRead() throws {
        let data = Data([0xFF, 0xFF, 0x01, 0x90, 0x00])[2...]
        #expect(try ResponseAPDU(bytes: data).data == Data([0x01]))
        #expect(ResponseAPDU(data: data, sw1: 0x90, sw2: 0).data.startIndex == 0)
    }

    @Test func statusWordsAreNamed() {
        #expect(ResponseAPDU(statusWord: 0x9000).isSuccess)
        #expect(!ResponseAPDU(statusWord: 0x9001).isSuccess)
        #expect(ResponseAPDU(statusWord: 0x6100).needsGetResponse && !ResponseAPDU(statusWord: 0x6C00).needsGetResponse)
        #expect(ResponseAPDU(statusWord: 0x91AF).hasMoreFrames && !ResponseAPDU(statusWord: 0x90AF).hasMoreFrames)
    }
}

/// GET RESPONSE (ISO/IEC 7816-4 11.10.1).
@Suite struct ChainingTests {
    @Test func piecesAreJoinedUntilTheStatusWordIsAnother() async throws {
        // OpenSC#1731: 61 00 says that 256 and more wait; Le 00 asks for them.
        let transport = Script([
            ("00B0000000", "6100"), ("00C0000000", "AABB6103"), ("00C0000003", "CCDDEE9000"),
        ])
        let response = try await transport.sendAPDUWithChaining(CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: 0, le: 0))
        #expect(Hex.encode(response.octets) == "AABBCCDDEE9000")
        #expect(transport.isAtEnd)
    }

    @Test func theLastStatusWordCounts() async throws {
        let transport = Script([("00B0000000", "AA6101"), ("00C0000001", "BB6282")])
        let response = try await transport.sendAPDUWithChaining(CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: 0, le: 0))
        #expect(Hex.encode(response.octets) == "AABB6282")
    }

    @Test(arguments: [
        // GlobalPlatformPro#15: the proprietary class is not for GET RESPONSE.
        (UInt8(0x80), UInt8(0x00)), (0x00, 0x00), (0x02, 0x02), (0x0C, 0x00), (0x10, 0x00), (0x81, 0x01), (0x84, 0x00),
        (0x45, 0x45),
        (0x65, 0x45), (0x5F, 0x4F), (0xC3, 0x03),
    ])
    func theChannelIsKeptAndNothingElseOfTheClass(cla: UInt8, kept: UInt8) async throws {
        let transport = Script([(Hex.encode([cla, 0xCA, 0, 0, 0]), "6101"), (Hex.encode([kept, 0xC0, 0, 0, 1]), "AA9000")])
        let response = try await transport.sendAPDUWithChaining(CommandAPDU(cla: cla, ins: 0xCA, p1: 0, p2: 0, le: 0))
        #expect(Hex.encode(response.octets) == "AA9000")
    }

    @Test func aChainWithoutAnEndIsCutOff() async throws {
        let empty = Script([], then: "6105")
        await #expect(throws: TransportError(.malformedResponse)) {
            try await empty.sendAPDUWithChaining(CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: 0, le: 0))
        }
        #expect(empty.count < 10)
        let full = Script([], then: String(repeating: "AA", count: 4_096) + "6100")
        await #expect(throws: TransportError(.malformedResponse)) {
            try await full.sendAPDUWithChaining(CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: 0, le: 0))
        }
        #expect(full.count < 1_000)
    }
}

/// A card that answers the commands of a list in order, and refuses any other.
private final class Script: ISO7816TagTransporting, @unchecked Sendable {
    // One task at a time uses it.
    private var exchanges: ArraySlice<(String, String)>
    private let then: String?
    private(set) var count = 0

    init(_ exchanges: [(String, String)], then: String? = nil) {
        self.exchanges = exchanges[...]
        self.then = then
    }

    var isAtEnd: Bool { exchanges.isEmpty }
    var identifier: Data { Data() }
    var initialAID: String { "" }

    func send(_ data: Data) async throws -> Data { throw TransportError.unsupported("send") }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        count += 1
        if let then { return try ResponseAPDU(bytes: try Hex.decode(then)) }
        let next = exchanges.popFirst()
        let (command, answer) = try #require(next)
        #expect(Hex.encode(apdu.octets) == command)
        return try ResponseAPDU(bytes: try Hex.decode(answer))
    }
}
