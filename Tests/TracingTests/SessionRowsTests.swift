// SPDX-License-Identifier: MIT

import Foundation
import SessionSupport
import TagTransport
import TestSupport
import Testing
import TraceFile
import Tracing

/// What a recorded flow leaves: rows, their order, numbers and flags.
@Suite struct SessionRowsTests {
    @Test func everyInterfaceHasTheLinkTypeOfUpperPDUs() async throws {
        let session = try await Session.passport()
        #expect(session.trace.interfaces.map(\.kind) == [.apdu(0), .reader(0), .meta])
        #expect(session.trace.interfaces.allSatisfy { $0.linkType == 252 })
        #expect(session.trace.interfaces[0].description == "virtual:passport (T=CL)")
        #expect(session.trace.header.format == 1)
        #expect(session.trace.damage == nil)
    }

    @Test func aSessionBeginsWithItsCardAndItsCall() async throws {
        let session = try await Session.passport()
        let rows = session.trace.rows
        #expect(rows.prefix(5).map(\.dissector) == ["syslog", "json", "iso7816", "json", "json"])
        #expect(rows.prefix(5).map { session.trace.kind(of: $0).name } == ["reader:0", "reader:0", "apdu:0", "meta", "meta"])
        // The card's event with its ATR is one thing, the call with its transport another.
        #expect(rows.prefix(5).map(\.packetID) == [1, 1, 1, 2, 2])
        #expect(rows[0].body == Array("<13>virtual:passport: connect ATR 3B858001807394014022".utf8))
        #expect(rows[2].body == hex("3B858001807394014022"))
        #expect(rows[2].direction == .received)
        #expect(
            String(decoding: rows[3].body, as: UTF8.self)
                == #"{"td":"transport","id":1,"kind":"iso7816","identifier":"08544401","initialAID":"","atr":"3B858001807394014022"}"#
        )
        #expect(
            String(decoding: rows[4].body, as: UTF8.self)
                == #"{"td":"call","id":1,"parent":null,"flow":"passport","function":"readPassport(transport:access:dataGroups:performActiveAuth:trustAnchorsDER:terminal:onProgress:)","args":{"dataGroups":["com","sod","dg1"],"mrzKey":{"sealed":"call:1:mrzKey"},"performActiveAuth":false,"transport":{"omitted":"transport"}},"transport":1}"#
        )
    }

    @Test func aCommandAndItsAnswerShareOneNumberAndNothingElseDoes() async throws {
        let session = try await Session.passport()
        let exchanges = session.trace.rows.filter { session.trace.kind(of: $0) == .apdu(0) }.dropFirst()
        #expect(exchanges.count == 42)
        for (command, answer) in zip(exchanges.striding(0), exchanges.striding(1)) {
            #expect(command.direction == .sent)
            #expect(answer.direction == .received)
            #expect(command.packetID == answer.packetID)
            #expect(command.time <= answer.time)
        }
        let numbers = exchanges.striding(0).compactMap(\.packetID)
        #expect(Set(numbers).count == 21)
        let others = session.trace.meta.filter { item in
            switch item.meta {
            case .transport, .progress, .clock: false
            default: true
            }
        }.compactMap(\.row.packetID)
        #expect(Set(others).isDisjoint(with: numbers))
    }

    @Test func numbersGrowByOneInTheOrderOfEvents() async throws {
        let session = try await Session.passport()
        var seen: [UInt64] = []
        for number in session.trace.rows.compactMap(\.packetID) where !seen.contains(number) { seen.append(number) }
        // 1 card, 2 call, 3-6 plain, 7 draws, 8 authentication, 9-24 files, 25 return.
        #expect(seen == Array(1...25))
    }

    @Test func theDrawsBeforeOneExchangeShareOneNumberOfTheirOwn() async throws {
        let session = try await Session.passport()
        let draws = session.trace.meta.filter { if case .entropy = $0.meta { true } else { false } }
        #expect(draws.map(\.row.packetID) == [7, 7])
        #expect(
            draws.map { String(decoding: $0.row.body, as: UTF8.self) } == [
                #"{"td":"entropy","call":1,"label":"bac.rndIFD","index":0,"length":8}"#,
                #"{"td":"entropy","call":1,"label":"bac.kIFD","index":0,"length":16}"#,
            ]
        )
    }

    @Test func progressBearsItsCallsNumberAndItsTextIsSealed() async throws {
        let session = try await Session.passport()
        let rows = session.trace.meta.filter { if case .progress = $0.meta { true } else { false } }
        #expect(!rows.isEmpty)
        #expect(rows.allSatisfy { $0.row.packetID == 2 })
        #expect(
            String(decoding: rows[0].row.body, as: UTF8.self)
                == #"{"td":"progress","call":1,"text":{"sealed":"call:1:progress:0"}}"#)
        #expect(session.secrets.value(named: "call:1:progress:0") != nil)
    }

    @Test func theReturnIsTheLastRowAndItsResultIsAmongTheSecrets() async throws {
        let session = try await Session.passport()
        let last = try #require(session.trace.rows.last)
        #expect(String(decoding: last.body, as: UTF8.self) == #"{"td":"return","call":1,"ok":true}"#)
        #expect(last.packetID == 25)
        let result = try #require(session.secrets.value(named: "call:1:result"))
        #expect(String(decoding: result, as: UTF8.self) == session.result)
    }

    @Test func bothFilesAreForTheirOwnerAloneAndBearOneSession() async throws {
        let session = try await Session.passport()
        for name in ["a.pcapng", "a.secrets"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: session.folder(name))
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
        let id = try #require(session.trace.header.session)
        #expect(UUID(uuidString: id) != nil)
        #expect(session.secrets.session == id)
    }

    @Test func stampsNeverStepBack() async throws {
        let times = try await Session.passport().trace.rows.map(\.time)
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 <= $1 })
    }

    @Test func withoutSecretsThereIsNoSideFileAndTheRowsAreTheSame() async throws {
        let session = try await Session.script("00200001 04 31323334\n= 9000", secrets: .none)
        #expect(!FileManager.default.fileExists(atPath: session.folder("a.secrets")))
        #expect(session.secrets.isEmpty)
        #expect(session.trace.secrets.isEmpty)
        #expect(session.trace.exchanges == ["> 002000010400000000", "< 9000"])
        let sealed = try #require(session.trace.rows.first { !$0.comments.isEmpty })
        #expect(sealed.comments == ["tapdeck sealed 5+4"])
    }

    @Test func embeddedSecretsStandBeforeTheRowsThatUseThem() async throws {
        let session = try await Session.script("00200001 04 31323334", secrets: .embedded)
        #expect(!FileManager.default.fileExists(atPath: session.folder("a.secrets")))
        var reader = try TraceReader(path: session.path)
        var known: [SecretRecord] = []
        var checked = 0
        while let item = reader.next() {
            switch item {
            case .secrets(let records): known += records
            case .row(let row) where !row.comments.isEmpty:
                checked += 1
                #expect(
                    known.contains {
                        $0.packetID == row.packetID.map { UInt32($0) } && $0.offset == 5 && $0.octets == hex("31323334")
                    })
            default: break
            }
        }
        #expect(checked == 1)
    }

    @Test func aScriptWithAPINIsSealedAsAWholeAndOneWithoutIsNot() async throws {
        let secret = try await Session.script("00A40000023F00\n00200001 04 31323334")
        #expect(secret.trace.calls.first?.args["script"]?.sealedName == "call:1:script")
        let open = try await Session.script("00A40000023F00")
        #expect(open.trace.calls.first?.args["script"]?.stringValue == "00A40000023F00")
    }

    @Test func aCardThatGoesAwayIsARowOfItsOwnAndNoAnswerIsMadeUp() async throws {
        let session = try await Session.script("00A40000023F00\n00B0810010\n00B0810010", "virtual:filesystem?fault=remove%402")
        #expect(session.result == nil)
        #expect(session.trace.exchanges == ["> 00A40000023F00", "< 9000", "> 00B0810010"])
        let failure = try #require(session.trace.failures.first)
        #expect(session.trace.failures.count == 1)
        #expect(failure == MetaRow.Failure(after: 4, domain: "PCSC", case: "tagConnectionLost", code: "80100069"))
        let row = try #require(session.trace.meta.first { if case .error = $0.meta { true } else { false } }?.row)
        #expect(session.trace.kind(of: row) == .reader(0))
        #expect(row.packetID == 5)
        let end = try #require(session.trace.returns.last)
        #expect(!end.ok)
        #expect(end.domain == "PCSC")
        #expect(end.case == "tagConnectionLost")
        #expect(session.secrets.value(named: "call:1:error") != nil)
    }

    @Test func aResetAndARemovalAreEventsWithNumbersOfTheirOwn() async throws {
        let session = try await Session.script("00A40000023F00\n!reset\n00A40000023F00\n!remove")
        let events = session.trace.meta.compactMap { item -> String? in
            if case .reader(let event) = item.meta { "\(item.row.packetID ?? 0) \(event.name)" } else { nil }
        }
        #expect(events == ["1 connect", "4 reset", "6 removal"])
    }

    @Test func theSummaryCountsWhatWasRecorded() async throws {
        let folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        let card = try virtualCard("virtual:filesystem")
        let wrapped = recording.wrap(card)
        _ = try await recording.run {
            _ = try await wrapped.sendAPDU(CommandAPDU(cla: 0, ins: 0xA4, p1: 0, p2: 0, data: Data([0x3F, 0x00])))
            _ = try await wrapped.sendAPDU(CommandAPDU(cla: 0, ins: 0xA4, p1: 0, p2: 0, data: Data([0x12, 0x34])))
        }
        try recording.close()
        let summary = recording.summary
        let trace = try Trace.load(path: folder("a.pcapng"))
        #expect(summary.exchanges == 2)
        #expect(summary.rows == trace.rows.count)
        #expect(summary.byteCount == UInt64(try folder.octets("a.pcapng").count))
        #expect(summary.secretsByteCount == UInt64(try folder.octets("a.secrets").count))
        let refusal = try #require(summary.lastRefusal)
        #expect(refusal.exchange == 4)
        #expect(refusal.instruction == 0xA4)
        #expect(refusal.status == 0x6A82)
        #expect(summary.readerNames == ["virtual:filesystem"])
        #expect(summary.seconds > 0)
    }

    @Test func anExistingFileIsNeverOverwrittenUnlessToldSo() throws {
        let folder = try TemporaryFolder()
        try folder.write("precious", "a.pcapng")
        #expect(throws: TraceFileError(.exists, path: "")) { try Recording(to: folder("a.pcapng")) }
        #expect(try folder.octets("a.pcapng") == Array("precious".utf8))
        try Recording(to: folder("a.pcapng"), replacing: true).close()
        #expect(try Trace.load(path: folder("a.pcapng")).header.format == 1)
    }
}

extension Sequence {
    /// Every second element, from the first or the second on.
    fileprivate func striding(_ phase: Int) -> [Element] { enumerated().filter { $0.offset % 2 == phase }.map(\.element) }
}
