// SPDX-License-Identifier: MIT

/// What became of a file that was asked for.
public enum DataGroupReadStatus: String, Sendable, Codable, Equatable {
    /// Read whole, and understood where this library knows its contents.
    case read
    /// EF.SOD does not list it, or the card has no such file.
    case notPresent
    /// The card does not give it out under this access.
    case unavailable
    /// The card broke off, its answer was wrong, or the contents are not what the standard says.
    case failed
    /// Never asked for, because the session had ended.
    case notRead
}

/// How a step of the chip's protection ended.
public enum PassportStageStatus: String, Sendable, Codable, Equatable {
    case pending, succeeded, failed, fallback, skipped, notAdvertised, notSupported
}

/// A step of the chip's protection.
public struct PassportStage: Sendable, Codable, Equatable {
    public var status: PassportStageStatus
    /// What is known of it, for people.
    public var detail: String?

    public init(_ status: PassportStageStatus, _ detail: String? = nil) {
        self.status = status
        self.detail = detail
    }
}

/// How each step of the chip's protection ended.
public struct PassportSecurityReport: Sendable, Codable, Equatable {
    public var cardAccess = PassportStage(.skipped, "not performed")
    public var pace = PassportStage(.skipped, "not performed")
    public var bac = PassportStage(.skipped, "not performed")
    public var chipAuthentication = PassportStage(.skipped, "not performed")
    public var passiveAuthentication = PassportStage(.skipped, "not performed")
    public var activeAuthentication = PassportStage(.skipped, "not performed")
    /// Nil when no terminal's certificates were given.
    public var terminalAuthentication: PassportStage?

    public init() {}
}

/// Something about a file that a person should know: it was refused, it is damaged, a check digit is wrong.
public struct PassportProblem: Sendable, Codable, Equatable {
    public enum Kind: String, Sendable, Codable {
        /// The card said no.
        case refused
        /// What the card sent is not a file.
        case broken
        /// The file was read and is not what its standard says.
        case notUnderstood
        /// Secure messaging ended.
        case channel
        /// The card or reader went away.
        case lost
        /// A check digit of the MRZ is wrong.
        case checkDigit
    }

    public let dataGroup: DataGroupId?
    public let kind: Kind
    /// The status word in hexadecimal, where the card refused; the error's case, where the link was lost.
    public let code: String?
    public let side: FaultSide
    public let detail: String
    /// Octets that were read of the file before.
    public let bytesRead: Int?
    public let bytesTotal: Int?
}

/// Whose fault something is.
public enum FaultSide: String, Sendable, Codable, Equatable {
    /// The program that uses the card.
    case program
    case card
    case reader
    /// Somebody pulled the card or the reader, or a service is not there.
    case outside
}

/// What Active Authentication told (ICAO 9303-11 6.1).
public enum ActiveAuthenticationStatus: String, Sendable, Codable, Equatable {
    case verified, failed, notImplemented, commandFailed, unsupportedKeyType
}

/// What Passive Authentication told (ICAO 9303-11 5.1).
public enum PassiveAuthenticationStatus: String, Sendable, Codable, Equatable {
    case dataGroupHashesVerified, hashMismatch, sodParseFailed, sodNotAvailable, unsupportedHashAlgorithm, signatureNotVerified
    case signatureVerified, signatureInvalid, fullyVerified, trustChainInvalid
}

@available(*, deprecated, renamed: "ActiveAuthenticationStatus")
public typealias ActiveAuthStatus = ActiveAuthenticationStatus
@available(*, deprecated, renamed: "PassiveAuthenticationStatus")
public typealias PassiveAuthStatus = PassiveAuthenticationStatus
@available(*, deprecated, renamed: "ActiveAuthenticationPublicKey")
public typealias ActiveAuthPublicKey = ActiveAuthenticationPublicKey
