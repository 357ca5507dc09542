// SPDX-License-Identifier: MIT

import GrammarRuntime
import Octets

/// The resolved grammars as JSON: what every name means, with its place. The keys are described in <doc:GrammarJSON>.
public struct GrammarJSON: Sendable {
    /// One object, a line for each of its parts, keys in a fixed order.
    public let text: String

    /// - Parameter program: compiled without errors.
    public init(_ program: Program) {
        let writer = JSONWriter(program: program)
        text = writer.text()
    }
}

struct JSONWriter {
    let program: Program

    func text() -> String {
        let parts = [
            "\"format\":1",
            list("grammars", program.grammars.map(grammar)),
            list("enums", program.enumerations.map(enumeration)),
            list("messages", program.roots.indices.filter { program.roots[$0].isEntry }.map(message)),
            list("exchanges", program.exchanges.map(exchange)),
            list("gathers", program.gathers.map(gather)),
            list("layers", program.layers.map(layer)),
            list("sessions", program.sessions.map(session)),
            list(
                "transforms",
                program.transforms.map { object([("name", quoted($0.name)), ("parameters", String($0.parameters))]) }),
            list("givens", program.givenNames.map(quoted)),
            list("checks", program.checks.map(check)),
            list("examples", program.examples.map(example)),
        ]
        return "{" + parts.joined(separator: ",\n") + "}\n"
    }

    // MARK: JSON

    private func quoted(_ text: String) -> String { JSONText.quoted(text) }

    private func object(_ pairs: [(String, String?)]) -> String {
        "{" + pairs.compactMap { key, value in value.map { "\"\(key)\":\($0)" } }.joined(separator: ",") + "}"
    }

    private func array(_ items: [String]) -> String { "[" + items.joined(separator: ",") + "]" }

    private func list(_ key: String, _ items: [String]) -> String {
        "\"\(key)\":[" + (items.isEmpty ? "" : "\n" + items.joined(separator: ",\n")) + "]"
    }

    private func place(_ place: GrammarPlace) -> String {
        let file = program.files.indices.contains(place.file) ? program.files[place.file] : ""
        return object([("file", quoted(file)), ("line", String(place.line)), ("column", String(place.column))])
    }

    // MARK: Parts

    private func grammar(_ info: GrammarInfo) -> String {
        object([
            ("name", quoted(info.name)),
            ("file", quoted(program.files.indices.contains(info.file) ? program.files[info.file] : "")),
            ("cites", array(info.citations.map(quoted))),
        ])
    }

    private func enumeration(_ info: Enumeration) -> String {
        object([
            ("name", quoted(info.name)), ("bits", String(info.bits)), ("closed", info.isClosed ? "true" : "false"),
            (
                "values",
                array(
                    info.entries.map { entry in
                        object([
                            ("value", String(entry.value)), ("mask", String(entry.mask)),
                            ("name", quoted(program.strings[entry.name])),
                            ("text", entry.text.isEmpty ? nil : quoted(entry.text)),
                        ])
                    })
            ),
        ])
    }

    private func message(_ root: Int) -> String {
        let info = program.roots[root]
        return object([
            ("name", quoted(info.name)), ("path", quoted(program.path(info.node))),
            ("place", place(program.nodes[info.node].place)),
            ("fields", fields(under: info.node, 0)),
        ])
    }

    private var children: [Int: [Int]] {
        var result: [Int: [Int]] = [:]
        for (index, node) in program.nodes.enumerated() where node.parent >= 0 {
            result[Int(node.parent), default: []].append(index)
        }
        return result
    }

    private func fields(under parent: Int, _ depth: Int) -> String {
        let children = children
        func walk(_ parent: Int, _ depth: Int) -> String {
            guard depth < 40 else { return "[]" }
            return array(
                (children[parent] ?? []).map { node in
                    let info = program.nodes[node]
                    let inner = children[node] == nil ? nil : walk(node, depth + 1)
                    return object([
                        ("path", quoted(program.path(node))),
                        ("name", info.flags.contains(.unnamed) ? nil : quoted(program.name(node))),
                        ("kind", quoted("\(info.kind)")), ("label", info.label >= 0 ? quoted(program.label(node)) : nil),
                        ("tag", tag(of: node).map { quoted(String($0, radix: 16, uppercase: true)) }),
                        (info.kind == .bit ? "bits" : "bytes", info.size > 0 ? String(info.size) : nil),
                        ("enum", info.enumeration >= 0 ? quoted(program.enumerations[Int(info.enumeration)].name) : nil),
                        ("marks", marks(info.flags)), ("place", place(info.place)), ("fields", inner),
                    ])
                })
        }
        return walk(parent, depth)
    }

    private func tag(of node: Int) -> UInt32? {
        guard program.nodes[node].kind == .tag else { return nil }
        for table in program.tagTables { if let entry = table.entries.first(where: { $0.node == node }) { return entry.tag } }
        return nil
    }

    private func marks(_ flags: NodeFlags) -> String? {
        let names: [(NodeFlags, String)] = [
            (.nonce, "nonce"), (.secret, "secret"), (.derived, "derived"), (.optional, "optional"), (.closedEnum, "closed"),
        ]
        let list = names.filter { flags.contains($0.0) }.map { quoted($0.1) }
        return list.isEmpty ? nil : array(list)
    }

    private func slotPath(_ slot: Int) -> String? {
        program.slotNodes.indices.contains(slot) ? program.slotNodes[slot].first.map { quoted(program.path($0)) } : nil
    }

    private func rootName(_ root: Int) -> String? {
        program.roots.indices.contains(root) ? quoted(program.roots[root].name) : nil
    }

    private func exchange(_ info: ExchangeInfo) -> String {
        object([
            ("name", quoted("\(info.grammar).\(info.name)")), ("label", info.label.isEmpty ? nil : quoted(info.label)),
            ("request", rootName(info.request)), ("response", rootName(info.response)),
            (
                "refinements",
                array(
                    info.refinements.map { refinement in
                        object([
                            ("of", quoted(refinement.ofRequest ? "request" : "response")), ("path", slotPath(refinement.slot)),
                            (
                                "type",
                                refinement.enumeration >= 0
                                    ? quoted(program.enumerations[refinement.enumeration].name) : rootName(refinement.root)
                            ),
                            ("conditional", refinement.condition >= 0 ? "true" : "false"),
                            ("fields", refinement.root >= 0 ? fields(under: program.roots[refinement.root].node, 0) : nil),
                        ])
                    })
            ), ("place", place(info.place)),
        ])
    }

    private func gather(_ info: GatherInfo) -> String {
        object([
            ("name", quoted("\(info.grammar).\(info.name)")), ("of", quoted(info.ofRequest ? "request" : "response")),
            ("message", rootName(info.root)), ("part", slotPath(info.part)),
            (
                "gives",
                info.decode >= 0 ? rootName(info.decode) : info.yield >= 0 ? rootName(program.yields[info.yield].root) : nil
            ),
        ])
    }

    private func layer(_ info: LayerInfo) -> String {
        object([
            ("name", quoted("\(info.grammar).\(info.name)")),
            ("parameters", array(info.parameters.map { quoted(program.strings[program.variables[$0].name]) })),
            ("requests", array(info.requests.compactMap { rootName($0.root) })),
            ("responses", array(info.responses.compactMap { rootName($0.root) })),
        ])
    }

    private func session(_ info: SessionInfo) -> String {
        var transitions: [String] = []
        for (state, list) in info.transitions.enumerated() where info.states.indices.contains(state) {
            for transition in list {
                transitions.append(
                    object([
                        ("from", quoted(info.states[state])),
                        (
                            "to",
                            quoted(
                                info.states.indices.contains(transition.target)
                                    ? info.states[transition.target] : info.states[state])
                        ),
                        ("on", array(transition.events.map { quoted(event($0)) })),
                        ("outcome", quoted(outcome(transition.outcome))),
                        ("conditional", transition.condition >= 0 ? "true" : "false"),
                        ("contested", transition.contested >= 0 ? "true" : nil), ("place", place(transition.place)),
                    ]))
            }
        }
        return object([
            ("name", quoted("\(info.grammar).\(info.name)")), ("states", array(info.states.map(quoted))),
            ("initial", info.states.indices.contains(info.initial) ? quoted(info.states[info.initial]) : nil),
            ("transitions", array(transitions)),
        ])
    }

    private func event(_ event: SessionInfo.Event) -> String {
        switch event {
        case .any: "any"
        case .exchange(let number): "\(program.exchanges[number].grammar).\(program.exchanges[number].name)"
        case .named(let name): name
        }
    }

    private func outcome(_ outcome: SessionInfo.Outcome) -> String {
        switch outcome {
        case .any: "any"
        case .ok: "ok"
        case .error: "error"
        case .errorNamed(let name): "error \(name)"
        }
    }

    private func check(_ info: CheckInfo) -> String {
        object([
            ("code", quoted(info.code.rawValue)), ("severity", quoted(info.severity.name)), ("path", slotPath(info.slot)),
            ("blame", info.blame.map { quoted($0.rawValue) }), ("place", place(info.place)),
        ])
    }

    private func example(_ info: ExampleInfo) -> String {
        object([
            ("name", quoted(info.name)), ("grammar", quoted(info.grammar)),
            (
                "of",
                info.exchange >= 0
                    ? quoted("\(program.exchanges[info.exchange].grammar).\(program.exchanges[info.exchange].name)")
                    : rootName(info.root)
            ),
            (
                "frames",
                array(
                    info.frames.map {
                        object([("from", quoted($0.isRequest ? "program" : "card")), ("bytes", quoted(Hex.encode($0.octets)))])
                    })
            ), ("place", place(info.place)),
        ])
    }
}
