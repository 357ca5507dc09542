// SPDX-License-Identifier: MIT

public import CardCrypto

/// What a SecurityInfo says, by the rules of its kind (ICAO 9303-11 9.2, BSI TR-03110 part 3 A.1).
public enum SecurityInfoContent: Sendable, Equatable {
    case pace(PACEInfo)
    case paceDomainParameters(PACEDomainParameterInfo)
    case chipAuthentication(ChipAuthenticationInfo)
    case chipAuthenticationDomainParameters(ChipAuthenticationDomainParameterInfo)
    case chipAuthenticationPublicKey(ChipAuthenticationPublicKeyInfo)
    case terminalAuthentication(TerminalAuthenticationInfo)
    case activeAuthentication(ActiveAuthenticationInfo)
    case efDIR(EFDIRInfo)
    case unknown

    /// - Parameter object: the SEQUENCE.
    init(_ object: DataObject) throws(DataObjectError) {
        let fields = try object.elements(of: 0x30)
        let identifier = try fields.element(0, of: object).objectIdentifier()
        switch SecurityProtocol(objectIdentifier: identifier) {
        case .pace(let agreement, let mapping, let cipher):
            self = .pace(
                PACEInfo(
                    objectIdentifier: identifier, keyAgreement: agreement, mapping: mapping, cipher: cipher,
                    version: try fields.element(1, of: object).smallInteger(),
                    parameterId: fields.count > 2 ? try fields[2].smallInteger() : nil))
        case .paceDomainParameters(let agreement, let mapping):
            self = .paceDomainParameters(
                PACEDomainParameterInfo(
                    objectIdentifier: identifier, keyAgreement: agreement, mapping: mapping,
                    parameters: try Self.parameters(fields, of: object),
                    parameterId: fields.count > 2 ? try fields[2].smallInteger() : nil))
        case .chipAuthentication(let agreement, let cipher):
            self = .chipAuthentication(
                ChipAuthenticationInfo(
                    objectIdentifier: identifier, keyAgreement: agreement, cipher: cipher,
                    version: try fields.element(1, of: object).smallInteger(),
                    keyId: fields.count > 2 ? try fields[2].smallInteger() : nil))
        case .chipAuthenticationDomainParameters(let agreement):
            self = .chipAuthenticationDomainParameters(
                ChipAuthenticationDomainParameterInfo(
                    keyAgreement: agreement, parameters: try Self.parameters(fields, of: object),
                    keyId: fields.count > 2 ? try fields[2].smallInteger() : nil))
        case .chipAuthenticationPublicKey(let agreement):
            self = .chipAuthenticationPublicKey(
                ChipAuthenticationPublicKeyInfo(
                    keyAgreement: agreement, publicKey: try SubjectPublicKeyInfo(try fields.element(1, of: object)),
                    keyId: fields.count > 2 ? try fields[2].smallInteger() : nil))
        case .terminalAuthentication:
            self = .terminalAuthentication(
                TerminalAuthenticationInfo(version: try fields.element(1, of: object).smallInteger()))
        case .activeAuthentication:
            let algorithm = try fields.element(2, of: object).objectIdentifier()
            self = .activeAuthentication(
                ActiveAuthenticationInfo(
                    version: try fields.element(1, of: object).smallInteger(), signatureAlgorithm: algorithm))
        case .efDIR: self = .efDIR(EFDIRInfo(octets: Array(try fields.element(1, of: object, tag: 0x04).value)))
        case .cardInfoLocator, .unknown: self = .unknown
        }
    }

    private static func parameters(
        _ fields: [DataObject], of object: DataObject
    ) throws(DataObjectError) -> SubjectPublicKeyInfo.Parameters {
        try SubjectPublicKeyInfo.Parameters(algorithm: try fields.element(1, of: object, tag: 0x30))
    }
}

/// PACEInfo: the chip speaks PACE (9.2.1).
public struct PACEInfo: Sendable, Hashable {
    /// As it stands in MSE:Set AT and in the token.
    public let objectIdentifier: String
    public let keyAgreement: SecurityProtocol.KeyAgreement
    public let mapping: SecurityProtocol.Mapping
    public let cipher: KeyDerivation.Algorithm
    public let version: Int
    /// Standardized domain parameters, or those of the PACEDomainParameterInfo with this number.
    public let parameterId: Int?
}

/// PACEDomainParameterInfo: explicit domain parameters for PACE (9.2.2).
public struct PACEDomainParameterInfo: Sendable, Hashable {
    public let objectIdentifier: String
    public let keyAgreement: SecurityProtocol.KeyAgreement
    public let mapping: SecurityProtocol.Mapping
    public let parameters: SubjectPublicKeyInfo.Parameters
    public let parameterId: Int?
}

/// ChipAuthenticationInfo (9.2.5).
public struct ChipAuthenticationInfo: Sendable, Hashable {
    public let objectIdentifier: String
    public let keyAgreement: SecurityProtocol.KeyAgreement
    public let cipher: KeyDerivation.Algorithm
    public let version: Int
    /// Which public key goes with it, where there are several.
    public let keyId: Int?
}

/// ChipAuthenticationDomainParameterInfo (TR-03110 part 3, A.1.1.2).
public struct ChipAuthenticationDomainParameterInfo: Sendable, Hashable {
    public let keyAgreement: SecurityProtocol.KeyAgreement
    public let parameters: SubjectPublicKeyInfo.Parameters
    public let keyId: Int?
}

/// ChipAuthenticationPublicKeyInfo (9.2.6).
public struct ChipAuthenticationPublicKeyInfo: Sendable, Hashable {
    public let keyAgreement: SecurityProtocol.KeyAgreement
    public let publicKey: SubjectPublicKeyInfo
    public let keyId: Int?
}

/// TerminalAuthenticationInfo (9.2.7). The reference to EF.CVCA that version 1 may carry is in the raw octets.
public struct TerminalAuthenticationInfo: Sendable, Hashable {
    public let version: Int
}

/// ActiveAuthenticationInfo: the signature algorithm of Active Authentication with a key on a curve (9.2.4).
public struct ActiveAuthenticationInfo: Sendable, Hashable {
    public let version: Int
    /// Dotted decimal, of BSI TR-03111: `0.4.0.127.0.7.1.1.4.1.3` is plain ECDSA with SHA-256.
    public let signatureAlgorithm: String
}

/// EFDIRInfo: a signed copy of EF.DIR (9.2.8).
public struct EFDIRInfo: Sendable, Hashable {
    public let octets: [UInt8]
}
