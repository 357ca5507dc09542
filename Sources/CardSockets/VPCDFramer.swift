// SPDX-License-Identifier: MIT

/// A message of a virtual reader slot (vpcd) to the card in it.
public enum VPCDMessage: Sendable, Equatable {
    case powerOff
    case powerOn
    case reset
    /// The only message of one octet that is answered.
    case atrRequest
    /// A message of one octet that vpcd does not send.
    case unknown(UInt8)
    case command([UInt8])

    init(_ payload: ArraySlice<UInt8>) {
        guard payload.count == 1, let code = payload.first else {
            self = .command(Array(payload))
            return
        }
        self =
            switch code {
            case 0: .powerOff
            case 1: .powerOn
            case 2: .reset
            case 4: .atrRequest
            default: .unknown(code)
            }
    }
}

/// Puts messages together from a stream: two octets of length, most significant first, then the message.
///
/// How TCP cuts the stream has no meaning: a segment may hold half a length or three messages.
public struct VPCDFramer: Sendable {
    private var waiting: [UInt8] = []
    private var start = 0

    public init() {}

    /// The octets that belong to no whole message yet.
    public var pending: Int { waiting.count - start }

    public mutating func append(_ octets: some Collection<UInt8>) {
        if start == waiting.count {
            waiting.removeAll(keepingCapacity: true)
            start = 0
        } else if start > 1 << 16 {
            waiting.removeFirst(start)
            start = 0
        }
        waiting += octets
    }

    /// The next whole message, or nil until more octets come.
    public mutating func next() -> VPCDMessage? {
        guard pending >= 2 else { return nil }
        let length = Int(waiting[start]) << 8 | Int(waiting[start + 1])
        guard pending - 2 >= length else { return nil }
        let message = VPCDMessage(waiting[start + 2..<start + 2 + length])
        start += 2 + length
        return message
    }

    /// The octets of one message, or nil when it is over 65,535 octets long.
    public static func frame(_ payload: [UInt8]) -> [UInt8]? {
        guard payload.count <= 0xFFFF else { return nil }
        var octets: [UInt8] = []
        octets.reserveCapacity(payload.count + 2)
        octets.append(UInt8(truncatingIfNeeded: payload.count >> 8))
        octets.append(UInt8(truncatingIfNeeded: payload.count))
        octets += payload
        return octets
    }
}
