// SPDX-License-Identifier: MIT

import CardCrypto
import CoreExtendedNFC
import Foundation
import Octets
import TestSupport
import Testing
import TraceFile

/// Traces of real cards with known keys: the library, given the reader's recorded random number, sends what that reader sent and
/// reads what it read.
@Suite(.enabled(if: SharedData.isPresent, Comment(rawValue: SharedData.absence)))
struct DESFireRealTraceTests {
    private static let folder = "data/sebastiaangroot__desfire-workshop/handouts/challenges"

    /// The commands and answers inside the ISO/IEC 14443-4 blocks of a Proxmark3 trace.
    private func exchanges(_ name: String) throws -> [(String, String)] {
        let folder = try #require(SharedData.folder)
        let octets = [UInt8](try Data(contentsOf: folder.appendingPathComponent("\(Self.folder)/\(name)")))
        let imported = Proxmark3Importer.importTrace(octets, protocol: nil, name: name)
        var commands: [String] = []
        var answers: [String] = []
        for row in imported.trace.rows where row.dissector == "iso14443" {
            // Four octets of the link type, then the block: I-blocks with a card identifier here, a CRC of two octets behind.
            let frame = Array(row.body.dropFirst(4))
            guard frame.count > 4, frame[0] & 0xFE == 0x0A else { continue }
            let inner = Hex.encode(frame[2..<frame.count - 2])
            if row.direction == .sent { commands.append(inner) } else { answers.append(inner) }
        }
        try #require(commands.count == answers.count && !commands.isEmpty)
        return Array(zip(commands, answers))
    }

    private func card(_ exchanges: [(String, String)], rndA: String, _ work: (inout DESFireCard) async throws -> Void)
        async throws
    {
        let chip = ScriptedChip(exchanges: exchanges)
        let environment = CardEnvironment(random: FixedRandom(draws: ["desfire.rndA": octets(rndA)]))
        try await CardEnvironment.with(environment) {
            var card = DESFireCard(transport: chip)
            try await work(&card)
        }
        #expect(chip.commands.count == exchanges.count)
    }

    @Test func theD40CardOfChallenge2IsReadAgain() async throws {
        try await card(try exchanges("2-encrypted-comms/chal2.trace"), rndA: "1926D4D1CFB36F49") { card in
            try await card.selectApplication(Data([0x01, 0x00, 0x10]))
            try await card.authenticate(
                keyNumber: 1, key: try DESFireKey(.des, octets("0000000000000001")), method: .legacy)
            #expect(try await card.fileSettings(1).communication == .enciphered)
            #expect(
                try await card.read(1, length: 30) == data("666C61677B347537685F346C6F6E335F69355F6E30375F336E6F7539687D"))
        }
    }

    @Test func theEV1CardOfChallenge3IsReadAgain() async throws {
        try await card(
            try exchanges("3-inner-sanctum/chal3-1.trace"), rndA: "42DD37CF783D227636E7A6C6FD5C742B"
        ) { card in
            try await card.selectApplication(Data([0x02, 0x00, 0x10]))
            try await card.authenticate(
                keyNumber: 1, key: try DESFireKey(.aes, octets("0000000000000000000462216AE16E80")), method: .aes)
            #expect(try await card.fileSettings(1).fileSize == 48)
            #expect(try await card.read(1, length: 48) == Data(count: 24) + Data("flag{d3crypt_fr0m_tr4c3}".utf8))
        }
    }

    @Test func aWrongKeyIsFoundOutOnTheRealTraces() async throws {
        let rows = try exchanges("3-inner-sanctum/chal3-1.trace")
        let chip = ScriptedChip { number, _ in octets(number < rows.count ? rows[number].1 : "6F00") }
        let environment = CardEnvironment(
            random: FixedRandom(draws: ["desfire.rndA": octets("42DD37CF783D227636E7A6C6FD5C742B")]))
        await CardEnvironment.with(environment) {
            var card = DESFireCard(transport: chip)
            await #expect(throws: NFCError.authenticationFailed) {
                try await card.selectApplication(Data([0x02, 0x00, 0x10]))
                try await card.authenticate(keyNumber: 1, key: .zero(.aes))
            }
        }
    }
}
