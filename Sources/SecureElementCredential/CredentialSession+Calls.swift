// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import Synchronization

extension CredentialSession {
    /// Runs one call: guards it, writes it down, lets it through after the calls before it, and cleans up behind it.
    func perform<Value: Sendable>(
        _ function: String, _ arguments: [CredentialArgument] = [], isForExtensions: Bool = false,
        results: (Value) -> [CredentialArgument] = { _ in [] },
        _ body: (Link) async throws(ErrorCode) -> Value
    ) async throws(ErrorCode) -> Value {
        let call = link?.observer?.began(function, arguments)
        let outcome = await outcome(call, function, isForExtensions: isForExtensions, body)
        if let call { link?.observer?.ended(call, outcome.map(results)) }
        return try outcome.get()
    }

    private func outcome<Value: Sendable>(
        _ call: Int?, _ function: String, isForExtensions: Bool, _ body: (Link) async throws(ErrorCode) -> Value
    ) async -> Result<Value, ErrorCode> {
        guard let link else { return .failure(.sessionInvalidated) }
        let policy = link.device.policy
        if policy.isAppExtension, !isForExtensions {
            policy.trap("\(function) may not be called from an app extension")
            return .failure(.ineligible)
        }
        if machine.state == .invalid { return .failure(.sessionInvalidated) }
        await link.device.lane.enter()
        holdsLane = true
        currentCall = call
        expire()
        await cleanUp(link)
        var outcome: Result<Value, ErrorCode>
        if machine.state == .invalid {
            outcome = .failure(.sessionInvalidated)
        } else {
            do throws(ErrorCode) { outcome = .success(try await body(link)) } catch { outcome = .failure(error) }
            // The session ended under a call that was on its way (row T55).
            if machine.state == .invalid { outcome = .failure(.acquiredResourceRelinquished) }
        }
        expire()
        await cleanUp(link)
        currentCall = nil
        holdsLane = false
        await link.device.lane.leave()
        await withdrawCard(link)
        setAlarm()
        return outcome
    }

    /// Asks the element, and makes its error the session's.
    func element<Value: Sendable>(
        _ link: Link, _ body: (any SecureElement) async throws(SecureElementError) -> Value
    ) async throws(ErrorCode) -> Value {
        do throws(SecureElementError) { return try await body(link.device.element) } catch {
            throw error.errorCode(link.device.rules)
        }
    }

    /// Rule G7: these three end wired mode and card emulation; other errors leave the state, unless the rules say otherwise (G8).
    func leadToManagement<Value: Sendable>(
        afterAnyError: Bool = false, _ body: () async throws(ErrorCode) -> Value
    ) async throws(ErrorCode) -> Value {
        do throws(ErrorCode) { return try await body() } catch {
            switch error {
            case .resourceUnavailable, .acquiredResourceRelinquished, .userCanceledAuthorization, .userAuthorizationTimedOut:
                enterManagement()
            default:
                if afterAnyError, machine.state != .invalid { enterManagement() }
            }
            throw error
        }
    }

    // MARK: - States

    func enter(_ state: State, continuesWired: Bool = false) {
        let before = machine.state
        guard before != .invalid else { return }
        machine.enter(state, at: link?.now ?? machine.since, continuesWired: continuesWired)
        if before != state { link?.observer?.changed(from: before, to: state, call: currentCall) }
        setAlarm()
    }

    /// Goes to management from wherever the session is; what must be done at the element is done before the lane is left.
    func enterManagement() {
        leaveMode()
        if machine.state != .management { enter(.management) }
    }

    /// What leaving wired mode or card emulation asks of the element.
    func leaveMode() {
        switch machine.state {
        case .wired: cleanups.append(.deselect)
        case .cardEmulation(let credential):
            cleanups.append(.deactivate(credential.contactlessNames))
            withdrawsCard = true
            emulated = nil
            link?.device.shared.withLock { $0.presentsInternally = false }
        case .management, .invalid: break
        }
    }

    /// Ends the session: the event, the end of the stream, and the element's release.
    func end(_ reason: ErrorCode, call: Int?) async {
        guard let link, machine.state != .invalid else { return }
        finish(reason, call: call)
        await cleanUpInLane(link)
    }

    /// What ending is before the element hears of it.
    func finish(_ reason: ErrorCode, call: Int?) {
        guard let link, machine.state != .invalid else { return }
        leaveMode()
        if let now = link.now { link.device.shared.withLock { $0.ledger.endAny(now: now) } }
        let before = machine.state
        machine.enter(.invalid, at: machine.since)
        alarm?.cancel()
        cleanups.append(.close)
        link.observer?.changed(from: before, to: .invalid, call: call)
        tell(.sessionInvalidated(reason: reason), [.init("reason", .text(reason.name))], call: call)
        events.finish()
    }

    /// Puts an event on the stream.
    func tell(_ event: Event, _ detail: [CredentialArgument] = [], call: Int? = nil) {
        events.yield(event)
        link?.observer?.happened(event.name, detail, call: call)
    }

    // MARK: - Time

    /// Does what time has brought: deadlines that are past, in their order.
    func expire() {
        guard let link, machine.state != .invalid else { return }
        guard let now = link.now else { return finish(.internalError, call: nil) }
        let limits = link.device.rules.limits
        while machine.state != .invalid {
            let own = machine.nextDeadline(limits)
            let assertion = link.device.shared.withLock { $0.ledger.held?.deadline }
            if let assertion, assertion <= now, assertion <= own?.at ?? .max {
                guard link.device.shared.withLock({ $0.ledger.expire(now: now) }) else { return }
                tell(.presentmentIntentAssertionTimeout, [.init("elapsed", seconds(limits.assertion))])
                continue
            }
            guard let own, own.at <= now else { return }
            switch own.what {
            case .idle:
                link.observer?.happened("idleTimeout", [.init("elapsed", seconds(limits.wiredIdle))], call: nil)
                finish(.acquiredResourceRelinquished, call: nil)
            case .background:
                link.observer?.happened("enteredBackground", [], call: nil)
                finish(.clientNotInForeground, call: nil)
            case .cardEmulation:
                // An assertion that outlived the emulation ends with it (section 2.5).
                link.device.shared.withLock { $0.ledger.endAny(now: own.at) }
                leaveMode()
                tell(.cardEmulationTimeout, [.init("elapsed", seconds(limits.cardEmulation))])
                let before = machine.state
                machine.enter(.management, at: own.at)
                link.observer?.changed(from: before, to: .management, call: nil)
            }
        }
    }

    private func seconds(_ duration: Duration) -> CredentialArgument.Value { .number(Int(clamping: duration.components.seconds)) }

    /// Brings the session to the present time, the element too.
    func settle() async {
        expire()
        guard let link else { return }
        await cleanUpInLane(link)
        setAlarm()
    }

    /// Sets the one alarm to the next deadline.
    func setAlarm() {
        alarm?.cancel()
        alarm = nil
        guard let link, machine.state != .invalid else { return }
        let own = machine.nextDeadline(link.device.rules.limits)?.at
        let assertion = link.device.shared.withLock { $0.ledger.held?.deadline }
        guard let next = [own, assertion].compactMap({ $0 }).min() else { return }
        alarm = link.device.clock.wake(at: next, in: link.environment) { [weak self] in await self?.settle() }
    }

    // MARK: - Cleaning up

    /// Does what is left to do at the element, unless the call that holds the lane will.
    private func cleanUpInLane(_ link: Link) async {
        if !holdsLane, !cleanups.isEmpty || withdrawsCard {
            await link.device.lane.enter()
            holdsLane = true
            await cleanUp(link)
            holdsLane = false
            await link.device.lane.leave()
        }
        if !holdsLane { await withdrawCard(link) }
    }

    /// With the lane held. Errors here have nobody to go to: the state has changed already.
    func cleanUp(_ link: Link) async {
        while !cleanups.isEmpty {
            switch cleanups.removeFirst() {
            case .deselect: try? await link.device.element.deselect()
            case .deactivate(let instances): try? await link.device.element.deactivateContactless(instances: instances)
            case .close:
                while let identifier = link.device.takeDueInstallation() {
                    _ = try? await link.device.element.install(identifier)
                }
                await link.device.element.close()
                link.device.release(link.number)
            }
        }
        // Installing selects security domains: it waits until nobody talks to a credential.
        while case .management = machine.state, let identifier = link.device.takeDueInstallation() {
            await install(identifier, link)
        }
    }

    private func install(_ identifier: UUID, _ link: Link) async {
        guard let credential = try? await link.device.element.install(identifier), credential.installation == .installed else {
            // A failed installation is told by the next list alone.
            return
        }
        let snapshot = credential.snapshot(device: link.device)
        if machine.state != .invalid { tell(.credentialFinishedInstalling(credential: snapshot), snapshot.arguments) }
    }

    /// Without the lane: the reader's thread may be waiting for it with a command.
    func withdrawCard(_ link: Link) async {
        guard withdrawsCard else { return }
        withdrawsCard = false
        link.observer?.contactlessCard(isPresent: false, atr: [])
        await link.device.host?.withdraw()
    }

    func installWhatIsDue() async {
        guard let link, !holdsLane else { return }
        await link.device.lane.enter()
        holdsLane = true
        await cleanUp(link)
        holdsLane = false
        await link.device.lane.leave()
    }

    // MARK: - The world outside

    func appWentToBackground() async {
        guard let link, let now = link.now else { return }
        machine.enterBackground(at: now)
        await settle()
    }

    func appCameToFront() async {
        await settle()
        machine.enterForeground()
        setAlarm()
    }

    func elementFailed(_ reason: ErrorCode) async {
        await settle()
        guard machine.state != .invalid else { return }
        link?.observer?.happened("backendError", [.init("reason", .text(reason.name))], call: nil)
        await end(reason, call: nil)
    }
}
