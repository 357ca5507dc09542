// SPDX-License-Identifier: MIT

import Octets
import SessionSupport
import Testing
import TraceDecoding
import TraceFile

/// Two traces compared, and a trace copied with what is known.
@Suite struct TraceDiffTests {
    @Test func twoReadsOfOnePassportDifferInNothingThoughEveryCryptogramDoes() async throws {
        let (one, other) = (try await Session.passport(), try await Session.passport())
        let diff = TraceDiff((one.trace, one.secrets), (other.trace, other.secrets))
        #expect(diff.isSame, "\(diff.differences.prefix(3))")
        #expect(diff.exchanges.left == 21)
        #expect(zip(one.trace.rows, other.trace.rows).contains { $0.body != $1.body })
    }

    @Test func anotherAnswerIsNamedByItsFieldAndHasAnEffect() async throws {
        let session = try await Session.script("00A40000023F00\n00B0810010")
        var other = session.trace
        let place = try #require(
            other.rows.lastIndex { $0.direction == .received && $0.dissector == "iso7816" && $0.body.count >= 2 })
        other.rows[place].body = hex("6A82")
        let diff = TraceDiff((session.trace, session.secrets), (other, session.secrets))
        #expect(!diff.isSame)
        let difference = try #require(diff.differences.first { $0.path == "iso7816.response.sw" })
        #expect(difference.right == "27266")
        #expect(difference.effect)
        #expect(difference.leftPacket == other.rows[place].packetID)
    }

    @Test func anExchangeOfOneSideIsNamed() async throws {
        let (one, other) = (try await Session.script("00A40000023F00\n00B0810010"), try await Session.script("00A40000023F00"))
        let diff = TraceDiff((one.trace, one.secrets), (other.trace, other.secrets))
        #expect(diff.differences.map(\.code) == [.exchange])
        #expect(diff.differences.first?.right == nil)
    }

    @Test func withoutKeysSealedMessagesAreCountedAndNotCompared() async throws {
        let (one, other) = (try await Session.passport(), try await Session.passport())
        let diff = TraceDiff((one.trace, SecretStore()), (other.trace, SecretStore()))
        #expect(diff.sealed > 30)
        #expect(diff.isSame, "\(diff.differences.prefix(3))")
    }

    @Test func anAnnotatedCopyKeepsEveryRawRowAndPutsThePlainPairBehind() async throws {
        let session = try await Session.passport()
        var rows = AnnotatedRows(secrets: session.secrets)
        let interfaces = AnnotatedRows.interfaces(for: session.trace.interfaces)
        for (index, interface) in interfaces.enumerated() { rows.add(interface, index: index) }
        let copy = session.trace.rows.flatMap { rows.push($0) }
        let plain = try #require(interfaces.firstIndex { $0.kind == .plain(0) })
        let raw = copy.filter { $0.interface != plain }
        #expect(raw.map(\.body) == session.trace.rows.map(\.body))
        #expect(raw.map(\.packetID) == session.trace.rows.map(\.packetID))
        // 16 protected exchanges, a command and an answer each.
        #expect(rows.plains == 32)
        let first = try #require(copy.firstIndex { $0.interface == plain })
        #expect(copy[first].body == hex("00A4020C02011E"))
        #expect(copy[first].packetID == copy[first - 1].packetID)
        #expect(copy[first - 1].direction == .received)
        #expect(copy[first + 1].body == hex("9000"))
        #expect(copy[first - 1].comments.contains { $0.contains("MAC: held") })
    }

    @Test func aCopyOfACopyIsTheSame() async throws {
        let session = try await Session.passport()
        func copy(_ rows: [TraceRow], _ interfaces: [TraceInterface]) -> [TraceRow] {
            var maker = AnnotatedRows(secrets: session.secrets)
            for (index, interface) in interfaces.enumerated() { maker.add(interface, index: index) }
            return rows.flatMap { maker.push($0) }
        }
        let interfaces = AnnotatedRows.interfaces(for: session.trace.interfaces)
        let once = copy(session.trace.rows, interfaces)
        #expect(AnnotatedRows.interfaces(for: interfaces) == interfaces)
        #expect(copy(once, interfaces) == once)
    }

    @Test func whatIsSealedIsInNoFieldNoBufferAndNoText() async throws {
        let session = try await Session.script("00A40000023F00\n00200001 04 31323334\n00240001 08 3132333435363738")
        var decoder = TraceDecoder(interfaces: session.trace.interfaces, secrets: session.secrets)
        var hidden = 0
        for row in session.trace.rows {
            let decoded = decoder.push(row)
            let text =
                "\(decoded.fields.map(\.value)) \(decoded.fields.map(\.text)) \(decoded.annotations) \(decoded.derived) \(decoded.summary)"
            for secret in ["31323334", "49, 50, 51, 52", "1234"] { #expect(!text.contains(secret), "frame \(row.frame)") }
            hidden += decoded.fields.filter(\.isSealed).count
        }
        #expect(hidden >= 4)
    }
}
