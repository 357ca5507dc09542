// SPDX-License-Identifier: MIT

import Glibc
import Replay
import TraceDecoding
import TraceFile
import Tracing

/// `replay --update`: traces that differ are recorded again from the run that differs, after what changes was shown.
struct ReplayUpdate: Sendable {
    let run: ReplayRun

    /// - Returns: the status: fine when every trace that differed could be recorded again.
    func update(_ results: [ReplaySuite.Result], _ status: ExitStatus) async throws -> ExitStatus {
        var rest = ExitStatus.fine
        for result in results {
            guard result.outcome == .differs else {
                rest = max(rest, ReplayRun.status(result))
                continue
            }
            rest = max(rest, try await update(result.item))
        }
        return rest
    }

    private func update(_ item: ReplaySuite.Item) async throws -> ExitStatus {
        let terminal = run.terminal
        guard item.path.hasSuffix(".pcapng") else {
            terminal.error(["\(item.path) is packed and cannot be updated", "gunzip \(item.path)"])
            return .wrongUsage
        }
        var options = run.options
        // What was never asked has to be answered somehow; each such answer is a mark in the new trace.
        if options.unrecorded == .stop { options.unrecorded = .model }
        let (replay, trace) = try run.replay(item, options)
        let side = SecretStore.sidePath(forTrace: item.path)
        let placement: SecretsPlacement = !trace.secrets.isEmpty ? .embedded : access(side, F_OK) == 0 ? .beside : .none
        let fresh = "\(item.path.dropLast(7)).update-\(getpid()).pcapng"
        let freshSide = SecretStore.sidePath(forTrace: fresh)
        defer {
            unlink(fresh)
            unlink(freshSide)
        }
        let report: ReplayReport
        do { report = try await replay.record(to: fresh, secrets: placement) } catch let blocked as Blocked {
            terminal.error(ReplayText.lines(blocked, path: item.path))
            return .outside
        } catch let error as TraceFileError {
            throw TraceAccess.failure(error)
        }
        if case .differs(let divergence) = report.verdict, !Self.isOutcome(divergence.kind) {
            terminal.error([
                "\(item.path) cannot be recorded again: the recorded card had no answer", "\(divergence)",
                "tapdeck replay --update --unrecorded next \(item.path)",
            ])
            return .notSo
        }
        let new: Trace
        do { new = try Trace.load(path: fresh) } catch { throw TraceAccess.failure(error) }
        let old = try TraceAccess.secrets(
            for: item.path, session: trace.header.session, embedded: trace.secrets, run.arguments
        ).store
        let store =
            (try? SecretStore.load(forTrace: fresh, session: new.header.session, embedded: new.secrets).store) ?? SecretStore()
        let diff = TraceDiff((trace, old), (new, store), grammars: options.grammars)
        DiffText.lines(diff, item.path, "\(item.path) now").forEach(terminal.result)
        ReplayText.notes(report).forEach(terminal.result)
        guard rename(fresh, item.path) == 0, placement != .beside || rename(freshSide, side) == 0 else {
            throw Failure(.outside, "\(item.path) cannot be replaced: \(String(cString: strerror(errno)))")
        }
        terminal.result("updated  \(item.path)")
        return .fine
    }

    /// Whether a run came to its own end, be it another one.
    private static func isOutcome(_ kind: Divergence.Kind) -> Bool {
        switch kind {
        case .result, .missing: true
        default: false
        }
    }
}
