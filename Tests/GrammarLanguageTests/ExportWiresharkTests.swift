// SPDX-License-Identifier: MIT

import Foundation
import GrammarLanguage
import GrammarRuntime
import TestSupport
import Testing

/// The plug-in for Wireshark against our own decoder: the same fields, values and places.
@Suite(.serialized) struct ExportWiresharkTests {
    static let program = ExportSupport.program

    @Test(.enabled(if: ExportSupport.has("luac5.2") && ExportSupport.has("luac5.4"), "luac5.2 and luac5.4 are not installed"))
    func thePluginIsRightLua52And54() async throws {
        let folder = try Scratch()
        let file = try folder.write("tapdeck.lua", WiresharkPlugin(Self.program).text)
        for compiler in ["luac5.2", "luac5.4"] {
            let outcome = try await ProcessRunner.run("/usr/bin/env", [compiler, "-p", file])
            #expect(outcome.end == .status(0), "\(compiler): \(outcome.errorText)")
        }
    }

    @Test(.enabled(if: ExportSupport.has("tshark"), "tshark is not installed"))
    func everyExampleHasTheSameFieldsInWireshark() async throws {
        let folder = try Scratch()
        let plugin = try folder.write("tapdeck.lua", WiresharkPlugin(Self.program).text)
        let frames = ExportSupport.exampleFrames(Self.program)
        #expect(frames.count > 60)
        let capture = try folder.write("examples.pcap", Capture.exportedPDUs(frames))
        let dissected = try await Dissection(capture, plugin: plugin)
        try compare(dissected, frames, "examples", joined: 1)
    }

    @Test(.enabled(if: ExportSupport.has("tshark"), "tshark is not installed"))
    func damagedMessagesHaveTheSameFieldsInWireshark() async throws {
        let folder = try Scratch()
        let plugin = try folder.write("tapdeck.lua", WiresharkPlugin(Self.program).text)
        var random = SplitMix(seed: 7)
        var frames: [Capture.Frame] = []
        for frame in ExportSupport.exampleFrames(Self.program) {
            for _ in 0..<4 {
                var octets = frame.octets
                switch random.next() % 3 {
                case 0: octets.removeLast(Int(random.next() % UInt64(octets.count)))
                case 1: octets[Int(random.next() % UInt64(octets.count))] ^= UInt8(1 << (random.next() % 8))
                default: octets.append(contentsOf: [UInt8](repeating: UInt8(random.next() & 0xFF), count: 3))
                }
                // An ATR that is none any more is an answer.
                if frame.kind != .atr, !octets.isEmpty { frames.append(Capture.Frame(kind: frame.kind, octets: octets)) }
            }
        }
        let capture = try folder.write("damaged.pcap", Capture.exportedPDUs(frames))
        try compare(try await Dissection(capture, plugin: plugin), frames, "damaged")
    }

    @Test(
        .enabled(if: ExportSupport.has("tshark"), "tshark is not installed"),
        .enabled(if: ExportSupport.tapdeck != nil, "the tapdeck program is not beside the tests"))
    func aRecordedPassportHasTheSameFieldsInWireshark() async throws {
        let folder = try Scratch()
        let plugin = try folder.write("tapdeck.lua", WiresharkPlugin(Self.program).text)
        let trace = folder.path + "/p.pcapng"
        let tapdeck = try #require(ExportSupport.tapdeck)
        let recorded = try await ProcessRunner.run(
            tapdeck,
            ["record", "-o", trace, "--quiet", "--card", "virtual:passport", "passport", "--mrz-key", "L898902C<369080619406236"])
        #expect(recorded.end == .status(0), "\(recorded.errorText)")
        let dissected = try await Dissection(trace, plugin: plugin)
        let frames = try await dissected.apdus()
        #expect(frames.count > 40)
        try compare(dissected, frames, "passport", joined: 0)
    }

    @Test(
        .enabled(if: ExportSupport.has("tshark"), "tshark is not installed"),
        .enabled(if: SharedData.isPresent, Comment(rawValue: SharedData.absence)),
        arguments: ["dlt252.pcap", "ng-252-dsb-only.pcapng", "ng-2if-same252.pcapng", "octrace-v1.pcapng", "ng-252-rich.pcapng"])
    func theSamplesHaveTheSameFieldsInWireshark(_ name: String) async throws {
        let folder = try Scratch()
        let plugin = try folder.write("tapdeck.lua", WiresharkPlugin(Self.program).text)
        let sample = try #require(SharedData.folder).appendingPathComponent("specs/trace-samples/\(name)").path
        let dissected = try await Dissection(sample, plugin: plugin)
        let frames = try await dissected.apdus()
        try compare(dissected, frames, name, joined: 0)
    }

    @Test(.enabled(if: ExportSupport.has("tshark"), "tshark is not installed"))
    func aCommandThatCameInPartsHasTheSameFieldsInWireshark() async throws {
        let folder = try Scratch()
        let plugin = try folder.write("tapdeck.lua", WiresharkPlugin(Self.program).text)
        let done = Capture.Frame(kind: .response, octets: [0x90, 0])
        func part(_ head: [UInt8], _ count: Int, _ more: [UInt8] = []) -> Capture.Frame {
            .init(kind: .command, octets: head + [UInt8(count)] + [UInt8](repeating: 0x5A, count: count) + more)
        }
        // Short and extended once whole, with and without Le; a select by name, of which the name is read only then.
        let frames: [Capture.Frame] = [
            part([0x10, 0xDA, 0, 1], 40), done, part([0x00, 0xDA, 0, 1], 30), done,
            part([0x10, 0xDA, 0, 1], 255), done, part([0x10, 0xDA, 0, 1], 255), done, part([0x00, 0xDA, 0, 1], 3), done,
            part([0x10, 0xCB, 0, 1], 20), done, part([0x00, 0xCB, 0, 1], 30, [0]), done,
            part([0x10, 0xCB, 0, 1], 200), done, part([0x00, 0xCB, 0, 1], 100, [0]), done,
            part([0x10, 0xA4, 4, 0], 3), done, part([0x00, 0xA4, 4, 0], 4), done,
        ]
        let capture = try folder.write("parts.pcap", Capture.exportedPDUs(frames))
        try compare(try await Dissection(capture, plugin: plugin), frames, "parts", joined: 5)
    }

    @Test(.enabled(if: ExportSupport.has("tshark"), "tshark is not installed"))
    func twoPassesShowWhatOneShows() async throws {
        let folder = try Scratch()
        let plugin = try folder.write("tapdeck.lua", WiresharkPlugin(Self.program).text)
        let capture = try folder.write("examples.pcap", Capture.exportedPDUs(ExportSupport.exampleFrames(Self.program)))
        var texts: [String] = []
        for passes in [[], ["-2"]] {
            let outcome = try await ProcessRunner.run(
                "/usr/bin/env", ["tshark"] + passes + ["-X", "lua_script:\(plugin)", "-r", capture, "-V", "-O", "tapdeck"])
            // Only a second pass can know the answer's number.
            let lines = outcome.outputText.split(separator: "\n").filter { !$0.contains("[response in: ") }
            texts.append(lines.joined(separator: "\n"))
        }
        #expect(texts[0] == texts[1])
        #expect(texts[0].contains("Tapdeck: SELECT, answer") && !texts[0].contains("Lua Error"))
    }

    @Test(.enabled(if: ExportSupport.has("tshark"), "tshark is not installed"))
    func aListWithoutOurFieldsStillHasTheExpertInfos() async throws {
        let folder = try Scratch()
        let plugin = try folder.write("tapdeck.lua", WiresharkPlugin(Self.program).text)
        let capture = try folder.write(
            "bad.pcap", Capture.exportedPDUs([.init(kind: .command, octets: [0x00, 0xA4, 0x04, 0x00, 0x05, 0x01, 0x02])]))
        let outcome = try await ProcessRunner.run(
            "/usr/bin/env", ["tshark", "-X", "lua_script:\(plugin)", "-r", capture, "-q", "-z", "expert"])
        #expect(outcome.outputText.contains("no case of ISO/IEC 7816-3 has 3 bytes here"))
    }

    @Test(.enabled(if: ExportSupport.has("tshark"), "tshark is not installed"))
    func readersThatSpeakAtOnceArePairedByInterface() async throws {
        let folder = try Scratch()
        let plugin = try folder.write("tapdeck.lua", WiresharkPlugin(Self.program).text)
        // Two commands, then two answers; stock Wireshark links the first answer to the second command.
        let frames: [(interface: Int, frame: Capture.Frame)] = [
            (0, .init(kind: .command, octets: [0x00, 0x84, 0, 0, 8])), (1, .init(kind: .command, octets: [0x00, 0xB0, 0, 0, 0])),
            (0, .init(kind: .response, octets: [1, 2, 3, 4, 5, 6, 7, 8, 0x90, 0])),
            (1, .init(kind: .response, octets: [0x6A, 0x82])),
        ]
        let capture = try folder.write("two.pcapng", Capture.twoInterfaces(frames))
        let outcome = try await ProcessRunner.run(
            "/usr/bin/env",
            [
                "tshark", "-X", "lua_script:\(plugin)", "-r", capture, "-T", "fields", "-e", "tapdeck.request", "-e",
                "tapdeck.exchange",
            ])
        #expect(
            outcome.outputText.split(separator: "\n").map(String.init)
                == ["\tGET CHALLENGE", "\tREAD BINARY", "1\tGET CHALLENGE", "2\tREAD BINARY"])
    }

    // MARK: Comparing

    private func compare(_ dissected: Dissection, _ frames: [Capture.Frame], _ what: String, joined parts: Int? = nil) throws {
        #expect(dissected.complaints.isEmpty, "\(what): \(dissected.complaints)")
        var decoders: [Int: Decoder] = [:]
        var compared = 0
        var joined = 0
        for (index, frame) in frames.enumerated() {
            let number = frame.number ?? index + 1
            // The plug-in sees what the stock dissectors hand on; they give up on some damaged blocks.
            guard dissected.isMessage(number) else { continue }
            let expected = ExportSupport.fields(frame, &decoders[frame.interface, default: Decoder(Self.program)])
            // What is left of a chain with a damaged link is not pinned.
            let pairs = [(dissected.fields[number] ?? [], expected.own), (dissected.joined[number] ?? [], expected.joined)]
            for (found, expected) in pairs.prefix(parts == nil ? 1 : 2) {
                #expect(
                    found.sorted() == expected.sorted(),
                    "\(what), frame \(number), \(frame.octets): missing \(expected.filter { !found.contains($0) }), too many \(found.filter { !expected.contains($0) })"
                )
            }
            joined += expected.joined.isEmpty ? 0 : 1
            compared += 1
        }
        #expect(compared > frames.count * 9 / 10, "\(what): \(compared) of \(frames.count)")
        #expect(joined >= parts ?? 0, "\(what): \(joined) joined")
    }
}

/// A field as both sides tell it.
struct ShownField: Comparable, CustomStringConvertible {
    var path: String
    /// In octets from the first of the message; of a bit field, of its group.
    var start: Int
    var count: Int
    /// A number, or octets in hexadecimal.
    var value: String

    static func < (left: Self, right: Self) -> Bool {
        (left.path, left.start, left.count, left.value) < (right.path, right.start, right.count, right.value)
    }
    var description: String { "\(path)@\(start)+\(count)=\(value)" }
}

struct SplitMix {
    var state: UInt64
    init(seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
