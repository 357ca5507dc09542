// SPDX-License-Identifier: MIT

import Glibc

/// The reader's end of a virtual slot, without a reader service: what the bench measures the bare link with.
final class LoopbackSlot {
    let port: UInt16
    private let listener: Int32
    private var connection: Int32 = -1

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard listener >= 0 else { throw Failure(.outside, "no socket: \(String(cString: strerror(errno)))") }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && listen(listener, 1) == 0 && getsockname(listener, address, &length) == 0
            }
        }
        guard bound else { throw Failure(.outside, "no loopback port: \(String(cString: strerror(errno)))") }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit {
        if connection >= 0 { close(connection) }
        close(listener)
    }

    /// Sends `command` again and again to the card that has connected.
    func medianMicroseconds(of command: [UInt8], _ count: Int) throws -> Double {
        connection = accept(listener, nil, nil)
        guard connection >= 0 else { throw Failure(.outside, "no card: \(String(cString: strerror(errno)))") }
        var on: Int32 = 1
        setsockopt(connection, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        // A card that does not answer must not hold the bench for ever.
        var limit = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let powerOn: [UInt8] = [0x00, 0x01, 0x01]
        _ = write(connection, powerOn, powerOn.count)
        let frame = [UInt8(command.count >> 8), UInt8(command.count & 0xFF)] + command
        var answer = [UInt8](repeating: 0, count: 512)
        var times: [Double] = []
        for _ in 0..<count {
            var start = timespec()
            clock_gettime(CLOCK_MONOTONIC, &start)
            guard write(connection, frame, frame.count) == frame.count, read(connection, &answer, answer.count) >= 4 else {
                throw Failure(.outside, "the link broke")
            }
            var end = timespec()
            clock_gettime(CLOCK_MONOTONIC, &end)
            times.append(Double(end.tv_sec - start.tv_sec) * 1e6 + Double(end.tv_nsec - start.tv_nsec) / 1e3)
        }
        return times.sorted()[count / 2]
    }
}
