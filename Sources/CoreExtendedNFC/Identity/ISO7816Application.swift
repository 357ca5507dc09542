// SPDX-License-Identifier: MIT

/// Applications of ISO/IEC 7816-4 cards that this library knows by their identifier.
public enum ISO7816Application: String, Sendable, Hashable, Codable, CaseIterable {
    case ndefTagApplication = "D2760000850101"
    /// The NDEF application of mapping version 1; on a DESFire card the name of the PICC level.
    case ndefCardManager = "D2760000850100"
    case eMRTDLDS = "A0000002471001"
    /// LDS2 travel records (ICAO 9303-10).
    case eMRTDAuxiliary = "A0000002472001"
    /// LDS2 visa records.
    case eMRTDVisaRecords = "A0000002472002"
    /// LDS2 additional biometrics.
    case eMRTDAdditionalBiometrics = "A0000002472003"
    case paymentSystemEnvironment = "315041592E5359532E4444463031"
    /// China's City Union transit application.
    case cityUnion = "A00000000386980701"
    case chinaDocument = "F049442E43484E"
    case myNumberJPKI = "D392F000260100000001"
    case myNumberCardInfoInputSupport = "D3921000310001010408"
    /// The common-data application.
    case myNumberIndividualNumber = "D3921000310001010100"
    /// The resident-register application.
    case myNumberResidentRegister = "D3921000310001010401"
    /// The application that checks what is printed on the card's face.
    case myNumberCardInfoInputCheck = "D3921000310001010402"
    case issuerPlaceholder = "00000000000000"

    /// The application whose identifier is `aid` in hexadecimal; spaces and angle brackets are passed over.
    public static func match(aid: String) -> ISO7816Application? {
        let digits = aid.uppercased().filter { $0 != " " && $0 != "<" && $0 != ">" }
        return digits.isEmpty ? nil : ISO7816Application(rawValue: digits)
    }

    /// The kind of card that the application is proof of.
    public var hintedType: CardType? {
        switch self {
        case .ndefTagApplication: .type4NDEF
        case .eMRTDLDS: .ePassport
        case .myNumberJPKI, .myNumberCardInfoInputSupport, .myNumberIndividualNumber, .myNumberResidentRegister,
            .myNumberCardInfoInputCheck:
            .myNumberCard
        default: nil
        }
    }

    public var displayName: String {
        switch self {
        case .ndefTagApplication: "NDEF tag application"
        case .ndefCardManager: "NDEF application, mapping version 1"
        case .eMRTDLDS: "eMRTD"
        case .eMRTDAuxiliary: "eMRTD travel records"
        case .eMRTDVisaRecords: "eMRTD visa records"
        case .eMRTDAdditionalBiometrics: "eMRTD additional biometrics"
        case .paymentSystemEnvironment: "Payment system environment"
        case .cityUnion: "City Union"
        case .chinaDocument: "Chinese document"
        case .myNumberJPKI: "My Number, public key certificates"
        case .myNumberCardInfoInputSupport: "My Number, text entry support"
        case .myNumberIndividualNumber: "My Number, common data"
        case .myNumberResidentRegister: "My Number, resident register"
        case .myNumberCardInfoInputCheck: "My Number, card face check"
        case .issuerPlaceholder: "Placeholder"
        }
    }

    public var note: String {
        switch self {
        case .ndefTagApplication: "NFC Forum Type 4 Tag"
        case .ndefCardManager: "files are selected with P1-P2 0000; on DESFire the PICC level"
        case .eMRTDLDS: "ICAO 9303-10, LDS1"
        case .eMRTDAuxiliary, .eMRTDVisaRecords, .eMRTDAdditionalBiometrics: "ICAO 9303-10, LDS2"
        case .paymentSystemEnvironment: "EMV 1PAY.SYS.DDF01"
        case .cityUnion: "Chinese transit; not UnionPay, whose RID is A000000333"
        case .chinaDocument: "ID.CHN"
        case .myNumberJPKI, .myNumberCardInfoInputSupport, .myNumberIndividualNumber, .myNumberResidentRegister,
            .myNumberCardInfoInputCheck:
            "Japanese individual-number card"
        case .issuerPlaceholder: "an application identifier of zeros, not a real one"
        }
    }
}
