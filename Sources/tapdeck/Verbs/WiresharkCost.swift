// SPDX-License-Identifier: MIT

import Foundation
import GrammarLanguage

/// What the plug-in costs tshark: processor time with it less the time without, over the packets of a trace.
///
/// A post-dissector in Lua that adds N fields costs tshark about 6 microseconds and 2.5 a field and packet; no more is allowed.
struct WiresharkCost: Sendable {
    /// Microseconds a packet of the list, of a display filter on one field, and of the whole tree.
    var list = 0.0
    var filter = 0.0
    var tree = 0.0
    /// Fields of the plug-in in a packet, the mean of the first thousand.
    var fields = 0.0
    var allowed: Double { 6 + 2.5 * fields }

    /// - Parameters:
    ///   - trace: a capture of at least some 100,000 packets; starting tshark is in both times.
    ///   - plugin: the text of the plug-in.
    /// - Returns: nil when there is no tshark.
    static func measure(_ trace: String, packets: Int, plugin: String) throws -> WiresharkCost? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let places = path.split(separator: ":").map { "\($0)/tshark" }
        guard let tshark = places.first(where: FileManager.default.isExecutableFile(atPath:)), packets > 0 else { return nil }
        let script = NSTemporaryDirectory() + "tapdeck-cost-\(UUID().uuidString).lua"
        try Data(plugin.utf8).write(to: URL(fileURLWithPath: script))
        defer { try? FileManager.default.removeItem(atPath: script) }
        let with = ["-X", "lua_script:\(script)", "-r", trace]
        let without = ["-r", trace]
        func difference(_ words: [String], _ plain: [String]) throws -> Double {
            let pairs = try (0..<3).map { _ in (try seconds(tshark, with + words), try seconds(tshark, without + plain)) }
            let more = (pairs.map(\.0).min() ?? 0) - (pairs.map(\.1).min() ?? 0)
            return more * 1_000_000 / Double(packets)
        }
        var cost = WiresharkCost()
        cost.list = try difference([], [])
        cost.filter = try difference(["-Y", "tapdeck.iso7816.command.ins == 0xA4"], ["-Y", "iso7816.apdu.ins == 0xA4"])
        cost.tree = try difference(["-V", "-O", "tapdeck"], ["-V", "-O", "tapdeck"])
        let counted = min(packets, 1_000)
        let text = try output(tshark, with + ["-c", String(counted), "-T", "pdml"])
        cost.fields = Double(text.components(separatedBy: "<field name=\"tapdeck.").count - 1) / Double(counted)
        return cost
    }

    /// Processor time of the program itself, in seconds.
    private static func seconds(_ program: String, _ words: [String]) throws -> Double {
        let before = childTime()
        try launch(program, words, FileHandle.nullDevice).waitUntilExit()
        return childTime() - before
    }

    private static func output(_ program: String, _ words: [String]) throws -> String {
        let pipe = Pipe()
        let process = try launch(program, words, pipe)
        let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self)
    }

    private static func launch(_ program: String, _ words: [String], _ output: Any) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = words
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }

    private static func childTime() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage)
        return Double(usage.ru_utime.tv_sec) + Double(usage.ru_utime.tv_usec) / 1_000_000
    }
}
