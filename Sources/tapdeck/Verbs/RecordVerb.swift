// SPDX-License-Identifier: MIT

import CoreExtendedNFC
import Flows
import Glibc
import PCSC
import Synchronization
import TagTransport
import TraceDecoding
import TraceFile
import Tracing

/// `record`: a flow of the library over a card, with everything that passes kept in a trace.
enum RecordVerb: Verb {
    static let name = "record"
    static let summary = "run a flow over a card and keep everything that passes"
    static let synopsis = [
        "record [-o FILE] [--reader NAME|N | --card virtual:KIND[?OPTIONS]] [--wait S] passport "
            + "--mrz-key KEY | --can CAN | --number N --birth D --expiry D [--dg LIST] [--csca FILE]",
        "record [-o FILE] [--reader NAME|N | --card virtual:KIND[?OPTIONS]] [--wait S] apdu SCRIPT",
        "record [-o FILE] [--reader NAME|N | --card virtual:KIND[?OPTIONS]] [--wait S] desfire|ntag424|ndef [--key N=VALUE ...]",
        "record [-o FILE] [--rules RULES] [--real-time] [--element simulated|reader] [--store DIR] [--key KEY] credential STEPS",
    ]
    static let options =
        [
            OptionSpec("-o", .required("FILE"), "the trace; FLOW-DATE-TIME.pcapng without it"),
            OptionSpec("--force", .none, "replace an existing file"),
            OptionSpec("--reader", .required("NAME|N"), "a reader by its number or a part of its name"),
            OptionSpec("--card", .required("virtual:KIND"), "a virtual card in this process: virtual:passport?seed=7"),
            OptionSpec("--wait", .required("S"), "seconds to wait for a card; 60 at a terminal, else 0"),
            OptionSpec("--embed-secrets", .none, "keep the secrets inside the trace"),
            OptionSpec("--no-secrets", .none, "keep no secrets: such a trace cannot be replayed by itself"),
        ] + PassportOptions.specs + CardKeyOptions.specs + CredentialRecording.specs
    static let details = [
        "SCRIPT has a command in hex a line; # comments; !reset, !remove, !wait MS; a line = HEX or = 90?? checks the answer before it.",
        "An MRZ key has < in it and must be quoted: --mrz-key 'L898902C<369080619406236'",
        "virtual:KIND?options=FILE takes the card's options from a file; tapdeck virtual --help lists them.",
        "STEPS has a call of a credential session a line: enterWiredMode C1; -> RESULT or throws ERROR checks it; wait 16 s.",
        "Status 0 when the flow succeeded, 1 when the card or a check refused, 3 when reader or card went away.",
    ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        if arguments.program != nil {
            throw Failure.usage(
                "record -- PROGRAM is not there yet; flows are: \(FlowTable.all.map(\.name).joined(separator: ", "))")
        }
        guard let flowName = arguments.operands.first else {
            throw Failure.usage(
                "record needs a flow: \(FlowTable.all.map(\.name).joined(separator: ", "))", "tapdeck record --help")
        }
        guard let flow = FlowTable.named(flowName) else {
            throw Failure.usage("unknown flow \(flowName)\(Nearest.suggestion(for: flowName, among: FlowTable.all.map(\.name)))")
        }
        let path = arguments.value("-o") ?? "\(flowName)-\(UTC.fileStamp(UTC.now())).pcapng"
        let placement = try placement(arguments)
        // Nobody is to wait for a card and then be told that the file is there already.
        if access(path, F_OK) == 0, !arguments.has("--force") { throw TraceAccess.failure(TraceFileError(.exists, path: path)) }
        if flowName == CredentialFlow.name {
            let credential = try await CredentialRecording.open(arguments, terminal)
            let session = RecordSession(
                flow: flow, argumentsJSON: credential.argumentsJSON, path: path, placement: placement, terminal: terminal)
            return try await CredentialWorld.$current.withValue(credential.world) {
                try await session.run(over: credential.transport, replacing: arguments.has("--force"), arguments)
            }
        }
        let argumentsJSON = try flowArguments(flowName, arguments, terminal)
        let session = RecordSession(
            flow: flow, argumentsJSON: argumentsJSON, path: path, placement: placement, terminal: terminal)
        return try await session.run(
            over: try await CardSource.open(arguments, terminal), replacing: arguments.has("--force"), arguments)
    }

    private static func placement(_ arguments: Arguments) throws -> SecretsPlacement {
        switch (arguments.has("--embed-secrets"), arguments.has("--no-secrets")) {
        case (true, true): throw Failure.usage("--embed-secrets and --no-secrets exclude each other")
        case (true, false): .embedded
        case (false, true): .none
        case (false, false): .beside
        }
    }

    private static func flowArguments(_ flow: String, _ arguments: Arguments, _ terminal: Terminal) throws -> String {
        switch flow {
        case "passport":
            guard arguments.operands.count == 1 else {
                throw Failure.usage("passport takes no operand: \(arguments.operands[1])")
            }
            return try PassportOptions.argumentsJSON(arguments, terminal)
        case "apdu":
            guard arguments.operands.count == 2 else {
                throw Failure.usage("apdu takes one script: tapdeck record apdu SCRIPT, - for standard input")
            }
            let text = try FileText.read(arguments.operands[1], limit: 1 << 24)
            do { _ = try APDUScript(text) } catch { throw Failure(.wrongUsage, "\(arguments.operands[1]): \(error)") }
            return JSONValue.object(["script": .string(text)]).text
        case "desfire": return try CardKeyOptions.desfire(arguments, terminal)
        case "ntag424": return try CardKeyOptions.ntag424(arguments, terminal)
        case "ndef":
            try CardKeyOptions.requireNoOperand(arguments)
            try CardKeyOptions.requireNone(of: ["--key", "--key-type", "--aid", "--method", "--native"], arguments)
            return "{}"
        default:
            throw Failure.usage("the flow \(flow) has no options here")
        }
    }
}

/// One run of `record`.
struct RecordSession: Sendable {
    let flow: AnyFlow
    let argumentsJSON: String
    let path: String
    let placement: SecretsPlacement
    let terminal: Terminal

    func run(over transport: any NFCTagTransport, replacing: Bool, _ arguments: Arguments) async throws -> ExitStatus {
        let recording: Recording
        do { recording = try Recording(to: path, secrets: placement, replacing: replacing) } catch {
            if error.code == .notFound { throw Failure(.outside, "\(path) cannot be made: there is no such folder") }
            throw TraceAccess.failure(error)
        }
        let start = ContinuousClock.now
        let stages = StageLines(terminal: terminal)
        // The steps of a credential script are its result, and shown as they happen.
        let isScript = flow.name == CredentialFlow.name && !arguments.wantsJSON
        let terminal = terminal
        let progress: @Sendable (String) -> Void = { text in if isScript { terminal.result(text) } }
        if isScript { terminal.note("line  call                                     state after") }
        var failure: FlowFailure?
        var outcome = ""
        do {
            outcome = try await Interruption.cancelling {
                try await PassportProgress.$observer.withValue(PassportProgress.Observer { stages.show($0) }) {
                    // The card is nobody else's for the length of the flow.
                    guard let reader = transport as? PCSCTransport else {
                        return try await recording.run(
                            flow: flow, argumentsJSON: argumentsJSON, over: transport, progress: progress)
                    }
                    return try await reader.withTransaction {
                        try await recording.run(flow: flow, argumentsJSON: argumentsJSON, over: reader, progress: progress)
                    }
                }
            }
        } catch {
            failure = FlowFailure.describe(error)
        }
        let elapsed = ContinuousClock.now - start
        var writeError: TraceFileError?
        do { try recording.close() } catch { writeError = error }
        if let reader = transport as? PCSCTransport { try? await reader.card.disconnect() }

        let loss = failure == nil ? FlowOutcome.loss(flow.name, outcome) : nil
        if failure == nil {
            FlowOutcome.lines(flow.name, outcome, argumentsJSON: argumentsJSON, isJSON: arguments.wantsJSON).forEach(
                terminal.result)
        }
        closing(recording.summary, elapsed, failure, loss)
        if let writeError {
            terminal.error([writeError.description])
            return .outside
        }
        if Interruption.wasAsked { return .interrupted }
        if let failure { return ExitStatus(rawValue: failure.exitStatus) ?? .outside }
        return loss?.status ?? .fine
    }

    /// The steps of a credential script.
    private var stepCount: Int? {
        (try? JSONValue.parse(argumentsJSON))?["script"]?.stringValue.flatMap { try? CredentialScript($0) }?.lines.count
    }

    /// Size, what went wrong first, and the next command.
    private func closing(_ summary: RecordingSummary, _ elapsed: Duration, _ failure: FlowFailure?, _ loss: FlowLoss?) {
        let nanoseconds =
            UInt64(clamping: elapsed.components.seconds) &* 1_000_000_000
            &+ UInt64(clamping: elapsed.components.attoseconds / 1_000_000_000)
        if let failure {
            let hint = FailureText.hint(failure, argumentsJSON: argumentsJSON)
            terminal.error([FailureText.line(failure, lost: summary.lostExchange)] + [hint].compactMap { $0 })
            if let refusal = summary.lastRefusal {
                let fields = APDUFields.standard
                let isNative = flow.name == "desfire" || refusal.status >> 8 == 0x91
                let command =
                    isNative ? fields.nativeCommand(refusal.instruction) : fields.instruction(refusal.instruction)
                terminal.note(
                    "last refusal: exchange \(refusal.exchange), card answered \(fields.status(refusal.status)) to \(command)")
            }
        }
        if let loss { terminal.error([loss.text]) }
        if flow.name == CredentialFlow.name, failure == nil, let count = stepCount {
            terminal.note("\(count) of \(count) steps as written; \(path), \(grouped(summary.rows)) rows")
            terminal.note("  tapdeck show \(path)")
            return
        }
        let exchanges = "\(grouped(summary.exchanges)) exchange\(summary.exchanges == 1 ? "" : "s")"
        terminal.note("\(path): \(exchanges), \(SummaryLine.span(nanoseconds)), \(size(summary.byteCount))")
        if flow.name == "passport", placement != .none {
            terminal.note(
                placement == .beside
                    ? "both files hold one person's document: share neither"
                    : "this file holds one person's document: do not share it")
        }
        terminal.note("  tapdeck show \(path)")
    }
}

/// The progress of a passport read as lines, one a step, with the time that it took.
final class StageLines: Sendable {
    private let terminal: Terminal
    private let last: Mutex<ContinuousClock.Instant>

    init(terminal: Terminal) {
        self.terminal = terminal
        last = Mutex(ContinuousClock.now)
    }

    func show(_ progress: PassportProgress) {
        let isFinished = progress.state != .running
        guard isFinished || terminal.errorIsTerminal, progress.stage != .result else { return }
        let now = ContinuousClock.now
        let took = last.withLock { last in
            defer { if isFinished { last = now } }
            return now - last
        }
        let tenths = took.components.seconds * 10 + took.components.attoseconds / 100_000_000_000_000_000
        let seconds = "\(tenths / 10).\(tenths % 10) s"
        terminal.stage(StageLines.line(progress, seconds), isFinished: isFinished)
    }

    /// `read     EF.COM         22 bytes                                        0.1 s`.
    static func line(_ progress: PassportProgress, _ took: String) -> String {
        // What failed is told at the end in full; here its first words have to do.
        var text = progress.text.count > 47 ? String(progress.text.prefix { $0 != ":" }.prefix(47)) : progress.text
        if progress.state == .running, let done = progress.bytesDone, let total = progress.bytesTotal, total > 0 {
            text = "\(grouped(done)) of \(grouped(total)) bytes   \(done * 100 / total) %"
        }
        return "\(pad(progress.stage.rawValue, 8)) \(pad(progress.subject, 14)) \(pad(text, 47)) \(took)"
    }
}
