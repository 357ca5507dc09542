// SPDX-License-Identifier: MIT

import GrammarLanguage
import GrammarLibrary
import GrammarRuntime
import TraceFile

extension GrammarVerb {
    /// `grammar coverage`: how much of each grammar its examples, and traces given, come to.
    static func coverage(_ arguments: Arguments, _ terminal: Terminal) throws -> ExitStatus {
        let program = try library(arguments).program
        var coverage = GrammarCoverage(program)
        coverage.addExamples()
        var status = ExitStatus.fine
        for path in operands(arguments) { status = max(status, try add(path, program, &coverage, arguments, terminal)) }
        let kinds: [(GrammarCoverage.Item.Kind, String)] = [
            (.alternative, "alternatives"), (.tag, "tags"), (.exchange, "exchanges"), (.transition, "transitions"),
            (.checkHeld, "checks held"),
            (.checkFailed, "failed"),
        ]
        if arguments.wantsJSON {
            for grammar in coverage.grammars {
                let numbers = kinds.map { kind, _ in
                    let (met, all) = coverage.count(kind, in: grammar)
                    return "\"\(kind.rawValue)\":[\(met),\(all)]"
                }
                terminal.result("{\"grammar\":\(JSONText.quoted(grammar)),\(numbers.joined(separator: ","))}")
            }
        } else {
            let width = max(8, coverage.grammars.map(\.count).max() ?? 0) + 1
            terminal.note(pad("grammar", width) + kinds.map { padLeft($0.1, 14) }.joined())
            for grammar in coverage.grammars + ["all"] {
                let cells = kinds.map { kind, _ in
                    let (met, all) = coverage.count(kind, in: grammar == "all" ? nil : grammar)
                    return padLeft(all == 0 ? "-" : "\(met) of \(all)", 14)
                }
                terminal.result(pad(grammar, width) + cells.joined())
            }
        }
        if arguments.has("--missing") {
            for item in coverage.missing {
                terminal.result("not met: \(item.grammar):\(item.line): \(item.kind.rawValue) \(item.name)")
            }
        }
        return status
    }

    /// Reads the APDUs of a trace, a decoder for each interface.
    private static func add(
        _ path: String, _ program: Program, _ coverage: inout GrammarCoverage, _ arguments: Arguments, _ terminal: Terminal
    ) throws -> ExitStatus {
        var reader: TraceReader
        do { reader = try TraceReader(path: path) } catch { throw TraceAccess.failure(error) }
        let command = program.entry(named: "iso7816.Command") ?? 0
        let response = program.entry(named: "iso7816.Response") ?? 0
        let secrets = try TraceAccess.secrets(for: path, session: nil, embedded: nil, arguments).store
        var keys: [String: [UInt8]] = [:]
        for record in secrets.records where record.kind == .key { keys[record.name] = record.octets }
        var decoders: [Int: Decoder] = [:]
        while let row = reader.nextRow() {
            guard row.isDissector("iso7816"), row.body.first.map({ $0 != 0x3B && $0 != 0x3F }) ?? false || row.direction == .sent
            else { continue }
            var decoder = decoders[row.interface] ?? Decoder(program, secrets: keys)
            let before = decoder.sessions
            let octets = Array(row.body)
            if row.direction == .sent {
                let outcome = decoder.push(request: octets, entry: command)
                coverage.add(decoder, outcome, before: [])
            } else {
                let outcome = decoder.push(response: octets, entry: response)
                coverage.add(decoder, outcome, before: before)
            }
            decoders[row.interface] = decoder
        }
        return TraceAccess.report(reader.damage, of: path, terminal)
    }
}
