// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A family of cards that share their commands.
public enum CardFamily: String, Sendable, Hashable, Codable, CaseIterable {
    case mifareUltralight, mifareClassic, mifarePlus, mifareDesfire, type4, ntag, felica, iso15693, jewelTopaz, iso14443B,
        passport
    case unknown

    /// The family's name for people; names of exported files derive from it.
    public var displayName: String {
        switch self {
        case .mifareUltralight: "MIFARE Ultralight"
        case .mifareClassic: "MIFARE Classic"
        case .mifarePlus: "MIFARE Plus"
        case .mifareDesfire: "MIFARE DESFire"
        case .type4: "NFC Forum Type 4"
        case .ntag: "NTAG"
        case .felica: "FeliCa"
        case .iso15693: "ISO 15693"
        case .jewelTopaz: "Jewel / Topaz"
        case .iso14443B: "ISO 14443-B"
        case .passport: "Passport / eMRTD"
        case .unknown: "Unknown"
        }
    }
}

/// What a card is, as far as it can be told.
public enum CardType: Sendable, Hashable, Codable {
    case mifareUltralight, mifareUltralightC, mifareUltralightEV1_MF0UL11, mifareUltralightEV1_MF0UL21
    case ntag210, ntag212, ntag213, ntag215, ntag216
    /// NTAG 424 DNA: an ISO/IEC 7816-4 card with the commands of DESFire.
    case ntag424DNA
    case mifareClassic1K, mifareClassic4K, mifareMini
    case mifarePlusSL1_2K, mifarePlusSL1_4K, mifarePlusSL2_2K, mifarePlusSL2_4K, mifarePlusSL3_2K, mifarePlusSL3_4K
    case mifareDesfire, mifareDesfireEV1, mifareDesfireEV2, mifareDesfireEV3
    case type4NDEF
    case felicaLite, felicaLiteS, felicaStandard
    case iso15693_ICODE_SLIX, iso15693_ST25TV, iso15693_generic
    case ePassport
    case myNumberCard
    case jewelTopaz, iso14443B_generic
    /// A card with ISO/IEC 7816-4 applications of which nothing more is known.
    case smartMX
    /// ATQA most significant octet first.
    case unknown(atqa: Data, sak: UInt8)
}

extension CardType {
    public var family: CardFamily {
        switch self {
        case .mifareUltralight, .mifareUltralightC, .mifareUltralightEV1_MF0UL11, .mifareUltralightEV1_MF0UL21: .mifareUltralight
        case .ntag210, .ntag212, .ntag213, .ntag215, .ntag216, .ntag424DNA: .ntag
        case .mifareClassic1K, .mifareClassic4K, .mifareMini: .mifareClassic
        case .mifarePlusSL1_2K, .mifarePlusSL1_4K, .mifarePlusSL2_2K, .mifarePlusSL2_4K, .mifarePlusSL3_2K, .mifarePlusSL3_4K:
            .mifarePlus
        case .mifareDesfire, .mifareDesfireEV1, .mifareDesfireEV2, .mifareDesfireEV3: .mifareDesfire
        case .type4NDEF: .type4
        case .felicaLite, .felicaLiteS, .felicaStandard: .felica
        case .iso15693_ICODE_SLIX, .iso15693_ST25TV, .iso15693_generic: .iso15693
        case .ePassport: .passport
        case .myNumberCard, .iso14443B_generic: .iso14443B
        case .jewelTopaz: .jewelTopaz
        case .smartMX, .unknown: .unknown
        }
    }

    /// Whether the library works with such a card: what needs Crypto1 or the Topaz protocol it does not.
    public var isOperableOnIOS: Bool {
        switch self {
        case .mifareClassic1K, .mifareClassic4K, .mifareMini, .mifarePlusSL1_2K, .mifarePlusSL1_4K, .jewelTopaz, .unknown: false
        default: true
        }
    }
}

extension CardType: CustomStringConvertible {
    public var description: String {
        switch self {
        case .mifareUltralight: "MIFARE Ultralight"
        case .mifareUltralightC: "MIFARE Ultralight C"
        case .mifareUltralightEV1_MF0UL11: "MIFARE Ultralight EV1 (MF0UL11)"
        case .mifareUltralightEV1_MF0UL21: "MIFARE Ultralight EV1 (MF0UL21)"
        case .ntag210: "NTAG210"
        case .ntag212: "NTAG212"
        case .ntag213: "NTAG213"
        case .ntag215: "NTAG215"
        case .ntag216: "NTAG216"
        case .ntag424DNA: "NTAG 424 DNA"
        case .mifareClassic1K: "MIFARE Classic 1K"
        case .mifareClassic4K: "MIFARE Classic 4K"
        case .mifareMini: "MIFARE Mini 0.3K"
        case .mifarePlusSL1_2K: "MIFARE Plus 2K (SL1)"
        case .mifarePlusSL1_4K: "MIFARE Plus 4K (SL1)"
        case .mifarePlusSL2_2K: "MIFARE Plus 2K (SL2)"
        case .mifarePlusSL2_4K: "MIFARE Plus 4K (SL2)"
        case .mifarePlusSL3_2K: "MIFARE Plus 2K (SL3)"
        case .mifarePlusSL3_4K: "MIFARE Plus 4K (SL3)"
        case .mifareDesfire: "MIFARE DESFire"
        case .mifareDesfireEV1: "MIFARE DESFire EV1"
        case .mifareDesfireEV2: "MIFARE DESFire EV2"
        case .mifareDesfireEV3: "MIFARE DESFire EV3"
        case .type4NDEF: "NFC Forum Type 4 Tag"
        case .felicaLite: "FeliCa Lite"
        case .felicaLiteS: "FeliCa Lite-S"
        case .felicaStandard: "FeliCa Standard"
        case .iso15693_ICODE_SLIX: "ICODE SLIX"
        case .iso15693_ST25TV: "ST25TV"
        case .iso15693_generic: "ISO 15693"
        case .ePassport: "ePassport (eMRTD)"
        case .myNumberCard: "Japanese My Number Card"
        case .jewelTopaz: "Jewel / Topaz"
        case .iso14443B_generic: "ISO 14443-B"
        case .smartMX: "SmartMX / Generic ISO 7816"
        case .unknown(let atqa, let sak): "Unknown (ATQA: \(hexText(atqa)), SAK: \(hexText([sak])))"
        }
    }
}
