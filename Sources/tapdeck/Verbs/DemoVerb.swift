// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Flows
import Octets
import Replay
import Synchronization
import TagTransport
import TraceDecoding
import TraceFile
import Tracing
import VirtualCards

/// `demo`: record, show and replay a virtual passport, so that the whole path is seen without a reader.
enum DemoVerb: Verb {
    static let name = "demo"
    static let summary = "record, show and replay a virtual passport; no reader needed"
    static let synopsis = ["demo"]
    static let options: [OptionSpec] = []
    static let details = ["Leaves demo.pcapng and demo.secrets in this folder. A second run replaces these two and no others."]

    private static let path = "demo.pcapng"
    private static let key = "L898902C<369080619406236"

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        terminal.result("A virtual passport with the data of the ICAO specimen. No reader is needed.")
        terminal.result("")
        try await record(terminal)
        terminal.result("")
        let trace: Trace
        do { trace = try Trace.load(path: path) } catch { throw TraceAccess.failure(error) }
        let secrets = try TraceAccess.secrets(for: path, session: trace.header.session, embedded: trace.secrets, arguments).store
        show(trace, secrets, terminal)
        terminal.result("")
        let status = await replay(trace, secrets, terminal)
        guard status == .fine else { return status }
        terminal.result("")
        terminal.result("Next")
        for (command, what) in [
            ("wireshark demo.pcapng", "opens as it is"), ("tapdeck doctor", "is a real reader ready"),
            ("tapdeck record passport", "your own document"),
        ] { terminal.result("  \(pad(command, 34)) \(what)") }
        return .fine
    }

    // MARK: - Steps

    private static func record(_ terminal: Terminal) async throws {
        terminal.result("1  tapdeck record -o demo.pcapng --card virtual:passport passport \\")
        terminal.result("       --mrz-key '\(key)' --dg com,sod,dg1")
        guard let flow = FlowTable.named("passport") else { throw Failure(.outside, "the passport flow is missing") }
        let transport: VirtualCardTransport
        do { transport = VirtualCardTransport(try VirtualCardCatalog.make(kind: "passport")) } catch {
            throw Failure(.outside, error.description)
        }
        let recording: Recording
        do { recording = try Recording(to: path, replacing: true) } catch { throw TraceAccess.failure(error) }
        let steps = DemoSteps()
        let json = JSONValue.object(
            PassportOptions.flowArguments("mrzKey", key, dataGroups: ["com", "sod", "dg1"])
        ).text
        do {
            let outcome = try await PassportProgress.$observer.withValue(PassportProgress.Observer { steps.add($0) }) {
                try await recording.run(flow: flow, argumentsJSON: json, over: transport)
            }
            try recording.close()
            steps.lines.forEach { terminal.result("     \($0)") }
            for line in mrz(outcome) { terminal.result("       \(line)") }
        } catch let error as TraceFileError {
            throw TraceAccess.failure(error)
        } catch {
            steps.lines.forEach { terminal.result("     \($0)") }
            let failure = FlowFailure.describe(error)
            throw Failure(ExitStatus(rawValue: failure.exitStatus) ?? .notSo, "\(failure.blame.rawValue): \(failure.detail)")
        }
        terminal.result("     wrote   demo.pcapng (\(size(recording.summary.byteCount)))   demo.secrets (keys and random bytes)")
    }

    /// The lines of the machine readable zone that came out of DG1.
    private static func mrz(_ outcome: String) -> [String] {
        guard let text = (try? JSONValue.parse(outcome))?["mrz"]?["mrzString"]?.stringValue else { return [] }
        let lines = text.split(whereSeparator: \.isNewline).map(String.init)
        if lines.count > 1 { return lines }
        // TD3 has two lines of 44 characters, TD2 two of 36, TD1 three of 30 (ICAO 9303-4 to -6).
        let width = [88: 44, 72: 36, 90: 30][text.count] ?? 44
        return stride(from: 0, to: text.count, by: width).map { String(text.dropFirst($0).prefix(width)) }
    }

    private static func show(_ trace: Trace, _ secrets: SecretStore, _ terminal: Terminal) {
        var decoder = TraceDecoder(interfaces: trace.interfaces, secrets: secrets)
        var summary = TraceSummary()
        var lines: [SummaryLine] = []
        for row in trace.rows { lines += summary.push(decoder.push(row)) }
        lines += summary.end()
        let first = lines.first { $0.answer == "keys agreed" }?.number ?? 1
        let last = first + 3
        terminal.result("2  tapdeck show demo.pcapng \(first)-\(last)")
        for line in lines where (first...last).contains(line.number) { terminal.result("   \(line.text())") }
        let authentication = decoder.authentication
        terminal.result(
            "     \(summary.protected.opened == summary.protected.all ? "all " : "\(summary.protected.opened) of ")\(summary.protected.all) secure messages opened; \(authentication.held) of \(authentication.checked) MACs held"
        )
    }

    private static func replay(_ trace: Trace, _ secrets: SecretStore, _ terminal: Terminal) async -> ExitStatus {
        terminal.result("3  tapdeck replay demo.pcapng")
        let report = await Replay(of: trace, secrets: secrets).run()
        switch report.verdict {
        case .same:
            let text = "same   \(report.exchanges) exchanges, same result, no reader reachable"
            terminal.result("     \(pad(text, 59)) \(SummaryLine.span(UInt64(report.seconds * 1e9)))")
            return .fine
        case .differs(let divergence):
            ReplayText.lines(divergence, report, path: path).forEach(terminal.result)
            return .notSo
        case .blocked(let blocked):
            terminal.error(ReplayText.lines(blocked, path: path))
            return .outside
        }
    }
}

/// The finished steps of the demo's passport read; exchanges of steps that are not shown count for the next one.
private final class DemoSteps: Sendable {
    private struct State {
        var lines: [String] = []
        var carried = 0
    }

    private let state = Mutex(State())

    var lines: [String] { state.withLock { $0.lines } }

    func add(_ progress: PassportProgress) {
        state.withLock { state in
            guard progress.state != .running, progress.stage != .result else { return }
            let count = progress.exchanges + state.carried
            if progress.stage == .access, progress.subject == "EF.CardAccess", progress.state == .done || progress.exchanges > 0 {
                state.carried = count
                return
            }
            state.carried = 0
            let text = progress.text
            let exchanges = "\(count) exchange\(count == 1 ? "" : "s")"
            state.lines.append(
                "\(pad(progress.stage.rawValue, 7)) \(pad(progress.subject, 8)) \(pad(text, 41)) \(padLeft(exchanges, 13))")
        }
    }
}
