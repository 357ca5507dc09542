// SPDX-License-Identifier: MIT

import Glibc
import Synchronization

/// The sockets of a ``ServiceMachine``: one thread that polls, reads, writes and carries out what the machine says.
final class ServiceLoop: @unchecked Sendable {
    /// What other threads tell the loop.
    private enum Message: Sendable {
        case event(ServiceMachine.Event)
        case done(reader: Int, ReaderWorker.Result)
    }

    private struct Shared {
        var messages: [Message] = []
        var stopping = false
        var wasStarted = false
        var serving = false
    }

    private struct Connection {
        var socket: Int32
        var unsent: [UInt8] = []
        var isClosing = false
    }

    private let path: String
    private let options: ServiceSocket.Options
    private let onEvent: @Sendable (ServiceSocket.Event) -> Void
    private let shared = Mutex(Shared())
    private let ready = Bell()
    private let ended = Bell()
    /// A pipe that wakes the serving thread.
    private var wake: (reading: Int32, writing: Int32) = (-1, -1)

    // Touched by the serving thread only, once it runs.
    private var workers: [ReaderWorker?] = []
    private var machine: ServiceMachine
    private var listener: Int32 = -1
    private var connections: [Int: Connection] = [:]
    private var nextClient = 0
    private var rests: [Int: ContinuousClock.Instant] = [:]
    private var returns: [Int: ContinuousClock.Instant] = [:]
    private var pauseOfAccepting: ContinuousClock.Instant?
    private var returnsAfter: [Int: Duration] = [:]
    private var isListening = false

    init(
        readers: sending [ServiceSocket.Reader], path: String, options: ServiceSocket.Options,
        onEvent: @escaping @Sendable (ServiceSocket.Event) -> Void
    ) {
        self.path = path
        self.options = options
        self.onEvent = onEvent
        machine = ServiceMachine(
            readers: readers.map(\.name), tableSize: min(max(options.tableSize, 1), 1_024), random: SystemRandomNumberGenerator()
        )
        for (index, reader) in readers.enumerated() {
            workers.append(
                reader.card.map { card in
                    // The card goes to its worker alone.
                    nonisolated(unsafe) let card = card
                    return ReaderWorker(
                        card: card, identifier: reader.identifier,
                        onDone: { [weak self] in self?.post(.done(reader: index, $0)) },
                        onReturn: { [weak self] in self?.post(.event(.inserted(reader: index))) }
                    )
                })
        }
    }

    deinit { closeWake() }

    // MARK: - From any thread

    func start() throws(LinkError) {
        let claimed = shared.withLock { state in
            guard !state.wasStarted else { return false }
            state.wasStarted = true
            state.serving = true
            return true
        }
        guard claimed else { throw LinkError(.servesAlready, detail: path) }
        do throws(LinkError) {
            listener = try bindUnix(path: path)
            var ends: [Int32] = [-1, -1]
            guard pipe(&ends) == 0 else { throw LinkError(.notListening, detail: "no pipe: \(systemText(errno))") }
            for end in ends { makeLocal(end) }
            wake = (ends[0], ends[1])
            for worker in workers {
                if let worker, !worker.start() { throw LinkError(.noThread, detail: "the system gave no thread") }
            }
            guard startThread({ [self] in run() }) else { throw LinkError(.noThread, detail: "the system gave no thread") }
        } catch {
            if listener >= 0 {
                close(listener)
                unlink(path)
                listener = -1
            }
            closeWake()
            shared.withLock { state in
                state.wasStarted = false
                state.serving = false
            }
            throw error
        }
        ready.wait(atMost: nil)
    }

    func stop() {
        let serving = shared.withLock { state in
            state.stopping = true
            return state.serving
        }
        guard serving else { return }
        ring()
        ended.wait(atMost: nil)
        // For a second caller.
        ended.ring()
    }

    func tell(_ event: ServiceMachine.Event) { post(.event(event)) }

    private func post(_ message: Message) {
        shared.withLock { $0.messages.append(message) }
        ring()
    }

    private func ring() {
        // A pipe that is full wakes as well.
        var octet: UInt8 = 0
        _ = Glibc.write(wake.writing, &octet, 1)
    }

    private func closeWake() {
        for end in [wake.reading, wake.writing] where end >= 0 { close(end) }
        wake = (-1, -1)
    }

    // MARK: - The serving thread

    /// POLLRDHUP of Linux.
    private static let peerClosed: Int16 = 0x2000

    /// Not to be waited on, and not inherited by programs that are started.
    private func makeLocal(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    private func run() {
        for index in workers.indices where workers[index] != nil { carryOut(.inserted(reader: index)) }
        while true {
            let (messages, stopping) = shared.withLock { state in
                defer { state.messages = [] }
                return (state.messages, state.stopping)
            }
            if stopping { break }
            for message in messages { take(message) }
            runTimers()
            listenWhenReady()
            poll()
        }
        end()
    }

    /// Nobody is let in before every card has power.
    private func listenWhenReady() {
        guard !isListening, machine.readers.allSatisfy({ $0.job == nil }) else { return }
        isListening = true
        listen(listener, 128)
        ready.ring()
    }

    private func take(_ message: Message) {
        switch message {
        case .event(let event): carryOut(event)
        case .done(let reader, let result):
            returnsAfter[reader] = result.departure?.returnsAfter
            carryOut(.done(reader: reader, result.answer, atr: result.atr))
            if result.departure != nil { carryOut(.removed(reader: reader)) }
        }
    }

    private func poll() {
        let accepts = isListening && pauseOfAccepting == nil && connections.count < ServiceLimit.each
        var entries = [
            pollfd(fd: wake.reading, events: Int16(POLLIN), revents: 0),
            pollfd(fd: accepts ? listener : -1, events: Int16(POLLIN), revents: 0),
        ]
        let clients = Array(connections.keys)
        for client in clients {
            guard let connection = connections[client] else { continue }
            var events = Self.peerClosed
            // A client that does not read its answers is not read either.
            if connection.unsent.isEmpty, machine.pending(of: client) < 2 * ServiceLimit.apdu { events |= Int16(POLLIN) }
            if !connection.unsent.isEmpty { events |= Int16(POLLOUT) }
            entries.append(pollfd(fd: connection.socket, events: events, revents: 0))
        }
        guard Glibc.poll(&entries, nfds_t(entries.count), timeout) > 0 else { return }
        if entries[0].revents != 0 {
            var octets = [UInt8](repeating: 0, count: 256)
            _ = read(wake.reading, &octets, octets.count)
        }
        for (client, entry) in zip(clients, entries.dropFirst(2)) where entry.revents != 0 { serve(client, entry.revents) }
        if entries[1].revents != 0 { accept() }
    }

    private func serve(_ client: Int, _ events: Int16) {
        if events & Int16(POLLOUT) != 0 { flush(client) }
        if events & Int16(POLLIN) != 0 {
            receive(client)
        } else if events & Int16(POLLHUP | POLLERR) != 0 || events & Self.peerClosed != 0 {
            // Gone, with nothing left that could be read now.
            lose(client)
        }
    }

    private func accept() {
        let socket = Glibc.accept(listener, nil, nil)
        guard socket >= 0 else {
            // Out of descriptors: the connection stays in the backlog, and must not make the loop spin.
            if errno != EINTR, errno != EAGAIN, errno != ECONNABORTED {
                pauseOfAccepting = ContinuousClock.now + .milliseconds(100)
            }
            return
        }
        makeLocal(socket)
        nextClient += 1
        connections[nextClient] = Connection(socket: socket)
        carryOut(.opened(nextClient))
    }

    private func receive(_ client: Int) {
        guard let socket = connections[client]?.socket else { return }
        var received: [UInt8] = []
        var failure: Int32 = 0
        var count = 0
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1 << 16) { buffer in
            count = recv(socket, buffer.baseAddress, buffer.count, 0)
            failure = errno
            if count > 0 { received = Array(buffer[0..<count]) }
        }
        if count > 0 {
            carryOut(.received(client, received))
        } else if count == 0 || (failure != EINTR && failure != EAGAIN) {
            lose(client)
        }
    }

    private func lose(_ client: Int) {
        guard let connection = connections.removeValue(forKey: client) else { return }
        close(connection.socket)
        carryOut(.closed(client))
    }

    // MARK: - Actions

    private func carryOut(_ event: ServiceMachine.Event) {
        var events = [event]
        while !events.isEmpty {
            for action in machine.handle(events.removeFirst()) {
                switch action {
                case .send(let client, let octets): if send(octets, to: client) { events.append(.written(client)) }
                case .close(let client): hangUp(client)
                case .work(let reader, let work): if workers.indices.contains(reader) { workers[reader]?.post(.work(work)) }
                case .rest(let reader): rests[reader] = ContinuousClock.now + options.grace
                case .left(let reader):
                    onEvent(.removed(reader: reader))
                    returns[reader] = nil
                    if let pause = returnsAfter[reader] { returns[reader] = ContinuousClock.now + pause }
                case .came(let reader):
                    returns[reader] = nil
                    onEvent(.inserted(reader: reader))
                case .programsLeft: for worker in workers { worker?.post(.programsLeft) }
                }
            }
        }
    }

    /// True when all of it, and all before it, was written.
    private func send(_ octets: [UInt8], to client: Int) -> Bool {
        guard connections[client] != nil else { return false }
        connections[client]?.unsent += octets
        return write(client)
    }

    private func flush(_ client: Int) {
        if write(client) { carryOut(.written(client)) }
    }

    private func write(_ client: Int) -> Bool {
        guard let connection = connections[client] else { return false }
        var sent = 0
        while sent < connection.unsent.count {
            let count = connection.unsent.withUnsafeBytes { buffer in
                Glibc.send(
                    connection.socket, buffer.baseAddress?.advanced(by: sent), buffer.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count > 0 { sent += count } else if errno != EINTR { break }
        }
        // An error shows at the next look, as a connection that is gone.
        connections[client]?.unsent.removeFirst(sent)
        return sent == connection.unsent.count
    }

    /// Closes from this side. What the client wrote is read first: unread octets would look to it like a breach of security.
    private func hangUp(_ client: Int) {
        guard let connection = connections.removeValue(forKey: client) else { return }
        shutdown(connection.socket, Int32(SHUT_WR))
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1 << 16) { buffer in
            for _ in 0..<16 where recv(connection.socket, buffer.baseAddress, buffer.count, 0) <= 0 { break }
        }
        close(connection.socket)
    }

    // MARK: - Time

    private var timeout: Int32 {
        let times = Array(rests.values) + Array(returns.values) + (pauseOfAccepting.map { [$0] } ?? [])
        return times.min().map { ($0 - .now).pollMilliseconds } ?? -1
    }

    private func runTimers() {
        let now = ContinuousClock.now
        for (reader, time) in rests where time <= now {
            rests[reader] = nil
            carryOut(.rested(reader: reader))
        }
        for (reader, time) in returns where time <= now {
            returns[reader] = nil
            carryOut(.inserted(reader: reader))
        }
        if let time = pauseOfAccepting, time <= now { pauseOfAccepting = nil }
    }

    /// Clients are hung up on before the path goes: a library that waits looks for it again and again.
    private func end() {
        for client in Array(connections.keys) { hangUp(client) }
        close(listener)
        unlink(path)
        for worker in workers { worker?.stop() }
        shared.withLock { $0.serving = false }
        ready.ring()
        ended.ring()
    }
}
