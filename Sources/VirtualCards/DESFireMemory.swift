// SPDX-License-Identifier: MIT

import CardCrypto

/// The status octet of a DESFire command that was not done.
struct DESFireRefusal: Error, RawRepresentable, Sendable, Hashable {
    var rawValue: UInt8

    init(rawValue: UInt8) { self.rawValue = rawValue }
    private init(_ value: UInt8) { rawValue = value }

    static let noChanges = DESFireRefusal(0x0C)
    static let outOfMemory = DESFireRefusal(0x0E)
    static let illegalCommand = DESFireRefusal(0x1C)
    static let integrity = DESFireRefusal(0x1E)
    static let noSuchKey = DESFireRefusal(0x40)
    static let length = DESFireRefusal(0x7E)
    static let permissionDenied = DESFireRefusal(0x9D)
    static let parameter = DESFireRefusal(0x9E)
    static let applicationNotFound = DESFireRefusal(0xA0)
    static let authenticationDelay = DESFireRefusal(0xAD)
    static let authentication = DESFireRefusal(0xAE)
    static let boundary = DESFireRefusal(0xBE)
    static let commandAborted = DESFireRefusal(0xCA)
    static let count = DESFireRefusal(0xCE)
    static let duplicate = DESFireRefusal(0xDE)
    static let fileNotFound = DESFireRefusal(0xF0)
}

/// The kind of chip that a virtual card is.
public enum DESFireModel: String, Sendable, CaseIterable {
    case d40, ev1, ev2, ev3
    case ntag424

    var hasEV1Channel: Bool { self != .d40 && self != .ntag424 }
    var hasEV2Channel: Bool { self == .ev2 || self == .ev3 || self == .ntag424 }

    /// GetVersion's hardware and software parts (NXP AN10833), without UID and production.
    var version: [UInt8] {
        switch self {
        case .d40: [0x04, 0x01, 0x01, 0x00, 0x02, 0x18, 0x05, 0x04, 0x01, 0x01, 0x00, 0x06, 0x18, 0x05]
        case .ev1: [0x04, 0x01, 0x01, 0x01, 0x00, 0x1A, 0x05, 0x04, 0x01, 0x01, 0x01, 0x04, 0x1A, 0x05]
        case .ev2: [0x04, 0x01, 0x01, 0x12, 0x00, 0x1A, 0x05, 0x04, 0x01, 0x01, 0x02, 0x01, 0x1A, 0x05]
        case .ev3: [0x04, 0x01, 0x01, 0x33, 0x00, 0x1A, 0x05, 0x04, 0x01, 0x01, 0x03, 0x00, 0x1A, 0x05]
        case .ntag424: [0x04, 0x04, 0x02, 0x30, 0x00, 0x11, 0x05, 0x04, 0x04, 0x02, 0x01, 0x02, 0x11, 0x05]
        }
    }

    /// Octets for applications and files.
    var capacity: Int {
        switch self {
        case .d40: 4_096
        case .ntag424: 416
        default: 8_192
        }
    }
}

/// A key in a card.
struct DESFireCardKey: Sendable, Equatable {
    var cipher: DESFireCipher
    /// Single DES is kept as two equal halves.
    var octets: [UInt8]
    var version: UInt8

    init(_ cipher: DESFireCipher, _ octets: [UInt8], version: UInt8? = nil) {
        self.cipher = cipher == .des ? .twoKeyTripleDES : cipher
        self.octets = cipher == .des && octets.count == 8 ? octets + octets : octets
        self.version = version ?? (cipher == .aes ? 0 : DESFireKeyVersion.of(octets))
    }

    static func zero(_ cipher: DESFireCipher) -> DESFireCardKey {
        DESFireCardKey(cipher, [UInt8](repeating: 0, count: cipher.keyLength))
    }

    /// DES when both halves are equal but for the version.
    var inUse: (cipher: DESFireCipher, octets: [UInt8]) {
        guard cipher == .twoKeyTripleDES, octets.prefix(8).map({ $0 & 0xFE }) == octets.suffix(8).map({ $0 & 0xFE }) else {
            return (cipher, octets)
        }
        return (.des, Array(octets.prefix(8)))
    }
}

/// What a file holds. Writing into anything but standard data makes a copy, which a commit puts in its place.
enum DESFireContent: Sendable, Equatable {
    case standard([UInt8])
    case backup([UInt8])
    case value(DESFireValue)
    case records(DESFireRecords)
    case transactionMAC(DESFireTransactionFile)

    var typeCode: UInt8 {
        switch self {
        case .standard: 0
        case .backup: 1
        case .value: 2
        case .records(let records): records.isCyclic ? 4 : 3
        case .transactionMAC: 5
        }
    }

    /// Octets of memory.
    var cost: Int {
        switch self {
        case .standard(let data): (data.count + 31) / 32 * 32
        case .backup(let data): (data.count + 31) / 32 * 64
        case .value: 32
        case .records(let records): (records.size * records.most + 31) / 32 * 32
        case .transactionMAC: 32
        }
    }
}

struct DESFireValue: Sendable, Equatable {
    var lower: Int32
    var upper: Int32
    var value: Int32
    var allowsLimitedCredit: Bool
    var freeGetValue = false
    /// What LimitedCredit may put back: what the last transaction took.
    var limit: Int32 = 0
    /// What this transaction took and gave so far.
    var taken: Int32 = 0
}

struct DESFireRecords: Sendable, Equatable {
    let size: Int
    let most: Int
    let isCyclic: Bool
    /// The oldest first.
    var records: [[UInt8]] = []
    /// Whether this transaction has begun a record.
    var isOpen = false

    init(size: Int, most: Int, isCyclic: Bool) {
        self.size = size
        self.most = most
        self.isCyclic = isCyclic
    }

    /// A cyclic file keeps one place for the record that a transaction writes.
    var capacity: Int { isCyclic ? most - 1 : most }
}

struct DESFireTransactionFile: Sendable, Equatable {
    var key: [UInt8]
    var keyVersion: UInt8
    var counter: UInt32 = 0
    var mac = [UInt8](repeating: 0, count: 8)
}

struct DESFireFile: Sendable, Equatable {
    var isoID: UInt16?
    /// Communication in bits 0-1, SDM in bit 6.
    var options: UInt8
    /// Read, write, both, change from the most significant half octet on.
    var rights: UInt16
    var content: DESFireContent
    var messaging: NTAGMessaging?

    func right(_ use: DESFireRight) -> UInt8 { UInt8(rights >> use.rawValue & 0x0F) }
}

enum DESFireRight: UInt16, Sendable {
    case read = 12
    case write = 8
    case readWrite = 4
    case change = 0
}

struct DESFireApplication: Sendable, Equatable {
    /// Three octets in card order.
    var identifier: [UInt8]
    var settings: UInt8
    var cipher: DESFireCipher
    var keys: [DESFireCardKey]
    var isoID: UInt16?
    var name: [UInt8] = []
    var filesHaveISOIDs = false
    var files: [UInt8: DESFireFile] = [:]
    /// Sets that EV2's InitializeKeySet made, by number.
    var keySets: [UInt8: [DESFireCardKey]] = [:]
    /// Key sets that are ready to be rolled to.
    var finished: Set<UInt8> = []

    var typeBits: UInt8 {
        switch cipher {
        case .aes: 0x80
        case .threeKeyTripleDES: 0x40
        default: 0
        }
    }

    var cost: Int { 32 + 32 * ((keys.count + 1) / 2) + files.values.reduce(0) { $0 + $1.content.cost } }
}

/// Everything that a card keeps without power.
struct DESFireMemory: Sendable, Equatable {
    var model: DESFireModel
    /// Seven octets.
    var uid: [UInt8]
    /// The card's own level: master key and settings, no files.
    var card: DESFireApplication
    var applications: [DESFireApplication] = []
    var usesLRP = false
    /// The maker's signature over the UID; zeros are nobody's.
    var signature = [UInt8](repeating: 0, count: 56)
    var formatIsDisabled = false
    /// Authentications that failed since the last that did not.
    var failures = 0
    /// Authentications that will still be put off.
    var delayed = 0

    var free: Int { max(0, model.capacity - applications.reduce(0) { $0 + $1.cost }) }
}
