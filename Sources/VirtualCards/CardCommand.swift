// SPDX-License-Identifier: MIT

import TagTransport

/// A command as a card sees it: what ``CommandAPDU`` parsed, or what was inside a secured command.
struct CardCommand: Sendable, Equatable {
    var cla: UInt8
    var ins: UInt8
    var p1: UInt8
    var p2: UInt8
    /// The data field; empty when there is none.
    var data: [UInt8]
    /// Ne, the most octets wanted back; nil when no Le field was sent.
    var ne: Int?
    var isExtended: Bool

    init(cla: UInt8, ins: UInt8, p1: UInt8, p2: UInt8, data: [UInt8] = [], ne: Int? = nil, isExtended: Bool = false) {
        self.cla = cla
        self.ins = ins
        self.p1 = p1
        self.p2 = p2
        self.data = data
        self.ne = ne
        self.isExtended = isExtended
    }

    /// - Throws: `6700` when the octets are no command APDU.
    init(parsing octets: [UInt8]) throws(StatusWord) {
        do {
            let command = try CommandAPDU(bytes: octets)
            self.init(
                cla: command.cla, ins: command.ins, p1: command.p1, p2: command.p2, data: command.data.map { [UInt8]($0) } ?? [],
                ne: command.ne, isExtended: command.form == .extended
            )
        } catch {
            throw .wrongLength
        }
    }

    /// Whether Le is all zeros: as much as there is, rather than a length (ISO/IEC 7816-4 5.1).
    var wantsAll: Bool { ne == (isExtended ? 65_536 : 256) }

    /// P1 and P2 as one number.
    var parameters: UInt16 { UInt16(p1) << 8 | UInt16(p2) }

    /// Only the interindustry class, the basic channel, without secure messaging and chaining (ISO/IEC 7816-4 5.4.1).
    ///
    /// - Throws: `6E00`, `6884`, `6882`, `6881`.
    func requirePlainClass() throws(StatusWord) {
        switch cla {
        case 0x00: return
        case _ where cla & 0xE0 != 0: throw .classNotSupported
        case _ where cla & 0x10 != 0: throw .chainingNotSupported
        case _ where cla & 0x0C != 0: throw .secureMessagingNotSupported
        default: throw .channelNotSupported
        }
    }
}

/// A card's answer before it is written: data field and status word.
struct CardReply: Sendable, Equatable {
    var data: [UInt8]
    var status: StatusWord

    init(_ data: [UInt8] = [], _ status: StatusWord = .success) {
        self.data = data
        self.status = status
    }

    var octets: [UInt8] { data + status.octets }
}

/// SW1-SW2 of ISO/IEC 7816-4 5.6. Thrown where a command is refused.
struct StatusWord: Error, RawRepresentable, Sendable, Hashable {
    var rawValue: UInt16

    init(rawValue: UInt16) { self.rawValue = rawValue }
    private init(_ value: UInt16) { rawValue = value }

    var octets: [UInt8] { [UInt8(truncatingIfNeeded: rawValue >> 8), UInt8(truncatingIfNeeded: rawValue)] }

    static let success = StatusWord(0x9000)
    static let endOfFile = StatusWord(0x6282)
    static let authenticationFailed = StatusWord(0x6300)
    static let wrongLength = StatusWord(0x6700)
    static let channelNotSupported = StatusWord(0x6881)
    static let secureMessagingNotSupported = StatusWord(0x6882)
    static let lastOfChainExpected = StatusWord(0x6883)
    static let chainingNotSupported = StatusWord(0x6884)
    static let wrongFileStructure = StatusWord(0x6981)
    static let securityNotSatisfied = StatusWord(0x6982)
    static let blocked = StatusWord(0x6983)
    static let conditionsNotSatisfied = StatusWord(0x6985)
    static let noCurrentFile = StatusWord(0x6986)
    static let secureMessagingObjectMissing = StatusWord(0x6987)
    static let secureMessagingObjectWrong = StatusWord(0x6988)
    static let wrongData = StatusWord(0x6A80)
    static let fileNotFound = StatusWord(0x6A82)
    static let recordNotFound = StatusWord(0x6A83)
    static let notEnoughSpace = StatusWord(0x6A84)
    static let wrongParameters = StatusWord(0x6A86)
    static let lengthContradictsParameters = StatusWord(0x6A87)
    static let referencedDataNotFound = StatusWord(0x6A88)
    static let offsetOutside = StatusWord(0x6B00)
    static let instructionNotSupported = StatusWord(0x6D00)
    static let classNotSupported = StatusWord(0x6E00)

    /// `63Cx`: not verified, `tries` left.
    static func triesLeft(_ tries: Int) -> StatusWord { StatusWord(0x63C0 | UInt16(max(0, min(tries, 15)))) }
    /// `61xx`: `count` octets wait; `00` stands for 256 and more.
    static func moreAvailable(_ count: Int) -> StatusWord {
        StatusWord(0x6100 | (count >= 256 ? 0 : UInt16(truncatingIfNeeded: max(count, 0))))
    }
    /// `6Cxx`: Le should have been `count`, 1...256.
    static func rightLength(_ count: Int) -> StatusWord { StatusWord(0x6C00 | UInt16(truncatingIfNeeded: count & 0xFF)) }
}
