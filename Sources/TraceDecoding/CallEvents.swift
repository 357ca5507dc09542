// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets
import TraceFile

/// Calls, returns and events of a trace as the sessions of the grammars see them.
struct CallEvents: Sendable {
    enum Event {
        /// A call came back, or something happened by itself.
        case happened(name: String, isSuccess: Bool, error: String?, values: [String: Decoder.EventValue])
        /// The state of a machine was seen from outside.
        case seen(machine: String, state: String)
    }

    /// The functions' base names, and their arguments that are octets, by the calls' numbers.
    private var calls: [Int: (name: String, values: [String: Decoder.EventValue])] = [:]
    private var last: UInt64?

    func name(of call: Int) -> String? { calls[call]?.name }

    mutating func push(_ meta: MetaRow, time: UInt64) -> Event? {
        switch meta {
        case .call(let row):
            var values: [String: Decoder.EventValue] = [:]
            for (name, value) in row.args {
                if let text = value.stringValue, let octets = try? Hex.decode(text) { values["call.\(name)"] = .octets(octets) }
            }
            calls[row.id] = (MetaText.baseName(row.function), values)
            return nil
        case .return(let row):
            guard let call = calls[row.call] else { return nil }
            var values = call.values
            values["elapsed"] = elapsed(time)
            return .happened(name: call.name, isSuccess: row.ok, error: row.case, values: values)
        case .event(let row):
            return .happened(name: row.name, isSuccess: true, error: nil, values: ["elapsed": elapsed(time)])
        case .state(let row): return .seen(machine: row.machine, state: row.to)
        default: return nil
        }
    }

    /// Whole seconds since the event before.
    private mutating func elapsed(_ time: UInt64) -> Decoder.EventValue {
        let before = last ?? time
        last = time
        return .number(time >= before ? Int64(clamping: (time - before) / 1_000_000_000) : 0)
    }
}
