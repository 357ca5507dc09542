// SPDX-License-Identifier: MIT

import Glibc

/// What the system around an app says of it: entitlements, eligibility, and what the person decided earlier.
public struct CredentialPolicy: Sendable {
    /// `com.apple.developer.secure-element-credential`. Without it every call traps; see ``trap``.
    public var hasEntitlement = true
    /// `com.apple.developer.secure-element-credential.default-contactless-app`.
    public var hasDefaultContactlessAppEntitlement = true
    /// Whether the caller is an app extension: then calls that only apps may make trap.
    public var isAppExtension = false
    /// Whether that extension provides identity documents: it then sees government credentials alone.
    public var isIdentityProvider = false
    /// Whether device and user may use the service.
    public var isEligible = true
    /// Whether account and passcode are as they must be.
    public var meetsConditions = true
    /// Whether the service that installs credentials can be reached.
    public var isOnline = true
    /// Who the app is to credentials that have owners.
    public var application = "app"
    /// What the person answered to the first-use alert; nil before it was shown.
    public var mayUseSecureElement: Bool?
    /// What is done where the framework ends the process. When it returns, the call throws `ineligible`.
    public var trap: @Sendable (_ reason: String) -> Void

    /// - Parameter trap: ends the process with the reason on standard error when nil.
    public init(trap: (@Sendable (_ reason: String) -> Void)? = nil) {
        self.trap =
            trap ?? { reason in
                let line = "SecureElementCredential: \(reason)\n"
                _ = line.withCString { write(STDERR_FILENO, $0, strlen($0)) }
                abort()
            }
    }
}
