// SPDX-License-Identifier: MIT

import Testing
import TraceDecoding
import TraceFile

/// A credential session as a recorder writes it: calls, their returns and events as rows of JSON.
@Suite struct CredentialSessionRowsTests {
    private static let rows = [
        #"{"td":"call","id":1,"parent":null,"flow":"credential","function":"startSession()","args":{},"transport":null}"#,
        #"{"td":"return","call":1,"ok":true}"#,
        #"{"td":"call","id":2,"parent":null,"flow":"credential","function":"enterWiredMode(for:)","args":{},"transport":null}"#,
        #"{"td":"return","call":2,"ok":true}"#,
        #"{"td":"call","id":3,"parent":null,"flow":"credential","function":"endWiredMode()","args":{},"transport":null}"#,
        #"{"td":"return","call":3,"ok":true}"#,
        #"{"td":"call","id":4,"parent":null,"flow":"credential","function":"transceive(_:)","args":{"data":"00A4040000"},"transport":null}"#,
        #"{"td":"return","call":4,"ok":false,"domain":"ErrorCode","case":"invalidSessionState"}"#,
        #"{"td":"event","call":1,"name":"sessionInvalidated","detail":{}}"#,
    ]

    private func decoded(_ rows: [String]) -> [DecodedRow] {
        var decoder = TraceDecoder(interfaces: [TraceInterface(.meta)])
        return rows.enumerated().map { number, text in
            decoder.push(
                TraceRow(
                    frame: number + 1, time: UInt64(number) * 1_000_000, interface: 0, direction: .sent,
                    packetID: UInt64(number + 1), dissector: "json", body: Array(text.utf8)))
        }
    }

    @Test func theOneCallOutOfOrderIsNamedWithItsStateAndWhatWasAllowed() throws {
        let rows = decoded(Self.rows)
        let illegal = rows.flatMap(\.annotations).filter { $0.code == "illegal" }
        let only = try #require(illegal.first)
        #expect(illegal.count == 1)
        #expect(only.text.hasPrefix("transceive is not allowed in management; allowed: "))
        #expect(only.text.contains("enterWiredMode"))
        #expect(!only.text.contains("endWiredMode"))
        #expect(only.blame == .program)
        #expect(rows[7].annotations == illegal)
        #expect(rows[7].grammar == "credentialSession")
    }

    @Test func theSummaryMarksTheRowThatWasNotAllowed() throws {
        var summary = TraceSummary()
        var lines = decoded(Self.rows).flatMap { summary.push($0) }
        lines += summary.end()
        let marked = lines.filter { !$0.annotations.isEmpty }
        #expect(marked.map(\.number) == [8])
        #expect(summary.errors == 1)
    }
}
