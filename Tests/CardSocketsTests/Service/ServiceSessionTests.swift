// SPDX-License-Identifier: MIT

import Foundation
import Octets
import TestSupport
import Testing

@testable import CardSockets

/// Whole sessions and single messages as real libpcsclite and pcscd exchanged them: 1.9.9 for 4:4, 2.3.0 for 4:5, 2.5.1 for 4:6,
/// with vpcd as the reader. The sums are of all octets of one direction.
@Suite struct ServiceSessionTests {
    private static func zeros(_ count: Int) -> String { String(repeating: "00", count: count) }
    private static let nameText = "5669727475616c20504344203030203030"

    private static func session(minor: UInt8, tableMessages: [String], context: String, handle: String) -> [String] {
        let name = nameText + zeros(111)
        return [
            "0c00000011000000 04000000 \(Hex.encode([minor]))000000 00000000",
            "0c00000001000000 020000000000000000000000",
        ] + tableMessages + [
            "9800000004000000 \(context) \(name) 02000000 03000000 00000000 00000000 00000000",
            "2000000009000000 \(handle) 02000000 10000000 0d000000 03000000 10000000 70110100 00000000 00a4040007a0000002471001 00",
            "0c00000006000000 \(handle) 00000000 00000000",
            "0800000002000000 \(context) 00000000",
        ]
    }

    private func run(_ messages: [String], numbers: [UInt32], minor: UInt8) async throws -> (sent: [UInt8], answered: [UInt8]) {
        let bench = ServiceBench(
            readers: [ServiceBench.name, "Virtual PCD 00 01"], numbers: numbers,
            answer: { work in
                if case .transmit = work { return .octets([0x90, 0x00]) }
                return ServiceBench.echo(work)
            })
        bench.feed(.opened(1))
        var sent: [UInt8] = []
        var answered: [UInt8] = []
        for message in messages {
            let octets = try Hex.decode(message.replacingOccurrences(of: " ", with: ""))
            sent += octets
            answered += bench.say(1, octets)
        }
        return (sent, answered)
    }

    private func sum(_ octets: [UInt8]) async throws -> String {
        try await ProcessRunner.run("sha256sum", input: Data(octets)).outputText.split(separator: " ").first.map(String.init)
            ?? ""
    }

    @Test func aSessionOf44IsThatOfPCSCD() async throws {
        let messages = Self.session(minor: 4, tableMessages: ["0000000012000000"], context: "f2ed851c", handle: "b822dc09")
        let (sent, answered) = try await run(messages, numbers: [0x1C85_EDF2, 0x09DC_22B8], minor: 4)
        #expect(sent.count == 297)
        #expect(answered.count == 3_174)
        #expect(try await sum(sent) == "68c935bd9813ee10b1f79793c17d2ea925ba15e2930afeea945e88f0a809bc10")
        #expect(try await sum(answered) == "f58c119b4ad8b99c178f343643efc5929cc5f563a802a496d3f61c7f58ef8a40")
        #expect(
            try await sum(Array(answered[24..<24 + 2_944])) == "606279a5c44115ddf0a70e9b8a68e2b90de8430da2858d73e1ce5974eb2c26f3")
    }

    @Test func aSessionOf45DiffersInItsMinorAlone() async throws {
        let table = ["0000000012000000"]
        let numbers: [UInt32] = [0x1C85_EDF2, 0x09DC_22B8]
        var four = try await run(
            Self.session(minor: 4, tableMessages: table, context: "f2ed851c", handle: "b822dc09"), numbers: numbers, minor: 4
        ).answered
        let five = try await run(
            Self.session(minor: 5, tableMessages: table, context: "f2ed851c", handle: "b822dc09"), numbers: numbers, minor: 5
        ).answered
        four[4] = 5
        #expect(five == four)
    }

    @Test func aSessionOf46IsThatOfPCSCD() async throws {
        let messages = Self.session(
            minor: 6, tableMessages: ["0000000016000000", "0000000017000000"], context: "9ae19c48", handle: "eb22c153")
        let (sent, answered) = try await run(messages, numbers: [0x489C_E19A, 0x53C1_22EB], minor: 6)
        #expect(sent.count == 305)
        #expect(answered.count == 602)
        #expect(try await sum(sent) == "7bb072d15b9a838aea0ccd00b7cf6e6ba31b5ad1544f1cf83ca8fb757f4b7d8f")
        #expect(try await sum(answered) == "c367157386180c83e0dfb55a93fc322ed6f7e388dfbec60502573307f654f798")
    }

    // MARK: - Versions

    @Test(arguments: [4, 5, 6] as [UInt8]) func aClientIsAnsweredWithItsOwnMinor(_ minor: UInt8) {
        let bench = ServiceBench()
        bench.feed(.opened(1))
        let reply = bench.say(1, ServiceBench.message(.version, [4, UInt32(minor), 0]))
        #expect(reply == [4, 0, 0, 0, minor, 0, 0, 0, 0, 0, 0, 0])
    }

    @Test(arguments: [(4, 7), (4, 3), (4, 0), (3, 4), (0, 0)] as [(UInt32, UInt32)])
    func anUnknownVersionIsToldOursAndMayAskAgain(_ version: (UInt32, UInt32)) {
        let bench = ServiceBench()
        bench.feed(.opened(1))
        #expect(
            Hex.encode(bench.say(1, ServiceBench.message(.version, [version.0, version.1, 0]))) == "04000000060000001E001080")
        #expect(Hex.encode(bench.say(1, ServiceBench.message(.version, [4, 6, 0]))) == "040000000600000000000000")
        #expect(bench.closed.isEmpty)
    }

    // MARK: - Contexts

    @Test func aScopeBeyondGlobalIsRefused() {
        let bench = ServiceBench()
        bench.feed(.opened(1))
        #expect(Hex.encode(bench.say(1, ServiceBench.message(.establishContext, [4, 0, 0]))) == "040000000000000011001080")
        #expect(bench.say(1, ServiceBench.message(.establishContext, [3, 0, 0])).count == 12)
    }

    @Test func numbersOfContextsAndHandlesHaveNoSignAndNoDouble() {
        let bench = ServiceBench(numbers: [0x8000_0000, 0xFFFF_FFFF, 0x7FFF_FFFF, 5])
        let first = bench.client(1)
        let second = bench.client(2)
        // 80000000 without its top bit is 0, which is no number; the second 7FFFFFFF is taken.
        #expect(first == 0x7FFF_FFFF)
        #expect(second == 5)
    }

    @Test func anotherClientsContextIsNoContext() {
        let bench = ServiceBench()
        let context = bench.client(1)
        _ = bench.client(2)
        #expect(bench.connect(2, context)?.code == ServiceCode.invalidHandle)
        #expect(bench.code(2, .releaseContext, context, 0) == ServiceCode.invalidHandle)
        #expect(bench.code(1, .releaseContext, context, 0) == ServiceCode.success)
        #expect(bench.code(1, .releaseContext, context, 0) == ServiceCode.invalidHandle)
    }

    @Test func theEndOfTheLastContextIsTold() {
        let bench = ServiceBench()
        let context = bench.client(1)
        _ = bench.client(2)
        _ = bench.code(1, .releaseContext, context, 0)
        #expect(!bench.others.contains(.programsLeft))
        bench.feed(.closed(2))
        #expect(bench.others.contains(.programsLeft))
    }

    // MARK: - The table

    @Test func theTableHasTheSizeOfTheClientsBuild() {
        let bench = ServiceBench(tableSize: 48)
        _ = bench.client(1)
        // 48 entries: Fedora's builds.
        #expect(bench.say(1, ServiceBench.message(.readerTable, [])).count == 8_832)
        #expect(bench.say(1, ServiceBench.message(.readerTableSize, [])) == [1, 0, 0, 0])
        #expect(bench.say(1, ServiceBench.message(.readerTableArray, [])).count == 184)
    }

    @Test func theTableShowsWhoSharesTheCard() throws {
        let bench = ServiceBench()
        let context = bench.client(1)
        func entry(_ bench: ServiceBench) -> ServiceStruct {
            ServiceStruct(bench.say(1, ServiceBench.message(.readerTable, [])).prefix(184))
        }
        #expect(entry(bench)[136] == 0)
        let shared = try #require(bench.connect(1, context))
        #expect(entry(bench)[136] == 1)
        #expect(entry(bench)[180] == 2)
        _ = bench.code(1, .disconnect, shared.handle, 0, 0)
        _ = bench.connect(1, context, share: ShareMode.exclusive)
        #expect(entry(bench)[136] == 0xFFFF_FFFF)
    }

    @Test func insertionsAndRemovalsAreCountedAndWrap() {
        let bench = ServiceBench()
        _ = bench.client(1)
        func counter(_ bench: ServiceBench) -> UInt32 {
            ServiceStruct(bench.say(1, ServiceBench.message(.readerTable, [])).prefix(184))[128]
        }
        #expect(counter(bench) == 1)
        bench.feed(.removed(reader: 0))
        #expect(counter(bench) == 2)
        bench.feed(.inserted(reader: 0))
        #expect(counter(bench) == 3)
        bench.machine.readers[0].events = 0xFFFF
        bench.feed(.removed(reader: 0))
        #expect(counter(bench) == 0)
    }

    @Test func aMuteCardIsSwallowed() {
        let bench = ServiceBench(inserted: [], answer: { _ in .failed(ServiceCode.unresponsiveCard) })
        bench.feed(.inserted(reader: 0))
        let context = bench.client(1)
        let entry = ServiceStruct(bench.say(1, ServiceBench.message(.readerTable, [])).prefix(184))
        #expect(entry[132] == 0x0C)
        #expect(entry[176] == 0)
        #expect(bench.connect(1, context)?.code == ServiceCode.unresponsiveCard)
    }

    // MARK: - Protocols

    @Test(arguments: [
        // No TD1: T=0.
        ("3B00", 1), ("3B021450", 1),
        // T=1 alone; T=0 and T=1.
        ("3B800181", 2), ("3B80800101", 3), ("3B858131FE458073F60140CA", 2),
        // TA2 names T=1: specific mode, though TD1 offers T=0.
        ("3B80900181", 2),
        // Cut short, or with T=15 alone, which is no protocol.
        ("3B", 0), ("3BF0", 1), ("3B800F", 1),
    ]) func theAnswerToResetOffersProtocols(_ case: (atr: String, offered: UInt32)) throws {
        #expect(CardProtocols.offered(by: try Hex.decode(`case`.atr)) == `case`.offered)
    }

    @Test func t1IsChosenBeforeT0() {
        #expect(CardProtocols.chosen(wished: 3, offered: 3, inForce: 0) == 2)
        #expect(CardProtocols.chosen(wished: 1, offered: 3, inForce: 0) == 1)
        #expect(CardProtocols.chosen(wished: 2, offered: 1, inForce: 0) == nil)
        #expect(CardProtocols.chosen(wished: 4, offered: 1, inForce: 0) == 4)
        #expect(CardProtocols.chosen(wished: 1, offered: 3, inForce: 2) == nil)
    }
}
