// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// Where a sheet is shown: what a window scene is to an app.
public protocol PresentationContext: Sendable {
    /// Whether a sheet can be shown over it. Calls over one that is not valid throw `invalidView`.
    var isValid: Bool { get }
}

/// A scene of a program without windows.
public struct ProgramScene: PresentationContext {
    public var isValid: Bool

    /// A scene; valid unless told otherwise.
    public init(isValid: Bool = true) { self.isValid = isValid }
}

/// The person in front of the device.
public protocol Authorizer: Sendable {
    /// Answers the alert that an app shows when it first wants the secure element.
    func allowsUse(by application: String) async -> Bool

    /// Answers the sheet over `context`.
    func authorize(_ request: AuthorizationRequest, over context: any PresentationContext) async -> AuthorizationAnswer
}

/// What the sheet asks.
public struct AuthorizationRequest: Sendable {
    /// What the sheet is for.
    public enum Purpose: Sendable, Equatable {
        /// To present the credential to a contactless reader.
        case cardEmulation
        /// To let one instance do a transaction with the app.
        case wired(instanceAID: Data)
    }

    /// The credential that is to be used.
    public var credential: CredentialSession.Credential
    /// What for.
    public var purpose: Purpose
}

/// What the person did with the sheet.
public enum AuthorizationAnswer: Sendable, Equatable, CaseIterable {
    case allow
    /// Said no.
    case decline
    /// Closed it.
    case dismiss
    /// Did nothing until it went away.
    case timeOut
}

/// Someone who always gives the same answer.
public struct FixedAuthorizer: Authorizer {
    /// Given to every sheet.
    public var answer: AuthorizationAnswer
    /// Given to the first-use alert.
    public var allowsUse: Bool

    /// Someone who allows everything unless told otherwise.
    public init(_ answer: AuthorizationAnswer = .allow, allowsUse: Bool = true) {
        self.answer = answer
        self.allowsUse = allowsUse
    }

    public func allowsUse(by application: String) async -> Bool { allowsUse }

    public func authorize(_ request: AuthorizationRequest, over context: any PresentationContext) async -> AuthorizationAnswer {
        answer
    }
}
