// SPDX-License-Identifier: MIT

import CardCrypto
public import FoundationEssentials

/// What was read of a travel document, and how far it can be believed.
public struct PassportModel: Sendable, Codable, Equatable {
    public var cardAccess: [SecurityInfo]?
    public var cardAccessRaw: Data?
    public var ldsVersion: String?
    public var unicodeVersion: String?
    /// The data groups that EF.COM or EF.SOD lists, in the order of their numbers.
    public var availableDataGroups: [DataGroupId]
    public var mrz: MRZData?
    /// The first face of DG2 in its stored format; ``faceImageFormat`` says which.
    public var faceImageData: Data?
    public var faceImageFormat: ImageFormat?
    /// What the face's record says about it, where it is one of ISO/IEC 19794-5.
    public var faceDetails: FaceDetails?
    /// The first image of DG7 in its stored format.
    public var signatureImageData: Data?
    public var signatureImageFormat: ImageFormat?
    /// The portraits of DG5, fingers of DG3 and irises of DG4, in their stored format; nil for a group that is not there.
    public var portraits: [DocumentImage]?
    public var fingers: [DocumentImage]?
    public var irises: [DocumentImage]?
    /// DG11 by field name; ``personalDetails`` has the rest of it.
    public var additionalPersonalDetails: [String: String]?
    public var personalDetails: AdditionalPersonalDetails?
    /// DG12 by field name; ``documentDetails`` has the rest of it.
    public var additionalDocumentDetails: [String: String]?
    public var documentDetails: AdditionalDocumentDetails?
    /// DG16.
    public var personsToNotify: [PersonToNotify]?
    /// DG14.
    public var securityInfos: [SecurityInfo]?
    public var securityInfosRaw: Data?
    public var activeAuthPublicKey: ActiveAuthenticationPublicKey?
    public var activeAuthPublicKeyRaw: Data?
    public var sod: SecurityObject?
    public var sodRaw: Data?
    /// Nil until Passive Authentication was performed.
    public var passiveAuthResult: PassiveAuthenticationStatus?
    /// What Passive Authentication found, each question apart.
    public var passiveAuthentication: PassiveAuthenticationReport?
    /// Nil until Active Authentication was performed.
    public var activeAuthResult: ActiveAuthenticationStatus?
    /// Each file as it was read, without the filler after it.
    public var rawDataGroups: [DataGroupId: Data]
    /// What became of each file that was asked for.
    public var dataGroupReadStatus: [DataGroupId: DataGroupReadStatus]
    public var securityReport: PassportSecurityReport
    /// What went wrong on the way, in the order in which it did.
    public var problems: [PassportProblem]

    /// A document out of stored files, without a chip.
    ///
    /// Nothing is thrown for files that are not what their standard says: their read status becomes `failed`, and ``problems``
    /// tells more.
    ///
    /// - Parameters:
    ///   - rawDataGroups: whole files, tag and length included.
    ///   - cardAccessRaw: EF.CardAccess.
    ///   - performPassiveAuthentication: whether the files are verified against EF.SOD, at the environment's calendar.
    ///   - trustAnchorsDER: country signing certificates in DER or PEM, or master lists; without them nobody can say whether the
    ///     issuer is to be trusted.
    ///   - dataGroupReadStatus: what became of each file; `read` for those that are there when left out.
    public init(
        rawDataGroups: [DataGroupId: Data], cardAccessRaw: Data? = nil, performPassiveAuthentication: Bool = true,
        trustAnchorsDER: [Data] = [], dataGroupReadStatus: [DataGroupId: DataGroupReadStatus] = [:]
    ) {
        self.rawDataGroups = rawDataGroups
        self.cardAccessRaw = cardAccessRaw
        self.dataGroupReadStatus = rawDataGroups.mapValues { _ in DataGroupReadStatus.read }
            .merging(dataGroupReadStatus) { $1 }
        availableDataGroups = []
        securityReport = PassportSecurityReport()
        problems = []

        if let raw = cardAccessRaw {
            do { cardAccess = try SecurityInfo.parse(Array(raw)) } catch { note(error, nil) }
        }
        var common: CommonData?
        if let raw = rawDataGroups[.com] {
            do { common = try CommonData(Array(raw)) } catch { note(error, .com) }
        }
        if let raw = rawDataGroups[.sod] {
            sodRaw = raw
            do { sod = try SecurityObject(Array(raw)) } catch { note(error, .sod) }
        }
        // From LDS 1.8 on the signed versions count.
        ldsVersion = sod?.ldsVersion ?? common?.ldsVersion
        unicodeVersion = sod?.unicodeVersion ?? common?.unicodeVersion
        availableDataGroups = DataGroupId.allCases.filter { group in
            common?.dataGroups.contains(group) == true || sod?.lists(group) == true
        }
        if let raw = rawDataGroups[.dg1] {
            do { mrz = try MRZData(dataGroup1: Array(raw)) } catch { note(error, .dg1) }
        }
        readImages()
        readDetails()
        if let raw = rawDataGroups[.dg14] {
            securityInfosRaw = raw
            do { securityInfos = try SecurityInfo.parse(dataGroup14: Array(raw)) } catch { note(error, .dg14) }
        }
        if let raw = rawDataGroups[.dg15] {
            activeAuthPublicKeyRaw = raw
            do { activeAuthPublicKey = try ActiveAuthenticationPublicKey(dataGroup15: Array(raw)) } catch { note(error, .dg15) }
        }
        for group in [DataGroupId.dg6, .dg8, .dg9, .dg10, .dg13] {
            guard let raw = rawDataGroups[group] else { continue }
            do { _ = try OptionalDataGroup(Array(raw), of: group) } catch { note(error, group) }
        }
        for digit in mrz?.checkDigits ?? [] where !digit.holds {
            problems.append(
                PassportProblem(
                    dataGroup: .dg1, kind: .checkDigit, code: digit.field.rawValue, side: .card,
                    detail: "DG1: the check digit of \(digit.field.rawValue) is wrong", bytesRead: nil, bytesTotal: nil))
        }
        guard performPassiveAuthentication else { return }
        do {
            let anchors = try TrustAnchors(files: trustAnchorsDER.map { Array($0) })
            let now = try CardEnvironment.current.calendarNanoseconds()
            authenticatePassively(anchors: anchors, today: CertificateTime(nanoseconds: now))
        } catch {
            securityReport.passiveAuthentication = PassportStage(.failed, "not performed: \(error)")
        }
    }

    private mutating func readImages() {
        if let raw = rawDataGroups[.dg2] {
            do {
                let face = try FaceImage(dataGroup2: Array(raw))
                faceImageData = face.data
                faceImageFormat = face.format
                faceDetails = face.details
            } catch { note(error, .dg2) }
        }
        if let raw = rawDataGroups[.dg3] {
            do { fingers = try BiometricTemplate.parse(Array(raw), of: .dg3).flatMap(\.images) } catch { note(error, .dg3) }
        }
        if let raw = rawDataGroups[.dg4] {
            do { irises = try BiometricTemplate.parse(Array(raw), of: .dg4).flatMap(\.images) } catch { note(error, .dg4) }
        }
        if let raw = rawDataGroups[.dg5] {
            do { portraits = try DocumentImage.portraits(dataGroup5: Array(raw)) } catch { note(error, .dg5) }
        }
        if let raw = rawDataGroups[.dg7] {
            do {
                let image = try DocumentImage.signatures(dataGroup7: Array(raw)).first
                signatureImageData = image?.data
                signatureImageFormat = image?.format
            } catch { note(error, .dg7) }
        }
    }

    private mutating func readDetails() {
        if let raw = rawDataGroups[.dg11] {
            do {
                personalDetails = try AdditionalPersonalDetails(dataGroup11: Array(raw))
                additionalPersonalDetails = personalDetails?.texts
            } catch { note(error, .dg11) }
        }
        if let raw = rawDataGroups[.dg12] {
            do {
                documentDetails = try AdditionalDocumentDetails(dataGroup12: Array(raw))
                additionalDocumentDetails = documentDetails?.texts
            } catch { note(error, .dg12) }
        }
        if let raw = rawDataGroups[.dg16] {
            do { personsToNotify = try PersonToNotify.parse(dataGroup16: Array(raw)) } catch { note(error, .dg16) }
        }
    }

    /// Verifies the files against EF.SOD at `today`, and enters the outcome.
    mutating func authenticatePassively(anchors: TrustAnchors, today: CertificateTime) {
        let outcome = PassiveAuthentication.verify(
            sod: rawDataGroups[.sod].map { Array($0) }, dataGroups: rawDataGroups, anchors: anchors, today: today)
        passiveAuthentication = outcome
        passiveAuthResult = outcome.status
        securityReport.passiveAuthentication = outcome.stage
    }

    /// The face of DG2 as stored, taken out of the raw file where that is there.
    public var resolvedFaceImageData: Data? {
        rawDataGroups[.dg2].flatMap { try? FaceImage(dataGroup2: Array($0)).data } ?? faceImageData
    }

    /// The signature image of DG7 as stored, taken out of the raw file where that is there.
    public var resolvedSignatureImageData: Data? {
        rawDataGroups[.dg7].flatMap { try? DocumentImage.signatures(dataGroup7: Array($0)).first?.data } ?? signatureImageData
    }

    private mutating func note(_ error: LDSError, _ dataGroup: DataGroupId?) {
        if let dataGroup { dataGroupReadStatus[dataGroup] = .failed }
        problems.append(
            PassportProblem(
                dataGroup: dataGroup, kind: .notUnderstood, code: nil, side: .card, detail: error.detail,
                bytesRead: nil, bytesTotal: nil))
    }
}
