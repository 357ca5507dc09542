// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Flows
import Foundation
import Octets
import Synchronization
import Testing

/// A card that answers what a list says, with a connection that can be reset and removed.
final class ListedCard: CardConnection {
    private let answers: [String: String]
    private let events = Mutex<[String]>([])

    init(_ answers: [String: String]) { self.answers = answers }

    var log: [String] { events.withLock { $0 } }
    var identifier: Data { Data() }
    var readerName: String { "list" }
    var atr: Data { Data([0x3B, 0x00]) }
    var protocolName: String { "T=1" }
    func send(_ data: Data) async throws -> Data { throw TransportError.unsupported("send") }
    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let text = Hex.encode(apdu.octets)
        events.withLock { $0.append(text) }
        guard let answer = answers[text] else { throw TransportError(.tagConnectionLost, code: 0x8010_0069, detail: "gone") }
        return try ResponseAPDU(bytes: Hex.decode(answer))
    }
    func resetCard() async throws -> Data {
        events.withLock { $0.append("reset") }
        return atr
    }
    func removeCard() async throws { events.withLock { $0.append("remove") } }
}

/// A transport that is no connection.
struct PlainCard: NFCTagTransport {
    var identifier: Data { Data() }
    func send(_ data: Data) async throws -> Data { throw TransportError.unsupported("send") }
    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU { ResponseAPDU(statusWord: 0x9000) }
}

@Suite struct APDUScriptTests {
    @Test func aScriptIsReadStepByStep() throws {
        let script = try APDUScript(
            """
            # select

              00 A4 04 00 00   # by name
            = 90??
            !wait 250
            !reset
            00B0000000\r
            = 01 02 9? 00
            !remove
            """)
        #expect(script.lines.map(\.number) == [3, 4, 5, 6, 7, 8, 9])
        #expect(script.lines.map(\.column) == [3, 1, 1, 1, 1, 1, 1])
        #expect(script.commands.map { Hex.encode($0.octets) } == ["00A4040000", "00B0000000"])
        guard case .expect(let first) = script.lines[1].step, case .expect(let second) = script.lines[5].step else {
            Issue.record("no checks")
            return
        }
        #expect(first.matches([0xAA, 0x90, 0x12]))
        #expect(!first.matches([0x90, 0x00, 0x61]))
        #expect(second.matches([1, 2, 0x91, 0]))
        #expect(!second.matches([1, 2, 3, 0x91, 0]))
        #expect(!second.matches([]))
        #expect(second.description == "01029?00")
    }

    @Test(arguments: [
        ("00A40400GG", APDUScriptError.Code.hexadecimal, 1, 9), ("\n  00A4040", .hexadecimal, 2, 10), ("00", .command, 1, 3),
        ("00 A4 04 00 05 01 02", .command, 1, 13), ("00B00000000000FF", .command, 1, 11), ("!eject", .directive, 1, 1),
        ("!reset now", .directive, 1, 1), ("!wait", .directive, 1, 1), ("!wait -1", .wait, 1, 1),
        ("!wait 99999999999999999999", .wait, 1, 1),
        ("= 9000", .nothingToCheck, 1, 1), ("00B0000000\n!reset\n= 9000", .nothingToCheck, 3, 1),
        ("00B0000000\n= 9", .hexadecimal, 2, 1),
        ("00B0000000\n = 90xx", .hexadecimal, 2, 6), ("é", .hexadecimal, 1, 1), ("00B0000000 = 9000", .hexadecimal, 1, 12),
    ])
    func aFaultHasItsLineAndColumn(text: String, code: APDUScriptError.Code, line: Int, column: Int) {
        let error = #expect(throws: APDUScriptError.self) { try APDUScript(text) }
        #expect(error?.code == code)
        #expect(error?.line == line)
        #expect(error?.column == column)
    }

    @Test func anyTextAtAllIsReadOrRefused() {
        var generator = SystemRandomNumberGenerator()
        let units = Array("0123456789ABCDEFabcdef !=#?resmovwait\n\r\t\u{0}é".utf8)
        for length in 0..<500 {
            let text = String(decoding: (0..<length).map { _ in units.randomElement(using: &generator) ?? 0 }, as: UTF8.self)
            do { #expect(try APDUScript(text).lines.count <= length) } catch { #expect(error.line >= 1 && error.column >= 1) }
        }
    }
}

@Suite struct APDUFlowTests {
    private func run(_ script: String, _ card: any NFCTagTransport) async throws -> APDUFlow.Outcome {
        try await FlowClock.$runs.withValue(false) {
            try await APDUFlow.run(APDUFlow.Arguments(script: script), over: card) { _ in }
        }
    }

    @Test func answersStandInTheOrderOfTheCommands() async throws {
        let card = ListedCard(["00A4040000": "6F00 9000", "00B0000002": "01029000"])
        let outcome = try await run("00A4040000\n= 9000\n!wait 60000\n!reset\n00B0000002\n= 0102 90??\n!remove", card)
        #expect(outcome.answers == ["6F009000", "01029000"])
        #expect(card.log == ["00A4040000", "reset", "00B0000002", "remove"])
    }

    @Test func anotherAnswerNamesLineExpectedAndActual() async throws {
        let card = ListedCard(["00A4040000": "6A82"])
        let error = await #expect(throws: APDUScriptError.self) { try await run("00A4040000\n\n= 9000\n00B0000002", card) }
        #expect(error?.code == .mismatch)
        #expect(error?.line == 3)
        #expect(error?.expected == "9000")
        #expect(error?.actual == "6A82")
        #expect(card.log == ["00A4040000"])
    }

    @Test func theTransportsErrorComesThrough() async throws {
        await #expect(throws: TransportError(.tagConnectionLost, code: 0x8010_0069)) {
            try await run("00B0000002", ListedCard([:]))
        }
        await #expect(throws: TransportError(.unsupportedOperation)) { try await run("!reset", PlainCard()) }
    }

    /// ISO/IEC 7816-4 11.6 and whatever the caller's table adds.
    @Test func aScriptWithReferenceDataIsSealed() {
        func secrets(_ script: String) -> Set<String> { APDUFlow.secretArguments(of: APDUFlow.Arguments(script: script)) }
        for script in [
            "0020008104 31323334", "00A4040000\n00240081083132333431323334", "002C0081083132333431323334",
            "FF82000006FFFFFFFFFFFF", "00 20 zz",
        ] {
            #expect(secrets(script) == ["script"])
        }
        #expect(secrets("00A4040000\n00B0000000").isEmpty)
        APDUFlow.$secretCommands.withValue(APDUFlow.SecretCommands { $0.starts(with: [0x80, 0xD8]) }) {
            #expect(secrets("80D8000002AABB") == ["script"])
            #expect(secrets("00B0000000").isEmpty)
        }
    }

    @Test func progressShowsNoDataField() async throws {
        let lines = Mutex<[String]>([])
        let card = ListedCard(["002000810431323334": "9000"])
        _ = try await APDUFlow.run(APDUFlow.Arguments(script: "002000810431323334"), over: card) { line in
            lines.withLock { $0.append(line) }
        }
        #expect(lines.withLock { $0 } == ["line 1  00200081  9000"])
    }
}
