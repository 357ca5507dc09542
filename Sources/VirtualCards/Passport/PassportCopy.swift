// SPDX-License-Identifier: MIT

import CardCrypto

/// What is known of a real document's chip, to make a virtual one that behaves like it.
package struct PassportCopy: Sendable {
    /// The application's files that were read whole, by identifier.
    package var files: [UInt16: [UInt8]] = [:]
    /// Those of the master file, EF.CardAccess among them.
    package var masterFile: [UInt16: [UInt8]] = [:]
    /// What the keys of Basic Access Control and PACE come from: number, birth and expiry with their check digits.
    package var keyInformation: [UInt8]?
    package var can: [UInt8]?
    /// Names of ``PassportQuirk``.
    package var quirks: Set<String> = []
    /// The most octets of a file in one answer.
    package var longestRead: Int?

    package init() {}

    /// The card.
    ///
    /// - Parameter observer: told of each command in plain, its class `0C` when it came under secure messaging and its Le left out, and
    ///   of the answer.
    /// - Throws: `CryptoError`, ``VirtualCardError``.
    package func card(
        seed: UInt64 = 0, identifier: [UInt8] = [], observer: @escaping @Sendable (_ command: [UInt8], _ answer: [UInt8]) -> Void
    ) throws -> VirtualCard {
        var configuration = PassportConfiguration()
        configuration.profiles = Self.profiles(in: masterFile[PassportFiles.cardAccess] ?? [])
        configuration.quirks = Set(quirks.compactMap(PassportQuirk.init(rawValue:)))
        configuration.allowsBasicAccess = keyInformation != nil
        if let keyInformation { configuration.passwords[.mrz] = try Digest.sha1.hash(keyInformation) }
        if let can { configuration.passwords[.can] = can }
        configuration.observer = observer
        var contents = PassportFiles(files)
        contents.masterFile = masterFile
        let machine = PassportCard(
            files: contents, access: try BasicAccessControl(keyInformation: keyInformation ?? []),
            random: CardRandom(seed: seed, use: "passport"), longestRead: longestRead ?? BinaryAccess.longestAnswer,
            configuration: configuration)
        return VirtualCard(kind: "passport", machine: machine, identifier: identifier)
    }

    /// The ways of PACE that EF.CardAccess offers with standard parameters; chip authentication mapping needs the chip's own key.
    static func profiles(in cardAccess: [UInt8]) -> [PACEProfile] {
        // id-PACE, 0.4.0.127.0.7.2.2.4.m.c, then version 2 and the number of the parameters (ICAO 9303-11 9.2.1).
        let start: [UInt8] = [0x06, 0x0A, 0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x04]
        let mappings: [UInt8: String] = [1: "dh-gm", 2: "ecdh-gm", 3: "dh-im", 4: "ecdh-im"]
        let ciphers: [UInt8: String] = [1: "3des", 2: "aes128", 3: "aes192", 4: "aes256"]
        return cardAccess.indices.compactMap { index in
            let rest = cardAccess[index...]
            guard rest.count >= 18, rest.starts(with: start) else { return nil }
            let tail = Array(rest.dropFirst(start.count).prefix(8))
            guard tail[2...6].elementsEqual([0x02, 0x01, 0x02, 0x02, 0x01]), let mapping = mappings[tail[0]],
                let cipher = ciphers[tail[1]]
            else { return nil }
            return try? PACEProfile(parsing: "\(mapping)-\(cipher):\(tail[7])")
        }
    }
}
