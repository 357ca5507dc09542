// SPDX-License-Identifier: MIT

import CardSockets
public import FoundationEssentials
import Synchronization
public import TagTransport

/// A virtual card in the same process as the program that reads it: no reader, no socket, no other thread.
public final class VirtualCardTransport: ISO7816TagTransporting, CardConnection, CardKeyHolding {
    public let card: VirtualCard
    public let identifier: Data
    public let atr: Data
    private let isGone = Atomic(false)

    /// Puts the card in and gives it power.
    public init(_ card: VirtualCard) {
        self.card = card
        identifier = Data(card.identifier)
        atr = Data(card.atr)
        card.powerOn()
    }

    public var readerName: String { "virtual:\(card.kind)" }
    public var protocolName: String { card.protocolName }
    public var initialAID: String { "" }
    package var cardKeys: [(name: String, octets: [UInt8])] { card.keys }

    /// - Throws: ``TransportError``: `unsupportedOperation` for a card that knows command APDUs alone; else as ``sendAPDU(_:)``.
    public func send(_ data: Data) async throws -> Data {
        guard card.answersFrames else { throw TransportError.unsupported("frames below APDUs") }
        return Data(try exchange([UInt8](data)))
    }

    /// - Throws: ``TransportError``: `tagConnectionLost` with the code of PC/SC's SCARD_W_REMOVED_CARD once the card is
    ///   gone, `timeout` when it does not answer, `malformedResponse` when it answers less than a status word.
    public func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let octets = try exchange(apdu.octets)
        guard octets.count >= 2 else {
            throw TransportError(.malformedResponse, detail: "\(octets.count) bytes came; a status word has 2")
        }
        let end = octets.count - 2
        return ResponseAPDU(data: Data(octets[..<end]), sw1: octets[end], sw2: octets[end + 1])
    }

    private func exchange(_ command: [UInt8]) throws(TransportError) -> [UInt8] {
        try requireCard()
        switch card.exchange(command) {
        case .response(let octets): return octets
        case .silence:
            throw TransportError(.timeout, detail: "the card does not answer")
        case .removed:
            isGone.store(true, ordering: .sequentiallyConsistent)
            throw Self.removed
        }
    }

    public func resetCard() async throws -> Data {
        try requireCard()
        card.powerOn()
        return atr
    }

    public func removeCard() async throws {
        try requireCard()
        isGone.store(true, ordering: .sequentiallyConsistent)
        card.powerOff()
    }

    private func requireCard() throws(TransportError) {
        if isGone.load(ordering: .sequentiallyConsistent) { throw Self.removed }
    }

    private static var removed: TransportError {
        TransportError(.tagConnectionLost, code: 0x8010_0069, detail: "the card was removed")
    }
}
