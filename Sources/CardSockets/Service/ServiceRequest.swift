// SPDX-License-Identifier: MIT

/// Commands of pcsc-lite's client protocol, versions 4:4 to 4:6.
enum ServiceCommand: UInt32, Sendable {
    case establishContext = 0x01
    case releaseContext = 0x02
    case connect = 0x04
    case reconnect = 0x05
    case disconnect = 0x06
    case beginTransaction = 0x07
    case endTransaction = 0x08
    case transmit = 0x09
    case control = 0x0A
    case status = 0x0B
    case cancel = 0x0D
    case getAttribute = 0x0F
    case setAttribute = 0x10
    case version = 0x11
    case readerTable = 0x12
    case waitForChange = 0x13
    case stopWaiting = 0x14
    case readerEvents = 0x15
    case readerTableSize = 0x16
    case readerTableArray = 0x17

    /// Octets of its struct. A command without one is not asked for its size.
    var structSize: Int {
        switch self {
        case .establishContext, .disconnect, .endTransaction, .version: 12
        case .releaseContext, .beginTransaction, .status, .cancel: 8
        case .connect: 152
        case .reconnect, .control: 24
        case .transmit: 32
        case .getAttribute, .setAttribute: 280
        case .readerTable, .waitForChange, .stopWaiting, .readerEvents, .readerTableSize, .readerTableArray: 0
        }
    }

    /// Where its struct has the length of the data behind it.
    var dataLengthPlace: Int? {
        switch self {
        case .transmit: 12
        case .control: 8
        default: nil
        }
    }
}

/// Octets of a struct, with its numbers in them: 32 bits, least significant octet first.
struct ServiceStruct: Sendable, Equatable {
    private(set) var octets: [UInt8]

    init(_ octets: some Sequence<UInt8>) { self.octets = Array(octets) }

    init(_ numbers: UInt32...) {
        octets = []
        for number in numbers { octets += Self.octets(of: number) }
    }

    /// A number at a place; 0 beyond the end.
    subscript(_ place: Int) -> UInt32 {
        get {
            guard place >= 0, place + 4 <= octets.count else { return 0 }
            return (0..<4).reduce(0) { $0 | UInt32(octets[place + $1]) << (8 * UInt32($1)) }
        }
        set {
            guard place >= 0, place + 4 <= octets.count else { return }
            octets.replaceSubrange(place..<place + 4, with: Self.octets(of: newValue))
        }
    }

    /// Text of a fixed place, up to its first NUL.
    func text(_ range: Range<Int>) -> [UInt8] { Array(octets[range.clamped(to: octets.indices)].prefix { $0 != 0 }) }

    /// Puts octets into a fixed place and zeros behind them.
    mutating func put(_ content: [UInt8], in range: Range<Int>) {
        let range = range.clamped(to: octets.indices)
        let kept = content.prefix(range.count)
        octets.replaceSubrange(range, with: kept + [UInt8](repeating: 0, count: range.count - kept.count))
    }

    static func octets(of number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }
}

/// One whole message of a client.
struct ServiceRequest: Sendable, Equatable {
    var command: ServiceCommand
    var body: ServiceStruct
    var data: [UInt8]
}

/// A client said what no libpcsclite says; its connection is closed, as pcscd does.
enum ServiceViolation: Error, Sendable, Equatable {
    case unknownCommand(UInt32)
    case wrongSize(ServiceCommand, UInt32)
    case tooMuchData(UInt32)
}

/// Puts a client's messages together: a header of size and command, the struct, for two commands data behind it.
struct ServiceFramer: Sendable {
    private static let header = 8

    private var waiting: [UInt8] = []
    private var start = 0

    /// Octets that belong to no message that was taken yet.
    var pending: Int { waiting.count - start }

    mutating func append(_ octets: some Collection<UInt8>) {
        if start == waiting.count {
            waiting.removeAll(keepingCapacity: true)
            start = 0
        } else if start > 1 << 16 {
            waiting.removeFirst(start)
            start = 0
        }
        waiting += octets
    }

    /// The next whole message; nil until more octets come.
    mutating func next() throws(ServiceViolation) -> ServiceRequest? {
        guard pending >= Self.header else { return nil }
        let header = ServiceStruct(waiting[start..<start + Self.header])
        guard let command = ServiceCommand(rawValue: header[4]) else { throw .unknownCommand(header[4]) }
        let size = command.structSize
        guard size == 0 || Int(header[0]) == size else { throw .wrongSize(command, header[0]) }
        let bodyStart = start + Self.header
        guard pending >= Self.header + size else { return nil }
        let body = ServiceStruct(waiting[bodyStart..<bodyStart + size])
        let dataLength = command.dataLengthPlace.map { body[$0] } ?? 0
        guard dataLength <= UInt32(ServiceLimit.apdu) else { throw .tooMuchData(dataLength) }
        let dataStart = bodyStart + size
        guard waiting.count - dataStart >= Int(dataLength) else { return nil }
        start = dataStart + Int(dataLength)
        return ServiceRequest(command: command, body: body, data: Array(waiting[dataStart..<start]))
    }
}
