// SPDX-License-Identifier: MIT

import Synchronization
public import TagTransport

/// Finds a tag and holds the session in which it is worked with.
///
/// The tag comes from the PC/SC readers of this machine. A subclass brings another source, or shows what happens, by overriding
/// hooks; all of them do nothing by default but the first:
///
/// - ``discoverTag(for:)`` waits for a tag and connects to it;
/// - ``sessionDidBegin(message:)``, ``alertMessageDidChange(_:)`` and ``sessionDidEnd(errorMessage:)`` tell what a person may be shown.
///
/// Hooks are called outside every lock, on whatever thread the event came from; `begin` and `end` come in pairs.
/// The class keeps its own state behind a lock; a subclass answers for the state that it adds.
open class NFCSessionManager: @unchecked Sendable {
    /// Which tags are looked for.
    public enum PollingTarget: String, Sendable, Hashable, Codable, CaseIterable {
        /// ISO/IEC 14443 type A and B, over the air.
        case iso14443
        /// FeliCa (JIS X 6319-4, ISO/IEC 18092).
        case iso18092
        /// ISO/IEC 15693.
        case iso15693
        /// All of these, and cards with contacts.
        case all
    }

    /// The reader whose tags count; nil for every reader.
    public let reader: String?
    /// How long a scan waits for a tag; nil for ever.
    public let timeout: Duration?

    private let state = Mutex(State())

    private struct State {
        var scanIsPending = false
        var sessionIsOpen = false
        var canceledByUser = false
        var endedByCaller = false
        var alertMessage: String?
        /// Ends the pending scan.
        var scanEnd: AsyncStream<Never>.Continuation?
        /// Lets go of the tag of the open session.
        var close: (@Sendable () -> Void)?
    }

    /// - Parameters:
    ///   - reader: a reader's name as the service gives it; nil for every reader.
    ///   - timeout: after it a scan throws ``NFCError/sessionTimeout``; nil waits for ever.
    public init(reader: String? = nil, timeout: Duration? = .seconds(60)) {
        self.reader = reader
        self.timeout = timeout
    }

    // MARK: - Sessions

    /// Waits for a tag, connects to it and tells what it is, as far as that can be told without asking it.
    ///
    /// The session stays open until ``invalidate()``; a session that an earlier scan left open ends first.
    ///
    /// - Throws: ``NFCError/scanInProgress`` when a scan of this manager is pending; `CancellationError` when the task is cancelled
    ///   before the tag is connected; ``NFCError/sessionInvalidatedByCaller`` after ``invalidate()``; ``NFCError/userCanceled``
    ///   after ``cancelByUser()``; ``NFCError/sessionTimeout``; ``NFCError/nfcNotAvailable``. The session has ended then.
    public final func scan(
        for targets: [PollingTarget] = [.all], message: String? = nil
    ) async throws -> (CardInfo, any NFCTagTransport) {
        let ends = try beginScan(message: message)
        sessionDidBegin(message: message)
        let outcome = await race(Self.expanded(targets), against: ends)
        return try finishScan(outcome, taskIsCancelled: Task.isCancelled)
    }

    /// Ends the session, and the scan that is pending. Without a session it does nothing.
    public final func invalidate() { end(errorMessage: nil, byUser: false) }

    /// Ends the session as ``invalidate()`` does and tells the user why.
    public final func invalidate(errorMessage: String) { end(errorMessage: errorMessage, byUser: false) }

    /// Ends the session because the user wants it: what the *cancel* of a platform's sheet does.
    public final func cancelByUser() { end(errorMessage: nil, byUser: true) }

    /// Whether the user ended the session of the last scan: a failure of a flow may be no more than that.
    public final var wasCanceledByUser: Bool { state.withLock { $0.canceledByUser } }

    /// The text that the user sees while the session is open.
    public final func setAlertMessage(_ message: String) {
        let isOpen = state.withLock { state in
            if state.sessionIsOpen { state.alertMessage = message }
            return state.sessionIsOpen
        }
        if isOpen { alertMessageDidChange(message) }
    }

    /// The text last given to ``scan(for:message:)`` or ``setAlertMessage(_:)``; nil without a session.
    public final var alertMessage: String? { state.withLock { $0.alertMessage } }

    // MARK: - Hooks

    /// Waits for a tag that one of `targets` fits, and connects to it.
    ///
    /// Runs in a child task of the scan, in its environment, and is cancelled when the scan ends otherwise: it must then return soon,
    /// with whatever error. A tag that comes too late is closed.
    ///
    /// - Parameter targets: never ``PollingTarget/all`` alone: that stands beside the three that it means.
    open func discoverTag(for targets: Set<PollingTarget>) async throws -> DiscoveredTag {
        try await PCSCTagSource(reader: reader, timeout: timeout).discoverTag(for: targets)
    }

    /// A scan begins.
    open func sessionDidBegin(message: String?) {}

    /// The text for the user changed.
    open func alertMessageDidChange(_ message: String) {}

    /// The session ended.
    ///
    /// - Parameter errorMessage: what the user is to be told; nil when all is well, and when the user ended it.
    open func sessionDidEnd(errorMessage: String?) {}

    // MARK: - A scan from begin to end

    private enum Outcome: Sendable {
        case found(DiscoveredTag)
        case failed(any Error)
        case ended
    }

    private func beginScan(message: String?) throws(NFCError) -> AsyncStream<Never> {
        let (ends, continuation) = AsyncStream.makeStream(of: Never.self)
        let (isPending, wasOpen, close) = state.withLock { state in
            guard !state.scanIsPending else { return (true, false, nil as (@Sendable () -> Void)?) }
            let before = (false, state.sessionIsOpen, state.close)
            state = State(scanIsPending: true, sessionIsOpen: true, alertMessage: message, scanEnd: continuation)
            return before
        }
        if isPending { throw .scanInProgress }
        close?()
        if wasOpen { sessionDidEnd(errorMessage: nil) }
        return ends
    }

    private func race(_ targets: Set<PollingTarget>, against ends: AsyncStream<Never>) async -> Outcome {
        await withTaskGroup(of: Outcome.self) { group in
            group.addTask {
                do {
                    return .found(try await self.discoverTag(for: targets))
                } catch {
                    return .failed(error)
                }
            }
            group.addTask {
                for await _ in ends {}
                return .ended
            }
            let first = await group.next() ?? .ended
            group.cancelAll()
            for await late in group {
                if case .found(let tag) = late { tag.close() }
            }
            return first
        }
    }

    private func finishScan(_ outcome: Outcome, taskIsCancelled: Bool) throws -> (CardInfo, any NFCTagTransport) {
        var failure: (any Error)?
        var errorMessage: String?
        let mustTell = state.withLock { state in
            state.scanIsPending = false
            state.scanEnd = nil
            if state.canceledByUser {
                failure = NFCError.userCanceled
            } else if state.endedByCaller {
                failure = NFCError.sessionInvalidatedByCaller
            } else if taskIsCancelled {
                failure = CancellationError()
            } else {
                switch outcome {
                case .found(let tag): state.close = tag.close
                case .failed(let error):
                    let facing = NFCError.facing(error)
                    failure = facing
                    if !facing.isNFCCancellation { errorMessage = "\(facing)" }
                case .ended: failure = NFCError.sessionInvalidatedByCaller
                }
            }
            guard failure != nil else { return false }
            defer { state.sessionIsOpen = false }
            return state.sessionIsOpen
        }
        if failure != nil, case .found(let tag) = outcome { tag.close() }
        if mustTell { sessionDidEnd(errorMessage: errorMessage) }
        if let failure { throw failure }
        guard case .found(let tag) = outcome else { throw NFCError.sessionInvalidatedByCaller }
        return (tag.info, tag.transport)
    }

    private func end(errorMessage: String?, byUser: Bool) {
        let (wasOpen, scanEnd, close) = state.withLock { state in
            let before = (state.sessionIsOpen, state.scanEnd, state.close)
            if state.sessionIsOpen {
                if byUser { state.canceledByUser = true } else { state.endedByCaller = true }
            }
            state.sessionIsOpen = false
            state.scanEnd = nil
            state.close = nil
            return before
        }
        guard wasOpen else { return }
        scanEnd?.finish()
        close?()
        sessionDidEnd(errorMessage: errorMessage)
    }

    private static func expanded(_ targets: [PollingTarget]) -> Set<PollingTarget> {
        targets.contains(.all) ? Set(PollingTarget.allCases) : Set(targets)
    }
}
