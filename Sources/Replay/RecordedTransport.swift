// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets
import TagTransport
import TraceFile

/// A recorded card of any kind.
class RecordedTransport: NFCTagTransport, CardConnection, @unchecked Sendable {
    // Unchecked for the sake of the subclasses alone: all stored properties are constant and Sendable.
    let card: RecordedCard
    let identifier: Data
    let readerName: String
    let atr: Data
    let protocolName = "recorded"

    /// How many times as long as recorded an answer takes.
    let timeScale: Double

    init(_ card: RecordedCard, timeScale: Double) {
        self.card = card
        self.timeScale = timeScale
        identifier = Data(card.transport.row.identifier ?? [])
        readerName = card.transport.readerName
        atr = Data(card.transport.row.atr ?? [])
    }

    func send(_ data: Data) async throws -> Data { Data(try await timed { try card.frame(Array(data)) }) }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let octets = try await timed { try card.apdu(apdu.octets) }
        do { return try ResponseAPDU(bytes: octets) } catch {
            throw TransportError(.malformedResponse, detail: error.description)
        }
    }

    func resetCard() async throws -> Data { Data(try card.reset()) }
    func removeCard() async throws { try card.removal() }
    func control(code: UInt32, data: Data) async throws -> Data { Data(try card.control(code: code, input: Array(data))) }

    /// The transport for a recorded card, with the sub-protocols that the recorded one had.
    static func make(_ card: RecordedCard, timeScale: Double = 0) -> RecordedTransport {
        switch card.transport.row.kind {
        case .iso7816: RecordedISO7816Transport(card, timeScale: timeScale)
        case .felica: RecordedFeliCaTransport(card, timeScale: timeScale)
        case .iso15693: RecordedISO15693Transport(card, timeScale: timeScale)
        case .raw: RecordedTransport(card, timeScale: timeScale)
        }
    }

    /// An answer, or a failure, after the time that it took when it was recorded.
    func timed<Answer>(_ exchange: () throws -> Answer) async throws -> Answer {
        guard timeScale > 0 else { return try exchange() }
        let answer = Result { try exchange() }
        let nanoseconds = min(Double(card.takeDelay()) * timeScale, Self.longestWait)
        if nanoseconds > 0 { try await Task.sleep(for: .nanoseconds(Int64(nanoseconds))) }
        return try answer.get()
    }

    /// The answer to a structured call.
    func answer(_ function: String, _ arguments: [String: JSONValue]) async throws -> JSONValue? {
        try await timed { try card.structured(function, arguments) }
    }

    /// An hour, in nanoseconds: the times of a trace may be anything.
    static let longestWait = 3.6e12
}

final class RecordedISO7816Transport: RecordedTransport, ISO7816TagTransporting, @unchecked Sendable {
    var initialAID: String { Hex.encode(card.transport.row.initialAID ?? []) }
}
