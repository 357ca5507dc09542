// SPDX-License-Identifier: MIT

public import CardSockets
public import GrammarLibrary
import Synchronization
import TraceDecoding
public import TraceFile
import VirtualCards

/// A live card built from what a trace shows: its files as far as they were read, their lengths, rights and refusals.
///
/// What the trace shows is answered as it stands there, in its context; beyond it the card answers as ISO/IEC 7816-4 lets expect
/// and says so to `onGuess`.
///
/// A document's chip whose session was opened, and whose password is among the secrets, agrees on keys of its own: it has the files that
/// were read whole and the habits that were seen. Of other cards nothing is known behind keys: their messages under secure messaging
/// are refused with `6882`.
public final class TraceCard: CardEnd, Sendable {
    /// An answer beyond the trace.
    public struct Guess: Sendable, Equatable {
        /// The command by its name, without its data.
        public var command: String
        public var response: [UInt8]
    }

    public let atr: [UInt8]
    /// The UID of a contactless card; empty where the trace has none.
    public let identifier: [UInt8]
    /// Whether it is a document's chip that agrees on keys of its own.
    public let opensAfresh: Bool
    private let inner: Inner
    private let isOn = Mutex(false)
    private let onGuess: @Sendable (Guess) -> Void
    private let names: APDUFields

    private enum Inner: Sendable {
        case model(ModelBox)
        case passport(VirtualCard)
    }

    private final class ModelBox: Sendable {
        let model: Mutex<TraceModel>
        init(_ model: sending TraceModel) { self.model = Mutex(model) }
    }

    /// - Parameters:
    ///   - transport: the number of the card's connection, from 1; the first one when nil.
    ///   - seed: for what the card draws.
    ///   - onGuess: told of each answer that is not in the trace, before it is given.
    /// - Throws: ``Blocked`` for a trace without command APDUs.
    public init(
        _ trace: Trace, secrets: SecretStore, grammars: GrammarLibrary? = nil, transport: Int? = nil, seed: UInt64 = 0,
        onGuess: @escaping @Sendable (Guess) -> Void = { _ in }
    ) throws(Blocked) {
        var options = ReplayOptions()
        options.grammars = grammars
        options.unrecorded = .model
        let replay = Replay(of: trace, secrets: secrets, options: options)
        let stage = try replay.prepare(nil, .bytes, transport: transport).get()
        let hasCommands = stage.transport.steps.contains { if case .apdu = $0 { true } else { false } }
        guard hasCommands, let model = stage.policy.model else {
            throw Blocked(reason: .empty, text: "it holds no command APDU, so that no card can be made from it")
        }
        let resets = stage.transport.steps.compactMap { if case .reset(_, let atr) = $0 { atr } else { nil } }
        let recorded = stage.transport.row.atr ?? resets.first ?? []
        // A card of ISO/IEC 14443-4 without historical bytes, as PC/SC part 3 makes its answer up.
        atr = recorded.isEmpty ? [0x3B, 0x80, 0x80, 0x01, 0x01] : recorded
        let uid = stage.transport.row.identifier ?? []
        identifier = uid
        self.onGuess = onGuess
        let names = stage.policy.names
        self.names = names
        if let passport = DocumentModel(trace, secrets, replay.session, grammars),
            let card = try? passport.copy.card(
                seed: seed, identifier: uid,
                observer: { command, answer in
                    // What is read comes from files that the trace shows whole, in whatever pieces.
                    let isRead = command[1] == 0xB0 && answer.count > 2
                    // A reader that proves itself does so with other octets each time.
                    let isAgreement = [0x82, 0x84, 0x86].contains(command[1]) && answer.suffix(2) == [0x90, 0x00]
                    if isRead || isAgreement || passport.known.contains(command) { return }
                    onGuess(Guess(command: names.name(of: command), response: answer))
                })
        {
            inner = .passport(card)
            opensAfresh = true
        } else {
            inner = .model(ModelBox(model))
            opensAfresh = false
        }
    }

    public func powerOn() {
        isOn.withLock { $0 = true }
        switch inner {
        case .passport(let card): card.powerOn()
        case .model(let box): box.model.withLock { $0.powerOn() }
        }
    }

    public func powerOff() {
        isOn.withLock { $0 = false }
        if case .passport(let card) = inner { card.powerOff() }
    }

    public func exchange(_ command: [UInt8]) -> CardAnswer {
        guard isOn.withLock({ $0 }) else { return .silence }
        switch inner {
        case .passport(let card): return card.exchange(command)
        case .model(let box):
            let answer = box.model.withLock { $0.answer(command) }
            if answer.isGuessed { onGuess(Guess(command: names.name(of: command), response: answer.octets)) }
            return .response(answer.octets)
        }
    }
}
