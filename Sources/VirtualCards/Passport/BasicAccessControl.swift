// SPDX-License-Identifier: MIT

import CardCrypto

/// The card's end of Basic Access Control (ICAO 9303-11 4.3, 9.7.2).
struct BasicAccessControl: Sendable {
    private let encryptionKey: [UInt8]
    private let authenticationKey: [UInt8]

    /// - Throws: `CryptoError` when libcrypto fails.
    init(_ zone: MachineReadableZone) throws(CryptoError) { try self.init(keyInformation: zone.keyInformation) }

    /// - Parameter keyInformation: MRZ_information: number, birth and expiry, each with its check digit.
    init(keyInformation: [UInt8]) throws(CryptoError) {
        try self.init(seed: Array(try Digest.sha1.hash(keyInformation)[..<16]))
    }

    /// - Parameter seed: K_seed, sixteen octets.
    init(seed: [UInt8]) throws(CryptoError) {
        encryptionKey = try KeyDerivation.key(from: seed, counter: KeyDerivation.encryption, for: .tripleDES)
        authenticationKey = try KeyDerivation.key(from: seed, counter: KeyDerivation.authentication, for: .tripleDES)
    }

    /// Checks E_IFD and M_IFD of EXTERNAL AUTHENTICATE and answers with E_IC and M_IC (4.3.3).
    ///
    /// - Parameters:
    ///   - token: 40 octets.
    ///   - challenge: RND.IC, which is good for one try.
    ///   - chipKey: draws K.IC, only when the reader has proven itself.
    /// - Throws: `6300` when the reader does not know the key.
    func authenticate(
        _ token: [UInt8], challenge: [UInt8], chipKey: () -> [UInt8]
    ) throws(StatusWord) -> (answer: [UInt8], channel: SecureChannel) {
        do {
            let cryptogram = Array(token.prefix(32))
            let mac = try RetailMAC.authenticate(cryptogram, key: authenticationKey)
            guard token.count == 40, equalInConstantTime(mac, Array(token.suffix(8))) else {
                throw StatusWord.authenticationFailed
            }
            let plain = try BlockCipher.tripleDES.decrypt(cryptogram, key: encryptionKey)
            let readerRandom = Array(plain[..<8])
            guard equalInConstantTime(Array(plain[8..<16]), challenge) else { throw StatusWord.authenticationFailed }
            let chipKey = chipKey()
            let answer = try BlockCipher.tripleDES.encrypt(challenge + readerRandom + chipKey, key: encryptionKey)
            let seed = zip(plain[16...], chipKey).map { $0 ^ $1 }
            let channel = SecureChannel(
                .tripleDES,
                encryptionKey: try KeyDerivation.key(from: seed, counter: KeyDerivation.encryption, for: .tripleDES),
                authenticationKey: try KeyDerivation.key(from: seed, counter: KeyDerivation.authentication, for: .tripleDES),
                counter: Array(challenge.suffix(4) + readerRandom.suffix(4)))
            return (answer + (try RetailMAC.authenticate(answer, key: authenticationKey)), channel)
        } catch {
            throw .authenticationFailed
        }
    }
}
