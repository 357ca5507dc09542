// SPDX-License-Identifier: MIT

import CardCrypto
import Flows
import Foundation
import Octets
import SessionSupport
import Synchronization
import TagTransport
import TestSupport
import Testing
import TraceFile
import Tracing
import VirtualCards

@testable import Replay

/// What passed, in order.
final class Answers: Sendable {
    private let state = Mutex<[(command: [UInt8], answer: [UInt8])]>([])

    var all: [(command: [UInt8], answer: [UInt8])] { state.withLock { $0 } }
    var last: [UInt8]? { all.last?.answer }
    func add(_ command: [UInt8], _ answer: [UInt8]) { state.withLock { $0.append((command, answer)) } }
}

/// Looks at what passes, and may change a command on its way to the card.
final class WatchedTransport: ISO7816TagTransporting, CardConnection, @unchecked Sendable {
    // Unchecked for the base alone, which is a constant and Sendable.
    private let base: RecordedTransport
    private let change: @Sendable (Int, CommandAPDU) -> CommandAPDU
    let passed: Answers

    init(
        _ base: any NFCTagTransport, answers: Answers = Answers(),
        change: @escaping @Sendable (Int, CommandAPDU) -> CommandAPDU = { $1 }
    ) throws {
        passed = answers
        self.base = try #require(base as? RecordedTransport)
        self.change = change
    }

    var identifier: Data { base.identifier }
    var initialAID: String { "" }
    var readerName: String { base.readerName }
    var atr: Data { base.atr }
    var protocolName: String { base.protocolName }

    func send(_ data: Data) async throws -> Data { try await base.send(data) }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let number = passed.all.count
        let sent = change(number, apdu)
        let answer = try await base.sendAPDU(sent)
        passed.add(sent.octets, answer.octets)
        return answer
    }

    func resetCard() async throws -> Data { try await base.resetCard() }
    func removeCard() async throws { try await base.removeCard() }
    func control(code: UInt32, data: Data) async throws -> Data { try await base.control(code: code, data: data) }
}

/// What a run over a recorded card came to.
struct ResealedRun {
    var report: ReplayReport
    var passed: [(command: [UInt8], answer: [UInt8])]

    init(
        _ replay: Replay, seed: UInt64, changed: [String: JSONValue] = [:], keySink: (any KeySink)? = nil,
        change: @escaping @Sendable (Int, CommandAPDU) -> CommandAPDU = { $1 }
    ) async {
        let watched = Mutex<WatchedTransport?>(nil)
        report = await replay.runResealed(seed: seed, changed: changed, keySink: keySink) { transport in
            guard let made = try? WatchedTransport(transport, change: change) else { return transport }
            watched.withLock { $0 = made }
            return made
        }
        passed = watched.withLock { $0?.passed.all ?? [] }
    }

    var text: String { report.text }
}

extension ReplayReport {
    /// How it went, for the comment of an expectation.
    var text: String {
        guard let divergence else { return blocked?.text ?? "same" }
        return
            "\(divergence) \(divergence.kind) \(divergence.field.map { "\($0)" } ?? "") \(divergence.thrown ?? "") \(divergence.notes)"
    }
}

extension Replay {
    private func resealing(_ seed: UInt64) -> Replay {
        var replay = self
        replay.options.mode = .resealed
        replay.options.entropy = .seed(seed)
        return replay
    }

    /// Replays the flow in mode `resealed`, with something around the recorded card.
    func runResealed(
        seed: UInt64, changed: [String: JSONValue] = [:], keySink: (any KeySink)? = nil,
        wrap: @escaping @Sendable (any NFCTagTransport) -> any NFCTagTransport = { $0 }
    ) async -> ReplayReport {
        var replay = resealing(seed)
        replay.options.arguments = changed
        replay.hooks.keySink = keySink
        replay.hooks.wrap = wrap
        return await replay.run()
    }

    func runResealed(
        seed: UInt64, operation: (any NFCTagTransport) async throws -> String?
    ) async -> ReplayReport {
        await resealing(seed).report(of: operation)
    }

    /// The recorded exchanges, of which the answers came.
    var recorded: [(command: [UInt8], answer: [UInt8])] {
        (session.transports.first?.steps ?? []).compactMap { step in
            guard let command = step.command, case .response(let answer)? = step.answer else { return nil }
            return (command.octets, answer.octets)
        }
    }
}

/// Keeps what the library tells of its keys.
final class ToldKeys: KeySink {
    let records = Mutex<[SecretRecord]>([])

    func log(_ name: String, _ octets: [UInt8]) {
        records.withLock { $0.append(SecretRecord(kind: .key, name: name, octets: octets)) }
    }
}

/// A recorded operation of a test's own, which is replayed from code.
struct RecordedOperation {
    let folder: TemporaryFolder
    let replay: Replay

    /// - Parameter keys: what the card knows beside what the library tells.
    init(
        _ card: String, keys: [String: [UInt8]] = [:], _ operation: @Sendable (any NFCTagTransport) async throws -> String?
    ) async throws {
        folder = try TemporaryFolder()
        let recording = try Recording(to: folder("a.pcapng"))
        let transport = recording.wrap(try virtualCard(card))
        _ = try await recording.run { try await operation(transport) }
        try recording.close()
        let store = SecretStore(keys.map { SecretRecord(kind: .key, name: $0.key, octets: $0.value) })
        replay = try Replay(
            of: folder("a.pcapng"), secrets: try SecretStore.load(forTrace: folder("a.pcapng")).store.merging(store))
    }

    /// - Returns: how the run of `operation`, whose result is compared with that of the recorded one, went.
    func run(seed: UInt64, _ operation: @Sendable (any NFCTagTransport) async throws -> String?) async -> ReplayReport {
        await replay.runResealed(seed: seed) { transport in
            try await operation(transport).map { try CanonicalJSON.encode($0) }
        }
    }
}

/// The recorded card asked step by step: the first step not served yet that a command equals, in any order; or what the test says.
final class MatchedTransport: ISO7816TagTransporting, Sendable {
    let matching: any Matching
    private let steps: [RecordedSession.Step]
    private let served = Mutex<Set<Int>>([])
    private let asked = Mutex(0)
    /// An answer that is not in the recording, by the number of the command.
    private let own: [Int: [UInt8]]

    init(_ matching: any Matching, _ steps: [RecordedSession.Step], own: [Int: [UInt8]] = [:]) {
        self.matching = matching
        self.steps = steps
        self.own = own
    }

    var identifier: Data { Data() }
    var initialAID: String { "" }
    func send(_ data: Data) async throws -> Data { throw TransportError.unsupported("frames") }
    var isUsedUp: Bool { served.withLock { $0.count } == steps.count }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let number = asked.withLock { number in
            defer { number += 1 }
            return number
        }
        let command = matching.open(apdu.octets)
        if let answer = own[number] { return try ResponseAPDU(bytes: matching.answer(to: command, with: answer)) }
        let found = served.withLock { served in
            let place = steps.indices.first { place in
                !served.contains(place) && steps[place].command != nil && matching.difference(of: command, from: place) == nil
            }
            if let place { served.insert(place) }
            return place
        }
        guard let found, case .response(let octets) = matching.answer(to: command, from: found) else {
            throw TransportError(.timeout, detail: "command \(number) is not in the recording")
        }
        return try ResponseAPDU(bytes: octets.octets)
    }
}

extension Replay {
    /// The matching of the recorded call, and the steps that it matches.
    func resealed(seed: UInt64) throws -> (matching: ResealedMatching, steps: [RecordedSession.Step]) {
        let call = try #require(session.flowCall ?? session.calls.first)
        let transport = session.transport(try #require(session.transports.first), during: call)
        let matching = try ResealedMatching(
            session, transport: transport, trace: trace, secrets: secrets, arguments: call.arguments, seed: seed)
        return (matching, transport.steps)
    }
}

/// Random octets from a seed, a stream of its own for each label; the system's times.
final class SeededDraws: RandomSource, EnvironmentClock {
    private let seed: UInt64
    private let streams = Mutex<[String: CardRandom]>([:])

    init(seed: UInt64) { self.seed = seed }

    func octets(_ count: Int, label: String) throws(EnvironmentError) -> [UInt8] {
        streams.withLock { streams in
            streams[label, default: CardRandom(seed: seed, use: "test \(label)")].octets(count)
        }
    }

    func nanoseconds(_ kind: ClockKind) throws(EnvironmentError) -> Int64 { try SystemClock().nanoseconds(kind) }
}
