// SPDX-License-Identifier: MIT

import Foundation
import Replay
import SessionSupport
import TagTransport
import TestSupport
import Testing
import TraceFile
import Tracing

/// Calls of FeliCa and vicinity cards, which are answered as wholes.
@Suite struct StructuredReplayTests {
    private func replay(
        _ inner: any NFCTagTransport, _ body: (any NFCTagTransport) async throws -> [String]
    ) async throws -> (Replay, [String]) {
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        let transport = recording.wrap(inner)
        let said = try await recording.run { try await body(transport) }
        try recording.close()
        let trace = try Trace.load(path: folder("a.pcapng"))
        return (Replay(of: trace, secrets: try SecretStore.load(forTrace: folder("a.pcapng")).store), said)
    }

    // MARK: - FeliCa

    private static func felica(_ transport: any NFCTagTransport) async throws -> [String] {
        let card = try #require(transport as? any FeliCaTagTransporting)
        var said = ["\(Array(card.systemCode))"]
        said.append(
            "\(try await card.readWithoutEncryption(serviceCode: Data([0x0B, 0x00]), blockList: [Data([0x80, 0x00]), Data([0x80, 0x01])]))"
        )
        said.append("\(try await card.requestService(nodeCodeList: [Data([0xFF, 0xFF])]))")
        try await card.writeWithoutEncryption(
            serviceCode: Data([0x09, 0x00]), blockList: [Data([0x80, 0x87])], blockData: [Data(repeating: 0x77, count: 16)])
        do {
            _ = try await card.readWithoutEncryption(serviceCodeList: [Data([0x0B, 0x00])], blockList: [Data([0x80, 0x02])])
        } catch { said.append("\(error)") }
        said.append("\(Array(try await card.send(Data([0x06, 0x00]))))")
        return said
    }

    private static let felicaAnswers: [Result<[UInt8], TransportError>] = [
        .success([UInt8](repeating: 0x11, count: 32)), .success([0x01, 0x00]), .success([]),
        .failure(TransportError(.tagConnectionLost, code: 0x8010_0069, detail: "lifted")), .success([0x12, 0x01]),
    ]

    @Test func aFeliCaSessionReplaysTheSameWithItsErrors() async throws {
        let (replay, said) = try await replay(ScriptedFeliCaTransport(Self.felicaAnswers), Self.felica)
        #expect(said.count == 5)
        #expect(said[3].contains("lifted"))
        #expect(try await replay.run(Self.felica) == said)
    }

    @Test func anotherArgumentIsNamedWithBothValues() async throws {
        let (replay, _) = try await replay(ScriptedFeliCaTransport(Self.felicaAnswers)) { transport in
            let card = try #require(transport as? any FeliCaTagTransporting)
            return ["\(try await card.readWithoutEncryption(serviceCode: Data([0x0B, 0x00]), blockList: [Data([0x80, 0x00])]))"]
        }
        let found = await #expect(throws: Divergence.self) {
            try await replay.run { transport in
                let card = try #require(transport as? any FeliCaTagTransporting)
                _ = try await card.readWithoutEncryption(serviceCode: Data([0x0B, 0x00]), blockList: [Data([0x80, 0x05])])
            }
        }
        #expect(found?.kind == .command)
        #expect(
            found?.field
                == Divergence.Field(path: "readWithoutEncryption.blockList", place: "", recorded: #"["8000"]"#, now: #"["8005"]"#)
        )
    }

    @Test func aSealedArgumentIsComparedAndNeverPrinted() async throws {
        @Sendable func write(_ octet: UInt8) -> @Sendable (any NFCTagTransport) async throws -> [String] {
            { transport in
                let card = try #require(transport as? any FeliCaTagTransporting)
                try await card.writeWithoutEncryption(
                    serviceCode: Data([0x09, 0x00]), blockList: [Data([0x80, 0x87])],
                    blockData: [Data(repeating: octet, count: 16)])
                return []
            }
        }
        let (replay, _) = try await replay(ScriptedFeliCaTransport([.success([])]), write(0x5A))
        #expect(try await replay.run(write(0x5A)).isEmpty)
        let found = await #expect(throws: Divergence.self) { try await replay.run(write(0x5B)) }
        #expect(
            found?.field
                == Divergence.Field(path: "writeWithoutEncryption.blockData", place: "", recorded: "<sealed>", now: "<sealed>"))
        let text = String(reflecting: found)
        #expect(!text.contains("5A5A") && !text.contains("5B5B"))
    }

    // MARK: - Vicinity

    private static func vicinity(_ transport: any NFCTagTransport) async throws -> [String] {
        let card = try #require(transport as? any ISO15693TagTransporting)
        var said = ["\(card.icManufacturerCode)"]
        said.append("\(try await card.getSystemInfo())")
        said.append("\(Array(try await card.readBlock(3)))")
        try await card.writeBlock(3, data: Data([1, 2, 3, 4]))
        said.append("\(try await card.readBlocks(range: NSRange(location: 4, length: 2)))")
        said.append("\(try await card.getBlockSecurityStatus(range: NSRange(location: 0, length: 3)))")
        said.append("\(Array(try await card.customCommand(code: 0xB3, parameters: Data([1, 9, 9, 9, 9]))))")
        do { try await card.writeAFI(1) } catch { said.append("\(error)") }
        return said
    }

    private static let vicinityAnswers: [Result<[UInt8], TransportError>] = [
        .success(hex("E004010203040506")), .success([7, 8, 9, 10]), .success([]), .success([5, 6]), .success([0, 1, 0]),
        .success([0x00]),
    ]

    @Test func aVicinitySessionReplaysTheSameWithItsErrors() async throws {
        let (replay, said) = try await replay(ScriptedISO15693Transport(Self.vicinityAnswers), Self.vicinity)
        #expect(said.last == "unsupportedOperation: writeAFI")
        #expect(try await replay.run(Self.vicinity) == said)
    }

    @Test func callsThatNeverCameAreCountedAsExchanges() async throws {
        let (replay, _) = try await replay(ScriptedISO15693Transport(Self.vicinityAnswers), Self.vicinity)
        let found = await #expect(throws: Divergence.self) {
            try await replay.run { transport in _ = try await (transport as? any ISO15693TagTransporting)?.getSystemInfo() }
        }
        #expect(found?.kind == .missing(count: 6))
    }

    // MARK: - Plain transports

    @Test func aTransportOfFramesReplaysAndIsNothingMore() async throws {
        let (replay, _) = try await replay(ScriptedTransport([.success(hex("04112233"))])) {
            ["\(Array(try await $0.send(Data([0x30, 0x00]))))"]
        }
        try await replay.run { transport in
            #expect(!(transport is any ISO7816TagTransporting) && !(transport is any FeliCaTagTransporting))
            let answer = try await transport.send(Data([0x30, 0x00]))
            #expect(answer == Data(hex("04112233")))
        }
        let found = await #expect(throws: Divergence.self) { try await replay.run { _ = try await $0.send(Data([0x30, 0x04])) } }
        #expect(found?.kind == .command)
    }

    @Test func aFrameToACardOfCommandsThatRefusesItReplays() async throws {
        let body: @Sendable (any NFCTagTransport) async throws -> [String] = { transport in
            do { return ["\(try await transport.send(Data([0x30, 0x00])))"] } catch { return ["\(error)"] }
        }
        let (replay, said) = try await replay(try virtualCard("virtual:filesystem"), body)
        #expect(said == ["unsupportedOperation: frames below APDUs"])
        #expect(try await replay.run(body) == said)
    }

    // MARK: - Hostile recordings

    @Test func numbersThatDoNotFitTrapNothing() async throws {
        let huge = [Int64.max, Int64.min, -1, 0]
        for number in huge {
            let interfaces = [
                TraceInterface(InterfaceKind(name: "apdu:\(number)")), TraceInterface(InterfaceKind(name: "reader:\(number)")),
                TraceInterface(.meta),
            ]
            let texts = [
                #"{"td":"transport","id":\#(number),"kind":"iso15693"}"#,
                #"{"td":"call","id":\#(number),"parent":null,"flow":"apdu","function":"f()","args":{"script":"00A4000C"},"transport":\#(number)}"#,
                #"{"td":"call","id":7,"parent":\#(number),"flow":null,"function":"readBlock(_:)","args":{},"transport":\#(number)}"#,
                #"{"td":"error","after":\#(number),"domain":"PCSC","case":"timeout","code":"FFFFFFFFFF"}"#,
                #"{"td":"return","call":\#(number),"ok":false,"domain":"PCSC","case":"x"}"#,
            ]
            var rows = texts.map {
                TraceRow(
                    time: 0, interface: 2, direction: nil, packetID: UInt64(bitPattern: number), dissector: "json",
                    body: Array($0.utf8))
            }
            rows += [0, 1].map {
                TraceRow(time: .max, interface: $0, direction: .sent, packetID: .max, dissector: "iso7816", body: hex("00A4000C"))
            }
            let replay = Replay(
                of: Trace(header: TraceHeader(session: nil), interfaces: interfaces, rows: rows, secrets: []),
                secrets: SecretStore())
            #expect(!(await replay.run().isSame))
        }
    }
}
