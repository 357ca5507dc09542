// SPDX-License-Identifier: MIT

import CardCrypto
import Flows
import FoundationEssentials
import TagTransport
import TraceFile

extension Replay {
    /// Replays the first call of a flow in mode `resealed`.
    ///
    /// - Parameters:
    ///   - seed: of what both sides draw.
    ///   - changed: arguments of the run that are not the recorded ones.
    ///   - keySink: who is told the keys of the run.
    ///   - wrap: puts something around the recorded card, to look at or change what passes.
    package func runResealed(
        seed: UInt64, changed: [String: JSONValue] = [:], keySink: (any KeySink)? = nil,
        wrap: (any NFCTagTransport) -> any NFCTagTransport = { $0 }
    ) async -> ReplayReport {
        guard let call = session.flowCall, let name = call.row.flow, let flow = FlowTable.named(name) else {
            return ReplayReport(verdict: .blocked(Blocked(reason: .noCall, text: "it holds no call of a flow")))
        }
        let arguments = JSONValue.object(call.arguments.merging(changed) { $1 }).text
        return await playResealed(call, seed: seed, keySink: keySink) { transport in
            try await flow.run(argumentsJSON: arguments, over: wrap(transport)) { _ in }
        }
    }

    /// Replays the first call of a program's own code, which is `operation`, in mode `resealed`.
    ///
    /// - Parameter operation: gives its result as canonical JSON; nil is not compared.
    package func runResealed(
        seed: UInt64, operation: (any NFCTagTransport) async throws -> String?
    ) async -> ReplayReport {
        guard let call = session.calls.first(where: { $0.row.parent == nil }) else {
            return ReplayReport(verdict: .blocked(Blocked(reason: .noCall, text: "the trace holds no call")))
        }
        return await playResealed(call, seed: seed, keySink: nil, operation)
    }

    private func playResealed(
        _ call: RecordedSession.Call, seed: UInt64, keySink: (any KeySink)?,
        _ operation: (any NFCTagTransport) async throws -> String?
    ) async -> ReplayReport {
        if let argument = call.missingArguments.first {
            return ReplayReport(verdict: .blocked(Blocked(reason: .argument(argument), text: "\(argument) is not here")))
        }
        guard let whole = session.transports.first(where: { $0.row.id == call.row.transport }) ?? session.transports.first else {
            return ReplayReport(verdict: .blocked(Blocked(reason: .noCall, text: "it holds no card")))
        }
        let transport = session.transport(whole, during: call)
        let matching: ResealedMatching
        do throws(Blocked) {
            matching = try ResealedMatching(
                session, transport: transport, trace: trace, secrets: secrets, arguments: call.arguments, seed: seed)
        } catch {
            return ReplayReport(mode: "resealed", verdict: .blocked(error))
        }
        let card = RecordedCard(transport, matching: matching)
        let recorded = ReplayDraws(call: call, secrets: secrets)
        let draws = SeededDraws(seed: seed, clock: recorded)
        let reader = RecordedReader(session, flow: call, trace: trace, secrets: secrets)
        let world = CredentialWorld(reader: { card, _, step in await reader.work(on: card, step: step) })
        var result: Result<String?, any Error>
        do {
            let environment = CardEnvironment(random: draws, clock: draws, keySink: keySink, readersAllowed: false)
            result = .success(
                try await CardEnvironment.with(environment) {
                    try await FlowClock.$runs.withValue(false) {
                        try await CredentialWorld.$current.withValue(world) {
                            try await operation(RecordedTransport.make(card))
                        }
                    }
                }
            )
        } catch {
            result = .failure(error)
        }
        let comparison = Comparison(session: session, trace: trace, secrets: secrets, call: call, card: card, draws: recorded)
        var verdict = comparison.verdict(of: result)
        if case .differs(var divergence) = verdict, case .command(_, let difference)? = card.difference,
            let path = difference.path
        {
            divergence.field?.path = path
            verdict = .differs(divergence)
        }
        var report = ReplayReport(mode: "resealed", verdict: verdict)
        report.exchanges = transport.steps.count(where: \.isExchange)
        return report
    }
}
