// SPDX-License-Identifier: MIT

public import CardSockets
public import GrammarLibrary
import Synchronization
import TraceDecoding
public import TraceFile

/// A live card built from what a trace shows: its files as far as they were read, their lengths, rights and refusals.
///
/// What the trace shows is answered as it stands there, in its context; beyond it the card answers as ISO/IEC 7816-4 lets expect
/// and says so to `onGuess`. It has no keys, so that messages under secure messaging are refused with `6882`.
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
    private let state: Mutex<TraceModel>
    private let isOn = Mutex(false)
    private let onGuess: @Sendable (Guess) -> Void
    private let names: APDUFields

    /// - Parameters:
    ///   - transport: the number of the card's connection, from 1; the first one when nil.
    ///   - onGuess: told of each answer that is not in the trace, before it is given.
    /// - Throws: ``Blocked`` for a trace without command APDUs.
    public init(
        _ trace: Trace, secrets: SecretStore, grammars: GrammarLibrary? = nil, transport: Int? = nil,
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
        identifier = stage.transport.row.identifier ?? []
        state = Mutex(model)
        self.onGuess = onGuess
        names = stage.policy.names
    }

    public func powerOn() {
        isOn.withLock { $0 = true }
        state.withLock { $0.powerOn() }
    }

    public func powerOff() { isOn.withLock { $0 = false } }

    public func exchange(_ command: [UInt8]) -> CardAnswer {
        guard isOn.withLock({ $0 }) else { return .silence }
        let answer = state.withLock { $0.answer(command) }
        if answer.isGuessed { onGuess(Guess(command: names.name(of: command), response: answer.octets)) }
        return .response(answer.octets)
    }
}
