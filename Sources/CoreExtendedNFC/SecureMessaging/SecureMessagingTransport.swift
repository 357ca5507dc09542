// SPDX-License-Identifier: MIT

public import FoundationEssentials
import Synchronization
public import TagTransport

/// A transport whose commands travel under secure messaging over another one.
///
/// `61xx` is followed below the protection: GET RESPONSE goes plain and moves no counter, and the joined answer is opened once.
/// One command at a time; a second one while the first is under way is refused.
public final class SecureMessagingTransport: ISO7816TagTransporting {
    private let link: any NFCTagTransport
    private let channel: Mutex<SecureMessaging>
    private let isT0: Bool

    public convenience init(over transport: any NFCTagTransport, _ secureMessaging: SecureMessaging) {
        self.init(over: transport, isT0: (transport as? any CardConnection)?.protocolName == "T=0", secureMessaging)
    }

    init(over transport: any NFCTagTransport, isT0: Bool, _ secureMessaging: SecureMessaging) {
        link = transport
        channel = Mutex(secureMessaging)
        self.isT0 = isT0
    }

    public var identifier: Data { link.identifier }
    public var initialAID: String { (link as? any ISO7816TagTransporting)?.initialAID ?? "" }

    /// Where the channel stands.
    public var state: SecureMessaging.State { channel.withLock { $0.state } }
    /// The algorithms in use.
    public var cipher: SecureMessagingCipher { channel.withLock { $0.cipher } }

    /// Goes on under new keys from the next command on, as after Chip Authentication.
    public func restart(with secureMessaging: SecureMessaging) { channel.withLock { $0 = secureMessaging } }

    /// Goes on with the channel of another transport, which was opened over the same link.
    func restart(like other: SecureMessagingTransport) { restart(with: other.channel.withLock { $0 }) }

    /// Frames cannot be protected.
    public func send(_ data: Data) async throws -> Data { throw TransportError.unsupported("a raw frame under secure messaging") }

    /// - Throws: ``SecureMessagingError``, or what the transport below throws.
    public func sendAPDU(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        let protected = try channel.withLock { channel throws(SecureMessagingError) in try channel.protect(apdu) }
        do {
            let answer = try await transmit(protected)
            return try channel.withLock { channel throws(SecureMessagingError) in try channel.unprotect(answer) }
        } catch let error as SecureMessagingError {
            throw error
        } catch {
            channel.withLock { $0.abandon() }
            throw error
        }
    }

    /// The same as ``sendAPDU(_:)``: whatever came in parts was joined below the protection.
    public func sendAPDUWithChaining(_ apdu: CommandAPDU) async throws -> ResponseAPDU { try await sendAPDU(apdu) }

    private func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        var response = try await link.sendAPDU(command)
        if isT0, response.sw1 == 0x6C, response.data.isEmpty {
            // Under T=0 the card tells the length that waits; the same protected octets are sent again (ISO/IEC 7816-3 12.2.3).
            response = try await link.sendAPDU(
                CommandAPDU(
                    cla: command.cla, ins: command.ins, p1: command.p1, p2: command.p2, data: command.data, le: response.sw2))
        }
        guard response.needsGetResponse else { return response }
        var data = response.data
        var classOctet: UInt8 = 0x00
        var empty = 0
        var parts = 0
        while response.needsGetResponse {
            empty = response.data.isEmpty ? empty + 1 : 0
            parts += 1
            guard data.count <= Self.longestAnswer, empty <= 2, parts <= Self.mostParts else {
                throw TransportError(.malformedResponse, detail: "61xx without an end after \(data.count) bytes")
            }
            let next = try await link.sendAPDU(CommandAPDU(cla: classOctet, ins: 0xC0, p1: 0, p2: 0, le: response.sw2))
            if next.data.isEmpty, next.statusWord == 0x6E00 || next.statusWord == 0x6987, classOctet == 0x00 {
                classOctet = 0x0C
                empty = 0
                continue
            }
            data += next.data
            response = next
        }
        return ResponseAPDU(data: data, sw1: response.sw1, sw2: response.sw2)
    }

    /// An extended answer and its protection, twice over.
    private static let longestAnswer = 1 << 17
    /// The longest answer in parts of 256 octets.
    private static let mostParts = 1 << 9
}
