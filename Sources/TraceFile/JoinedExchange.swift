// SPDX-License-Identifier: MIT

import Octets

/// A command and its answer written one behind the other with nothing between them, as GSMTAP's SIM type has them, and
/// where the one ends.
///
/// The octets alone often do not tell. `CLA INS P1 P2 08`, eight octets, `90 00` is a case 3 command that took them to the
/// card or a case 2 command that fetched them. What tells, in this order:
///
/// 1. **Lengths.** With P3 other than 00: fewer octets than P3 before the status word came from the card (ISO/IEC 7816-3
///    12.1.2, case 2); more are a case 4 command with Le and its answer, and, where no Le can be read there but the octets
///    are one whole data object, a case 3 command whose card answered unasked. P3 of 00 is Le of 256, unless that is
///    less than what follows: then it begins lengths of three octets.
/// 2. **The instruction**, by ISO/IEC 7816-4 table 4.2, ETSI TS 102 221 table 10.5, GlobalPlatform and the class: secure
///    messaging always carries data to the card, so does DESFire's class 90.
/// 3. **The status word.** 61xx and 9Fxx follow data to the card over T=0; after an error no data comes back.
/// 4. **The rest of the capture**: commands of the same class and instruction whose lengths tell.
/// 5. Else it is taken as data to the card, and counted as assumed.
///
/// The two parts put together are always the octets that were given: a P3 of 00 with which T=0 sends a case 1 command
/// (ISO/IEC 7816-3 12.2.2) stays in the command.
struct JoinedExchange: Equatable {
    enum Reason: Equatable {
        case lengths, instruction, status, others, assumed
    }

    /// Which way the data field of a command goes.
    enum Flow: Equatable {
        case toCard, fromCard
    }

    var command: ArraySlice<UInt8>
    var answer: ArraySlice<UInt8>
    var reason: Reason

    /// What the rest of a capture tells of instructions that no table has.
    struct Habits {
        private var flows: [UInt16: Flow?] = [:]

        /// Takes note of an exchange whose lengths tell which way its data went.
        mutating func learn(_ octets: ArraySlice<UInt8>) {
            let parts = JoinedExchange.Parts(octets)
            guard let parts, parts.p3 != 0, parts.between > 0, parts.between != Int(parts.p3) else { return }
            let flow: Flow = parts.between < Int(parts.p3) ? .fromCard : .toCard
            if let known = flows[parts.key], known != flow {
                // An instruction that goes both ways tells nothing.
                flows[parts.key] = .some(nil)
            } else {
                flows[parts.key] = flow
            }
        }

        fileprivate func flow(_ parts: Parts) -> Flow? { flows[parts.key] ?? nil }
    }

    /// Nil when the octets are too few to be a command with its answer, or fit no case.
    init?(_ octets: ArraySlice<UInt8>, _ habits: Habits = Habits()) {
        if octets.count == 6 {
            self.init(octets, commandLength: 4, .lengths)
            return
        }
        guard let parts = Parts(octets) else { return nil }
        let toCard = parts.commandLength(.toCard)
        let fromCard = parts.commandLength(.fromCard)
        guard toCard != fromCard, let toCard, let fromCard else {
            guard let length = toCard ?? fromCard else { return nil }
            self.init(octets, commandLength: length, .lengths)
            return
        }
        let (flow, reason) = Self.settle(parts, habits)
        self.init(octets, commandLength: flow == .toCard ? toCard : fromCard, reason)
    }

    private init(_ octets: ArraySlice<UInt8>, commandLength: Int, _ reason: Reason) {
        command = octets.prefix(commandLength)
        answer = octets.dropFirst(commandLength)
        self.reason = reason
    }

    private static func settle(_ parts: Parts, _ habits: Habits) -> (Flow, Reason) {
        if let flow = parts.flowOfInstruction { return (flow, .instruction) }
        if parts.statusFollowsData { return (.toCard, .status) }
        if let flow = habits.flow(parts) { return (flow, .others) }
        return (.toCard, .assumed)
    }

    /// The octets taken apart as far as every reading of them agrees: header, P3, what is between, status word.
    fileprivate struct Parts {
        let octets: ArraySlice<UInt8>
        let cla: UInt8
        let ins: UInt8
        let p1: UInt8
        let p2: UInt8
        let p3: UInt8

        /// The octets between P3 and the status word.
        var between: Int { octets.count - 7 }
        var key: UInt16 { UInt16(cla) << 8 | UInt16(ins) }

        init?(_ octets: ArraySlice<UInt8>) {
            guard octets.count >= 7 else { return nil }
            let start = octets.startIndex
            self.octets = octets
            (cla, ins) = (octets[start], octets[start + 1])
            (p1, p2, p3) = (octets[start + 2], octets[start + 3], octets[start + 4])
        }

        /// The octets of the command when its data goes this way; nil when no case fits.
        func commandLength(_ flow: Flow) -> Int? {
            if between == 0 { return 5 }
            if p3 == 0 { return flow == .toCard ? longToCard ?? longFromCard : longFromCard }
            let lc = Int(p3)
            if between < lc { return 5 }
            // More than Le from a card is believed only of an instruction that takes nothing to it.
            if flow == .fromCard { return between == lc || flowOfInstruction == .fromCard ? 5 : nil }
            if between == lc { return 5 + lc }
            return 5 + lc + (answersUnasked(after: 5 + lc) ? 0 : 1)
        }

        /// Whether what follows the data field is one whole data object and cannot be Le and what Le asked for.
        private func answersUnasked(after place: Int) -> Bool {
            let rest = octets.dropFirst(place).dropLast(2)
            guard let le = rest.first, le != 0, rest.count - 1 != Int(le) else { return false }
            guard let header = try? TLV.header(in: rest) else { return false }
            return header.headerLength + header.valueLength == rest.count
        }

        /// Case 3E or 4E: P3 is 00, then two octets Lc.
        private var longToCard: Int? {
            guard let lc = longLength(at: 5), lc > 0 else { return nil }
            let rest = octets.count - 7 - lc - 2
            if rest == 0 { return 7 + lc }
            guard rest >= 2, let le = longLength(at: 7 + lc), rest - 2 <= (le == 0 ? 65_536 : le) else { return nil }
            return 7 + lc + 2
        }

        /// Case 2S while Le of 256 allows for all that follows, else 2E.
        private var longFromCard: Int? {
            if between <= 256 { return 5 }
            guard let le = longLength(at: 5), between - 2 <= (le == 0 ? 65_536 : le) else { return nil }
            return 7
        }

        private func longLength(at place: Int) -> Int? {
            guard place + 2 <= octets.count - 2 else { return nil }
            let index = octets.startIndex + place
            return Int(octets[index]) << 8 | Int(octets[index + 1])
        }

        /// GSM 11.11 9.2: 9F is T=0's 61 of old SIM cards.
        var statusFollowsData: Bool {
            let sw1 = octets[octets.endIndex - 2]
            return sw1 == 0x61 || sw1 == 0x9F || (0x64...0x6F).contains(sw1)
        }

        var flowOfInstruction: Flow? {
            if isProtected || cla == 0x90 || Self.toCard.contains(ins) { return .toCard }
            switch ins {
            case 0x00 where cla == 0xFF: return .toCard
            case 0x12: return cla & 0x80 != 0 ? .fromCard : .toCard
            // STATUS of TS 102 221 11.1.2 has P1 up to 02, GlobalPlatform's GET STATUS from 10 on.
            case 0xF2: return p1 <= 0x02 ? .fromCard : .toCard
            // RETRIEVE DATA of TS 102 221 11.3.1 names the object with its first block only.
            case 0xCB: return cla & 0x80 != 0 && p2 & 0x80 == 0 ? .fromCard : .toCard
            case 0x70, 0x84, 0xB0, 0xB2, 0xC0, 0xCA: return .fromCard
            default: return nil
            }
        }

        /// ISO/IEC 7816-4 5.4.1; class 8x of GlobalPlatform and TS 102 221 has the bits of class 0x.
        private var isProtected: Bool {
            if cla & 0xE0 == 0x00 || cla & 0xF0 == 0x80 { return cla & 0x0C != 0 }
            return cla & 0xE0 == 0x60 || cla & 0xF0 == 0xE0
        }

        private static let toCard: Set<UInt8> = [
            0x04, 0x0C, 0x0E, 0x0F, 0x10, 0x14, 0x20, 0x21, 0x22, 0x24, 0x25, 0x26, 0x28, 0x2A, 0x2C, 0x2D, 0x32, 0x44, 0x50,
            0x73, 0x76, 0x78, 0x82, 0x86, 0x87, 0x88, 0x89, 0xA0, 0xA1, 0xA2, 0xA4, 0xA5, 0xA8, 0xAA, 0xAE, 0xB1, 0xB3, 0xC2,
            0xC3, 0xD0, 0xD1, 0xD2, 0xD3, 0xD6, 0xD7, 0xD8, 0xDA, 0xDB, 0xDC, 0xDD, 0xE0, 0xE2, 0xE4, 0xE6, 0xE8, 0xF0,
        ]
    }
}
