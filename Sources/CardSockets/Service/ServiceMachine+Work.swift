// SPDX-License-Identifier: MIT

/// What the readers do, and what becomes of handles, locks and waiting clients through it.
extension ServiceMachine {
    mutating func start(_ reader: Int, _ job: Job) -> Step {
        readers[reader].job = job
        actions.append(.work(reader: reader, job.work))
        return .working
    }

    /// Powers the card for a connect or reconnect, which is tried again after it.
    mutating func powerUp(_ reader: Int, for client: Client) -> Step {
        _ = start(reader, Job(purpose: .power, client: nil, work: .powerOn))
        return .hold(reader: reader)
    }

    mutating func finish(_ index: Int, _ answer: ReaderAnswer, atr: [UInt8]) {
        guard let job = readers[index].job else { return }
        readers[index].job = nil
        settleCard(index, job, answer, atr: atr)
        if case .removed = answer, readers[index].isPresent {
            remove(index)
        }
        if let client = job.client, let body = connections[client]?.request?.body {
            settle(outcome(job, body, answer), of: client)
        }
        touched(index)
        if readers[index].job == nil, readers[index].owesReset {
            readers[index].owesReset = false
            if readers[index].isPresent { _ = start(index, Job(purpose: .reset, client: nil, work: .reset)) }
        }
        if readers[index].job == nil, readers[index].owesInsertion { insert(index) }
    }

    /// The card after power or a reset.
    private mutating func settleCard(_ index: Int, _ job: Job, _ answer: ReaderAnswer, atr: [UInt8]) {
        switch job.work {
        case .powerOn:
            guard readers[index].isPresent || job.purpose == .insertion else { return }
            settlePower(index, answer, atr: atr)
            guard job.purpose == .insertion else { return }
            readers[index].events &+= 1
            notifyAll()
            actions.append(.came(reader: index))
        case .reset:
            guard readers[index].isPresent else { return }
            settlePower(index, answer, atr: atr)
            flag(index, .reset, but: job.spared)
        case .powerOff, .eject:
            guard readers[index].isPresent else { return }
            readers[index].inForce = 0
            if job.purpose == .rest {
                readers[index].card = .resting
            } else {
                readers[index].card = .unpowered
                flag(index, .reset, but: job.spared)
                notifyAll()
            }
        case .transmit, .control: break
        }
    }

    private mutating func settlePower(_ index: Int, _ answer: ReaderAnswer, atr: [UInt8]) {
        readers[index].inForce = 0
        if case .octets = answer, !atr.isEmpty {
            readers[index].card = .powered
            readers[index].atr = Array(atr.prefix(ServiceLimit.atr))
        } else {
            readers[index].card = .mute
            readers[index].atr = []
        }
    }

    /// The answer to the client for whom a reader worked.
    private mutating func outcome(_ job: Job, _ body: ServiceStruct, _ answer: ReaderAnswer) -> Step {
        switch job.purpose {
        case .transmit: return transmitted(body, answer)
        case .control: return controlled(body, answer)
        case .reconnect:
            guard let handle = handles[body[0]] else { return .close }
            switch answer {
            case .octets where readers[handle.reader].card == .mute: return reply(body, ServiceCode.unresponsiveCard, at: 20)
            case .octets: return finishReconnect(body, handle)
            case .failed(let code), .removed(let code): return reply(body, code, at: 20)
            }
        case .disconnect: return finishDisconnect(body)
        case .end:
            guard let handle = handles[body[0]] else { return .close }
            if case .failed(let code) = answer { return reply(body, code, at: 8) }
            return finishEnd(body, handle)
        case .insertion, .power, .reset, .rest: return .close
        }
    }

    /// Where the answer is longer than the caller's room, its length goes back without it: the card has executed the command.
    private func transmitted(_ body: ServiceStruct, _ answer: ReaderAnswer) -> Step {
        var body = body
        let room = body[24]
        body[24] = 0
        guard let handle = handles[body[0]] else { return .close }
        // Somebody took the card out meanwhile: what it said is lost.
        if handle.flag == .removed, case .octets = answer { return reply(body, ServiceCode.removedCard, at: 28) }
        switch answer {
        case .failed(let code), .removed(let code): return reply(body, code, at: 28)
        case .octets(let octets):
            guard octets.count <= ServiceLimit.apdu else { return reply(body, ServiceCode.communicationFailed, at: 28) }
            body[24] = UInt32(octets.count)
            guard octets.count <= room else { return reply(body, ServiceCode.insufficientBuffer, at: 28) }
            // The reader's own numbers for protocols: 0 for T=0, 1 for T=1.
            body[16] = body[4] == CardProtocols.raw ? CardProtocols.raw : body[4] >> 1
            body[28] = ServiceCode.success
            return .reply(body.octets + octets)
        }
    }

    /// CM_IOCTL_GET_FEATURE_REQUEST (PC/SC part 10): a reader without features says so with no octets.
    private static let featureRequest: UInt32 = 0x4200_0D48

    private func controlled(_ body: ServiceStruct, _ answer: ReaderAnswer) -> Step {
        var body = body
        body[16] = 0
        switch answer {
        case .failed(ServiceCode.unsupportedFeature) where body[4] == Self.featureRequest:
            return reply(body, ServiceCode.success, at: 20)
        case .failed(let code), .removed(let code): return reply(body, code, at: 20)
        case .octets(let octets):
            guard octets.count <= body[12], octets.count <= ServiceLimit.apdu else {
                return reply(body, ServiceCode.insufficientBuffer, at: 20)
            }
            body[16] = UInt32(octets.count)
            body[20] = ServiceCode.success
            return .reply(body.octets + octets)
        }
    }

    // MARK: - Insertion, removal, rest

    mutating func insert(_ index: Int) {
        guard readers[index].job == nil else {
            readers[index].owesInsertion = true
            return
        }
        readers[index].owesInsertion = false
        _ = start(index, Job(purpose: .insertion, client: nil, work: .powerOn))
    }

    mutating func remove(_ index: Int) {
        readers[index].card = .absent
        readers[index].atr = []
        readers[index].inForce = 0
        readers[index].events &+= 1
        readers[index].owesReset = false
        readers[index].dropLock()
        flag(index, .removed, but: 0)
        notifyAll()
        touched(index)
        actions.append(.left(reader: index))
    }

    mutating func rest(_ index: Int) {
        guard readers[index].sharing == 0, readers[index].job == nil, readers[index].card == .powered else { return }
        _ = start(index, Job(purpose: .rest, client: nil, work: .powerOff))
    }

    private mutating func flag(_ index: Int, _ flag: Flag, but spared: UInt32) {
        for number in handles.keys where handles[number]?.reader == index && number != spared {
            // A removal outlasts a reset: the handle's card is another one's place now.
            if handles[number]?.flag != .removed { handles[number]?.flag = flag }
        }
    }

    // MARK: - The end of handles

    /// A handle goes with its context: like a disconnect that leaves the card, but the owner of the lock leaves a reset card behind.
    mutating func letGo(_ number: UInt32) {
        guard let handle = handles[number] else { return }
        let reader = readers[handle.reader]
        if reader.owner == number, handle.flag == .none, reader.isPresent {
            if reader.job == nil {
                _ = start(handle.reader, Job(purpose: .reset, client: nil, work: .reset))
            } else {
                readers[handle.reader].owesReset = true
            }
        }
        close(number)
    }

    /// Forgets a handle and what it holds.
    mutating func close(_ number: UInt32) {
        guard let handle = handles.removeValue(forKey: number) else { return }
        let index = handle.reader
        connections[handle.client]?.handles.removeAll { $0 == number }
        if readers[index].owner == number { readers[index].dropLock() }
        readers[index].sharing = readers[index].sharing < 0 ? 0 : max(0, readers[index].sharing - 1)
        notifyAll()
        touched(index)
        if readers[index].sharing == 0 { actions.append(.rest(reader: index)) }
    }
}
