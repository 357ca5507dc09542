// SPDX-License-Identifier: MIT

import TraceFile

/// A benchmark: its name on the command line, and what it measures.
struct Benchmark: Sendable {
    var name: String
    /// Lines of the help text.
    var details: [String]
    var run: @Sendable (BenchReport, Arguments) async throws -> Void

    static let all: [Benchmark] = [
        Benchmark(
            name: "record",
            details: [
                "what recording adds to an exchange with the card in this process, the trace on disk;",
                "pcscd-select, a SELECT through pcscd and the virtual reader, where they run, beside the bare link.",
            ]
        ) { report, _ in
            try await RecordBench.run(report)
            try await LinkBench.run(report)
        },
        Benchmark(
            name: "passport",
            details: ["whole reads of a passport in this process, and the share of libcrypto in their time."]
        ) { report, _ in try await PassportBench.run(report) },
        Benchmark(
            name: "desfire",
            details: [
                "authenticated, enciphered reads of 32 bytes in this process, in the channels of D40, EV1 AES and EV2:",
                "the share of libcrypto in their time, what recording adds to a read, reads opened by the grammars.",
            ]
        ) { report, _ in try await DESFireBench.run(report) },
        Benchmark(
            name: "credential",
            details: ["a credential session of twenty wired exchanges in this process, from its start to its end."]
        ) { report, _ in try await CredentialBench.run(report) },
        Benchmark(
            name: "replay", details: ["a passport's session in bytes; the cost of an exchange in sessions of 10 to 100,000."]
        ) { report, _ in try await ReplayBench.run(report) },
        Benchmark(
            name: "serve",
            details: [
                "what an exchange of a program through our socket takes more than the card itself, beside vpcd's bare link."
            ]
        ) { report, arguments in try await ServeBench.run(report, isAlone: arguments.operands == ["serve"]) },
        Benchmark(
            name: "start",
            details: ["the median of a whole run of --version, and of show over a small trace, beside tshark."]
        ) { report, _ in try StartBench.run(report) },
        Benchmark(
            name: "decode",
            details: [
                "a generated trace through show, as lines, trees and JSON, beside tshark where it is installed;",
                "the grammars' machine alone, without any text; the plug-in's cost in tshark.",
            ]
        ) { report, arguments in try DecodeBench.run(report, sizes: DecodeBench.sizes(arguments)) },
    ]
}

/// `bench`: figures of this machine, each beside what it is compared with, from the same run.
enum BenchVerb: Verb {
    static let name = "bench"
    static let summary = "figures of this machine, each beside its peer"
    static let synopsis = ["bench [\(Benchmark.all.map(\.name).joined(separator: "|"))] [--rows N,N] [--json]"]
    static let options = [
        OptionSpec("--rows", .required("N,N"), "decode: the sizes of the generated traces (1000000,5000000)")
    ]
    static let details = Benchmark.all.flatMap { bench in
        let indent = String(repeating: " ", count: bench.name.count + 2)
        return bench.details.enumerated().map { $0.offset == 0 ? "\(bench.name): \($0.element)" : indent + $0.element }
    }

    static func run(_ arguments: Arguments, _ terminal: Terminal) async throws -> ExitStatus {
        let known = Benchmark.all.map(\.name)
        for name in arguments.operands where !known.contains(name) {
            throw Failure.usage(
                "unknown benchmark \(name)\(Nearest.suggestion(for: name, among: known)); there are \(known.joined(separator: ", "))"
            )
        }
        let report = BenchReport(isJSON: arguments.wantsJSON, terminal: terminal)
        for bench in Benchmark.all where arguments.operands.isEmpty || arguments.operands.contains(bench.name) {
            try await bench.run(report, arguments)
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
