// SPDX-License-Identifier: MIT

import Glibc
import Synchronization
public import TagTransport

/// A connection to the card in a reader, or to a reader alone, with a thread and a PC/SC context of its own.
///
/// Calls are made one after the other. It is closed, and the card left as it is, when nobody holds it any more.
public final class PCSCCard: Sendable {
    /// Who else may use the card.
    public enum Sharing: UInt32, Sendable {
        case exclusive = 1
        case shared = 2
        /// With the reader, whether a card is in it or not; no card protocol is chosen.
        case direct = 3
    }

    /// Transmission protocols that may be chosen, and the one that was.
    public struct Protocols: OptionSet, Sendable {
        public let rawValue: UInt32
        public init(rawValue: UInt32) { self.rawValue = rawValue }
        public static let t0 = Protocols(rawValue: 1)
        public static let t1 = Protocols(rawValue: 2)
        public static let raw = Protocols(rawValue: 4)
        public static let any: Protocols = [.t0, .t1]
    }

    /// What is done to the card at the end of a connection or a transaction, or at a reconnect.
    public enum Disposition: UInt32, Sendable {
        case leave = 0
        /// Warm reset.
        case reset = 1
        /// Power off and, at a reconnect, on again.
        case unpower = 2
        /// Out of the reader, where it has a mechanism for it; else power off.
        case eject = 3
    }

    /// What the connection says of the card.
    public struct Status: Sendable, Equatable {
        /// The answer to reset.
        public let atr: [UInt8]
        public let activeProtocol: Protocols
        public let isPresent: Bool
    }

    public let reader: String

    private let thread: ContextThread
    private let handle: PCSCLibrary.Card
    private let state: Mutex<State>
    /// Room for the longest answer; touched on the connection's thread only.
    private let buffer = AnswerBuffer()

    private struct State {
        var active: UInt32
        var sharing: Sharing
        var closed = false
    }

    private init(_ reader: String, _ thread: ContextThread, _ handle: PCSCLibrary.Card, active: UInt32, sharing: Sharing) {
        self.reader = reader
        self.thread = thread
        self.handle = handle
        self.state = Mutex(State(active: active, sharing: sharing))
    }

    deinit { close() }

    /// Ends the connection after the calls that wait already, leaves the card as it is, and does not wait for it.
    public func close() {
        let wasOpen = state.withLock { state in
            defer { state.closed = true }
            return !state.closed
        }
        guard wasOpen else { return }
        let handle = handle
        thread.post { library, _ in try? library.disconnect(handle, disposition: Disposition.leave.rawValue) }
    }

    static func connect(
        to reader: String, sharing: Sharing, protocols: Protocols
    ) async throws(TransportError) -> PCSCCard {
        let thread = try await ContextThread.open()
        let allowed = sharing == .direct ? 0 : protocols.rawValue
        let (handle, active) = try await thread.call { (library, context) throws(PCSCError) in
            try library.connect(context, reader, sharing: sharing.rawValue, protocols: allowed)
        }
        return PCSCCard(reader, thread, handle, active: active, sharing: sharing)
    }

    /// The protocol that was chosen; empty in a direct connection.
    public var activeProtocol: Protocols { Protocols(rawValue: state.withLock { $0.active }) }

    /// Sends octets to the card, or to the reader when it takes them for a command of its own, and returns the answer.
    ///
    /// - Parameter command: up to 65,544 octets: the longest extended command APDU.
    /// - Throws: ``TransportError``. After a removal its code is `80100016` or `80100069`. A success without octets is never
    ///   returned: when the card turns out to be gone it is `tagConnectionLost` with the code that the service then gives,
    ///   else `malformedResponse`, which cheap readers earn for answers that they cannot hold. A command that is under way
    ///   cannot be called back: a cancelled task waits for its answer, too.
    public func transmit(_ command: [UInt8]) async throws(TransportError) -> [UInt8] {
        let active = state.withLock { $0.active }
        let buffer = buffer
        let answer = try await call { (library, card) throws(PCSCError) in
            let answer = try library.transmit(card, activeProtocol: active, command, into: buffer.octets)
            if answer.isEmpty { try Self.throwIfLost(library, card) }
            return answer
        }
        guard !answer.isEmpty else {
            throw TransportError(
                .malformedResponse, detail: "\(reader) reported success and gave no answer; the card is still there")
        }
        return answer
    }

    /// pcscd looks for a card 2.5 times a second, so a card that is gone shows within a second.
    private static func throwIfLost(_ library: PCSCLibrary, _ card: PCSCLibrary.Card) throws(PCSCError) {
        for _ in 0..<100 {
            _ = try library.status(card)
            usleep(10_000)
        }
    }

    /// Sends a control code to the reader (`SCardControl`).
    public func control(code: UInt32, _ input: [UInt8] = []) async throws(TransportError) -> [UInt8] {
        let buffer = buffer
        return try await call { (library, card) throws(PCSCError) in
            try library.control(card, code: code, input, into: buffer.octets)
        }
    }

    /// An attribute of the reader (`SCardGetAttrib`).
    public func attribute(_ attribute: PCSCAttribute) async throws(TransportError) -> [UInt8] {
        try await call { (library, card) throws(PCSCError) in try library.attribute(card, attribute.rawValue) }
    }

    /// Sets an attribute of the reader (`SCardSetAttrib`).
    public func setAttribute(_ attribute: PCSCAttribute, to value: [UInt8]) async throws(TransportError) {
        try await call { (library, card) throws(PCSCError) in try library.setAttribute(card, attribute.rawValue, value) }
    }

    public func status() async throws(TransportError) -> Status {
        let (flags, active, atr) = try await call { (library, card) throws(PCSCError) in try library.status(card) }
        return Status(atr: atr, activeProtocol: Protocols(rawValue: active), isPresent: flags & 0x0004 != 0)
    }

    /// Joins the card again after it was reset or taken out and put back, or resets it.
    public func reconnect(
        _ initialization: Disposition = .leave, sharing: Sharing? = nil, protocols: Protocols = .any
    ) async throws(TransportError) {
        let sharing = sharing ?? state.withLock { $0.sharing }
        let allowed = sharing == .direct ? 0 : protocols.rawValue
        let active = try await call { (library, card) throws(PCSCError) in
            try library.reconnect(
                card, sharing: sharing.rawValue, protocols: allowed, initialization: initialization.rawValue
            )
        }
        state.withLock { state in
            state.active = active
            state.sharing = sharing
        }
    }

    /// Ends the connection. A second time does nothing.
    public func disconnect(_ disposition: Disposition = .leave) async throws(TransportError) {
        try PCSCContext.requireReaders()
        let wasOpen = state.withLock { state in
            defer { state.closed = true }
            return !state.closed
        }
        guard wasOpen else { return }
        let handle = handle
        try await thread.call { (library, _) throws(PCSCError) in
            try library.disconnect(handle, disposition: disposition.rawValue)
        }
    }

    /// Keeps other programs from the card until ``endTransaction(_:)``. Waits while another program does so.
    ///
    /// - Throws: `CancellationError` when the task is cancelled while it waits (the transaction, should it still come, is
    ///   ended at once); ``TransportError`` otherwise.
    public func beginTransaction() async throws {
        try PCSCContext.requireReaders()
        let (thread, handle) = (thread, handle)
        let wait = TransactionWait()
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<TransactionWait.Outcome, Never>) in
                guard wait.begin(continuation) else { return }
                thread.post { library, _ in
                    guard wait.isWanted else { return }
                    let result = Result { () throws(PCSCError) in try library.beginTransaction(handle) }
                    if !wait.finish(result), case .success = result {
                        try? library.endTransaction(handle, disposition: Disposition.leave.rawValue)
                    }
                }
            }
        } onCancel: {
            wait.abandon()
        }
        switch outcome {
        case .done(.success): return
        case .done(.failure(let error)): throw error.transportError
        case .abandoned: throw CancellationError()
        }
    }

    public func endTransaction(_ disposition: Disposition = .leave) async throws(TransportError) {
        try await call { (library, card) throws(PCSCError) in
            try library.endTransaction(card, disposition: disposition.rawValue)
        }
    }

    /// Runs `body` while no other program can reach the card.
    ///
    /// - Throws: what `body` throws; ``TransportError`` when the transaction cannot be had. An end that fails after `body`
    ///   succeeded is not an error: the card is gone or the service is, and the next call says so.
    public func withTransaction<Value>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
    ) async throws -> Value {
        try await beginTransaction()
        do {
            let value = try await body()
            try? await endTransaction()
            return value
        } catch {
            try? await endTransaction()
            throw error
        }
    }

    private func call<Value: Sendable>(
        _ body: @escaping @Sendable (PCSCLibrary, PCSCLibrary.Card) throws(PCSCError) -> Value
    ) async throws(TransportError) -> Value {
        try PCSCContext.requireReaders()
        let handle = handle
        return try await thread.call { (library, _) throws(PCSCError) in try body(library, handle) }
    }
}

/// The attributes of a reader that pcsc-lite and its drivers know (PC/SC part 3, 3.1.5).
public struct PCSCAttribute: Sendable, Hashable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static let vendorName = PCSCAttribute(rawValue: 0x0001_0100)
    public static let vendorType = PCSCAttribute(rawValue: 0x0001_0101)
    public static let vendorVersion = PCSCAttribute(rawValue: 0x0001_0102)
    public static let serialNumber = PCSCAttribute(rawValue: 0x0001_0103)
    public static let channel = PCSCAttribute(rawValue: 0x0002_0110)
    public static let cardPresence = PCSCAttribute(rawValue: 0x0009_0300)
    public static let atr = PCSCAttribute(rawValue: 0x0009_0303)
    public static let longestInput = PCSCAttribute(rawValue: 0x7FFF_A007)
}

/// A wait for a transaction that its caller may give up. pcsc-lite cannot cancel it.
private final class TransactionWait: Sendable {
    enum Outcome: Sendable {
        case done(Result<Void, PCSCError>)
        case abandoned
    }

    private struct State {
        var continuation: UnsafeContinuation<Outcome, Never>?
        var abandoned = false
    }

    private let state = Mutex(State())

    var isWanted: Bool { state.withLock { !$0.abandoned } }

    /// False, with the caller told, when it was given up before it began.
    func begin(_ continuation: UnsafeContinuation<Outcome, Never>) -> Bool {
        let wanted = state.withLock { state in
            if !state.abandoned { state.continuation = continuation }
            return !state.abandoned
        }
        if !wanted { continuation.resume(returning: .abandoned) }
        return wanted
    }

    /// False when nobody waits any more.
    func finish(_ result: Result<Void, PCSCError>) -> Bool {
        guard let continuation = take() else { return false }
        continuation.resume(returning: .done(result))
        return true
    }

    func abandon() {
        let continuation = state.withLock { state in
            state.abandoned = true
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume(returning: .abandoned)
    }

    private func take() -> UnsafeContinuation<Outcome, Never>? {
        state.withLock { state in
            defer { state.continuation = nil }
            return state.continuation
        }
    }
}

/// Room for one answer of the greatest length that pcsc-lite carries.
private final class AnswerBuffer: @unchecked Sendable {
    /// `MAX_BUFFER_SIZE_EXTENDED` of pcsc-lite.
    let octets = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 4 + 3 + 65_536 + 3 + 2)

    deinit { octets.deallocate() }
}
