// SPDX-License-Identifier: MIT

import Glibc
import Synchronization

/// Puts a card into a slot of the virtual reader vpcd, over TCP.
///
/// vpcd writes a length and its message with two calls and waits, by Nagle's rule, for the first to be acknowledged; a
/// receiver that delays its acknowledgements makes every command take 44 ms. So TCP_QUICKACK, which does not last, is
/// set before every receive; answers go out in one call with TCP_NODELAY.
///
/// vpcd has no word for *no answer*. A card that is taken out, or stays silent, in the middle of an exchange ends the
/// connection, and vpcd hands its program a success without octets. A slot left empty shows at its next look, at most
/// 0.4 s later; for a silent card, or an answer without octets, the connection is made again at once, so that the card
/// stays in the slot and keeps its state.
public final class VPCDLink: @unchecked Sendable {
    /// When a card that left the slot comes back.
    public enum Return: Sendable, Equatable {
        /// Not by itself: ``insert()`` puts it back.
        case whenTold
        case after(Duration)
        /// Never: serving ends.
        case never
    }

    public struct Options: Sendable {
        /// What the reader itself answers to `FF CA 00 00` (PC/SC part 3): the UID of a contactless card. A real reader
        /// does not pass that command on; with nil it goes to the card.
        public var identifier: [UInt8]?
        /// After ``CardAnswer/removed``, ``VPCDLink/remove()``.
        public var afterRemoval: Return
        /// How long a card that answers nothing holds the reader before the link is cut; see ``VPCDLink``.
        public var silence: Duration
        /// When nothing is heard for so long after connecting, ``Event/notServed`` is told: the slot is taken.
        public var patience: Duration

        public init(
            identifier: [UInt8]? = nil, afterRemoval: Return = .never, silence: Duration = .seconds(1),
            patience: Duration = .seconds(3)
        ) {
            self.identifier = identifier
            self.afterRemoval = afterRemoval
            self.silence = silence
            self.patience = patience
        }
    }

    public enum Event: Sendable, Equatable {
        case inserted
        case removed
        /// The card kept silent, or gave an answer without octets; the link was cut, because vpcd has no other way to say so, and is made again at once.
        case silent
        /// The port took the connection and asks nothing: another card is in the slot.
        case notServed
        /// Serving on the link's own thread ended.
        case ended(Outcome)
    }

    /// How serving ended.
    public enum Outcome: Sendable, Equatable {
        case stopped
        case removed
        /// The reader closed the connection: its pcscd has ended.
        case readerClosed
        case failed(LinkError)
    }

    public let host: String
    public let port: UInt16
    private let options: Options
    private let onEvent: @Sendable (Event) -> Void
    /// Touched by the serving thread only.
    private let card: any CardEnd
    /// When a card that said so comes back; touched by the serving thread only.
    private var returnsAfter: Duration?
    private let shared = Mutex(Shared())
    private let bell: Bell

    private struct Shared {
        var stopping = false
        var removed = false
        var socket: Int32 = -1
        var serving = false
    }

    /// - Parameters:
    ///   - card: from now on called by the serving thread only, one call after the other.
    ///   - onEvent: called on the serving thread.
    public init(
        card: sending any CardEnd, host: String = "127.0.0.1", port: UInt16 = 0x8C7B, options: Options = Options(),
        onEvent: @escaping @Sendable (Event) -> Void = { _ in }
    ) {
        self.card = card
        self.host = host
        self.port = port
        self.options = options
        self.onEvent = onEvent
        self.bell = Bell()
    }

    // MARK: - Control, from any thread

    /// Serves on a thread of its own. The card is connected when this returns.
    ///
    /// - Throws: ``LinkError`` when the reader cannot be reached or the link serves already.
    public func start() throws(LinkError) {
        try claim()
        let socket: Int32
        do throws(LinkError) {
            socket = try connect()
        } catch {
            release()
            throw error
        }
        let started = startThread { [self] in
            let outcome = serveUntilEnd(socket)
            release()
            onEvent(.ended(outcome))
        }
        if !started {
            forget(socket)
            release()
            throw LinkError(.noThread, detail: "the system gave no thread")
        }
    }

    /// Serves on the caller's thread until ``stop()``, a removal without return, or the reader's end.
    ///
    /// - Throws: ``LinkError`` when the reader cannot be reached or the link breaks.
    @discardableResult
    public func run() throws(LinkError) -> Outcome {
        try claim()
        defer { release() }
        let outcome = serveUntilEnd(try connect())
        if case .failed(let error) = outcome { throw error }
        return outcome
    }

    /// Ends serving at once and waits until the serving thread has let go of the card. May be called again.
    ///
    /// From the serving thread itself, a card's answer for instance, it does not wait.
    public func stop() {
        shared.withLock { state in
            state.stopping = true
            if state.socket >= 0 { shutdown(state.socket, Int32(SHUT_RD)) }
        }
        bell.ring()
        while shared.withLock({ $0.serving }), !bell.isOwnedByThisThread { usleep(200) }
    }

    /// Takes the card out of the slot, in the middle of an exchange if there is one.
    public func remove() {
        shared.withLock { state in
            state.removed = true
            if state.socket >= 0 { shutdown(state.socket, Int32(SHUT_RD)) }
        }
        bell.ring()
    }

    /// Puts a card that was removed back into the slot.
    public func insert() {
        shared.withLock { $0.removed = false }
        bell.ring()
    }

    // MARK: - Serving

    private enum Pause: Equatable {
        case cut(Event)
        case end(Outcome)
    }

    private func serveUntilEnd(_ first: Int32) -> Outcome {
        bell.own()
        var socket = first
        while true {
            onEvent(.inserted)
            let pause = serve(socket)
            forget(socket)
            if pause != .cut(.silent) { card.powerOff() }
            switch pause {
            case .end(let outcome): return outcome
            case .cut(let event):
                onEvent(event)
                if event == .removed, let outcome = waitForReturn() { return outcome }
            }
            do throws(LinkError) {
                socket = try connect()
            } catch {
                return isStopping ? .stopped : .failed(error)
            }
        }
    }

    /// Nil when the card is to be put back.
    private func waitForReturn() -> Outcome? {
        let afterRemoval = returnsAfter.map(Return.after) ?? options.afterRemoval
        returnsAfter = nil
        switch afterRemoval {
        case .never: return isStopping ? .stopped : .removed
        case .after(let pause):
            let deadline = ContinuousClock.now + pause
            while !isStopping, case let rest = deadline - .now, rest > .zero { bell.wait(atMost: rest) }
        case .whenTold:
            while !isStopping, shared.withLock({ $0.removed }) { bell.wait(atMost: nil) }
        }
        shared.withLock { $0.removed = false }
        return isStopping ? .stopped : nil
    }

    private func serve(_ socket: Int32) -> Pause {
        var framer = VPCDFramer()
        var heard = false
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1 << 16) { buffer in
            while true {
                while let message = framer.next() {
                    heard = true
                    if let pause = answer(message, on: socket) { return pause }
                }
                if !heard, !waitForFirstOctet(socket) { onEvent(.notServed) }
                var on: Int32 = 1
                setsockopt(socket, Int32(IPPROTO_TCP), Int32(TCP_QUICKACK), &on, socklen_t(MemoryLayout<Int32>.size))
                let count = recv(socket, buffer.baseAddress, buffer.count, 0)
                if count > 0 {
                    framer.append(buffer[0..<count])
                } else if count == 0 || errno != EINTR {
                    return ended(receiving: count == 0 ? 0 : errno)
                }
            }
        }
    }

    private func ended(receiving code: Int32) -> Pause {
        let (stopping, removed) = shared.withLock { ($0.stopping, $0.removed) }
        if stopping { return .end(.stopped) }
        if removed { return .cut(.removed) }
        if code == 0 || code == ECONNRESET || code == EPIPE { return .end(.readerClosed) }
        return .end(.failed(LinkError(.broken, detail: "\(host):\(port): \(systemText(code))")))
    }

    private func answer(_ message: VPCDMessage, on socket: Int32) -> Pause? {
        switch message {
        case .powerOff: card.powerOff()
        case .powerOn, .reset: card.powerOn()
        case .atrRequest:
            guard !card.atr.isEmpty else { return .end(.failed(LinkError(.noATR, detail: "the card has no answer to reset"))) }
            return send(card.atr, on: socket)
        case .unknown: break
        case .command(let command):
            // An empty message is no command; a reader would not send it on.
            guard !command.isEmpty else { return send([0x67, 0x00], on: socket) }
            if let identifier = options.identifier, command.starts(with: [0xFF, 0xCA, 0x00, 0x00]) {
                return send(identifier + [0x90, 0x00], on: socket)
            }
            switch card.exchange(command) {
            case .response(let response):
                if mustStop { return ended(receiving: 0) }
                // vpcd waits for ever after a message without octets.
                if response.isEmpty { return .cut(.silent) }
                return send(response, on: socket) ?? (takesLeave() ? .cut(.removed) : nil)
            case .removed:
                _ = takesLeave()
                shared.withLock { $0.removed = true }
                return .cut(.removed)
            case .silence:
                // The driver waits for ever, and asks nothing else meanwhile, until the connection ends.
                let deadline = ContinuousClock.now + options.silence
                while !mustStop, case let rest = deadline - .now, rest > .zero { bell.wait(atMost: rest) }
                return mustStop ? ended(receiving: 0) : .cut(.silent)
            }
        }
        return nil
    }

    /// Whether the card leaves with the answer that it gave.
    private func takesLeave() -> Bool {
        guard let departure = card.departure() else { return false }
        returnsAfter = departure.returnsAfter
        shared.withLock { $0.removed = true }
        return true
    }

    private func send(_ payload: [UInt8], on socket: Int32) -> Pause? {
        guard let octets = VPCDFramer.frame(payload) else {
            return .end(.failed(LinkError(.answerTooLong, detail: "\(payload.count) bytes; vpcd carries 65,535")))
        }
        var sent = 0
        while sent < octets.count {
            let count = octets.withUnsafeBytes { buffer in
                Glibc.send(socket, buffer.baseAddress?.advanced(by: sent), octets.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count > 0 { sent += count } else if errno != EINTR { return ended(receiving: errno) }
        }
        return nil
    }

    private func waitForFirstOctet(_ socket: Int32) -> Bool {
        var on: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), Int32(TCP_QUICKACK), &on, socklen_t(MemoryLayout<Int32>.size))
        var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, options.patience.pollMilliseconds) != 0
    }

    // MARK: - State

    private var isStopping: Bool { shared.withLock { $0.stopping } }
    private var mustStop: Bool { shared.withLock { $0.stopping || $0.removed } }

    private func claim() throws(LinkError) {
        let claimed = shared.withLock { state in
            guard !state.serving else { return false }
            state.serving = true
            state.stopping = false
            state.removed = false
            return true
        }
        guard claimed else { throw LinkError(.servesAlready, detail: "\(host):\(port)") }
    }

    private func release() { shared.withLock { $0.serving = false } }

    private func connect() throws(LinkError) -> Int32 {
        let socket = try connectTCP(host: host, port: port)
        // A stop or a removal that came while connecting finds the socket already shut.
        shared.withLock { state in
            state.socket = socket
            if state.stopping || state.removed { shutdown(socket, Int32(SHUT_RD)) }
        }
        return socket
    }

    private func forget(_ socket: Int32) {
        shared.withLock { state in
            state.socket = -1
            close(socket)
        }
    }
}
