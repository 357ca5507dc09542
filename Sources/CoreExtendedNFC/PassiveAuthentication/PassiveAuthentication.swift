// SPDX-License-Identifier: MIT

public import CardCrypto
public import FoundationEssentials

/// Passive Authentication (ICAO 9303-11 5.1): the signature of EF.SOD, the way from its signer to a country that the caller trusts, and
/// the hashes of the data groups.
public enum PassiveAuthentication {
    /// Verifies files against their EF.SOD.
    ///
    /// Nothing is thrown for what is wrong with the document: the report says it. Certificates are judged at `today`.
    ///
    /// - Parameters:
    ///   - sod: EF.SOD; nil when it is not there.
    ///   - dataGroups: the files as they were read.
    ///   - anchors: the country signing certificates that the caller trusts; none means that trust stays unknown.
    ///   - today: the calendar, from the environment.
    public static func verify(
        sod: [UInt8]?, dataGroups: [DataGroupId: Data], anchors: TrustAnchors, today: CertificateTime
    ) -> PassiveAuthenticationReport {
        guard let sod else { return PassiveAuthenticationReport(.sodNotAvailable, "EF.SOD is not there") }
        let signed: SignedData
        let object: SecurityObject
        do throws(LDSError) {
            signed = try SecurityObject.signedData(of: sod)
            do throws(DataObjectError) { object = try SecurityObject(signed) } catch {
                throw LDSError(error, in: "EF.SOD's list of hashes")
            }
        } catch { return PassiveAuthenticationReport(.sodParseFailed, error.detail) }

        var report = PassiveAuthenticationReport(.signatureNotVerified, "")
        if object.contentType != "2.23.136.1.1.1" { report.findings.append(.oldContentType(object.contentType)) }
        compare(dataGroups, with: object, &report)
        verifySignature(of: signed, "EF.SOD", anchors, today, &report)
        conclude(object, &report)
        return report
    }

    /// Verifies the signature of EF.CardSecurity and the way from its signer to an anchor. There are no data groups to compare.
    public static func verify(
        cardSecurity: CardSecurity, anchors: TrustAnchors, today: CertificateTime
    ) -> PassiveAuthenticationReport {
        verify(cardSecurity.signedData, name: "EF.CardSecurity", anchors: anchors, today: today)
    }

    /// Verifies a master list's signature and the way from its signer to an anchor.
    public static func verify(masterList: MasterList, anchors: TrustAnchors, today: CertificateTime)
        -> PassiveAuthenticationReport
    {
        verify(masterList.signedData, name: "the master list", anchors: anchors, today: today)
    }

    private static func verify(
        _ signed: SignedData, name: String, anchors: TrustAnchors, today: CertificateTime
    ) -> PassiveAuthenticationReport {
        var report = PassiveAuthenticationReport(.signatureNotVerified, "")
        verifySignature(of: signed, name, anchors, today, &report)
        concludeSignature(&report)
        return report
    }

    // MARK: Hashes

    private static func compare(
        _ files: [DataGroupId: Data], with object: SecurityObject, _ report: inout PassiveAuthenticationReport
    ) {
        report.hashAlgorithm = object.hashName ?? object.hashAlgorithm
        guard let digest = Digest(objectIdentifier: object.hashAlgorithm) else { return }
        if digest == .sha1 { report.findings.append(.weakHash("SHA-1 of the data groups")) }
        for (group, listed) in object.dataGroupHashes {
            report.dataGroups[group] = files[group].map { state(of: Array($0), Array(listed), digest) } ?? .notRead
        }
        for group in files.keys where group.number != nil && object.dataGroupHashes[group] == nil {
            report.dataGroups[group] = .notListed
        }
    }

    /// Chips may send filler after the data object, which most issuers did not hash.
    private static func state(
        of file: [UInt8], _ listed: [UInt8], _ digest: Digest
    ) -> PassiveAuthenticationReport.HashState {
        let object = (try? DataObject(file)).map { Array($0.octets) } ?? file
        guard let hash = try? digest.hash(object), let whole = try? digest.hash(file) else { return .differs }
        if hash == listed { return .matches }
        return whole == listed ? .matchesWithFiller : .differs
    }

    // MARK: Signature

    private static func verifySignature(
        of signed: SignedData, _ name: String, _ anchors: TrustAnchors, _ today: CertificateTime,
        _ report: inout PassiveAuthenticationReport
    ) {
        guard let signer = signed.signers.first else {
            report.signature = .invalid
            report.detail = "\(name) has no signer"
            return
        }
        report.signatureAlgorithm = signer.scheme?.name ?? signer.signatureAlgorithm
        let included = signed.certificate(of: signer)
        // The one certificate inside is the signer's although the name is another's: issuers get it wrong, and the key tells.
        let only = signed.certificates.count == 1 ? signed.certificates.first : nil
        guard let certificate = included ?? anchors.certificates.first(where: signer.isIdentified) ?? only else {
            report.signature = .unsupported
            report.detail =
                signed.certificateFaults.first.map { "the signer's certificate cannot be read: \($0)" }
                ?? "the signer's certificate is not in \(name)"
            return
        }
        if included == nil { report.findings.append(certificate == only ? .signerNamedWrongly : .signerCertificateNotIncluded) }
        report.signer = certificate.subject.description
        switch signed.verify(signer, certificate: certificate) {
        case .valid: report.signature = .valid
        case .invalid(let reason):
            report.signature = .invalid
            report.detail = "\(name): \(reason)"
            return
        case .unsupported(let reason):
            report.signature = .unsupported
            report.detail = "\(name): \(reason) is not supported"
            return
        }
        judgeStrength(of: signer, certificate, &report)
        let path = judgeTrust(in: certificate, signed, anchors, &report)
        judgeTimes(of: path, signer, today, &report)
    }

    /// - Returns: the certificates from the signer's to the anchor; the signer's alone when no way leads there.
    private static func judgeTrust(
        in certificate: Certificate, _ signed: SignedData, _ anchors: TrustAnchors, _ report: inout PassiveAuthenticationReport
    ) -> [Certificate] {
        switch anchors.verdict(on: certificate, others: signed.certificates) {
        case .trusted(let path):
            report.trust = .trusted
            report.path = path.map(\.subject.description)
            return path
        case .noAnchors:
            report.trust = .unknown
            report.detail = "no trust anchors were given"
        case .unknownIssuer(let name):
            report.trust = .untrusted
            report.detail = "no trust anchor is the issuer of the signer's certificate: \(name)"
        case .signatureWrong(let subject, let issuer):
            report.trust = .untrusted
            report.detail = "the certificate of \(subject) is not signed by \(issuer)"
        case .issuerMayNotSign(let name):
            report.trust = .untrusted
            report.detail = "the certificate of \(name) is not one of an authority"
        case .unsupported(let name, let reason):
            report.trust = .untrusted
            report.detail = "the certificate of \(name) cannot be verified: \(reason)"
        }
        return [certificate]
    }

    // MARK: Times and strength

    private static func judgeTimes(
        of path: [Certificate], _ signer: SignedData.Signer, _ today: CertificateTime, _ report: inout PassiveAuthenticationReport
    ) {
        for (index, member) in path.enumerated() {
            let name = member.subject.description
            if today > member.notAfter { report.findings.append(.expired(certificate: name, day: "\(member.notAfter)")) }
            if today < member.notBefore { report.findings.append(.notYetValid(certificate: name, day: "\(member.notBefore)")) }
            guard index + 1 < path.count else { continue }
            let issuer = path[index + 1]
            if member.notBefore < issuer.notBefore || member.notBefore > issuer.notAfter {
                report.findings.append(.issuedOutsideValidity(certificate: name))
            }
        }
        guard let signed = signer.signingTime, let certificate = path.first else { return }
        if signed < certificate.notBefore || signed > certificate.notAfter {
            report.findings.append(.signedOutsideValidity(day: "\(signed)"))
        }
        let extensions = certificate.extensions
        if extensions.privateKeyNotBefore.map({ signed < $0 }) == true
            || extensions.privateKeyNotAfter.map({ signed > $0 }) == true
        {
            report.findings.append(.signedOutsideKeyUsage(day: "\(signed)"))
        }
    }

    private static func judgeStrength(
        of signer: SignedData.Signer, _ certificate: Certificate, _ report: inout PassiveAuthenticationReport
    ) {
        if signer.digest == .sha1 || signer.scheme?.digest == .sha1 {
            report.findings.append(.weakHash("SHA-1 of the signature"))
        }
        switch certificate.publicKey {
        case .rsa(let modulus, _)? where modulus.count < 256: report.findings.append(.weakKey("RSA \(modulus.count * 8)"))
        case .elliptic(let curve, _)? where curve.orderLength < 28:
            report.findings.append(.weakKey("EC \(curve.orderLength * 8)"))
        default: break
        }
    }

    // MARK: Conclusion

    private static func conclude(_ object: SecurityObject, _ report: inout PassiveAuthenticationReport) {
        // A wrong signature comes first: hashes in a list that nobody signed say nothing.
        if report.signature == .invalid {
            report.status = .signatureInvalid
            return
        }
        guard Digest(objectIdentifier: object.hashAlgorithm) != nil else {
            report.status = .unsupportedHashAlgorithm
            report.detail = "the hashes are of algorithm \(object.hashAlgorithm)"
            return
        }
        let bad = report.dataGroups.filter { $0.value == .differs }.keys.sorted { ($0.number ?? 0) < ($1.number ?? 0) }
        if !bad.isEmpty {
            report.status = .hashMismatch
            let names = bad.map(\.displayName).joined(separator: ", ")
            report.detail = "\(names) \(bad.count == 1 ? "is" : "are") not what the issuer signed"
            return
        }
        concludeSignature(&report)
        let compared = report.dataGroups.values.filter { $0 == .matches || $0 == .matchesWithFiller }.count
        if compared == 0, report.status == .fullyVerified {
            // A signature over hashes that were compared with nothing vouches for nothing that was read.
            report.status = .signatureVerified
            report.detail = "EF.SOD is genuine, and no data group that it lists was read"
        }
    }

    private static func concludeSignature(_ report: inout PassiveAuthenticationReport) {
        switch report.signature {
        case .invalid: report.status = .signatureInvalid
        case .unsupported, .notVerified: report.status = .signatureNotVerified
        case .valid:
            switch report.trust {
            case .trusted:
                if let reason = timeFault(report.findings) {
                    report.status = .trustChainInvalid
                    report.detail = reason
                } else {
                    report.status = .fullyVerified
                    report.detail = "signed by \(report.signer ?? ""), trusted through \(report.path.last ?? "")"
                }
            case .untrusted: report.status = .trustChainInvalid
            case .unknown, .notVerified: report.status = .signatureVerified
            }
        }
    }

    /// A certificate of the future cannot have signed anything. One that has ended since is usual: documents outlive their signers' right
    /// to sign. The time of signing is the signer's own word and decides nothing.
    private static func timeFault(_ findings: [PassiveAuthenticationReport.Finding]) -> String? {
        for finding in findings {
            if case .notYetValid(let certificate, let day) = finding {
                return "the certificate of \(certificate) begins on \(day)"
            }
        }
        return nil
    }
}
