// SPDX-License-Identifier: MIT

import Octets

/// What the element reads of a load file data block: the components of a Java Card CAP file (JCVM 6).
struct LoadFileContent: Sendable, Equatable {
    var aid: [UInt8]
    /// Major, then minor.
    var version: [UInt8]
    var modules: [[UInt8]]

    /// - Throws: `6A80` for what is no such file.
    init(parsing block: [UInt8]) throws(StatusWord) {
        do throws(OutOfOctets) {
            var cursor = ByteCursor(block)
            var header: (aid: [UInt8], version: [UInt8])?
            var modules: [[UInt8]] = []
            while !cursor.isAtEnd {
                let tag = try cursor.u8()
                let length = Int(try cursor.u16())
                var content = ByteCursor(try cursor.take(length))
                if tag == 0x01 {
                    guard try content.u32() == 0xDECA_FFED else { break }
                    _ = try content.take(3)
                    let minor = try content.u8()
                    let major = try content.u8()
                    header = (Array(try content.take(Int(try content.u8()))), [major, minor])
                } else if tag == 0x03 {
                    for _ in 0..<(try content.u8()) {
                        modules.append(Array(try content.take(Int(try content.u8()))))
                        _ = try content.u16()
                    }
                }
            }
            if let header {
                (aid, version, self.modules) = (header.aid, header.version, modules)
                return
            }
        } catch {}
        throw .wrongData
    }
}
