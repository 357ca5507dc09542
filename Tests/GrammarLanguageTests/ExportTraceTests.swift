// SPDX-License-Identifier: MIT

import Foundation
import GrammarLanguage
import TestSupport
import Testing

/// The plug-in for Wireshark against `show --json`, over the kept traces.
@Suite(
    .serialized, .enabled(if: ExportSupport.has("tshark"), "tshark is not installed"),
    .enabled(if: ExportSupport.tapdeck != nil, "the tapdeck program is not beside the tests"))
struct ExportTraceTests {
    private static let folder = URL(fileURLWithPath: ExportSupport.folder).deletingLastPathComponent()
        .appendingPathComponent("Traces").path
    static let traces: [String] = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
        .filter { $0.hasSuffix(".pcapng") }.sorted().map { "\(folder)/\($0)" }

    @Test(arguments: traces)
    func everyFieldThatShowGivesForATraceIsInWireshark(_ trace: String) async throws {
        let scratch = try Scratch()
        let plugin = try scratch.write("tapdeck.lua", WiresharkPlugin(ExportSupport.program).text)
        let rows = try await Row.all(of: trace)
        let dissected = try await Dissection(trace, plugin: plugin)
        #expect(dissected.complaints.isEmpty)
        var compared = 0
        for row in rows {
            var found = dissected.fields[row.number] ?? []
            // What stands in other buffers a key opened; there is none in the plug-in.
            for field in row.fields where field.buffer == 0 {
                compared += 1
                guard field.octets != "" else {
                    #expect(dissected.paths[row.number]?.contains(field.path) == true, "\(trace), frame \(row.number): \(field)")
                    continue
                }
                let place = found.firstIndex { $0.path == field.path && field.isTold(by: $0) }
                #expect(place != nil, "\(trace), frame \(row.number): \(field)")
                if let place { found.remove(at: place) }
            }
        }
        #expect(compared > 50, "\(trace): \(compared) fields")
    }

    @Test(arguments: ["passport-bac.pcapng", "filesystem-verify.pcapng"])
    func aFilterOnAFieldSelectsTheRowsThatHaveTheValue(_ name: String) async throws {
        let scratch = try Scratch()
        let plugin = try scratch.write("tapdeck.lua", WiresharkPlugin(ExportSupport.program).text)
        let trace = "\(Self.folder)/\(name)"
        let rows = try await Row.all(of: trace)
        var expected: [String: Set<Int>] = [:]
        for row in rows {
            for field in row.fields where field.buffer == 0 {
                guard let filter = field.filter else { continue }
                expected[filter, default: []].insert(row.number)
            }
        }
        // Of the filters in order a number that spreads over all of them.
        let filters = expected.keys.sorted()
        let sample = stride(from: 0, to: filters.count, by: max(1, filters.count / 12)).map { filters[$0] }
        #expect(sample.count >= 12)
        for filter in sample {
            let outcome = try await ProcessRunner.run(
                "/usr/bin/env",
                ["tshark", "-X", "lua_script:\(plugin)", "-r", trace, "-Y", filter, "-T", "fields", "-e", "frame.number"])
            #expect(outcome.end == .status(0), "\(filter): \(outcome.errorText)")
            #expect(Set(outcome.outputText.split(separator: "\n").compactMap { Int($0) }) == expected[filter], "\(filter)")
        }
    }

    @Test func whatWasOpenedIsInAnAnnotatedCopyForStockWireshark() async throws {
        let scratch = try Scratch()
        let trace = "\(Self.folder)/passport-bac.pcapng"
        let copy = scratch.path + "/copy.pcapng"
        let tapdeck = try #require(ExportSupport.tapdeck)
        let made = try await ProcessRunner.run(tapdeck, ["annotate", trace, "-o", copy])
        #expect(made.end == .status(0), "\(made.errorText)")
        let expected = try await Row.all(of: trace).compactMap { row in
            row.plain.map { "\(row.packet)\t\(row.isCommand ? Self.header($0) : Self.status($0))" }
        }
        // Without any plug-in: the class, instruction and parameters of commands, the status word of answers.
        let outcome = try await ProcessRunner.run(
            "/usr/bin/env",
            ["tshark", "-r", copy, "-Y", "frame.interface_name matches \"^plain:\"", "-T", "fields", "-e", "frame.packet_id"]
                + ["cla", "ins", "p1", "p2", "sw1", "sw2"].flatMap { ["-e", "iso7816.apdu.\($0)"] })
        let found = outcome.outputText.split(separator: "\n").map { line in
            let parts = line.split(separator: "\t").map(String.init)
            return parts[0] + "\t" + parts.dropFirst().map { $0.dropFirst(2).uppercased() }.joined()
        }
        #expect(found.count > 20)
        #expect(found == expected)
    }

    private static func header(_ octets: String) -> String { String(octets.prefix(8)) }
    private static func status(_ octets: String) -> String { String(octets.suffix(4)) }
}

/// A line of `show --json`, as far as the tests look at it.
private struct Row: Decodable {
    struct Field: Decodable, CustomStringConvertible {
        var path: String
        var buffer: Int
        var bits: Int
        var number: UInt64?
        var octets: String?

        enum Key: String, CodingKey { case path, buffer, bits, value }

        init(from decoder: any Swift.Decoder) throws {
            let values = try decoder.container(keyedBy: Key.self)
            path = try values.decode(String.self, forKey: .path)
            buffer = try values.decode(Int.self, forKey: .buffer)
            bits = try values.decode(Int.self, forKey: .bits)
            number = try? values.decode(UInt64.self, forKey: .value)
            if number == nil { octets = try values.decode(String.self, forKey: .value) }
        }

        /// A number in decimal or as its octets.
        func isTold(by shown: ShownField) -> Bool {
            if let number { return shown.value == String(number) || UInt64(shown.value, radix: 16) == number }
            return octets == shown.value
        }

        /// A display filter for exactly this value.
        var filter: String? {
            if let number { return "tapdeck.\(path) == \(number)" }
            guard let octets, octets.count >= 4, octets.count <= 64, !path.hasSuffix(".text") else { return nil }
            let pairs = stride(from: 0, to: octets.count, by: 2).map { octets.dropFirst($0).prefix(2) }
            return "tapdeck.\(path) == \(pairs.joined(separator: ":"))"
        }

        var description: String { "\(path) = \(number.map(String.init) ?? octets ?? "")" }
    }

    var number: Int
    var packet: UInt64
    var kind: String
    var fields: [Field]
    var plain: String?
    var isCommand: Bool { kind == "command" }

    enum CodingKeys: String, CodingKey {
        case number = "n"
        case packet, kind, fields, plain
    }

    static func all(of trace: String) async throws -> [Row] {
        let tapdeck = try #require(ExportSupport.tapdeck)
        let outcome = try await ProcessRunner.run(tapdeck, ["show", "--json", "--all", "--frames", trace])
        return try outcome.outputText.split(separator: "\n").map { try JSONDecoder().decode(Row.self, from: Data($0.utf8)) }
    }
}
