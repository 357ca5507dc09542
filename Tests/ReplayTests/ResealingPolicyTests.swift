// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Flows
import Foundation
import Octets
import SessionSupport
import TagTransport
import Testing
import TraceFile
import VirtualCards

@testable import Replay

/// What other orders and answers of one's own ask of a channel, and what hostile octets do to it.
@Suite struct ResealingPolicyTests {
    private func read(_ transport: any NFCTagTransport, _ groups: [DataGroupId]) async throws -> PassportModel {
        let draws = SeededDraws(seed: 9)
        return try await CardEnvironment.with(CardEnvironment(random: draws, clock: draws, readersAllowed: false)) {
            try await CoreExtendedNFC.readPassport(
                transport: transport, mrzKey: specimenKey, dataGroups: groups, performActiveAuth: false)
        }
    }

    @Test(arguments: ["passport-bac", "passport-pace-ecdh-gm-aes128"])
    func filesInAnotherOrderAreServedUnderTheRunsOwnCounters(_ name: String) async throws {
        let (matching, steps) = try ResealingTests.replay(name).resealed(seed: 4)
        let groups: [DataGroupId] = name == "passport-bac" ? [.dg1, .sod, .com] : [.dg2, .dg1, .com, .sod]
        let transport = MatchedTransport(matching, steps)
        let model = try await read(transport, groups)
        #expect(model.mrz?.documentNumber == "L898902C")
        #expect(model.dataGroupReadStatus.values.allSatisfy { $0 == .read })
        #expect(transport.isUsedUp)
    }

    /// Command 5 is the first under secure messaging, SELECT EF.COM: a chip's refusal of it is protected.
    @Test func anAnswerOfOnesOwnIsProtectedUnderTheRunsKeys() async throws {
        let (matching, steps) = try ResealingTests.replay("passport-bac").resealed(seed: 4)
        let passed = Answers()
        let refused = MatchedTransport(matching, steps, own: [5: [0x6A, 0x82]])
        let error = await #expect(throws: NFCError.self) { try await read(PassedTransport(refused, passed), [.com, .sod, .dg1]) }
        // The library opened the refusal: it is not taken for a wrong MAC.
        #expect("\(error.map { "\($0)" } ?? "")".contains("6A82"))
        try #require(passed.all.count > 5)
        let answer = passed.all[5]
        #expect(answer.command[0] == 0x0C && answer.command[1] == 0xA4)
        // 99 02 6A82, 8E 08 and the MAC, 6A82 (9303-11 9.8.6).
        #expect(answer.answer.starts(with: [0x99, 0x02, 0x6A, 0x82, 0x8E, 0x08]))
        #expect(answer.answer.suffix(2) == [0x6A, 0x82])
    }

    @Test func aCommandInClearWhereOneWasProtectedIsAnother() async throws {
        let (matching, steps) = try ResealingTests.replay("passport-bac").resealed(seed: 4)
        let place = try #require(steps.firstIndex { $0.command?.octets.first == 0x0C })
        let command = matching.open(hex("00A4020C02011E"))
        #expect(matching.difference(of: command, from: place) != nil)
    }

    // MARK: - Hostile octets

    /// Recordings with changed octets, and commands of any form, are answered or refused, and nothing traps.
    @Test(arguments: [
        "passport-bac", "passport-pace-dh-im-3des", "passport-chip-authentication", "desfire-d40", "desfire-ev1-aes",
        "ntag424-lrp",
    ])
    func octetsOfAnyKindDoNoHarm(_ name: String) async throws {
        let replay = try ResealingTests.replay(name)
        var random = CardRandom(seed: 77, use: name)
        func number(_ limit: Int) -> Int {
            let octets = random.octets(4)
            return octets.reduce(0) { $0 << 8 | Int($1) } % max(1, limit)
        }
        var compared = 0
        for _ in 0..<20 {
            var trace = replay.trace
            let rows = trace.rows.indices.filter { place in
                guard case .apdu = trace.interfaces[trace.rows[place].interface].kind else { return false }
                return !trace.rows[place].body.isEmpty
            }
            for _ in 0..<(1 + number(6)) {
                let row = rows[number(rows.count)]
                switch number(3) {
                case 0: trace.rows[row].body[number(trace.rows[row].body.count)] = random.octets(1)[0]
                case 1: trace.rows[row].body = Array(trace.rows[row].body.prefix(1 + number(trace.rows[row].body.count)))
                default: trace.rows[row].body += random.octets(number(300))
                }
            }
            guard let (matching, steps) = try? Replay(of: trace, secrets: replay.secrets).resealed(seed: 1) else { continue }
            for place in steps.indices {
                guard let recorded = steps[place].command?.octets else { continue }
                var octets = recorded
                if number(3) == 0, !octets.isEmpty { octets[number(octets.count)] ^= 1 << UInt8(number(8)) }
                if number(9) == 0 { octets = random.octets(number(300)) }
                let command = matching.open(octets)
                for other in [place, number(steps.count)] { _ = matching.difference(of: command, from: other) }
                if number(5) == 0 { _ = matching.answer(to: command, with: random.octets(number(20))) }
                if case .response(let answer) = matching.answer(to: command, from: place) {
                    compared += 1
                    #expect(!answer.octets.isEmpty || recorded.isEmpty)
                }
            }
            matching.reset()
        }
        #expect(compared > 50)
    }
}

/// Keeps what passes another transport.
private final class PassedTransport: ISO7816TagTransporting, Sendable {
    private let base: MatchedTransport
    private let passed: Answers

    init(_ base: MatchedTransport, _ passed: Answers) {
        self.base = base
        self.passed = passed
    }

    var identifier: Data { Data() }
    var initialAID: String { "" }
    func send(_ data: Data) async throws -> Data { try await base.send(data) }
    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let answer = try await base.sendAPDU(apdu)
        passed.add(apdu.octets, answer.octets)
        return answer
    }
}
