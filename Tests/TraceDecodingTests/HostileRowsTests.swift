// SPDX-License-Identifier: MIT

import Octets
import SessionSupport
import TestSupport
import Testing
import TraceDecoding
import TraceFile

/// Rows come from files that anybody may have made.
@Suite struct HostileRowsTests {
    private func decode(_ rows: [TraceRow], _ interfaces: [TraceInterface], _ secrets: SecretStore) -> (lines: Int, width: Int) {
        var decoder = TraceDecoder(interfaces: interfaces, secrets: secrets, showsSecrets: true)
        var summary = TraceSummary()
        var lines: [SummaryLine] = []
        for row in rows { lines += summary.push(decoder.push(row)) }
        lines += summary.end()
        return (lines.count, lines.map { $0.text(withFrames: true).count }.max() ?? 0)
    }

    @Test func noMutatedRowTraps() async throws {
        var generator = SeededGenerator(seed: 5)
        var seeds: [Session] = [try await .passport(), try await .passport("virtual:passport?fault=remove%4012")]
        seeds.append(
            try await .script("00A40000023F00\n00200001 04 31323334\n!reset\n00B0810010\n00A40000020003\n00B00000009C40\n!remove")
        )
        var mutations = 0
        while mutations < 100_000 {
            for seed in seeds {
                var rows = seed.trace.rows
                for _ in 0..<rows.count {
                    let index = Int.random(in: rows.indices, using: &generator)
                    mutate(&rows[index], &generator)
                    mutations += 1
                }
                if Bool.random(using: &generator) { rows.shuffle(using: &generator) }
                let outcome = decode(rows, seed.trace.interfaces, Bool.random(using: &generator) ? seed.secrets : SecretStore())
                guard outcome.lines > 0 else {
                    Issue.record("no line of \(rows.count) rows")
                    return
                }
            }
        }
    }

    private func mutate(_ row: inout TraceRow, _ generator: inout SeededGenerator) {
        func any<Value: FixedWidthInteger>(_ type: Value.Type) -> Value { Value.random(in: .min ... .max, using: &generator) }
        switch Int.random(in: 0..<9, using: &generator) {
        case 0: row.time = any(UInt64.self)
        case 1: row.packetID = Bool.random(using: &generator) ? nil : any(UInt64.self) % 40
        case 2: row.direction = [nil, .sent, .received].randomElement(using: &generator) ?? nil
        case 3: row.body = Array(row.body.prefix(Int.random(in: 0...row.body.count, using: &generator)))
        case 4: row.interface = Int.random(in: -1...4, using: &generator)
        case 5: row.comments = ["tapdeck sealed \(any(Int8.self))+\(any(Int8.self)),\(any(Int.self))+\(any(Int.self))"]
        case 6:
            // Another number in a row of JSON.
            guard row.dissector == "json" else { fallthrough }
            let digits = row.body.indices.filter { (0x30...0x39).contains(row.body[$0]) }
            guard let place = digits.randomElement(using: &generator) else { fallthrough }
            let number =
                ["9223372036854775807", "-9223372036854775808", "1e308", "-1", "\"x\"", "null"].randomElement(using: &generator)
                ?? ""
            row.body.replaceSubrange(place...place, with: Array(number.utf8))
        default:
            for _ in 0..<Int.random(in: 1...4, using: &generator) where !row.body.isEmpty {
                row.body[Int.random(in: row.body.indices, using: &generator)] = any(UInt8.self)
            }
        }
    }

    static let numbers = ["9223372036854775807", "-9223372036854775808", "0", "-1"]

    @Test(arguments: numbers) func numbersAtTheirLimitsTrapNothing(_ number: String) {
        let texts = [
            #"{"td":"entropy","call":\#(number),"label":"a","index":\#(number),"length":\#(number)}"#,
            #"{"td":"entropy","call":\#(number),"label":"b","index":\#(number),"length":\#(number)}"#,
            #"{"td":"call","id":\#(number),"parent":null,"flow":null,"function":"f","args":{},"transport":\#(number)}"#,
            #"{"td":"return","call":\#(number),"ok":true}"#,
            #"{"td":"clock","call":\#(number),"kind":"monotonic","ns":"\#(number)"}"#,
            #"{"td":"error","after":\#(number),"domain":"PCSC","case":"timeout"}"#,
            #"{"td":"reader","name":"control","control":\#(number)}"#,
        ]
        let rows = texts.map {
            TraceRow(time: 0, interface: 0, direction: nil, packetID: 7, dissector: "json", body: Array($0.utf8))
        }
        let result = SecretRecord(
            kind: .sealed, name: "call:\(number):result",
            octets: Array(#"{"dataGroupReadStatus":{"dg\#(number)":"read","dg":"read","com":"read"}}"#.utf8))
        #expect(decode(rows, [TraceInterface(.meta)], SecretStore([result])).lines > 0)
        #expect(decode(rows, [TraceInterface(.reader(0))], SecretStore([result])).lines > 0)
    }

    @Test func anyNumberOfKeysIsGoneThroughInTimeThatGrowsWithIt() {
        let names = ["bac.seed", "secureMessaging.enc", "secureMessaging.mac", "secureMessaging.ssc"]
        let records = (0..<120_000).map { index in
            let octets = (0..<(index % 4 == 3 ? 8 : 16)).map { UInt8(truncatingIfNeeded: index >> ($0 & 3 * 8)) }
            return SecretRecord(kind: .key, packetID: UInt32(index / 4), name: names[index % 4], octets: octets)
        }
        let authentication = [0x00, 0x82, 0x00, 0x00, 0x28] + [UInt8](repeating: 7, count: 40) + [0x28]
        let rows = (UInt64(1)...2_000).map {
            TraceRow(
                time: $0, interface: Int($0 % 200), direction: .sent, packetID: $0, dissector: "iso7816", body: authentication)
        }
        let start = ContinuousClock.now
        let interfaces = (0..<200).map { TraceInterface(.apdu($0)) }
        #expect(decode(rows, interfaces, SecretStore(records)).lines == 2_000)
        #expect(ContinuousClock.now - start < .seconds(120))
    }
}
