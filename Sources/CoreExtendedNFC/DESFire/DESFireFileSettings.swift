// SPDX-License-Identifier: MIT

public import FoundationEssentials
import Octets

/// Who may do something with a file: half an octet of its access rights.
public enum DESFireAccess: Sendable, Hashable, Codable {
    /// The holder of key 0...13.
    case key(UInt8)
    /// Everybody (`E`).
    case free
    /// Nobody (`F`).
    case never

    public init(nibble: UInt8) {
        switch nibble & 0x0F {
        case 0x0E: self = .free
        case 0x0F: self = .never
        case let number: self = .key(number)
        }
    }

    public var nibble: UInt8 {
        switch self {
        case .key(let number): number & 0x0F
        case .free: 0x0E
        case .never: 0x0F
        }
    }
}

/// In JSON `key 1`, `free`, `never`.
extension DESFireAccess {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        switch try container.decode(String.self) {
        case "free": self = .free
        case "never": self = .never
        case let text:
            guard text.hasPrefix("key "), let number = UInt8(text.dropFirst(4)), number < 14 else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "no access right: \(text)")
            }
            self = .key(number)
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .key(let number): try container.encode("key \(number)")
        case .free: try container.encode("free")
        case .never: try container.encode("never")
        }
    }
}

/// The access rights of a file: two octets, least significant first; read, write, both, change from the most significant half octet on.
public struct DESFireAccessRights: Sendable, Hashable, Codable {
    public var read: DESFireAccess
    public var write: DESFireAccess
    public var readWrite: DESFireAccess
    public var change: DESFireAccess

    public init(read: DESFireAccess, write: DESFireAccess, readWrite: DESFireAccess, change: DESFireAccess) {
        self.read = read
        self.write = write
        self.readWrite = readWrite
        self.change = change
    }

    public init(rawValue: UInt16) {
        func access(_ shift: UInt16) -> DESFireAccess { DESFireAccess(nibble: UInt8(truncatingIfNeeded: rawValue >> shift)) }
        self.init(read: access(12), write: access(8), readWrite: access(4), change: access(0))
    }

    public var rawValue: UInt16 {
        UInt16(read.nibble) << 12 | UInt16(write.nibble) << 8 | UInt16(readWrite.nibble) << 4 | UInt16(change.nibble)
    }

    var octets: [UInt8] { [UInt8(truncatingIfNeeded: rawValue), UInt8(truncatingIfNeeded: rawValue >> 8)] }

    /// Everybody may do everything.
    public static let free = DESFireAccessRights(rawValue: 0xEEEE)
}

/// What GetFileSettings tells of a file.
public struct DESFireFileSettings: Sendable, Hashable, Codable {
    /// The kind of a file and what belongs to it.
    public enum Kind: Sendable, Hashable, Codable {
        case standard(size: Int)
        case backup(size: Int)
        /// - limitedCredit: what may be put back by LimitedCredit.
        case value(lower: Int32, upper: Int32, limitedCredit: Int32, options: UInt8)
        case linearRecord(size: Int, most: Int, present: Int)
        case cyclicRecord(size: Int, most: Int, present: Int)
        case transactionMAC(keyOption: UInt8, keyVersion: UInt8)
        /// A type that this library does not know, and its octets.
        case other(type: UInt8, octets: Data)
    }

    /// 00 standard, 01 backup, 02 value, 03 linear record, 04 cyclic record, 05 transaction MAC.
    public var fileType: UInt8
    /// The octet after the type: communication in bits 0-1, more access rights in bit 7.
    public var options: UInt8
    public var accessRights: DESFireAccessRights
    /// EV2 and later: further sets of access rights, each as good as the first.
    public var additionalAccessRights: [DESFireAccessRights]
    public var kind: Kind

    public var communication: DESFireCommunicationMode { DESFireCommunicationMode(fileByte: options) }

    /// Octets of a data file; nil for others.
    public var fileSize: Int? {
        switch kind {
        case .standard(let size), .backup(let size): size
        default: nil
        }
    }

    /// Octets of a record; nil for other files.
    public var recordSize: Int? {
        switch kind {
        case .linearRecord(let size, _, _), .cyclicRecord(let size, _, _): size
        default: nil
        }
    }

    /// Records that are there; nil for other files.
    public var currentRecords: Int? {
        switch kind {
        case .linearRecord(_, _, let present), .cyclicRecord(_, _, let present): present
        default: nil
        }
    }

    /// - Throws: ``NFCError/invalidResponse(_:)`` when something is missing. Octets that follow are passed over: newer cards
    ///   add some.
    public init(bytes: some Collection<UInt8>) throws {
        let octets = Array(bytes)
        do {
            var cursor = ByteCursor(octets)
            fileType = try cursor.u8()
            options = try cursor.u8()
            accessRights = DESFireAccessRights(rawValue: try cursor.u16le())
            func size() throws(OutOfOctets) -> Int { Int(truncatingIfNeeded: try cursor.littleEndian(3)) }
            func signed() throws(OutOfOctets) -> Int32 { Int32(bitPattern: try cursor.u32le()) }
            switch fileType {
            case 0: kind = .standard(size: try size())
            case 1: kind = .backup(size: try size())
            case 2:
                kind = .value(
                    lower: try signed(), upper: try signed(), limitedCredit: try signed(), options: try cursor.u8())
            case 3: kind = .linearRecord(size: try size(), most: try size(), present: try size())
            case 4: kind = .cyclicRecord(size: try size(), most: try size(), present: try size())
            case 5: kind = .transactionMAC(keyOption: try cursor.u8(), keyVersion: try cursor.u8())
            default: kind = .other(type: fileType, octets: Data(cursor.takeRest()))
            }
            additionalAccessRights = []
            if options & 0x80 != 0, let count = try? cursor.u8() {
                for _ in 0..<min(count, 7) {
                    guard let rights = try? cursor.u16le() else { break }
                    additionalAccessRights.append(DESFireAccessRights(rawValue: rights))
                }
            }
        } catch {
            throw NFCError.invalidResponse(Data(octets))
        }
    }
}

/// What a command does with a file, which decides the rights that open it.
enum DESFireUse: Sendable {
    case read
    case write
    /// GetValue and Debit: any of the three rights.
    case debit
    /// Credit: read and write alone.
    case credit
    case change
}

extension DESFireFileSettings {
    /// How data travels for the holder of `key`, nil for nobody.
    ///
    /// When the key in use has none of the rights and everybody may, the exchange is plain whatever the file says.
    func mode(for use: DESFireUse, key: UInt8?) -> DESFireCommunicationMode {
        let sets = [accessRights] + additionalAccessRights
        let rights = sets.flatMap { set -> [DESFireAccess] in
            switch use {
            case .read: [set.read, set.readWrite]
            case .write: [set.write, set.readWrite]
            case .debit: [set.read, set.write, set.readWrite]
            case .credit: [set.readWrite]
            case .change: [set.change]
            }
        }
        if let key, rights.contains(.key(key)) { return communication }
        return rights.contains(.free) ? .plain : communication
    }
}
