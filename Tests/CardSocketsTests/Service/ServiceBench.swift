// SPDX-License-Identifier: MIT

import Octets
import TestSupport

@testable import CardSockets

/// A machine whose clients take every answer at once, and whose cards answer as they are told.
final class ServiceBench {
    struct Numbers: RandomNumberGenerator, Sendable {
        var given: [UInt32]
        var last: UInt32 = 0x0101_0000

        mutating func next() -> UInt64 {
            guard given.isEmpty else { return UInt64(given.removeFirst()) }
            last += 1
            return UInt64(last)
        }
    }

    static let atr: [UInt8] = [0x3B, 0x80, 0x80, 0x01, 0x01]
    static let name = "Virtual PCD 00 00"

    var machine: ServiceMachine
    /// What was sent to each client and was not looked at.
    var sent: [Int: [UInt8]] = [:]
    var closed: Set<Int> = []
    /// Everything the readers were asked, in order.
    var works: [ServiceMachine.Work] = []
    var others: [ServiceMachine.Action] = []
    /// Works that wait for ``finish(_:)``.
    var waiting: [Int] = []
    /// What a reader does; nil leaves it at work.
    var answer: (ServiceMachine.Work) -> ReaderAnswer?

    init(
        readers: [String] = [name], inserted: [Int] = [0], tableSize: Int = 16, numbers: [UInt32] = [],
        answer: @escaping (ServiceMachine.Work) -> ReaderAnswer? = ServiceBench.echo
    ) {
        machine = ServiceMachine(readers: readers, tableSize: tableSize, random: Numbers(given: numbers))
        self.answer = ServiceBench.echo
        for reader in inserted { feed(.inserted(reader: reader)) }
        works = []
        others = []
        self.answer = answer
    }

    /// A command comes back with `9000`.
    static func echo(_ work: ServiceMachine.Work) -> ReaderAnswer? {
        switch work {
        case .transmit(let command): .octets(command + [0x90, 0x00])
        case .powerOn, .reset: .octets(atr)
        case .powerOff, .eject: .octets([])
        case .control: .failed(ServiceCode.unsupportedFeature)
        }
    }

    func feed(_ event: ServiceMachine.Event) {
        var events = [event]
        while !events.isEmpty {
            for action in machine.handle(events.removeFirst()) {
                switch action {
                case .send(let client, let octets):
                    sent[client, default: []] += octets
                    events.append(.written(client))
                case .close(let client): closed.insert(client)
                case .work(let reader, let work):
                    works.append(work)
                    if let answer = answer(work) {
                        events.append(.done(reader: reader, answer, atr: Self.atr))
                    } else {
                        waiting.append(reader)
                    }
                default: others.append(action)
                }
            }
        }
    }

    /// Ends the work that waits longest.
    func finish(_ answer: ReaderAnswer) {
        guard !waiting.isEmpty else { return }
        feed(.done(reader: waiting.removeFirst(), answer, atr: Self.atr))
    }

    /// What a client was sent since the last look, as hex.
    func taken(_ client: Int) -> String { Hex.encode(sent.removeValue(forKey: client) ?? []) }

    /// A client's octets, and what comes back at once.
    @discardableResult
    func say(_ client: Int, _ octets: [UInt8]) -> [UInt8] {
        feed(.received(client, octets))
        return sent.removeValue(forKey: client) ?? []
    }

    // MARK: - Messages

    /// A client that spoke its version and has a context.
    func client(_ id: Int, minor: UInt32 = 4) -> UInt32 {
        feed(.opened(id))
        say(id, Self.message(.version, [4, minor, 0]))
        return ServiceStruct(say(id, Self.message(.establishContext, [2, 0, 0])))[4]
    }

    static func message(_ command: ServiceCommand, _ numbers: [UInt32], _ data: [UInt8] = []) -> [UInt8] {
        let body = numbers.flatMap { ServiceStruct.octets(of: $0) }
        return ServiceStruct(UInt32(body.count), command.rawValue).octets + body + data
    }

    static func connectMessage(_ context: UInt32, share: UInt32, protocols: UInt32, name: String = name) -> [UInt8] {
        let padded = Array(name.utf8) + [UInt8](repeating: 0, count: 128 - name.utf8.count)
        let head = ServiceStruct(152, ServiceCommand.connect.rawValue, context).octets
        return head + padded + ServiceStruct(share, protocols, 0, 0, 0).octets
    }

    /// The answer's handle, protocol and code.
    @discardableResult
    func connect(
        _ client: Int, _ context: UInt32, share: UInt32 = ShareMode.shared, protocols: UInt32 = 3, name: String = name
    ) -> (handle: UInt32, protocol: UInt32, code: UInt32)? {
        let reply = say(client, Self.connectMessage(context, share: share, protocols: protocols, name: name))
        guard reply.count == 152 else { return nil }
        let body = ServiceStruct(reply)
        return (body[140], body[144], body[148])
    }

    static func transmitMessage(_ handle: UInt32, _ command: [UInt8], room: UInt32 = 70_000, protocol: UInt32 = 2) -> [UInt8] {
        message(.transmit, [handle, `protocol`, 16, UInt32(command.count), 3, 16, room, 0], command)
    }

    /// The answer's code and octets; nil when none came yet.
    @discardableResult
    func transmit(
        _ client: Int, _ handle: UInt32, _ command: [UInt8] = [0, 0xA4, 4, 0], room: UInt32 = 70_000, protocol: UInt32 = 2
    ) -> (code: UInt32, octets: [UInt8])? {
        let reply = say(client, Self.transmitMessage(handle, command, room: room, protocol: `protocol`))
        guard reply.count >= 32 else { return nil }
        return (ServiceStruct(reply)[28], Array(reply.dropFirst(32)))
    }

    /// The code at the end of the answer to a command of numbers; nil when none came yet.
    func code(_ client: Int, _ command: ServiceCommand, _ numbers: UInt32...) -> UInt32? {
        let reply = say(client, Self.message(command, numbers))
        guard reply.count == command.structSize else { return nil }
        return ServiceStruct(reply)[command.structSize - 4]
    }
}
