// SPDX-License-Identifier: MIT

import FoundationEssentials

extension ISO7816TagTransporting {
    /// The most octets that one chained response may have: what an extended response can hold, over again for safety.
    private var longestChain: Int { 1 << 20 }
    /// The most parts that it may come in: a card that hands out single octets has no end either.
    private var mostParts: Int { 1 << 13 }

    public func sendAPDUWithChaining(_ apdu: CommandAPDU) async throws -> ResponseAPDU {
        var response = try await sendAPDU(apdu)
        guard response.needsGetResponse else { return response }
        // The class octet's channel is kept, its chaining and secure messaging bits are not (ISO/IEC 7816-4 5.4.1, 11.10.1).
        // Classes 4x to 7x are those of the channels 4 to 19.
        let channelClass = apdu.cla & 0xC0 == 0x40 ? apdu.cla & 0x4F : apdu.cla & 0x03
        var data = response.data
        var empty = 0
        var parts = 0
        while response.needsGetResponse {
            empty = response.data.isEmpty ? empty + 1 : 0
            parts += 1
            guard data.count <= longestChain, empty <= 2, parts <= mostParts else {
                throw TransportError(.malformedResponse, detail: "61xx without an end after \(data.count) bytes")
            }
            response = try await sendAPDU(CommandAPDU(cla: channelClass, ins: 0xC0, p1: 0, p2: 0, le: response.sw2))
            data += response.data
        }
        return ResponseAPDU(data: data, sw1: response.sw1, sw2: response.sw2)
    }
}
