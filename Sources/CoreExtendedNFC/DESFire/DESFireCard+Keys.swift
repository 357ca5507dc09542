// SPDX-License-Identifier: MIT

public import CardCrypto
import FoundationEssentials

extension DESFireCard {
    // MARK: - Keys

    public mutating func keySettings() async throws -> DESFireKeySettings {
        try await facing { card in
            try DESFireKeySettings(try await card.transmit(DESFireRequest(code: .getKeySettings, answers: true)))
        }
    }

    /// Changes the settings of the keys; needs the master key.
    public mutating func changeKeySettings(_ settings: UInt8) async throws {
        try await facing {
            try await $0.transmit(DESFireRequest(code: .changeKeySettings, data: [settings], protection: .secret))
        }
    }

    /// The version of a key.
    public mutating func keyVersion(_ keyNumber: UInt8) async throws -> UInt8 {
        try await facing { card in
            let octets = try await card.transmit(DESFireRequest(code: .getKeyVersion, header: [keyNumber], answers: true))
            guard octets.count == 1 else { throw NFCError.invalidResponse(Data(octets)) }
            return octets[0]
        }
    }

    /// Changes a key.
    ///
    /// The key that is in use is changed without its old value, and ends the session. For any other key the card wants proof that the old
    /// one is known.
    ///
    /// - Parameters:
    ///   - new: of the cipher of the application; for the card's master key of any cipher, which the card then takes over.
    ///   - old: needed when `keyNumber` is not the key in use.
    ///   - keySet: EV2 and later: a key set other than the active one; `old` is needed then too.
    public mutating func changeKey(
        _ keyNumber: UInt8, to new: DESFireKey, from old: DESFireKey? = nil, keySet: UInt8? = nil
    ) async throws {
        try await facing { card in
            guard let session = card.session else { throw NFCError.unsupportedOperation("changeKey needs an authentication") }
            guard keyNumber < 14 || keyNumber == 0x21 else {
                throw NFCError.unsupportedOperation("there is no key \(keyNumber)")
            }
            let isSame = session.keyNumber & 0x0F == keyNumber && (keySet ?? 0) == 0
            var data = new.transportOctets
            if !isSame {
                guard let old else { throw NFCError.unsupportedOperation("the old key is needed to change key \(keyNumber)") }
                // A key that is longer than the old one is covered as if the old one went on with zeros.
                let before = old.transportOctets + [UInt8](repeating: 0, count: max(0, data.count - old.transportOctets.count))
                data = exclusiveOr(data, before)
            }
            let isCardKey = card.selectedApplication == Data([0, 0, 0]) && keyNumber == 0
            if new.cipher == .aes { data.append(new.version) }
            let number = isCardKey ? keyNumber | new.typeBits : keyNumber
            var request = DESFireRequest(
                code: .changeKey, header: [number], data: data, protection: .secret,
                checked: isSame ? nil : new.transportOctets, endsSession: isSame)
            if let keySet {
                request.code = .changeKeyEV2
                request.header = [keySet, number]
            }
            try await card.transmit(request)
        }
    }

    /// Begins a key set of EV2: its keys are zeros of the cipher given.
    public mutating func initializeKeySet(_ keySet: UInt8, cipher: DESFireCipher) async throws {
        let type: UInt8 =
            switch cipher {
            case .des, .twoKeyTripleDES: 0
            case .threeKeyTripleDES: 1
            case .aes: 2
            }
        try await facing { try await $0.transmit(DESFireRequest(code: .initializeKeySet, header: [keySet, type])) }
    }

    /// Gives a key set its version, which makes it ready to be rolled to.
    public mutating func finalizeKeySet(_ keySet: UInt8, version: UInt8) async throws {
        try await facing { try await $0.transmit(DESFireRequest(code: .finalizeKeySet, header: [keySet, version])) }
    }

    /// Makes a key set the active one. The session ends with it.
    public mutating func rollKeySet(_ keySet: UInt8) async throws {
        try await facing { try await $0.transmit(DESFireRequest(code: .rollKeySet, header: [keySet], endsSession: true)) }
    }
}
