// SPDX-License-Identifier: MIT

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
    public var signatureImageData: Data?
    public var additionalPersonalDetails: [String: String]?
    public var additionalDocumentDetails: [String: String]?
    public var securityInfos: [SecurityInfo]?
    public var securityInfosRaw: Data?
    public var activeAuthPublicKey: ActiveAuthenticationPublicKey?
    public var activeAuthPublicKeyRaw: Data?
    public var sod: SecurityObject?
    public var sodRaw: Data?
    /// Nil until Passive Authentication was performed.
    public var passiveAuthResult: PassiveAuthenticationStatus?
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
    /// tells more. Passive Authentication is not performed by this version, whatever is asked for: its result stays nil.
    ///
    /// - Parameters:
    ///   - rawDataGroups: whole files, tag and length included.
    ///   - cardAccessRaw: EF.CardAccess.
    ///   - trustAnchorsDER: country signing certificates.
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
        if let raw = rawDataGroups[.dg2] {
            do {
                let face = try FaceImage(dataGroup2: Array(raw))
                faceImageData = face.data
                faceImageFormat = face.format
            } catch { note(error, .dg2) }
        }
        if let raw = rawDataGroups[.dg14] {
            securityInfosRaw = raw
        }
        activeAuthPublicKeyRaw = rawDataGroups[.dg15]
        for digit in mrz?.checkDigits ?? [] where !digit.holds {
            problems.append(
                PassportProblem(
                    dataGroup: .dg1, kind: .checkDigit, code: digit.field.rawValue, side: .card,
                    detail: "DG1: the check digit of \(digit.field.rawValue) is wrong", bytesRead: nil, bytesTotal: nil))
        }
    }

    /// The face of DG2 as stored, taken out of the raw file where that is there.
    public var resolvedFaceImageData: Data? {
        rawDataGroups[.dg2].flatMap { try? FaceImage(dataGroup2: Array($0)).data } ?? faceImageData
    }

    /// The signature image of DG7; this version does not take it out of the raw file.
    public var resolvedSignatureImageData: Data? { signatureImageData }

    private mutating func note(_ error: LDSError, _ dataGroup: DataGroupId?) {
        if let dataGroup { dataGroupReadStatus[dataGroup] = .failed }
        problems.append(
            PassportProblem(
                dataGroup: dataGroup, kind: .notUnderstood, code: nil, side: .card, detail: error.detail,
                bytesRead: nil, bytesTotal: nil))
    }
}
