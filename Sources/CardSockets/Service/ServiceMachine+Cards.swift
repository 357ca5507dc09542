// SPDX-License-Identifier: MIT

/// Commands that speak to a card or its reader. The order of the checks is pcscd's: the first that fails answers.
extension ServiceMachine {
    mutating func connect(_ client: Client, _ body: ServiceStruct) -> Step {
        var reply = body
        reply[140] = 0
        reply[144] = 0
        func refuse(_ code: UInt32) -> Step {
            var reply = reply
            reply[148] = code
            return .reply(reply.octets)
        }
        guard let connection = connections[client], connection.context != 0, connection.context == body[0] else {
            return refuse(ServiceCode.invalidHandle)
        }
        let share = body[132]
        let wished = body[136]
        if share != ShareMode.direct, wished & CardProtocols.all == 0 { return refuse(ServiceCode.protocolMismatch) }
        guard (ShareMode.exclusive...ShareMode.direct).contains(share) else { return refuse(ServiceCode.invalidValue) }
        let name = body.text(4..<132)
        guard !name.isEmpty, let index = readers.firstIndex(where: { $0.name == name }) else {
            return refuse(ServiceCode.unknownReader)
        }
        let reader = readers[index]
        if reader.sharing < 0 { return refuse(ServiceCode.sharingViolation) }
        if reader.owner != 0 || reader.job != nil { return .hold(reader: index) }
        var inForce = reader.inForce
        if share != ShareMode.direct {
            switch reader.card {
            case .absent: return refuse(ServiceCode.noSmartcard)
            case .mute: return refuse(ServiceCode.unresponsiveCard)
            case .resting, .unpowered: return powerUp(index, for: client)
            case .powered: break
            }
            let offered = CardProtocols.offered(by: reader.atr)
            guard let chosen = CardProtocols.chosen(wished: wished, offered: offered, inForce: inForce) else {
                return refuse(ServiceCode.protocolMismatch)
            }
            inForce = chosen
        }
        if share == ShareMode.exclusive, reader.sharing > 0 { return refuse(ServiceCode.sharingViolation) }
        guard connection.handles.count < ServiceLimit.each, reader.sharing < ServiceLimit.each else {
            return refuse(ServiceCode.noMemory)
        }
        let handle = freshNumber()
        handles[handle] = Handle(client: client, reader: index)
        connections[client]?.handles.append(handle)
        readers[index].inForce = inForce
        if share == ShareMode.exclusive {
            readers[index].sharing = -1
            readers[index].owner = handle
            readers[index].lockCount = 1
        } else {
            readers[index].sharing += 1
        }
        notifyAll()
        touched(index)
        reply[140] = handle
        reply[144] = inForce
        reply[148] = ServiceCode.success
        return .reply(reply.octets)
    }

    mutating func reconnect(_ client: Client, _ body: ServiceStruct) -> Step {
        guard let handle = own(body[0], client) else { return .close }
        let reader = readers[handle.reader]
        let share = body[4]
        let initialization = body[12]
        guard initialization <= Disposition.unpower, (ShareMode.exclusive...ShareMode.direct).contains(share) else {
            return reply(body, ServiceCode.invalidValue, at: 20)
        }
        if share != ShareMode.direct, body[8] & CardProtocols.all == 0 {
            return reply(body, ServiceCode.protocolMismatch, at: 20)
        }
        if reader.isLocked(against: body[0]) { return reply(body, ServiceCode.sharingViolation, at: 20) }
        if reader.job != nil { return .hold(reader: handle.reader) }
        guard reader.isPresent else { return reply(body, ServiceCode.noSmartcard, at: 20) }
        if initialization != Disposition.leave {
            return start(handle.reader, Job(purpose: .reconnect, client: client, work: .reset, spared: body[0]))
        }
        switch reader.card {
        case .resting, .unpowered: return powerUp(handle.reader, for: client)
        case .mute: return reply(body, ServiceCode.unresponsiveCard, at: 20)
        case .absent, .powered: return finishReconnect(body, handle)
        }
    }

    /// The second half of a reconnect, when the card has been reset or was left as it was.
    func reconnected(_ body: ServiceStruct, _ reader: ServiceReaderState) -> Result<UInt32, RefusalCode> {
        let share = body[4]
        var inForce = reader.inForce
        if share != ShareMode.direct {
            let offered = CardProtocols.offered(by: reader.atr)
            guard let chosen = CardProtocols.chosen(wished: body[8], offered: offered, inForce: inForce) else {
                return .failure(RefusalCode(code: ServiceCode.protocolMismatch))
            }
            inForce = chosen
        }
        if share == ShareMode.exclusive, reader.sharing > 1 { return .failure(RefusalCode(code: ServiceCode.sharingViolation)) }
        return .success(inForce)
    }

    struct RefusalCode: Error {
        var code: UInt32
    }

    mutating func finishReconnect(_ body: ServiceStruct, _ handle: Handle) -> Step {
        let index = handle.reader
        switch reconnected(body, readers[index]) {
        case .failure(let refusal): return reply(body, refusal.code, at: 20)
        case .success(let inForce):
            let wasExclusive = readers[index].sharing < 0
            let isExclusive = body[4] == ShareMode.exclusive
            if isExclusive, !wasExclusive {
                readers[index].sharing = -1
                readers[index].owner = body[0]
                readers[index].lockCount += 1
            } else if wasExclusive, !isExclusive {
                // pcscd 1.9.9 leaves its lock in place here, and the next connect of anybody hangs.
                readers[index].sharing = 1
                readers[index].unlock()
            } else if isExclusive, readers[index].owner == 0 {
                // A removal dropped its lock.
                readers[index].owner = body[0]
                readers[index].lockCount = 1
            }
            readers[index].inForce = inForce
            handles[body[0]]?.flag = .none
            if isExclusive != wasExclusive { notifyAll() }
            touched(index)
            var body = body
            body[16] = inForce
            return reply(body, ServiceCode.success, at: 20)
        }
    }

    mutating func disconnect(_ client: Client, _ body: ServiceStruct) -> Step {
        guard let handle = own(body[0], client) else { return .close }
        let reader = readers[handle.reader]
        guard body[4] <= Disposition.eject else { return reply(body, ServiceCode.invalidValue, at: 8) }
        if body[4] != Disposition.leave {
            if reader.isLocked(against: body[0]) || reader.job != nil { return .hold(reader: handle.reader) }
            if reader.isPresent {
                let work = work(for: body[4])
                return start(handle.reader, Job(purpose: .disconnect, client: client, work: work, spared: body[0]))
            }
        }
        return finishDisconnect(body)
    }

    mutating func finishDisconnect(_ body: ServiceStruct) -> Step {
        close(body[0])
        return reply(body, ServiceCode.success, at: 8)
    }

    mutating func begin(_ client: Client, _ body: ServiceStruct) -> Step {
        guard let handle = own(body[0], client) else { return .close }
        let reader = readers[handle.reader]
        if let code = handle.flag.code { return reply(body, code, at: 4) }
        if reader.isLocked(against: body[0]) { return reply(body, ServiceCode.sharingViolation, at: 4) }
        readers[handle.reader].owner = body[0]
        readers[handle.reader].lockCount += 1
        return reply(body, ServiceCode.success, at: 4)
    }

    mutating func end(_ client: Client, _ body: ServiceStruct) -> Step {
        guard let handle = own(body[0], client) else { return .close }
        let reader = readers[handle.reader]
        guard body[4] <= Disposition.eject else { return reply(body, ServiceCode.invalidValue, at: 8) }
        if let code = handle.flag.code { return reply(body, code, at: 8) }
        if body[4] != Disposition.leave {
            if reader.isLocked(against: body[0]) { return reply(body, ServiceCode.sharingViolation, at: 8) }
            if reader.job != nil { return .hold(reader: handle.reader) }
            if reader.isPresent {
                return start(handle.reader, Job(purpose: .end, client: client, work: work(for: body[4])))
            }
        }
        return finishEnd(body, handle)
    }

    mutating func finishEnd(_ body: ServiceStruct, _ handle: Handle) -> Step {
        let reader = readers[handle.reader]
        if reader.isLocked(against: body[0]) { return reply(body, ServiceCode.sharingViolation, at: 8) }
        guard reader.owner == body[0] else { return reply(body, ServiceCode.notTransacted, at: 8) }
        // An exclusive handle keeps the level that came with its connect.
        guard reader.sharing >= 0 || reader.lockCount > 1 else { return reply(body, ServiceCode.notTransacted, at: 8) }
        readers[handle.reader].unlock()
        touched(handle.reader)
        return reply(body, ServiceCode.success, at: 8)
    }

    /// Only the code: what is shown as state, protocol and answer to reset comes from the table.
    mutating func status(_ client: Client, _ body: ServiceStruct) -> Step {
        guard let handle = own(body[0], client) else { return .close }
        if readers[handle.reader].isLocked(against: body[0]) { return reply(body, ServiceCode.sharingViolation, at: 4) }
        return reply(body, handle.flag.code ?? ServiceCode.success, at: 4)
    }

    mutating func transmit(_ client: Client, _ body: ServiceStruct, _ command: [UInt8]) -> Step {
        guard let handle = own(body[0], client) else { return .close }
        let reader = readers[handle.reader]
        var failed = body
        failed[24] = 0
        if reader.isLocked(against: body[0]) { return reply(failed, ServiceCode.sharingViolation, at: 28) }
        if let code = handle.flag.code { return reply(failed, code, at: 28) }
        guard reader.isPresent else { return reply(failed, ServiceCode.noSmartcard, at: 28) }
        guard body[4] == reader.inForce || body[4] == CardProtocols.raw else {
            return reply(failed, ServiceCode.protocolMismatch, at: 28)
        }
        guard !command.isEmpty else { return reply(failed, ServiceCode.invalidParameter, at: 28) }
        if reader.job != nil { return .hold(reader: handle.reader) }
        return start(handle.reader, Job(purpose: .transmit, client: client, work: .transmit(command)))
    }

    /// The flag of a reset or removal is not looked at: the reader itself can be spoken to after either.
    mutating func control(_ client: Client, _ body: ServiceStruct, _ input: [UInt8]) -> Step {
        guard let handle = own(body[0], client) else { return .close }
        let reader = readers[handle.reader]
        var failed = body
        failed[16] = 0
        if reader.isLocked(against: body[0]) { return reply(failed, ServiceCode.sharingViolation, at: 20) }
        if reader.job != nil { return .hold(reader: handle.reader) }
        return start(handle.reader, Job(purpose: .control, client: client, work: .control(body[4], input)))
    }

    // MARK: - Attributes

    private static let atrString: UInt32 = 0x0009_0303
    private static let presence: UInt32 = 0x0009_0300
    private static let friendlyName: UInt32 = 0x7FFF_0003
    private static let systemName: UInt32 = 0x7FFF_0004
    private static let vendorName: UInt32 = 0x0001_0100

    mutating func getAttribute(_ client: Client, _ body: ServiceStruct) -> Step {
        guard let handle = own(body[0], client), body[272] <= UInt32(ServiceLimit.attribute) else { return .close }
        let reader = readers[handle.reader]
        var failed = body
        failed[272] = 0
        if reader.isLocked(against: body[0]) { return reply(failed, ServiceCode.sharingViolation, at: 276) }
        if let code = handle.flag.code { return reply(failed, code, at: 276) }
        let value: [UInt8]
        switch body[4] {
        case Self.atrString:
            guard reader.isPresent else { return reply(failed, ServiceCode.noSmartcard, at: 276) }
            value = Array(reader.atr.prefix(ServiceLimit.atr))
        case Self.friendlyName, Self.systemName: value = reader.name + [0]
        case Self.vendorName: value = Array("Tapdeck".utf8) + [0]
        case Self.presence: value = [reader.isPresent ? 2 : 0]
        default: return reply(failed, ServiceCode.unsupportedFeature, at: 276)
        }
        var reply = body
        reply.put(value, in: 8..<8 + ServiceLimit.attribute)
        reply[272] = UInt32(value.count)
        return self.reply(reply, ServiceCode.success, at: 276)
    }

    mutating func setAttribute(_ client: Client, _ body: ServiceStruct) -> Step {
        guard let handle = own(body[0], client), body[272] <= UInt32(ServiceLimit.attribute) else { return .close }
        if readers[handle.reader].isLocked(against: body[0]) { return reply(body, ServiceCode.sharingViolation, at: 276) }
        return reply(body, handle.flag.code ?? ServiceCode.unsupportedFeature, at: 276)
    }

    // MARK: - Handles

    /// A handle of this client; another's, or none's, is what no libpcsclite sends.
    private func own(_ number: UInt32, _ client: Client) -> Handle? {
        guard let handle = handles[number], handle.client == client else { return nil }
        return handle
    }

    private func work(for disposition: UInt32) -> Work {
        switch disposition {
        case Disposition.unpower: .powerOff
        case Disposition.eject: .eject
        default: .reset
        }
    }

    func reply(_ body: ServiceStruct, _ code: UInt32, at place: Int) -> Step {
        var body = body
        body[place] = code
        return .reply(body.octets)
    }
}
