// SPDX-License-Identifier: MIT

/// The service side of pcsc-lite's client protocol (4:4 to 4:6) as a value: events go in, actions come out, no I/O.
///
/// A client's messages are answered one after the other; the next one is looked at when the answer before it was written. A
/// reader does one thing at a time; a client that wants it meanwhile is held and tried again when something has changed there.
struct ServiceMachine: Sendable {
    typealias Client = Int

    enum Event: Sendable, Equatable {
        case opened(Client)
        case received(Client, [UInt8])
        /// Everything that was sent to it so far has been taken.
        case written(Client)
        case closed(Client)
        /// The work of a reader is done; whether a card is in the reader, and its answer to reset.
        case done(reader: Int, ReaderAnswer, atr: [UInt8])
        /// Somebody took the card out of a reader.
        case removed(reader: Int)
        /// Somebody put the card into a reader.
        case inserted(reader: Int)
        /// Nobody has used the card for the time of grace.
        case rested(reader: Int)
    }

    enum Action: Sendable, Equatable {
        case send(Client, [UInt8])
        case close(Client)
        /// Ends with ``Event/done(reader:_:atr:)``. A reader has one at a time.
        case work(reader: Int, Work)
        /// The last handle of a reader is gone: its time of grace begins.
        case rest(reader: Int)
        /// A card left its reader.
        case left(reader: Int)
        /// A card came into a reader, and has power.
        case came(reader: Int)
        /// The last context was released.
        case programsLeft
    }

    /// What a card or its reader is asked to do.
    enum Work: Sendable, Equatable {
        case powerOn
        case powerOff
        case reset
        case eject
        case transmit([UInt8])
        case control(UInt32, [UInt8])
    }

    /// Why a reader is at work, and for whom.
    struct Job: Sendable {
        enum Purpose: Sendable, Equatable {
            case insertion
            /// Power for a connect or reconnect, which is tried again after it.
            case power
            case reconnect
            case disconnect
            case end
            case transmit
            case control
            /// The reset after a lock's owner went away.
            case reset
            case rest
        }

        var purpose: Purpose
        var client: Client?
        var work: Work
        /// The handle whose caller asked for a reset: it alone is not told of it.
        var spared: UInt32 = 0
    }

    enum Flag: Sendable, Equatable {
        case none, reset, removed

        var code: UInt32? {
            switch self {
            case .none: nil
            case .reset: ServiceCode.resetCard
            case .removed: ServiceCode.removedCard
            }
        }
    }

    struct Handle: Sendable {
        var client: Client
        var reader: Int
        var flag = Flag.none
    }

    /// Whether a client waits for a notice.
    enum Waiting: Sendable, Equatable {
        case no
        case yes
        /// 4:6: the table is still to be sent, and shows every change until then; only a cancel is kept for after it.
        case beforeTable(isCancelled: Bool)
    }

    struct Connection: Sendable {
        var framer = ServiceFramer()
        /// The minor that it spoke. One that only cancels says none.
        var minor: UInt32 = 4
        var context: UInt32 = 0
        var handles: [UInt32] = []
        var waiting = Waiting.no
        /// The message at hand; the next is looked at when its answer was written.
        var request: ServiceRequest?
        var isBusy = false
    }

    /// What becomes of a message.
    enum Step: Sendable {
        case reply([UInt8])
        case noReply
        /// Tried again when something has changed at the reader.
        case hold(reader: Int)
        /// The reader works on it.
        case working
        case close
    }

    var readers: [ServiceReaderState]
    let tableSize: Int
    var connections: [Client: Connection] = [:]
    var handles: [UInt32: Handle] = [:]
    var actions: [Action] = []
    private var random: any RandomNumberGenerator & Sendable
    /// Held clients by reader, in the order in which they came.
    private var held: [Int: [Client]] = [:]
    /// Readers at which something has changed, so that held clients are tried again.
    private var changed: Set<Int> = []

    /// - Parameters:
    ///   - readers: their names; every one is empty.
    ///   - tableSize: entries of the reader table that clients of 4:4 and 4:5 were built with.
    init(readers: [String], tableSize: Int = 16, random: any RandomNumberGenerator & Sendable) {
        self.readers = readers.map { ServiceReaderState(name: $0) }
        self.tableSize = max(tableSize, readers.count)
        self.random = random
    }

    /// Octets of a client that were not looked at yet.
    func pending(of client: Client) -> Int { connections[client]?.framer.pending ?? 0 }

    mutating func handle(_ event: Event) -> [Action] {
        actions = []
        switch event {
        case .opened(let client): connections[client] = Connection()
        case .received(let client, let octets):
            connections[client]?.framer.append(octets)
            pump(client)
        case .written(let client):
            // What is held or at work has no answer yet; what was written then was a notice.
            guard connections[client]?.request == nil else { break }
            connections[client]?.isBusy = false
            pump(client)
        case .closed(let client): leave(client)
        case .done(let reader, let answer, let atr):
            if readers.indices.contains(reader) { finish(reader, answer, atr: atr) }
        case .removed(let reader):
            if readers.indices.contains(reader), readers[reader].isPresent { remove(reader) }
        case .inserted(let reader):
            if readers.indices.contains(reader), !readers[reader].isPresent { insert(reader) }
        case .rested(let reader):
            if readers.indices.contains(reader) { rest(reader) }
        }
        while let reader = changed.popFirst() {
            for client in held.removeValue(forKey: reader) ?? [] { evaluate(client) }
        }
        return actions
    }

    // MARK: - Messages

    private mutating func pump(_ client: Client) {
        while let connection = connections[client], !connection.isBusy {
            do throws(ServiceViolation) {
                guard let request = try connections[client]?.framer.next() else { return }
                connections[client]?.request = request
                connections[client]?.isBusy = true
                evaluate(client)
            } catch {
                drop(client)
                return
            }
        }
    }

    private mutating func evaluate(_ client: Client) {
        guard let request = connections[client]?.request else { return }
        settle(step(client, request), of: client)
    }

    /// Carries out what became of a client's message.
    mutating func settle(_ step: Step, of client: Client) {
        guard connections[client] != nil else { return }
        switch step {
        case .reply(let octets):
            connections[client]?.request = nil
            actions.append(.send(client, octets))
        case .noReply:
            connections[client]?.request = nil
            connections[client]?.isBusy = false
        case .hold(let reader): held[reader, default: []].append(client)
        case .working: break
        case .close: drop(client)
        }
    }

    private mutating func step(_ client: Client, _ request: ServiceRequest) -> Step {
        let body = request.body
        switch request.command {
        case .version: return version(client, body)
        case .establishContext: return establish(client, body)
        case .releaseContext: return release(client, body)
        case .cancel: return cancel(body)
        case .readerTable: return .reply(table(entries: tableSize))
        case .readerTableSize: return .reply(ServiceStruct(UInt32(max(1, readers.count))).octets)
        case .readerTableArray: return tableArray(client)
        case .readerEvents: return .reply(ServiceStruct(UInt32(readers.count), ServiceCode.success).octets)
        case .waitForChange: return wait(client)
        case .stopWaiting: return stopWaiting(client)
        case .connect: return connect(client, body)
        case .reconnect: return reconnect(client, body)
        case .disconnect: return disconnect(client, body)
        case .beginTransaction: return begin(client, body)
        case .endTransaction: return end(client, body)
        case .status: return status(client, body)
        case .transmit: return transmit(client, body, request.data)
        case .control: return control(client, body, request.data)
        case .getAttribute: return getAttribute(client, body)
        case .setAttribute: return setAttribute(client, body)
        }
    }

    private mutating func drop(_ client: Client) {
        leave(client)
        actions.append(.close(client))
    }

    /// A client is gone: its context goes as if it were released.
    private mutating func leave(_ client: Client) {
        guard let connection = connections[client] else { return }
        for handle in connection.handles { letGo(handle) }
        for reader in held.keys { held[reader]?.removeAll { $0 == client } }
        connections[client] = nil
        if connection.context != 0 { tellWhenNobodyIsLeft() }
    }

    // MARK: - What the parts share

    /// Something changed at a reader that held clients may wait for.
    mutating func touched(_ reader: Int) { changed.insert(reader) }

    /// A number for a context or a handle: 1 to 7FFFFFFF, since the library reads it with a sign, and of nobody else.
    mutating func freshNumber() -> UInt32 {
        while true {
            let number = UInt32(truncatingIfNeeded: random.next()) & 0x7FFF_FFFF
            guard number != 0, handles[number] == nil, !connections.values.contains(where: { $0.context == number }) else {
                continue
            }
            return number
        }
    }

    mutating func tellWhenNobodyIsLeft() {
        if !connections.values.contains(where: { $0.context != 0 }) { actions.append(.programsLeft) }
    }
}
