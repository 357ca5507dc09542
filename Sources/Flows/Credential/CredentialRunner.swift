// SPDX-License-Identifier: MIT

import CardCrypto
import FoundationEssentials
import Octets
import SecureElementCredential
import Synchronization
import TagTransport

/// Runs the steps of a script one after another. It lives in one task.
final class CredentialRunner {
    typealias ErrorCode = CredentialSession.ErrorCode
    typealias Line = CredentialScript.Line

    let device: CredentialDevice
    let clock: SteppedClock
    let observer: ScriptObserver
    let person: ScriptPerson
    let reader: ScriptReader
    let world: CredentialWorld
    let configurations: [ProductConfiguration]
    private let isRealTime: Bool
    var session = CredentialSession()
    var scene = ProgramScene()
    /// Credentials by label, in the order in which they were met.
    var credentials: [CredentialSession.Credential] = []
    var assertions: [CredentialSession.PresentmentIntentAssertion] = []
    var readerSteps = 0
    /// The environment's time at session time 0.
    private var origin: Int64?

    init(
        device: CredentialDevice, clock: SteppedClock, observer: ScriptObserver, person: ScriptPerson, reader: ScriptReader,
        world: CredentialWorld, configurations: [ProductConfiguration], isRealTime: Bool
    ) {
        self.device = device
        self.clock = clock
        self.observer = observer
        self.person = person
        self.reader = reader
        self.world = world
        self.configurations = configurations
        self.isRealTime = isRealTime
    }

    func run(_ script: CredentialScript, progress: @Sendable (String) -> Void) async throws -> [CredentialFlow.Step] {
        var steps: [CredentialFlow.Step] = []
        do {
            for line in script.lines {
                try Task.checkCancellation()
                try await catchUp()
                let start = ContinuousClock.now
                let outcome = await outcome(of: line)
                if case .failure(let error as CredentialScriptError) = outcome { throw error }
                if case .failure(let error) = outcome, !(error is ErrorCode) { throw error }
                let code = outcome.failure
                let result = try? outcome.get()
                let state = stateText(await session.state)
                let step = CredentialFlow.Step(
                    line: line.number, call: line.verb, result: result, error: code?.name, state: state)
                steps.append(step)
                let took = line.verb == "transceive" || line.verb == "tap" ? ContinuousClock.now - start : nil
                progress(text(line, step, took, await note()))
                try check(line, result, code)
            }
        } catch {
            try? await session.invalidate()
            throw error
        }
        // A script that leaves its session open ends it like a program that ends.
        if await session.state != .invalid { try await session.invalidate() }
        return steps
    }

    private func outcome(of line: Line) async -> Result<String?, any Error> {
        do { return .success(try await perform(line)) } catch { return .failure(error) }
    }

    // MARK: - Time

    /// Brings session time to the environment's.
    private func catchUp() async throws {
        guard isRealTime else { return }
        let now = try CardEnvironment.current.monotonicNanoseconds()
        let start = origin ?? now
        origin = start
        await clock.advance(to: now &- start)
    }

    /// Lets session time pass, in real time only where that is wanted and time passes at all.
    func wait(_ seconds: Double) async throws {
        let nanoseconds = Int64(seconds * 1e9)
        guard isRealTime else { return await clock.advance(by: .nanoseconds(nanoseconds)) }
        let target = clock.now.addingReportingOverflow(nanoseconds).partialValue
        while clock.now < target {
            let next = min(clock.nextDeadline ?? target, target)
            if FlowClock.runs, next > clock.now { try await Task.sleep(for: .nanoseconds(next &- clock.now)) }
            let before = clock.now
            try await catchUp()
            // A clock that does not go on would hold a replay for ever.
            if clock.now <= before { await clock.advance(to: next) }
        }
    }

    // MARK: - Words

    func credential(_ word: CredentialScript.Word, _ line: Line) throws -> CredentialSession.Credential {
        if word.isQuoted {
            if let found = credentials.last(where: { $0.name == word.text }) { return found }
        } else if word.text.hasPrefix("C"), let number = Int(word.text.dropFirst()), number > 0, number <= credentials.count {
            return credentials[number - 1]
        }
        throw CredentialScriptError(
            .argument, line: line.number, column: word.column,
            "no credential \(word.text) yet; \(credentials.isEmpty ? "list or provision one first" : "there are C1 to C\(credentials.count)")"
        )
    }

    func label(of credential: CredentialSession.Credential) -> String {
        if let index = credentials.firstIndex(where: { $0.identifier == credential.identifier }) {
            credentials[index] = credential
            return "C\(index + 1)"
        }
        credentials.append(credential)
        return "C\(credentials.count)"
    }

    func octets(_ word: CredentialScript.Word, _ line: Line) throws -> [UInt8] {
        do { return try Hex.decode(word.text) } catch {
            throw CredentialScriptError(
                .argument, line: line.number, column: word.column + error.offset, "not hexadecimal bytes")
        }
    }

    func seconds(_ line: Line) throws -> Double {
        let text = line.words[0].text
        let number = text.hasSuffix("s") ? String(text.dropLast()) : text
        guard line.words.count == 1 || line.words[1].text == "s", let seconds = Double(number), (0...86_400).contains(seconds)
        else {
            throw CredentialScriptError(
                .argument, line: line.number, column: line.words[0].column,
                "\(line.verb) takes seconds, 0 to 86400: \(line.verb) 16 s")
        }
        return seconds
    }

    func choice<Value>(_ line: Line, _ values: [(String, Value)]) throws -> Value {
        if let found = values.first(where: { $0.0 == line.words[0].text }) { return found.1 }
        throw CredentialScriptError(
            .argument, line: line.number, column: line.words[0].column,
            "\(line.verb) takes \(values.map(\.0).joined(separator: " or ")), not \(line.words[0].text)")
    }

    // MARK: - Checking and showing

    private func check(_ line: Line, _ result: String?, _ code: ErrorCode?) throws {
        func mismatch(_ column: Int, _ wanted: String) -> CredentialScriptError {
            let came = code.map { "threw \($0.name)" } ?? result.map { "came to \($0)" } ?? "returned"
            return CredentialScriptError(.mismatch, line: line.number, column: column, "expected \(wanted); \(line.verb) \(came)")
        }
        switch line.expectation {
        case .success: if code != nil { throw mismatch(line.column, "no error") }
        case .throwing(let wanted): if code != wanted { throw mismatch(line.column, "the error \(wanted.name)") }
        case .result(let word):
            guard let result, code == nil else { throw mismatch(word.column, word.text) }
            if line.verb == "transceive" || line.verb == "tap" {
                let pattern: AnswerPattern
                do { pattern = try AnswerPattern(Array("=\(word.text)".utf8), line: line.number, column: word.column) } catch {
                    throw CredentialScriptError(.argument, line: line.number, column: word.column, error.detail)
                }
                if !pattern.matches((try? Hex.decode(result)) ?? []) { throw mismatch(word.column, word.text) }
            } else if result != word.text {
                throw mismatch(word.column, word.text)
            }
        }
    }

    func stateText(_ state: CredentialSession.State) -> String {
        guard let credential = state.credential else { return state.name }
        return "\(state.name) \(label(of: credential))"
    }

    /// What the state's clock says.
    private func note() async -> String {
        let limits = device.rules.limits
        let since = observer.seen.withLock { $0.changedAt }
        func count(_ name: String, _ limit: Duration) -> String {
            let elapsed = since.map { clock.now &- $0 } ?? 0
            return "\(name) \(elapsed / 1_000_000_000) of \(limit.components.seconds) s"
        }
        switch await session.state {
        case .wired: return lastWasExchange ? "idle 0 of \(limits.wiredIdle.components.seconds) s" : ""
        case .cardEmulation: return count("emulation", limits.cardEmulation)
        case .invalid:
            if let since, let before = stepBegan, since > before, since <= clock.now { return "at \(fixed(since)) s" }
            return ""
        case .management: return ""
        }
    }

    private var lastWasExchange = false
    private var stepBegan: Int64?

    func willPerform(_ line: Line) {
        lastWasExchange = line.verb == "transceive"
        stepBegan = clock.now
    }

    private func fixed(_ nanoseconds: Int64) -> String {
        let milliseconds = nanoseconds / 1_000_000
        let rest = "\(milliseconds % 1_000)"
        return "\(milliseconds / 1_000).\(String(repeating: "0", count: max(0, 3 - rest.count)))\(rest)"
    }

    /// `   4  transceive SELECT -> 9000, 0.2 ms        wired C1      idle 0 of 15 s`.
    private func text(_ line: Line, _ step: CredentialFlow.Step, _ took: Duration?, _ note: String) -> String {
        func padded(_ text: String, _ width: Int) -> String {
            text.count >= width ? text + " " : text + String(repeating: " ", count: width - text.count)
        }
        var call = "\(step.call)\(step.error == nil ? "\(argumentText(line))" : "")"
        if let error = step.error { call += ": \(error)" }
        if let result = step.result, line.verb != "state" || step.error == nil { call += " -> \(short(result, line))" }
        if let took, step.error == nil {
            let tenths = took.components.attoseconds / 100_000_000_000_000 + took.components.seconds * 10_000
            call += ", \(tenths / 10).\(tenths % 10) ms"
        }
        if line.verb == "wait" { call += isRealTime ? "" : " (test clock, no time spent)" }
        var remark = note
        if case .throwing(let code) = line.expectation, step.error == code.name { remark = "as expected" }
        let number = "\(line.number)"
        let head = String(repeating: " ", count: max(0, 4 - number.count)) + number + "  "
        var whole = head + padded(call, 41) + padded(step.state, 14) + remark
        while whole.hasSuffix(" ") { whole.removeLast() }
        return whole
    }

    private func argumentText(_ line: Line) -> String {
        guard let first = line.words.first else { return "" }
        if line.verb == "transceive" || line.verb == "tap" {
            return " " + (Self.instructionName(first.text) ?? "\(first.text.count / 2) bytes")
        }
        return line.words.map { $0.isQuoted ? " \"\($0.text)\"" : " \($0.text)" }.joined()
    }

    /// The status word alone, or what else the step came to.
    private func short(_ result: String, _ line: Line) -> String {
        line.verb == "transceive" || line.verb == "tap" ? String(result.suffix(4)) : result
    }

    private static func instructionName(_ hex: String) -> String? {
        guard let octets = try? Hex.decode(hex), octets.count >= 4 else { return nil }
        return switch octets[1] {
        case 0xA4: "SELECT"
        case 0xB0: "READ BINARY"
        case 0xB2: "READ RECORD"
        case 0x88: "INTERNAL AUTHENTICATE"
        case 0xCA: "GET DATA"
        case 0xC0: "GET RESPONSE"
        case 0xA8: "GET PROCESSING OPTIONS"
        case 0xAE: "GENERATE AC"
        default: "INS \(Hex.encode([octets[1]]))"
        }
    }
}

extension Result where Success == String?, Failure == any Error {
    fileprivate var failure: CredentialSession.ErrorCode? {
        if case .failure(let error) = self { error as? CredentialSession.ErrorCode } else { nil }
    }
}
