// SPDX-License-Identifier: MIT

public import FoundationEssentials
import Octets
import Synchronization
public import TagTransport

/// A card in a PC/SC reader as the card library sees it: command APDUs, no frames below them.
///
/// Whatever the reader service returns is thrown as ``TransportError`` with the service's code kept.
public final class PCSCTransport: ISO7816TagTransporting, CardConnection {
    public let card: PCSCCard
    /// The UID as the reader gives it (PC/SC part 3, 3.2.2.1.3); empty for a card with contacts and when the reader refuses.
    public let identifier: Data
    /// Empty: a reader selects no application.
    public let initialAID = ""

    private let answerToReset: Mutex<ATR>

    /// Connects to the card in `reader`, shared with other programs unless told otherwise.
    ///
    /// A contactless card's UID is asked for with `FF CA 00 00 00`, which the reader answers itself. Nothing is
    /// sent to a card with contacts.
    ///
    /// - Throws: ``TransportError``.
    public static func connect(
        _ context: PCSCContext, to reader: String, sharing: PCSCCard.Sharing = .shared,
        protocols: PCSCCard.Protocols = .any, asksForIdentifier: Bool = true
    ) async throws(TransportError) -> PCSCTransport {
        let card = try await context.connect(to: reader, sharing: sharing, protocols: protocols)
        let atr = ATR(try await card.status().atr)
        let identifier = asksForIdentifier && atr.isContactless ? try await identifier(of: card) : []
        return PCSCTransport(card, atr: atr, identifier: identifier)
    }

    /// Empty when the reader refuses, in whatever way, and the card is still there.
    private static func identifier(of card: PCSCCard) async throws(TransportError) -> [UInt8] {
        let answer: [UInt8]
        do throws(TransportError) {
            let first = try await card.transmit([0xFF, 0xCA, 0x00, 0x00, 0x00])
            // 6Cxx: the reader wants the exact length (ISO/IEC 7816-4 5.6).
            answer = first.count == 2 && first[0] == 0x6C ? try await card.transmit([0xFF, 0xCA, 0x00, 0x00, first[1]]) : first
        } catch {
            _ = try await card.status()
            return []
        }
        return answer.suffix(2) == [0x90, 0x00] ? answer.dropLast(2) : []
    }

    private init(_ card: PCSCCard, atr: ATR, identifier: [UInt8]) {
        self.card = card
        self.identifier = Data(identifier)
        self.answerToReset = Mutex(atr)
    }

    public var readerName: String { card.reader }
    public var atr: Data { Data(answerToReset.withLock { $0.octets }) }

    public var protocolName: String {
        if answerToReset.withLock({ $0.isContactless }) { return "T=CL" }
        return switch card.activeProtocol {
        case .t0: "T=0"
        case .t1: "T=1"
        default: ""
        }
    }

    /// Frames below APDUs need the reader's own commands (PC/SC part 3 transparent exchange), which are not driven yet.
    public func send(_ data: Data) async throws -> Data {
        try PCSCContext.requireReaders()
        throw TransportError.unsupported("frames below APDUs through \(readerName)")
    }

    public func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let command = card.activeProtocol == .t0 ? Self.t0Command(apdu) : apdu.octets
        let answer = try await card.transmit(command)
        do throws(APDUError) {
            return try ResponseAPDU(bytes: answer)
        } catch {
            throw TransportError(.malformedResponse, detail: "\(error.description): \(Hex.encode(answer))")
        }
    }

    public func resetCard() async throws -> Data {
        try await card.reconnect(.reset)
        let atr = ATR(try await card.status().atr)
        answerToReset.withLock { $0 = atr }
        return Data(atr.octets)
    }

    /// Powers the card off, ends the connection and waits until the card was taken out.
    public func removeCard() async throws {
        try await card.disconnect(.eject)
        let context = try await PCSCContext.open()
        var known = [ReaderStatus(reader: readerName, flags: [])]
        repeat { known = try await context.statusChange(from: known) } while known.contains { $0.hasCard }
    }

    public func control(code: UInt32, data: Data) async throws -> Data {
        Data(try await card.control(code: code, Array(data)))
    }

    /// Runs `body` while no other program can reach the card.
    public func withTransaction<Value>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
    ) async throws -> Value {
        try await card.withTransaction(isolation: isolation, body)
    }

    /// The octets of a command under T=0, where a header always has P3 and a command with data has no Le
    /// (ISO/IEC 7816-3 12.2.2 and 12.2.5). Extended commands go as they are; the reader's driver knows what to do.
    static func t0Command(_ apdu: CommandAPDU) -> [UInt8] {
        switch apdu.caseName {
        case "1": apdu.octets + [0x00]
        case "4S": apdu.octets.dropLast()
        default: apdu.octets
        }
    }
}
