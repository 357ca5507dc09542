// SPDX-License-Identifier: MIT

import CardCrypto
import Foundation
import SessionSupport
import Synchronization
import TagTransport
import TestSupport
import Testing
import TraceFile
import Tracing

/// The proxy between a program and its card.
@Suite struct ProxyTests {
    private let folder: TemporaryFolder
    private let recording: Recording

    init() throws {
        folder = try TemporaryFolder()
        recording = try Recording(to: folder("a.pcapng"))
    }

    private func closed() throws -> (trace: Trace, secrets: SecretStore) {
        try recording.close()
        return (try Trace.load(path: folder("a.pcapng")), try SecretStore.load(forTrace: folder("a.pcapng")).store)
    }

    private static let select = CommandAPDU(cla: 0, ins: 0xA4, p1: 0, p2: 0, data: Data([0x3F, 0x00]))

    // MARK: - What it is

    @Test func itConformsToTheSubProtocolsOfWhatItWrapsAndToNoOther() throws {
        func kinds(_ transport: any NFCTagTransport) -> [Bool] {
            [
                transport is any ISO7816TagTransporting, transport is any FeliCaTagTransporting,
                transport is any ISO15693TagTransporting,
            ]
        }
        for transport in [
            ScriptedTransport([]), ScriptedISO7816Transport([]), ScriptedFeliCaTransport([]), ScriptedISO15693Transport([]),
        ] {
            #expect(kinds(recording.wrap(transport)) == kinds(transport))
        }
    }

    @Test func itsPropertiesAreThoseOfWhatItWraps() throws {
        #expect(recording.wrap(ScriptedTransport([])).identifier == Data([0x04, 0x11, 0x22, 0x33]))
        let card = try #require(recording.wrap(ScriptedISO7816Transport([])) as? any ISO7816TagTransporting)
        #expect(card.initialAID == "A0000002471001")
        let felica = try #require(recording.wrap(ScriptedFeliCaTransport([])) as? any FeliCaTagTransporting)
        #expect(felica.systemCode == Data([0x00, 0x03]))
        let vicinity = try #require(recording.wrap(ScriptedISO15693Transport([])) as? any ISO15693TagTransporting)
        #expect(vicinity.icManufacturerCode == 4)
        let connection = try #require(recording.wrap(try virtualCard("virtual:filesystem")) as? any CardConnection)
        #expect(connection.readerName == "virtual:filesystem")
        #expect(connection.protocolName == "T=1")
        #expect(!connection.atr.isEmpty)
    }

    @Test func everyTransportHasARowThatSaysWhatItIs() async throws {
        let all: [any NFCTagTransport] = [
            ScriptedTransport([]), ScriptedISO7816Transport([]), ScriptedFeliCaTransport([]), ScriptedISO15693Transport([]),
        ]
        for transport in all { _ = recording.wrap(transport) }
        try await recording.run {}
        let rows = try closed().trace.meta.compactMap { if case .transport(let row) = $0.meta { row } else { nil } }
        #expect(rows.map(\.id) == [1, 2, 3, 4])
        #expect(rows.map(\.kind) == [.raw, .iso7816, .felica, .iso15693])
        #expect(rows[1].initialAID == hex("A0000002471001"))
        #expect(rows[2].systemCode == [0x00, 0x03])
        #expect(rows[3].icManufacturerCode == 4)
        #expect(rows.allSatisfy { $0.identifier == hex("04112233") })
    }

    // MARK: - What passes

    @Test func whatPassesIsWhatWouldPassWithoutIt() async throws {
        let script: [Result<[UInt8], TransportError>] = [
            .success(hex("6F00")), .success(hex("0102039000")),
            .failure(TransportError(.tagReset, code: 0x8010_0068, detail: "who")),
            .success(hex("9000")),
        ]
        func run(_ transport: any NFCTagTransport) async throws -> [String] {
            var said: [String] = []
            for command in [Self.select, CommandAPDU(cla: 0, ins: 0xB0, p1: 0, p2: 0, le: 0), Self.select, Self.select] {
                do { said.append("\(try await transport.sendAPDU(command).octets)") } catch { said.append("\(error)") }
            }
            return said
        }
        let bare = ScriptedISO7816Transport(script)
        let inner = ScriptedISO7816Transport(script)
        let plain = try await run(bare)
        let recorded = try await run(recording.wrap(inner))
        #expect(recorded == plain)
        #expect(inner.asked.withLock { $0 } == bare.asked.withLock { $0 })
    }

    @Test func aThrownErrorReachesTheCallerUnchangedAndIsARow() async throws {
        struct Odd: Error, Equatable { var number = 7 }
        final class Throwing: NFCTagTransport {
            let identifier = Data()
            func send(_ data: Data) async throws -> Data { throw Odd() }
            func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
                throw TransportError(.sharingViolation, code: 0x8010_000B)
            }
        }
        let transport = recording.wrap(Throwing())
        await #expect(throws: Odd()) { try await transport.send(Data([0x30, 0x04])) }
        await #expect(throws: TransportError(.sharingViolation, code: 0x8010_000B)) { try await transport.sendAPDU(Self.select) }
        let failures = try closed().trace.failures
        #expect(failures.map(\.domain) == ["Odd", "PCSC"])
        #expect(failures.map(\.case) == ["Odd", "sharingViolation"])
        #expect(failures.map(\.code) == [nil, "8010000B"])
    }

    @Test func aFrameIsARowOfItsReadersFrames() async throws {
        let transport = recording.wrap(ScriptedTransport([.success(hex("04112233"))]))
        _ = try await transport.send(Data([0x30, 0x00]))
        let trace = try closed().trace
        let rows = trace.rows.filter { trace.kind(of: $0) == InterfaceKind.rf(0) }
        #expect(rows.map(\.body) == [hex("3000"), hex("04112233")])
        #expect(rows.map(\.direction) == [.sent, .received])
        #expect(rows.map(\.dissector) == ["data", "data"])
    }

    @Test func twoReadersHaveInterfacesAndNumbersOfTheirOwn() async throws {
        let sam = recording.wrap(try virtualCard("virtual:filesystem"))
        let card = recording.wrap(try virtualCard("virtual:passport"))
        _ = try await sam.sendAPDU(Self.select)
        _ = try await card.sendAPDU(Self.select)
        _ = try await sam.sendAPDU(Self.select)
        let trace = try closed().trace
        #expect(trace.interfaces.map(\.kind.name) == ["apdu:0", "reader:0", "meta", "apdu:1", "reader:1"])
        let commands = trace.rows.filter { $0.direction == .sent }
        #expect(commands.map { trace.kind(of: $0).name } == ["apdu:0", "apdu:1", "apdu:0"])
        #expect(Set(commands.compactMap(\.packetID)).count == 3)
    }

    // MARK: - Structured calls

    @Test func eachGetResponseIsARowBeneathItsCall() async throws {
        let inner = ScriptedISO7816Transport([
            .success(hex("0102 6102")), .success(hex("0304 6101")), .success(hex("05 9000")),
        ])
        let card = try #require(recording.wrap(inner) as? any ISO7816TagTransporting)
        let response = try await recording.run {
            try await card.sendAPDUWithChaining(CommandAPDU(cla: 0, ins: 0xCA, p1: 0, p2: 0x42, le: 0))
        }
        #expect(response == ResponseAPDU(data: Data([1, 2, 3, 4, 5]), sw1: 0x90, sw2: 0x00))
        let (trace, secrets) = try closed()
        #expect(trace.exchanges == ["> 00CA004200", "< 01026102", "> 00C0000002", "< 03046101", "> 00C0000001", "< 059000"])
        let call = try #require(trace.calls.last)
        #expect(trace.calls.count == 2)
        #expect(call.parent == 1)
        #expect(call.flow == nil)
        #expect(call.function == "sendAPDUWithChaining(_:)")
        #expect(call.args == ["apdu": "00CA004200"])
        #expect(call.transport == 1)
        #expect(secrets.value(named: "call:2:result") == Array("\"01020304059000\"".utf8))
    }

    @Test func aFeliCaCallIsARowWithItsArgumentsAndItsResultIsSealed() async throws {
        let inner = ScriptedFeliCaTransport([.success([UInt8](repeating: 0x5A, count: 16)), .success([])])
        let card = try #require(recording.wrap(inner) as? any FeliCaTagTransporting)
        let blocks = try await card.readWithoutEncryption(serviceCode: Data([0x0B, 0x00]), blockList: [Data([0x80, 0x00])])
        #expect(blocks == [Data(repeating: 0x5A, count: 16)])
        let key = Data((0..<16).map { UInt8($0) })
        try await card.writeWithoutEncryption(
            serviceCode: Data([0x09, 0x00]), blockList: [Data([0x80, 0x87])], blockData: [key])
        let (trace, secrets) = try closed()
        #expect(trace.calls[0].args == ["serviceCode": "0B00", "blockList": ["8000"]])
        #expect(trace.calls[1].args["blockData"] == .sealed("call:2:blockData"))
        #expect(trace.calls[1].args["blockList"] == ["8087"])
        #expect(secrets.value(named: "call:1:result") == Array(#"["5A5A5A5A5A5A5A5A5A5A5A5A5A5A5A5A"]"#.utf8))
        #expect(secrets.value(named: "call:2:blockData") == Array(#"["000102030405060708090A0B0C0D0E0F"]"#.utf8))
    }

    @Test func aVicinityCallIsARowAndItsPasswordIsSealed() async throws {
        let inner = ScriptedISO15693Transport([
            .success(hex("01020304")), .success([]), .failure(TransportError(.timeout, code: 0x8010_002F)),
        ])
        let card = try #require(recording.wrap(inner) as? any ISO15693TagTransporting)
        _ = try await card.readBlock(7)
        _ = try await card.customCommand(code: 0xB3, parameters: Data([0x01, 0xDE, 0xAD, 0xBE, 0xEF]))
        await #expect(throws: TransportError(.timeout, code: 0x8010_002F)) { try await card.readBlock(8) }
        let trace = try closed().trace
        #expect(trace.calls.map(\.function) == ["readBlock(_:)", "customCommand(code:parameters:)", "readBlock(_:)"])
        #expect(trace.calls[0].args == ["block": 7])
        #expect(trace.calls[1].args == ["code": 179, "parameters": .sealed("call:2:parameters")])
        #expect(trace.returns.map(\.ok) == [true, true, false])
        #expect(trace.returns[2].case == "timeout")
        #expect(trace.returns[2].extra["code"] == "8010002F")
    }

    @Test func aPasswordInAControlCodeIsSealed() async throws {
        let inner = ScriptedReader([.success(hex("9000")), .success(hex("D5430077889000")), .success(hex("3B00"))])
        let reader = try #require(recording.wrap(inner) as? any CardConnection)
        _ = try await reader.control(code: 3500, data: Data(hex("FF82000006A0A1A2A3A4A5")))
        _ = try await reader.control(code: 3500, data: Data(hex("FF00000007D4421BDEADBEEF")))
        _ = try await reader.control(code: 3400, data: Data(hex("E000001800")))
        let (trace, secrets) = try closed()
        let events = trace.meta.compactMap {
            if case .reader(let event) = $0.meta, event.name == "control" { event } else { nil }
        }
        #expect(events[0].input == .sealed("exchange:2:in"))
        #expect(events[0].output == .plain(hex("9000")))
        #expect(events[1].input == .sealed("exchange:3:in"))
        #expect(events[1].output == .sealed("exchange:3:out"))
        #expect(events[2].input == .plain(hex("E000001800")))
        #expect(secrets.value(named: "exchange:2:in") == hex("FF82000006A0A1A2A3A4A5"))
        #expect(secrets.value(named: "exchange:3:out") == hex("D5430077889000"))
    }

    // MARK: - The environment

    @Test func twoCallsAtOnceKeepTheirDrawsApart() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    try await recording.run {
                        for _ in 0..<25 {
                            _ = try CardEnvironment.current.randomOctets(4, label: "test.draw")
                            await Task.yield()
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let (trace, secrets) = try closed()
        for call in 1...4 {
            #expect(trace.draws.filter { $0.call == call }.map(\.index) == Array(0..<25))
            #expect((0..<25).allSatisfy { secrets.entropy(call: call, label: "test.draw", index: $0)?.count == 4 })
        }
    }

    @Test func aDrawInAChildTaskIsRecordedAndIsWhatTheCallerGot() async throws {
        let drawn = try await recording.run {
            async let first = CardEnvironment.current.randomOctets(8, label: "test.child")
            return try await first
        }
        let (trace, secrets) = try closed()
        #expect(trace.draws.map(\.label) == ["test.child"])
        #expect(secrets.entropy(call: 1, label: "test.child", index: 0) == drawn)
    }

    @Test func aTimeThatWasReadIsARowUnderItsCallsNumber() async throws {
        let time = try await recording.run { try CardEnvironment.current.calendarNanoseconds() }
        let trace = try closed().trace
        let clock = try #require(trace.meta.compactMap { if case .clock(let row) = $0.meta { ($0.row, row) } else { nil } }.first)
        #expect(String(decoding: clock.0.body, as: UTF8.self) == #"{"td":"clock","call":1,"kind":"calendar","ns":"\#(time)"}"#)
        #expect(clock.0.packetID == trace.meta.first { if case .call = $0.meta { true } else { false } }?.row.packetID)
    }

    @Test func outsideACallNothingOfTheEnvironmentIsRecorded() async throws {
        _ = try CardEnvironment.current.randomOctets(8, label: "test.outside")
        #expect(try closed().trace.draws.isEmpty)
    }

    // MARK: - The files

    @Test func everyRowAndItsSecretsAreOnDiskWhenTheCallReturns() async throws {
        let transport = recording.wrap(
            ScriptedISO7816Transport([.success(hex("9000")), .success(hex("9000")), .success(hex("9000"))]))
        for (count, pin) in ["31313131", "32323232", "33333333"].enumerated() {
            _ = try await transport.sendAPDU(CommandAPDU(cla: 0, ins: 0x20, p1: 0, p2: 1, data: Data(hex(pin))))
            // Read while the recording is open, as a killed recorder would leave them.
            let trace = try Trace.load(path: folder("a.pcapng"))
            let secrets = try SecretStore.load(forTrace: folder("a.pcapng")).store
            #expect(trace.exchanges.count == 2 * (count + 1))
            #expect(trace.damage == nil)
            #expect(secrets.records.map(\.octets).last == hex(pin))
        }
    }

    @Test func theSecretIsOnDiskWhenTheCommandReachesTheCard() async throws {
        final class Peeking: NFCTagTransport {
            let path: String
            let seen = Mutex<[Int]>([])
            let identifier = Data()
            init(_ path: String) { self.path = path }
            func send(_ data: Data) async throws -> Data { data }
            func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
                let store = try SecretStore.load(forTrace: path).store
                let rows = try Trace.load(path: path).exchanges.count
                seen.withLock { $0 += [store.records.count { $0.octets == hex("31323334") }, rows] }
                return ResponseAPDU(statusWord: 0x9000)
            }
        }
        let card = Peeking(folder("a.pcapng"))
        _ = try await recording.wrap(card).sendAPDU(CommandAPDU(cla: 0, ins: 0x20, p1: 0, p2: 1, data: Data(hex("31323334"))))
        #expect(card.seen.withLock { $0 } == [1, 1])
    }

    @Test func whatComesAfterTheEndIsSaidAndChangesNothingThatPasses() async throws {
        let transport = recording.wrap(ScriptedISO7816Transport([.success(hex("9000"))]))
        try recording.close()
        let before = try folder.octets("a.pcapng")
        #expect(try await transport.sendAPDU(Self.select).statusWord == 0x9000)
        #expect(recording.failure == TraceFileError(.closed, path: ""))
        #expect(try folder.octets("a.pcapng") == before)
    }

    @Test func aMarkIsARowOfItsOwn() throws {
        recording.mark("the red one")
        let trace = try closed().trace
        #expect(trace.rows.map { String(decoding: $0.body, as: UTF8.self) } == [#"{"td":"mark","text":"the red one"}"#])
        #expect(trace.rows[0].packetID == 1)
    }
}
