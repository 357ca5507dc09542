// SPDX-License-Identifier: MIT

import CardCrypto
import Flows
import FoundationEssentials
import GrammarLibrary
import Octets
public import TagTransport
import TraceDecoding
public import TraceFile
public import Tracing

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
    /// How it is played; by default every command must be as recorded and nothing is waited for.
    public var options: ReplayOptions
    package var hooks = ReplayHooks()

    /// Reads a trace and its secrets: those inside it, beside it, or `secrets` when given.
    ///
    /// - Throws: `TraceFileError`.
    public init(of path: String, secrets: SecretStore? = nil, options: ReplayOptions = ReplayOptions()) throws(TraceFileError) {
        let trace = try Trace.load(path: path)
        if let secrets {
            self.init(of: trace, secrets: secrets, options: options)
        } else {
            let found = try SecretStore.load(forTrace: path, session: trace.header.session, embedded: trace.secrets)
            self.init(of: trace, secrets: found.store, options: options)
        }
    }

    public init(of trace: Trace, secrets: SecretStore, options: ReplayOptions = ReplayOptions()) {
        self.trace = trace
        self.options = options
        self.secrets = secrets
        session = RecordedSession(trace, secrets: secrets)
    }

    /// Why ``run()`` could not be tried; nil when it can.
    public var readiness: Blocked? {
        switch plan() {
        case .failure(let blocked): return blocked
        case .success(let plan):
            if case .failure(let blocked) = prepare(plan.call, plan.mode) { return blocked }
            return nil
        }
    }

    /// The mode that ``run()`` takes; nil when it is blocked.
    public var chosenMode: ReplayMode? { (try? plan().get())?.mode }

    /// What ``run()`` cannot make anew and will answer as it was recorded: a signature over a challenge of the run.
    public var cautions: [String] {
        guard let plan = try? plan().get(), plan.mode == .resealed, let stage = try? prepare(plan.call, plan.mode).get() else {
            return []
        }
        return stage.notes
    }

    /// Replays the first call that a flow of the table made, with its recorded arguments or those given in their place.
    public func run() async -> ReplayReport {
        switch plan() {
        case .failure(let blocked): return report(.blocked(blocked))
        case .success(let plan): return await play(plan.call, plan.mode, { try await run(plan, over: $0) })
        }
    }

    /// Replays as ``run()`` does and records the run, so that the new trace can take the place of the old one.
    ///
    /// Each answer that is not in the recording is a mark in the new trace.
    /// - Throws: ``Blocked``; `TraceFileError` when the trace cannot be written.
    public func record(to path: String, secrets placement: SecretsPlacement) async throws -> ReplayReport {
        let plan = try plan().get()
        let recording = try Recording(to: path, secrets: placement)
        let report = await play(
            plan.call, plan.mode,
            { transport in
                // Time does not pass in a replay.
                try await timed {
                    try await CredentialWorld.$current.withValue(world(of: plan.call)) {
                        try await recording.run(flow: plan.flow, argumentsJSON: plan.argumentsJSON, over: transport)
                    }
                }
            },
            onGuess: { guess in recording.mark("\(guess.command) was not recorded: answered \(guess.answer) (\(guess.policy))") })
        try recording.close()
        return report
    }

    private func run(_ plan: Plan, over transport: any NFCTagTransport) async throws -> String? {
        try await timed {
            try await CredentialWorld.$current.withValue(world(of: plan.call)) {
                try await plan.flow.run(argumentsJSON: plan.argumentsJSON, over: transport) { _ in }
            }
        }
    }

    /// What a flow waits passes as fast as the recorded answers do.
    private func timed<Result: Sendable>(_ operation: () async throws -> Result) async throws -> Result {
        try await FlowClock.$runs.withValue(options.timeScale > 0) {
            try await FlowClock.$scale.withValue(options.timeScale) { try await operation() }
        }
    }

    private func world(of call: RecordedSession.Call) -> CredentialWorld {
        RecordedReader(session, flow: call, trace: trace, secrets: secrets).world
    }

    // MARK: - Plans

    /// The call to run again, its flow, and how it is compared.
    private struct Plan {
        var call: RecordedSession.Call
        var flow: AnyFlow
        var mode: ReplayMode
        var argumentsJSON: String
    }

    /// The call to run again and its flow, when everything that they want is at hand.
    private func plan() -> Result<Plan, Blocked> {
        if let format = trace.header.format, TraceUpgrade.standard.isLater(trace) {
            let text = "it is of format \(format), and this version knows formats up to \(TraceUpgrade.current)"
            return .failure(Blocked(reason: .laterFormat(format), text: text))
        }
        guard let call = session.flowCall, let name = call.row.flow else {
            guard let own = session.calls.first(where: { $0.row.parent == nil }) else {
                return .failure(Blocked(reason: .noCall, text: "it was recorded from a program, not from the library"))
            }
            let text = "its call was made by a program's own code: \(own.row.function)"
            return .failure(Blocked(reason: .callFromCode(own.row.function), text: text))
        }
        guard let flow = FlowTable.named(name) else {
            return .failure(Blocked(reason: .unknownFlow(name), text: "its flow is \(name), which this version does not have"))
        }
        let (arguments, missing) = arguments(of: call)
        if call.outcome == nil, session.transports.allSatisfy({ session.transport($0, during: call).steps.isEmpty }) {
            return .failure(Blocked(reason: .empty, text: "it ends before the first exchange: there is nothing to compare"))
        }
        switch mode(for: call, missing) {
        case .failure(let blocked): return .failure(blocked)
        case .success(let mode):
            return .success(Plan(call: call, flow: flow, mode: mode, argumentsJSON: JSONValue.object(arguments).text))
        }
    }

    /// The call's arguments, given ones in place of recorded ones, and the names of those that are sealed and not at hand.
    private func arguments(of call: RecordedSession.Call) -> (values: [String: JSONValue], missing: [String]) {
        var values = call.arguments
        var missing = call.missingArguments.map { $0.split(separator: ":").last.map(String.init) ?? $0 }
        for (name, value) in options.arguments {
            // One password takes the place of another.
            if Self.passwords.contains(name) {
                for other in Self.passwords { values[other] = nil }
                missing.removeAll(where: Self.passwords.contains)
            }
            values[name] = value
            missing.removeAll { $0 == name }
        }
        return (values, missing)
    }

    /// What the recorded card is told: the recorded password is its own, whatever the run is given; one that is given stands for
    /// one that is not at hand.
    private func knowledge(of call: RecordedSession.Call?) -> [String: JSONValue] {
        guard let call else { return options.arguments }
        return call.missingArguments.isEmpty ? call.arguments : arguments(of: call).values
    }

    private static let passwords: Set<String> = ["mrzKey", "can", "pin", "puk"]

    /// The mode that was asked for, or the strictest that the trace and its secrets allow.
    private func mode(for call: RecordedSession.Call, _ missing: [String]) -> Result<ReplayMode, Blocked> {
        let lacksEntropy = options.entropy == .recorded ? session.missingDraws(of: call).first : nil
        let mayDrawAfresh = options.mode != .bytes
        if let draw = lacksEntropy, !mayDrawAfresh || !missing.isEmpty {
            let helps = missing.isEmpty ? [] : missing
            return .failure(
                Blocked(
                    reason: .entropy(draw.label), text: "the random bytes of this session are not here",
                    helps: mayDrawAfresh ? helps : []))
        }
        if let argument = missing.first {
            return .failure(
                Blocked(reason: .argument(argument), text: "\(argument) of this session is not here", helps: missing))
        }
        if let mode = options.mode { return .success(mode) }
        let isRepeated = options.entropy == .recorded && lacksEntropy == nil || call.draws.isEmpty
        if isRepeated, options.order == .strict || call.draws.isEmpty { return .success(.bytes) }
        if meaning(of: call).bound != nil { return .success(.resealed) }
        return .success(isRepeated ? .bytes : .fields)
    }

    /// The mode for a program that draws its own random bytes: fields, or resealed where the answers are bound to them.
    func programMode() -> ReplayMode {
        options.mode ?? (meaning(of: session.flowCall).bound == nil ? .fields : .resealed)
    }

    private func meaning(of call: RecordedSession.Call?) -> RecordedMeaning {
        RecordedMeaning(trace, secrets, options.grammars, during: call)
    }

    // MARK: - Matching

    /// What a call is played against.
    struct Stage {
        var transport: RecordedSession.Transport
        var matching: any Matching
        var policy: RecordedCard.Policy
        /// What cannot be made anew and is answered as recorded.
        var notes: [String] = []
    }

    /// The recorded card of a call, as its mode compares; or why that cannot be.
    ///
    /// - Parameters:
    ///   - call: nil takes the whole trace: what a program did to its cards.
    ///   - id: the transport; that of the call, or the first one, when nil.
    func prepare(_ call: RecordedSession.Call?, _ mode: ReplayMode, transport id: Int? = nil) -> Result<Stage, Blocked> {
        let wanted = id ?? call?.row.transport
        let whole =
            session.transports.first { $0.row.id == wanted } ?? session.transports.first
            ?? RecordedSession.Transport(row: MetaRow.Transport(id: 1, kind: .iso7816), readerName: "recorded card")
        let transport = call.map { session.transport(whole, during: $0) } ?? whole
        let meaning = mode == .fields || options.unrecorded == .model ? meaning(of: call) : nil
        var policy = RecordedCard.Policy(order: options.order, unrecorded: options.unrecorded)
        if options.grammars != nil { policy.names = APDUFields(options.grammars) }
        if options.unrecorded == .model, let meaning { policy.model = TraceModel(transport, meaning) }
        switch mode {
        case .bytes: return .success(Stage(transport: transport, matching: BytesMatching(transport), policy: policy))
        case .fields:
            guard let meaning else { return .failure(Blocked(reason: .empty, text: "it holds nothing to compare")) }
            return FieldsMatching.make(transport, trace, secrets, options.grammars, meaning).map {
                Stage(transport: transport, matching: $0, policy: policy)
            }
        case .resealed:
            return resealed(transport, knowledge(of: call ?? session.flowCall)).map {
                Stage(transport: transport, matching: $0, policy: policy, notes: $0.notes)
            }
        }
    }

    // MARK: - One run

    /// Replays `operation` over the recorded card and returns what it returns.
    ///
    /// - Throws: ``Divergence`` where the run parts from the recording, ``Blocked`` when it cannot be tried; else what
    ///   `operation` throws, when that is what was recorded.
    public func run<Result: Sendable>(_ operation: @Sendable (any NFCTagTransport) async throws -> Result) async throws -> Result
    {
        guard let call = session.calls.first(where: { $0.row.parent == nil }) else {
            throw Blocked(reason: .noCall, text: "the trace holds no call")
        }
        // The arguments are those of the closure.
        let mode = try mode(for: call, []).get()
        let outcome = Outcome<Result>()
        let report = await play(
            call, mode,
            { transport in
                do {
                    let result = try await operation(transport)
                    outcome.set(.success(result))
                    return (result as? any Encodable).flatMap { try? CanonicalJSON.encode($0) }
                } catch {
                    outcome.set(.failure(error))
                    throw error
                }
            })
        switch report.verdict {
        case .same: break
        case .differs(let divergence): throw divergence
        case .blocked(let blocked): throw blocked
        }
        guard let result = outcome.value else { throw Blocked(reason: .noCall, text: "the operation did not run") }
        return try result.get()
    }

    /// Replays `operation`, whose result is canonical JSON, or nil when it is not to be compared.
    package func report(of operation: (any NFCTagTransport) async throws -> String?) async -> ReplayReport {
        guard let call = session.calls.first(where: { $0.row.parent == nil }) else {
            return report(.blocked(Blocked(reason: .noCall, text: "the trace holds no call")))
        }
        switch mode(for: call, []) {
        case .failure(let blocked): return report(.blocked(blocked))
        case .success(let mode): return await play(call, mode, operation)
        }
    }

    private func report(_ verdict: ReplayReport.Verdict) -> ReplayReport {
        let exchanges = session.transports.reduce(0) { $0 + $1.steps.count(where: \.isExchange) }
        var report = ReplayReport(exchanges: exchanges, verdict: verdict)
        report.mode = options.mode ?? .bytes
        return report
    }

    /// Runs `operation` over the first recorded transport and compares.
    ///
    /// - Returns: a report; the operation's result is compared as canonical JSON with the recorded one, nil is not compared.
    private func play(
        _ call: RecordedSession.Call, _ mode: ReplayMode, _ operation: (any NFCTagTransport) async throws -> String?,
        onGuess: (@Sendable (RecordedCard.Guess) -> Void)? = nil
    ) async -> ReplayReport {
        var stage: Stage
        switch prepare(call, mode) {
        case .failure(let blocked):
            var blockedReport = report(.blocked(blocked))
            blockedReport.mode = mode
            return blockedReport
        case .success(let made): stage = made
        }
        stage.policy.onGuess = onGuess
        let card = RecordedCard(stage.transport, matching: stage.matching, policy: stage.policy)
        // Without the recorded octets, modes that can do so draw afresh.
        let lacksEntropy = options.entropy == .recorded && mode != .bytes && !session.missingDraws(of: call).isEmpty
        let draws = ReplayDraws(call: call, secrets: secrets, entropy: lacksEntropy ? .fresh : options.entropy)
        var result: Result<String?, any Error>
        let start = ContinuousClock.now
        do {
            result = .success(
                try await CardEnvironment.with(draws.environment(keySink: hooks.keySink)) {
                    try await operation(hooks.wrap(RecordedTransport.make(card, timeScale: options.timeScale)))
                }
            )
        } catch {
            result = .failure(error)
        }
        let elapsed = ContinuousClock.now - start
        let comparison = Comparison(
            session: session, trace: trace, secrets: secrets, call: call, card: card, draws: draws, options: options)
        var report = report(.same)
        comparison.judge(result, into: &report)
        report.mode = mode
        report.notes += stage.notes
        report.exchanges = stage.transport.steps.count(where: \.isExchange)
        report.seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        report.notCompared = stage.transport.steps.count { step in
            switch step {
            case .apdu(_, let command, _), .frame(_, let command, _): !command.unknown.isEmpty
            default: false
            }
        }
        return report
    }
}

extension TraceModel {
    /// The card that a transport's exchanges show, in plain.
    init(_ transport: RecordedSession.Transport, _ meaning: RecordedMeaning) {
        var exchanges: [(command: [UInt8], response: [UInt8])?] = []
        for step in transport.steps {
            switch step {
            case .apdu(let packet, let command, .response(let response)) where command.unknown.isEmpty:
                if let plain = meaning.plain(packet, (command.octets, response.octets)) { exchanges.append(plain) }
            case .reset: exchanges.append(nil)
            default: break
            }
        }
        self.init(exchanges)
    }
}

/// What an operation came to, kept on its way out of a closure that may return only text.
private final class Outcome<Value: Sendable>: @unchecked Sendable {
    // Unchecked: written once, by the one task that `play` awaits, and read after it.
    private(set) var value: Result<Value, any Error>?

    func set(_ value: Result<Value, any Error>) { self.value = value }
}
