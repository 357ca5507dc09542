// SPDX-License-Identifier: MIT

import Octets

/// Which file and which octet a READ BINARY or UPDATE BINARY means (ISO/IEC 7816-4 11.3).
struct BinaryAccess: Equatable {
    /// The longest data field of an answer: with its status word it fits the two length octets that vpcd and others frame it by.
    static let longestAnswer = 65_533

    enum Target: Equatable {
        case current
        case shortIdentifier(UInt8)
        case identifier(UInt16)
    }

    var target: Target
    /// In octets from the file's start.
    var offset: Int
    /// Whether offset and data travel in data objects `54` and `53`: the odd instruction codes.
    var isOdd: Bool
    /// What an UPDATE BINARY writes.
    var written: [UInt8]

    /// - Throws: `6700`, `6A80`, `6A86`, `6B00`.
    init(_ command: CardCommand) throws(StatusWord) {
        isOdd = command.ins & 1 == 1
        if isOdd {
            target = try Self.oddTarget(command.parameters)
            (offset, written) = try Self.objects(command.data)
        } else if command.p1 & 0x80 != 0 {
            guard command.p1 & 0x60 == 0, (1...30).contains(command.p1 & 0x1F) else { throw .wrongParameters }
            target = .shortIdentifier(command.p1 & 0x1F)
            offset = Int(command.p2)
            written = command.data
        } else {
            target = .current
            offset = Int(command.parameters)
            written = command.data
        }
    }

    private static func oddTarget(_ parameters: UInt16) throws(StatusWord) -> Target {
        // The first eleven bits zero and the rest neither all zero nor all one is a short identifier.
        switch parameters {
        case 0: .current
        case 1...30: .shortIdentifier(UInt8(truncatingIfNeeded: parameters))
        case 31: throw .wrongParameters
        default: .identifier(parameters)
        }
    }

    private static func objects(_ data: [UInt8]) throws(StatusWord) -> (Int, [UInt8]) {
        guard !data.isEmpty else { throw .wrongLength }
        guard let objects = try? TLV.parse(data, TLVRules(allowsFiller: false)), let first = objects.first, first.tag == 0x54,
            objects.count <= 2, (1...4).contains(first.value.count)
        else { throw .wrongData }
        var written: [UInt8] = []
        if objects.count == 2 {
            guard objects[1].tag == 0x53 || objects[1].tag == 0x73 else { throw .wrongData }
            written = Array(objects[1].value)
        }
        return (first.value.reduce(0) { $0 << 8 | Int($1) }, written)
    }

    /// The answer to a read of `content`.
    ///
    /// Le of zeros means what there is; a longer Le than what is left gives what is left and `6282`. At most `limit`
    /// octets of data field come at once, whatever Le says.
    ///
    /// - Throws: `6700` without Le or when it has no room for a data object, `6B00` when the offset is outside.
    func read(_ content: [UInt8], _ command: CardCommand, limit: Int = longestAnswer) throws(StatusWord) -> CardReply {
        guard let ne = command.ne, written.isEmpty else { throw .wrongLength }
        guard offset < content.count || content.isEmpty && offset == 0 else { throw .offsetOutside }
        let available = content.count - offset
        let room = min(ne, limit)
        let overhead = isOdd ? Self.headerLength(room) : 0
        guard room > overhead else { throw .wrongLength }
        let length = min(available, room - overhead)
        let piece = content[offset..<offset + length]
        let isCut = length == available && !command.wantsAll && ne > length + (isOdd ? 1 + TLV.lengthOctets(length).count : 0)
        return CardReply(isOdd ? TLV.encode(0x53, piece) : Array(piece), isCut ? .endOfFile : .success)
    }

    /// Octets of tag and length of the largest object that fits in `room` octets.
    private static func headerLength(_ room: Int) -> Int {
        switch room {
        case ..<130: 2
        case ..<259: 3
        default: 4
        }
    }
}
