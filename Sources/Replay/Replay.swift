// SPDX-License-Identifier: MIT

import CardCrypto
import Flows
import FoundationEssentials
import Octets
public import TagTransport
import TraceDecoding
public import TraceFile

/// A recorded session, ready to be played back to the library: every command is compared with the recorded one, in order, and
/// answered with the recorded answer; random octets and times are handed out again. No reader can be reached.
///
/// ```swift
/// try await Replay(of: "a.pcapng").run { transport in
///     try await CoreExtendedNFC.readPassport(transport: transport, mrzKey: key)
/// }
/// ```
public struct Replay: Sendable {
    let session: RecordedSession
    let trace: Trace
    let secrets: SecretStore

    /// Reads a trace and its secrets: those inside it, beside it, or `secrets` when given.
    ///
    /// - Throws: `TraceFileError`.
    public init(of path: String, secrets: SecretStore? = nil) throws(TraceFileError) {
        let trace = try Trace.load(path: path)
        if let secrets {
            self.init(of: trace, secrets: secrets)
        } else {
            let found = try SecretStore.load(forTrace: path, session: trace.header.session, embedded: trace.secrets)
            self.init(of: trace, secrets: found.store)
        }
    }

    public init(of trace: Trace, secrets: SecretStore) {
        self.trace = trace
        self.secrets = secrets
        session = RecordedSession(trace, secrets: secrets)
    }

    /// Why ``run()`` could not be tried; nil when it can.
    public var readiness: Blocked? {
        if case .failure(let blocked) = plan() { return blocked }
        return nil
    }

    /// Replays the first call that a flow of the table made, with its recorded arguments.
    public func run() async -> ReplayReport {
        let call: RecordedSession.Call
        let flow: AnyFlow
        switch plan() {
        case .failure(let blocked): return report(.blocked(blocked))
        case .success(let plan): (call, flow) = plan
        }
        let arguments = JSONValue.object(call.arguments).text
        let reader = RecordedReader(session, flow: call, trace: trace, secrets: secrets)
        let world = reader.world
        return await play(call) { transport in
            // Time does not pass in a replay.
            try await FlowClock.$runs.withValue(false) {
                try await CredentialWorld.$current.withValue(world) {
                    try await flow.run(argumentsJSON: arguments, over: transport) { _ in }
                }
            }
        }
    }

    /// The call to run again and its flow, when everything that they want is at hand.
    private func plan() -> Result<(RecordedSession.Call, AnyFlow), Blocked> {
        guard let call = session.flowCall, let name = call.row.flow else {
            guard let own = session.calls.first(where: { $0.row.parent == nil }) else {
                return .failure(Blocked(reason: .noCall, text: "it holds no call of a flow, so nothing in it can be run again"))
            }
            let text = "its call was made by a program's own code: \(own.row.function)"
            return .failure(Blocked(reason: .callFromCode(own.row.function), text: text))
        }
        guard let flow = FlowTable.named(name) else {
            return .failure(Blocked(reason: .unknownFlow(name), text: "its flow is \(name), which this version does not have"))
        }
        if let draw = session.missingDraws(of: call).first {
            return .failure(Blocked(reason: .entropy(draw.label), text: "the random bytes of this session are not here"))
        }
        if let argument = call.missingArguments.first {
            let name = argument.split(separator: ":").last.map(String.init) ?? argument
            return .failure(Blocked(reason: .argument(name), text: "\(name) of this session is not here"))
        }
        return .success((call, flow))
    }

    /// Replays `operation` over the recorded card and returns what it returns.
    ///
    /// - Throws: ``Divergence`` where the run parts from the recording, ``Blocked`` when it cannot be tried; else what
    ///   `operation` throws, when that is what was recorded.
    public func run<Result: Sendable>(_ operation: @Sendable (any NFCTagTransport) async throws -> Result) async throws -> Result
    {
        guard let call = session.calls.first(where: { $0.row.parent == nil }) else {
            throw Blocked(reason: .noCall, text: "the trace holds no call")
        }
        if let draw = session.missingDraws(of: call).first {
            throw Blocked(reason: .entropy(draw.label), text: "the random bytes of this session are not here")
        }
        let outcome = Outcome<Result>()
        let report = await play(call) { transport in
            do {
                let result = try await operation(transport)
                outcome.set(.success(result))
                return (result as? any Encodable).flatMap { try? CanonicalJSON.encode($0) }
            } catch {
                outcome.set(.failure(error))
                throw error
            }
        }
        switch report.verdict {
        case .same: break
        case .differs(let divergence): throw divergence
        case .blocked(let blocked): throw blocked
        }
        guard let result = outcome.value else { throw Blocked(reason: .noCall, text: "the operation did not run") }
        return try result.get()
    }

    // MARK: - One run

    private func report(_ verdict: ReplayReport.Verdict) -> ReplayReport {
        let exchanges = session.transports.reduce(0) { $0 + $1.steps.count(where: \.isExchange) }
        return ReplayReport(exchanges: exchanges, verdict: verdict)
    }

    /// Runs `operation` over the first recorded transport and compares.
    ///
    /// - Returns: a report; the operation's result is compared as canonical JSON with the recorded one, nil is not compared.
    private func play(
        _ call: RecordedSession.Call, _ operation: (any NFCTagTransport) async throws -> String?
    ) async -> ReplayReport {
        let whole =
            session.transports.first { $0.row.id == call.row.transport } ?? session.transports.first
            ?? RecordedSession.Transport(row: MetaRow.Transport(id: 1, kind: .iso7816), readerName: "recorded card")
        let transport = session.transport(whole, during: call)
        let card = RecordedCard(transport)
        let draws = ReplayDraws(call: call, secrets: secrets)
        var result: Result<String?, any Error>
        let start = ContinuousClock.now
        do {
            result = .success(
                try await CardEnvironment.with(draws.environment) { try await operation(RecordedTransport.make(card)) }
            )
        } catch {
            result = .failure(error)
        }
        let elapsed = ContinuousClock.now - start
        let comparison = Comparison(session: session, trace: trace, secrets: secrets, call: call, card: card, draws: draws)
        var report = report(comparison.verdict(of: result))
        report.exchanges = transport.steps.count(where: \.isExchange)
        report.seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        report.notCompared = transport.steps.count { step in
            switch step {
            case .apdu(_, let command, _), .frame(_, let command, _): !command.unknown.isEmpty
            default: false
            }
        }
        return report
    }
}

/// What an operation came to, kept on its way out of a closure that may return only text.
private final class Outcome<Value: Sendable>: @unchecked Sendable {
    // Unchecked: written once, by the one task that `play` awaits, and read after it.
    private(set) var value: Result<Value, any Error>?

    func set(_ value: Result<Value, any Error>) { self.value = value }
}
