// SPDX-License-Identifier: MIT

import CardCrypto
public import TagTransport

/// The door to the readers of this machine, through pcsc-lite.
///
/// Nothing here blocks the threads that run Swift tasks: every card and every wait has a thread and a PC/SC context of
/// its own. Which service answers is libpcsclite's choice, by `PCSCLITE_CSOCK_NAME` at its first use in a process.
/// Every call throws ``TransportError`` with the case `readersForbidden` where the environment forbids readers.
public final class PCSCContext: Sendable {
    private let thread: ContextThread

    private init(_ thread: ContextThread) { self.thread = thread }

    /// Connects to the service.
    ///
    /// - Throws: ``TransportError`` `serviceUnavailable` when libpcsclite is not installed or the service does not run.
    public static func open() async throws(TransportError) -> PCSCContext {
        try requireReaders()
        return PCSCContext(try await ContextThread.open())
    }

    /// The names of the readers, in the service's order; empty when there are none.
    public func readers() async throws(TransportError) -> [String] {
        try requireReaders()
        return try await thread.call { (library, context) throws(PCSCError) in try library.readers(context) }
    }

    /// What is in each reader now.
    public func readerStatuses() async throws(TransportError) -> [ReaderStatus] {
        try requireReaders()
        return try await thread.call { (library, context) throws(PCSCError) in
            try Self.look(library, context).map { ReaderStatus($0) }
        }
    }

    /// Waits until the state of one of the readers differs from the one given.
    ///
    /// Ends with ``TransportError`` `cancelled`, code `80100002`, when the task is cancelled.
    ///
    /// - Parameters:
    ///   - known: what is known; a status whose flags are empty is reported at once.
    ///   - timeout: nil waits for ever.
    /// - Returns: the states of the same readers.
    /// - Throws: ``TransportError``; `timeout`, code `8010000A`, when nothing happened.
    public func statusChange(
        from known: [ReaderStatus], timeout: Duration? = nil
    ) async throws(TransportError) -> [ReaderStatus] {
        try requireReaders()
        let waiting = try await ContextThread.open()
        let milliseconds = timeout.map { $0.wholeMilliseconds }
        return try await waiting.cancellableCall { (library, context) throws(PCSCError) in
            try library.statusChange(context, known.map(\.raw), milliseconds: milliseconds).map { ReaderStatus($0) }
        }
    }

    /// What happens to readers and cards from now on, beginning with what is there.
    ///
    /// The stream ends after ``ReaderEvent/failed(_:)``, or when nobody reads it any more.
    public func readerEvents() throws(TransportError) -> AsyncStream<ReaderEvent> {
        try requireReaders()
        return ReaderWatch.events(library: try PCSCLibrary.shared.get())
    }

    /// Connects to the card in a reader, or to the reader itself.
    ///
    /// - Parameters:
    ///   - reader: the name as ``readers()`` gives it.
    ///   - sharing: with other programs (the default), alone, or directly with the reader when no card is in it.
    public func connect(
        to reader: String, sharing: PCSCCard.Sharing = .shared, protocols: PCSCCard.Protocols = .any
    ) async throws(TransportError) -> PCSCCard {
        try requireReaders()
        return try await PCSCCard.connect(to: reader, sharing: sharing, protocols: protocols)
    }

    static func requireReaders() throws(TransportError) {
        do throws(EnvironmentError) {
            try CardEnvironment.current.requireReaders()
        } catch {
            throw TransportError(.readersForbidden, detail: error.description)
        }
    }

    private func requireReaders() throws(TransportError) { try Self.requireReaders() }

    /// The states of all readers, without waiting. A reader that goes between the two calls makes the look start over.
    static func look(_ library: PCSCLibrary, _ context: PCSCLibrary.Context) throws(PCSCError) -> [RawReaderState] {
        var attempts = 0
        while true {
            let names = try library.readers(context)
            if names.isEmpty { return [] }
            do throws(PCSCError) {
                return try library.statusChange(context, names.map { RawReaderState(name: $0, flags: 0) }, milliseconds: 0)
            } catch {
                attempts += 1
                guard error.code == PCSCError.unknownReader, attempts < 8 else { throw error }
            }
        }
    }
}

extension Duration {
    /// Milliseconds for a PC/SC time-out: at least 0, and never the value that means for ever.
    var wholeMilliseconds: UInt32 {
        let (seconds, attoseconds) = components
        guard seconds >= 0 else { return 0 }
        guard seconds < 4_000_000 else { return 4_000_000_000 }
        return UInt32(clamping: seconds * 1_000 + attoseconds / 1_000_000_000_000_000)
    }
}
