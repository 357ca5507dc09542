// SPDX-License-Identifier: MIT

import Glibc
public import Octets
import Threads

/// Why a link to a reader could not be made or kept. Equality is on the code.
public struct LinkError: CodedError {
    public enum Code: String, Sendable {
        /// Nothing answers at the address.
        case notReachable
        /// The connection broke.
        case broken
        /// The answer does not fit a message.
        case answerTooLong
        /// The card has no answer to reset.
        case noATR
        /// The link is in use.
        case servesAlready
        case noThread
        /// No socket can be had at the path.
        case notListening
    }

    public let code: Code
    public let detail: String

    public init(_ code: Code, detail: String) {
        self.code = code
        self.detail = detail
    }

    public var description: String { detail.isEmpty ? code.rawValue : "\(code.rawValue): \(detail)" }
}

func systemText(_ code: Int32) -> String { strerror(code).map { String(cString: $0) } ?? "errno \(code)" }

/// A connected TCP socket that sends every write at once.
func connectTCP(host: String, port: UInt16) throws(LinkError) -> Int32 {
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let resolved = getaddrinfo(host, String(port), &hints, &list)
    guard resolved == 0 else {
        throw LinkError(.notReachable, detail: "\(host): \(gai_strerror(resolved).map { String(cString: $0) } ?? "unknown host")")
    }
    defer { freeaddrinfo(list) }
    var failure = ECONNREFUSED
    var next = list
    while let entry = next?.pointee {
        next = entry.ai_next
        let descriptor = socket(entry.ai_family, entry.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), entry.ai_protocol)
        guard descriptor >= 0 else {
            failure = errno
            continue
        }
        if Glibc.connect(descriptor, entry.ai_addr, entry.ai_addrlen) == 0 {
            var on: Int32 = 1
            setsockopt(descriptor, Int32(IPPROTO_TCP), Int32(TCP_NODELAY), &on, socklen_t(MemoryLayout<Int32>.size))
            return descriptor
        }
        failure = errno
        close(descriptor)
    }
    throw LinkError(.notReachable, detail: "\(host):\(port): \(systemText(failure))")
}

/// A socket of mode 0600 bound to a path that must not exist; it does not listen yet.
func bindUnix(path: String) throws(LinkError) -> Int32 {
    var address = sockaddr_un()
    let octets = Array(path.utf8)
    let room = MemoryLayout.size(ofValue: address.sun_path) - 1
    // A client cuts a longer path in silence.
    guard !octets.isEmpty, octets.count <= room, !octets.contains(0) else {
        throw LinkError(.notListening, detail: "\(path): \(octets.count) bytes; the path of a socket has 1 to \(room)")
    }
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: octets) }
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else { throw LinkError(.notListening, detail: systemText(errno)) }
    // Before the bind, so that the file never has another mode.
    fchmod(descriptor, 0o600)
    let bound = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
    guard bound == 0 else {
        let code = errno
        close(descriptor)
        throw LinkError(.notListening, detail: "\(path): \(code == EADDRINUSE ? "exists already" : systemText(code))")
    }
    return descriptor
}

/// Starts a detached thread; false when the system gives none.
func startThread(_ body: @escaping @Sendable () -> Void) -> Bool { DetachedThread.start(body) }

/// Wakes a thread that sleeps. A ring is not lost when it comes before the wait. The mutex guards `rung` and `owner`.
final class Bell: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var rung = false
    private var owner: pthread_t?

    init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    func ring() {
        pthread_mutex_lock(mutex)
        rung = true
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }

    /// Sleeps until it rings; nil waits for ever.
    func wait(atMost limit: Duration?) {
        var end = timespec()
        clock_gettime(CLOCK_MONOTONIC, &end)
        let milliseconds = Int(limit?.pollMilliseconds ?? 0)
        let nanoseconds = end.tv_nsec + milliseconds % 1_000 * 1_000_000
        end.tv_sec += milliseconds / 1_000 + nanoseconds / 1_000_000_000
        end.tv_nsec = nanoseconds % 1_000_000_000
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while !rung {
            if limit == nil {
                pthread_cond_wait(condition, mutex)
            } else if pthread_cond_timedwait(condition, mutex, &end) == ETIMEDOUT {
                break
            }
        }
        rung = false
    }

    /// Makes the calling thread the one that sleeps here.
    func own() {
        pthread_mutex_lock(mutex)
        owner = pthread_self()
        pthread_mutex_unlock(mutex)
    }

    var isOwnedByThisThread: Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return owner.map { pthread_equal($0, pthread_self()) != 0 } ?? false
    }
}

extension Duration {
    /// Milliseconds for poll(2): rounded up, at least 0.
    var pollMilliseconds: Int32 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < 2_000_000 else { return 2_000_000_000 }
        return Int32(seconds) * 1_000 + Int32((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
