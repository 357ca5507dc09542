// SPDX-License-Identifier: MIT

/// What Passive Authentication found, each question apart (ICAO 9303-11 5.1). ``status`` is the seven words' summary.
public struct PassiveAuthenticationReport: Sendable, Codable, Equatable {
    /// Whether a file's hash is the one that EF.SOD lists.
    public enum HashState: String, Sendable, Codable {
        case matches
        /// Matches with the octets after the file's data object, which the issuer hashed too.
        case matchesWithFiller
        case differs
        /// EF.SOD lists it, and it was not read.
        case notRead
        /// It was read, and EF.SOD does not list it: nothing vouches for it.
        case notListed
    }

    public enum SignatureState: String, Sendable, Codable {
        case valid, invalid
        /// The algorithm or key is not known: nothing can be said.
        case unsupported
        /// EF.SOD could not be read, or was not there.
        case notVerified
    }

    public enum TrustState: String, Sendable, Codable {
        /// A way leads from the document signer to an anchor.
        case trusted
        /// No anchors were given: nobody can say.
        case unknown
        /// Anchors were given, and none of them leads here.
        case untrusted
        /// There is no valid signature whose signer could be trusted.
        case notVerified
    }

    /// Something that does not decide by itself and that a person should know.
    public enum Finding: Sendable, Codable, Equatable {
        /// The certificate of this name ended on this day (`2026-11-30`), before the calendar's today.
        case expired(certificate: String, day: String)
        /// It begins on this day, after the calendar's today.
        case notYetValid(certificate: String, day: String)
        /// The document was signed on this day, outside the validity of the signer's certificate.
        case signedOutsideValidity(day: String)
        /// The document was signed on this day, outside the time for which the signer's private key was meant.
        case signedOutsideKeyUsage(day: String)
        /// The certificate was issued when its issuer's was not valid.
        case issuedOutsideValidity(certificate: String)
        /// SHA-1 in a signature or among the hashes.
        case weakHash(String)
        /// A key of this size.
        case weakKey(String)
        /// The signer's certificate is not in EF.SOD; it was found among the anchors.
        case signerCertificateNotIncluded
        /// The signer is named as another than the one whose certificate is inside; that one's key made the signature.
        case signerNamedWrongly
        /// The content type is not that of today's documents.
        case oldContentType(String)
    }

    public var status: PassiveAuthenticationStatus
    /// Why, for people.
    public var detail: String
    public var dataGroups: [DataGroupId: HashState]
    public var signature: SignatureState
    public var trust: TrustState
    public var findings: [Finding]
    /// `SHA-256`, of the data groups.
    public var hashAlgorithm: String?
    /// `RSA-PSS, SHA-256`, of EF.SOD.
    public var signatureAlgorithm: String?
    /// The subject's name of the document signer's certificate.
    public var signer: String?
    /// The subjects' names of the way from the signer to the anchor, the anchor last.
    public var path: [String]

    /// Whether the files are the ones that the issuer signed and the issuer is one that the caller trusts.
    public var isTrusted: Bool { status == .fullyVerified }

    init(_ status: PassiveAuthenticationStatus, _ detail: String) {
        self.status = status
        self.detail = detail
        dataGroups = [:]
        signature = .notVerified
        trust = .notVerified
        findings = []
        path = []
    }

    /// How the step of a read ended. Without anchors it is a fallback at best; a doubt is never a success.
    public var stage: PassportStage {
        switch status {
        case .fullyVerified: PassportStage(.succeeded, detail)
        case .signatureVerified, .signatureNotVerified, .dataGroupHashesVerified: PassportStage(.fallback, detail)
        case .hashMismatch, .signatureInvalid, .trustChainInvalid, .sodParseFailed: PassportStage(.failed, detail)
        case .unsupportedHashAlgorithm: PassportStage(.notSupported, detail)
        case .sodNotAvailable: PassportStage(.skipped, detail)
        }
    }
}
