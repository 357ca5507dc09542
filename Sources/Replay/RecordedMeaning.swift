// SPDX-License-Identifier: MIT

import GrammarLibrary
import TraceDecoding
import TraceFile

/// What a recording's exchanges say, by the grammars; made once, where a mode or a model asks for it.
struct RecordedMeaning: Sendable {
    /// The answer that no other random bytes would have brought.
    struct Bound: Sendable {
        var packet: UInt64
        var what: String
    }

    struct Exchange: Sendable {
        var command: DecodedRow
        var response: DecodedRow?
    }

    private(set) var exchanges: [UInt64: Exchange] = [:]
    /// The first answer of the call that is bound to what the library drew; nil when none is.
    private(set) var bound: Bound?

    /// - Parameter call: nil takes all rows, of a program's own session.
    init(_ trace: Trace, _ secrets: SecretStore, _ grammars: GrammarLibrary?, during call: RecordedSession.Call?) {
        var decoder = TraceDecoder(interfaces: trace.interfaces, secrets: secrets, showsSecrets: true, grammars: grammars)
        decoder.hidesPieces = false
        let (start, end) = (call?.packet ?? 0, call?.endPacket ?? .max)
        var hasDrawn = false
        for row in trace.rows {
            let decoded = decoder.push(row)
            guard let packet = row.packetID, packet >= start, packet <= end else { continue }
            switch decoded.kind {
            case .entropy: hasDrawn = true
            case .command:
                // The first one counts: an exchange has one command.
                if exchanges[packet] == nil { exchanges[packet] = Exchange(command: decoded) }
                if decoded.fields.contains(where: \.isNonce) { hasDrawn = true }
            case .response:
                guard exchanges[packet] != nil else { continue }
                exchanges[packet]?.response = decoded
                // Keys that both sides agreed on come from what both sides drew, seen or not.
                if hasDrawn || decoded.isProtected, bound == nil, let command = exchanges[packet]?.command,
                    Self.isBound(decoded, to: command)
                {
                    bound = Bound(packet: packet, what: command.summary)
                }
            default: break
            }
        }
    }

    /// An answer under keys that both sides agreed on, one with a code of either side, and any data in answer to a challenge.
    private static func isBound(_ answer: DecodedRow, to command: DecodedRow) -> Bool {
        if answer.isProtected || answer.opening != .plain || command.isProtected || command.opening != .plain { return true }
        if answer.annotations.contains(where: \.isAuthentication) { return true }
        return answer.row.body.count > 2 && command.fields.contains { $0.isNonce && $0.buffer == 0 }
    }

    /// The innermost command and answer of an exchange; nil where they are sealed.
    ///
    /// - Parameter recorded: the exchange as it travelled, sealed places put back.
    func plain(
        _ packet: UInt64, _ recorded: (command: [UInt8], response: [UInt8])
    ) -> (command: [UInt8], response: [UInt8])? {
        guard let exchange = exchanges[packet], let response = exchange.response else { return nil }
        func inner(_ row: DecodedRow, _ octets: [UInt8]) -> [UInt8]? {
            if let plain = row.plain { return plain }
            return row.isProtected && row.opening != .plain ? nil : octets
        }
        guard let command = inner(exchange.command, recorded.command), let answer = inner(response, recorded.response)
        else { return nil }
        return (command, answer)
    }
}
