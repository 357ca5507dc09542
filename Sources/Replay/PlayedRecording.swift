// SPDX-License-Identifier: MIT

import CardSockets
import Glibc
import Octets
import Synchronization
import TagTransport
import TraceFile

/// The recorded card as a mode, an order and a policy have it, for programs to meet.
///
/// What a program does to the reader rather than to the card (connects, resets, controls) is not compared: programs do it in their
/// own order. What was recorded of it is given where the recording stands at it.
final class PlayedRecording: Sendable {
    private let replay: Replay
    let mode: ReplayMode
    private let transport: RecordedSession.Transport
    private let card: Mutex<RecordedCard>
    /// What the mode cannot make anew and answers as it was recorded.
    let notes: [String]

    /// - Throws: ``Blocked`` when the mode cannot be.
    init(_ replay: Replay, transport id: Int, mode: ReplayMode) throws(Blocked) {
        let stage = try replay.prepare(nil, mode, transport: id).get()
        self.replay = replay
        self.mode = mode
        transport = stage.transport
        notes = stage.notes
        card = Mutex(RecordedCard(stage.transport, matching: stage.matching, policy: stage.policy))
    }

    /// Empty when the recording has none.
    var atr: [UInt8] { transport.row.atr ?? [] }
    /// The UID of a contactless card; else empty.
    var identifier: [UInt8] { transport.row.identifier ?? [] }
    var readerName: String { transport.readerName }
    /// Whether the first difference has been met: nothing is answered any more.
    var hasDiverged: Bool { current.difference != nil }
    /// Whether exchanges were asked for since the beginning.
    var hasBegun: Bool { current.hasServedExchanges || hasDiverged }
    /// Whether every recorded exchange was asked for.
    var isFinished: Bool { current.exchangesLeft == 0 }

    /// Whether the recording stands at a removal of the card.
    var standsAtRemoval: Bool {
        if case .removal? = next { return true }
        return false
    }

    /// Whether the recording stands at this very command.
    func expects(_ command: [UInt8]) -> Bool {
        let rest = transport.steps.dropFirst(current.next)
        guard case .apdu(_, let recorded, _)? = rest.first(where: \.isExchange) else { return false }
        return recorded.matches(command)
    }

    func answer(_ command: [UInt8]) -> ReaderAnswer {
        passReader()
        let card = current
        defer { wait(for: card.takeDelay()) }
        do throws(TransportError) {
            if case .frame? = next { return .octets(try card.frame(command)) }
            return .octets(try card.apdu(command))
        } catch {
            return Self.answer(for: error)
        }
    }

    /// Nil when the recording stands at no reset.
    func reset() -> ReaderAnswer? {
        switch next {
        case .reset?, .failedEvent?: break
        default:
            current.unrecordedReset()
            return nil
        }
        do throws(TransportError) { return .octets(try current.reset()) } catch { return Self.answer(for: error) }
    }

    /// Nil when the recording stands at no such control.
    func control(code: UInt32, input: [UInt8]) -> ReaderAnswer? {
        guard case .control(_, let recorded, let sent, _)? = next, recorded == Int(code), sent ?? input == input else {
            return nil
        }
        do throws(TransportError) { return .octets(try current.control(code: code, input: input)) } catch {
            return Self.answer(for: error)
        }
    }

    /// Goes past a recorded removal.
    func passRemoval() {
        if standsAtRemoval { try? current.removal() }
    }

    /// Begins again.
    func rewind() {
        // What could be prepared once can be prepared again.
        guard case .success(let stage) = replay.prepare(nil, mode, transport: transport.row.id) else { return }
        card.withLock { $0 = RecordedCard(stage.transport, matching: stage.matching, policy: stage.policy) }
    }

    /// How it went until now, as if the program had ended.
    func report(seconds: Double) -> ReplayReport {
        passReader()
        let card = current
        // The program's own result is not compared; so neither is a recorded one.
        let row = MetaRow.Call(id: 0, flow: nil, function: "a program")
        var call = RecordedSession.Call(row: row, packet: 0)
        let isCutShort = if case .unanswered(let step)? = card.difference { step == transport.steps.count - 1 } else { false }
        if !isCutShort { call.outcome = MetaRow.Return(call: 0) }
        let comparison = Comparison(
            session: replay.session, trace: replay.trace, secrets: replay.secrets, call: call, card: card,
            draws: ReplayDraws(call: call, secrets: replay.secrets), options: replay.options)
        var report = ReplayReport(exchanges: transport.steps.count(where: \.isExchange), seconds: seconds, verdict: .same)
        comparison.judge(.success(nil), into: &report)
        report.mode = mode
        report.notes = notes
        report.notCompared = transport.steps.count { $0.command.map { !$0.unknown.isEmpty } ?? false }
        return report
    }

    // MARK: - Steps

    private var current: RecordedCard { card.withLock { $0 } }

    private var next: RecordedSession.Step? {
        let place = current.next
        return place < transport.steps.count ? transport.steps[place] : nil
    }

    /// Goes past what was recorded of the reader: the program has not asked for it here, or in its own way.
    private func passReader() {
        let card = current
        while card.difference == nil, let step = next {
            do throws(TransportError) {
                switch step {
                case .reset, .failedEvent: _ = try card.reset()
                case .removal: try card.removal()
                case .control(_, let code, let input, _):
                    _ = try card.control(code: UInt32(clamping: code), input: input ?? [])
                case .apdu, .frame, .structured: return
                }
            } catch {
                // A recorded failure of the reader: passed all the same.
                continue
            }
        }
    }

    /// The time that an answer took when it was recorded, at the speed asked for; the thread is the reader's own.
    private func wait(for recorded: UInt64) {
        let nanoseconds = min(Double(recorded) * replay.options.timeScale, RecordedTransport.longestWait)
        guard nanoseconds >= 1 else { return }
        var (time, rest) = (timespec(tv_sec: Int(nanoseconds / 1e9), tv_nsec: Int(nanoseconds) % 1_000_000_000), timespec())
        while nanosleep(&time, &rest) != 0, errno == EINTR { time = rest }
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
