// SPDX-License-Identifier: MIT

public import Octets

/// What a simulated secure element is made as.
public struct SecureElementConfiguration: Sendable {
    /// SCP02 with i=15 or 55, or SCP03 with any option of Amendment D 1.1.1 (i of 00, 10, 20, 30, 60, 70; one more with S16).
    public enum Channel: Sendable, Hashable {
        case scp02(option: UInt8)
        case scp03(option: UInt8)
    }

    /// What its security domains speak.
    public var channel = Channel.scp03(option: 0x70)
    /// The issuer security domain's first key set: version, and Key-ENC, Key-MAC, Key-DEK of 16, 24 or 32 octets each.
    public var keyVersion: UInt8 = 0x30
    /// Key-ENC.
    public var encryptionKey = Self.testKey(16)
    /// Key-MAC.
    public var macKey = Self.testKey(16)
    /// Key-DEK.
    public var dataKey = Self.testKey(16)
    /// The seed of the card's random numbers and of its serial number.
    public var seed: UInt64 = 0
    /// In octets.
    public var nonVolatileMemory = 262_144
    /// In octets.
    public var volatileMemory = 8_192
    /// A directory that keeps what is on the element; nil keeps it in memory alone. Made when it is not there.
    public var storePath: String?

    /// A test card: SCP03, AES-128, the well-known test key.
    public init() {}

    /// `40 41 42 ...`, the key that test cards are delivered with.
    public static func testKey(_ length: Int) -> [UInt8] { (0..<max(0, min(length, 32))).map { 0x40 + UInt8($0) } }
}

/// An event that an applet raised towards the device: EVT_TRANSACTION of ETSI TS 102 622 11.2.2.4.
public struct SecureElementEvent: Sendable, Hashable {
    /// The instance that raised it.
    public let instanceAID: [UInt8]
    /// Its parameters; their layout is the applet's affair.
    public let data: [UInt8]
}

/// The state of one thing on the element, as an observer outside sees it.
public struct SecureElementContent: Sendable, Hashable {
    /// How far it is.
    public enum State: String, Sendable {
        case installed
        /// A load that has begun and not ended.
        case pending
        /// A load that a loss of power ended.
        case failed
    }

    /// Its name.
    public let aid: [UInt8]
    /// A load file rather than an application or a security domain.
    public let isLoadFile: Bool
    /// How far it is.
    public let state: State
    /// Whether it has had the last block of its personalization; true for load files.
    public let isPersonalized: Bool
}

/// Why the element's directory cannot be used. Equality is on the code.
public struct SecureElementStoreError: CodedError {
    /// What is wrong.
    public enum Code: String, Sendable {
        /// The system refused; the text has its reason.
        case system
        /// Another process has the directory open.
        case inUse
        /// Octets that no element wrote.
        case damaged
    }

    /// What two errors are equal by.
    public let code: Code
    /// The directory or file.
    public let path: String
    /// For people.
    public let detail: String

    public var description: String { "\(path): \(detail)" }
}
