// SPDX-License-Identifier: MIT

public import FoundationEssentials
import Synchronization

/// Calls that ask the person first, over a scene.
extension CredentialSession {
    /// Asks the person and presents the credential to contactless readers, for at most a minute.
    ///
    /// - Throws: ``ErrorCode``: `invalidSessionState` in card emulation, `credentialDoesNotExist`, `invalidCredentialState`,
    ///   `invalidView`, `clientNotInForeground`, `accessDenied` when the person said no; `userCanceledAuthorization` when
    ///   the sheet was dismissed and `resourceUnavailable`, after both of which the session is in management.
    public func performTransaction(
        using credential: Credential, over scene: any PresentationContext, options: CardEmulationOptions = .init()
    ) async throws {
        try await perform("performTransaction(using:over:options:)", Self.naming(credential)) { link throws(ErrorCode) in
            switch machine.state {
            case .management: break
            case .wired where link.device.rules.performTransactionStartsFromWired: break
            default: throw .invalidSessionState
            }
            try await leadToManagement { () async throws(ErrorCode) in
                let known = try await installed(credential, link)
                try await emulate(known, over: scene, link, continuesWired: false)
            }
        }
    }

    /// Presents the credential of wired mode to contactless readers, after asking the person. What its applets hold in memory
    /// that a reset clears stays.
    ///
    /// - Throws: ``ErrorCode``: `invalidSessionState` outside wired mode; else as
    ///   ``performTransaction(using:over:options:)``.
    public func performCardEmulationTransactionWithCurrentCredential(
        over scene: any PresentationContext, options: CardEmulationOptions = .init()
    ) async throws {
        try await perform("performCardEmulationTransactionWithCurrentCredential(over:options:)") { link throws(ErrorCode) in
            guard case .wired(let credential) = machine.state else { throw .invalidSessionState }
            try await leadToManagement(afterAnyError: link.device.rules.anyErrorLeadsToManagement) { () async throws(ErrorCode) in
                try await emulate(credential, over: scene, link, continuesWired: true)
            }
        }
    }

    /// Ends card emulation.
    ///
    /// - Throws: ``ErrorCode``: `invalidSessionState` outside card emulation.
    public func endCardEmulation() async throws {
        try await perform("endCardEmulation()") { _ throws(ErrorCode) in
            guard case .cardEmulation = machine.state else { throw .invalidSessionState }
            enterManagement()
        }
    }

    /// Asks the person, hands the authorisation to an instance and enters wired mode, from any state.
    ///
    /// - Parameter instanceAID: a standalone instance or the head of a group.
    /// - Throws: ``ErrorCode``: as ``performTransaction(using:over:options:)``, and `instanceDoesNotExist`.
    public func performWiredTransaction(
        using credential: Credential, over scene: any PresentationContext, instanceAID: Data
    ) async throws {
        try await wiredTransaction(
            "performWiredTransaction(using:over:instanceAID:)", credential, scene, instanceAID, isUIKit: true)
    }

    func wiredTransaction(
        _ function: String, _ credential: Credential, _ scene: any PresentationContext, _ instanceAID: Data, isUIKit: Bool
    ) async throws(ErrorCode) {
        let arguments = Self.naming(credential) + [.init("instanceAID", .octets(Array(instanceAID)))]
        try await perform(function, arguments, isForExtensions: true) { link throws(ErrorCode) in
            let afterAnyError = isUIKit && link.device.rules.anyErrorLeadsToManagement
            try await leadToManagement(afterAnyError: afterAnyError) { () async throws(ErrorCode) in
                let known = try await installed(credential, link)
                guard let instance = known.instances.first(where: { $0.instanceAID == instanceAID }),
                    instance.instanceType != .groupApplication
                else { throw .instanceDoesNotExist }
                try await authorize(known, .wired(instanceAID: instanceAID), over: scene, link)
                let authorized = Self.authorizedInstances(instance, of: known)
                try await self.element(link) { element throws(SecureElementError) in
                    try await element.authorize(instances: authorized)
                }
                try await becomeWired(known, selecting: instance, link)
                link.device.shared.withLock { $0.ledger.endAny(now: machine.since) }
            }
        }
    }

    /// A head's authorisation goes to all members of its group.
    private static func authorizedInstances(_ instance: Credential.InstanceInfo, of credential: Credential) -> [[UInt8]] {
        let members =
            instance.instanceType == .headApplication
            ? credential.instances.filter { $0.instanceType == .groupApplication } : []
        return ([instance] + members).map { Array($0.instanceAID) }
    }

    /// Guards in the order of rule G9, then the sheet.
    private func authorize(
        _ credential: Credential, _ purpose: AuthorizationRequest.Purpose, over scene: any PresentationContext, _ link: Link
    ) async throws(ErrorCode) {
        guard scene.isValid else { throw .invalidView }
        let (isForeground, isTaken, holdsOwn) = link.device.shared.withLock {
            ($0.isForeground, $0.isOtherPresenting, $0.ledger.held != nil)
        }
        guard isForeground else { throw .clientNotInForeground }
        if isTaken || holdsOwn && link.device.rules.heldAssertionRefusesTransaction { throw .resourceUnavailable }
        let request = AuthorizationRequest(credential: credential, purpose: purpose)
        let answer = await link.device.authorizer.authorize(request, over: scene)
        // Time passed while the sheet was there.
        expire()
        guard machine.state != .invalid else { throw .sessionInvalidated }
        switch answer {
        case .allow: return
        case .decline: throw .accessDenied
        case .dismiss: throw .userCanceledAuthorization
        case .timeOut:
            throw link.device.rules.sheetTimeoutHasItsOwnError ? .userAuthorizationTimedOut : .userCanceledAuthorization
        }
    }

    /// The documented order: the person, deselection on the wired interface, the broker, the contactless interface, the state.
    private func emulate(
        _ credential: Credential, over scene: any PresentationContext, _ link: Link, continuesWired: Bool
    ) async throws(ErrorCode) {
        try await authorize(credential, .cardEmulation, over: scene, link)
        let instances = credential.instances.map { Array($0.instanceAID) }
        let wasWired = if case .wired = machine.state { true } else { false }
        try await self.element(link) { element throws(SecureElementError) in
            if wasWired { try await element.deselect() }
            try await element.authorize(instances: instances)
            try await element.activateContactless(instances: credential.contactlessNames)
        }
        guard machine.state != .invalid, let now = link.now else { throw .acquiredResourceRelinquished }
        let isFieldPresent = link.device.shared.withLock { shared in
            shared.ledger.endAny(now: now)
            shared.presentsInternally = true
            shared.billableEvents &+= 1
            return shared.isFieldPresent
        }
        let card = EmulatedCard(
            session: self, credential: credential, isRouted: link.device.element.routesContactless)
        emulated = card
        enter(.cardEmulation(credential: credential), continuesWired: continuesWired)
        tellField(isFieldPresent)
        link.observer?.contactlessCard(isPresent: true, atr: card.atr)
        await link.device.host?.present(card)
    }

    func tellField(_ isPresent: Bool) {
        let info = isPresent ? NFCFieldInformation.fieldPresent : .fieldAbsent
        tell(.fieldStateChanged(info: info), [.init("info", .text(isPresent ? "fieldPresent" : "fieldAbsent"))])
    }

    func fieldChanged(isPresent: Bool) async {
        await settle()
        if case .cardEmulation = machine.state { tellField(isPresent) }
    }

    // MARK: - Presentment intent

    /// Acquires the right to present without being interrupted, for at most a minute.
    ///
    /// - Throws: ``ErrorCode``: `resourceUnavailable` while somebody presents, within fifteen seconds of the last assertion's end,
    ///   and for a third one in eighty seconds; `clientNotInForeground`.
    public func acquirePresentmentAssertion() async throws -> PresentmentIntentAssertion {
        try await perform("acquirePresentmentAssertion()") { link throws(ErrorCode) in
            guard let now = link.now else { throw .internalError }
            let limits = link.device.rules.limits
            let outcome = link.device.shared.withLock { shared -> Result<AssertionLedger.Held, ErrorCode> in
                guard shared.isForeground else { return .failure(.clientNotInForeground) }
                guard !shared.isOtherPresenting, !shared.presentsInternally,
                    let held = shared.ledger.acquire(now: now, limits: limits)
                else { return .failure(.resourceUnavailable) }
                return .success(held)
            }
            let held = try outcome.get()
            return PresentmentIntentAssertion(device: link.device, number: held.id, link: link, session: self)
        }
    }
}
