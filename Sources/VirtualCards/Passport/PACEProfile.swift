// SPDX-License-Identifier: MIT

import CardCrypto
import Octets

/// One way in which a chip speaks PACE (ICAO 9303-11 9.2.1): a PACEInfo with its domain parameters.
struct PACEProfile: Sendable, Equatable {
    enum Mapping: String, Sendable {
        case generic = "gm"
        case integrated = "im"
        case chipAuthentication = "cam"
    }

    let mapping: Mapping
    let algorithm: KeyDerivation.Algorithm
    let parameters: DomainParameters
    /// The number in PACEInfo; one of the chip's own when the parameters are explicit.
    let parameterId: UInt8
    /// Whether the parameters are spelled out in a PACEDomainParameterInfo.
    let isExplicit: Bool

    /// Numbers of explicit parameters are this much above the standard ones.
    private static let explicitOffset: UInt8 = 64

    /// Reads `ecdh-gm-aes128:13`: agreement, mapping, cipher, and the number of the parameters; 13 or 2 when it is left out, spelled
    /// out by the chip when it begins with `explicit-`.
    ///
    /// - Throws: ``VirtualCardError`` with the code `badValue`.
    init(parsing text: String) throws(VirtualCardError) {
        func bad(_ detail: String) -> VirtualCardError {
            VirtualCardError(.badValue, "--pace \(text): \(detail)", option: "pace")
        }
        let halves = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let words = halves[0].split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        guard words.count == 3, let isElliptic = ["dh": false, "ecdh": true][words[0]], let mapping = Mapping(rawValue: words[1]),
            let algorithm = KeyDerivation.Algorithm(optionText: words[2])
        else { throw bad("dh or ecdh, gm, im or cam, and 3des, aes128, aes192 or aes256 are wanted: ecdh-gm-aes128:13") }
        var number = halves.count == 2 ? halves[1] : isElliptic ? "13" : "2"
        isExplicit = number.hasPrefix("explicit-")
        if isExplicit { number = number.dropFirst("explicit-".count) }
        guard let identifier = Int(number), let parameters = DomainParameters.standardized(identifier) else {
            throw bad("the parameters have a number from 0 to 2 or 8 to 18")
        }
        guard (parameters.kind == .elliptic) == isElliptic else { throw bad("parameters \(identifier) are \(parameters.name)") }
        guard mapping != .integrated || parameters.supportsIntegratedMapping else {
            throw bad("\(parameters.name) cannot be used with integrated mapping")
        }
        guard mapping != .chipAuthentication || isElliptic && algorithm != .tripleDES else {
            throw bad("chip authentication mapping is for ecdh with AES")
        }
        self.mapping = mapping
        self.algorithm = algorithm
        self.parameters = parameters
        parameterId = UInt8(truncatingIfNeeded: identifier) + (isExplicit ? Self.explicitOffset : 0)
    }

    /// The value octets of the protocol's object identifier, 0.4.0.127.0.7.2.2.4.m.c.
    var objectIdentifier: [UInt8] { familyIdentifier + [algorithm.arc] }

    /// PACEInfo: identifier, version 2, parameters.
    var info: [UInt8] {
        DER.sequence(TLV.encode(0x06, objectIdentifier), DER.integer([0x02]), DER.integer([parameterId]))
    }

    /// PACEDomainParameterInfo; nil when the number says it all.
    func domainParameterInfo() throws(CryptoError) -> [UInt8]? {
        guard isExplicit else { return nil }
        return DER.sequence(
            TLV.encode(0x06, familyIdentifier), try parameters.algorithmIdentifier(standardized: false),
            DER.integer([parameterId]))
    }

    private var familyIdentifier: [UInt8] {
        let arc: UInt8 =
            switch (mapping, parameters.kind) {
            case (.generic, .multiplicative): 1
            case (.generic, .elliptic): 2
            case (.integrated, .multiplicative): 3
            case (.integrated, .elliptic): 4
            case (.chipAuthentication, _): 6
            }
        return [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x04, arc]
    }
}

extension KeyDerivation.Algorithm {
    /// `3des`, `aes128`, `aes192`, `aes256`.
    init?(optionText: String) {
        switch optionText {
        case "3des": self = .tripleDES
        case "aes128": self = .aes128
        case "aes192": self = .aes192
        case "aes256": self = .aes256
        default: return nil
        }
    }

    /// The last arc of identifiers that name a cipher (9303-11 9.2.3, 9.2.5).
    var arc: UInt8 {
        switch self {
        case .tripleDES: 1
        case .aes128: 2
        case .aes192: 3
        case .aes256: 4
        }
    }

    var suite: SecureChannel.Suite { self == .tripleDES ? .tripleDES : .aes }
}

extension SecureChannel {
    /// The channel after a key agreement: keys from K, the counter at zero (9303-11 9.8.7.3).
    init(_ algorithm: KeyDerivation.Algorithm, sharedSecret: [UInt8]) throws(CryptoError) {
        self.init(
            algorithm.suite,
            encryptionKey: try KeyDerivation.key(from: sharedSecret, counter: KeyDerivation.encryption, for: algorithm),
            authenticationKey: try KeyDerivation.key(from: sharedSecret, counter: KeyDerivation.authentication, for: algorithm),
            counter: [UInt8](repeating: 0, count: algorithm.suite.blockLength))
    }
}
