// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// A static key of the chip, for Chip Authentication or for the mapping of that name (ICAO 9303-11 6.2, 4.4.3.5).
struct ChipKey: Sendable {
    let pair: KeyAgreementKeyPair
    /// Its number in DG14; nil when it is the only one.
    var identifier: UInt8?
    /// The ciphers that it may be used with.
    var algorithms: [KeyDerivation.Algorithm]
    var isExplicit = false

    var parameters: DomainParameters { pair.parameters }

    /// Reads `ecdh-aes128:13`: agreement, cipher, and the number of the parameters; explicit in DG14 when it begins with `explicit-`.
    ///
    /// - Parameter random: where the key comes from.
    /// - Throws: ``VirtualCardError`` with the code `badValue`.
    init(parsing text: String, random: inout CardRandom) throws(VirtualCardError) {
        func bad(_ detail: String) -> VirtualCardError { VirtualCardError(.badValue, "--ca \(text): \(detail)", option: "ca") }
        let halves = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let words = halves[0].split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        guard words.count == 2, let isElliptic = ["dh": false, "ecdh": true][words[0]],
            let algorithm = KeyDerivation.Algorithm(optionText: words[1])
        else { throw bad("dh or ecdh, and 3des, aes128, aes192 or aes256 are wanted: ecdh-aes128:13") }
        var number = halves.count == 2 ? halves[1] : isElliptic ? "13" : "2"
        isExplicit = number.hasPrefix("explicit-")
        if isExplicit { number = number.dropFirst("explicit-".count) }
        guard let parameters = Int(number).flatMap({ DomainParameters.standardized($0) }) else {
            throw bad("the parameters have a number from 0 to 2 or 8 to 18")
        }
        guard (parameters.kind == .elliptic) == isElliptic else { throw bad("parameters \(number) are \(parameters.name)") }
        algorithms = [algorithm]
        do { pair = try KeyAgreementKeyPair(parameters, random: random.octets(parameters.randomLength)) } catch {
            throw VirtualCardError(.cryptography, "\(error)")
        }
    }

    init(_ pair: KeyAgreementKeyPair, identifier: UInt8?) {
        self.pair = pair
        self.identifier = identifier
        algorithms = []
    }

    /// ChipAuthenticationInfo for each cipher, and ChipAuthenticationPublicKeyInfo (9303-11 9.2.5, 9.2.6).
    func infos() throws(CryptoError) -> [[UInt8]] {
        let number = identifier.map { DER.integer([$0]) } ?? []
        var infos = algorithms.map { algorithm in
            DER.sequence(TLV.encode(0x06, objectIdentifier(algorithm)), DER.integer([0x01]), number)
        }
        let key = try KeyAgreementPublicKey(parameters, pair.publicKey).subjectPublicKeyInfo(standardized: !isExplicit)
        infos.append(DER.sequence(TLV.encode(0x06, Self.root + [0x01, agreementArc]), key, number))
        return infos
    }

    /// 0.4.0.127.0.7.2.2.3.a.c.
    func objectIdentifier(_ algorithm: KeyDerivation.Algorithm) -> [UInt8] { Self.root + [0x03, agreementArc, algorithm.arc] }

    private var agreementArc: UInt8 { parameters.kind == .elliptic ? 2 : 1 }

    private static let root: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02]
}

/// The chip's end of Chip Authentication, between its two commands where it has two (ICAO 9303-11 6.2).
struct CardChipAuthentication: Sendable {
    let key: ChipKey
    let algorithm: KeyDerivation.Algorithm

    /// The channel that begins with the next command, and the terminal's key, compressed.
    ///
    /// - Throws: `6300` for a public key that must not be used.
    func agreed(with publicKey: [UInt8]) throws(StatusWord) -> State {
        do {
            let channel = try SecureChannel(algorithm, sharedSecret: try key.pair.sharedSecret(with: publicKey))
            return .agreed(channel, terminalKey: try key.parameters.compressed(publicKey: publicKey))
        } catch {
            throw .authenticationFailed
        }
    }
}
