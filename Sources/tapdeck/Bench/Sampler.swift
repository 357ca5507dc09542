// SPDX-License-Identifier: MIT

import Glibc

/// Where this process spends its processor time: the program counter at each tick of a timer, by the library that it lies in.
///
/// One at a time. The handler only stores a number, which is allowed in a signal handler.
enum Sampler {
    /// Runs `body` and gives the share of samples, 0 to 1, that lie in a mapped file whose name contains `library`.
    ///
    /// - Returns: nil where the program counter cannot be read.
    static func share(in library: String, _ body: () async throws -> Void) async throws -> Double? {
        #if arch(x86_64) || arch(arm64)
        let ranges = mapped(library)
        guard !ranges.isEmpty else { return nil }
        Samples.count = 0
        var action = sigaction()
        action.__sigaction_handler.sa_sigaction = { _, _, context in
            guard let context, Samples.count < Samples.room else { return }
            Samples.places[Samples.count] = Samples.counter(context)
            Samples.count += 1
        }
        action.sa_flags = SA_SIGINFO | Int32(bitPattern: UInt32(SA_RESTART))
        var before = sigaction()
        sigaction(SIGPROF, &action, &before)
        var timer = itimerval(it_interval: timeval(tv_sec: 0, tv_usec: 1000), it_value: timeval(tv_sec: 0, tv_usec: 1000))
        setitimer(__itimer_which_t(ITIMER_PROF.rawValue), &timer, nil)
        defer {
            timer = itimerval()
            setitimer(__itimer_which_t(ITIMER_PROF.rawValue), &timer, nil)
            sigaction(SIGPROF, &before, nil)
        }
        try await body()
        let count = Samples.count
        guard count > 50 else { return nil }
        let inside = (0..<count).filter { index in ranges.contains { $0.contains(Samples.places[index]) } }.count
        return Double(inside) / Double(count)
        #else
        return nil
        #endif
    }

    /// Addresses of a library's code, from the process's own map.
    private static func mapped(_ library: String) -> [Range<UInt>] {
        guard let text = try? FileText.read("/proc/self/maps", limit: 1 << 22) else { return [] }
        return text.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: " ", omittingEmptySubsequences: true)
            guard parts.count > 5, parts[1].contains("x"), parts[5].contains(library) else { return nil }
            let ends = parts[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            return ends.count == 2 && ends[0] < ends[1] ? ends[0]..<ends[1] : nil
        }
    }
}

/// What the handler writes to: memory that is there before the first tick.
private enum Samples {
    static let room = 1 << 17
    nonisolated(unsafe) static let places = UnsafeMutablePointer<UInt>.allocate(capacity: room)
    nonisolated(unsafe) static var count = 0

    static func counter(_ context: UnsafeMutableRawPointer) -> UInt {
        #if arch(x86_64)
        // gregs[REG_RIP] of ucontext_t.
        UInt(
            truncatingIfNeeded: context.load(
                fromByteOffset: MemoryLayout<ucontext_t>.offset(of: \.uc_mcontext) ?? 0, as: mcontext_t.self
            ).gregs.16)
        #elseif arch(arm64)
        UInt(
            context.load(fromByteOffset: MemoryLayout<ucontext_t>.offset(of: \.uc_mcontext) ?? 0, as: mcontext_t.self).pc)
        #else
        0
        #endif
    }
}
