// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets

/// Commands of NTAG 424 DNA.
public enum NTAG424Commands {
    /// Octets of data in one plain WriteData. Each frame is written whole or not at all, so that fewer frames are better.
    public static let defaultWriteChunkSize = longestWriteChunk
    /// The most that a short command can carry beside its seven parameters.
    public static let longestWriteChunk = 248
    /// Octets in one protected frame, with padding and MAC well below what the chip takes.
    static let protectedChunkSize = 128
}

/// Secure Dynamic Messaging: what the chip mirrors into its NDEF file (NT4H2421Gx 10.7.1).
public struct NTAG424DynamicMessaging: Sendable, Hashable, Codable {
    /// 80 UID, 40 read counter, 20 counter limit, 10 file data enciphered, 01 ASCII.
    public var options: UInt8
    /// Who may read UID and counter: a key means enciphered, free means plain.
    public var metaRead: DESFireAccess
    /// Whose key makes the MAC and enciphers file data.
    public var fileRead: DESFireAccess
    /// Who may ask for the counter.
    public var counterRead: DESFireAccess
    public var uidOffset: Int?
    public var readCounterOffset: Int?
    public var piccDataOffset: Int?
    public var macInputOffset: Int?
    public var encryptedOffset: Int?
    /// Octets of the place for enciphered file data, twice as long as the data.
    public var encryptedLength: Int?
    public var macOffset: Int?
    public var readCounterLimit: Int?

    /// - Parameters: offsets count from the first octet of the file, the length field included.
    public init(
        options: UInt8, metaRead: DESFireAccess, fileRead: DESFireAccess, counterRead: DESFireAccess, uidOffset: Int? = nil,
        readCounterOffset: Int? = nil, piccDataOffset: Int? = nil, macInputOffset: Int? = nil, encryptedOffset: Int? = nil,
        encryptedLength: Int? = nil, macOffset: Int? = nil, readCounterLimit: Int? = nil
    ) {
        self.options = options
        self.metaRead = metaRead
        self.fileRead = fileRead
        self.counterRead = counterRead
        self.uidOffset = uidOffset
        self.readCounterOffset = readCounterOffset
        self.piccDataOffset = piccDataOffset
        self.macInputOffset = macInputOffset
        self.encryptedOffset = encryptedOffset
        self.encryptedLength = encryptedLength
        self.macOffset = macOffset
        self.readCounterLimit = readCounterLimit
    }

    init(_ cursor: inout ByteCursor) throws(OutOfOctets) {
        options = try cursor.u8()
        // Least significant octet first, as the access rights: reserved and counter, then UID and file.
        let low = try cursor.u8()
        let high = try cursor.u8()
        metaRead = DESFireAccess(nibble: high >> 4)
        fileRead = DESFireAccess(nibble: high)
        counterRead = DESFireAccess(nibble: low)
        func next(_ isThere: Bool) throws(OutOfOctets) -> Int? {
            isThere ? Int(truncatingIfNeeded: try cursor.littleEndian(3)) : nil
        }
        uidOffset = try next(options & 0x80 != 0 && metaRead == .free)
        readCounterOffset = try next(options & 0x40 != 0 && metaRead == .free)
        piccDataOffset = try next(metaRead.isKey)
        macInputOffset = try next(fileRead != .never)
        encryptedOffset = try next(fileRead != .never && options & 0x10 != 0)
        encryptedLength = try next(fileRead != .never && options & 0x10 != 0)
        macOffset = try next(fileRead != .never)
        readCounterLimit = try next(options & 0x20 != 0)
    }

    /// As ChangeFileSettings carries it.
    var octets: [UInt8] {
        var octets = [options, 0xF0 | counterRead.nibble, metaRead.nibble << 4 | fileRead.nibble]
        for offset in [
            uidOffset, readCounterOffset, piccDataOffset, macInputOffset, encryptedOffset, encryptedLength, macOffset,
            readCounterLimit,
        ] {
            if let offset { octets += littleEndianOctets(offset, 3) }
        }
        return octets
    }
}

extension DESFireAccess {
    fileprivate var isKey: Bool {
        if case .key = self { return true }
        return false
    }
}

/// What GetFileSettings tells of a file of an NTAG 424 DNA.
public struct NTAG424FileSettings: Sendable, Hashable, Codable {
    /// 00: standard data.
    public var fileType: UInt8
    /// Communication in bits 0-1, Secure Dynamic Messaging in bit 6.
    public var options: UInt8
    public var accessRights: DESFireAccessRights
    public var fileSize: Int
    public var dynamicMessaging: NTAG424DynamicMessaging?

    public var communication: DESFireCommunicationMode { DESFireCommunicationMode(fileByte: options) }

    /// - Throws: ``NFCError/invalidResponse(_:)``. Octets that follow are passed over.
    public init(bytes: some Collection<UInt8>) throws {
        let octets = Array(bytes)
        do {
            var cursor = ByteCursor(octets)
            fileType = try cursor.u8()
            options = try cursor.u8()
            accessRights = DESFireAccessRights(rawValue: try cursor.u16le())
            fileSize = Int(truncatingIfNeeded: try cursor.littleEndian(3))
            dynamicMessaging = options & 0x40 == 0 ? nil : try NTAG424DynamicMessaging(&cursor)
        } catch {
            throw NFCError.invalidResponse(Data(octets))
        }
    }
}
