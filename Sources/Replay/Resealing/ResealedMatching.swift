// SPDX-License-Identifier: MIT

import CardCrypto
import Octets
import Synchronization
import TraceDecoding
import TraceFile
import VirtualCards

/// Mode `resealed`: the recorded card runs every key agreement afresh, opens the run's commands and compares them in plain, and
/// protects the recorded plain answers under the keys and counters of the run.
///
/// What either side drew at random, and what is made from it, is not compared: in key agreements only the shape of a command
/// is. An answer that the recorded card gave outside its channel, a bare status word, is given so again.
final class ResealedMatching: Matching {
    /// What cannot be made anew and is answered as recorded, for people; to be said before the run.
    let notes: [String]

    private let steps: [RecordedSession.Step]
    private let conversation: RecordedConversation
    private let card: Mutex<LiveCard>

    /// - Parameters:
    ///   - transport: the steps that the run will be compared with.
    ///   - arguments: the recorded call's, with their sealed values put back.
    ///   - seed: of what the card draws in the run; the same seed, the same draws.
    /// - Throws: ``Blocked``, which names the password or key that is missing.
    init(
        _ session: RecordedSession, transport: RecordedSession.Transport, trace: Trace, secrets: SecretStore,
        arguments: [String: JSONValue], seed: UInt64
    ) throws(Blocked) {
        let knowledge = CardKnowledge(trace: trace, secrets: secrets, arguments: arguments)
        let conversation = RecordedConversation(transport.steps, knowledge: knowledge)
        if let blocked = conversation.blocked { throw blocked }
        steps = transport.steps
        self.conversation = conversation
        notes = conversation.notes
        card = Mutex(LiveCard(.standard, random: CardRandom(seed: seed, use: "replay")))
    }

    /// Whether anything in the recording is protected or agrees on keys: without that, this mode is no other than `bytes`.
    var hasChannels: Bool {
        conversation.exchanges.contains { exchange in
            guard let exchange else { return false }
            return exchange.command.isOpened || exchange.agreement != nil
        }
    }

    func recorded(_ step: Int) -> [UInt8]? { conversation.exchanges[step]?.command.compared ?? steps[step].command?.octets }

    func open(_ command: [UInt8]) -> OpenCommand {
        card.withLock { card in
            let form = card.open(command)
            return OpenCommand(command, plain: form.compared, failure: form.failure?.text)
        }
    }

    func difference(of command: OpenCommand, from step: Int) -> MatchDifference? {
        guard let recorded = steps[step].command else { return nil }
        guard let form = conversation.exchanges[step]?.command else {
            return recorded.matches(command.octets) ? nil : MatchDifference(recorded: recorded, now: command.octets)
        }
        return card.withLock { card in
            guard let now = card.command else { return nil }
            if form.isOpened != now.isOpened {
                return MatchDifference(recorded: recorded, now: command.octets)
            }
            var opened = recorded
            if form.compared != recorded.octets {
                opened = RecordedSession.Octets(octets: form.compared, unknown: [], sealed: [], frame: recorded.frame)
            }
            if let failure = now.failure, form.failure == nil {
                return MatchDifference(
                    recorded: opened, now: now.compared, path: failure.path.isEmpty ? nil : failure.path)
            }
            if opened.matches(now.compared) { return nil }
            let common = zip(opened.octets, now.compared).prefix { $0 == $1 }.count
            return MatchDifference(recorded: opened, now: now.compared, path: now.path(at: common, in: card.decoder))
        }
    }

    func answer(to command: OpenCommand, from step: Int) -> RecordedSession.Answer {
        card.withLock { card in
            guard case .response(let recorded)? = steps[step].answer else {
                card.drop()
                return steps[step].answer ?? .notRecorded
            }
            var octets = recorded.octets
            if let exchange = conversation.exchanges[step] {
                octets = card.answer(exchange, step: step, command: command.octets) ?? octets
            }
            card.hear(octets)
            return .response(RecordedSession.Octets(octets: octets, frame: recorded.frame))
        }
    }

    func answer(to command: OpenCommand, with response: [UInt8]) -> [UInt8] {
        card.withLock { card in
            var octets = response
            if response.count >= 2, card.command?.isOpened == true {
                let status = Array(response.suffix(2))
                // DESFire protects what it did; its refusals are bare and end the session.
                if status[0] != 0x91 || status[1] == 0 {
                    octets = card.seal(Array(response.dropLast(2)), status: status, form: .maced) + status
                }
            }
            card.hear(octets)
            return octets
        }
    }

    func reset() { card.withLock { $0.reset() } }
}
