// SPDX-License-Identifier: MIT

/// Versions, contexts, the reader table, and waiting for its changes.
extension ServiceMachine {
    private static let major: UInt32 = 4
    private static let minors: ClosedRange<UInt32> = 4...6

    /// The client's own minor, when it is known here; else ours, with the code at which clients of pcsc-lite 2.4.1 and later ask again.
    ///
    /// An older number than the client's own in a good answer would break clients of 4:6 whose first call waits for a change.
    mutating func version(_ client: Client, _ body: ServiceStruct) -> Step {
        guard body[0] == Self.major, Self.minors.contains(body[4]) else {
            return .reply(ServiceStruct(Self.major, Self.minors.upperBound, ServiceCode.serviceStopped).octets)
        }
        connections[client]?.minor = body[4]
        return .reply(ServiceStruct(Self.major, body[4], ServiceCode.success).octets)
    }

    mutating func establish(_ client: Client, _ body: ServiceStruct) -> Step {
        var reply = body
        reply[8] = ServiceCode.invalidValue
        // Scopes: user, terminal, system, global.
        guard body[0] <= 3 else { return .reply(reply.octets) }
        let context = freshNumber()
        connections[client]?.context = context
        reply[4] = context
        reply[8] = ServiceCode.success
        return .reply(reply.octets)
    }

    mutating func release(_ client: Client, _ body: ServiceStruct) -> Step {
        var reply = body
        guard let connection = connections[client], connection.context != 0, connection.context == body[0] else {
            reply[4] = ServiceCode.invalidHandle
            return .reply(reply.octets)
        }
        connections[client]?.waiting = .no
        for handle in connection.handles { letGo(handle) }
        connections[client]?.context = 0
        tellWhenNobodyIsLeft()
        reply[4] = ServiceCode.success
        return .reply(reply.octets)
    }

    /// Ends another connection's wait. A context that waits for nothing is cancelled with success, as from pcsc-lite 2.0.1 on.
    mutating func cancel(_ body: ServiceStruct) -> Step {
        var reply = body
        guard body[0] != 0, let client = connections.first(where: { $0.value.context == body[0] })?.key else {
            reply[4] = ServiceCode.invalidHandle
            return .reply(reply.octets)
        }
        switch connections[client]?.waiting {
        case .yes: notify(client, ServiceCode.cancelled)
        case .beforeTable: connections[client]?.waiting = .beforeTable(isCancelled: true)
        case .no, nil: break
        }
        reply[4] = ServiceCode.success
        return .reply(reply.octets)
    }

    // MARK: - The reader table

    func table(entries: Int) -> [UInt8] {
        var octets: [UInt8] = []
        octets.reserveCapacity(entries * ServiceLimit.entry)
        for reader in readers.prefix(entries) { octets += reader.entry }
        for _ in 0..<max(0, entries - readers.count) { octets += ServiceReaderState.unusedEntry }
        return octets
    }

    mutating func tableArray(_ client: Client) -> Step {
        let octets = table(entries: max(1, readers.count))
        if case .beforeTable(let isCancelled) = connections[client]?.waiting {
            connections[client]?.waiting = .yes
            if isCancelled {
                // In one piece, so that the notice never stands before the table.
                connections[client]?.waiting = .no
                return .reply(octets + ServiceStruct(0, ServiceCode.cancelled).octets)
            }
        }
        return .reply(octets)
    }

    /// 4:4 and 4:5 have the table in the answer; 4:6 has no answer and asks for the table next.
    mutating func wait(_ client: Client) -> Step {
        guard (connections[client]?.minor ?? 0) >= 6 else {
            connections[client]?.waiting = .yes
            return .reply(table(entries: tableSize))
        }
        connections[client]?.waiting = .beforeTable(isCancelled: false)
        return .noReply
    }

    /// When the notice went out already it is the answer: two would shift everything after them.
    mutating func stopWaiting(_ client: Client) -> Step {
        guard let waiting = connections[client]?.waiting, waiting != .no else { return .noReply }
        connections[client]?.waiting = .no
        return .reply(ServiceStruct(0, waiting == .beforeTable(isCancelled: true) ? ServiceCode.cancelled : 0).octets)
    }

    /// Tells everybody who waits that something changed, once.
    mutating func notifyAll() {
        for client in connections.keys.sorted() where connections[client]?.waiting == .yes { notify(client, ServiceCode.success) }
    }

    private mutating func notify(_ client: Client, _ code: UInt32) {
        connections[client]?.waiting = .no
        actions.append(.send(client, ServiceStruct(0, code).octets))
    }
}
