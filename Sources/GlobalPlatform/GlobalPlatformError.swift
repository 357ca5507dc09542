// SPDX-License-Identifier: MIT

public import Octets

/// Why a GlobalPlatform card did not do what was asked, or why what it answered is not to be trusted. Equality is on the code.
///
/// What the transport itself throws (`TransportError`, `EnvironmentError`) passes through the host unchanged.
public struct GlobalPlatformError: CodedError {
    /// Whose fault it is, and what.
    public enum Code: String, Sendable, CaseIterable {
        // The card refused; `statusWord` is its own.
        /// `6A82`: no application with that name.
        case applicationNotFound
        /// `6A88`: a key, an entry or a data object is not there.
        case notFound
        /// `6A84`: not enough memory.
        case outOfMemory
        /// `6581`: a write to memory failed.
        case memoryFailure
        /// `6982`: not authenticated, a wrong C-MAC, a level that is too low.
        case securityNotSatisfied
        /// `6983`: too many wrong authentications.
        case authenticationBlocked
        /// `6985`: not in this state of card, application or command sequence.
        case conditionsNotSatisfied
        /// `6283` or `6A81`: the card or the application is locked or ended.
        case locked
        /// `6A80`, or its older form `9484`.
        case wrongData
        /// `6A86`
        case wrongParameters
        /// `6700`
        case wrongLength
        /// `6D00`
        case instructionNotSupported
        /// `6E00`, `6881` or `6882`
        case classNotSupported
        /// `6300` to EXTERNAL AUTHENTICATE: the card found the host's cryptogram wrong. Cards count these: do not try again.
        case hostCryptogramRefused
        /// Any other status word that is no success.
        case refused

        // The host's own findings; the card is at fault, or the keys are.
        /// The card's cryptogram is not what these keys make. The host goes no further, so that the card counts nothing.
        case cardCryptogramWrong
        case responseMACWrong
        /// A response that cannot be decrypted to padded data.
        case responseEncryptionWrong
        /// A response that is too short to hold the MAC that the level asks for.
        case responseUnprotected
        /// A response whose data is not what the standard says.
        case malformedResponse
        /// A secure channel protocol that this library does not have.
        case protocolNotSupported
        /// A level that this protocol, with the options that the card tells, cannot have.
        case levelNotSupported

        // The caller's fault.
        /// The command needs a secure channel.
        case channelNotOpen
        /// Keys that do not fit the protocol that the card speaks, or of a wrong length.
        case keysUnsuitable
        /// An argument that no command can carry.
        case invalidArgument
        /// The cryptographic library refused.
        case cryptography
    }

    /// What two errors are equal by.
    public let code: Code
    /// SW1-SW2 of the response at fault; nil when there is none.
    public let statusWord: UInt16?
    /// The command that it happened in, by its name in the standard; empty when in none.
    public let command: String
    /// For people.
    public let detail: String

    /// An error of this library, or of a card whose status word is known.
    public init(_ code: Code, command: String = "", statusWord: UInt16? = nil, detail: String = "") {
        self.code = code
        self.command = command
        self.statusWord = statusWord
        self.detail = detail
    }

    public var description: String {
        var text = command.isEmpty ? "" : command + ": "
        text += detail.isEmpty ? code.rawValue : detail
        if let statusWord { text += " (\(hexWord(statusWord)))" }
        return text
    }
}

extension GlobalPlatformError {
    /// What a status word other than a success means (GPC 11.1.3 and the tables of the commands).
    static func refusal(_ word: UInt16, of command: String) -> GlobalPlatformError {
        let (code, text): (Code, String) =
            switch word {
            case 0x6A82: (.applicationNotFound, "the card has no application of that name")
            case 0x6A88: (.notFound, "the card does not have what is referred to")
            case 0x6A84: (.outOfMemory, "the card has not enough memory")
            case 0x6581: (.memoryFailure, "the card's memory failed")
            case 0x6982, 0x9485: (.securityNotSatisfied, "the card wants another security status")
            case 0x6983: (.authenticationBlocked, "the card blocks this authentication")
            case 0x6985: (.conditionsNotSatisfied, "the card does not do that in its present state")
            case 0x6283, 0x6A81: (.locked, "the card or the application is locked")
            case 0x6A80, 0x9484: (.wrongData, "the card finds the data wrong")
            case 0x6A86: (.wrongParameters, "the card finds P1-P2 wrong")
            case 0x6700: (.wrongLength, "the card finds the length wrong")
            case 0x6D00: (.instructionNotSupported, "the card does not know the instruction")
            case 0x6E00, 0x6881, 0x6882: (.classNotSupported, "the card does not know the class")
            default: (.refused, "the card refused")
            }
        return GlobalPlatformError(code, command: command, statusWord: word, detail: text)
    }
}

func hexWord(_ word: UInt16) -> String {
    let text = String(word, radix: 16, uppercase: true)
    return String(repeating: "0", count: max(0, 4 - text.count)) + text
}
