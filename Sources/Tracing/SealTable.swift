// SPDX-License-Identifier: MIT

import Octets

/// Which octets of an exchange are secret: the one table that recording, import and scripts ask.
///
/// A place is given in octets from the start of the command or answer. Checksums that cover a sealed place are sealed with
/// it, since a CRC gives a short PIN away.
public enum SealTable {
    /// The secret places of one exchange.
    public struct Places: Sendable, Equatable {
        public var command: [Range<Int>] = []
        public var answer: [Range<Int>] = []

        public var isEmpty: Bool { command.isEmpty && answer.isEmpty }

        func moved(command commandOffset: Int, answer answerOffset: Int) -> Places {
            Places(
                command: command.map { $0.lowerBound + commandOffset..<$0.upperBound + commandOffset },
                answer: answer.map { $0.lowerBound + answerOffset..<$0.upperBound + answerOffset }
            )
        }
    }

    /// The secret places of a command APDU and its response.
    ///
    /// `answer` may be empty when it is not there yet; the places in it are then left out.
    public static func places(command: [UInt8], answer: [UInt8] = []) -> Places {
        places(command: command[...], answer: answer[...], depth: 3)
    }

    /// Whether the command's data field holds a secret.
    public static func isSecret(command: [UInt8]) -> Bool { !places(command: command).command.isEmpty }

    /// The secret places of a contactless frame and the frame that answered it.
    ///
    /// - Parameter checksum: octets of CRC at the end of each frame.
    public static func places(frame: [UInt8], answer: [UInt8], checksum: Int) -> Places {
        places(frame: frame[...], answer: answer[...], checksum: checksum, depth: 3)
    }

    // MARK: - The table

    /// Instructions whose data field is secret, for commands of the card itself (not of the reader, class `FF`).
    private static let secretInstructions: [(name: String, applies: @Sendable (_ cla: UInt8, _ ins: UInt8) -> Bool)] = [
        ("VERIFY", { _, ins in ins == 0x20 || ins == 0x21 }),
        ("CHANGE REFERENCE DATA", { _, ins in ins == 0x24 || ins == 0x25 }),
        ("RESET RETRY COUNTER", { _, ins in ins == 0x2C || ins == 0x2D }),
        ("CHV of GSM 11.11", { cla, ins in cla == 0xA0 && (ins == 0x26 || ins == 0x28) }),
        ("PUT KEY, STORE DATA of GlobalPlatform", { cla, ins in cla & 0x80 != 0 && cla < 0x90 && (ins == 0xD8 || ins == 0xE2) }),
        ("ChangeKey, ChangeKeyEV2, SetConfiguration of DESFire", { cla, ins in cla == 0x90 && [0xC4, 0xC6, 0x5C].contains(ins) }),
    ]

    /// Instructions of the reader (class `FF`, PC/SC part 3) whose data field is secret.
    private static let secretReaderInstructions: [(name: String, ins: UInt8)] = [("LOAD KEYS", 0x82), ("VERIFY", 0x20)]

    /// Pages of the Type 2 family that hold keys or passwords when written: Ultralight C 2C-2F, Ultralight AES 30-37,
    /// PWD and PACK of Ultralight EV1 and NTAG (12-13, 27-28, 2B-2C, 85-86, E5-E6).
    private static let secretPages: Set<UInt8> = Set(0x2C...0x2F).union(0x30...0x37)
        .union([0x12, 0x13, 0x27, 0x28, 0x2B, 0x2C, 0x85, 0x86, 0xE5, 0xE6])

    // MARK: - Looking it up

    private static func places(command: ArraySlice<UInt8>, answer: ArraySlice<UInt8>, depth: Int) -> Places {
        guard depth > 0, command.count >= 5, let data = dataField(of: command) else { return Places() }
        let start = command.startIndex
        let cla = command[start]
        let ins = command[start + 1]
        let relative = data.lowerBound - start..<data.upperBound - start
        if cla != 0xFF {
            let isSecret = secretInstructions.contains { $0.applies(cla, ins) }
            return isSecret ? Places(command: [relative]) : Places()
        }
        if secretReaderInstructions.contains(where: { $0.ins == ins }) { return Places(command: [relative]) }
        if ins == 0xD6, secretPages.contains(command[start + 3]), data.count == 4 { return Places(command: [relative]) }
        if ins == 0x00 || ins == 0xC2 || ins == 0x50 {
            return insideReaderCommand(command[data], answer: answer, ins: ins, offset: relative.lowerBound, depth: depth)
        }
        return Places()
    }

    /// The data field of a command in any form; nil when there is none or the lengths do not fit.
    private static func dataField(of command: ArraySlice<UInt8>) -> Range<Int>? {
        let start = command.startIndex
        let short = Int(command[start + 4])
        if short != 0 {
            let end = min(start + 5 + short, command.endIndex)
            return end > start + 5 ? start + 5..<end : nil
        }
        guard command.count > 7 else { return nil }
        let length = Int(command[start + 5]) << 8 | Int(command[start + 6])
        let end = min(start + 7 + length, command.endIndex)
        return end > start + 7 ? start + 7..<end : nil
    }

    /// A frame inside a PN53x direct transmit (`FF 00 00 00`) or a transparent exchange (`FF C2 00 01`, Sony `FF 50`).
    private static func insideReaderCommand(
        _ data: ArraySlice<UInt8>, answer: ArraySlice<UInt8>, ins: UInt8, offset: Int, depth: Int
    ) -> Places {
        let start = data.startIndex
        if ins == 0x00 {
            guard data.count > 2, data[start] == 0xD4, data[start + 1] == 0x40 || data[start + 1] == 0x42 else { return Places() }
            // InDataExchange has a target number before the frame, its answer a status; InCommunicateThru only the status.
            let head = data[start + 1] == 0x40 ? 3 : 2
            guard data.count > head else { return Places() }
            let answered = answer.count > 5 ? answer.dropFirst(3).dropLast(2) : ArraySlice()
            return places(frame: data.dropFirst(head), answer: answered, checksum: 0, depth: depth - 1)
                .moved(command: offset + head, answer: 3)
        }
        var places = Places()
        guard let objects = try? TLV.parse(data, TLVRules(allowsFiller: false)) else {
            return Places(command: [offset..<offset + data.count])
        }
        for object in objects where object.tag == 0x93 || object.tag == 0x95 {
            var received = ArraySlice<UInt8>()
            var receivedOffset = 0
            if object.tag == 0x95, let back = try? TLV.parse(answer.dropLast(2)).first(where: { $0.tag == 0x97 }) {
                received = back.value
                receivedOffset = back.offset + back.headerLength
            }
            let inner = self.places(frame: object.value, answer: received, checksum: 0, depth: depth - 1)
                .moved(command: offset + object.offset + object.headerLength, answer: receivedOffset)
            places.command += inner.command
            places.answer += inner.answer
        }
        return places
    }

    private static func places(frame: ArraySlice<UInt8>, answer: ArraySlice<UInt8>, checksum: Int, depth: Int) -> Places {
        guard depth > 0, let first = frame.first, frame.count > checksum else { return Places() }
        let payload = frame.count - checksum
        func sealed(from start: Int) -> Range<Int> { start..<frame.count }
        switch first {
        case 0x1B where payload == 5:
            // PWD_AUTH: the password, and PACK in the answer.
            let pack = answer.count >= 2 + checksum ? [0..<answer.count] : []
            return Places(command: [sealed(from: 1)], answer: pack)
        case 0xA2 where payload == 6 && secretPages.contains(frame[frame.startIndex + 1]):
            return Places(command: [sealed(from: 2)])
        case 0x02, 0x03, 0x0A, 0x0B, 0x12, 0x13, 0x1A, 0x1B:
            // An I-block: PCB, CID when bit 4 says so, then the APDU (ISO/IEC 14443-4 7.1).
            let head = first & 0x08 != 0 ? 2 : 1
            guard payload > head else { return Places() }
            let inner = places(command: frame.dropFirst(head).dropLast(checksum), answer: ArraySlice(), depth: depth - 1)
            guard !inner.isEmpty else { return Places() }
            var places = inner.moved(command: head, answer: head)
            if checksum > 0 { places.command.append(payload..<frame.count) }
            return places
        default:
            return Places()
        }
    }
}
