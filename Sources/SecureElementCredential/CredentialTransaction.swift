// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A credential, by the name that the scene's calls use.
public typealias Credential = CredentialSession.Credential
/// Options, by the name that the scene's calls use.
public typealias CardEmulationOptions = CredentialSession.CardEmulationOptions

/// Operations over the scene of a `transactionTask(_:action:)`. When its life ends the session goes to management.
public final class CredentialTransaction: Sendable {
    /// What ties a transaction task to a session.
    public final class Configuration: Equatable, Sendable {
        let session: CredentialSession

        init(session: CredentialSession) { self.session = session }

        /// Takes the session to management. To be called after each transaction.
        ///
        /// - Throws: ``CredentialSession/ErrorCode``: `sessionInvalidated`.
        public func invalidate() async throws { try await session.invalidateConfiguration() }

        public static func == (left: Configuration, right: Configuration) -> Bool { left === right }
    }

    private let session: CredentialSession
    private let scene: any PresentationContext

    init(session: CredentialSession, scene: any PresentationContext) {
        self.session = session
        self.scene = scene
    }

    deinit {
        let session = session
        Task { await session.transactionEnded() }
    }

    /// Asks the person and presents the credential; see ``CredentialSession/performTransaction(using:over:options:)``.
    public func performTransaction(using credential: Credential, options: CardEmulationOptions = .init()) async throws {
        try await session.performTransaction(using: credential, over: scene, options: options)
    }

    /// Asks the person and enters wired mode; see ``CredentialSession/performWiredTransaction(using:over:instanceAID:)``.
    public func performTransactionInWiredMode(using credential: Credential, instanceAID: Data) async throws {
        try await session.wiredTransaction(
            "performTransactionInWiredMode(using:instanceAID:)", credential, scene, instanceAID, isUIKit: false)
    }

    /// Presents the credential of wired mode; see
    /// ``CredentialSession/performCardEmulationTransactionWithCurrentCredential(over:options:)``.
    public func performCardEmulationTransactionWithCurrentCredential(options: CardEmulationOptions = .init()) async throws {
        try await session.performCardEmulationTransactionWithCurrentCredential(over: scene, options: options)
    }
}

extension CredentialSession {
    /// A configuration for transaction tasks of this session.
    ///
    /// - Throws: ``ErrorCode``: `sessionInvalidated`.
    public nonisolated func configuration() async throws -> CredentialTransaction.Configuration {
        guard await state != .invalid else { throw ErrorCode.sessionInvalidated }
        return CredentialTransaction.Configuration(session: self)
    }

    func invalidateConfiguration() async throws {
        try await perform("invalidateConfiguration()", isForExtensions: true) { _ throws(ErrorCode) in enterManagement() }
    }

    /// What a scene's transaction calls, for callers that have no task to run it in.
    package func transactionInWiredMode(
        using credential: Credential, over scene: any PresentationContext, instanceAID: Data
    ) async throws {
        try await wiredTransaction(
            "performTransactionInWiredMode(using:instanceAID:)", credential, scene, instanceAID, isUIKit: false)
    }

    /// Row T53.
    func transactionEnded() async {
        await settle()
        switch machine.state {
        case .wired, .cardEmulation:
            link?.observer?.happened("transactionEnded", [], call: nil)
            enterManagement()
            await settle()
        case .management, .invalid: break
        }
    }
}

extension PresentationContext {
    /// Runs `action` with a transaction over this scene; without a configuration nothing is run. When the action ends, the
    /// configuration is invalidated.
    public func transactionTask(
        _ configuration: CredentialTransaction.Configuration?, action: (CredentialTransaction) async -> Void
    ) async {
        guard let configuration else { return }
        await action(CredentialTransaction(session: configuration.session, scene: self))
        await configuration.session.transactionEnded()
    }
}
