// SPDX-License-Identifier: MIT

import FoundationEssentials
import Synchronization
import TagTransport

/// The transport of one passport read: counts the exchanges, logs them, and stops when the task is cancelled.
final class PassportLink: NFCTagTransport {
    private let transport: any NFCTagTransport
    private let count = Mutex(0)
    private let log = ExchangeLog(source: "Passport")
    let isT0: Bool

    init(_ transport: any NFCTagTransport) {
        self.transport = transport
        isT0 = (transport as? any CardConnection)?.protocolName == "T=0"
    }

    /// Exchanges so far, those without an answer included.
    var exchanges: Int { count.withLock { $0 } }
    var identifier: Data { transport.identifier }

    func send(_ data: Data) async throws -> Data { throw TransportError.unsupported("a raw frame to a passport") }

    func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        try Task.checkCancellation()
        count.withLock { $0 += 1 }
        let response = try await transport.sendAPDU(apdu)
        log.exchange(apdu, response)
        return response
    }
}
