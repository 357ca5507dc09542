// SPDX-License-Identifier: MIT

import Octets
import TraceFile

/// The lines of a credential session: a call a line, with the state that it led to, and what happened by itself.
///
/// What passes between the session and the secure element for a call's sake is folded into the call's line, but for
/// `transceive`, whose exchange stands for the call.
struct SessionLines: Sendable {
    /// The flow's call, once there is one.
    private var flow: Int?
    /// Reader N of the session's own transport.
    private var own = 0
    private var calls: [Int: Call] = [:]
    /// The call that runs, and has not returned.
    private var running: Int?
    /// A line that waits for the state that it led to.
    private var waiting: SummaryLine?
    /// Identifiers of credentials with their numbers, in the order in which they were met: C1, C2.
    private var credentials: [String: Int] = [:]
    /// What folded rows had to say.
    private var held: [Annotation] = []
    private var lastFolded: UInt64 = 0

    /// More than a session has: a trace may hold any number of calls without an end, and of names.
    private static let most = 10_000

    private(set) var rules = "ios27.1"
    private(set) var illegal = 0
    private(set) var refused = 0
    private(set) var contested = 0
    /// `wired C1`: the state now.
    private(set) var state = "invalid"

    private struct Call: Sendable {
        var name: String
        var text: String
        var start: SummaryLine
    }

    var isActive: Bool { flow != nil }

    /// `rules ios27.1; 0 illegal transitions, 1 refused call, 0 contested`.
    var closing: String {
        "rules \(rules); \(illegal) illegal transition\(illegal == 1 ? "" : "s"), \(refused) refused call\(refused == 1 ? "" : "s"), \(contested) contested"
    }

    /// Takes in a row.
    ///
    /// - Parameter line: the row's line, were it shown as any other.
    /// - Returns: the lines that it finishes; nil when the row is shown as any other.
    mutating func push(_ row: DecodedRow, _ line: SummaryLine) -> [SummaryLine]? {
        count(row)
        switch row.meta {
        case .call(let call)?:
            if call.flow == "credential", flow == nil {
                flow = call.id
                own = (call.transport ?? 1) &- 1
                rules = call.args["rules"]?.stringValue ?? rules
                return []
            }
            guard isActive, call.parent == flow else { return nil }
            return begin(call, line)
        case .return(let end)?:
            guard isActive else { return nil }
            if end.call == flow { return end.ok ? flush() : nil }
            return finish(end, line, row)
        case .state(let change)?:
            guard isActive, change.machine == "CredentialSession" else { return nil }
            return enter(change, line)
        case .event(let event)?:
            guard isActive else { return nil }
            return happened(event, line)
        case .entropy?: return isActive ? [] : nil
        case .error(let failure)?: return fold(failure, line)
        case .mark?: return nil
        default: break
        }
        let isTransceive = running.map { calls[$0]?.name == "transceive" } ?? false
        // The emulated card comes into its reader while the call runs that leads to it.
        let isFolded = isOwn(row.interface) ? !isTransceive : row.kind == .reader && running != nil
        guard isActive, isFolded else { return nil }
        if held.count < 100 { held += line.annotations.filter { $0.severity != .note } }
        lastFolded = row.row.packetID ?? lastFolded
        return []
    }

    /// The line that waited.
    mutating func flush() -> [SummaryLine] {
        defer { waiting = nil }
        return waiting.map { [$0] } ?? []
    }

    /// An error under a call is told under the call's line, with the reader service's code; one of an exchange stands by itself.
    private mutating func fold(_ failure: MetaRow.Failure, _ line: SummaryLine) -> [SummaryLine]? {
        guard isActive, let running, calls[running]?.name != "transceive" else { return nil }
        for annotation in line.annotations where held.count < 100 {
            var told = annotation
            if let code = failure.code { told.text += " (\(code))" }
            held.append(told)
        }
        return []
    }

    private func isOwn(_ interface: InterfaceKind) -> Bool {
        switch interface {
        case .apdu(let reader), .rf(let reader), .reader(let reader): reader == own
        default: false
        }
    }

    private mutating func count(_ row: DecodedRow) {
        let isRefusal = if case .return(let end)? = row.meta { !end.ok && end.call != flow } else { false }
        for annotation in row.annotations {
            if annotation.code == "contested" { contested += 1 }
            if annotation.code == "illegal", !isRefusal { illegal += 1 }
        }
        if isRefusal, isActive { refused += 1 }
    }

    // MARK: - Calls

    private mutating func begin(_ call: MetaRow.Call, _ line: SummaryLine) -> [SummaryLine] {
        let name = MetaText.baseName(call.function)
        var start = line
        start.what = name + words(of: call)
        if calls.count >= Self.most { calls = [:] }
        calls[call.id] = Call(name: name, text: start.what, start: start)
        running = call.id
        // The reader's rows come under it.
        guard name == "reader" else { return flush() }
        running = nil
        start.state = state
        return flush() + [start]
    }

    private func words(of call: MetaRow.Call) -> String {
        if let credential = call.args["credential"]?.stringValue { return " " + label(credential) }
        if let name = call.args["name"]?.stringValue { return " \"\(name)\"" }
        if case .integer(let seconds)? = call.args["seconds"] { return " \(seconds) s" }
        return ""
    }

    private mutating func finish(_ end: MetaRow.Return, _ line: SummaryLine, _ row: DecodedRow) -> [SummaryLine]? {
        guard let call = calls.removeValue(forKey: end.call) else { return nil }
        if running == end.call { running = nil }
        let before = flush()
        if call.name == "reader" { return before }
        let told = (end.extra["credentials"]?.arrayValue ?? []).compactMap(\.stringValue)
        told.forEach { meet($0) }
        // The exchange stands for it.
        if call.name == "transceive", end.ok { return before }
        var whole = call.start
        if !end.ok {
            let error = "threw \(end.case ?? "an error")"
            let room = SummaryLine.answerColumn - SummaryLine.whatColumn
            if call.text.columns + error.columns + 1 < room { whole.what += " " + error } else { whole.tail = error }
        }
        if end.ok, call.name == "listCredentials" { whole.what += " -> \(told.count)" }
        if end.ok, call.name == "provisionCredential", let first = told.first { whole.what += " -> \(label(first))" }
        whole.frames = whole.frames.lowerBound...max(whole.frames.lowerBound, row.row.frame)
        whole.lastNumber = row.row.packetID ?? whole.number
        whole.annotations = held + line.annotations
        held = []
        whole.isWrong = whole.annotations.contains { $0.severity != .note } || !end.ok
        whole.state = state
        waiting = whole
        return before
    }

    // MARK: - States and events

    private mutating func enter(_ change: MetaRow.State, _ line: SummaryLine) -> [SummaryLine] {
        let names = ["wired", "cardEmulation"]
        let credential = names.contains(change.to) ? change.extra["credential"]?.stringValue : nil
        if let credential { meet(credential) }
        state = change.to + (credential.map { " " + label($0) } ?? "")
        guard waiting != nil else {
            var own = line
            own.mark = .happened
            own.what = "\(change.from) -> \(change.to)"
            own.state = state
            waiting = own
            return []
        }
        waiting?.state = state
        waiting?.annotations += line.annotations
        return []
    }

    private mutating func happened(_ event: MetaRow.Event, _ line: SummaryLine) -> [SummaryLine] {
        // The end's own event follows what led to it.
        if event.name == "sessionInvalidated", waiting?.state == "invalid" {
            waiting?.annotations += line.annotations
            return []
        }
        let before = flush()
        var own = line
        own.mark = .happened
        own.what = text(of: event)
        own.annotations = held + line.annotations
        held = []
        own.isWrong = own.annotations.contains { $0.severity != .note }
        own.lastNumber = max(own.number, lastFolded)
        own.state = state
        waiting = own
        return before
    }

    private func text(of event: MetaRow.Event) -> String {
        func word(_ name: String) -> String? { event.detail?[name]?.stringValue }
        var seconds = ""
        if case .integer(let elapsed)? = event.detail?["elapsed"] { seconds = "\(elapsed) s" }
        switch event.name {
        case "idleTimeout": return "\(seconds) without transceive"
        case "cardEmulationTimeout": return seconds.isEmpty ? event.name : "\(event.name) after \(seconds)"
        case "presentmentIntentAssertionTimeout": return "\(seconds) of an assertion: it timed out"
        case "enteredBackground": return "in the background for too long"
        case "backendError": return "the secure element failed: \(word("reason") ?? "no reason")"
        case "transactionEnded": return "the scene's transaction ended"
        case "fieldStateChanged": return word("info") ?? event.name
        case "credentialFinishedInstalling": return "\(label(word("identifier") ?? "")) finished installing"
        case "connectivityEvent": return "\(event.name) \(word("data") ?? "")"
        case "sessionInvalidated": return "\(event.name): \(word("reason") ?? "")"
        default: return event.name
        }
    }

    private mutating func meet(_ identifier: String) {
        if credentials[identifier] == nil, credentials.count < Self.most { credentials[identifier] = credentials.count + 1 }
    }

    private func label(_ identifier: String) -> String { credentials[identifier].map { "C\($0)" } ?? "a credential" }
}
