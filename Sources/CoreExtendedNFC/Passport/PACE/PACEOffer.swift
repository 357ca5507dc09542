// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import Octets

/// One way of PACE that a chip offers: its protocol and the group that keys are agreed on in (ICAO 9303-11 4.4.3, 9.2.1).
struct PACEOffer: Sendable {
    /// The protocol, in dotted decimal and as the octets of MSE:Set AT.
    let objectIdentifier: String
    let identifierOctets: [UInt8]
    let mapping: SecurityProtocol.Mapping
    let algorithm: KeyDerivation.Algorithm
    let parameters: DomainParameters
    /// The number in PACEInfo.
    let parameterId: Int?
    /// Whether MSE:Set AT has to name the parameters: the protocol alone leaves them open.
    var needsParameterId = false

    /// `PACE-ECDH-GM-AES-CBC-CMAC-128, parameters 13`.
    var name: String {
        let agreement = parameters.kind == .elliptic ? "ECDH" : "DH"
        let cipher =
            switch algorithm {
            case .tripleDES: "3DES-CBC-CBC"
            case .aes128: "AES-CBC-CMAC-128"
            case .aes192: "AES-CBC-CMAC-192"
            case .aes256: "AES-CBC-CMAC-256"
            }
        return "PACE-\(agreement)-\(mapping.rawValue)-\(cipher), parameters \(parameterId.map { "\($0)" } ?? "explicit")"
    }

    /// What EF.CardAccess offers, the best way first; and why the others cannot be used.
    ///
    /// Chip authentication mapping comes before the others because it proves the chip as well, AES before triple DES; apart from that
    /// the chip's order holds.
    static func offers(in infos: [SecurityInfo]) -> (usable: [PACEOffer], unusable: [String]) {
        var usable: [PACEOffer] = []
        var unusable: [String] = []
        for info in infos {
            guard case .pace(let content) = info.content else { continue }
            do {
                usable.append(try PACEOffer(content, among: infos))
            } catch {
                unusable.append("\(SecurityProtocol(objectIdentifier: content.objectIdentifier).name): \(error.detail)")
            }
        }
        let hasExplicit = infos.contains { if case .paceDomainParameters = $0.content { true } else { false } }
        for index in usable.indices {
            let isAmbiguous = usable.count { $0.identifierOctets == usable[index].identifierOctets } > 1
            usable[index].needsParameterId = usable[index].parameterId != nil && (isAmbiguous || hasExplicit)
        }
        let order = usable.enumerated().sorted { ($0.element.rank, $0.offset) < ($1.element.rank, $1.offset) }
        return (order.map(\.element), unusable)
    }

    private init(_ info: PACEInfo, among infos: [SecurityInfo]) throws(CryptoError) {
        objectIdentifier = info.objectIdentifier
        identifierOctets = Array(try DER.objectIdentifier(info.objectIdentifier).dropFirst(2))
        mapping = info.mapping
        algorithm = info.cipher
        parameterId = info.parameterId
        parameters = try Self.parameters(of: info, among: infos)
        guard (parameters.kind == .elliptic) == (info.keyAgreement == .ecdh) else {
            throw CryptoError(code: .domainParameters, detail: "\(parameters.name) with \(info.keyAgreement.rawValue)")
        }
        guard mapping != .integrated || parameters.supportsIntegratedMapping else {
            throw CryptoError(code: .domainParameters, detail: "\(parameters.name) cannot be used with integrated mapping")
        }
    }

    private var rank: Int { (mapping == .chipAuthentication ? 0 : 2) + (algorithm == .tripleDES ? 1 : 0) }

    private static func parameters(
        of info: PACEInfo, among infos: [SecurityInfo]
    ) throws(CryptoError) -> DomainParameters {
        // Numbers up to 31 are standard ones; a chip's own stand in a PACEDomainParameterInfo (9303-11 9.2.2, 9.5.1).
        if let number = info.parameterId, let standard = DomainParameters.standardized(number) { return standard }
        let family = info.objectIdentifier.split(separator: ".").dropLast().joined(separator: ".")
        for candidate in infos where candidate.protocolOID == family {
            guard case .paceDomainParameters(let content) = candidate.content,
                content.parameterId == nil || info.parameterId == nil || content.parameterId == info.parameterId,
                let sequence = try? TLV.first(in: Array(candidate.raw)[...]), let fields = try? sequence.children(),
                fields.count >= 2
            else { continue }
            return try DomainParameters(algorithmIdentifier: TLV.encode(fields[1].tag, fields[1].value))
        }
        throw CryptoError(
            code: .domainParameters,
            detail: "domain parameters \(info.parameterId.map { "\($0)" } ?? "without number") are unknown")
    }
}
