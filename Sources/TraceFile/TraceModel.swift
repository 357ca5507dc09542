// SPDX-License-Identifier: MIT

/// What a trace says about itself: the options of its section header.
public struct TraceHeader: Sendable, Equatable {
    /// The format's version, from the comment `tapdeck=1 session=<UUID>`; nil in a file that is not a Tapdeck trace.
    public var format: Int?
    /// The session's UUID in upper case; a side file of secrets bears the same.
    public var session: String?
    /// `shb_hardware`, `shb_os`, `shb_userappl`.
    public var hardware: String
    public var system: String
    public var application: String

    public init(format: Int? = 1, session: String?, hardware: String = "", system: String = "", application: String = "") {
        self.format = format
        self.session = session
        self.hardware = hardware
        self.system = system
        self.application = application
    }
}

/// What the rows of an interface are.
public enum InterfaceKind: Sendable, Hashable {
    case apdu(Int)
    case rf(Int)
    case reader(Int)
    case meta
    case plain(Int)
    /// An interface of another program's capture.
    case other(String)

    /// The kind that an `if_name` says.
    public init(name: String) {
        let parts = name.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let number = parts.count == 2 ? Int(parts[1]) : nil
        switch (parts.first, number) {
        case ("apdu", .some(let number)): self = .apdu(number)
        case ("rf", .some(let number)): self = .rf(number)
        case ("reader", .some(let number)): self = .reader(number)
        case ("plain", .some(let number)): self = .plain(number)
        case ("meta", nil) where parts.count == 1: self = .meta
        default: self = .other(name)
        }
    }

    /// The `if_name`: `apdu:0`, `meta`.
    public var name: String {
        switch self {
        case .apdu(let number): "apdu:\(number)"
        case .rf(let number): "rf:\(number)"
        case .reader(let number): "reader:\(number)"
        case .meta: "meta"
        case .plain(let number): "plain:\(number)"
        case .other(let name): name
        }
    }

    /// The number of the reader that the rows belong to; nil for `meta` and foreign interfaces.
    public var readerNumber: Int? {
        switch self {
        case .apdu(let number), .rf(let number), .reader(let number), .plain(let number): number
        case .meta, .other: nil
        }
    }
}

/// One interface of a trace.
public struct TraceInterface: Sendable, Equatable {
    public var kind: InterfaceKind
    /// `if_description`: the reader's name and how it is reached.
    public var description: String
    /// The link type; 252 in our own traces.
    public var linkType: UInt16

    public init(_ kind: InterfaceKind, description: String = "", linkType: UInt16 = 252) {
        self.kind = kind
        self.description = description
        self.linkType = linkType
    }
}

/// Which way a row travelled.
public enum RowDirection: UInt8, Sendable, Hashable {
    /// From the program to the card (exported-PDU direction 0, `epb_flags` outbound).
    case sent = 0
    /// From the card to the program (exported-PDU direction 1, `epb_flags` inbound).
    case received = 1
}

/// One row of a trace: one enhanced packet block.
public struct TraceRow: Sendable, Equatable {
    /// The frame number that Wireshark shows, from 1.
    public var frame: Int
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    public var time: UInt64
    /// Index of the interface in the file.
    public var interface: Int
    /// Nil when neither the packet flags nor the exported-PDU tags tell.
    public var direction: RowDirection?
    /// The exchange's number (`epb_packetid`).
    public var packetID: UInt64?
    /// The dissector named in the exported-PDU tags: `iso7816`, `json`; empty where there are no such tags.
    public var dissector: String
    /// The text for Wireshark's protocol column.
    public var protocolText: String?
    /// The octets after the exported-PDU tags.
    public var body: [UInt8]
    /// `opt_comment`, in order.
    public var comments: [String]

    public init(
        frame: Int = 0, time: UInt64, interface: Int, direction: RowDirection?, packetID: UInt64?, dissector: String,
        protocolText: String? = nil, body: [UInt8], comments: [String] = []
    ) {
        self.frame = frame
        self.time = time
        self.interface = interface
        self.direction = direction
        self.packetID = packetID
        self.dissector = dissector
        self.protocolText = protocolText
        self.body = body
        self.comments = comments
    }
}

/// What a secret is.
public enum SecretKind: UInt32, Sendable, Hashable, CaseIterable {
    /// Random octets that the library drew.
    case entropy = 0x5444_454E
    /// Keys, by the grammars' names.
    case key = 0x5444_4B59
    /// Octets that stand as `00` in a row, sealed arguments, results, texts and error details.
    case sealed = 0x5444_5345
}

/// One record of a decryption secrets block.
public struct SecretRecord: Sendable, Equatable {
    public var kind: SecretKind
    /// The exchange that the secret belongs to; 0 for none.
    public var packetID: UInt32
    /// Index of the interface in the trace, not in the side file.
    public var interface: UInt16
    public var direction: RowDirection
    /// `call:1:bac.rndIFD:0`, `call:1:result`, `bac.seed`; empty for octets of a row.
    public var name: String
    /// For octets of a row: their place, from the first octet after the exported-PDU tags.
    public var offset: UInt32
    public var octets: [UInt8]

    public init(
        kind: SecretKind, packetID: UInt32 = 0, interface: UInt16 = 0, direction: RowDirection = .sent, name: String = "",
        offset: UInt32 = 0, octets: [UInt8]
    ) {
        self.kind = kind
        self.packetID = packetID
        self.interface = interface
        self.direction = direction
        self.name = name
        self.offset = offset
        self.octets = octets
    }
}
