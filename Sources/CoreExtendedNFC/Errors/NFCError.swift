// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// Why a card flow or a session ended without its result.
///
/// Equality is on the case and on the facts that a card or caller gave (status words, pages, octets). A text is for people and
/// does not count.
public enum NFCError: Error, Sendable {
    // MARK: Reader and session

    /// There is no reader, or no service to reach it.
    case nfcNotAvailable
    /// No tag came, or the tag did not answer, in the time allowed.
    case sessionTimeout
    /// The session ended on its own account; the text says why.
    case sessionInvalidated(String)
    /// Another scan of the same manager is pending.
    case scanInProgress
    /// The user ended the session.
    case userCanceled
    /// The program ended the session, by `invalidate()` or by cancelling the call.
    case sessionInvalidatedByCaller

    // MARK: Tag and link

    /// The tag left the field or the card its slot.
    case tagConnectionLost
    /// No reader of this library knows such a tag, or the tag lacks the service asked for.
    case tagNotSupported
    /// A checksum of the tag's data does not fit the data.
    case crcMismatch
    /// An answer that is no answer to what was asked, as it came.
    case invalidResponse(Data)

    // MARK: Refusals

    /// SW1 and SW2 of an answer that was to be `9000`.
    case unexpectedStatusWord(UInt8, UInt8)
    /// No application of this identifier is on the card.
    case applicationNotFound(aid: Data)
    /// The card did not accept the key or password, or could not prove that it knows it.
    case authenticationFailed
    case writeFailed(page: UInt8)
    /// The tag may not be written.
    case tagLocked
    case desfireError(DESFireStatus)
    /// Status flag 1 of a FeliCa answer (JIS X 6319-4).
    case felicaBlockReadFailed(statusFlag: Int)
    case felicaBlockWriteFailed(statusFlag: Int)

    // MARK: Travel documents

    /// PACE did not come to an end, and nothing else could have opened the chip (ICAO 9303-11 4.4).
    case paceFailed(String)
    /// Basic Access Control did not come to an end (ICAO 9303-11 4.3).
    case bacFailed(String)
    /// Secure messaging cannot go on (ICAO 9303-11 9.8).
    case secureMessagingError(String)
    /// The document does not hold the data group, or does not give it out.
    case dataGroupNotAvailable(String)
    /// A file is not what its standard says.
    case dataGroupParseFailed(String)

    // MARK: Caller

    /// A key or length does not fit its algorithm, or the algorithm is not there.
    case cryptoError(String)
    case notOperableOnIOS(CardType)
    /// The arguments or the transport do not allow it. Nothing was sent.
    case unsupportedOperation(String)
}

extension NFCError {
    /// The case's name without its payload: `tagConnectionLost`.
    public var caseName: String {
        switch self {
        case .nfcNotAvailable: "nfcNotAvailable"
        case .sessionTimeout: "sessionTimeout"
        case .sessionInvalidated: "sessionInvalidated"
        case .scanInProgress: "scanInProgress"
        case .userCanceled: "userCanceled"
        case .sessionInvalidatedByCaller: "sessionInvalidatedByCaller"
        case .tagConnectionLost: "tagConnectionLost"
        case .tagNotSupported: "tagNotSupported"
        case .crcMismatch: "crcMismatch"
        case .invalidResponse: "invalidResponse"
        case .unexpectedStatusWord: "unexpectedStatusWord"
        case .applicationNotFound: "applicationNotFound"
        case .authenticationFailed: "authenticationFailed"
        case .writeFailed: "writeFailed"
        case .tagLocked: "tagLocked"
        case .desfireError: "desfireError"
        case .felicaBlockReadFailed: "felicaBlockReadFailed"
        case .felicaBlockWriteFailed: "felicaBlockWriteFailed"
        case .paceFailed: "paceFailed"
        case .bacFailed: "bacFailed"
        case .secureMessagingError: "secureMessagingError"
        case .dataGroupNotAvailable: "dataGroupNotAvailable"
        case .dataGroupParseFailed: "dataGroupParseFailed"
        case .cryptoError: "cryptoError"
        case .notOperableOnIOS: "notOperableOnIOS"
        case .unsupportedOperation: "unsupportedOperation"
        }
    }
}

extension NFCError: Equatable {
    public static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.invalidResponse(let a), .invalidResponse(let b)): a == b
        case (.unexpectedStatusWord(let a1, let a2), .unexpectedStatusWord(let b1, let b2)): a1 == b1 && a2 == b2
        case (.applicationNotFound(let a), .applicationNotFound(let b)): a == b
        case (.writeFailed(let a), .writeFailed(let b)): a == b
        case (.desfireError(let a), .desfireError(let b)): a == b
        case (.felicaBlockReadFailed(let a), .felicaBlockReadFailed(let b)): a == b
        case (.felicaBlockWriteFailed(let a), .felicaBlockWriteFailed(let b)): a == b
        case (.notOperableOnIOS(let a), .notOperableOnIOS(let b)): a == b
        default: left.caseName == right.caseName
        }
    }
}

extension NFCError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .nfcNotAvailable: "no reader can be reached"
        case .sessionTimeout: "no answer in the time allowed"
        case .sessionInvalidated(let text): text.isEmpty ? "the session ended" : text
        case .scanInProgress: "a scan of this manager is pending"
        case .userCanceled: "cancelled by the user"
        case .sessionInvalidatedByCaller: "the session was ended by the program"
        case .tagConnectionLost: "the card was removed or stopped answering"
        case .tagNotSupported: "no reader for this kind of card"
        case .crcMismatch: "a checksum does not fit its data"
        case .invalidResponse(let data): "an answer of \(data.count) bytes that fits no rule"
        case .unexpectedStatusWord(let sw1, let sw2): "the card answered \(hexText([sw1, sw2]))"
        case .applicationNotFound(let aid): "no application \(hexText(aid)) on the card"
        case .authenticationFailed: "the card and the key do not fit"
        case .writeFailed(let page): "page \(page) was not written"
        case .tagLocked: "the card may not be written"
        case .desfireError(let status): "the card answered 91\(hexText([status.rawValue])) \(status.text)"
        case .felicaBlockReadFailed(let flag): "the card refused to read, status flag \(flag)"
        case .felicaBlockWriteFailed(let flag): "the card refused to write, status flag \(flag)"
        case .paceFailed(let text), .bacFailed(let text), .secureMessagingError(let text), .dataGroupNotAvailable(let text),
            .dataGroupParseFailed(let text),
            .cryptoError(let text), .unsupportedOperation(let text):
            text
        case .notOperableOnIOS(let type): "\(type.description) cannot be worked with"
        }
    }
}

extension Error {
    /// Whether this error only says that somebody wanted to stop: the user, the program, or a cancelled task.
    public var isNFCCancellation: Bool {
        if self is CancellationError { return true }
        return switch self as? NFCError {
        case .userCanceled, .sessionInvalidatedByCaller: true
        default: false
        }
    }
}
