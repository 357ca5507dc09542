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
    private static let secretInstructions: [(name: String, applies: @Sendable (_ header: ArraySlice<UInt8>) -> Bool)] = [
        ("VERIFY", { isOf($0, 0x20, 0x21) }),
        ("CHANGE REFERENCE DATA", { isOf($0, 0x24, 0x25) }),
        ("DISABLE and ENABLE VERIFICATION, of GSM 11.11 too", { isOf($0, 0x26, 0x28) }),
        ("RESET RETRY COUNTER", { isOf($0, 0x2C, 0x2D) }),
        ("PUT KEY, STORE DATA of GlobalPlatform, on every channel", { isGlobalPlatform($0) && isOf($0, 0xD8, 0xE2) }),
        (
            "ChangeKey, ChangeKeyEV2, SetConfiguration, CreateTransactionMACFile of DESFire",
            { $0.first == 0x90 && $0.dropFirst().first.map(secretDESFireCommands.contains) ?? false }
        ),
        ("SAM_ChangeKeyEntry of MIFARE SAM", { $0.first.map { $0 & 0xF0 == 0x80 } ?? false && isOf($0, 0xC1, 0x66) }),
        ("PUT DATA of a private key into an OpenPGP card", { isOf($0, 0xDB) && $0.dropFirst(2).elementsEqual([0x3F, 0xFF]) }),
    ]

    /// Instructions of the reader (class `FF`, PC/SC part 3) whose data field is secret. The last two are in no standard for a
    /// reader; what they hold in a card is what they would hold there.
    private static let secretReaderInstructions: [(name: String, ins: UInt8)] = [
        ("LOAD KEYS", 0x82), ("VERIFY", 0x20), ("CHANGE REFERENCE DATA", 0x24), ("RESET RETRY COUNTER", 0x2C),
    ]

    /// DESFire commands whose parameters hold a key, wrapped in ISO/IEC 7816-4 or native.
    private static let secretDESFireCommands: Set<UInt8> = [0xC4, 0xC6, 0x5C, 0xCE]

    /// Instructions of class 80 whose answer is a key: SAM_DumpSessionKey and SAM_DumpSecretKey of MIFARE SAM.
    private static let keyAnswers: Set<UInt8> = [0xD5, 0xD6]

    /// Pages of the Type 2 family that hold keys or passwords when written: Ultralight C 2C-2F, Ultralight AES 30-37,
    /// PWD and PACK of Ultralight EV1 and NTAG (12-13, 27-28, 2B-2C, 85-86, E5-E6).
    private static let secretPages: Set<UInt8> = Set(0x2C...0x2F).union(0x30...0x37)
        .union([0x12, 0x13, 0x27, 0x28, 0x2B, 0x2C, 0x85, 0x86, 0xE5, 0xE6])

    private static func isOf(_ header: ArraySlice<UInt8>, _ instructions: UInt8...) -> Bool {
        header.dropFirst().first.map(instructions.contains) ?? false
    }

    /// Classes 80 to 8F and C0 to EF: proprietary, on the first four channels and on the others (GlobalPlatform 2.3 11.1.4).
    private static func isGlobalPlatform(_ header: ArraySlice<UInt8>) -> Bool {
        header.first.map { (0x80...0x8F).contains($0) || (0xC0...0xEF).contains($0) } ?? false
    }

    /// The last block of a MIFARE Classic sector holds key A in its first six octets and key B in its last six; sectors have
    /// four blocks, from block 128 on sixteen.
    private static func isSectorTrailer(_ block: UInt8) -> Bool { block & (block < 128 ? 3 : 15) == (block < 128 ? 3 : 15) }

    // MARK: - Looking it up

    private static func places(command: ArraySlice<UInt8>, answer: ArraySlice<UInt8>, depth: Int) -> Places {
        guard depth > 0 else { return Places() }
        if let native = nativeDESFire(command) { return Places(command: [native]) }
        if command.count >= 4, command.first.map({ $0 & 0xF0 == 0x80 }) ?? false, answer.count > 2,
            command.dropFirst().first.map(keyAnswers.contains) ?? false
        {
            return Places(answer: [0..<answer.count - 2])
        }
        guard command.count >= 5, let data = dataField(of: command) else { return Places() }
        let start = command.startIndex
        let ins = command[start + 1]
        let relative = data.lowerBound - start..<data.upperBound - start
        if command[start] != 0xFF {
            let isSecret = secretInstructions.contains { $0.applies(command.prefix(4)) }
            return isSecret ? Places(command: [relative]) : Places()
        }
        if secretReaderInstructions.contains(where: { $0.ins == ins }) { return Places(command: [relative]) }
        if ins == 0xD6, data.count == 4, secretPages.contains(command[start + 3]) { return Places(command: [relative]) }
        if ins == 0xD6, data.count == 16, isSectorTrailer(command[start + 3]) {
            return Places(command: trailerKeys(at: relative.lowerBound))
        }
        if ins == 0x00 || ins == 0xC2 || ins == 0x50 {
            return insideReaderCommand(command[data], answer: answer, ins: ins, offset: relative.lowerBound, depth: depth)
        }
        return Places()
    }

    /// The parameters of a native DESFire command behind its first octet, where it is one that holds a key and no APDU: a reader
    /// passes such commands on as they are.
    private static func nativeDESFire(_ command: ArraySlice<UInt8>) -> Range<Int>? {
        guard let first = command.first, secretDESFireCommands.contains(first), command.count > 2, !isAPDU(command) else {
            return nil
        }
        return 2..<command.count
    }

    /// Whether the lengths of a command APDU of any form fit (ISO/IEC 7816-3 12.1.3).
    private static func isAPDU(_ command: ArraySlice<UInt8>) -> Bool {
        guard command.count > 5 else { return command.count > 3 }
        let start = command.startIndex
        let rest = command.count - 5
        let short = Int(command[start + 4])
        if short != 0 { return short == rest || short + 1 == rest }
        guard rest >= 2 else { return false }
        let length = Int(command[start + 5]) << 8 | Int(command[start + 6])
        return rest == 2 || length != 0 && (length == rest - 2 || length == rest - 4)
    }

    private static func trailerKeys(at start: Int) -> [Range<Int>] { [start..<start + 6, start + 10..<start + 16] }

    /// The data field of a command in any form, nil when there is none. Of octets that fit no form, everything behind the
    /// header that may be data: a malformed VERIFY holds a PIN as well.
    private static func dataField(of command: ArraySlice<UInt8>) -> Range<Int>? {
        let start = command.startIndex
        let rest = command.count - 5
        guard rest > 0 else { return nil }
        let short = Int(command[start + 4])
        if short != 0 {
            // Lc, data, perhaps Le.
            return short == rest || short + 1 == rest ? start + 5..<start + 5 + short : start + 5..<command.endIndex
        }
        // An extended Le alone.
        if rest == 2 { return nil }
        guard rest > 2 else { return start + 5..<command.endIndex }
        let length = Int(command[start + 5]) << 8 | Int(command[start + 6])
        guard length > 0, length == rest - 2 || length == rest - 4 else { return start + 5..<command.endIndex }
        return start + 7..<start + 7 + length
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
        let found = framePlaces(frame, answer: answer, checksum: checksum, depth: depth)
        // A frame that came with its CRC although nobody said so.
        guard found.isEmpty, checksum == 0, endsWithCRC(frame) else { return found }
        return framePlaces(frame, answer: answer, checksum: 2, depth: depth)
    }

    private static func framePlaces(
        _ frame: ArraySlice<UInt8>, answer: ArraySlice<UInt8>, checksum: Int, depth: Int
    ) -> Places {
        guard depth > 0, let first = frame.first, frame.count > checksum else { return Places() }
        let payload = frame.count - checksum
        let second = frame.dropFirst().first ?? 0
        /// `ranges`, and the checksum after them.
        func sealed(_ ranges: [Range<Int>]) -> [Range<Int>] { checksum > 0 ? ranges + [payload..<frame.count] : ranges }
        switch first {
        case 0x1B where payload == 5:
            // PWD_AUTH: the password, and PACK in the answer. A NAK has four bits and tells nothing.
            return Places(command: sealed([1..<payload]), answer: answer.count >= 2 + checksum ? [0..<answer.count] : [])
        case 0xA2 where payload == 6 && secretPages.contains(second): return Places(command: sealed([2..<payload]))
        case 0xA0 where payload == 18 && isSectorTrailer(second): return Places(command: sealed(trailerKeys(at: 2)))
        case 0x60 where payload == 12, 0x61 where payload == 12:
            // MIFARE Classic authentication as readers take it: block, key, UID.
            return Places(command: sealed([2..<8]))
        case _ where secretDESFireCommands.contains(first) && payload > 2: return Places(command: sealed([2..<payload]))
        case _ where payload > 3 && [0xB1, 0xB3, 0xB4].contains(second) && frame[frame.startIndex + 2] == 0x04:
            // Password commands of NXP's vicinity cards: flags, command, manufacturer (ISO/IEC 15693-3 10.5).
            return Places(command: sealed([3..<payload]))
        case 0x02, 0x03, 0x0A, 0x0B, 0x12, 0x13, 0x1A, 0x1B:
            // An I-block: PCB, CID when bit 4 says so, then the APDU or a native command (ISO/IEC 14443-4 7.1).
            let head = first & 0x08 != 0 ? 2 : 1
            guard payload > head else { return Places() }
            let inside = frame.dropFirst(head).dropLast(checksum)
            var inner = places(command: inside, answer: ArraySlice(), depth: depth - 1)
            if inner.isEmpty, let command = inside.first, secretDESFireCommands.contains(command), inside.count > 2 {
                inner = Places(command: [2..<inside.count])
            }
            return inner.isEmpty ? Places() : Places(command: sealed(inner.moved(command: head, answer: head).command))
        default:
            return feliCaKeys(frame, payload).map { Places(command: sealed([$0])) } ?? Places()
        }
    }

    /// The block data of a FeliCa Write Without Encryption to RC or CK (blocks 80 and 87 of FeliCa Lite), with or without
    /// the length octet before it: `08`, IDm, services, blocks, data (JIS X 6319-4).
    private static func feliCaKeys(_ frame: ArraySlice<UInt8>, _ payload: Int) -> Range<Int>? {
        let body = frame.prefix(payload)
        let head = Int(body.first ?? 0) == payload && body.dropFirst().first == 0x08 ? 1 : 0
        let octets = Array(body.dropFirst(head))
        guard octets.count > 10, octets[0] == 0x08 else { return nil }
        var place = 10 + 2 * Int(octets[9])
        guard place < octets.count else { return nil }
        let blocks = Int(octets[place])
        place += 1
        var isSecret = false
        for _ in 0..<blocks {
            guard place + 1 < octets.count else { return nil }
            let isShort = octets[place] & 0x80 != 0
            if [0x80, 0x87].contains(octets[place + 1]) { isSecret = true }
            place += isShort ? 2 : 3
        }
        guard isSecret, place < octets.count else { return nil }
        return head + place..<head + octets.count
    }

    /// Whether the last two octets are CRC_A or CRC_B of the others (ISO/IEC 14443-3 annex B).
    private static func endsWithCRC(_ frame: ArraySlice<UInt8>) -> Bool {
        guard frame.count > 3 else { return false }
        func sum(_ start: UInt16) -> UInt16 {
            frame.dropLast(2).reduce(start) { sum, octet in
                (0..<8).reduce(sum ^ UInt16(octet)) { sum, _ in sum & 1 != 0 ? sum >> 1 ^ 0x8408 : sum >> 1 }
            }
        }
        let said = frame.suffix(2).reversed().reduce(UInt16(0)) { $0 << 8 | UInt16($1) }
        return said == sum(0x6363) || said == ~sum(0xFFFF)
    }
}
