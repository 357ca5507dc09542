// SPDX-License-Identifier: MIT

import TraceFile

/// `bench`: figures of this machine, each beside what it is compared with, from the same run.
enum BenchVerb: Verb {
    static let name = "bench"
    static let summary = "figures of this machine, each beside its peer"
    static let synopsis = ["bench [record|decode|passport|serve] [--rows N,N] [--json]"]
    static let options = [
        OptionSpec("--rows", .required("N,N"), "decode: the sizes of the generated traces (1000000,5000000)")
    ]
    static let details = [
        "record: what recording adds to an exchange with the card in this process, the trace on disk;",
        "        pcscd-select, a SELECT through pcscd and the virtual reader, where they run, beside the bare link.",
        "decode: a generated trace through show, as lines, trees and JSON, beside tshark where it is installed;",
        "        the grammars' machine alone, without any text; the plug-in's cost in tshark.",
        "passport: whole reads of a passport in this process, and the share of libcrypto in their time.",
        "serve: what an exchange of a program through our socket takes more than the card itself, beside vpcd's bare link.",
    ]

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        let known = ["record", "decode", "passport", "serve"]
        for name in arguments.operands where !known.contains(name) {
            throw Failure.usage(
                "unknown benchmark \(name)\(Nearest.suggestion(for: name, among: known)); there are \(known.joined(separator: ", "))"
            )
        }
        let wanted = arguments.operands.isEmpty ? known : arguments.operands
        let report = BenchReport(isJSON: arguments.wantsJSON, terminal: terminal)
        if wanted.contains("record") {
            try await RecordBench.run(report)
            try await LinkBench.run(report)
        }
        if wanted.contains("passport") { try await PassportBench.run(report) }
        if wanted.contains("serve") { try await ServeBench.run(report, isAlone: wanted == ["serve"]) }
        if wanted.contains("decode") {
            let sizes = try (arguments.value("--rows") ?? "1000000,5000000").split(separator: ",").map { text in
                guard let size = Int(text), (1_000...100_000_000).contains(size) else {
                    throw Failure.usage("\(text) is no number of rows from 1000 to 100000000")
                }
                return size
            }
            try DecodeBench.run(report, sizes: sizes)
        }
        return .fine
    }
}

/// One figure a line: its name, its value, and its peer's beside it.
struct BenchReport: Sendable {
    let isJSON: Bool
    let terminal: Terminal

    /// - Parameter isRate: more is better; else less is.
    func figure(
        _ name: String, _ value: Double, _ unit: String, peer: String? = nil, peerValue: Double? = nil, isRate: Bool = false
    ) {
        if isJSON {
            var members: [String: JSONValue] = ["name": .string(name), "value": .number(rounded(value)), "unit": .string(unit)]
            if let peer, let peerValue {
                members["peer"] = .string(peer)
                members["peerValue"] = .number(rounded(peerValue))
                if value > 0, peerValue > 0 {
                    members["ratio"] = .number(rounded(isRate ? value / peerValue : peerValue / value))
                }
            }
            terminal.result(JSONValue.object(members).text)
        } else {
            let beside = peer.flatMap { peer in peerValue.map { "   \(peer) \(text($0)) \(unit)" } } ?? ""
            terminal.result("\(pad(name, 16)) \(padLeft(text(value), 9)) \(unit)\(beside)")
        }
    }

    private func rounded(_ value: Double) -> Double { (value * 1000).rounded() / 1000 }

    private func text(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        return "\(grouped(hundredths / 100)).\(padLeft("\(hundredths % 100)", 2).replacing(" ", with: "0"))"
    }
}

extension Duration {
    var microseconds: Double { Double(components.seconds) * 1e6 + Double(components.attoseconds) / 1e12 }
}
