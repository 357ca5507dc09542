// SPDX-License-Identifier: MIT

/// What the framework's pages leave open or tell differently in different releases, as switches with names.
///
/// ``init(named:)`` sets them together by an SDK's release.
public struct CredentialRules: Sendable, Equatable {
    /// The rules' name: `ios27.1`.
    public var name: String
    /// Times and counts: limits L1 to L7.
    public var limits: Limits
    /// Whether *any* error of `performWiredTransaction` and `performCardEmulationTransactionWithCurrentCredential` leads to
    /// management, as the comments of SDK 26.1 say; else `resourceUnavailable`, `acquiredResourceRelinquished` and
    /// `userCanceledAuthorization` alone do (rules G7, G8).
    public var anyErrorLeadsToManagement: Bool
    /// Whether a sheet that times out throws `userAuthorizationTimedOut`, which ended with 27.0; else
    /// `userCanceledAuthorization`.
    public var sheetTimeoutHasItsOwnError: Bool
    /// Whether an unknown configuration throws `invalidProductConfigID`, which came with 27.0; else `invalidInput`.
    public var hasInvalidProductConfigID: Bool
    /// Whether `performTransaction` may start from wired mode (row T40).
    public var performTransactionStartsFromWired: Bool
    /// Whether `endWiredMode` ends a card emulation that was entered from wired mode (row T48).
    public var endWiredModeEndsEmulation: Bool
    /// Whether a caller who still holds an assertion is refused a transaction; else the assertion ends and the transaction's
    /// own takes over (section 2.5 of the rules).
    public var heldAssertionRefusesTransaction: Bool

    /// Times and counts.
    public struct Limits: Sendable, Equatable {
        /// L1: wired mode without `transceive`.
        public var wiredIdle = Duration.seconds(15)
        /// L2: how long a running `transceive` holds off the end that the background brings.
        public var backgroundGrace = Duration.seconds(15)
        /// L3: from the background to the session's end. The pages name no number.
        public var backgroundDelay = Duration.seconds(2)
        /// L4: card emulation.
        public var cardEmulation = Duration.seconds(60)
        /// L5: a presentment intent assertion.
        public var assertion = Duration.seconds(60)
        /// L6: from the end of an assertion to the next.
        public var assertionGap = Duration.seconds(15)
        /// L7: at most so many assertions in ``assertionSpan``.
        public var assertionsInSpan = 2
        /// The sliding span of L7, from acquisition to acquisition.
        public var assertionSpan = Duration.seconds(80)

        /// The limits of SDK 27.1.
        public init() {}
    }

    /// The rules of SDK 27.1: the default.
    public static let ios27_1 = CredentialRules(
        name: "ios27.1", limits: Limits(), anyErrorLeadsToManagement: false, sheetTimeoutHasItsOwnError: false,
        hasInvalidProductConfigID: true
    )

    /// The rules of SDK 26.1.
    public static let ios26_1: CredentialRules = {
        var limits = Limits()
        limits.assertion = .seconds(15)
        return CredentialRules(
            name: "ios26.1", limits: limits, anyErrorLeadsToManagement: true, sheetTimeoutHasItsOwnError: true,
            hasInvalidProductConfigID: false
        )
    }()

    /// Every release that has rules of its own, oldest first.
    public static let all = [ios26_1, ios27_1]

    /// - Returns: nil when there are no rules of this name.
    public init?(named name: String) {
        guard let rules = Self.all.first(where: { $0.name == name }) else { return nil }
        self = rules
    }

    private init(
        name: String, limits: Limits, anyErrorLeadsToManagement: Bool, sheetTimeoutHasItsOwnError: Bool,
        hasInvalidProductConfigID: Bool
    ) {
        self.name = name
        self.limits = limits
        self.anyErrorLeadsToManagement = anyErrorLeadsToManagement
        self.sheetTimeoutHasItsOwnError = sheetTimeoutHasItsOwnError
        self.hasInvalidProductConfigID = hasInvalidProductConfigID
        performTransactionStartsFromWired = true
        endWiredModeEndsEmulation = false
        heldAssertionRefusesTransaction = false
    }
}

extension Duration {
    /// Whole nanoseconds, at the ends of the range where there are more.
    package var nanoseconds: Int64 {
        let (seconds, overflow) = components.seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return components.seconds < 0 ? .min : .max }
        let (sum, more) = seconds.addingReportingOverflow(components.attoseconds / 1_000_000_000)
        return more ? .max : sum
    }
}
