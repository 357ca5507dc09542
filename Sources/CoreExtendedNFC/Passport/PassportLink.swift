// SPDX-License-Identifier: MIT

import FoundationEssentials
import PCSC
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

    /// A plain exchange with what the card says of its transport followed: `61xx` by GET RESPONSE, `6Cxx` by the same command with that
    /// Le. A READ BINARY answered with `6Cxx` is left to who plans the reading.
    func exchange(_ command: CommandAPDU) async throws -> ResponseAPDU {
        var response = try await sendAPDU(command)
        if response.sw1 == 0x6C, response.data.isEmpty, command.ne != nil, command.ins & 0xFE != 0xB0 {
            response = try await sendAPDU(
                CommandAPDU(
                    cla: command.cla, ins: command.ins, p1: command.p1, p2: command.p2, data: command.data, le: response.sw2))
        }
        var data = response.data
        var parts = 0
        while response.needsGetResponse {
            parts += 1
            guard parts <= 16, data.count <= 1 << 16 else {
                throw TransportError(.malformedResponse, detail: "61xx without an end after \(data.count) bytes")
            }
            response = try await sendAPDU(CommandAPDU(cla: 0, ins: 0xC0, p1: 0, p2: 0, le: response.sw2))
            data += response.data
        }
        return ResponseAPDU(data: data, sw1: response.sw1, sw2: response.sw2)
    }

    /// Puts the card back where no key agreement was begun: by a reset, or where the transport has none, by a command whose answer
    /// does not matter. Some chips refuse the first command after a failed PACE.
    func startOver() async throws {
        if let connection = transport as? any CardConnection {
            do {
                _ = try await connection.resetCard()
                return
            } catch let error as TransportError where error.case == .unsupportedOperation {}
        }
        _ = try await sendAPDU(CommandAPDU(cla: 0, ins: 0x84, p1: 0, p2: 0, le: 8))
    }

    /// Whether the card says that it takes extended lengths: the third octet of the card capabilities in its historical bytes (ISO/IEC
    /// 7816-4 12.1.1.9). Nil when they say nothing of it, so that EF.ATR/INFO may; false where there is no answer to reset.
    var takesExtendedLength: Bool? {
        guard let atr = (transport as? any CardConnection)?.atr, !atr.isEmpty else { return false }
        let bytes = ATR(Array(atr)).historicalBytes
        guard bytes.first == 0x80 else { return nil }
        var rest = bytes.dropFirst()
        while let first = rest.popFirst() {
            let value = rest.prefix(Int(first & 0x0F))
            if first >> 4 == 0x7, value.count == 3, let last = value.last { return last & 0x40 != 0 }
            rest = rest.dropFirst(value.count)
        }
        return nil
    }
}
