// SPDX-License-Identifier: MIT

import Foundation
import TestSupport
import Testing

/// Programs that are here to be tried, and why not where they are not.
enum Programs {
    static func absence(of path: String, package: String) -> String? {
        access(path, X_OK) == 0 ? nil : "\(path) is not installed: apt install \(package)"
    }

    static let openSC = absence(of: "/usr/bin/opensc-tool", package: "opensc")
    static let scan = absence(of: "/usr/bin/pcsc_scan", package: "pcsc-tools")
    /// The distribution's Python, which alone sees the distribution's pyscard.
    static let python = "/usr/bin/python3"
    static let pyscard =
        works(python, ["-c", "import smartcard.System"]) ? nil : "pyscard is not installed: apt install python3-pyscard"
    static let host =
        works("python3", [script("bac_host.py"), "vectors"]) ? nil : "the Python host does not run here: pip install cryptography"
    static let java = works("java", ["--list-modules"]) ? nil : "java is not installed: apt install default-jdk-headless"
    static let strace = works("strace", ["-o", "/dev/null", "true"]) ? nil : "strace is not allowed here"

    static func script(_ name: String) -> String { PackageFiles.root.path + "/Tests/Hosts/" + name }

    /// Java looks for the library at a place that Debian has only in its development package.
    static let javaLibrary: [String] = {
        let folders: [String] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"]
        let found: String? = folders.map { $0 + "/libpcsclite.so.1" }.first { (path: String) in access(path, R_OK) == 0 }
        return found.map { ["-Dsun.security.smartcardio.library=\($0)"] } ?? []
    }()

    private static func works(_ program: String, _ arguments: [String]) -> Bool {
        (try? ProcessRunner.runBlocking(program, arguments))?.end == .status(0)
    }
}

/// `replay FILE -- PROGRAM` with programs that know nothing of it.
@Suite struct ProgramTests {
    private static let select = "00A4000C020001"
    private static let read = "00B0000010"

    /// A recorded session of a SELECT and as many READ BINARY as wanted.
    private func recorded(in folder: TemporaryFolder, reads: Int = 1) async throws {
        try folder.write(([Self.select] + Array(repeating: Self.read, count: reads)).joined(separator: "\n"), "s.txt")
        let outcome = try await Binary.run(
            "record", "-o", "a.pcapng", "--card", "virtual:filesystem", "apdu", "s.txt", in: folder)
        try #require(outcome.end == .status(0), "\(outcome.errorText)")
    }

    private func replay(_ program: [String], in folder: TemporaryFolder) async throws -> ProcessRunner.Outcome {
        try await Binary.run(["replay", "a.pcapng", "--"] + program, in: folder)
    }

    private static let openSC = ["opensc-tool", "-c", "default", "-s"]

    @Test(.enabled(if: Programs.openSC == nil, Comment(rawValue: Programs.openSC ?? "")))
    func openSCMeetsTheRecordedCard() async throws {
        let folder = try TemporaryFolder()
        try await recorded(in: folder)
        let same = try await replay(Self.openSC + [Self.select, "-s", Self.read], in: folder)
        #expect(same.end == .status(0), "\(same.errorText)")
        #expect(same.outputText.contains("Received (SW1=0x90, SW2=0x00):"))
        #expect(same.errorText.contains("same     a.pcapng   fields   2 exchanges"), "\(same.errorText)")
        #expect(same.errorText.contains("program  opensc-tool ended with status 0"))
        // Its own output alone stands on standard output.
        #expect(!same.outputText.contains("same "))

        let other = try await replay(Self.openSC + ["00A4000C020002"], in: folder)
        #expect(other.end == .status(1))
        #expect(other.errorText.contains("DIFFERS  a.pcapng   fields   at 3"), "\(other.errorText)")
        #expect(other.errorText.contains("iso7816.command.data"), "\(other.errorText)")

        let missing = try await replay(["opensc-tool", "-l"], in: folder)
        #expect(missing.end == .status(1))
        #expect(missing.outputText.contains("Yes             virtual:filesystem"), "\(missing.outputText)")
        #expect(missing.errorText.contains("2 recorded exchanges never came"))
        let atr = try await replay(["opensc-tool", "-a"], in: folder)
        #expect(atr.outputText.contains("3b:85:81:31:fe:45:80:73:f6:01:40:ca"), "\(atr.outputText)")
    }

    @Test(.enabled(if: Programs.scan == nil, Comment(rawValue: Programs.scan ?? "")))
    func pcscScanSeesTheRecordedCard() async throws {
        let folder = try TemporaryFolder()
        try await recorded(in: folder)
        // It never ends by itself.
        let outcome = try await replay(["timeout", "2", "pcsc_scan", "-n"], in: folder)
        #expect(outcome.outputText.contains("virtual:filesystem"), "\(outcome.outputText)")
        #expect(outcome.outputText.contains("3B 85 81 31 FE 45 80 73 F6 01 40 CA"), "\(outcome.outputText)")
        #expect(outcome.errorText.contains("program  timeout ended with status 124"), "\(outcome.errorText)")
        #expect(outcome.end == .status(1))
    }

    @Test(.enabled(if: Programs.pyscard == nil, Comment(rawValue: Programs.pyscard ?? "")))
    func pyscardWithThreadsMeetsTheRecordedCard() async throws {
        let folder = try TemporaryFolder()
        try folder.write(Array(repeating: Self.select, count: 200).joined(separator: "\n"), "s.txt")
        _ = try await Binary.run("record", "-o", "a.pcapng", "--card", "virtual:filesystem", "apdu", "s.txt", in: folder)
        let outcome = try await replay([Programs.python, Programs.script("pyscard_threads.py"), Self.select, "200"], in: folder)
        #expect(outcome.outputText == "200 answered\n", "\(outcome.errorText)")
        #expect(outcome.end == .status(0), "\(outcome.errorText)")
    }

    @Test(.enabled(if: Programs.java == nil, Comment(rawValue: Programs.java ?? "")))
    func javaMeetsTheRecordedCard() async throws {
        let folder = try TemporaryFolder()
        try await recorded(in: folder)
        let outcome = try await replay(
            ["java"] + Programs.javaLibrary + [Programs.script("SelectHost.java"), Self.select, Self.read], in: folder)
        let lines = outcome.outputText.split(separator: "\n")
        #expect(lines.first == "3B858131FE458073F60140CA", "\(outcome.errorText)")
        #expect(lines.count == 3)
        #expect(lines.last?.hasSuffix("9000") == true)
        #expect(outcome.end == .status(0), "\(outcome.errorText)")
    }

    @Test(.enabled(if: Programs.openSC == nil, Comment(rawValue: Programs.openSC ?? "")))
    func twoAtOnceDoNotMeet() async throws {
        let folder = try TemporaryFolder()
        try await recorded(in: folder)
        let program = Self.openSC + [Self.select, "-s", Self.read]
        async let first = replay(program, in: folder)
        async let second = replay(program, in: folder)
        #expect(try await first.end == .status(0))
        #expect(try await second.end == .status(0))
    }

    @Test(.enabled(if: Programs.openSC == nil, Comment(rawValue: Programs.openSC ?? "")))
    func aRecordedRemovalIsMetAtItsPlace() async throws {
        let folder = try TemporaryFolder()
        let trace = PackageFiles.root.path + "/Traces/removal-mid-read.pcapng"
        let commands = ["00A4000C020001", "00B0000040", "00B0004040", "00B0008040", "00B000C040"]
        let outcome = try await Binary.run(
            ["replay", trace, "--", "opensc-tool", "-c", "default"] + commands.flatMap { ["-s", $0] }, in: folder)
        #expect(outcome.outputText.components(separatedBy: "Received (SW1=0x90").count == 5, "\(outcome.outputText)")
        #expect(outcome.errorText.lowercased().contains("card removed"), "\(outcome.errorText)")
        #expect(outcome.errorText.contains("same     "))
        #expect(outcome.end == .status(0))
    }

    // MARK: - The program's end

    @Test func whatCannotBeRunIsSaidAsEnvSaysIt() async throws {
        let folder = try TemporaryFolder()
        try await recorded(in: folder)
        let missing = try await replay(["no-such-program-here"], in: folder)
        #expect(missing.end == .status(127))
        #expect(missing.errorText.contains("no-such-program-here cannot be run: No such file or directory"))
        try folder.write("text", "text")
        #expect(try await replay([folder("text")], in: folder).end == .status(126))
        #expect(try await replay([], in: folder).end == .status(2))
    }

    @Test func theStatusIsNeverThePrograms() async throws {
        let folder = try TemporaryFolder()
        try await recorded(in: folder)
        let outcome = try await replay(["sh", "-c", "exit 42"], in: folder)
        #expect(outcome.end == .status(1))
        #expect(outcome.errorText.contains("program  sh ended with status 42"))
        let killed = try await replay(["sh", "-c", "kill -9 $$"], in: folder)
        #expect(killed.errorText.contains("program  sh was ended by signal 9"))
    }

    @Test func theSocketIsThePrivatePlaceOfOneRunAndGoesWithIt() async throws {
        let folder = try TemporaryFolder()
        try await recorded(in: folder)
        let outcome = try await replay(
            ["sh", "-c", "stat -c %a:%F \"$PCSCLITE_CSOCK_NAME\" \"${PCSCLITE_CSOCK_NAME%/*}\"; echo \"$PCSCLITE_CSOCK_NAME\""],
            in: folder)
        let lines = outcome.outputText.split(separator: "\n").map(String.init)
        #expect(lines.prefix(2) == ["600:socket", "700:directory"])
        let path = try #require(lines.last)
        #expect(access(path, F_OK) != 0)
        #expect(access((path as NSString).deletingLastPathComponent, F_OK) != 0)
    }

    @Test func anInterruptEndsTheProgramAndWhatItStarted() async throws {
        let folder = try TemporaryFolder()
        try await recorded(in: folder)
        let child = try ChildProcess(
            Binary.path, ["replay", "a.pcapng", "--", "sh", "-c", "sleep 300 & echo $! > pid; wait"],
            environment: Binary.environment(folder), directory: folder.path)
        var sleeper: pid_t?
        let deadline = ContinuousClock.now + .seconds(30)
        while sleeper == nil, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(20))
            let text = (try? String(contentsOfFile: folder("pid"), encoding: .utf8)) ?? ""
            if text.hasSuffix("\n") { sleeper = pid_t(text.dropLast()) }
        }
        let started = try #require(sleeper)
        child.signal(SIGINT)
        #expect(child.collect(timeout: .seconds(30)).end == .status(130))
        while kill(started, 0) == 0, ContinuousClock.now < deadline { try await Task.sleep(for: .milliseconds(20)) }
        #expect(kill(started, 0) != 0)
    }

    // MARK: - No reader

    @Test(.enabled(if: Programs.strace == nil, Comment(rawValue: Programs.strace ?? "")))
    func noReplayOpensADeviceOrConnectsToAReaderService() async throws {
        let folder = try TemporaryFolder()
        try await recorded(in: folder)
        try FileManager.default.createDirectory(atPath: folder("suite"), withIntermediateDirectories: false)
        for name in ["passport-bac.pcapng", "desfire-ev2.pcapng", "credential-reader.pcapng"] {
            try FileManager.default.copyItem(
                atPath: PackageFiles.root.path + "/Traces/" + name, toPath: folder("suite/" + name))
        }
        let commands: [[String]] = [
            ["replay", "a.pcapng"], ["replay", "a.pcapng", "--", "sh", "-c", "true"], ["serve", "a.pcapng", "--lines"],
            ["replay", "suite"], ["replay", "suite", "--mode", "resealed", "--entropy", "fresh"],
        ]
        for words in commands {
            _ = try await ProcessRunner.run(
                "strace", ["-f", "-o", folder("calls"), "-e", "trace=connect,open,openat", Binary.path] + words,
                directory: folder.path)
            let calls = try String(contentsOfFile: folder("calls"), encoding: .utf8)
            #expect(calls.contains(".pcapng"))
            #expect(!calls.contains("connect("), "\(words)")
            for place in ["/run/pcscd", "/dev/bus", "/dev/hidraw", "libpcsclite"] { #expect(!calls.contains(place), "\(place)") }
        }
    }
}
