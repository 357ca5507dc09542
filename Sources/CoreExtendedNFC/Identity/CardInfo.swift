// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// What is known of a card when it was found, and after it was asked.
public struct CardInfo: Sendable, Codable, Equatable {
    public var type: CardType
    /// The UID or PUPI as the reader gives it; the IDm of a FeliCa card; empty when the reader does not tell.
    public var uid: Data
    /// Two octets, most significant first.
    public var atqa: Data?
    public var sak: UInt8?
    public var ats: ATSInfo?
    /// The historical bytes of the ATS or ATR.
    public var historicalBytes: Data?
    /// The application that was selected when the card was found, in hexadecimal.
    public var initialSelectedAID: String?
    /// Two octets, most significant first.
    public var systemCode: Data?
    public var idm: Data?
    /// The manufacturer code of ISO/IEC 7816-6.
    public var icManufacturer: Int?

    public init(
        type: CardType, uid: Data, atqa: Data? = nil, sak: UInt8? = nil, ats: ATSInfo? = nil, historicalBytes: Data? = nil,
        initialSelectedAID: String? = nil, systemCode: Data? = nil, idm: Data? = nil, icManufacturer: Int? = nil
    ) {
        self.type = type
        self.uid = uid
        self.atqa = atqa
        self.sak = sak
        self.ats = ats
        self.historicalBytes = historicalBytes
        self.initialSelectedAID = initialSelectedAID
        self.systemCode = systemCode
        self.idm = idm
        self.icManufacturer = icManufacturer
    }

    /// The application that was selected when the card was found, where this library knows it.
    public var knownISO7816Application: ISO7816Application? { initialSelectedAID.flatMap(ISO7816Application.match(aid:)) }
}

/// The answer to select of a type A card (ISO/IEC 14443-4 5.2), from T0 on.
public struct ATSInfo: Sendable, Codable, Equatable {
    /// The frame size integer; 2 when T0 is absent.
    public var fsci: UInt8
    public var ta: UInt8?
    public var tb: UInt8?
    public var tc: UInt8?
    public var historicalBytes: Data

    public init(fsci: UInt8, ta: UInt8? = nil, tb: UInt8? = nil, tc: UInt8? = nil, historicalBytes: Data = Data()) {
        self.fsci = fsci
        self.ta = ta
        self.tb = tb
        self.tc = tc
        self.historicalBytes = historicalBytes
    }

    /// Parses the octets that follow the length octet TL. Empty gives the default values; interface octets that T0 promises
    /// and that are not there are absent.
    public init(bytes: some Collection<UInt8>) {
        var rest = Array(bytes)[...]
        guard let t0 = rest.popFirst() else {
            self.init(fsci: 2)
            return
        }
        self.init(fsci: t0 & 0x0F)
        if t0 & 0x10 != 0 { ta = rest.popFirst() }
        if t0 & 0x20 != 0 { tb = rest.popFirst() }
        if t0 & 0x40 != 0 { tc = rest.popFirst() }
        historicalBytes = Data(rest)
    }

    /// FSC: the octets that a frame to the card may have. FSCI above `C` counts as `C`.
    public var frameSize: Int {
        let sizes = [16, 24, 32, 40, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096]
        return sizes[min(Int(fsci & 0x0F), sizes.count - 1)]
    }

    /// FWI: the frame waiting time is 302 microseconds times two to this power. RFU value `F` counts as 4.
    public var frameWaitingInteger: UInt8 {
        guard let tb else { return 4 }
        return tb >> 4 == 0x0F ? 4 : tb >> 4
    }

    /// SFGI: the guard time after the ATS is 302 microseconds times two to this power. RFU value `F` counts as 0.
    public var startupFrameGuardInteger: UInt8 {
        guard let tb else { return 0 }
        return tb & 0x0F == 0x0F ? 0 : tb & 0x0F
    }

    /// Whether the card takes a node address.
    public var supportsNAD: Bool { (tc ?? 0x02) & 0x01 != 0 }
    /// Whether the card takes a card identifier.
    public var supportsCID: Bool { (tc ?? 0x02) & 0x02 != 0 }
}
