// SPDX-License-Identifier: MIT

import FoundationEssentials
import Octets

/// The capability container of an NFC Forum Type 4 tag (T4T 4.7).
public struct Type4CC: Sendable, Codable, Equatable {
    /// CCLEN: octets of the container.
    public var length: Int
    /// The upper half octet is the major version of the mapping: 1, 2 or 3.
    public var version: UInt8
    /// MLe: octets that one READ BINARY may ask for.
    public var maxReadLength: Int
    /// MLc: octets that one UPDATE BINARY may have.
    public var maxWriteLength: Int
    /// The NDEF file's identifier.
    public var fileID: UInt16
    /// Octets of the NDEF file, its length field included.
    public var fileSize: Int
    /// `00` everybody may.
    public var readAccess: UInt8
    /// `00` everybody may, `FF` nobody.
    public var writeAccess: UInt8
    /// Mapping version 3 with a file whose length field has four octets.
    public var isExtended: Bool

    public var majorVersion: UInt8 { version >> 4 }

    /// Octets of the length field before the message.
    public var lengthFieldSize: Int { isExtended ? 4 : 2 }

    /// The longest message that fits.
    public var capacity: Int { max(0, fileSize - lengthFieldSize) }

    /// - Throws: ``NFCError/invalidResponse(_:)``.
    public init(bytes: some Collection<UInt8>) throws {
        let octets = Array(bytes)
        do {
            var cursor = ByteCursor(octets)
            length = Int(try cursor.u16())
            version = try cursor.u8()
            maxReadLength = Int(try cursor.u16())
            maxWriteLength = Int(try cursor.u16())
            guard length >= 15, (1...3).contains(version >> 4), maxReadLength > 0, maxWriteLength > 0 else {
                throw OutOfOctets(offset: 0, wanted: 15, present: octets.count)
            }
            let tag = try cursor.u8()
            let size = Int(try cursor.u8())
            var file = ByteCursor(try cursor.take(size))
            fileID = try file.u16()
            isExtended = tag == 0x06
            guard tag == 0x04 || tag == 0x06 else { throw OutOfOctets(offset: 7, wanted: 8, present: 0) }
            fileSize = isExtended ? Int(try file.u32()) : Int(try file.u16())
            readAccess = try file.u8()
            writeAccess = try file.u8()
        } catch {
            throw NFCError.invalidResponse(Data(octets))
        }
    }
}
