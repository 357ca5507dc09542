// SPDX-License-Identifier: MIT

import FoundationEssentials
import Synchronization
import TagTransport

/// A transport that passes everything on to another one and writes it down. It conforms to exactly the sub-protocols of what
/// it wraps (see ``Recording/wrap(_:)``), so that a flow cannot tell the difference.
///
/// Every transport can be asked for its connection; one that has none says so as the wrapped transport would.
class RecordingTransport: NFCTagTransport, CardConnection, @unchecked Sendable {
    // Unchecked for the sake of the subclasses alone: all stored properties are constant and Sendable.
    let inner: any NFCTagTransport
    let recorder: TraceRecorder
    let port: TraceRecorder.Port

    init(_ inner: any NFCTagTransport, recorder: TraceRecorder, port: TraceRecorder.Port) {
        self.inner = inner
        self.recorder = recorder
        self.port = port
    }

    func send(_ data: Data) async throws -> Data {
        let frame = Array(data)
        let exchange = recorder.beginFrame(frame, on: port)
        do {
            let answer = try await inner.send(data)
            recorder.endFrame(Array(answer), to: frame, exchange, on: port)
            return answer
        } catch {
            recorder.failExchange(exchange, on: port, error)
            throw error
        }
    }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let command = apdu.octets
        let exchange = recorder.beginAPDU(command, on: port)
        do {
            let response = try await inner.sendAPDU(apdu)
            recorder.endAPDU(response.octets, to: command, exchange, on: port)
            return response
        } catch {
            recorder.failExchange(exchange, on: port, error)
            throw error
        }
    }

    var identifier: Data { inner.identifier }

    // MARK: - CardConnection

    private func connection() throws -> any CardConnection {
        guard let connection = inner as? any CardConnection else {
            throw TransportError.unsupported("this transport has no connection")
        }
        return connection
    }

    var readerName: String { (inner as? any CardConnection)?.readerName ?? "" }
    var atr: Data { (inner as? any CardConnection)?.atr ?? Data() }
    var protocolName: String { (inner as? any CardConnection)?.protocolName ?? "" }

    func resetCard() async throws -> Data {
        try await recorder.readerEvent("reset", on: port) {
            let atr = try await connection().resetCard()
            return (TraceRecorder.ReaderEventDetail(atr: Array(atr)), atr)
        }
    }

    func removeCard() async throws {
        try await recorder.readerEvent("removal", on: port) {
            try await connection().removeCard()
            return (TraceRecorder.ReaderEventDetail(), ())
        }
    }

    func control(code: UInt32, data: Data) async throws -> Data {
        try await recorder.readerEvent("control", on: port) {
            let answer = try await connection().control(code: code, data: data)
            return (TraceRecorder.ReaderEventDetail(control: code, input: Array(data), output: Array(answer)), answer)
        }
    }
}

/// The proxy of an ISO/IEC 7816-4 card.
final class RecordingISO7816Transport: RecordingTransport, ISO7816TagTransporting, @unchecked Sendable {
    private let card: any ISO7816TagTransporting

    init(_ card: any ISO7816TagTransporting, recorder: TraceRecorder, port: TraceRecorder.Port) {
        self.card = card
        super.init(card, recorder: recorder, port: port)
    }

    var initialAID: String { card.initialAID }

    /// Chaining runs over this proxy's own ``sendAPDU(_:)``, so that each GET RESPONSE is a row.
    func sendAPDUWithChaining(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let command = apdu.octets
        let secret: Set<String> = SealTable.isSecret(command: command) ? ["apdu"] : []
        return try await recorder.structuredCall("sendAPDUWithChaining(_:)", ["apdu": .bytes(command)], secret: secret, on: port)
        {
            let response = try await ChainingOver(transport: self).sendAPDUWithChaining(apdu)
            return (.bytes(response.octets), response)
        }
    }
}

/// Gives a transport's own ``sendAPDU(_:)`` the chaining that every ISO/IEC 7816-4 transport has by default.
private struct ChainingOver: ISO7816TagTransporting {
    let transport: RecordingTransport

    var initialAID: String { "" }
    var identifier: Data { transport.identifier }
    func send(_ data: Data) async throws -> Data { try await transport.send(data) }
    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU { try await transport.sendAPDU(apdu) }
}
