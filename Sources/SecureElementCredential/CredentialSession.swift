// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import Synchronization

/// Actions on the credentials of a secure element.
///
/// A session begins in ``State/management``. In wired mode the app talks to a credential's applets; in card emulation a
/// contactless reader does. One session may be active at a time; it ends when it is invalidated, when the app is in the
/// background, after fifteen idle seconds of wired mode, and with its last reference. Calls run one after another.
public actor CredentialSession: Equatable {
    /// What a session keeps from its start.
    struct Link: Sendable {
        let device: CredentialDevice
        let environment: CardEnvironment
        let observer: (any CredentialObserver)?
        let number: Int

        /// Nil when the environment has no time to give.
        var now: Int64? { try? device.clock.now(in: environment) }
    }

    /// What is still to be done at the element after a change of state.
    enum Cleanup: Sendable {
        case deselect
        case deactivate([[UInt8]])
        case close
    }

    /// Nil for the empty object.
    let link: Link?
    let stream: AsyncStream<Event>
    let events: AsyncStream<Event>.Continuation
    var machine = SessionMachine()
    var alarm: ClockAlarm?
    var cleanups: [Cleanup] = []
    var withdrawsCard = false
    /// A call of this session holds the device's lane.
    var holdsLane = false
    var currentCall: Int?
    /// The card that readers meet, as long as card emulation lasts.
    var emulated: EmulatedCard?

    /// An empty object that cannot be used: ``startSession()`` gives a session.
    public init() {
        link = nil
        (stream, events) = AsyncStream.makeStream(of: Event.self)
        machine.enter(.invalid, at: 0)
        events.finish()
    }

    init(_ link: Link, at now: Int64) {
        self.link = link
        (stream, events) = AsyncStream.makeStream(of: Event.self)
        machine.enter(.management, at: now)
    }

    deinit {
        alarm?.cancel()
        guard let link, machine.state != .invalid else { return }
        events.yield(.sessionInvalidated(reason: .sessionInvalidated))
        events.finish()
        link.observer?.changed(from: machine.state, to: .invalid, call: nil)
        Task { await link.device.abandon(link.number, at: link.now) }
    }

    public static func == (lhs: CredentialSession, rhs: CredentialSession) -> Bool { lhs === rhs }

    // MARK: - Start and end

    /// Starts a session on the device of the current task.
    ///
    /// - Throws: ``ErrorCode``: `ineligible` without a device or where the user may not use it, `conditionsNotSatisfied` for the
    ///   account or passcode, `clientNotInForeground`, `resourceUnavailable` while another session is active or the element
    ///   is taken, `accessDenied` when the person said no.
    public static func startSession() async throws -> CredentialSession {
        let observer = CredentialObservation.current?.observer
        let call = observer?.began("startSession()", [])
        do throws(ErrorCode) {
            let session = try await started(observer)
            if let call {
                observer?.changed(from: .invalid, to: .management, call: call)
                observer?.ended(call, .success([]))
            }
            return session
        } catch {
            if let call { observer?.ended(call, .failure(error)) }
            throw error
        }
    }

    private static func started(_ observer: (any CredentialObserver)?) async throws(ErrorCode) -> CredentialSession {
        guard let device = CredentialDevice.current else { throw .ineligible }
        let policy = device.policy
        guard policy.hasEntitlement else {
            policy.trap("the app lacks the entitlement com.apple.developer.secure-element-credential")
            throw .ineligible
        }
        guard policy.isEligible else { throw .ineligible }
        guard policy.meetsConditions else { throw .conditionsNotSatisfied }
        guard device.shared.withLock({ $0.isForeground }) else { throw .clientNotInForeground }
        guard let number = device.claim() else { throw .resourceUnavailable }
        let link = Link(device: device, environment: .current, observer: observer, number: number)
        do throws(ErrorCode) {
            try await askForConsent(device)
            await device.lane.enter()
            let opened: Result<Void, SecureElementError>
            do { opened = .success(try await device.element.open()) } catch { opened = .failure(error) }
            await device.lane.leave()
            if case .failure(let error) = opened { throw error.errorCode(device.rules) }
            guard let now = link.now else { throw .internalError }
            let session = CredentialSession(link, at: now)
            device.adopt(session, number: number)
            // What another process began goes on.
            for identifier in await device.element.pendingCredentials() where !device.isScheduled(identifier) {
                device.scheduleInstallation(
                    identifier, at: now &+ device.installationDelay.nanoseconds, in: link.environment)
            }
            return session
        } catch {
            device.release(number)
            throw error
        }
    }

    private static func askForConsent(_ device: CredentialDevice) async throws(ErrorCode) {
        let policy = device.policy
        if let known = policy.mayUseSecureElement {
            if !known { throw .accessDenied }
            return
        }
        let allows = await device.authorizer.allowsUse(by: policy.application)
        device.shared.withLock { $0.policy.mayUseSecureElement = allows }
        if !allows { throw .accessDenied }
    }

    /// Whether a session could be started on this device by this user.
    public static var isEligible: Bool {
        get async throws {
            let observer = CredentialObservation.current?.observer
            let call = observer?.began("isEligible", [])
            let answer = CredentialDevice.current?.policy.isEligible ?? false
            if let call { observer?.ended(call, .success([CredentialArgument("result", .flag(answer))])) }
            return answer
        }
    }

    /// Ends the session. On one that has ended nothing happens.
    public func invalidate() async throws {
        let call = link?.observer?.began("invalidate()", [])
        await end(.sessionInvalidated, call: call)
        if let call { link?.observer?.ended(call, .success([])) }
    }

    /// The state now.
    public var state: State {
        get async {
            await settle()
            return machine.state
        }
    }

    /// What happens in the session, from its start: the same stream each time. Events wait in it until they are read.
    public var eventStream: AsyncStream<Event> {
        get async { stream }
    }

    /// What the secure element is.
    ///
    /// - Throws: ``ErrorCode``: `featureUnavailable` where it does not tell.
    public var secureElementInfo: SecureElementInfo {
        get async throws {
            try await perform("secureElementInfo", results: Self.described) { link throws(ErrorCode) in
                guard case .management = machine.state else { throw .invalidSessionState }
                guard
                    let info = try await self.element(
                        link,
                        { element throws(SecureElementError) in
                            try await element.information()
                        })
                else { throw .featureUnavailable }
                return info
            }
        }
    }

    private static func described(_ info: SecureElementInfo) -> [CredentialArgument] {
        [.init("hardwareReleaseVersionInfo", .text(info.hardwareReleaseVersionInfo))]
    }
}
