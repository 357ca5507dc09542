// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import Synchronization

/// What stands around sessions: the secure element, the person, the system's policy, the rules, and what one app's
/// sessions share: who is active, which assertions were held when, which installations go on.
///
/// `CredentialSession.startSession()` uses the device of its task:
///
/// ```swift
/// let device = CredentialDevice(element: element)
/// try await device.run {
///     let session = try await CredentialSession.startSession()
/// }
/// ```
public final class CredentialDevice: Sendable {
    /// The secure element below.
    public let element: any SecureElement
    /// The person.
    public let authorizer: any Authorizer
    /// How the open points of the framework's pages are settled.
    public let rules: CredentialRules
    package let clock: any CredentialClock
    /// From a provisioning to its installation: what a server takes to send it.
    package let installationDelay: Duration
    let host: (any EmulationHost)?
    let lane = Lane()
    let shared: Mutex<Shared>

    struct Shared {
        var policy: CredentialPolicy
        /// The number of the active session; nil when there is none.
        var active: Int?
        var session = WeakSession()
        var nextSession = 1
        var isForeground = true
        var isFieldPresent = false
        /// Another app or the system presents a credential.
        var isOtherPresenting = false
        /// A transaction of the active session presents.
        var presentsInternally = false
        var ledger = AssertionLedger()
        /// Installations that have an alarm, and those whose time has come.
        var scheduled: [UUID: ClockAlarm] = [:]
        var due: [UUID] = []
        var billableEvents = 0
        var scene: SceneLink?
    }

    struct WeakSession {
        weak var session: CredentialSession?
    }

    /// - Parameters:
    ///   - element: the secure element below.
    ///   - authorizer: the person; someone who allows everything when not given.
    ///   - host: where the emulated card appears; nowhere when nil.
    public convenience init(
        element: any SecureElement, authorizer: any Authorizer = FixedAuthorizer(), rules: CredentialRules = .ios27_1,
        policy: CredentialPolicy = CredentialPolicy(), host: (any EmulationHost)? = nil
    ) {
        self.init(
            element: element, authorizer: authorizer, rules: rules, policy: policy, host: host,
            clock: EnvironmentCredentialClock(), installationDelay: .seconds(1)
        )
    }

    package init(
        element: any SecureElement, authorizer: any Authorizer, rules: CredentialRules, policy: CredentialPolicy,
        host: (any EmulationHost)?, clock: any CredentialClock, installationDelay: Duration
    ) {
        self.element = element
        self.authorizer = authorizer
        self.rules = rules
        self.host = host
        self.clock = clock
        self.installationDelay = installationDelay
        shared = Mutex(Shared(policy: policy))
    }

    @TaskLocal private static var local: CredentialDevice?

    /// The device of the current task; without one no session can be started.
    public static var current: CredentialDevice? { local }

    /// Runs `operation`, and the child tasks it starts, on this device.
    public func run<Result>(
        isolation: isolated (any Actor)? = #isolation, _ operation: () async throws -> Result
    ) async rethrows -> Result {
        try await Self.$local.withValue(self, operation: operation, isolation: isolation)
    }

    // MARK: - What happens around the app

    /// What the system says of the app; may change at any time.
    public var policy: CredentialPolicy {
        get { shared.withLock { $0.policy } }
        set { shared.withLock { $0.policy = newValue } }
    }

    /// How many times a credential was activated for a reader: each may cost the credential's provider.
    public var billableEvents: Int { shared.withLock { $0.billableEvents } }

    /// Whether another app, or the system itself, presents a credential now.
    public var isOtherPresenting: Bool {
        get { shared.withLock { $0.isOtherPresenting } }
        set { shared.withLock { $0.isOtherPresenting = newValue } }
    }

    /// The app goes to the background: an active session ends after a short delay (limits L2 and L3).
    public func enterBackground() async {
        let session = shared.withLock { shared in
            shared.isForeground = false
            return shared.session.session
        }
        await session?.appWentToBackground()
    }

    /// The app comes to the front.
    public func enterForeground() async {
        let session = shared.withLock { shared in
            shared.isForeground = true
            return shared.session.session
        }
        await session?.appCameToFront()
    }

    /// The secure element failed outside a call: an active session ends.
    public func elementFailed(_ reason: CredentialSession.ErrorCode) async {
        await shared.withLock { $0.session.session }?.elementFailed(reason)
    }

    /// A reader's field came or went. An active session in card emulation tells of it; without one, the default contactless
    /// app's scene does.
    public func readerField(isPresent: Bool) async {
        let (session, changed) = shared.withLock { shared in
            defer { shared.isFieldPresent = isPresent }
            return (shared.session.session, shared.isFieldPresent != isPresent)
        }
        guard changed else { return }
        await session?.fieldChanged(isPresent: isPresent)
        if isPresent { await sceneEvent(.readerDetected) }
    }

    // MARK: - Installations

    func scheduleInstallation(_ identifier: UUID, at time: Int64, in environment: CardEnvironment) {
        let alarm = clock.wake(at: time, in: environment) { [weak self] in await self?.installationIsDue(identifier) }
        shared.withLock { $0.scheduled[identifier] = alarm }
    }

    func isScheduled(_ identifier: UUID) -> Bool {
        shared.withLock { $0.scheduled[identifier] != nil || $0.due.contains(identifier) }
    }

    func cancelInstallation(_ identifier: UUID) {
        let alarm = shared.withLock { shared in
            shared.due.removeAll { $0 == identifier }
            return shared.scheduled.removeValue(forKey: identifier)
        }
        alarm?.cancel()
    }

    private func installationIsDue(_ identifier: UUID) async {
        let session = shared.withLock { shared -> CredentialSession? in
            guard shared.scheduled.removeValue(forKey: identifier) != nil else { return nil }
            shared.due.append(identifier)
            return shared.session.session
        }
        if let session {
            await session.installWhatIsDue()
        } else {
            await installWithoutSession()
        }
    }

    /// The next installation whose time has come, taken off the list.
    func takeDueInstallation() -> UUID? {
        shared.withLock { $0.due.isEmpty ? nil : $0.due.removeFirst() }
    }

    /// An installation goes on when the session that asked for it has ended.
    private func installWithoutSession() async {
        await lane.enter()
        if shared.withLock({ $0.active == nil && !$0.due.isEmpty }), (try? await element.open()) != nil {
            while let identifier = takeDueInstallation() { _ = try? await element.install(identifier) }
            await element.close()
        }
        await lane.leave()
    }

    // MARK: - Sessions

    /// Makes room for a session.
    ///
    /// - Returns: its number; nil while another one is active.
    func claim() -> Int? {
        shared.withLock { shared in
            guard shared.active == nil else { return nil }
            let number = shared.nextSession
            shared.nextSession &+= 1
            shared.active = number
            return number
        }
    }

    func adopt(_ session: CredentialSession, number: Int) {
        shared.withLock { shared in
            if shared.active == number { shared.session = WeakSession(session: session) }
        }
    }

    /// The session with this number is no more.
    func release(_ number: Int) {
        shared.withLock { shared in
            guard shared.active == number else { return }
            shared.active = nil
            shared.session = WeakSession()
            shared.presentsInternally = false
        }
    }

    /// Closes after a session whose last reference went.
    func abandon(_ number: Int, at now: Int64?) async {
        shared.withLock { shared in
            if let now { shared.ledger.endAny(now: now) }
        }
        await host?.withdraw()
        await lane.enter()
        while let identifier = takeDueInstallation() { _ = try? await element.install(identifier) }
        await element.close()
        await lane.leave()
        release(number)
    }

    func counter(ofSecurityDomain aid: [UInt8]) async throws(CredentialSession.ErrorCode) -> Int {
        let session = shared.withLock { $0.session.session }
        if let session {
            let state = await session.state
            guard state == .management || state == .invalid else { throw .invalidSessionState }
        }
        await lane.enter()
        let result: Result<Int?, SecureElementError>
        do { result = .success(try await element.counter(ofSecurityDomain: aid)) } catch { result = .failure(error) }
        await lane.leave()
        switch result {
        case .success(let counter?): return counter
        case .success(nil): throw .featureUnavailable
        case .failure(let error): throw error.errorCode(rules)
        }
    }
}
