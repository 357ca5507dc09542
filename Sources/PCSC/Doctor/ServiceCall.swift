// SPDX-License-Identifier: MIT

import Glibc

/// Asks whatever listens at a socket for the version of pcsc-lite's protocol.
enum ServiceCall {
    /// Sends CMD_VERSION as a client of 4:4 and reads the answer: major, minor, return code, 32 bits each.
    ///
    /// Daemons up to 2.4.0 answer another minor with their own numbers and a failure, later ones with theirs and success;
    /// the numbers are the service's in both.
    static func ask(_ path: String) -> DoctorFacts.Service {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return .garbled }
        defer { close(descriptor) }
        var limit = timeval(tv_sec: 2, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let start = ContinuousClock.now
        guard connect(descriptor, to: path) else {
            return switch errno {
            case ENOENT, ENOTDIR: .nothingThere
            case EACCES, EPERM: .notPermitted
            case ECONNREFUSED: .nobodyListens
            default: .garbled
            }
        }
        // Header: size of the structure, command 11; structure: major 4, minor 4, return code 0.
        let request: [UInt32] = [12, 0x11, 4, 4, 0]
        let sent = request.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        var answer: [UInt32] = [0, 0, 0]
        let received = answer.withUnsafeMutableBytes { buffer in
            var count = 0
            while count < buffer.count {
                let more = recv(descriptor, buffer.baseAddress?.advanced(by: count), buffer.count - count, 0)
                if more < 0 && errno == EINTR { continue }
                if more <= 0 { return more < 0 && errno != ECONNRESET ? -1 : count }
                count += more
            }
            return count
        }
        guard received == 12 else { return received == 0 || sent < 0 ? .refusesSession : .garbled }
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        let milliseconds = Double(seconds) * 1e3 + Double(attoseconds) * 1e-15
        guard answer[0] <= 0xFF, answer[1] <= 0xFFFF, answer[0] > 0 else { return .garbled }
        return .answers(milliseconds: milliseconds, major: Int(answer[0]), minor: Int(answer[1]))
    }

    /// False, with `errno` set, when nothing can be reached.
    private static func connect(_ descriptor: Int32, to path: String) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let octets = Array(path.utf8)
        guard octets.count < MemoryLayout.size(ofValue: address.sun_path) else {
            errno = ENAMETOOLONG
            return false
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: octets) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }
}
