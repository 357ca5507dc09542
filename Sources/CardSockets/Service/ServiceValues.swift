// SPDX-License-Identifier: MIT

/// Result codes of PC/SC, as pcsc-lite's client protocol carries them.
public enum ServiceCode {
    public static let success: UInt32 = 0
    public static let cancelled: UInt32 = 0x8010_0002
    public static let invalidHandle: UInt32 = 0x8010_0003
    public static let invalidParameter: UInt32 = 0x8010_0004
    public static let noMemory: UInt32 = 0x8010_0006
    public static let insufficientBuffer: UInt32 = 0x8010_0008
    public static let unknownReader: UInt32 = 0x8010_0009
    public static let sharingViolation: UInt32 = 0x8010_000B
    public static let noSmartcard: UInt32 = 0x8010_000C
    public static let protocolMismatch: UInt32 = 0x8010_000F
    public static let invalidValue: UInt32 = 0x8010_0011
    public static let communicationFailed: UInt32 = 0x8010_0013
    public static let notTransacted: UInt32 = 0x8010_0016
    public static let readerUnavailable: UInt32 = 0x8010_0017
    public static let serviceStopped: UInt32 = 0x8010_001E
    public static let unsupportedFeature: UInt32 = 0x8010_001F
    public static let unresponsiveCard: UInt32 = 0x8010_0066
    public static let unpoweredCard: UInt32 = 0x8010_0067
    public static let resetCard: UInt32 = 0x8010_0068
    public static let removedCard: UInt32 = 0x8010_0069
}

/// Sizes of pcsc-lite's client protocol.
enum ServiceLimit {
    /// A reader's name with its NUL.
    static let name = 128
    static let atr = 33
    static let attribute = 264
    /// A command or an answer, MAX_BUFFER_SIZE_EXTENDED: 4 + 3 + 65536 + 3 + 2.
    static let apdu = 65_548
    /// An entry of the reader table.
    static let entry = 184
    /// Connections of a service, handles of a context, handles of a reader.
    static let each = 200
}

enum ShareMode {
    static let exclusive: UInt32 = 1
    static let shared: UInt32 = 2
    static let direct: UInt32 = 3
}

enum Disposition {
    static let leave: UInt32 = 0
    static let reset: UInt32 = 1
    static let unpower: UInt32 = 2
    static let eject: UInt32 = 3
}

/// Protocols between reader and card, as bits.
enum CardProtocols {
    static let t0: UInt32 = 1
    static let t1: UInt32 = 2
    static let raw: UInt32 = 4
    static let all: UInt32 = 7

    /// What an answer to reset offers (ISO/IEC 7816-3 8.2.3): T=0 when it names none; one alone in specific mode (TA2).
    static func offered(by atr: [UInt8]) -> UInt32 {
        guard atr.count >= 2 else { return 0 }
        var offered: UInt32 = 0
        var next = 2
        var presence = atr[1] >> 4
        var group = 1
        while true {
            // TA, TB, TC, TD: each is there when its bit is set.
            let size = presence.nonzeroBitCount
            if group == 2, presence & 1 != 0, next < atr.count { return bit(of: atr[next] & 0x0F) }
            guard presence & 8 != 0, next + size <= atr.count else { break }
            let td = atr[next + size - 1]
            offered |= bit(of: td & 0x0F)
            presence = td >> 4
            next += size
            group += 1
        }
        return offered == 0 ? t0 : offered
    }

    private static func bit(of number: UInt8) -> UInt32 {
        switch number {
        case 0: t0
        case 1: t1
        default: 0
        }
    }

    /// The one to use: that in force when there is one; else of the offered ones that are wished, T=1 before T=0.
    static func chosen(wished: UInt32, offered: UInt32, inForce: UInt32) -> UInt32? {
        if inForce != 0 { return wished & inForce != 0 ? inForce : nil }
        for candidate in [t1, t0] where wished & offered & candidate != 0 { return candidate }
        return wished & raw != 0 ? raw : nil
    }
}
