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
        case agreed(SecureChannel, terminalKey: [UInt8])
        case done(terminalKey: [UInt8])
    }
}

/// What the chip proves of itself in a session, and what the terminal does.
extension PassportCard {

    /// Chip Authentication with triple DES: one command (ICAO 9303-11 6.2.5.1).
    mutating func chipAuthentication(publicKey: [UInt8]?, key: [UInt8]?) throws(StatusWord) -> CardReply {
        guard let publicKey, !publicKey.isEmpty else { throw .wrongData }
        let agreement = CardChipAuthentication(key: try chipKey(key, .tripleDES, nil), algorithm: .tripleDES)
        self.chipAuthentication = try agreement.agreed(with: publicKey)
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
        chipAuthentication = try agreement.agreed(with: Array(objects[0].value))
        return CardReply(TLV.encode(0x7C, []))
    }

    /// The channel to go on with when the answer just sealed was the last one under the old keys.
    mutating func channelAfterChipAuthentication() -> SecureChannel? {
        guard case .agreed(let channel, let terminalKey) = chipAuthentication else { return nil }
        chipAuthentication = .done(terminalKey: terminalKey)
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

    /// INTERNAL AUTHENTICATE in a session.
    mutating func internalAuthenticate(_ command: CardCommand, isSecured: Bool) throws(StatusWord) -> CardReply {
        guard let key = configuration.activeAuthentication else { throw .instructionNotSupported }
        guard isInApplication, isSecured else { throw .securityNotSatisfied }
        guard command.parameters == 0 else { throw .wrongParameters }
        guard command.ne != nil else { throw .wrongLength }
        return CardReply(try key.sign(command.data) { random.octets($0) })
    }
}

/// Terminal Authentication (ICAO 9303-11 7.1), after Chip Authentication.
extension PassportCard {
    mutating func terminal(_ step: (inout PassportTerminalAuthentication) throws(StatusWord) -> Void) throws(StatusWord) {
        guard case .done = chipAuthentication, var state = terminalAuthentication else { throw .conditionsNotSatisfied }
        do {
            try step(&state)
            terminalAuthentication = state
        } catch {
            terminalAuthentication = state
            throw error
        }
    }

    /// PSO: VERIFY CERTIFICATE.
    mutating func verifyCertificate(_ command: CardCommand, isSecured: Bool) throws(StatusWord) -> CardReply {
        guard configuration.verifier != nil else { throw .instructionNotSupported }
        guard isSecured else { throw .securityNotSatisfied }
        guard command.parameters == 0x00BE else { throw .wrongParameters }
        try terminal { state throws(StatusWord) in try state.verifyCertificate(command.data) }
        return CardReply()
    }

    /// EXTERNAL AUTHENTICATE in a session: the terminal's signature.
    mutating func authenticateTerminal(_ command: CardCommand) throws(StatusWord) -> CardReply {
        guard case .done(let terminalKey) = chipAuthentication else { throw .conditionsNotSatisfied }
        guard command.parameters == 0 else { throw .wrongParameters }
        let identity = chipIdentity ?? configuration.documentNumber
        try terminal { state throws(StatusWord) in
            try state.authenticate(command.data, chipIdentity: identity, compressedKey: terminalKey)
        }
        return CardReply()
    }
}
