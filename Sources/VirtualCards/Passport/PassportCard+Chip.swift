// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

extension CardChipAuthentication {
    /// Where Chip Authentication stands.
    enum State: Sendable {
        case none
        /// MSE:Set AT named key and cipher.
        case selected(CardChipAuthentication)
        /// The answer under way is the last one under the old keys.
        case agreed(SecureChannel)
        case done
    }
}

/// What the chip proves of itself in a session, and what the terminal does.
extension PassportCard {
    /// Whether the terminal may read what is kept for such ones.
    var isTerminalAuthenticated: Bool { false }

    /// Chip Authentication with triple DES: one command (ICAO 9303-11 6.2.5.1).
    mutating func chipAuthentication(publicKey: [UInt8]?, key: [UInt8]?) throws(StatusWord) -> CardReply {
        guard let publicKey, !publicKey.isEmpty else { throw .wrongData }
        let agreement = CardChipAuthentication(key: try chipKey(key, .tripleDES, nil), algorithm: .tripleDES)
        self.chipAuthentication = .agreed(try agreement.channel(with: publicKey))
        return CardReply()
    }

    /// Chip Authentication with AES, the first of two commands (ICAO 9303-11 6.2.5.2).
    mutating func beginChipAuthentication(_ identifier: [UInt8]?, key: [UInt8]?) throws(StatusWord) -> CardReply {
        guard let arc = identifier?.last,
            let algorithm = [KeyDerivation.Algorithm.tripleDES, .aes128, .aes192, .aes256].first(where: { $0.arc == arc })
        else { throw .wrongData }
        chipAuthentication = .selected(
            CardChipAuthentication(key: try chipKey(key, algorithm, identifier), algorithm: algorithm))
        return CardReply()
    }

    /// GENERAL AUTHENTICATE in a session: the second of the two.
    mutating func chipAuthenticationStep(_ command: CardCommand, isSecured: Bool) throws(StatusWord) -> CardReply {
        guard isSecured, case .selected(let agreement) = chipAuthentication else { throw .conditionsNotSatisfied }
        chipAuthentication = .none
        guard command.parameters == 0 else { throw .wrongParameters }
        guard let outer = try? TLV.first(in: command.data[...]), outer.tag == 0x7C,
            let objects = try? outer.children(TLVRules(allowsFiller: false)), objects.count == 1, objects[0].tag == 0x80
        else { throw .wrongData }
        chipAuthentication = .agreed(try agreement.channel(with: Array(objects[0].value)))
        return CardReply(TLV.encode(0x7C, []))
    }

    /// The channel to go on with when the answer just sealed was the last one under the old keys.
    mutating func channelAfterChipAuthentication() -> SecureChannel? {
        guard case .agreed(let channel) = chipAuthentication else { return nil }
        chipAuthentication = .done
        return channel
    }

    private func chipKey(
        _ number: [UInt8]?, _ algorithm: KeyDerivation.Algorithm, _ identifier: [UInt8]?
    ) throws(StatusWord) -> ChipKey {
        guard isInApplication, !configuration.quirks.contains(.noChipAuthentication) else { throw .wrongData }
        let keys = configuration.chipKeys.filter { key in
            key.algorithms.contains(algorithm) && (identifier == nil || key.objectIdentifier(algorithm) == identifier)
        }
        guard let key = number.map({ wanted in keys.first { $0.identifier.map { [$0] } == wanted } }) ?? keys.first else {
            throw .referencedDataNotFound
        }
        return key
    }
}
