// SPDX-License-Identifier: MIT

public import CardCrypto

/// What the object identifier of a SecurityInfo names (ICAO 9303-11 9.2).
public enum SecurityProtocol: Sendable, Hashable {
    public enum KeyAgreement: String, Sendable, Hashable, Codable {
        case dh = "DH"
        case ecdh = "ECDH"
    }

    public enum Mapping: String, Sendable, Hashable, Codable {
        case generic = "GM"
        case integrated = "IM"
        case chipAuthentication = "CAM"
    }

    case pace(KeyAgreement, Mapping, KeyDerivation.Algorithm)
    case paceDomainParameters(KeyAgreement, Mapping)
    case chipAuthentication(KeyAgreement, KeyDerivation.Algorithm)
    case chipAuthenticationDomainParameters(KeyAgreement)
    case chipAuthenticationPublicKey(KeyAgreement)
    /// The protocol itself, as chips announce it, or with the scheme of a certificate's key.
    case terminalAuthentication(SignatureScheme?)
    case activeAuthentication
    case cardInfoLocator
    case efDIR
    case unknown(String)

    /// - Parameter objectIdentifier: dotted decimal.
    public init(objectIdentifier: String) {
        self = Self.named(objectIdentifier) ?? .unknown(objectIdentifier)
    }

    public var isPACE: Bool { if case .pace = self { true } else { false } }
    public var isChipAuthentication: Bool { if case .chipAuthentication = self { true } else { false } }
    public var isChipAuthenticationPublicKey: Bool { if case .chipAuthenticationPublicKey = self { true } else { false } }
    public var isTerminalAuthentication: Bool { if case .terminalAuthentication = self { true } else { false } }
    public var isActiveAuthentication: Bool { self == .activeAuthentication }

    /// `PACE ECDH-GM, AES-128`.
    public var name: String {
        switch self {
        case .pace(let agreement, let mapping, let cipher): "PACE \(agreement.rawValue)-\(mapping.rawValue), \(cipher.name)"
        case .paceDomainParameters(let agreement, let mapping): "PACE \(agreement.rawValue)-\(mapping.rawValue) domain parameters"
        case .chipAuthentication(let agreement, let cipher): "Chip Authentication \(agreement.rawValue), \(cipher.name)"
        case .chipAuthenticationDomainParameters(let agreement): "Chip Authentication \(agreement.rawValue) domain parameters"
        case .chipAuthenticationPublicKey(let agreement): "Chip Authentication public key, \(agreement.rawValue)"
        case .terminalAuthentication(let scheme):
            scheme.map { "Terminal Authentication, \($0.name)" } ?? "Terminal Authentication"
        case .activeAuthentication: "Active Authentication"
        case .cardInfoLocator: "card info"
        case .efDIR: "EF.DIR"
        case .unknown(let identifier): identifier
        }
    }

    private static func named(_ identifier: String) -> SecurityProtocol? {
        switch identifier {
        case "2.23.136.1.1.5": return .activeAuthentication
        case "2.23.136.1.1.13": return .efDIR
        default: break
        }
        let root = "0.4.0.127.0.7.2.2."
        guard identifier.hasPrefix(root) else { return nil }
        let arcs = identifier.dropFirst(root.count).split(separator: ".").map(String.init)
        switch arcs.first {
        case "1":
            guard arcs.count == 2, let agreement = agreement(arcs[1]) else { return nil }
            return .chipAuthenticationPublicKey(agreement)
        case "2":
            if arcs.count == 1 { return .terminalAuthentication(nil) }
            return SignatureScheme(terminalAuthentication: identifier).map { .terminalAuthentication($0) }
        case "3":
            guard arcs.count >= 2, let agreement = agreement(arcs[1]) else { return nil }
            if arcs.count == 2 { return .chipAuthenticationDomainParameters(agreement) }
            guard arcs.count == 3, let cipher = cipher(arcs[2]) else { return nil }
            return .chipAuthentication(agreement, cipher)
        case "4":
            guard arcs.count >= 2, let (agreement, mapping) = mappings[arcs[1]] else { return nil }
            if arcs.count == 2 { return .paceDomainParameters(agreement, mapping) }
            // Chip authentication mapping goes with AES only (9.2.3).
            guard arcs.count == 3, let cipher = cipher(arcs[2]), mapping != .chipAuthentication || cipher != .tripleDES else {
                return nil
            }
            return .pace(agreement, mapping, cipher)
        case "6": return arcs.count == 1 ? .cardInfoLocator : nil
        default: return nil
        }
    }

    private static let mappings: [String: (KeyAgreement, Mapping)] = [
        "1": (.dh, .generic), "2": (.ecdh, .generic), "3": (.dh, .integrated), "4": (.ecdh, .integrated),
        "6": (.ecdh, .chipAuthentication),
    ]

    private static func agreement(_ arc: String) -> KeyAgreement? { arc == "1" ? .dh : arc == "2" ? .ecdh : nil }

    private static func cipher(_ arc: String) -> KeyDerivation.Algorithm? {
        switch arc {
        case "1": .tripleDES
        case "2": .aes128
        case "3": .aes192
        case "4": .aes256
        default: nil
        }
    }
}

extension KeyDerivation.Algorithm {
    /// `3DES`, `AES-128`.
    var name: String {
        switch self {
        case .tripleDES: "3DES"
        case .aes128: "AES-128"
        case .aes192: "AES-192"
        case .aes256: "AES-256"
        }
    }
}
