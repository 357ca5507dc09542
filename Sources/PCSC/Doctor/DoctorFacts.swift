// SPDX-License-Identifier: MIT

/// What was found on a machine about readers: plain values, so that a report can be made of any machine.
public struct DoctorFacts: Sendable, Equatable {
    /// Whether somebody answers at the service's socket.
    public enum Service: Sendable, Equatable {
        case answers(milliseconds: Double, major: Int, minor: Int)
        /// There is no socket.
        case nothingThere
        /// The socket is there and nobody listens: a pcscd that was killed, or one in a container.
        case nobodyListens
        /// The system does not let this user open the socket.
        case notPermitted
        /// The connection is closed before the first answer: polkit refuses this session.
        case refusesSession
        /// What answers is not pcscd, or does not answer in time.
        case garbled
    }

    /// How libpcsclite gets on with the service.
    public enum Library: Sendable, Equatable {
        case missing
        case works
        /// It and the service speak different versions of the protocol.
        case otherProtocol
        /// It is there and reports this code.
        case fails(PCSCError)
    }

    /// A reader on USB.
    public struct USBReader: Sendable, Equatable {
        public var vendor: UInt16
        public var product: UInt16
        public var name: String
        /// A kernel module that holds the reader, so that pcscd cannot have it.
        public var heldBy: String?

        public init(vendor: UInt16, product: UInt16, name: String, heldBy: String? = nil) {
            self.vendor = vendor
            self.product = product
            self.name = name
            self.heldBy = heldBy
        }

        /// `072F:2200 ACR122U`.
        public var text: String { "\(Self.hex(vendor)):\(Self.hex(product))" + (name.isEmpty ? "" : " \(name)") }

        private static func hex(_ value: UInt16) -> String {
            let digits = String(value, radix: 16, uppercase: true)
            return String(repeating: "0", count: 4 - digits.count) + digits
        }
    }

    /// A reader that pcscd lists.
    public struct ListedReader: Sendable, Equatable {
        public var name: String
        public var isExclusive: Bool

        public init(name: String, isExclusive: Bool = false) {
            self.name = name
            self.isExclusive = isExclusive
        }

        var isVirtual: Bool { ReaderSurvey.SlotKind.guess(from: name) == .virtual }
    }

    /// A slot of the virtual reader.
    public struct VirtualSlot: Sendable, Equatable {
        public var port: UInt16
        public var listens: Bool
        /// It can be reached from other machines.
        public var everyAddress: Bool

        public init(port: UInt16, listens: Bool, everyAddress: Bool) {
            self.port = port
            self.listens = listens
            self.everyAddress = everyAddress
        }
    }

    public enum Wireshark: Sendable, Equatable {
        case notLookedFor
        case missing
        case version(String)
    }

    /// The socket that libpcsclite uses.
    public var socketPath = "/run/pcscd/pcscd.comm"
    public var service = Service.nothingThere
    public var library = Library.missing
    public var serviceIsInstalled = false
    /// `1.9.9`; nil when it is not known.
    public var serviceVersion: String?
    public var usbReaders: [USBReader] = []
    public var readers: [ListedReader] = []
    /// Whether the generic driver is installed.
    public var driverIsInstalled = false
    /// The driver's `ifdDriverOptions`, lowest bit: escape commands; nil when its settings are not there.
    public var escapeCommands: Bool?
    public var driverSettingsPath = "/etc/libccid_Info.plist"
    /// The slots of the virtual reader; empty when it is not installed.
    public var virtualSlots: [VirtualSlot] = []
    /// The folder that a recording would go to, when it cannot be written.
    public var unwritableFolder: String?
    /// The user's name, for a polkit rule.
    public var user = ""
    public var wireshark = Wireshark.notLookedFor

    public init() {}
}
