// SPDX-License-Identifier: MIT

import Foundation
import GrammarLanguage
import GrammarLibrary
import GrammarRuntime
import TraceFile

/// What `show` makes of a long trace, beside tshark on the same file, and the grammars' machine alone.
enum DecodeBench {
    private static let views: [(name: String, ours: [String], theirs: [String])] = [
        ("show-summary", [], []), ("show-tree", ["--tree"], ["-V"]), ("show-json", ["--json"], ["-T", "ek"]),
    ]

    /// The sizes that `--rows` asks for.
    static func sizes(_ arguments: Arguments) throws -> [Int] {
        try (arguments.value("--rows") ?? "1000000,5000000").split(separator: ",").map { text in
            guard let size = Int(text), (1_000...100_000_000).contains(size) else {
                throw Failure.usage("\(text) is no number of rows from 1000 to 100000000")
            }
            return size
        }
    }

    static func run(_ report: BenchReport, sizes: [Int]) throws {
        structure(report)
        let folder = NSTemporaryDirectory() + "tapdeck-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let hasPeer = ChildRun.isInstalled("tshark")
        if !hasPeer { report.terminal.note("tshark is not installed: figures without a peer") }
        let empty = "\(folder)/empty.pcapng"
        _ = try GeneratedTrace.write(0, to: empty)
        for size in sizes {
            let path = "\(folder)/\(size).pcapng"
            let rows = try GeneratedTrace.write(size, to: path)
            for view in views {
                let base = try ChildRun(own, ["show", "--all"] + view.ours + [empty])
                var picked = Picked(of: rows, isOn: view.name == "show-json")
                let ours = try ChildRun(own, ["show", "--all"] + view.ours + [path], keeping: { picked.take($0) })
                guard ours.status == 0 else { throw Failure(.notSo, "show ended with status \(ours.status)") }
                if view.name == "show-json" {
                    guard ours.lines == rows else { throw Failure(.notSo, "\(ours.lines) lines for \(rows) rows") }
                    try picked.compare(own, path)
                }
                let peer = hasPeer ? try ChildRun("tshark", ["-n", "-r", path] + view.theirs) : nil
                let name = "\(view.name)-\(size)"
                report.figure(
                    name, Double(rows) / ours.seconds / 1000, "krows/s", peer: peer.map { _ in "tshark" },
                    peerValue: peer.map { Double(rows) / $0.seconds / 1000 }, isRate: true)
                report.figure(
                    "\(name)-memory", Double(max(0, ours.memory - base.memory)) / 1_048_576, "MiB",
                    peer: peer.map { _ in "tshark" },
                    peerValue: peer.map { Double($0.memory) / 1_048_576 })
            }
            if size == sizes.first, rows >= 100_000 { try plugin(report, path, rows) }
            try FileManager.default.removeItem(atPath: path)
        }
    }

    /// What the plug-in adds to tshark, beside what one with as many fields may.
    private static func plugin(_ report: BenchReport, _ path: String, _ rows: Int) throws {
        let text = WiresharkPlugin(GrammarLibrary.standard.program).text
        guard let cost = try WiresharkCost.measure(path, packets: rows, plugin: text) else { return }
        for (name, value) in [("list", cost.list), ("filter", cost.filter), ("tree", cost.tree)] {
            report.figure("wireshark-\(name)", value, "us/packet", peer: "budget", peerValue: cost.allowed)
        }
    }

    /// Messages through the machine, a core, no text made.
    private static func structure(_ report: BenchReport) {
        let program = GrammarLibrary.standard.program
        guard let command = program.entry(named: "iso7816.Command"), let response = program.entry(named: "iso7816.Response")
        else { return }
        var messages: [(isRequest: Bool, octets: [UInt8])] = []
        var trace = GeneratedTrace()
        trace.make(50_000) { channel, direction, _, _, _, body in
            if channel == .apdu, body.first != 0x3B { messages.append((direction == .sent, body)) }
        }
        var decoder = Decoder(program)
        var best = Double.infinity
        for _ in 0..<7 {
            let start = ContinuousClock.now
            for index in messages.indices {
                if messages[index].isRequest {
                    _ = decoder.push(request: messages[index].octets, entry: command)
                } else {
                    _ = decoder.push(response: messages[index].octets, entry: response)
                }
            }
            best = min(best, (ContinuousClock.now - start).microseconds)
        }
        report.figure("structure", Double(messages.count) / best * 1000, "kmessages/s")
    }
}

/// Random rows of a long output, to be compared with the same rows shown by themselves.
private struct Picked {
    /// Numbers of lines from 0, in order, and what stood there.
    private var wanted: [Int] = []
    private var lines: [[UInt8]] = []
    private var line = 0
    private var next = 0
    private var open: [UInt8] = []

    init(of rows: Int, isOn: Bool) {
        guard isOn, rows > 0 else { return }
        var random: UInt64 = 0x9E37_79B9_7F4A_7C15
        var all: Set<Int> = []
        while all.count < min(1000, rows / 2) {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            all.insert(Int(random >> 33) % rows)
        }
        wanted = all.sorted()
    }

    mutating func take(_ piece: UnsafeRawBufferPointer) {
        guard !wanted.isEmpty else { return }
        for octet in piece {
            if next < wanted.count, line == wanted[next], octet != 0x0A { open.append(octet) }
            guard octet == 0x0A else { continue }
            if next < wanted.count, line == wanted[next] {
                lines.append(open)
                open.removeAll(keepingCapacity: true)
                next += 1
            }
            line += 1
        }
    }

    /// Shows the same exchanges alone and looks for each line: all of them in one run, three in a run of their own.
    func compare(_ program: String, _ path: String) throws {
        let numbers = lines.map(Self.packet)
        guard lines.count == wanted.count, !numbers.contains(nil) else { throw Failure(.notSo, "rows of JSON without a number") }
        try look(for: Array(lines), program, path, numbers.compactMap { $0 })
        for index in [0, lines.count / 2, lines.count - 1] {
            try look(for: [lines[index]], program, path, [numbers[index]].compactMap { $0 })
        }
    }

    private func look(for lines: [[UInt8]], _ program: String, _ path: String, _ numbers: [String]) throws {
        var output: [UInt8] = []
        _ = try ChildRun(program, ["show", "--json", path] + numbers, keeping: { output.append(contentsOf: $0) })
        let shown = Set(output.split(separator: 0x0A).map(Array.init))
        for line in lines where !shown.contains(line) {
            throw Failure(.notSo, "a row shown alone differs: \(String(decoding: line.prefix(160), as: UTF8.self))")
        }
    }

    /// The exchange's number in a line of JSON.
    private static func packet(_ line: [UInt8]) -> String? {
        String(decoding: line, as: UTF8.self).firstRange(of: "\"packet\":").map { range in
            String(String(decoding: line, as: UTF8.self)[range.upperBound...].prefix { $0.isNumber })
        }
    }
}
