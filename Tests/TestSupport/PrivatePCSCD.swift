// SPDX-License-Identifier: MIT

import Dispatch
import Foundation

/// A pcscd of the tests' own: in a mount namespace of its own, with a virtual reader of two slots on free ports.
///
/// Programs reach it by `PCSCLITE_CSOCK_NAME`; this process too, because the variable is set here before the first PC/SC
/// context. It ends when the test process ends, however that happens, and leaves nothing behind.
public final class PrivatePCSCD: Sendable {
    public let socketPath: String
    /// The TCP ports of the two slots; ``readers`` has their names in the same order.
    public let ports: [UInt16]
    public let readers = ["Virtual PCD 00 00", "Virtual PCD 00 01"]
    private let process: ChildProcess

    /// Why there can be none here; nil when there can. Use with `.enabled(if: PrivatePCSCD.isAvailable, ...)`.
    public static let absence: String? = {
        if geteuid() != 0 { return "a private pcscd needs root for unshare -m" }
        for program in ["/usr/sbin/pcscd", "/usr/bin/unshare"] where access(program, X_OK) != 0 {
            return "a private pcscd needs \(program)"
        }
        if driver == nil { return "a private pcscd needs the virtual reader: apt install vsmartcard-vpcd" }
        let trial = try? ProcessRunner.runBlocking("unshare", ["-m", "mkdir", "-p", "/run/pcscd"], timeout: .seconds(10))
        if trial?.end != .status(0) { return "unshare -m is not allowed here" }
        return nil
    }()

    public static var isAvailable: Bool { absence == nil }

    /// For the reason of a skipped test.
    public static var reason: String { absence ?? "" }

    /// Runs `body` with the one pcscd of this process, while no other test uses it.
    public static func use<Value>(
        isolation: isolated (any Actor)? = #isolation, _ body: (PrivatePCSCD) async throws -> Value
    ) async throws -> Value {
        await turn.take()
        do {
            let value = try await body(try shared.get())
            await turn.give()
            return value
        } catch {
            await turn.give()
            throw error
        }
    }

    /// Runs `body` with one of its own for child processes, while no other test uses any: they share two slots' drivers, and programs
    /// that wait for cards are slow enough by themselves.
    public static func useSeparate<Value>(
        isolation: isolated (any Actor)? = #isolation, _ body: (PrivatePCSCD) async throws -> Value
    ) async throws -> Value {
        await turn.take()
        do {
            let service = try PrivatePCSCD()
            let value = try await body(service)
            service.stop()
            await turn.give()
            return value
        } catch {
            await turn.give()
            throw error
        }
    }

    /// What a child process needs in its environment to reach it.
    public var environment: [String: String] { ["PCSCLITE_CSOCK_NAME": socketPath] }

    private static let turn = Turn()
    private static let shared = Result { try PrivatePCSCD(setsEnvironment: true) }

    private static let driver: String? = {
        let folder = "/usr/lib/pcsc/drivers/serial"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.sorted().first { $0.hasPrefix("libifdvpcd.so") }.map { "\(folder)/\($0)" }
    }()

    /// A separate one, for child processes: libpcsclite in this process keeps to the socket that it saw first. Everything
    /// else goes through ``use(isolation:_:)``, which must not be nested.
    public init(setsEnvironment: Bool = false) throws {
        guard let driver = Self.driver else { throw ProcessRunner.Failure(description: Self.reason) }
        var template = Array("/tmp/pcscd-XXXXXX".utf8CString)
        guard let path = mkdtemp(&template).map({ String(cString: $0) }) else {
            throw ProcessRunner.Failure(description: "mkdtemp: errno \(errno)")
        }
        let port = try Self.freePortPair()
        ports = [port, port + 1]
        socketPath = path + "/run/pcscd.comm"
        let hexPort = "0x" + String(port, radix: 16, uppercase: true)
        try FileManager.default.createDirectory(atPath: path + "/run", withIntermediateDirectories: true)
        try FileManager.default.createDirectory(atPath: path + "/conf", withIntermediateDirectories: true)
        let entry = """
            FRIENDLYNAME "Virtual PCD"
            DEVICENAME   /dev/null:\(hexPort)
            LIBPATH      \(driver)
            CHANNELID    \(hexPort)

            """
        try Data(entry.utf8).write(to: URL(fileURLWithPath: path + "/conf/vpcd"))
        // The shell ends pcscd when its standard input closes: that is, whenever this process ends.
        let script = """
            mount --bind "$1/run" /run/pcscd || exit 70
            run() { pcscd -f -c "$1/conf" </dev/null >>"$1/log" 2>&1 & pid=$!; }
            run "$1"
            while read -r word; do
                case "$word" in
                stop) kill "$pid"; wait "$pid" ;;
                start) kill -0 "$pid" 2>/dev/null || run "$1" ;;
                esac
            done
            kill "$pid" 2>/dev/null
            wait "$pid"
            umount /run/pcscd
            rm -rf "$1"
            """
        process = try ChildProcess(
            "unshare", ["-m", "sh", "-c", script, "sh", path], environment: ["PCSCLITE_CSOCK_NAME": ""]
        )
        do {
            try wait(untilSocketIsThere: true)
        } catch {
            let log = (try? String(contentsOfFile: path + "/log", encoding: .utf8)) ?? ""
            stop()
            throw ProcessRunner.Failure(description: "pcscd did not start: \(log)")
        }
        if setsEnvironment { setenv("PCSCLITE_CSOCK_NAME", socketPath, 1) }
    }

    /// Ends the service, for a test of what then happens. ``startAgain()`` must follow before the test ends.
    public func endService() throws {
        process.write(line: "stop")
        try wait(untilSocketIsThere: false)
    }

    /// Starts the service again, at the same socket and ports, unless it runs.
    public func startAgain() throws {
        process.write(line: "start")
        try wait(untilSocketIsThere: true)
    }

    private func wait(untilSocketIsThere isThere: Bool) throws {
        let deadline = ContinuousClock.now + .seconds(10)
        while (access(socketPath, F_OK) == 0) != isThere {
            guard ContinuousClock.now < deadline, process.poll() == nil else {
                throw ProcessRunner.Failure(description: "pcscd did not \(isThere ? "start" : "end")")
            }
            usleep(2_000)
        }
    }

    deinit { stop() }

    /// Ends it and waits until it is gone.
    public func stop() {
        process.closeInput()
        process.waitForEnd(timeout: .seconds(10))
    }

    /// Two ports in a row that nobody listens on.
    private static func freePortPair() throws -> UInt16 {
        for _ in 0..<200 {
            let port = UInt16.random(in: 20_000..<32_000)
            if isFree(port), isFree(port + 1) { return port }
        }
        throw ProcessRunner.Failure(description: "no two free ports in a row")
    }

    private static func isFree(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}

/// Lets one task at a time through, in the order they came.
private actor Turn {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func take() async {
        if !isTaken {
            isTaken = true
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    func give() {
        if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
    }
}

/// Runs tasks on threads of its own: tests that must answer other programs in time do not wait for those that block the
/// threads which all tasks share.
public final class SeparateThreads: TaskExecutor {
    private let queue = DispatchQueue(label: "tests that answer in time")

    public init() {}

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
