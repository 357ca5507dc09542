// SPDX-License-Identifier: MIT

import CardSockets
import Foundation
import Octets
import TestSupport
import Testing
import VirtualCards

private let host = PythonHost("desfire_reader.py", packages: "desfire, boltlib and pyscard")

/// `tapdeck virtual` met by programs that share nothing with this package, through pcscd.
@Suite(
    .enabled(if: PrivatePCSCD.isAvailable, Comment(rawValue: PrivatePCSCD.reason)),
    .enabled(if: access("/usr/bin/opensc-tool", X_OK) == 0, "opensc-tool is not installed"))
struct DESFirePartiesTests {
    private static let layout = """
        app F00001 aes keys 2
        file 1 std 200 plain EEEE = 01020304
        file 2 value 0..1000 100 plain EEEE
        """

    /// Runs `body` while a card is in the first slot, put there by the command line.
    private func withCard<Value>(
        _ words: [String], _ body: (PrivatePCSCD) async throws -> Value
    ) async throws -> Value {
        try await PrivatePCSCD.use { service in
            // The card of the test before is gone first: the virtual reader looks every 400 ms.
            try await wait(service, forCard: false)
            let folder = try TemporaryFolder()
            let card = try ChildProcess(
                Binary.path, ["virtual"] + words + ["--vpcd", "127.0.0.1:\(service.ports[0])"],
                environment: service.environment, directory: folder.path)
            defer {
                card.signal(SIGINT)
                card.waitForEnd(timeout: .seconds(10))
            }
            try await wait(service, forCard: true)
            return try await body(service)
        }
    }

    private func wait(_ service: PrivatePCSCD, forCard isThere: Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(10)
        while true {
            let seen = try await ProcessRunner.run("opensc-tool", ["-r", "0", "-a"], environment: service.environment)
            if seen.outputText.hasPrefix("3b:") == isThere { return }
            try #require(ContinuousClock.now < deadline, "\(seen.outputText) \(seen.errorText)")
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// What opensc-tool printed of each answer: a line of status, then lines of up to sixteen octets with their text behind them.
    private func answers(_ text: String) throws -> [[UInt8]] {
        var answers: [[UInt8]] = []
        var status: [UInt8] = []
        for line in text.split(separator: "\n") {
            if line.hasPrefix("Sending:") {
                if !status.isEmpty { answers[answers.count - 1] += status }
                answers.append([])
                status = []
            } else if line.hasPrefix("Received (SW1=0x") {
                let parts: [Substring] = line.split(separator: "x")
                status = try Hex.decode(parts.dropFirst().map { String($0.prefix(2)) }.joined())
            } else if !answers.isEmpty, status.count == 2 {
                // Three characters an octet, then one an octet for the text.
                let octets: [Substring] = line.prefix(line.count / 4 * 3).split(separator: " ")
                answers[answers.count - 1] += try Hex.decode(octets.map { String($0) }.joined())
            }
        }
        if !answers.isEmpty { answers[answers.count - 1] += status }
        return answers
    }

    @Test func openSCSendsWrappedCommands() async throws {
        let commands = [
            "9060000000", "90AF000000", "90AF000000", "906A000000", "905A000003F0000100", "906F000000", "90F50000010100",
            "90F50000010200", "90BD0000070100000040000000", "90AF000000", "903D00000B01000000040000AABBCCDD00",
            "90BD0000070100000006000000", "906C0000010200", "900C000005021900000000", "90C7000000", "906C0000010200",
            "90AA0000010000", "90AF000002000000", "905A00000399999900", "00A4040007D276000085010000", "9051000000",
        ]
        let options = ["desfire", "--layout", Self.layout, "--seed", "5"]
        let outcome = try await withCard(options) { service in
            try await ProcessRunner.run(
                "opensc-tool", ["-r", "0", "-c", "default"] + commands.flatMap { ["-s", $0] },
                environment: service.environment)
        }
        #expect(outcome.end == .status(0), "\(outcome.errorText)")
        // The same card in this process says the same.
        let card = try VirtualCardCatalog.make(
            VirtualCardSpecification(kind: "desfire", arguments: Array(options.dropFirst())))
        card.powerOn()
        var wanted: [[UInt8]] = []
        for command in commands {
            let sent = try Hex.decode(command)
            let answer: CardAnswer = card.exchange(sent)
            guard case .response(let octets) = answer else { break }
            wanted.append(octets)
        }
        let got = try answers(outcome.outputText)
        try #require(got.count == commands.count)
        for (index, command) in commands.enumerated() {
            // The card's random number is another after other resets.
            if command.hasPrefix("90AA") {
                #expect(got[index].count == 18 && got[index].suffix(2) == [0x91, 0xAF])
            } else {
                #expect(Hex.encode(got[index]) == Hex.encode(wanted[index]), "\(command)")
            }
        }
        #expect(got[11].starts(with: [0xAA, 0xBB, 0xCC, 0xDD]) && got[15].prefix(4) == [125, 0, 0, 0])
    }

    @Test(.enabled(if: host.isAvailable, Comment(rawValue: host.reason)))
    func theReaderDesfireOfPyPIReadsAndWrites() async throws {
        let outcome = try await withCard(["desfire", "--layout", Self.layout]) { service in
            try await host.run(["desfire", service.readers[0]], environment: service.environment)
        }
        #expect(outcome.end == .status(0), "\(outcome.errorText)")
        let told = try #require(JSONSerialization.jsonObject(with: outcome.output) as? [String: Any])
        let before = "01020304" + String(repeating: "00", count: 196)
        let after = Hex.encode((0..<150).map { UInt8(truncatingIfNeeded: 7 * $0) }) + String(repeating: "00", count: 50)
        #expect(told["applications"] as? [String] == ["F00001"])
        #expect(told["files"] as? [Int] == [1, 2] && told["files after"] as? [Int] == [1, 2])
        #expect(told["before"] as? String == before)
        #expect(told["after"] as? String == after)
        #expect(told["value"] as? [Int] == [100, 25, 7])
        #expect(told["refused"] as? String == "A0")
        let settings = try #require(told["settings"] as? [String: Any])
        #expect(settings["type"] as? String == "Standard Data Files" && settings["file_length"] as? Int == 200)
        #expect(settings["communication"] as? String == "Plain communication")
    }

    @Test(.enabled(if: host.isAvailable, Comment(rawValue: host.reason)))
    func boltlibReadsAndWritesAnNTAG424() async throws {
        let address = "lnurlw://example.com/a?p=00000000000000000000000000000000&c=0000000000000000"
        let outcome = try await withCard(["ntag424"]) { service in
            try await host.run(["boltlib", address], environment: service.environment)
        }
        #expect(outcome.end == .status(0), "\(outcome.errorText)")
        let told = try #require(JSONSerialization.jsonObject(with: outcome.output) as? [String: String])
        #expect(told["version"]?.hasPrefix("04040") == true && told["uid"] == "04544401020380")
        #expect(told["before"]?.hasPrefix("https://") == true)
        #expect(told["after"]?.hasPrefix("lnurlw://example.com/a?p=") == true)
    }
}
