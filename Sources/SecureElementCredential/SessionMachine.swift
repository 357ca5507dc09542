// SPDX-License-Identifier: MIT

/// The states of a session and the times at which it leaves them by itself. It knows no element and no clock: what
/// happens comes in with its time.
struct SessionMachine: Sendable {
    typealias Credential = CredentialSession.Credential

    /// What happens by itself.
    enum Expiry: Sendable, Equatable {
        /// L1, in seconds since the last exchange.
        case idle
        /// L4.
        case cardEmulation
        /// L2 or L3.
        case background
    }

    private(set) var state = CredentialSession.State.management
    /// Whether card emulation was entered from wired mode with `performCardEmulationTransactionWithCurrentCredential`.
    private(set) var emulationContinuesWired = false
    /// When the time of the state began to run: entry, and in wired mode the end of the last exchange.
    private(set) var since: Int64 = 0
    private var isExchanging = false
    private var background: Background?

    private struct Background: Sendable {
        var since: Int64
        /// A `transceive` ran at some time of it: the longer grace holds.
        var hasGrace: Bool
    }

    mutating func enter(_ state: CredentialSession.State, at now: Int64, continuesWired: Bool = false) {
        self.state = state
        since = now
        emulationContinuesWired = continuesWired
        isExchanging = false
    }

    /// The clock of L1 stands while an exchange runs and begins again when it ends (L1a).
    mutating func exchangeBegins() {
        isExchanging = true
        background?.hasGrace = true
    }

    mutating func exchangeEnds(at now: Int64) {
        isExchanging = false
        since = now
        // The exchange was what held off the end.
        background?.hasGrace = false
    }

    mutating func enterBackground(at now: Int64) {
        if background == nil { background = Background(since: now, hasGrace: isExchanging) }
    }

    mutating func enterForeground() { background = nil }

    /// When the next thing happens by itself.
    func nextDeadline(_ limits: CredentialRules.Limits) -> (at: Int64, what: Expiry)? {
        var found: (at: Int64, what: Expiry)?
        func consider(_ start: Int64, _ limit: Duration, _ what: Expiry) {
            let (sum, overflow) = start.addingReportingOverflow(limit.nanoseconds)
            let at = overflow ? Int64.max : sum
            if at < found?.at ?? .max { found = (at, what) }
        }
        if let background {
            consider(background.since, background.hasGrace ? limits.backgroundGrace : limits.backgroundDelay, .background)
        }
        switch state {
        case .wired where !isExchanging: consider(since, limits.wiredIdle, .idle)
        case .cardEmulation: consider(since, limits.cardEmulation, .cardEmulation)
        case .wired, .management: break
        case .invalid: return nil
        }
        return found
    }

    /// Whether an exchange is on its way.
    var isBusy: Bool { isExchanging }
}
