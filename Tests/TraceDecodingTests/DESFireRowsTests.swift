// SPDX-License-Identifier: MIT

import Foundation
import Octets
import SessionSupport
import TestSupport
import Testing
import TraceDecoding
import TraceFile

/// DESFire's and NTAG 424 DNA's channels seen from outside.
@Suite struct DESFireRowsTests {
    private func decode(
        _ rows: [TraceRow], _ interfaces: [TraceInterface], _ secrets: SecretStore, triesNearMisses: Bool = false
    ) -> (rows: [DecodedRow], checked: Int, held: Int) {
        var decoder = TraceDecoder(interfaces: interfaces, secrets: secrets)
        decoder.triesNearMisses = triesNearMisses
        let decoded = rows.map { decoder.push($0) }
        return (decoded, decoder.authentication.checked, decoder.authentication.held)
    }

    /// Wrapped exchanges on one reader.
    private func decode(
        _ exchanges: [(String, String)], key text: String, triesNearMisses: Bool = false
    ) throws -> (rows: [DecodedRow], checked: Int, held: Int) {
        var rows: [TraceRow] = []
        for (index, exchange) in exchanges.enumerated() {
            for (direction, octets) in [(RowDirection.sent, exchange.0), (.received, exchange.1)] {
                rows.append(
                    TraceRow(
                        frame: rows.count + 1, time: 0, interface: 0, direction: direction, packetID: UInt64(index + 1),
                        dissector: "iso7816", body: hex(octets)))
            }
        }
        return decode(
            rows, [TraceInterface(.apdu(0))], text.isEmpty ? SecretStore() : try SecretStore.load(text: text),
            triesNearMisses: triesNearMisses)
    }

    private func contents(_ rows: [DecodedRow]) -> [[UInt8]] {
        rows.flatMap(\.fields).filter { $0.path == "desfire.data.data" }.compactMap {
            if case .octets(let octets) = $0.value { octets } else { nil }
        }
    }

    // MARK: - Real cards (specs: captures with their keys)

    private static let challenges = "data/sebastiaangroot__desfire-workshop/handouts/challenges"

    private func capture(_ name: String, key: String) throws -> [DecodedRow] {
        let folder = try #require(SharedData.folder)
        let octets = [UInt8](try Data(contentsOf: folder.appendingPathComponent("\(Self.challenges)/\(name)")))
        let trace = Proxmark3Importer.importTrace(octets, protocol: nil, name: name).trace
        return decode(trace.rows, trace.interfaces, key.isEmpty ? SecretStore() : try SecretStore.load(text: key)).rows
    }

    @Test(
        .enabled(if: SharedData.isPresent, Comment(rawValue: SharedData.absence)),
        arguments: [
            (
                "2-encrypted-comms/chal2.trace", "desfire aid 010010 key 1 des 0000000000000001",
                "666C61677B347537685F346C6F6E335F69355F6E30375F336E6F7539687D"
            ),
            (
                "3-inner-sanctum/chal3-1.trace", "desfire aid 020010 key 1 aes 0000000000000000000462216AE16E80",
                "000000000000000000000000000000000000000000000000666C61677B643363727970745F6672306D5F74723463337D"
            ),
        ]) func aRealCardsFileIsReadWithItsKeyAndSealedWithout(_ name: String, _ key: String, _ plaintext: String) throws
    {
        #expect(contents(try capture(name, key: key)) == [hex(plaintext)])
        // The right key is found among others.
        let others =
            "desfire aid 000000 key 0 des 1111111111111111\ndesfire aid 000000 key 0 aes \(String(repeating: "22", count: 16))"
        #expect(contents(try capture(name, key: "\(others)\n\(key)")) == [hex(plaintext)])
        let sealed = try capture(name, key: "")
        #expect(contents(sealed).isEmpty)
        #expect(sealed.contains { $0.opening == .sealed })
        #expect(!sealed.flatMap(\.annotations).contains { $0.code == "failed" })
    }

    // MARK: - Kept recordings

    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Traces")

    @Test(arguments: [
        ("desfire-d40", 1), ("desfire-ev1-2k3des", 8), ("desfire-ev1-3k3des", 8), ("desfire-ev1-aes", 8), ("desfire-ev2", 18),
        ("ntag424-ev2", 21), ("ntag424-lrp", 25),
    ]) func everyRowOfAKeptChannelIsKnownAndEveryMACHolds(_ name: String, _ macs: Int) throws {
        let path = Self.folder.appendingPathComponent("\(name).pcapng").path
        let trace = try Trace.load(path: path)
        let (rows, checked, held) = decode(trace.rows, trace.interfaces, SecretStore(trace.secrets))
        #expect(checked == macs)
        #expect(held == checked)
        for row in rows {
            let wrong = row.annotations.filter { !["held", "remark"].contains($0.code) }
            #expect(wrong.isEmpty, "\(row.summary): \(wrong.map { "\($0.code) \($0.text)" })")
            #expect(!row.summary.isEmpty && !row.summary.hasPrefix("command "), "row \(row.row.frame)")
        }
        // Without secrets nothing of a protected file is shown, and nothing is said to fail.
        let closed = decode(trace.rows, trace.interfaces, SecretStore()).rows
        #expect(closed.contains { $0.opening == .sealed })
        #expect(!closed.flatMap(\.annotations).contains { $0.code == "failed" })
    }

    // MARK: - Channels by published vectors

    // NXP AN12196, table 14: key 0 of zeros, TI 9D00C4DF.
    private static let key = "desfire aid 01F4A1 key 0 aes 00000000000000000000000000000000"
    private static let first = [
        ("9071000002000000", "A04C124213C186F22399D33AC2A3021591AF"),
        (
            "90AF00002035C3E05A752E0144BAC0DE51C1F22C56B34408A23D8AEA266CAB947EA8E0118D00",
            "3FA64DB5446D1F34CD6EA311167F5E4985B89690C04A05F17FA7AB2F081206639100"
        ),
    ]

    @Test func aCommandMACOfAnotherCounterIsTheProgramsFaultAndItsCounterIsNamed() throws {
        // Both MACs computed with the session keys of the table: counter 1 was used, 0 is due.
        let (rows, _, _) = try decode(
            Self.first + [("90AD00000F020000002000000D9A14E322A873F300", "911E")], key: Self.key, triesNearMisses: true)
        #expect(rows[3].summary == "keys agreed")
        let wrong = try #require(rows[4].annotations.first { $0.code == "failed" })
        #expect(wrong.blame == .program)
        #expect(wrong.text.contains("the command MAC is wrong at command counter 0000"))
        #expect(wrong.text.contains("right for ctr +1"))
        #expect(rows[5].summary == "911E integrity")
        #expect(rows[5].sessions.contains { $0.name == "DESFire" && $0.state == "lost" })
    }

    @Test func aDroppedACutAndAChangedMACOfAnAnswerAreTheCardsFault() throws {
        // The published log of an EV1 card: GetFileIDs and its answer.
        let opening = [
            ("90AA0000010000", "B351CB2465D4F33AC627FD6E87A168F291AF"),
            (
                "90AF000020044B6CAC343A0865895149649CA8DDE1F5AC4EC67BD208900AF02F049E05F0B000",
                "A2EE144B1012FBEB7B2F11132D95A4549100"
            ),
            ("90CD0000070500110050000000", "A75316AD1596B9539100"),
        ]
        let key = "desfire aid 000000 key 0 aes 10182028303840485058606870788088"
        #expect(try decode(opening + [("906F000000", "052D5FF67FFEC9D2D39100")], key: key).held == 2)
        for answer in ["059100", "052D5FF67FFEC9D29100", "052D5FF67FFEC9D2D29100", "A75316AD1596B9539100"] {
            let (rows, _, _) = try decode(opening + [("906F000000", answer)], key: key)
            let wrong = rows[7].annotations.filter { $0.severity == .error }
            #expect(!wrong.isEmpty, "\(answer)")
            #expect(wrong.allSatisfy { $0.blame == .card || $0.blame == nil })
        }
    }

    /// A program, a card and a module that holds the card's keys, on two readers of one trace: each is read by itself, and the
    /// module's session key is not shown.
    @Test func cardAndModuleAreTwoStoriesInOneTrace() throws {
        var rows: [TraceRow] = []
        func exchange(_ interface: Int, _ sent: String, _ received: String) {
            for (direction, octets) in [(RowDirection.sent, sent), (.received, received)] {
                rows.append(
                    TraceRow(
                        frame: rows.count + 1, time: 0, interface: interface, direction: direction,
                        packetID: UInt64(rows.count / 2 + 1), dissector: "iso7816", body: hex(octets)))
            }
        }
        exchange(0, "905A00000301F4A100", "9100")
        exchange(0, Self.first[0].0, Self.first[0].1)
        exchange(
            1, "800A0000120100A04C124213C186F22399D33AC2A3021500",
            "35C3E05A752E0144BAC0DE51C1F22C56B34408A23D8AEA266CAB947EA8E0118D90AF")
        exchange(0, Self.first[1].0, Self.first[1].1)
        exchange(1, "800A0000203FA64DB5446D1F34CD6EA311167F5E4985B89690C04A05F17FA7AB2F0812066300", "9000")
        exchange(1, "80D5000000", "1309C877509E5A215007FF0ED19CA5644C6626F5E72EA694202139295C7A7FC79000")
        exchange(0, "90AD00000F020000002000000D9A14E322A873F300", "911E")
        let interfaces = [TraceInterface(.apdu(0), description: "card"), TraceInterface(.apdu(1), description: "sam")]
        let decoded = decode(rows, interfaces, try SecretStore.load(text: Self.key), triesNearMisses: true).rows
        #expect(
            decoded.filter { $0.kind == .command }.map(\.summary) == [
                "SelectApplication 01F4A1", "AuthenticateEV2First, key 0", "SAM_AuthenticatePICC", "Authenticate, part 2",
                "SAM_AuthenticatePICC", "SAM_DumpSessionKey", "ReadData file 02, 32 bytes at 0",
            ])
        let dump = decoded[11]
        #expect(dump.fields.contains { $0.path == "mifareSAM.keys.keys" && $0.isSealed })
        #expect(decoded[12].annotations.contains { $0.text.contains("right for ctr +1") })
        #expect(decoded[13].summary == "911E integrity")
    }
}
