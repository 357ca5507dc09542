// SPDX-License-Identifier: MIT

import Glibc

/// A program's whole run: its time, its memory, and what it wrote to a pipe, counted and not kept.
struct ChildRun {
    var seconds = 0.0
    /// The most memory that it held, in octets.
    var memory = 0
    var lines = 0
    var octets = 0
    var status: Int32 = 0

    /// - Parameter keeping: called with each piece of the output.
    init(_ program: String, _ arguments: [String], keeping: ((UnsafeRawBufferPointer) -> Void)? = nil) throws {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw Failure(.outside, "no pipe: \(String(cString: strerror(errno)))") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) }
        words.append(nil)
        defer { for word in words { free(word) } }
        var child = pid_t()
        let start = ContinuousClock.now
        let failure = posix_spawnp(&child, program, &actions, nil, words, environ)
        close(ends[1])
        defer { close(ends[0]) }
        guard failure == 0 else { throw Failure(.outside, "\(program): \(String(cString: strerror(failure)))") }
        var asked = 0
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = read(ends[0], &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            octets += count
            // The kernel's own record of a child counts its parent's memory too, so the child is asked while it lives.
            if octets >= asked {
                memory = max(memory, Self.mostMemory(of: child))
                asked = octets + (1 << 20)
            }
            buffer.withUnsafeBytes { piece in
                let part = UnsafeRawBufferPointer(rebasing: piece[..<count])
                for octet in part where octet == 0x0A { lines += 1 }
                keeping?(part)
            }
        }
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        seconds = (ContinuousClock.now - start).microseconds / 1_000_000
    }

    /// `VmHWM` of a running process, in octets.
    private static func mostMemory(of process: pid_t) -> Int {
        guard let text = try? FileText.read("/proc/\(process)/status", limit: 1 << 16),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }),
            let kibibytes = line.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
        else { return 0 }
        return kibibytes * 1024
    }

    /// Whether `program` can be found.
    static func isInstalled(_ program: String) -> Bool {
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin"
        return path.split(separator: ":").contains { access("\($0)/\(program)", X_OK) == 0 }
    }
}
