// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension CredentialSession {
    /// Why a call of a session failed, or why a session ended.
    ///
    /// The cases and their order are those of the SDK; ``invalidProductConfigID`` came with 27.0, and
    /// ``userAuthorizationTimedOut`` is thrown under rules before 27 only.
    public enum ErrorCode: Error, LocalizedError, Equatable, Hashable, Sendable, CaseIterable {
        /// The person may not do this.
        case userNotAuthorized
        /// The person refused permission.
        case accessDenied
        /// The app is not in front.
        case clientNotInForeground
        /// The call is not allowed in the session's state.
        case invalidSessionState
        /// The credential is not installed.
        case invalidCredentialState
        /// There is no such credential, or the app has no access to it.
        case credentialDoesNotExist
        /// The credential has no instance with this identifier that may be named here.
        case instanceDoesNotExist
        /// The session has ended.
        case sessionInvalidated
        /// The person dismissed the sheet. The session is in management.
        case userCanceledAuthorization
        /// The sheet timed out.
        case userAuthorizationTimedOut
        /// A command that may not be sent to the secure element.
        case commandNotSupported
        /// No connection to the service that installs credentials.
        case network
        /// The secure element or its service is taken. From wired mode and card emulation the session goes to management.
        case resourceUnavailable
        /// The secure element has no room.
        case insufficientSpace
        /// The presentment intent assertion ended by itself.
        case presentmentIntentAssertionTimeout
        /// This device cannot do that.
        case featureUnavailable
        /// The device or its user cannot use the service.
        case ineligible
        /// The transaction has no scene to show the sheet over.
        case invalidView
        /// The secure element was taken away during the call. The session is in management.
        case acquiredResourceRelinquished
        /// The account or the passcode do not meet the conditions.
        case conditionsNotSatisfied
        /// An argument has a value that cannot be used.
        case invalidInput
        /// A fault inside the service.
        case internalError
        /// The product configuration is unknown.
        case invalidProductConfigID

        /// The case's name.
        public var failureReason: String? { name }

        /// The case's name: `invalidSessionState`.
        public var name: String { String(describing: self) }
    }
}
