// SPDX-License-Identifier: MIT

import FoundationEssentials
import PCSC
import SecureElementCredential
import Synchronization
import TagTransport

/// The card in a reader for sessions that come and go: connected to when a command needs it, shared with other programs and free
/// but while something is managed, and connected to anew after another program reset it or somebody took it out.
final class SessionReader: ISO7816TagTransporting, CardConnection, ElementHolding {
    private struct Link {
        var transport: PCSCTransport?
        /// The card whose transaction runs.
        var held: PCSCCard?
        /// Another program reset the card: the connection must be renewed before it is used again.
        var isStale = false
        var atr = Data()
        var protocolName = ""
    }

    private let context: PCSCContext
    let readerName: String
    private let link = Mutex(Link())
    let initialAID = ""
    var identifier: Data { link.withLock { $0.transport?.identifier ?? Data() } }
    var atr: Data { link.withLock { $0.atr } }
    var protocolName: String { link.withLock { $0.protocolName } }

    private init(_ context: PCSCContext, _ readerName: String) {
        self.context = context
        self.readerName = readerName
    }

    /// - Throws: ``TransportError``, but for a card that another program holds: that is the session's affair.
    static func open(_ context: PCSCContext, _ readerName: String) async throws(TransportError) -> SessionReader {
        let reader = SessionReader(context, readerName)
        do { _ = try await reader.connection() } catch {
            guard error.case == .sharingViolation else { throw error }
        }
        return reader
    }

    private func connection() async throws(TransportError) -> PCSCTransport {
        let (known, isStale) = link.withLock { ($0.transport, $0.isStale) }
        if let known {
            if isStale {
                try await known.card.reconnect()
                link.withLock { $0.isStale = false }
            }
            return known
        }
        let new = try await PCSCTransport.connect(context, to: readerName)
        link.withLock { $0 = Link(transport: new, atr: new.atr, protocolName: new.protocolName) }
        return new
    }

    func send(_ data: Data) async throws -> Data { try await following { try await $0.send(data) } }
    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU { try await following { try await $0.sendAPDU(apdu) } }
    func resetCard() async throws -> Data { try await following { try await $0.resetCard() } }
    func removeCard() async throws { try await following { try await $0.removeCard() } }
    func control(code: UInt32, data: Data) async throws -> Data {
        try await following { try await $0.control(code: code, data: data) }
    }

    func hold() async {
        _ = try? await following { transport in
            try await transport.card.beginTransaction()
            self.link.withLock { $0.held = transport.card }
        }
    }

    func letGo() async {
        let held = link.withLock { link in
            defer { link.held = nil }
            return link.held
        }
        try? await held?.endTransaction()
    }

    /// Notes what an error says of the connection.
    private func following<Value: Sendable>(_ body: (PCSCTransport) async throws -> Value) async throws -> Value {
        do { return try await body(try await connection()) } catch let error as TransportError {
            switch error.case {
            case .tagReset: link.withLock { $0.isStale = true }
            case .tagConnectionLost, .readerUnavailable, .serviceUnavailable:
                let old = link.withLock { link in
                    defer { link.transport = nil }
                    return link.transport
                }
                try? await old?.card.disconnect()
            default: break
            }
            throw error
        }
    }
}
