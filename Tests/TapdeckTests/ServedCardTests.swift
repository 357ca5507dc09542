// SPDX-License-Identifier: MIT

import Foundation
import TestSupport
import Testing

/// `virtual --socket` and `serve`: cards that stay for several programs.
@Suite struct ServedCardTests {
    /// The DG1 of the default passport: the specimen of ICAO 9303-4, appendix B, as a data object of 9303-10.
    private static let dg1 =
        "615b5f1f58"
        + "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<L898902C<3UTO6908061F9406236ZE184226B<<<<<14".utf8.map {
            String($0, radix: 16)
        }
        .joined()

    /// Starts a command that serves at `s` in a folder, and waits until it does.
    private func serving(_ words: [String], in folder: TemporaryFolder) async throws -> ChildProcess {
        let child = try ChildProcess(
            Binary.path, words + ["--socket", "s"], environment: Binary.environment(folder), directory: folder.path)
        let deadline = ContinuousClock.now + .seconds(30)
        while access(folder("s"), F_OK) != 0, ContinuousClock.now < deadline { try await Task.sleep(for: .milliseconds(10)) }
        try #require(access(folder("s"), F_OK) == 0)
        return child
    }

    private func run(_ program: String, _ words: [String], in folder: TemporaryFolder) async throws -> ProcessRunner.Outcome {
        try await ProcessRunner.run(
            program, words, environment: ["PCSCLITE_CSOCK_NAME": folder("s")], directory: folder.path)
    }

    @Test func tapdeckItselfReadsTheVirtualPassportAtASocket() async throws {
        let folder = try TemporaryFolder()
        let child = try await serving(["virtual", "passport"], in: folder)
        let words = ["record", "-o", "p.pcapng", "passport", "--mrz-key", "L898902C<369080619406236"]
        let recorded = try await run(Binary.path, words, in: folder)
        #expect(recorded.end == .status(0), "\(recorded.outputText) \(recorded.errorText)")
        child.signal(SIGINT)
        let end = child.collect(timeout: .seconds(30))
        #expect(end.end == .status(130))
        #expect(end.errorText.contains("a card is in the reader Tapdeck passport 00 00"))
        #expect(access(folder("s"), F_OK) != 0)
        let replayed = try await Binary.run("replay", "p.pcapng", in: folder)
        #expect(replayed.end == .status(0), "\(replayed.outputText)")
    }

    /// Where a passport is served whose answers fit a terminal's own random numbers, and the reader that it then stands in.
    private static let passports: [(words: [String], reader: String)] = [
        (["virtual", "passport"], "Tapdeck passport"), (["serve", "p.pcapng"], "virtual:passport"),
        (["virtual", "--from", "p.pcapng"], "Tapdeck p"),
    ]

    @Test(.enabled(if: Programs.host == nil, Comment(rawValue: Programs.host ?? "")), arguments: passports.indices)
    func aTerminalOfAnotherHandReadsDG1(_ index: Int) async throws {
        let folder = try TemporaryFolder()
        _ = try await Binary.run(
            "record", "-o", "p.pcapng", "--card", "virtual:passport", "passport", "--mrz-key", "L898902C<369080619406236",
            "--dg", "dg1", in: folder)
        let child = try await serving(Self.passports[index].words, in: folder)
        let words = [Programs.script("bac_host.py"), Self.passports[index].reader, "L898902C", "690806", "940623"]
        // Over libpcsclite alone, and over pyscard where it is.
        for python in ["python3"] + (Programs.pyscard == nil ? [Programs.python] : []) {
            let read = try await run(python, words, in: folder)
            #expect(read.outputText == Self.dg1 + "\n", "\(python): \(read.errorText)")
        }
        child.signal(SIGINT)
        #expect(child.collect(timeout: .seconds(30)).end == .status(130))
    }

    /// The passport's chip draws anew for each program, and so do they.
    @Test(arguments: ["virtual:passport", "virtual:passport?pace=ecdh-gm-aes128:13"])
    func aRecordedPassportIsReadAgainWithFreshRandomNumbers(_ card: String) async throws {
        let folder = try TemporaryFolder()
        let flow = ["passport", "--mrz-key", "L898902C<369080619406236", "--dg"]
        _ = try await Binary.run(["record", "-o", "p.pcapng", "--card", card] + flow + ["com,dg1"], in: folder)
        let child = try await serving(["serve", "p.pcapng"], in: folder)
        for (name, groups) in [("q.pcapng", "com,dg1"), ("r.pcapng", "com,dg1"), ("s.pcapng", "dg1")] {
            let read = try await run(Binary.path, ["record", "--embed-secrets", "-o", name] + flow + [groups], in: folder)
            #expect(read.end == .status(0), "\(name): \(read.errorText)")
        }
        child.signal(SIGINT)
        let end = child.collect(timeout: .seconds(30))
        #expect(end.errorText.contains("plays p.pcapng in mode resealed"), "\(end.errorText)")
        let verdicts = end.errorText.split(separator: "\n").filter { $0.hasPrefix("same ") || $0.hasPrefix("DIFFERS ") }
        #expect(verdicts.map { $0.prefix(4) } == ["same", "same", "DIFF"], "\(end.errorText)")
        #expect(end.errorText.contains("never came"), "\(end.errorText)")
        for name in ["q.pcapng", "r.pcapng"] {
            // What was read stands in the new trace as well, and is the same.
            #expect(try await Binary.run("replay", name, in: folder).end == .status(0))
            #expect(try await Binary.run("diff", "p.pcapng", name, in: folder).end == .status(0))
        }
    }

    @Test(
        .enabled(if: PrivatePCSCD.isAvailable, Comment(rawValue: PrivatePCSCD.reason)),
        .enabled(if: Programs.host == nil, Comment(rawValue: Programs.host ?? "")),
        arguments: [("virtual:passport", false), ("virtual:passport?pace=ecdh-gm-aes128:13", false), ("virtual:passport", true)])
    func aRecordedPassportIsReadThroughARealReaderService(_ card: String, byTheScript isScript: Bool) async throws {
        let service = try PrivatePCSCD()
        defer { service.stop() }
        let folder = try TemporaryFolder()
        let flow = ["passport", "--mrz-key", "L898902C<369080619406236", "--dg", "dg1"]
        _ = try await Binary.run(["record", "-o", "p.pcapng", "--card", card] + flow, in: folder)
        let child = try ChildProcess(
            Binary.path, ["serve", "p.pcapng", "--vpcd", "127.0.0.1:\(service.ports[0])"],
            environment: Binary.environment(folder), directory: folder.path)
        let deadline = ContinuousClock.now + .seconds(30)
        var isIn = false
        while !isIn, ContinuousClock.now < deadline {
            let list = try await ProcessRunner.run("opensc-tool", ["-l"], environment: service.environment)
            isIn = list.outputText.contains("Yes")
        }
        let program =
            isScript
            ? ["python3", Programs.script("bac_host.py"), "Virtual", "L898902C", "690806", "940623"]
            : [Binary.path, "record", "-o", "q.pcapng", "--wait", "20"] + flow
        let read = try await ProcessRunner.run(
            program[0], Array(program.dropFirst()), environment: service.environment, directory: folder.path)
        child.signal(SIGINT)
        let end = child.collect(timeout: .seconds(30))
        #expect(read.end == .status(0), "\(read.outputText) \(read.errorText) \(end.errorText)")
        if isScript { #expect(read.outputText == Self.dg1 + "\n") }
        // The script asks for less than was recorded.
        #expect(end.errorText.contains(isScript ? "never came" : "same     p.pcapng   resealed"), "\(end.errorText)")
    }

    @Test(.enabled(if: Programs.openSC == nil, Comment(rawValue: Programs.openSC ?? "")))
    func aServedRecordingBeginsAgainForTheNextProgram() async throws {
        let folder = try TemporaryFolder()
        try folder.write("00A4000C020001\n00B0000010", "s.txt")
        _ = try await Binary.run("record", "-o", "a.pcapng", "--card", "virtual:filesystem", "apdu", "s.txt", in: folder)
        let child = try await serving(["serve", "a.pcapng"], in: folder)
        let program = ["-c", "default", "-s", "00A4000C020001", "-s"]
        for last in ["00B0000010", "00B0000011", "00B0000010"] {
            let outcome = try await run("opensc-tool", program + [last], in: folder)
            #expect(
                outcome.outputText.components(separatedBy: "Received").count == (last.hasSuffix("11") ? 2 : 3),
                "\(outcome.errorText)")
        }
        child.signal(SIGINT)
        let end = child.collect(timeout: .seconds(30))
        let verdicts = end.errorText.split(separator: "\n").filter { $0.hasPrefix("same ") || $0.hasPrefix("DIFFERS ") }
        #expect(verdicts.map { $0.prefix(4) } == ["same", "DIFF", "same"], "\(end.errorText)")
    }

    @Test func linesOfHexMeetTheRecordedCard() async throws {
        let folder = try TemporaryFolder()
        try folder.write("00A4000C020001\n00B0000010", "s.txt")
        _ = try await Binary.run("record", "-o", "a.pcapng", "--card", "virtual:filesystem", "apdu", "s.txt", in: folder)
        let lines = Data("!atr\n00A4000C020001\n# a comment\n00 B0 00 00 10\n".utf8)
        let outcome = try await ProcessRunner.run(
            Binary.path, ["serve", "a.pcapng", "--lines"], input: lines, directory: folder.path)
        let said = outcome.outputText.split(separator: "\n")
        #expect(said.prefix(2) == ["3B858131FE458073F60140CA", "9000"])
        #expect(said.last?.hasSuffix("9000") == true)
        #expect(outcome.end == .status(0), "\(outcome.errorText)")
    }

    @Test(
        .enabled(if: PrivatePCSCD.isAvailable, Comment(rawValue: PrivatePCSCD.reason)),
        .enabled(if: Programs.openSC == nil, Comment(rawValue: Programs.openSC ?? "")))
    func aRecordedCardStandsInASlotOfVPCD() async throws {
        let service = try PrivatePCSCD()
        defer { service.stop() }
        let folder = try TemporaryFolder()
        try folder.write("00A4000C020001\n00B0000010", "s.txt")
        _ = try await Binary.run("record", "-o", "a.pcapng", "--card", "virtual:filesystem", "apdu", "s.txt", in: folder)
        let child = try ChildProcess(
            Binary.path, ["serve", "a.pcapng", "--vpcd", "127.0.0.1:\(service.ports[0])"],
            environment: Binary.environment(folder), directory: folder.path)
        let deadline = ContinuousClock.now + .seconds(30)
        var isIn = false
        while !isIn, ContinuousClock.now < deadline {
            let list = try await ProcessRunner.run("opensc-tool", ["-l"], environment: service.environment)
            isIn = list.outputText.contains("Yes")
        }
        let read = try await ProcessRunner.run(
            "opensc-tool", ["-c", "default", "-r", "0", "-s", "00A4000C020001", "-s", "00B0000010"],
            environment: service.environment, directory: folder.path)
        child.signal(SIGINT)
        let end = child.collect(timeout: .seconds(30))
        #expect(read.outputText.components(separatedBy: "Received (SW1=0x90").count == 3, "\(read.outputText) \(read.errorText)")
        #expect(end.errorText.contains("same     a.pcapng"), "\(end.errorText)")
    }

    @Test func wrongUsageIsSaid() async throws {
        let folder = try TemporaryFolder()
        for words in [
            ["serve"], ["serve", "a.pcapng", "--lines", "--socket", "s"],
            ["virtual", "passport", "--socket", "s", "--vpcd", "h:1"],
            ["virtual", "passport", "--socket", "s", "--table", "0"], ["serve", "a", "b"],
        ] {
            let outcome = try await Binary.run(words, in: folder)
            #expect(outcome.end == .status(2), "\(words): \(outcome.errorText)")
        }
        #expect(try await Binary.run("serve", "none.pcapng", "--lines", in: folder).end == .status(3))
        try folder.write("here", "taken")
        let taken = try await Binary.run("virtual", "passport", "--socket", "taken", in: folder)
        #expect(taken.end == .status(3))
        #expect(taken.errorText == "tapdeck: no socket: taken: exists already\n  rm taken\n")
    }
}
