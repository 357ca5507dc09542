// SPDX-License-Identifier: MIT

import CardCrypto
import TagTransport
import TraceFile

/// What a test puts around a run, to look at what passes or to change it.
package struct ReplayHooks: Sendable {
    /// Who is told the keys of the run.
    package var keySink: (any KeySink)?
    /// Puts something around the recorded card.
    package var wrap: @Sendable (any NFCTagTransport) -> any NFCTagTransport = { $0 }

    package init() {}
}

extension Replay {
    /// The card that agrees on keys afresh and seals the recorded plaintext under them.
    func resealed(
        _ transport: RecordedSession.Transport, _ arguments: [String: JSONValue]
    ) -> Result<ResealedMatching, Blocked> {
        do throws(Blocked) {
            return .success(
                try ResealedMatching(
                    session, transport: transport, trace: trace, secrets: secrets, arguments: arguments, seed: try cardSeed()))
        } catch {
            return .failure(error)
        }
    }

    /// What the recorded card's own draws come from: as repeatable as the library's.
    private func cardSeed() throws(Blocked) -> UInt64 {
        switch options.entropy {
        case .recorded: return 0
        case .seed(let seed): return seed
        case .fresh:
            do {
                let octets = try SystemRandomSource().octets(8, label: "replay.card")
                return octets.reduce(0) { $0 << 8 | UInt64($1) }
            } catch {
                throw Blocked(reason: .entropy("replay.card"), text: error.description)
            }
        }
    }
}
