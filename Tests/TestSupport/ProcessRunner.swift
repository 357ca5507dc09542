// SPDX-License-Identifier: MIT

public import Foundation

/// Runs a program and gathers what it wrote and how it ended.
public enum ProcessRunner {
    public enum End: Sendable, Equatable {
        case status(Int32)
        case signal(Int32)
        /// It was killed because it ran longer than allowed.
        case timedOut
    }

    public struct Outcome: Sendable {
        public let end: End
        public let output: Data
        public let errorOutput: Data

        public var outputText: String { String(decoding: output, as: UTF8.self) }
        public var errorText: String { String(decoding: errorOutput, as: UTF8.self) }
    }

    public struct Failure: Error, CustomStringConvertible {
        public let description: String
        public init(description: String) { self.description = description }
    }

    /// Runs `program`, a path or a name looked for in PATH, on threads of its own.
    ///
    /// - Parameters:
    ///   - environment: set on top of this process's own; an empty value removes the variable.
    ///   - input: all of standard input.
    ///   - timeout: after it the program and what it started are killed.
    public static func run(
        _ program: String, _ arguments: [String] = [], environment: [String: String] = [:], input: Data = Data(),
        directory: String? = nil, timeout: Duration = .seconds(60)
    ) async throws -> Outcome {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        try runBlocking(
                            program, arguments, environment: environment, input: input, directory: directory, timeout: timeout
                        )
                    }
                )
            }
        }
    }

    /// The same on the caller's thread, for callers that are not tests' tasks.
    public static func runBlocking(
        _ program: String, _ arguments: [String] = [], environment: [String: String] = [:], input: Data = Data(),
        directory: String? = nil, timeout: Duration = .seconds(60)
    ) throws -> Outcome {
        let child = try ChildProcess(program, arguments, environment: environment, directory: directory)
        let writer = Thread { child.write(input) }
        writer.start()
        let outcome = child.collect(timeout: timeout)
        return outcome
    }
}

/// A program that runs beside the test: a service, or one that is to be killed half way.
public final class ChildProcess: @unchecked Sendable {
    public let identifier: pid_t
    private let input: Int32
    private let output: Int32
    private let errorOutput: Int32
    private let lock = NSLock()
    private static let spawning = NSLock()
    private var end: ProcessRunner.End?
    private var inputIsOpen = true

    /// Starts `program` in a process group of its own, its three standard streams connected to this process.
    public init(_ program: String, _ arguments: [String] = [], environment: [String: String] = [:], directory: String? = nil)
        throws
    {
        var merged = ProcessInfo.processInfo.environment
        for (name, value) in environment { merged[name] = value.isEmpty ? nil : value }
        // One at a time, so that no other child inherits a pipe before it is marked.
        Self.spawning.lock()
        defer { Self.spawning.unlock() }
        let pipes = try [Self.pipe(), Self.pipe(), Self.pipe()]
        let words = (directory.map { ["env", "-C", $0] } ?? []) + [program] + arguments
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, pipes[0].read, 0)
        posix_spawn_file_actions_adddup2(&actions, pipes[1].write, 1)
        posix_spawn_file_actions_adddup2(&actions, pipes[2].write, 2)
        // Pipes that Foundation makes on another thread at this moment are not marked: a service that keeps the end of one open
        // keeps its reader waiting for as long as it runs.
        for descriptor in Int32(3)..<1024 { posix_spawn_file_actions_addclose(&actions, descriptor) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        var identifier = pid_t()
        let result = Self.withCStrings(words) { argumentList in
            Self.withCStrings(merged.map { "\($0.key)=\($0.value)" }) { environmentList in
                posix_spawnp(&identifier, words[0], &actions, &attributes, argumentList, environmentList)
            }
        }
        close(pipes[0].read)
        close(pipes[1].write)
        close(pipes[2].write)
        guard result == 0 else {
            [pipes[0].write, pipes[1].read, pipes[2].read].forEach { close($0) }
            throw ProcessRunner.Failure(description: "\(program): \(String(cString: strerror(result)))")
        }
        self.identifier = identifier
        input = pipes[0].write
        output = pipes[1].read
        errorOutput = pipes[2].read
    }

    deinit {
        closeInput()
        close(output)
        close(errorOutput)
    }

    /// Writes a line to its standard input.
    public func write(line: String) { send(Data((line + "\n").utf8)) }

    /// Writes to its standard input and closes it.
    public func write(_ data: Data) {
        send(data)
        closeInput()
    }

    private func send(_ data: Data) {
        data.withUnsafeBytes { buffer in
            var written = 0
            while written < buffer.count {
                let count = Foundation.write(input, buffer.baseAddress?.advanced(by: written), buffer.count - written)
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { break }
                written += count
            }
        }
    }

    /// Sends a signal to it alone.
    public func signal(_ number: Int32) {
        lock.lock()
        defer { lock.unlock() }
        if end == nil { kill(identifier, number) }
    }

    /// Waits for its end, and gathers what it wrote until then.
    public func collect(timeout: Duration) -> ProcessRunner.Outcome {
        let deadline = ContinuousClock.now + timeout
        var gathered = [Data(), Data()]
        var open = [output, errorOutput]
        var timedOut = false
        while open.contains(where: { $0 >= 0 }) {
            var entries = open.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            let rest = deadline - .now
            guard rest > .zero || timedOut else {
                timedOut = true
                kill(-identifier, SIGKILL)
                continue
            }
            let milliseconds = timedOut ? 1_000 : Int32(clamping: rest.components.seconds * 1_000 + 1)
            let ready = Foundation.poll(&entries, nfds_t(entries.count), milliseconds)
            // After the kill somebody else may still hold a stream open: it is not waited for.
            if ready == 0, timedOut { break }
            for index in 0..<2 where entries[index].revents != 0 {
                var buffer = [UInt8](repeating: 0, count: 1 << 16)
                let count = read(open[index], &buffer, buffer.count)
                if count > 0 { gathered[index].append(contentsOf: buffer[0..<count]) } else { open[index] = -1 }
            }
        }
        let end = waitForEnd(timeout: timedOut ? .seconds(5) : max(deadline - .now, .milliseconds(100)))
        return ProcessRunner.Outcome(end: timedOut ? .timedOut : end, output: gathered[0], errorOutput: gathered[1])
    }

    /// Waits for its end; kills it, with what it started, when it does not come in time.
    @discardableResult
    public func waitForEnd(timeout: Duration) -> ProcessRunner.End {
        let deadline = ContinuousClock.now + timeout
        var killed = false
        while true {
            if let end = poll() { return killed ? .timedOut : end }
            if ContinuousClock.now > deadline, !killed {
                kill(-identifier, SIGKILL)
                killed = true
            }
            usleep(1_000)
        }
    }

    /// How it ended; nil while it runs.
    public func poll() -> ProcessRunner.End? {
        lock.lock()
        defer { lock.unlock() }
        if let end { return end }
        var status: Int32 = 0
        guard waitpid(identifier, &status, WNOHANG) == identifier else { return nil }
        end = status & 0x7F == 0 ? .status(status >> 8 & 0xFF) : .signal(status & 0x7F)
        return end
    }

    public func closeInput() {
        lock.lock()
        defer { lock.unlock() }
        if inputIsOpen { close(input) }
        inputIsOpen = false
    }

    private static func pipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        guard Foundation.pipe(&ends) == 0 else { throw ProcessRunner.Failure(description: "pipe: errno \(errno)") }
        ends.forEach { _ = fcntl($0, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private static func withCStrings<Value>(_ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Value) -> Value {
        let copies = strings.map { strdup($0) }
        defer { copies.forEach { free($0) } }
        return body(copies + [nil])
    }
}
