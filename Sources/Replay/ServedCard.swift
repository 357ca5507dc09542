// SPDX-License-Identifier: MIT

public import CardSockets
import Synchronization
import TraceFile

/// A recorded card in a reader that programs meet: on pcsc-lite's socket, in a slot of vpcd, or as hex lines.
///
/// Commands are compared with the recording, and answered from it. After the first difference the card is out of the reader, so that
/// a program that goes on after an error cannot blur where the two parted.
public final class ServedCard: CardEnd, Sendable {
    /// What becomes of the recording when no program is there any more.
    public enum Afterwards: Sendable {
        /// It stands where it was: programs that follow each other are one conversation.
        case stays
        /// It begins again for the next program; how it went is told before.
        case beginsAgain(@Sendable (ReplayReport) -> Void)
    }

    public let readerName: String
    private let recording: PlayedRecording
    private let afterwards: Afterwards
    private let state = Mutex(State())

    private struct State {
        var isOut = false
        var begin: ContinuousClock.Instant?
        var last: ContinuousClock.Instant?
    }

    init(_ recording: PlayedRecording, afterwards: Afterwards) {
        self.recording = recording
        self.afterwards = afterwards
        readerName = recording.readerName
    }

    /// The recorded one; for a recording without, that of a contactless card without historical bytes (PC/SC part 3, 3.1.3.2.3).
    public var atr: [UInt8] { recording.atr.isEmpty ? [0x3B, 0x80, 0x80, 0x01, 0x01] : recording.atr }

    /// The mode in which commands are compared.
    public var mode: ReplayMode { recording.mode }
    /// What the mode cannot make anew and will answer as it was recorded: a signature over a challenge of the run.
    public var cautions: [String] { recording.notes }
    /// Whether a program's commands have parted from the recording.
    public var hasDiverged: Bool { recording.hasDiverged }
    /// Whether every recorded exchange was asked for.
    public var isFinished: Bool { recording.isFinished }

    /// How it went until now; exchanges that were not asked for count as missing.
    public func report() -> ReplayReport {
        let time = state.withLock { state in
            state.begin.flatMap { begin in state.last.map { $0 - begin } } ?? .zero
        }
        return recording.report(seconds: Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18)
    }

    // MARK: - CardEnd

    public func powerOn() {}

    public func powerOff() {}

    public func exchange(_ command: [UInt8]) -> CardAnswer {
        switch transmit(command) {
        case .octets(let response): .response(response)
        case .failed: .silence
        case .removed: .removed
        }
    }

    public func transmit(_ command: [UInt8]) -> ReaderAnswer {
        if let answer = identifierAnswer(command) { return answer }
        state.withLock { state in
            if state.begin == nil { state.begin = .now }
        }
        let answer = recording.answer(command)
        state.withLock { state in
            state.last = .now
            if case .removed = answer { state.isOut = true }
        }
        return answer
    }

    public func reset() -> ReaderAnswer { recording.reset() ?? .octets(atr) }

    public func control(code: UInt32, input: [UInt8]) -> ReaderAnswer {
        recording.control(code: code, input: input) ?? .failed(ServiceCode.unsupportedFeature)
    }

    /// A recorded removal takes the card out with the answer before it; it comes back when the recording goes on.
    public func departure() -> Departure? {
        guard !recording.hasDiverged else { return nil }
        let wasOut = state.withLock { state in
            defer { state.isOut = false }
            return state.isOut
        }
        guard wasOut || recording.standsAtRemoval else { return nil }
        recording.passRemoval()
        return Departure(returnsAfter: recording.isFinished ? nil : .milliseconds(400))
    }

    public func programsLeft() -> Bool {
        guard case .beginsAgain(let tell) = afterwards, recording.hasBegun else { return false }
        tell(report())
        recording.rewind()
        state.withLock { $0 = State() }
        return true
    }

    /// What a reader answers by itself to GET DATA for the UID (PC/SC part 3, 3.2.2.1.3), unless it was recorded and stands next.
    private func identifierAnswer(_ command: [UInt8]) -> ReaderAnswer? {
        guard command.starts(with: [0xFF, 0xCA, 0x00, 0x00]), !recording.expects(command) else { return nil }
        // 6A81: no such function for a card without UID.
        return .octets(recording.identifier.isEmpty ? [0x6A, 0x81] : recording.identifier + [0x90, 0x00])
    }
}

extension Replay {
    /// The recorded cards, one for each recorded reader, for programs to meet.
    ///
    /// - Throws: ``Blocked`` when the trace holds nothing that a program could ask for, or answers whose secret is not at hand.
    public func servedCards(_ afterwards: ServedCard.Afterwards = .stays) throws(Blocked) -> [ServedCard] {
        let transports = session.transports.filter { $0.steps.contains(where: \.isServable) }
        guard !transports.isEmpty else {
            throw Blocked(reason: .noCall, text: "it holds no command that a program could send through PC/SC")
        }
        for step in transports.flatMap(\.steps) {
            guard let packet = step.packetOfSealedAnswer else { continue }
            throw Blocked(
                reason: .argument("the answer of exchange \(packet)"), text: "the sealed answer of exchange \(packet) is not here"
            )
        }
        let mode = programMode()
        var cards: [ServedCard] = []
        for transport in transports {
            let recording = try PlayedRecording(self, transport: transport.row.id, mode: mode)
            cards.append(ServedCard(recording, afterwards: afterwards))
        }
        return cards
    }
}

extension RecordedSession.Step {
    /// Whether a program can ask for it through PC/SC.
    fileprivate var isServable: Bool {
        switch self {
        case .apdu, .frame: true
        default: false
        }
    }

    fileprivate var packetOfSealedAnswer: UInt64? {
        switch self {
        case .apdu(let packet, _, .response(let octets)), .frame(let packet, _, .response(let octets)):
            octets.unknown.isEmpty ? nil : packet
        default: nil
        }
    }
}
