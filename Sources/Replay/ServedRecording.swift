// SPDX-License-Identifier: MIT

import CardSockets
import Octets
import Synchronization
import TagTransport
import TraceFile

/// A recorded card as the ends that serve programs need it, whatever way it matches what it is asked.
///
/// What a program does to the reader rather than to the card (connects, resets, controls) is not compared: programs do it in their
/// own order. What was recorded of it is given where the recording stands at it.
protocol ServedRecording: AnyObject, Sendable {
    /// Empty when the recording has none.
    var atr: [UInt8] { get }
    /// The UID of a contactless card; else empty.
    var identifier: [UInt8] { get }
    var readerName: String { get }
    /// Whether the first difference has been met: nothing is answered any more.
    var hasDiverged: Bool { get }
    /// Whether the recording stands at a removal of the card.
    var standsAtRemoval: Bool { get }
    /// Whether exchanges were asked for since the beginning.
    var hasBegun: Bool { get }
    /// Whether every recorded exchange was asked for.
    var isFinished: Bool { get }

    /// Whether the recording stands at this very command.
    func expects(_ command: [UInt8]) -> Bool
    func answer(_ command: [UInt8]) -> ReaderAnswer
    /// Nil when the recording stands at no reset.
    func reset() -> ReaderAnswer?
    /// Nil when the recording stands at no such control.
    func control(code: UInt32, input: [UInt8]) -> ReaderAnswer?
    /// Goes past a recorded removal.
    func passRemoval()
    /// Begins again.
    func rewind()
    /// How it went until now, as if the program had ended.
    func report(seconds: Double) -> ReplayReport
}

/// The recorded card of today's replay, every command in order, served to a program.
final class StrictRecording: ServedRecording {
    private let session: RecordedSession
    private let trace: Trace
    private let transport: RecordedSession.Transport
    private let card: Mutex<RecordedCard>

    init(session: RecordedSession, trace: Trace, transport: RecordedSession.Transport) {
        self.session = session
        self.trace = trace
        self.transport = transport
        card = Mutex(RecordedCard(transport))
    }

    var atr: [UInt8] { transport.row.atr ?? [] }
    var identifier: [UInt8] { transport.row.identifier ?? [] }
    var readerName: String { transport.readerName }
    var hasDiverged: Bool { current.difference != nil }
    var hasBegun: Bool { transport.steps.prefix(current.position).contains(where: \.isExchange) || hasDiverged }
    var isFinished: Bool { !transport.steps.dropFirst(current.position).contains(where: \.isExchange) }

    var standsAtRemoval: Bool {
        if case .removal? = next { return true }
        return false
    }

    func expects(_ command: [UInt8]) -> Bool {
        let rest = transport.steps.dropFirst(current.position)
        guard case .apdu(_, let recorded, _)? = rest.first(where: \.isExchange) else { return false }
        return recorded.matches(command)
    }

    func answer(_ command: [UInt8]) -> ReaderAnswer {
        passReader()
        let card = current
        do throws(TransportError) {
            if case .frame? = next { return .octets(try card.frame(command)) }
            return .octets(try card.apdu(command))
        } catch {
            return Self.answer(for: error)
        }
    }

    func reset() -> ReaderAnswer? {
        switch next {
        case .reset?, .failedEvent?: break
        default: return nil
        }
        do throws(TransportError) { return .octets(try current.reset()) } catch { return Self.answer(for: error) }
    }

    func control(code: UInt32, input: [UInt8]) -> ReaderAnswer? {
        guard case .control(_, let recorded, let sent, _)? = next, recorded == Int(code), sent ?? input == input else {
            return nil
        }
        do throws(TransportError) { return .octets(try current.control(code: code, input: input)) } catch {
            return Self.answer(for: error)
        }
    }

    func passRemoval() {
        if standsAtRemoval { try? current.removal() }
    }

    func rewind() { card.withLock { $0 = RecordedCard(transport) } }

    func report(seconds: Double) -> ReplayReport {
        passReader()
        let card = current
        // The program's own result is not compared; so neither is a recorded one.
        let row = MetaRow.Call(id: 0, flow: nil, function: "a program")
        var call = RecordedSession.Call(row: row, packet: 0)
        let isCutShort = if case .unanswered(let step)? = card.difference { step == transport.steps.count - 1 } else { false }
        if !isCutShort { call.outcome = MetaRow.Return(call: 0) }
        let comparison = Comparison(
            session: session, trace: trace, secrets: session.secrets, call: call, card: card,
            draws: ReplayDraws(call: call, secrets: session.secrets))
        var report = ReplayReport(
            exchanges: transport.steps.count(where: \.isExchange), seconds: seconds,
            verdict: comparison.verdict(of: .success(nil)))
        report.notCompared = transport.steps.count { step in
            switch step {
            case .apdu(_, let command, _), .frame(_, let command, _): !command.unknown.isEmpty
            default: false
            }
        }
        return report
    }

    // MARK: - Steps

    private var current: RecordedCard { card.withLock { $0 } }

    private var next: RecordedSession.Step? {
        let position = current.position
        return position < transport.steps.count ? transport.steps[position] : nil
    }

    /// Goes past what was recorded of the reader: the program has not asked for it here, or in its own way.
    private func passReader() {
        let card = current
        while card.difference == nil, let step = next {
            switch step {
            case .reset, .failedEvent: _ = try? card.reset()
            case .removal: try? card.removal()
            case .control(_, let code, let input, _): _ = try? card.control(code: UInt32(clamping: code), input: input ?? [])
            case .apdu, .frame, .structured: return
            }
        }
    }

    /// A recorded error as PC/SC says it.
    private static func answer(for error: TransportError) -> ReaderAnswer {
        switch error.case {
        case .tagConnectionLost: .removed(error.code ?? ServiceCode.removedCard)
        case .tagReset: .failed(error.code ?? ServiceCode.resetCard)
        case .readerUnavailable: .failed(error.code ?? ServiceCode.readerUnavailable)
        case .sharingViolation: .failed(error.code ?? ServiceCode.sharingViolation)
        case .cancelled: .failed(error.code ?? ServiceCode.cancelled)
        case .malformedResponse: .failed(error.code ?? ServiceCode.communicationFailed)
        default: .failed(error.code ?? ServiceCode.notTransacted)
        }
    }
}
