// SPDX-License-Identifier: MIT

import Flows
import GrammarLibrary
import Octets
import Replay
import TraceDecoding
import TraceFile

/// `info`: what a trace is, how it ends, what it can be used for, what is private in it.
enum InfoVerb: Verb {
    static let name = "info"
    static let summary = "what a trace is, how it ends, what it can be used for, what is private in it"
    static let synopsis = ["info FILE ... [--json] [--secrets FILE|env:NAME]"]
    static let options = traceOptions + grammarOptions

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        guard !arguments.operands.isEmpty else { throw Failure.usage("info needs a trace: tapdeck info FILE") }
        var worst = ExitStatus.fine
        for (index, path) in arguments.operands.enumerated() {
            do {
                let facts = try TraceFacts(path, arguments)
                if arguments.wantsJSON {
                    terminal.result(facts.json)
                } else {
                    if arguments.operands.count > 1 { terminal.result("\(index > 0 ? "\n" : "")\(path)") }
                    facts.lines.forEach(terminal.result)
                }
                worst = max(worst, TraceAccess.report(facts.damage, of: path, terminal))
            } catch let failure as Failure where arguments.operands.count > 1 {
                terminal.error(failure.lines)
                worst = max(worst, failure.status)
            }
        }
        return worst
    }
}

/// What `info` says of a trace.
private struct TraceFacts {
    let path: String
    let damage: TraceDamage?
    private var facts: [(name: String, text: String)] = []

    var lines: [String] { facts.map { "\(pad($0.name, 10)) \($0.text)" } }

    var json: String {
        var members: [String: JSONValue] = ["file": .string(path)]
        for fact in facts { members[fact.name.replacing(" ", with: "")] = .string(fact.text) }
        return JSONValue.object(members).text
    }

    init(_ path: String, _ arguments: Arguments) throws {
        self.path = path
        let trace: Trace
        do { trace = try Trace.load(path: path) } catch { throw TraceAccess.failure(error) }
        damage = trace.damage
        let (secrets, place) = try TraceAccess.secrets(
            for: path, session: trace.header.session, embedded: trace.secrets, arguments)
        let scan = Scan(trace, secrets, try TraceAccess.grammars(arguments))

        facts.append(("session", scan.session))
        facts.append(("made by", madeBy(trace.header)))
        facts += scan.cards.map { ("cards", $0) }
        if let bad = scan.endsBadly { facts.append(("ends badly", bad)) }
        facts.append(("secrets", Self.secrets(secrets, place)))
        facts.append(("private", scan.privacy))
        facts.append(("guessable", scan.guessable))
        facts.append(("shareable", "no: only what is redacted is shareable, secrets apart or not"))
        facts.append(("replays", Self.replays(trace, secrets)))
        facts.append(("whole", Self.whole(trace)))
    }

    private func madeBy(_ header: TraceHeader) -> String {
        let parts = [header.application, [header.system, header.hardware].filter { !$0.isEmpty }.joined(separator: " ")]
        return parts.filter { !$0.isEmpty }.joined(separator: ", ")
    }

    private static func secrets(_ store: SecretStore, _ place: SecretsPlace) -> String {
        let counts = SecretKind.allCases.map { kind in store.records.count { $0.kind == kind } }
        let names = ["random draw", "key", "sealed value"]
        let parts = zip(counts, names).filter { $0.0 > 0 }.map { "\($0.0) \($0.1)\($0.0 == 1 ? "" : "s")" }
        let what = parts.isEmpty ? "nothing" : parts.joined(separator: ", ")
        switch place {
        case .inside: return "inside it: \(what)"
        case .beside(let path): return "beside it, \(path): \(what)"
        case .none: return store.isEmpty ? "none at hand" : "given: \(what)"
        }
    }

    private static func replays(_ trace: Trace, _ secrets: SecretStore) -> String {
        let replay = Replay(of: trace, secrets: secrets)
        return switch replay.readiness {
        case nil: "\(replay.chosenMode?.rawValue ?? "bytes") yes"
        case let blocked?: "bytes no: \(blocked.text)"
        }
    }

    private static func whole(_ trace: Trace) -> String {
        let rows = "\(grouped(trace.rows.count)) row\(trace.rows.count == 1 ? "" : "s")"
        let format = trace.header.format.map { "format \($0)" } ?? "not a Tapdeck trace"
        guard let damage = trace.damage else { return "yes: \(rows), \(format)" }
        return "no: \(rows) before byte \(grouped(damage.offset)), \(format)"
    }
}

/// One pass over a trace for what `info` tells.
private struct Scan {
    var session = ""
    var cards: [String] = []
    var endsBadly: String?
    var privacy = ""
    var guessable = ""

    init(_ trace: Trace, _ secrets: SecretStore, _ grammars: GrammarLibrary?) {
        var decoder = TraceDecoder(interfaces: trace.interfaces, secrets: secrets, grammars: grammars)
        decoder.wantsFields = false
        var exchanges: [Int: Int] = [:]
        var flow: String?
        var ending: MetaRow.Return?
        var refusal: (number: UInt64, what: String, answer: String)?
        var failure: (number: UInt64, what: String)?
        var commands: [UInt64: String] = [:]
        var identifiers = 0
        var sealedRows = 0
        var protectedRows = 0
        var hasBAC = false
        for row in trace.rows {
            let decoded = decoder.push(row)
            if decoded.isDerived { continue }
            if !decoded.sealed.isEmpty { sealedRows += 1 }
            switch decoded.kind {
            case .command:
                if let reader = decoded.interface.readerNumber { exchanges[reader, default: 0] += 1 }
                if let packet = row.packetID { commands[packet] = decoded.summary }
                if row.body.first.map({ $0 & 0xEC == 0x0C }) == true { protectedRows += 1 }
                if decoded.summary == "EXTERNAL AUTHENTICATE, BAC" { hasBAC = true }
            case .frame where row.direction != .received:
                if let reader = decoded.interface.readerNumber { exchanges[reader, default: 0] += 1 }
            case .response:
                let status = decoded.row.body.suffix(2)
                if status.count == 2, status.first != 0x90, status.first != 0x61, let packet = row.packetID {
                    refusal = (packet, commands[packet] ?? "a command", decoded.summary)
                }
            case .call:
                if case .call(let call)? = decoded.meta, call.parent == nil, flow == nil {
                    flow = call.flow ?? MetaRowNames.base(call.function)
                }
            case .returned:
                if case .return(let row)? = decoded.meta { ending = row }
            case .error:
                if case .error(let row)? = decoded.meta {
                    failure = (row.after ?? decoded.row.packetID ?? 0, String(decoded.summary.prefix { $0 != ";" }))
                }
            case .transport:
                if case .transport(let row)? = decoded.meta, row.identifier?.isEmpty == false { identifiers += 1 }
            default: break
            }
        }
        session = Scan.session(trace, flow, ending)
        for (reader, count) in exchanges.sorted(by: { $0.key < $1.key }) {
            let interface = trace.interfaces.first { $0.kind.readerNumber == reader }
            cards.append("\(interface?.description ?? "reader \(reader)"): \(grouped(count)) exchange\(count == 1 ? "" : "s")")
        }
        if let failure {
            endsBadly = "exchange \(failure.number): \(failure.what)"
        } else if ending?.ok == false {
            endsBadly =
                refusal.map { "exchange \($0.number): \($0.answer) to \($0.what)" } ?? "threw \(ending?.case ?? "an error")"
        }
        privacy = Scan.privacy(identifiers: identifiers, sealed: sealedRows, protected: protectedRows)
        guessable =
            hasBAC
            ? "YES: BAC keys come from number, birth and expiry; treat this file as the passport itself"
            : sealedRows > 0 ? "no: sealed bytes are not in this file" : "no"
    }

    private static func session(_ trace: Trace, _ flow: String?, _ ending: MetaRow.Return?) -> String {
        let first = trace.rows.first?.time ?? 0
        let last = trace.rows.last?.time ?? first
        let end = ending.map { $0.ok ? "returned" : "threw \($0.case ?? "an error")" } ?? (flow == nil ? "" : "never ended")
        let parts = ["\(SummaryLine.span(last >= first ? last - first : 0)) on \(UTC.text(first))", end].filter { !$0.isEmpty }
        return ([flow ?? "no call"] + parts).joined(separator: ", ")
    }

    private static func privacy(identifiers: Int, sealed: Int, protected: Int) -> String {
        var parts: [String] = []
        if protected > 0 { parts.append("\(grouped(protected)) secure messages") }
        if identifiers > 0 { parts.append("UID in \(identifiers) row\(identifiers == 1 ? "" : "s")") }
        if sealed > 0 { parts.append("\(sealed) row\(sealed == 1 ? "" : "s") with sealed bytes") }
        return parts.isEmpty ? "nothing known; what the card holds in plain stands as it was read" : parts.joined(separator: ", ")
    }
}

private enum MetaRowNames {
    static func base(_ function: String) -> String { String(function.prefix { $0 != "(" }) }
}
