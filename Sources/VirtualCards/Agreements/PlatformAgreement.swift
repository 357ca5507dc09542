// SPDX-License-Identifier: MIT

import CardCrypto

/// A secure channel of GlobalPlatform at the card's end, SCP02 or SCP03, up to EXTERNAL AUTHENTICATE: for a card that is played from
/// a recording.
package struct PlatformAgreement: Sendable {
    private var channel: ElementChannel
    private let offer: [UInt8]

    /// - Parameters:
    ///   - offer: the recorded answer to INITIALIZE UPDATE, whose names, numbers and counter stand.
    ///   - enc: the static key for the session keys of encryption; `mac` for those of MACs.
    ///   - hostChallenge: eight octets.
    ///   - draw: gives that many random octets.
    /// - Throws: `6A80` for an offer of another protocol, `6985` for keys that do not fit it.
    package init(
        offer: [UInt8], enc: [UInt8], mac: [UInt8], hostChallenge: [UInt8], draw: (Int) -> [UInt8]
    ) throws(AgreementRefusal) {
        guard offer.count >= 28, offer[11] == 0x02 || offer[11] == 0x03 else { throw AgreementRefusal(.wrongData) }
        let isAES = offer[11] == 0x03
        guard !isAES || [29, 32].contains(offer.count) else { throw AgreementRefusal(.wrongData) }
        let option = isAES ? offer[12] : 0x15
        // A challenge that a card computes is the same at the same counter; only what it drew is drawn again.
        let start = isAES ? 13 : 14
        let length = isAES ? 8 : 6
        let recorded = Array(offer[start..<start + length])
        let random = isAES && option & 0x10 != 0 ? recorded : draw(length)
        let counter = isAES ? 0 : UInt32(offer[12]) << 8 | UInt32(offer[13])
        do {
            channel = try ElementChannel(
                keys: ElementKeySet(version: offer[10], isAES: isAES, keys: [enc, mac, mac], counter: counter),
                option: isAES ? option & ~0x10 : option & ~0x40, holder: [], aid: [], hostChallenge: hostChallenge, random: random
            )
        } catch {
            throw AgreementRefusal(.conditionsNotSatisfied)
        }
        self.offer =
            Array(offer[..<start]) + channel.cardChallenge + channel.cardCryptogram
            + offer[min(offer.count, start + length + 8)...]
    }

    /// The answer to INITIALIZE UPDATE.
    package var answer: [UInt8] { offer }

    /// Checks EXTERNAL AUTHENTICATE, as it came.
    ///
    /// - Throws: `6300` for a wrong cryptogram, `6982` for a wrong MAC, `6A86` for a level that cannot be.
    package mutating func authenticate(_ command: [UInt8]) throws(AgreementRefusal) {
        do throws(StatusWord) {
            try channel.authenticate(try CardCommand(parsing: command))
        } catch {
            throw AgreementRefusal(error)
        }
    }
}
